/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Probes: tasks that sleep until a time and measure how late they run. They count only while the
 * scheduler under test runs. Schedulers are compared by the first one; the others are kinds of
 * tasks that are easily neglected.
 */
#ifndef CHAOS_PROBE_H
#define CHAOS_PROBE_H

#include "board.h"
#include <sys/prctl.h>
#include <sys/resource.h>

struct probe_kind {
	const char *name;
	int policy, nice;
	int cpu; /* -1: any; else counted from the last CPU */
	int period_ms;
};

static const struct probe_kind probe_kinds[NR_PROBES] = {
	{ "nice0", SCHED_OTHER, 0, -1, 5 },
	{ "nice19", SCHED_OTHER, 19, -1, 20 },
	{ "idle-pinned", SCHED_IDLE, 0, 1, 20 },
	{ "batch-pinned", SCHED_BATCH, 0, 2, 20 },
};

static int bucket_of(int64_t ns)
{
	int power;

	if (ns < 8)
		return ns < 0 ? 0 : ns;
	power = 63 - __builtin_clzll(ns);
	return power * 8 + (ns >> (power - 3) & 7);
}

/* The upper end of the bucket. */
static double bucket_us(int bucket)
{
	int power = bucket / 8;

	return power < 3 ? 0 : (8 + bucket % 8 + 1) * (double)(1LL << (power - 3)) / 1e3;
}

static void add_latency(struct histogram *h, int64_t ns)
{
	h->buckets[bucket_of(ns)]++;
	if (ns > h->longest_ns)
		h->longest_ns = ns;
}

static long samples_of(const struct histogram *h)
{
	long n = 0;

	for (int i = 0; i < NR_BUCKETS; i++)
		n += h->buckets[i];
	return n;
}

static double quantile_us(const struct histogram *h, double q)
{
	long want = q * samples_of(h), n = 0;

	for (int i = 0; i < NR_BUCKETS; i++) {
		n += h->buckets[i];
		if (n > want)
			return bucket_us(i);
	}
	return 0;
}

static void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static _Noreturn void run_probe(int index)
{
	const struct probe_kind *kind = &probe_kinds[index];
	int cpu = board->nr_cpus - kind->cpu;
	struct sched_param param = {};
	char name[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(name, sizeof(name), "probe-%s", kind->name);
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_TIMERSLACK, 1);
	sched_setscheduler(0, kind->policy, &param);
	setpriority(PRIO_PROCESS, 0, kind->nice);
	/* CPU 0 never goes offline. A pinned probe whose CPU does may run anywhere from then on. */
	if (kind->cpu >= 0)
		pin_to(cpu > 0 ? cpu : 0);
	while (!board->over) {
		int64_t at = now_ns() + kind->period_ms * 1000000LL;
		bool counts = board->in_charge;

		sleep_until(at);
		if (counts && board->in_charge)
			add_latency(&board->probes[index], now_ns() - at);
	}
	_exit(0);
}

static void start_probes(void)
{
	for (int i = 0; i < NR_PROBES; i++)
		if (!fork())
			run_probe(i);
}

static void tell_probes(void)
{
	for (int i = 0; i < NR_PROBES; i++) {
		const struct histogram *h = &board->probes[i];

		tell("::probe %s %ld %.0f %.0f %.0f", probe_kinds[i].name, samples_of(h),
		     quantile_us(h, 0.5), quantile_us(h, 0.99), h->longest_ns / 1e3);
	}
}

#endif /* CHAOS_PROBE_H */
