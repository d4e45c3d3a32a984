/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sync_core (Roy, "prefer the previous CPU" v7). Problem: an idle target is taken at once, though its sibling may be busy
 * and the task's own core, or another, is wholly idle.
 * Method: the target is taken as idle only when the waker says that it is about to sleep, and when every thread of the
 * target's core is idle, or runs nothing but a SCHED_IDLE task. Otherwise the search goes on.
 * Limits: a waker's CPU is idle only in an interrupt, and an idle previous CPU is asked before (prev_core) or next; so it mostly
 * means: not the target. The search starts after the target and comes to it last.
 */
#ifndef ROOST_SYNC_CORE_H
#define ROOST_SYNC_CORE_H

#include "prev_core.h"

/* @target is allowed. */
static __always_inline s32 sync_core(const struct wakeup *w, s32 target)
{
	if (!cpu_marked(target) || !asym_fits(w, target))
		return NO_CPU;
	if (w->sync && in_idle_core(target) && core_free(target) && core_take(w, target))
		return target;
	if (cpu_free(target, w->sched_idle))
		count_for(w->arm, STAT_sync_core_passed);
	return NO_CPU;
}

#endif /* ROOST_SYNC_CORE_H */
