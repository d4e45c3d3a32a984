/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Probes: tasks of kinds that are easily neglected. Each sleeps and wakes, again and again; waits.h
 * sees how long it waits for its CPU.
 */
#ifndef CHAOS_PROBE_H
#define CHAOS_PROBE_H

#include "board.h"
#include <sys/prctl.h>
#include <sys/resource.h>

static const struct probe {
	const char *name;
	int policy, nice;
	int cpu; /* -1: any; else counted from the last CPU */
	int period_ms;
} probes[] = {
	{ "probe-nice0", SCHED_OTHER, 0, -1, 5 },
	{ "probe-nice19", SCHED_OTHER, 19, -1, 20 },
	{ "probe-idle", SCHED_IDLE, 0, 1, 20 },
	{ "probe-batch", SCHED_BATCH, 0, 2, 20 },
};

static _Noreturn void run_probe(const struct probe *p)
{
	int cpu = board->nr_cpus - p->cpu;
	struct sched_param param = {};
	cpu_set_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, p->name);
	prctl(PR_SET_TIMERSLACK, 1);
	sched_setscheduler(0, p->policy, &param);
	setpriority(PRIO_PROCESS, 0, p->nice);
	/* CPU 0 never goes offline. A pinned probe whose CPU does may run anywhere from then on. */
	CPU_ZERO(&set);
	CPU_SET(cpu > 0 ? cpu : 0, &set);
	if (p->cpu >= 0)
		sched_setaffinity(0, sizeof(set), &set);
	while (!board->over)
		sleep_until(now_ns() + p->period_ms * 1000000LL);
	_exit(0);
}

static void start_probes(void)
{
	for (size_t i = 0; i < sizeof(probes) / sizeof(*probes); i++)
		if (!fork())
			run_probe(&probes[i]);
}

#endif /* CHAOS_PROBE_H */
