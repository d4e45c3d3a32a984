/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sync_local (ours). Problem: the two ends of a pipe on two CPUs cost an idle exit, an interrupt and two context
 * switches per message, where on one CPU they cost one switch.
 * Method: a sync wakeup whose waker runs alone, and which in its last bursts was as short as the wakee, leaves the
 * wakee on the waker's CPU, next in line: the waker is about to sleep.
 * Limits: the waker may have lied. So only a pair that keeps waking each other, and only while both run in short
 * bursts. A waker that stays on is stopped at the end of its slice; until then nobody else can take the wakee.
 */
#ifndef ROOST_SYNC_LOCAL_H
#define ROOST_SYNC_LOCAL_H

#include "wakeup.h"

/* A burst of at most this is short: the cost of an idle exit and an interrupt on both sides. ns. */
#define SYNC_BURST_NS 100000ULL

static __always_inline bool short_burst(const struct task_state *ts)
{
	return ts->burst && ts->burst <= SYNC_BURST_NS;
}

/* @waker: the current task's state; NULL: the idle task, or not ours. */
static __always_inline bool sync_local(const struct task_state *ts, const struct task_state *waker,
				       const struct wakeup *w)
{
	if (!has(w, FEATURE_sync_local) || !w->sync || !w->this_allowed || !waker)
		return false;
	/* Partners: each was the last that the other woke. */
	if (waker->waker.last_wakee != w->pid || ts->waker.last_wakee != w->waker_pid)
		return false;
	return short_burst(ts) && short_burst(waker) && cpu_nr_running(w->this_cpu) == 1;
}

#endif /* ROOST_SYNC_LOCAL_H */
