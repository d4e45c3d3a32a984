/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sync_local (scx_roost).
 *
 * Problem: the two ends of a pipe on two CPUs cost an idle exit, an interrupt and two context
 * switches per message. On one CPU they cost one switch.
 *
 * Method: a sync wakeup leaves the wakee on the waker's CPU, next in line, because the waker is
 * about to sleep. The waker must run there alone, and both must have had short bursts lately.
 *
 * Limits: the waker may not sleep after all. So this is only for a pair that keeps waking each
 * other, and only while both run in short bursts. A waker that runs on is stopped at the end of its
 * slice. Until then no other CPU can take the wakee.
 */
#ifndef ROOST_SYNC_LOCAL_H
#define ROOST_SYNC_LOCAL_H

#include "wakeup.h"

/* A burst of at most this is short: the cost of an idle exit and an interrupt on both sides. ns */
#define SYNC_BURST_NS 100000ULL

static __always_inline bool short_burst(const struct task_state *ts)
{
	return ts->burst && ts->burst <= SYNC_BURST_NS;
}

/* @waker: the state of the current task; NULL for the idle task or a task without state. */
static __always_inline bool sync_local(const struct task_state *ts, const struct task_state *waker,
				       const struct wakeup *w)
{
	if (!has(w, FEATURE_sync_local) || !w->sync || !w->this_allowed || !waker)
		return false;
	/* Partners: each is the last task that the other woke. */
	if (waker->waker.last_wakee != w->pid || ts->waker.last_wakee != w->waker_pid)
		return false;
	return short_burst(ts) && short_burst(waker) && cpu_nr_running(w->this_cpu) == 1;
}

#endif /* ROOST_SYNC_LOCAL_H */
