/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * prev_core (Roy, "prefer the previous CPU" v7). Problem: wake_affine and the search behind it move tasks off a core
 * that is theirs, warm and idle.
 * Method: before anything else, a wakeup keeps the previous CPU if every thread of its core is idle, or runs nothing but a
 * SCHED_IDLE task.
 * Limits: as in the source there is no test of capacity, a SCHED_IDLE wakee is not told from others, and recent_cpu is
 * left as it is. Ours: the CPU has to be allowed.
 */
#ifndef ROOST_PREV_CORE_H
#define ROOST_PREV_CORE_H

#include "wakeup.h"

/* Every thread of the core is free (source: is_idle_core()). */
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

static __always_inline s32 prev_core(const struct wakeup *w)
{
	if (!has(w, FEATURE_prev_core) || w->prev == NO_CPU)
		return NO_CPU;
	return in_idle_core(w->prev) && core_free(w->prev) ? w->prev : NO_CPU;
}

#endif /* ROOST_PREV_CORE_H */
