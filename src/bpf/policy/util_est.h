/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task will use once it runs, and the sum of that over the tasks that are runnable on a CPU.
 *
 * Problem: utilisation halves in every 32 ms of sleep, so that a task looks small when it wakes, and a CPU whose tasks just
 * woke looks empty.
 * Method (kernel: util_est_update(), util_est_enqueue(), util_est_dequeue()): when it goes to sleep a task's estimate goes up
 * to its utilisation at once, and down by a quarter of the difference. A CPU's sum gains the estimate of who joins its queue;
 * who leaves takes away the same number, whatever has become of the estimate since.
 * Limit: a task that never sleeps is counted with what it was thought to use when it last joined a queue or changed its weight.
 */
#ifndef ROOST_UTIL_EST_H
#define ROOST_UTIL_EST_H

#include "signal.h"

/* Kernel: UTIL_EST_MARGIN. Closer than this is the same. */
#define EST_MARGIN (CAPACITY_SCALE / 100)

/* The larger, without a branch: 6.18's verifier follows each of many. */
static __always_inline u64 larger(u32 a, u32 b)
{
	s64 more = (s64)a - b;

	return a - (more & (more >> 63));
}

/*
 * The task sleeps, its signals are folded. What was not folded since the last time says nothing new. The estimate stays
 * also where the CPU is too small to tell, and where the task had to wait for it (kernel: util_est_update()).
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
	if (more < EST_MARGIN || util > cpu_facts(cpu)->capacity || util + EST_MARGIN < ts->runnable_avg)
		return;
	ts->util_est = (4 * ts->util_est - more) / 4;
}

/*
 * As the part of the biggest CPU, 0..CAPACITY_SCALE (kernel: task_util_est()). Who has slept has an estimate that is no less
 * than its utilisation, decayed or not; who has not has none.
 */
static __always_inline u64 task_util_est(const struct task_state *ts)
{
	return larger(ts->util_est, ts->util_avg);
}

static __always_inline void util_est_join(struct cpu_state *cs, struct task_state *ts)
{
	u64 util = task_util_est(ts);

	ts->joined_util = util;
	atomic_add(&cs->util_est, util);
}

static __always_inline void util_est_leave(struct cpu_state *cs, struct task_state *ts)
{
	atomic_add(&cs->util_est, -(u64)ts->joined_util);
}

/* Of a task that never ran here, which is thought to use half of what @cpu has left. */
subprog u64 first_util_est(s32 cpu, u64 now)
{
	return first_util(cpu, now);
}

#endif /* ROOST_UTIL_EST_H */
