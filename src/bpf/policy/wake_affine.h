/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wake_affine: is the task pulled towards its waker, or does it stay near its previous CPU? After
 * the kernel's record_wakee(), wake_wide(), wake_affine_idle() and wake_affine_weight()
 * (kernel/sched/fair.c).
 */
#ifndef ROOST_WAKE_AFFINE_H
#define ROOST_WAKE_AFFINE_H

#include "claim.h"

#define FLIP_DECAY_NS 1000000000ULL /* kernel: HZ */

/*
 * In this file @waker is the state of the current task; NULL for the idle task or a task without
 * state.
 */
static __always_inline struct waker_state *waker_of(struct task_state *waker,
						    const struct wakeup *w)
{
	return waker ? &waker->waker : &cpu_state(w->this_cpu)->idle_waker;
}

/*
 * Count how often the waker changes its wakee. A server does so often, a partner in a pipe does
 * not.
 */
static __always_inline void record_wakee(struct task_state *waker, const struct wakeup *w)
{
	struct waker_state *ws = waker_of(waker, w);

	if (w->now - ws->decay_at > FLIP_DECAY_NS) {
		ws->flips >>= 1;
		ws->decay_at = w->now;
	}
	if (ws->last_wakee != w->pid) {
		ws->last_wakee = w->pid;
		ws->flips++;
	}
}

/*
 * Waker and wakee belong to a group of tasks that is larger than the LLC: do not pull all of them
 * there.
 */
static __always_inline bool wake_wide(struct task_state *ts, struct task_state *waker,
				      const struct wakeup *w)
{
	u32 master = waker_of(waker, w)->flips, slave = ts->waker.flips;
	u32 factor = llc_facts(cpu_facts(w->this_cpu)->llc)->nr_cpus;

	if (master < slave) {
		u32 swap = master;

		master = slave;
		slave = swap;
	}
	return slave >= factor && master >= slave * factor;
}

/*
 * The waker's CPU if its load with the task is lower than the previous CPU's without it, in
 * proportion to capacity; else the previous CPU.
 */
static __always_inline s32 wake_affine_weight(struct task_state *ts, struct task_state *waker,
					      const struct wakeup *w)
{
	/* Unsigned until the comparison, so that an overflow wraps. */
	u64 this_load = cpu_load(w->this_cpu, w->now), prev_load = cpu_load(w->last_cpu, w->now);
	u64 load = task_load(ts, w->now);
	u32 pct = share_core(w->this_cpu, w->last_cpu) ? SMT_IMBALANCE_PCT
						       : tunables()->imbalance_pct;

	if (w->sync) {
		u64 current_load = waker ? task_load(waker, w->now) : 0;

		if (current_load > this_load)
			return w->this_cpu;
		this_load -= current_load;
	}
	this_load = (this_load + load) * 100 * cpu_facts(w->last_cpu)->capacity;
	prev_load = (prev_load - load) * (100 + (pct - 100) / 2) * cpu_facts(w->this_cpu)->capacity;
	if (w->sync)
		prev_load++;
	return (s64)this_load < (s64)prev_load ? w->this_cpu : w->last_cpu;
}

/*
 * 1. Woken from an interrupt on an idle CPU that shares the cache: the previous CPU if idle, else
 *    this one.
 * 2. The waker runs alone and is about to sleep: this CPU.
 * 3. [prev_idle] The previous CPU is idle, in any LLC: the previous one.
 * 4. Otherwise by load.
 * [claim] An idle CPU that another wakeup has claimed does not count as idle.
 */
static __always_inline s32 wake_affine(struct task_state *ts, struct task_state *waker,
				       const struct wakeup *w)
{
	s32 target;

	if (idle_unclaimed(w, w->this_cpu) && share_cache(w->this_cpu, w->last_cpu)) {
		if (idle_unclaimed(w, w->last_cpu)) {
			count_wakeup(w, STAT_wa_idle_prev);
			return w->last_cpu;
		}
		count_wakeup(w, STAT_wa_idle_this);
		return w->this_cpu;
	}
	if (w->sync && cpu_nr_running(w->this_cpu) == 1) {
		count_wakeup(w, STAT_wa_sync);
		return w->this_cpu;
	}
	if (has(w, FEATURE_prev_idle) && idle_unclaimed(w, w->last_cpu)) {
		count_wakeup(w, STAT_wa_prev_idle);
		return w->last_cpu;
	}
	target = wake_affine_weight(ts, waker, w);
	if (target == w->this_cpu)
		count_wakeup(w, STAT_wa_weight_this);
	else
		count_wakeup(w, STAT_wa_weight_prev);
	return target;
}

/* The CPU around which to search for an idle one. */
static __always_inline s32 wake_target(struct task_state *ts, struct task_state *waker,
				       const struct wakeup *w)
{
	if (w->prev == NO_CPU) {
		/*
		 * The previous CPU is not allowed. The kernel may choose it all the same, and
		 * corrects that afterwards (select_fallback_rq()).
		 */
		count_wakeup(w, STAT_wa_same);
		return w->this_allowed ? w->this_cpu : w->last_cpu;
	}
	if (wake_wide(ts, waker, w)) {
		count_wakeup(w, STAT_wa_wide);
		return w->last_cpu;
	}
	if (!w->this_allowed || w->this_cpu == w->last_cpu) {
		count_wakeup(w, STAT_wa_same);
		return w->last_cpu;
	}
	return wake_affine(ts, waker, w);
}

#endif /* ROOST_WAKE_AFFINE_H */
