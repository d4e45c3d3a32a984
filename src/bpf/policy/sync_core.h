/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sync_core (Roy, "prefer the previous CPU" v7).
 *
 * Problem: an idle target is taken at once, though its sibling may be busy and the task's own core,
 * or another, wholly idle.
 *
 * Method: the target counts as idle only on a sync wakeup, and only if every thread of its core is
 * idle or runs nothing but a SCHED_IDLE task. Otherwise the search goes on.
 *
 * Limits: the waker's CPU is idle only in an interrupt. An idle previous CPU is tried as well,
 * before the target (prev_core) or right after it. So in most cases the feature only means that an
 * idle target is passed over. The search starts after the target and comes to it last.
 */
#ifndef ROOST_SYNC_CORE_H
#define ROOST_SYNC_CORE_H

#include "prev_core.h"

/* The caller has checked that @target is allowed. */
static __always_inline s32 sync_core(const struct wakeup *w, s32 target)
{
	if (!cpu_marked(target) || !asym_fits(w, target))
		return NO_CPU;
	if (w->sync && in_idle_core(target) && core_free(target) && core_take(w, target))
		return target;
	if (cpu_free(target, w->sched_idle))
		count_wakeup(w, STAT_sync_core_passed);
	return NO_CPU;
}

#endif /* ROOST_SYNC_CORE_H */
