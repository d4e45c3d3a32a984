/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Signals: decayed averages with a half-life of 32 ms for load and utilisation, like the kernel's
 * PELT (kernel/sched/pelt.c). The kernel keeps none for sched_ext tasks.
 *
 * Method: callbacks only add to integrals. After at least one period (2^20 ns) an integral is
 * folded: the mean over the interval replaces the part of the average that has decayed meanwhile.
 *
 * Limit: all that happens within one fold has the same weight. An interval is longer than a period
 * only if nothing changed in its last part. So the error is below one period's weight, 2 %.
 */
#ifndef ROOST_SIGNAL_H
#define ROOST_SIGNAL_H

#include "port.h"

enum {
	PERIOD_SHIFT = 20, /* kernel: 1024 us */
	HALF_LIFE_PERIODS = 32,
};

#define PERIOD_NS (1ULL << PERIOD_SHIFT)

/* @avg after @ns without activity: avg * 2^(-ns / 32 periods). */
static __always_inline u64 decayed(u64 avg, u64 ns)
{
	/* 2^32 * 2^(-i/32), i = 0..31 rounded (kernel: runnable_avg_yN_inv) */
	static const u32 power_of_y[HALF_LIFE_PERIODS] = {
		0xffffffff, 0xfa83b2db, 0xf5257d15, 0xefe4b99c, 0xeac0c6e8, 0xe5b906e7, 0xe0ccdeec,
		0xdbfbb798, 0xd744fccb, 0xd2a81d92, 0xce248c15, 0xc9b9bd86, 0xc5672a11, 0xc12c4cca,
		0xbd08a39f, 0xb8fbaf47, 0xb504f334, 0xb123f582, 0xad583eea, 0xa9a15ab5, 0xa5fed6aa,
		0xa2704303, 0x9ef53261, 0x9b8d39ba, 0x9837f052, 0x94f4efa9, 0x91c3d374, 0x8ea4398b,
		0x8b95c1e4, 0x88980e81, 0x85aac368, 0x82cd8699,
	};
	/* 1 - 2^(-1/32) in 2^-16: the decay of one period. Within a period the decay is linear. */
	const u64 period_takes = 1404;
	u64 periods, part;

	/*
	 * Another CPU's clock may be a little ahead: a negative @ns counts as 0. No branch, because
	 * 6.18's verifier would follow both ways each time.
	 */
	ns &= ~(u64)((s64)ns >> 63);
	opaque(ns);
	periods = ns >> PERIOD_SHIFT;
	part = ((ns & (PERIOD_NS - 1)) * period_takes) >> 16;
	if (periods >= HALF_LIFE_PERIODS * 32)
		return 0;
	avg >>= periods / HALF_LIFE_PERIODS;
	avg = (avg * power_of_y[periods % HALF_LIFE_PERIODS]) >> 32;
	return avg - ((avg * part) >> PERIOD_SHIFT);
}

/*
 * The average after an interval of @ns in which the signal's integral grew by @sum. @ns is not 0.
 */
static __always_inline u64 folded(u64 avg, u64 sum, u64 ns)
{
	u64 mean = sum / ns;

	return mean <= avg ? mean + decayed(avg - mean, ns) : mean - decayed(mean - avg, ns);
}

/* ---- a CPU's load and utilisation ---- */

/* Called before the CPU's weight changes, or before its owner reads its load. */
static __always_inline void cpu_integrate(struct cpu_state *cs, u64 now)
{
	if ((s64)(now - cs->load_since) > 0)
		cs->load_sum += cs->weight * (now - cs->load_since);
	cs->load_since = now;
}

static __always_inline void cpu_fold(struct cpu_state *cs, u64 now)
{
	u64 ns = now - cs->folded_at;
	s64 load;

	if ((s64)ns < (s64)PERIOD_NS)
		return;
	cpu_integrate(cs, now);
	load = folded(cs->load_avg, cs->load_sum, ns) + (s64)atomic_swap((u64 *)&cs->load_moved, 0);
	cs->load_avg = load > 0 ? load : 0;
	cs->util_avg = folded(cs->util_avg, cs->busy_sum * CAPACITY_SCALE, ns);
	cs->load_sum = cs->busy_sum = 0;
	cs->folded_at = now;
}

/*
 * Load of any CPU now, without a write (kernel: cpu_load(), which includes blocked tasks). If the
 * CPU folds at the same time, the result is off by at most one fold.
 */
static __always_inline u64 cpu_load(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 ns = now - cs->folded_at, since = cs->load_since, sum = cs->load_sum;
	u64 load = cs->load_avg;

	if ((s64)ns >= (s64)PERIOD_NS) {
		if ((s64)(now - since) > 0)
			sum += cs->weight * (now - since);
		load = folded(load, sum, ns);
	}
	load += cs->load_moved;
	return (s64)load > 0 ? load : 0;
}

