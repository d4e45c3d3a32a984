/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the rungs ask of a wakeup or fork (struct wakeup) and of CPUs. The rungs read its facts and
 * the port, never the clock or the kernel directly.
 */
#ifndef ROOST_WAKEUP_H
#define ROOST_WAKEUP_H

#include "cpu_set.h"
#include "domain.h"
#include "util_est.h"

#define SMT_IMBALANCE_PCT 110 /* kernel: sd_init(), SMT level */

/* The task's estimated utilisation, for a new task its first guess. 0..CAPACITY_SCALE */
static __always_inline u32 demand_of(const struct wakeup *w, struct task_state *ts)
{
	return ts->load_cpu ? task_util_est(ts) : first_util_est(w->last_cpu, w->now);
}

/*
 * Not by features_of(): the groups of rungs are subprograms, where each test of a live wakeup would
 * cost one load more.
 */
static __always_inline bool has(const struct wakeup *w, enum roost_feature f)
{
	return w->features & f;
}

/* Copy what the groups of rungs need from the task's state, as far as some feature reads it. */
static __always_inline void hand_over(struct wakeup *w, struct task_state *ts)
{
	w->recent = ts->recent_cpu - 1;
	w->sched_idle = ts->sched_idle;
	w->short_burst = ts->burst && ts->burst < machine_arm()->migration_cost_ns;
	w->util = 0;
	if (has(w, FEATURE_util_fits)) {
		w->fits_scale = ts->pol.fits_scale;
		w->fits_rt = ts->pol.fits_rt;
	}
	if (machine_facts()->asym || has(w, FEATURE_util_fits))
		w->util = demand_of(w, ts);
}

/* @cpu runs one SCHED_IDLE task and nothing else is runnable there (kernel: sched_idle_cpu()). */
static __always_inline bool cpu_sched_idle(s32 cpu)
{
	struct cpu_state *cs = cpu_state(cpu);

	return cs->curr_sched_idle && cs->curr_pid && cpu_nr_running(cpu) == 1;
}

/*
 * @cpu is in the idle set, so it may be free. Tested before the kernel's state, because most CPUs
 * of a busy machine are not in the set.
 */
static __always_inline bool cpu_marked(s32 cpu)
{
	return cpu_state(cpu)->idle_marked;
}

/* cpu_idle(), but the kernel's state is read only if the CPU is in the idle set. */
static __always_inline bool cpu_idle_marked(s32 cpu)
{
	return cpu_marked(cpu) && cpu_idle(cpu);
}

/*
 * Idle, or runs nothing but a SCHED_IDLE task. The latter does not count as free for a SCHED_IDLE
 * task (kernel: choose_idle_cpu()).
 */
static __always_inline bool cpu_free(s32 cpu, bool sched_idle)
{
	return cpu_idle(cpu) || (!sched_idle && cpu_sched_idle(cpu));
}

/* Every other thread of @cpu's core is idle. */
subprog bool siblings_idle(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	for_below (i, f->nr_sib, MAX_SMT)
		if (!cpu_idle(sibling(f, i)))
			return false;
	return true;
}

/* Every thread of @cpu's core is idle; without SMT, @cpu is. */
static __always_inline bool core_idle(s32 cpu)
{
	return cpu_idle(cpu) && (!machine_facts()->smt || siblings_idle(cpu));
}

/* Every thread of @cpu's core is free (Roy v7: is_idle_core()). */
subprog bool core_free(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	if (!cpu_free(cpu, false))
		return false;
	for_below (i, f->nr_sib, MAX_SMT)
		if (!cpu_free(sibling(f, i), false))
			return false;
	return true;
}

/* @util takes less than four fifths of @cpu's capacity (kernel: fits_capacity()). */
static __always_inline bool fits_capacity(u64 util, s32 cpu)
{
	return util * 1280 < (u64)cpu_capacity_now(cpu) * 1024;
}

/*
 * The task fits on @cpu and the CPU's siblings are idle; always true on symmetric machines (kernel:
 * asym_fits_cpu()).
 */
static __always_inline bool asym_fits(const struct wakeup *w, s32 cpu)
{
	return !machine_facts()->asym || (siblings_idle(cpu) && fits_capacity(w->util, cpu));
}

#endif /* ROOST_WAKEUP_H */
