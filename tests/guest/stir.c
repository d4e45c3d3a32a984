// SPDX-License-Identifier: GPL-2.0-only
/*
 * stir WHAT EVERY_MS PID: keeps changing how process PID is scheduled, until it is gone, also while
 * it waits for its CPU, which must be CPU 1. WHAT: affinity (CPU 1 alone, or with CPU 0), policy
 * (SCHED_IDLE, SCHED_BATCH), nice (19, 18), stop (SIGSTOP and at once SIGCONT). It runs as a
 * real-time task, so that it is never late. Prints the number of changes. Exit status 1 if there
 * were fewer than 3.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static int stir_affinity(pid_t pid, int odd)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(1, &set);
	if (odd)
		CPU_SET(0, &set);
	return sched_setaffinity(pid, sizeof(set), &set);
}

static int stir_policy(pid_t pid, int odd)
{
	struct sched_param none = {};

	return sched_setscheduler(pid, odd ? SCHED_BATCH : SCHED_IDLE, &none);
}

static int stir_nice(pid_t pid, int odd)
{
	return setpriority(PRIO_PROCESS, pid, odd ? 18 : 19);
}

static int stir_stop(pid_t pid, int odd)
{
	return kill(pid, SIGSTOP) || kill(pid, SIGCONT);
}

static const struct {
	const char *name;
	int (*stir)(pid_t pid, int odd);
} ways[] = {
	{ "affinity", stir_affinity },
	{ "policy", stir_policy },
	{ "nice", stir_nice },
	{ "stop", stir_stop },
};

int main(int argc, char **argv)
{
	struct sched_param rt = { .sched_priority = 1 };
	struct timespec pause = {};
	int way = -1, times = 0;
	long every;

	for (unsigned i = 0; argc == 4 && i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(argv[1], ways[i].name))
			way = i;
	if (way < 0) {
		fprintf(stderr, "usage: stir affinity|policy|nice|stop EVERY_MS PID\n");
		return 2;
	}
	every = atol(argv[2]) * 1000000;
	pause.tv_sec = every / 1000000000;
	pause.tv_nsec = every % 1000000000;
	if (sched_setscheduler(0, SCHED_FIFO, &rt))
		perror("stir: SCHED_FIFO");
	while (!ways[way].stir(atoi(argv[3]), times & 1)) {
		times++;
		nanosleep(&pause, NULL);
	}
	printf("# stir: %s changed %d times\n", argv[1], times);
	return times < 3;
}
