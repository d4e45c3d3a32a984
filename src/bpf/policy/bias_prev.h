/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [bias_prev] Rather the previous CPU than the target.
 *
 * Problem: when a task's previous CPU and the target share a cache, both are equally warm to the search, but not to the task,
 * and the target comes first: it migrates.
 * Method: the previous CPU is asked before the target, by the same tests, and not again after it; and when nothing idle is
 * found it is the answer in place of the target.
 * Limits: only where both share a cache. Not at the end of the search by capacity, which has an end of its own.
 */
#ifndef ROOST_BIAS_PREV_H
#define ROOST_BIAS_PREV_H

#include "select_idle.h"

/* Before the target: the previous CPU, which may be the target. */
static __always_inline bool bias_first(const struct wakeup *w, s32 target)
{
	return has(w, FEATURE_bias_prev) && prev_usable(w, target);
}

/* Nothing is idle: the previous CPU, where that is another than the target. */
static __always_inline bool bias_last(const struct wakeup *w, s32 target)
{
	return bias_first(w, target) && w->prev != target;
}

#endif /* ROOST_BIAS_PREV_H */
