/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * prev_core (Roy, "prefer the previous CPU" v7). Problem: wake_affine and the search behind it move tasks off a core
 * that is theirs, warm and idle.
 * Method: before anything else, a wakeup keeps the previous CPU if every thread of its core is idle.
 * Limits: as in the source there is no test of capacity, and recent_cpu is left as it is. Ours: the CPU has to be allowed.
 */
#ifndef ROOST_PREV_CORE_H
#define ROOST_PREV_CORE_H

#include "wakeup.h"

static __always_inline s32 prev_core(const struct wakeup *w)
{
	const volatile struct cpu_facts *f = cpu_facts(w->prev_any);
	/* Without SMT no set of cores is kept. */
	enum cpu_set set = machine_facts()->smt ? SET_IDLE_CORE : SET_IDLE;

	if (!has(w, FEATURE_prev_core) || w->prev == NO_CPU || w->prev == w->this_cpu)
		return NO_CPU;
	return set_has(set, f->llc, f->pos) && core_idle(w->prev) ? w->prev : NO_CPU;
}

#endif /* ROOST_PREV_CORE_H */