/* @ns of running, as time at full speed (kernel: cap_scale() by arch_scale_freq_capacity()). */
static __always_inline u64 at_full_speed(const struct cpu_state *cs, u64 ns)
{
	return ns - ns * cs->slow / CAPACITY_SCALE;
}

/*
 * Utilisation of any CPU now, without a write: the busy part of its time at full speed,
 * 0..CAPACITY_SCALE.
 */
static __always_inline u64 cpu_util(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 ns = now - cs->folded_at, busy = cs->busy_sum;

	if ((s64)ns < (s64)PERIOD_NS)
		return cs->util_avg;
	if (cs->curr_pid && (s64)(now - cs->charged_at) > 0)
		busy += at_full_speed(cs, now - cs->charged_at < ns ? now - cs->charged_at : ns);
	return folded(cs->util_avg, (busy < ns ? busy : ns) * CAPACITY_SCALE, ns);
}

/*
 * @util of @cpu's time, as a part of the biggest CPU's capacity (kernel: update_rq_clock_pelt()).
 */
static __always_inline u64 scaled_util(u64 util, s32 cpu)
{
	return util * cpu_facts(cpu)->capacity / CAPACITY_SCALE;
}

/* The larger. No branch, because 6.18's verifier would follow both ways each time. */
static __always_inline u64 larger(u32 a, u32 b)
{
	s64 more = (s64)a - b;

	return a - (more & (more >> 63));
}

/*
 * What @cpu's tasks use, or will use by their estimates, 0..its capacity (kernel: cpu_util(),
 * without its runnable boost). A task that has never slept counts with its first guess, which the
 * kernel adds to the CPU's utilisation. @util: cpu_util()
 */
static __always_inline u32 cpu_demand(s32 cpu, u64 util)
{
	u32 capacity = cpu_facts(cpu)->capacity;
	u32 demand = larger(scaled_util(util, cpu), cpu_state(cpu)->util_est);

	return demand < capacity ? demand : capacity;
}

/* ---- a task's signals ---- */

static __always_inline void task_fold(struct task_state *ts, u64 now)
{
	u64 ns = now - ts->folded_at;
	u32 capacity = ts->load_cpu ? cpu_facts(ts->load_cpu - 1)->capacity : CAPACITY_SCALE;

	ts->runnable_avg = folded(ts->runnable_avg, ts->runnable_sum * CAPACITY_SCALE, ns);
	/* Assume that all of it ran on the CPU where the task is now. */
	ts->util_avg = folded(ts->util_avg, ts->running_sum * capacity, ns);
	ts->runnable_sum = ts->running_sum = 0;
	ts->folded_at = now;
}

/*
 * Load of a task that sleeps or has just woken (kernel: task_h_load() after
 * sync_entity_load_avg()). That of a running waker is a little low: what it ran since its last fold
 * is missing.
 */
static __always_inline u64 task_load(struct task_state *ts, u64 now)
{
	return decayed(ts->runnable_avg, now - ts->folded_at) * ts->weight / CAPACITY_SCALE;
}

/*
 * The first guess of a new task's utilisation on @cpu: half of what is left there (kernel:
 * post_init_entity_util_avg()).
 */
static __always_inline u64 first_util(s32 cpu, u64 now)
{
	return (cpu_facts(cpu)->capacity - cpu_demand(cpu, cpu_util(cpu, now))) / 2;
}

/*
 * The task becomes runnable on @cpu: its blocked load moves there from the CPU that held it
 * (kernel: remove_entity_load_avg(), attach_entity_load_avg()). A new task's utilisation is
 * guessed.
 */
static __always_inline void load_follows(struct task_state *ts, s32 cpu, u64 now)
{
	u64 load;

	if (ts->load_cpu == cpu + 1)
		return;
	if (!ts->load_cpu)
		ts->util_avg = first_util(cpu, now);
	load = task_load(ts, now);
	if (ts->load_cpu)
		atomic_add((u64 *)&cpu_state(ts->load_cpu - 1)->load_moved, -load);
	atomic_add((u64 *)&cpu_state(cpu)->load_moved, load);
	ts->load_cpu = cpu + 1;
}

/*
 * The task leaves our class or dies: its load goes with it (kernel: task_dead_fair(),
 * detach_task_cfs_rq()).
 */
static __always_inline void load_ends(struct task_state *ts, u64 now)
{
	if (!ts->load_cpu)
		return;
	atomic_add((u64 *)&cpu_state(ts->load_cpu - 1)->load_moved, -task_load(ts, now));
	ts->load_cpu = 0;
}

/* A new task counts as always runnable (kernel: init_entity_runnable_average()). */
static __always_inline void task_signals_init(struct task_state *ts, u64 now)
{
	ts->runnable_avg = CAPACITY_SCALE;
	ts->folded_at = now;
}

#endif /* ROOST_SIGNAL_H */
