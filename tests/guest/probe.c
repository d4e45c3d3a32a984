// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe MODE SECONDS LIMIT_MS [CPU]: how long a task of the ordinary class is kept from its CPU.
 * MODE spin: it never sleeps; the longest time between two looks at the clock is its longest wait.
 * MODE sleep: it sleeps 2 ms again and again; the longest lateness is its longest wait.
 * Exit status 1 when the longest wait is over LIMIT_MS.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAP_NS 2000000

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	double start, last, longest = 0, sum = 0, limit;
	int sleeper;
	long n = 0;

	if (argc < 4)
		return 2;
	sleeper = !strcmp(argv[1], "sleep");
	limit = atof(argv[3]);
	if (argc > 4) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(atoi(argv[4]), &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			return 2;
	}
	start = last = now_ms();
	while (last - start < atof(argv[2]) * 1e3) {
		struct timespec nap = { 0, NAP_NS };
		double t, wait;

		if (sleeper)
			nanosleep(&nap, NULL);
		t = now_ms();
		wait = t - last - (sleeper ? NAP_NS / 1e6 : 0);
		longest = wait > longest ? wait : longest;
		sum += wait;
		n++;
		/* The clock is read again after a sleep so that only the sleep itself is measured. */
		last = sleeper ? now_ms() : t;
	}
	printf("# probe %s: longest wait %.3f ms, mean %.4f ms, %ld looks, limit %.0f ms\n", argv[1], longest, sum / n,
	       n, limit);
	return longest > limit || n < 3;
}
