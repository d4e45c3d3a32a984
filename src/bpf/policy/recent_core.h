/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recent_core (Roy, "prefer the previous CPU" v7). Problem: the CPU used before the previous one is asked last of those
 * known by name, and a thread beside a busy sibling will do.
 * Method: it is asked first, before the target, and taken when every thread of its core is idle, or runs nothing but a
 * SCHED_IDLE task. It becomes the previous CPU in every search, whatever comes out.
 * Limits: as prev_core: no test of capacity. In the source's place the kernel's own rung for this CPU is gone.
 */
#ifndef ROOST_RECENT_CORE_H
#define ROOST_RECENT_CORE_H

#include "prev_core.h"

/* The CPU used before the previous one. */
static __always_inline bool recent_usable(port_task *p, const struct wakeup *w, s32 target)
{
	s32 recent = w->recent;

	if (recent == NO_CPU || recent == w->prev_any || recent == target || !share_cache(recent, target))
		return false;
	return task_allowed(p, recent);
}

static __always_inline s32 recent_core(port_task *p, const struct wakeup *w, s32 target)
{
	s32 recent = w->recent;

	if (!recent_usable(p, w, target) || !in_idle_core(recent) || !core_free(recent))
		return NO_CPU;
	return core_suits(w, w->util, recent) && core_take(w, recent) ? recent : NO_CPU;
}

#endif /* ROOST_RECENT_CORE_H */
