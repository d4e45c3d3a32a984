/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * delay_migration (Gouicem 2020, "Smove").
 *
 * Problem: a fork or wakeup goes to an idle CPU. A CPU that was idle runs at a low frequency, which
 * takes tens of milliseconds to rise. The waker's own CPU is fast and about to be free: many
 * parents sleep right after the fork.
 *
 * Method: this stage follows the ladder. If the chosen CPU's frequency is at most the threshold of
 * the task's arm, the task is queued beside its waker. It moves only if it has not run there within
 * delay_ns. When it runs, anywhere, the delay ends. It may interrupt its waker, as any wakeup may,
 * and another CPU may steal it, as in the source. Differences from the source: the waker's CPU must
 * be allowed, and if that is idle itself, it runs the task at once.
 *
 * Limits: frequencies are those of the last tick or the last reading. If none is known, nothing is
 * delayed. If the waker keeps running, its wakee waits for the whole delay. exec is not placed:
 * sched_ext has no callback for it.
 *
 * delay_queue.h queues the task, and has the timer and the move. delay_wait.h says when a delay is
 * over.
 */
#ifndef ROOST_DELAY_MIGRATION_H
#define ROOST_DELAY_MIGRATION_H

#include "delay_wait.h"
#include "idle_scan.h"

enum delay_verdict {
	DELAY_NOT,
	DELAY_HERE, /* wait beside the waker */
	DELAY_IDLE, /* run there: the waker's CPU is idle */
};

/*
 * @cpu's frequency in the unit of the threshold; 0: unknown or too old. A CPU that has not ticked
 * yet counts as slow, as in the source.
 */
static __always_inline u32 cpu_freq(s32 cpu, u32 stale_ms)
{
	u64 seen;
	u32 age;

	if (!stale_ms)
		return cpu_state(cpu)->ticked ? CAPACITY_SCALE - cpu_state(cpu)->slow : 1;
	seen = cpu_freq_read(cpu);
	if (!(u32)seen)
		return 0;
	age = clock_ms() - (u32)(seen >> 32);
	return age <= stale_ms ? (u32)seen : 0;
}

/* The frequency of @cpu is low for tasks of @arm. */
static __always_inline bool low_freq(u32 arm, s32 cpu)
{
	struct freq_rule rule = freq_rule(arm, cpu);
	u32 freq;

	if (!rule.low)
		return false;
	freq = cpu_freq(cpu, rule.stale_ms);
	if (freq && freq <= rule.low)
		return true;
	count_for(arm, freq ? STAT_delay_fast : STAT_delay_unknown);
	return false;
}

/* End the claim on @cpu made at @stamp, if any: its task goes elsewhere. */
static __always_inline void delay_unclaim(u32 arm, s32 cpu, u64 stamp)
{
	if (claim_stamp(&cpu_state(cpu)->claim) && claim_end(cpu, stamp))
		count_for(arm, STAT_claim_release);
}

/* May a task placed on @cpu be delayed beside its waker? */
static __always_inline bool delay_may(const struct wakeup *w, s32 cpu)
{
	return has(w, FEATURE_delay_migration) && cpu != w->last_cpu && cpu != w->this_cpu &&
	       w->this_allowed;
}

/* Does the task, placed on @cpu, wait on @here? @now: when it was placed. */
subprog u32 delay_decide(struct task_state *ts nonnull, s32 here, s32 cpu, u64 now)
{
	u32 features = ts->pol.features, arm = ts->pol.arm;

	if (!low_freq(arm, cpu))
		return DELAY_NOT;
	delay_unclaim(arm, cpu, now);
	if (cpu_idle(here) && (!(features & FEATURE_claim) ||
			       claim_take(here, features, arm, now, ts->pol.claim_ttl_ns)))
		return DELAY_IDLE;
	ts->delay_began = now;
	ts->delay_cpu = cpu + 1;
	ts->delay_at = now + ts->pol.delay_ns;
	return DELAY_HERE;
}

/* The last stage of a placement. */
static __always_inline struct placement delay_stage(struct task_state *ts, const struct wakeup *w,
						    struct placement at)
{
	u32 verdict;

	if (at.how == PLACE_NEXT || !delay_may(w, at.cpu))
		return at;
	verdict = delay_decide(ts, w->this_cpu, at.cpu, w->now);
	if (verdict == DELAY_NOT)
		return at;
	at.cpu = w->this_cpu;
	at.how = verdict == DELAY_IDLE ? PLACE_IDLE : PLACE_BUSY;
	if (verdict == DELAY_IDLE)
		count_wakeup(w, STAT_delay_idle_here);
	else
		count_wakeup(w, w->fork ? STAT_delay_fork : STAT_delay_wake);
	return at;
}

/* ---- how a delay ends ---- */

/* End the delay and return when it began; 0: it was over already. */
static __always_inline u64 delay_take(struct task_state *ts)
{
	u64 began = ts->delay_began;

	return atomic_swap(&ts->delay_at, 0) ? began : 0;
}

/*
 * The task runs on @cpu, or is queued again (NO_CPU). Called before it joins that CPU's queue.
 * Returns what delay_take() does.
 */
static __always_inline u64 delay_runs(struct task_state *ts, s32 cpu, u64 now)
{
	u64 at = ts->delay_at, began = delay_take(ts);

	if (!began)
		return 0;
	if (cpu == NO_CPU)
		count_for(ts->pol.arm, STAT_delay_dropped);
	else if (ts->on_rq == cpu + 1)
		count_for(ts->pol.arm, STAT_delay_cancel);
	else
		count_for(ts->pol.arm,
			  (s64)(now - at) < 0 ? STAT_delay_stolen : STAT_delay_overdue);
	return began;
}

#endif /* ROOST_DELAY_MIGRATION_H */
