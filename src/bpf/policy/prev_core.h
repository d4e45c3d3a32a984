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
 * Limits: as in the source, capacity is not tested (a CPU that is too small is counted), a
 * SCHED_IDLE wakee is treated like any other, and recent_cpu is left as it is. Other than there,
 * the CPU must be allowed.
 */
#ifndef ROOST_PREV_CORE_H
#define ROOST_PREV_CORE_H

#include "claim.h"

/* Count @cpu if it is too small for a task of @util. Only on a machine of unequal CPUs. */
static __always_inline void count_small(const struct wakeup *w, u64 util, s32 cpu)
{
	if (!siblings_idle(cpu) || !fits_capacity(util, cpu))
		count_wakeup(w, STAT_prev_core_small);
}

static __always_inline s32 prev_core(struct task_state *ts, const struct wakeup *w)
{
	if (!has(w, FEATURE_prev_core) || w->prev == NO_CPU)
		return NO_CPU;
	if (!in_idle_core(w->prev) || !core_free(w->prev) || !core_take(w, w->prev))
		return NO_CPU;
	if (machine_facts()->asym)
		count_small(w, demand_of(w, ts), w->prev);
	return w->prev;
}

#endif /* ROOST_PREV_CORE_H */
