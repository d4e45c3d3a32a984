/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * prev_core (Roy, "prefer the previous CPU" v7).
 *
 * Problem: wake_affine and the search after it move tasks off their previous core, although it is
 * warm and idle.
 *
 * Method: before wake_affine, a wakeup keeps the previous CPU if every thread of its core is idle
 * or runs nothing but a SCHED_IDLE task.
 *
 * Limits: as in the source, capacity is not tested, a SCHED_IDLE wakee is treated like any other,
 * and recent_cpu is left as it is. prev_core_fits (scx_roost) adds the test of capacity, here and
 * in recent_core. Unlike in the source, the CPU must be allowed.
 */
#ifndef ROOST_PREV_CORE_H
#define ROOST_PREV_CORE_H

#include "claim.h"

/*
 * A task of @util fits on @cpu; always true on symmetric machines. Without prev_core_fits a CPU
 * that is too small is counted, but taken.
 */
static __always_inline bool core_suits(const struct wakeup *w, u64 util, s32 cpu)
{
	if (!machine_facts()->asym || (siblings_idle(cpu) && fits_capacity(util, cpu)))
		return true;
	count_wakeup(w, STAT_prev_core_small);
	return !has(w, FEATURE_prev_core_fits);
}

static __always_inline s32 prev_core(struct task_state *ts, const struct wakeup *w)
{
	u64 util = 0;

	if (!has(w, FEATURE_prev_core) || w->prev == NO_CPU)
		return NO_CPU;
	if (!in_idle_core(w->prev) || !core_free(w->prev))
		return NO_CPU;
	if (machine_facts()->asym)
		util = demand_of(w, ts);
	return core_suits(w, util, w->prev) && core_take(w, w->prev) ? w->prev : NO_CPU;
}

#endif /* ROOST_PREV_CORE_H */
