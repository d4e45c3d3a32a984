/* SPDX-License-Identifier: GPL-2.0-only */
/* Dispatch: who runs next. Own queue; the previous task; the queues of others. */
#ifndef ROOST_DISPATCH_H
#define ROOST_DISPATCH_H

#include "run.h"

static __always_inline bool take_own(s32 cpu)
{
	if (!queue_take(cpu))
		return false;
	count(STAT_dispatch_own);
	return true;
}

/* The previous task goes on: its deadline is still the earliest, or nobody else is there. */
static __always_inline void keep(port_task *prev, struct task_state *ts, struct cpu_state *cs, u64 now)
{
	count_for(ts->pol.arm, STAT_dispatch_keep);
	cs->curr_deadline = ts->deadline;
	cs->curr_vruntime = ts->vruntime;
	cs->curr_start = now;
	cs->curr_slice = slice_left(ts);
	cs->dispatched_at = now;
	set_slice(prev, cs->curr_slice);
	if (queue_contended(cs))
		arm_slice_timer(ts->joined - 1, cs, now, now + cs->curr_slice);
}

/*
 * [smt_spread] The tick sent the running task to an idle core. It is left without a slice, and the kernel enqueues it
 * (SCX_OPS_ENQ_LAST). False: it stays, for the core was taken meanwhile, or others wait here, who are helped in another way.
 */
static __always_inline bool leaves_for_core(struct cpu_state *cs, struct task_state *ts)
{
	if (!queue_contended(cs) && core_idle(ts->idle_cpu - 1))
		return true;
	spread_lost(ts);
	return false;
}

/*
 * The previous task is still runnable: does it, or the first in the queue, go next? If a thief takes that one meanwhile, the
 * previous task goes on. False: it has no context.
 */
static __always_inline bool dispatch_prev(s32 cpu, struct cpu_state *cs, port_task *prev)
{
	struct task_state *ts = task_state_of(prev);
	port_task *head = NULL;
	u64 now = cpu_clock();
	bool gives_way;

	if (!ts)
		return false;
	run_charge(cs, ts, now);
	if (!before(ts->vruntime, ts->deadline)) {
		policy_follow(ts);
		new_request(ts, ts->pol.features);
	}
	if (ts->idle_cpu && leaves_for_core(cs, ts))
		return true;
	if (queue_contended(cs))
		head = queue_head(cpu);
	gives_way = head && before(task_key(head), ts->deadline);
	if (!gives_way || !take_own(cpu))
		keep(prev, ts, cs, now);
	return true;
}

/* Another CPU's queue was assigned to this one by its tick. */
static __always_inline bool dispatch_assigned(s32 cpu, struct cpu_state *cs)
{
	u64 now = cpu_clock();
	s32 from = assigned_queue(cs, now);

	if (from == NO_CPU || !take_from(from, cpu, now))
		return false;
	count(cs->serve_balances ? STAT_balance_pull : STAT_rescue);
	return true;
}

/* Woken to help a CPU whose queue waits: that one first, however many others there are. */
static __always_inline bool dispatch_help(s32 cpu, struct cpu_state *cs)
{
	s32 from = cs->help_for - 1;

	cs->help_for = 0;
	if (!steal_from_queue(from, cpu, cpu_clock()))
		return false;
	count(STAT_dispatch_help);
	return true;
}

/*
 * The kernel ends a scheduler under which a task waits 5 s (timeout_ms). A light task among many has a deadline further off
 * than that: every HUNGRY_LOOK_NS who has waited for HUNGRY_NS is fetched, out of its turn, for the least slice. Where there
 * is one there are more: the next look is HUNGRY_NEXT_NS later, by which 300 have their turn in time.
 */
#define HUNGRY_NS      2000000000ULL
#define HUNGRY_LOOK_NS 500000000ULL
#define HUNGRY_NEXT_NS 10000000ULL

subprog bool serve_hungry(s32 cpu, u64 now)
{
	port_task *p;
	bool served = false;

	for_each_queued(p, cpu)
	{
		struct task_state *ts = task_state_of(p);

		if (!ts || (s64)(now - ts->waits_since) < (s64)HUNGRY_NS)
			continue;
		served = queued_move_here(p);
		if (served) {
			count(STAT_hungry);
			/* With all of its request a crowd would get more than it is due. */
			ts->deadline = ts->vruntime;
		}
		break;
	}
	return served;
}

static __always_inline bool dispatch_hungry(s32 cpu, struct cpu_state *cs)
{
	u64 now = cs->dispatched_at;

	if ((s64)(now - cs->looked_at) < (s64)HUNGRY_LOOK_NS)
		return false;
	cs->looked_at = now;
	if (!serve_hungry(cpu, now))
		return false;
	cs->looked_at = now - HUNGRY_LOOK_NS + HUNGRY_NEXT_NS;
	return true;
}

/* Own queue; the previous task; other queues. A CPU that searches already counts as idle: see idle_scan.h. */
static __always_inline void run_dispatch(s32 cpu, port_task *prev)
{
	struct cpu_state *cs = cpu_state(cpu);
	bool asked;
	u64 now;

	if (cs->serve_next && dispatch_assigned(cpu, cs))
		return;
	if (dispatch_hungry(cpu, cs))
		return;
	if (prev && task_runnable(prev) && dispatch_prev(cpu, cs, prev))
		return;
	if (cs->weight && take_own(cpu))
		return;
	unmark_waiting(cpu);
	/* One that is marked may be claimed for a task on its way, though it was woken for nothing. */
	if (!cs->idle_marked)
		plain_claim_clear(cpu, cs, STAT_claim_clear_idle);
	mark_idle(cpu, cs);
	now = cpu_clock();
	asked = cs->help_for;
	if (asked && dispatch_help(cpu, cs))
		return;
	if (anybody_waits() && steal(cpu, now, asked))
		return;
	/* Stealing may have let go of the lock of our queue. */
	if (cs->weight && take_own(cpu))
		return;
	idle_begins(cs, now);
	count(STAT_dispatch_none);
}

#endif /* ROOST_DISPATCH_H */
