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
 * Limits: as in the source, a SCHED_IDLE wakee is treated like any other, and recent_cpu is left as
 * it is. Other than there, the CPU must be allowed, and of unequal CPUs no bigger core may be
 * vacant (vacant.h): a task would else stay on a small CPU beside it.
 */
#ifndef ROOST_PREV_CORE_H
#define ROOST_PREV_CORE_H

#include "capacity.h"

/* On a machine of unequal CPUs: no vacant core that the task may use is bigger than @cpu's. */
static __always_inline bool biggest_vacant(port_task *p, const struct task_state *ts,
					   struct wakeup *w, s32 cpu)
{
	if (!machine_facts()->asym || cpu_facts(cpu)->capacity == CAPACITY_SCALE)
		return true;
	w->util = 0; /* any of them is better, however big the task */
	return choose_in_machine(p, w, cpu, greater_capacity(cpu),
				 vacant_for_sleeper(ts, w->now)) == NO_CPU;
}

static __always_inline s32 prev_core(port_task *p, const struct task_state *ts, struct wakeup *w)
{
	if (!has(w, FEATURE_prev_core) || w->prev == NO_CPU)
		return NO_CPU;
	if (!in_idle_core(w->prev) || !core_free(w->prev) || !biggest_vacant(p, ts, w, w->prev) ||
	    !core_take(w, w->prev))
		return NO_CPU;
	return w->prev;
}

#endif /* ROOST_PREV_CORE_H */
