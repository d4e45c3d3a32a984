// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe [-b] [-i] [-c NAME] [-n NICE] [-s SLICE_US] [-y YIELD_S] MODE SECONDS LIMIT_MS [CPU]: how
 * long a task waits for its CPU.
 * MODE spin: it never sleeps; its longest wait is the longest time between two looks at the clock.
 * MODE sleep: it sleeps for 2 ms again and again; its longest wait is the longest delay of a
 * wakeup.
 * -b: policy SCHED_BATCH; -i: SCHED_IDLE. -y: calls sched_yield() before each look of the first
 * YIELD_S seconds. -c: takes the name NAME when the file /tmp/rename exists, and removes the file.
 * The move to CPU is part of the first wait. Exit status 1 if the longest wait exceeds LIMIT_MS.
 */
#define _GNU_SOURCE
#include "attr.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define NAP_NS 2000000

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* 0 if the longest wait is within the limit. */
static int measure(const char *mode, const char *name, double start, double ms, double yield_ms,
		   double limit)
{
	struct timespec nap = { 0, NAP_NS };
	double last = start, longest = 0, sum = 0;
	int sleeper = !strcmp(mode, "sleep");
	long n = 0;

	while (last - start < ms) {
		double t, wait;

		if (last - start < yield_ms)
			sched_yield();
		if (name && !unlink("/tmp/rename"))
			prctl(PR_SET_NAME, name);
		if (sleeper)
			nanosleep(&nap, NULL);
		t = now_ms();
		wait = t - last - (sleeper ? NAP_NS / 1e6 : 0);
		longest = wait > longest ? wait : longest;
		sum += wait;
		n++;
		/* After a sleep the clock is read again, so that only the sleep is measured. */
		last = sleeper ? now_ms() : t;
	}
	printf("# probe %s: longest wait %.3f ms, mean %.4f ms, %ld looks, limit %.0f ms\n", mode,
	       longest, sum / n, n, limit);
	return longest > limit || n < 3;
}

int main(int argc, char **argv)
{
	double start, yield_ms = 0;
	struct wish wish = {};
	const char *failed, *name = NULL;
	int c;

	while ((c = getopt(argc, argv, "bic:n:s:y:")) > 0) {
		if (c == 'b')
			wish.batch = 1;
		else if (c == 'i')
			wish.idle = 1;
		else if (c == 'c')
			name = optarg;
		else if (c == 'n')
			wish.nice = atoi(optarg);
		else if (c == 's')
			wish.slice_us = atol(optarg);
		else if (c == 'y')
			yield_ms = atof(optarg) * 1e3;
		else
			return 2;
	}
	argc -= optind;
	argv += optind;
	if (argc < 3)
		return 2;
	failed = set_attr(&wish);
	if (failed) {
		perror(failed);
		return 2;
	}
	start = now_ms();
	if (argc > 3 && pin(atoi(argv[3])))
		return 2;
	return measure(argv[0], name, start, atof(argv[1]) * 1e3, yield_ms, atof(argv[2]));
}
