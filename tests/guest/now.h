/* SPDX-License-Identifier: GPL-2.0-only */
/* The clock of the tests' programs, and a busy loop. */
#ifndef ROOST_TESTS_NOW_H
#define ROOST_TESTS_NOW_H

#include <time.h>

static inline double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* Uses CPU time for @us. */
static inline void burn(double us)
{
	double end = now_us() + us;

	while (now_us() < end)
		;
}

#endif /* ROOST_TESTS_NOW_H */
