/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ops.dispatch: choose the next task: the previous one, one of the CPU's own queues, or another
 * CPU's.
 */
#ifndef ROOST_DISPATCH_H
#define ROOST_DISPATCH_H

#include "pick.h"
#include "run.h"
#include "serve.h"

/*
 * Released tasks may wait uncounted, in either queue (parking.h). The mark is cleared before the
 * queues are read, so that no task that comes meanwhile is missed.
 */
static __always_inline bool uncounted_take(struct cpu_state *cs)
{
	if (!cs->uncounted || !atomic_swap(&cs->uncounted, 0))
		return false;
	cs->old_waits = 1;
	return true;
}

/*
 * Run the first task of @queue, one of @cpu's own, next. If thieves have emptied it, run that of
 * the other queue.
 */
static __always_inline bool take_own(struct cpu_state *cs, u32 queue)
{
	if (!queue_take(queue) && (!cs->old_waits || !queue_take(other_queue(queue))))
		return false;
	count(STAT_dispatch_own);
	return true;
}

/* The CPU is free: the pick of its queues runs next. */
static __always_inline bool take_first(s32 cpu)
{
	struct cpu_state *cs = cpu_state(cpu);
	bool uncounted = uncounted_take(cs);
	port_task *head;
	u32 queue = first_queue(cpu, &head);

	if (cs->any_delayed)
		delayed_expire(cs, !head);
	if (uncounted && head)
		cs->uncounted = 1;
	if (head && !queued_eligible(head, eligible_until(cs)) &&
	    pass_over(cpu, queue, no_limit(cs)))
		return true;
	return take_own(cs, queue);
}

/* The previous task goes on: it is still the pick. */
static __always_inline void keep(port_task *prev, struct task_state *ts, struct cpu_state *cs,
				 u64 now)
{
	count_for(ts->pol.arm, STAT_dispatch_keep);
	curr_shows(cs, ts, now);
	cs->curr_slice = turn_ns(cs, ts);
	/* The kernel starts its timer for a switch and for a task that joins, not here. */
	cs->curr_untimed = tick_may_end(cs, ts);
	cs->dispatched_at = now;
	if (cs->budgeted)
		budget_caps(prev, cs, ts);
	set_slice(prev, cs->curr_slice);
	if (timer_ends_slice(cs))
		ensure_slice_timer(ts->on_rq - 1, cs, now, now + cs->curr_slice);
	nohz_runs(prev, ts->on_rq - 1, cs);
}

/*
 * The tick chose an idle core for the running task (tick_push()). True: it gets no slice here, so
 * the kernel enqueues it (SCX_OPS_ENQ_LAST). False: it stays. Either the core is taken, or other
 * tasks wait here, and these get help in another way.
 */
static __always_inline bool leaves_for_core(struct cpu_state *cs, struct task_state *ts)
{
	if (!queue_contended(cs) && core_idle(ts->idle_cpu - 1))
		return true;
	push_lost(ts);
	return false;
}

/*
 * Run another task than the previous one next, if that is the pick. @head: the first of @queue,
 * which has the earliest deadline of those that wait.
 */
static __always_inline bool gives_way(s32 cpu, struct cpu_state *cs, const struct task_state *ts,
				      u32 queue, port_task *head)
{
	u64 until = eligible_until(cs);
	bool ahead = before(until, ts->vruntime);
	bool earlier = before(task_key(head), ts->deadline);

	if (ts->pol.rules & FAIR_PARITY && !ahead && before(ts->vruntime, cs->curr_vprot))
		return false;
	if (queued_eligible(head, until))
		return (ahead || earlier) && take_own(cs, queue);
	if ((ahead || earlier) && pass_over(cpu, queue, ahead ? no_limit(cs) : ts->deadline))
		return true;
	return ahead && earlier && take_own(cs, queue);
}

/*
 * The previous task is still runnable: does it run next, or one that waits? If a thief takes that
 * one meanwhile, the previous task goes on. False: it has no state, or its group has no budget.
 */
static __always_inline bool dispatch_prev(s32 cpu, struct cpu_state *cs, port_task *prev)
{
	struct task_state *ts = task_state_of(prev);
	port_task *head = NULL;
	u64 now = cpu_clock();
	bool uncounted;
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
	if (cs->any_delayed)
		delayed_expire(cs, false);
	if (ts->idle_cpu && leaves_for_core(cs, ts))
		return true;
	if (queue_contended(cs)) {
		uncounted = uncounted_take(cs);
		queue = first_queue(cpu, &head);
		if (head && uncounted)
			cs->uncounted = 1;
	}
	if (!head || !gives_way(cpu, cs, ts, queue, head))
		keep(prev, ts, cs, now);
	return true;
}

/*
 * This CPU was kicked to help another one: serve that one's queue first, however many others wait.
 */
static __always_inline bool dispatch_help(s32 cpu, struct cpu_state *cs)
{
	s32 from = cs->help_for - 1;

	cs->help_for = 0;
	if (!steal_from_queue(from, cpu, cpu_clock()))
		return false;
	count(STAT_dispatch_help);
	return true;
}

/* Run the task with that pid next, if it is one of the first of @queue. */
subprog bool take_pid(u32 queue, u32 pid)
{
	port_task *p;
	bool taken = false;
	u32 looks = from_zero;

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

/* Another task has yielded to a task in one of this CPU's queues (yield_to()). */
static __always_inline bool dispatch_yielded(s32 cpu, struct cpu_state *cs)
{
	u32 pid = cs->yielded_to;

	cs->yielded_to = 0;
	return take_pid(young_queue(cpu), pid) || (cs->old_waits && take_pid(old_queue(cpu), pid));
}

/* Change the roles of the CPU's queues in time. A late queue is served before all others. */
static __always_inline bool dispatch_late(s32 cpu, struct cpu_state *cs)
{
	if (!before(cs->dispatched_at, cs->turn_at))
		turn_over(cpu, cs->dispatched_at);
	return late_turn(cs) && serve_late(cpu);
}

/*
 * The previous task or one of the own queues, whichever is due; then other queues. A CPU that
 * searches counts as idle already (idle_scan.h).
 */
static __always_inline void run_dispatch(s32 cpu, port_task *prev)
{
	struct cpu_state *cs = cpu_state(cpu);
	bool asked, prev_waits;
	u64 now;

	know_cpu();
	if (queue_holds(cs) && dispatch_late(cpu, cs))
		return;
	if (cs->yielded_to && dispatch_yielded(cpu, cs))
		return;
	prev_waits = prev && task_runnable(prev);
	if (cs->assigned_cpu && dispatch_assigned(cpu, cs, prev_waits || queue_holds(cs)))
		return;
	if (prev_waits && dispatch_prev(cpu, cs, prev))
		return;
	if (queue_holds(cs) && take_first(cpu))
		return;
	unmark_waiting(cpu);
	/*
	 * A CPU that is marked already was woken for nothing. Its claim may be for a task that is
	 * still on its way.
	 */
	if (!cs->idle_marked)
		plain_claim_clear(cpu, cs, STAT_claim_clear_idle);
	mark_idle(cpu, cs);
	now = cpu_clock();
	asked = cs->help_for;
	if (asked && dispatch_help(cpu, cs))
		return;
	if (anybody_waits() && steal(cpu, now, asked))
		return;
	/* Stealing may have dropped the lock of this CPU's run queue, and tasks may have come. */
	if (queue_holds(cs) && take_first(cpu))
		return;
	idle_begins(cs, now);
	count(STAT_dispatch_none);
}

#endif /* ROOST_DISPATCH_H */
