/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An estimate of what a task will use when it runs, and its sum over the runnable tasks of a CPU.
 *
 * Problem: utilisation halves in every 32 ms of sleep. So a task looks small when it wakes, and a
 * CPU whose tasks have just woken looks empty.
 *
 * Method (kernel: util_est_update(), util_est_enqueue(), util_est_dequeue()): when a task goes to
 * sleep, its estimate rises to its utilisation at once, or falls by a quarter of the difference. A
 * task that joins a queue adds its estimate to the CPU's sum. When it leaves, it subtracts the same
 * number, however the estimate has changed since.
 *
 * Limit: a task that never sleeps counts with its estimate as of when it last joined a queue or
 * changed its weight.
 */
#ifndef ROOST_UTIL_EST_H
#define ROOST_UTIL_EST_H

#include "signal.h"

/* Kernel: UTIL_EST_MARGIN. A smaller difference counts as none. */
#define EST_MARGIN (CAPACITY_SCALE / 100)

/*
 * The task sleeps, and its signals are folded. Without a fold since the last time there is nothing
 * new. The estimate does not fall if the CPU is too small for its utilisation, or if the task had
 * to wait for the CPU (kernel: util_est_update()).
 */
static __always_inline void util_est_sleep(struct task_state *ts, s32 cpu)
{
	u32 util = ts->util_avg, more;

	if (ts->est_at == ts->folded_at)
		return;
	ts->est_at = ts->folded_at;
	if (ts->util_est <= util) {
		ts->util_est = util;
		return;
	}
	more = ts->util_est - util;
	if (more < EST_MARGIN || util > cpu_facts(cpu)->capacity ||
	    util + EST_MARGIN < ts->runnable_avg)
		return;
	ts->util_est = (4 * ts->util_est - more) / 4;
}

/*
 * As a part of the biggest CPU, 0..CAPACITY_SCALE (kernel: task_util_est()). util_avg need not be
 * decayed first: after a sleep the estimate is no less than it. A task that never slept has no
 * estimate.
 */
static __always_inline u64 task_util_est(const struct task_state *ts)
{
	return larger(ts->util_est, ts->util_avg);
}

static __always_inline void util_est_join(struct cpu_state *cs, struct task_state *ts)
{
	u64 util = task_util_est(ts);

	ts->on_rq_util = util;
	atomic_add(&cs->util_est, util);
}

static __always_inline void util_est_leave(struct cpu_state *cs, struct task_state *ts)
{
	atomic_add(&cs->util_est, -(u64)ts->on_rq_util);
}

/* The estimate of a task that has not run in our class yet: half of what is left on @cpu. */
subprog u64 first_util_est(s32 cpu, u64 now)
{
	return first_util(cpu, now);
}

#endif /* ROOST_UTIL_EST_H */
