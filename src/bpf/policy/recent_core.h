/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recent_core (Roy, "prefer the previous CPU" v7).
 *
 * Problem: the CPU used before the previous one is the last to be tried without a search, and is
 * taken even beside a busy sibling.
 *
 * Method: it is tried before the target, and taken when every thread of its core is idle or runs
 * nothing but a SCHED_IDLE task. Each search makes the previous CPU the recently used one, whatever
 * its answer.
 *
 * Limits: capacity is not tested, as in the source, where the kernel's own rung for this CPU is
 * gone, too.
 */
#ifndef ROOST_RECENT_CORE_H
#define ROOST_RECENT_CORE_H

#include "prev_core.h"

/*
 * The recently used CPU is worth trying: not the previous one, not the target, in the target's LLC,
 * and allowed.
 */
static __always_inline bool recent_usable(port_task *p, const struct wakeup *w, s32 target)
{
	s32 recent = w->recent;

	if (recent == NO_CPU || recent == w->last_cpu || recent == target ||
	    !share_cache(recent, target))
		return false;
	return task_allowed(p, recent);
}

static __always_inline s32 recent_core(port_task *p, const struct wakeup *w, s32 target)
{
	s32 recent = w->recent;

	if (!recent_usable(p, w, target) || !in_idle_core(recent) || !core_free(recent) ||
	    !core_take(w, recent))
		return NO_CPU;
	return recent;
}

#endif /* ROOST_RECENT_CORE_H */
