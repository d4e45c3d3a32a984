/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [bias_prev] Prefer the previous CPU to the target.
 *
 * Problem: when a task's previous CPU and the target share a cache, the search treats both as
 * equally warm, but the task's data is on the previous one. The target comes first, so the task
 * migrates.
 *
 * Method: the previous CPU is tried before the target, by its own rung's tests, and not again
 * after. If nothing is idle, it is the answer instead of the target.
 *
 * Limits: only where both share a cache. The search by capacity still ends with the target.
 */
#ifndef ROOST_BIAS_PREV_H
#define ROOST_BIAS_PREV_H

#include "select_idle.h"

/* Try the previous CPU before the target. It may be the target. */
static __always_inline bool bias_first(const struct wakeup *w, s32 target)
{
	return has(w, FEATURE_bias_prev) && prev_usable(w, target);
}

/* Nothing is idle: the answer is the previous CPU, which is not the target. */
static __always_inline bool bias_last(const struct wakeup *w, s32 target)
{
	return bias_first(w, target) && w->prev != target;
}

#endif /* ROOST_BIAS_PREV_H */
