// SPDX-License-Identifier: GPL-2.0-only
/*
 * naps COUNT MS NAP_US RUN_US: COUNT tasks each sleep for NAP_US and run for RUN_US in turn, for
 * MS. Prints the CPUs on which they ran after a nap.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "now.h"

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	long ms = argc > 2 ? atol(argv[2]) : 100, nap_us = argc > 3 ? atol(argv[3]) : 50,
	     run_us = argc > 4 ? atol(argv[4]) : 10;
	struct timespec nap = { nap_us / 1000000, nap_us % 1000000 * 1000 };
	double end = now_us() + ms * 1000;
	volatile char *used =
		mmap(NULL, CPU_SETSIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (used == MAP_FAILED) {
		perror("naps: mmap");
		return 1;
	}

	for (int i = 0; i < count; i++) {
		if (fork())
			continue;
		/* No timer slack: the timers of tasks are not merged. */
		prctl(PR_SET_TIMERSLACK, 1);
		while (now_us() < end) {
			nanosleep(&nap, NULL);
			used[sched_getcpu()] = 1;
			burn(run_us);
		}
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (used[cpu])
			printf("%d ", cpu);
	printf("\n");
	return 0;
}
