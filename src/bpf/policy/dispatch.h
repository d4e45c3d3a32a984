/* SPDX-License-Identifier: GPL-2.0-only */
/* Dispatch: who runs next. Own queue; the previous task; the queues of others. */
#ifndef ROOST_DISPATCH_H
#define ROOST_DISPATCH_H

#include "run.h"

/*
 * Tasks that were parked wait uncounted, in either queue. Asked before the queues are looked at, so
 * that none that comes meanwhile is missed.
 */
static __always_inline bool unjoined_take(struct cpu_state *cs)
{
	if (!cs->unjoined || !atomic_swap(&cs->unjoined, 0))
		return false;
	cs->old_waits = 1;
	return true;
}

/* The first of a queue of its own runs next; of its other one if a thief was there first. */
static __always_inline bool take_own(s32 cpu, u32 queue)
{
	struct cpu_state *cs = cpu_state(cpu);
	bool unjoined = unjoined_take(cs);

	if (!queue_take(queue) && (!cs->old_waits || !queue_take(other_queue(queue))))
		return false;
	if (unjoined)
		cs->unjoined = 1;
	count(STAT_dispatch_own);
	return true;
}

static __always_inline bool take_first(s32 cpu)
{
	port_task *head;

	return take_own(cpu, cpu_state(cpu)->old_waits ? first_queue(cpu, &head) : young_queue(cpu));
}

/* The previous task goes on: its deadline is still the earliest, or nobody else is there. */
static __always_inline void keep(port_task *prev, struct task_state *ts, struct cpu_state *cs, u64 now)
{
	count_for(ts->pol.arm, STAT_dispatch_keep);
	cs->curr_deadline = ts->deadline;
	cs->curr_vruntime = ts->vruntime;
	cs->curr_start = now;
	cs->curr_slice = turn_ns(cs, ts);
	cs->dispatched_at = now;
	if (cs->budgeted)
		budget_caps(prev, cs, ts);
	set_slice(prev, cs->curr_slice);
	if (queue_contended(cs) || cs->budgeted)
		arm_slice_timer(ts->joined - 1, cs, now, now + cs->curr_slice);
	nohz_runs(prev, ts->joined - 1, cs);
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
 * previous task goes on. False: it has no context, or its group no budget.
 */
static __always_inline bool dispatch_prev(s32 cpu, struct cpu_state *cs, port_task *prev)
{
	struct task_state *ts = task_state_of(prev);
	port_task *head = NULL;
	u64 now = cpu_clock();
	bool gives_way, unjoined;
	u32 queue = 0;

	if (!ts)
		return false;
	run_charge(cs, ts, now);
	if (limits_exist() && !budget_lasts(prev, ts, cpu, now))
		return false;
	if (!before(ts->vruntime, ts->deadline)) {
		policy_follow(ts);
		new_request(ts, ts->pol.features);
	}
	if (ts->idle_cpu && leaves_for_core(cs, ts))
		return true;
	if (queue_contended(cs)) {
		unjoined = unjoined_take(cs);
		queue = first_queue(cpu, &head);
		if (head && unjoined)
			cs->unjoined = 1;
	}
	gives_way = head && before(task_key(head), ts->deadline);
	if (!gives_way || !take_own(cpu, queue))
		keep(prev, ts, cs, now);
	return true;
}

/* Another CPU's queue was assigned to this one by its tick. */
static __always_inline bool dispatch_assigned(s32 cpu, struct cpu_state *cs)
{
	u64 now = cpu_clock();
	s32 from = assigned_queue(cs, now);

	if (from == NO_CPU || !take_from(from, cpu))
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

/* The task of that pid, if it is one of the first of @queue, runs next. */
subprog bool take_pid(u32 queue, u32 pid)
{
	port_task *p;
	bool taken = false;
	u32 looks = 0;

	for_each_queued(p, queue)
	{
		bool found = task_pid(p) == pid;

		if (found)
			taken = queued_move_here(p);
		if (found || ++looks == QUEUE_LOOKS_MAX)
			break;
	}
	return taken;
}

/* Another task gave way to one of this queue (yield_to()). */
static __always_inline bool dispatch_yielded(s32 cpu, struct cpu_state *cs)
{
	u32 pid = cs->yielded_to;

	cs->yielded_to = 0;
	return take_pid(young_queue(cpu), pid) || (cs->old_waits && take_pid(old_queue(cpu), pid));
}

/* The CPU's queues change roles in time; one that is late goes before all others. */
static __always_inline bool dispatch_late(s32 cpu, struct cpu_state *cs)
{
	if (!before(cs->dispatched_at, cs->turn_at))
		turn_over(cpu, cs->dispatched_at);
	return late_turn(cs) && serve_late(cpu);
}

/* Own queue; the previous task; other queues. A CPU that searches already counts as idle: see idle_scan.h. */
static __always_inline void run_dispatch(s32 cpu, port_task *prev)
{
	struct cpu_state *cs = cpu_state(cpu);
	bool asked;
	u64 now;

	if (queue_holds(cs) && dispatch_late(cpu, cs))
		return;
	if (cs->yielded_to && dispatch_yielded(cpu, cs))
		return;
	if (cs->serve_next && dispatch_assigned(cpu, cs))
		return;
	if (prev && task_runnable(prev) && dispatch_prev(cpu, cs, prev))
		return;
	if (queue_holds(cs) && take_first(cpu))
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
	if (queue_holds(cs) && take_first(cpu))
		return;
	idle_begins(cs, now);
	count(STAT_dispatch_none);
}

#endif /* ROOST_DISPATCH_H */
