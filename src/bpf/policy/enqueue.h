/* SPDX-License-Identifier: GPL-2.0-only */
/* ops.enqueue: the task preempts the running one, goes to an idle CPU, or waits its turn. */
#ifndef ROOST_ENQUEUE_H
#define ROOST_ENQUEUE_H

#include "pick.h"
#include "run.h"

/* The task takes the CPU at once, ahead of the local queue. The running task's slice ends. */
static __always_inline void insert_preempting(port_task *p, struct task_state *ts,
					      struct cpu_state *cs, u64 now, u64 enq_flags)
{
	count_for(ts->pol.arm, STAT_preempt_wakeup);
	/*
	 * Until it runs, the next wakeup is compared with this task, not with the one that it
	 * preempts.
	 */
	curr_shows(cs, ts, now);
	protects(cs, ts);
	cs->curr_sched_idle = ts->sched_idle;
	insert_local(p, slice_left(ts), enq_flags | ENQ_PREEMPT);
}

/*
 * The task waits its turn by deadline. So the slice of the running task has to end on time. A
 * pinned task waits here like others: in the local queue two of them that compute would starve the
 * rest of the CPU's tasks, because dispatch runs only when that queue is empty.
 */
static __always_inline void insert_waiting(port_task *p, struct task_state *ts,
					   struct cpu_state *cs, s32 cpu, u64 now, u64 enq_flags)
{
	bool taken;

	if (task_pinned(p))
		count_for(ts->pol.arm, STAT_enq_pinned);
	else
		mark_waiting(cpu);
	count_for(ts->pol.arm, STAT_enq_queued);
	insert_queued(p, queue_for(cpu, ts, now), ts->deadline - ts->vruntime, ts->deadline,
		      enq_flags);
	/*
	 * Before Linux 7.1 a task for an idle CPU waits here too, and no callback reports that a
	 * real-time task came first. The timer looks after it.
	 */
	if (cs->curr_pid) {
		if (cs->curr_rules & FAIR_HRTICK)
			cs->curr_untimed = 0;
		if (timer_ends_slice(cs))
			ensure_slice_timer(cpu, cs, now, cs->curr_start + cs->curr_slice);
		return;
	}
	taken = cpu_taken(cpu);
	/* The first task in an idle CPU's queue: others leave it time to dispatch (serve.h). */
	if (!taken && cs->weight == ts->on_rq_weight)
		cs->dispatched_at = now;
	if (!ENQ_IMMED || taken)
		ensure_slice_timer(cpu, cs, now, now + TAKEN_NS);
}

/*
 * The tick chose an idle core for the running task (tick_push()), and its CPU found nothing else to
 * run (ENQ_LAST). Enqueue uses another CPU's local queue only here. False: no core was chosen, or
 * it is no longer available.
 */
static __always_inline bool insert_pushed(port_task *p, struct task_state *ts, u64 now,
					  u64 enq_flags)
{
	s32 to = ts->idle_cpu - 1;

	if (to == NO_CPU)
		return false;
	if (task_pinned(p) || !task_allowed(p, to) || !core_idle(to) ||
	    (limits_exist() && must_park(p, ts, now))) {
		push_lost(ts);
		return false;
	}
	count_for(ts->pol.arm, machine_facts()->asym ? STAT_misfit : STAT_spread_run);
	ts->pushed = 1;
	insert_on(p, to, slice_left(ts), enq_flags | ENQ_IMMED);
	return true;
}

/* One that waits is the pick, not the one that joins. */
static __always_inline bool another_is_pick(s32 cpu, const struct task_state *ts, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 until = eligible_now(cs, ts, now);
	port_task *head = first_waiting(cpu);

	return head && before(task_key(head), ts->deadline) &&
	       (queued_eligible(head, until) || waits_eligible(cpu, until, ts->deadline));
}

/*
 * It runs next, whichever task is the pick (kernel: set_short_buddy()). By our rules: a task that
 * asks for little, before others that compute.
 */
static __always_inline bool short_buddy(const struct cpu_state *cs, const struct task_state *ts)
{
	u32 features = ts->pol.features;

	if (!(ts->pol.rules & FAIR_PARITY))
		return asks_little(ts, features) && !cs->curr_light;
	return ts->pol.rules & FAIR_INELIGIBLE && request_ns(ts, features) < cs->curr_request;
}

/* kernel: wakeup_preempt_fair(), where only the pick preempts */
static __always_inline bool wins_cpu(s32 cpu, struct task_state *ts, u64 now, u64 enq_flags)
{
	struct cpu_state *cs = cpu_state(cpu);
	bool tested = enq_flags & ENQ_WAKEUP || ts->pol.rules & FAIR_FORK;
	enum preempt verdict;

	/* A forked or moved task preempts only a SCHED_IDLE task. */
	if (!tested && !cs->curr_sched_idle)
		return false;
	verdict = preempts(cs, ts, ts->pol.features, now);
	if (verdict == PREEMPT_LATER)
		count_for(ts->pol.arm, STAT_preempt_protected);
	if (verdict != PREEMPT_NOW)
		return false;
	if (cs->curr_sched_idle || short_buddy(cs, ts) || !another_is_pick(cpu, ts, now))
		return true;
	if (ts->pol.rules & FAIR_PARITY)
		protection_clips(cs, ts, curr_vruntime_now(cs, now), eligible_now(cs, ts, now),
				 request_ns(ts, ts->pol.features));
	else
		cs->curr_slice = waited_since(cs->curr_start, now); /* the pick's turn */
	return false;
}

/*
 * Park the task, if its group has used up its CPU limit. One that was parked within task_returns()
 * and may not stay on its CPU leaves it first: the caller that set its mask waits (kernel:
 * affine_move_task()).
 */
subprog bool enqueue_parks(port_task *p trusted, struct task_state *ts nonnull, u64 now,
			   u64 enq_flags)
{
	bool was_parked = ts->parked_in;

	park_ends(ts);
	if (!must_park(p, ts, now))
		return false;
	if (was_parked && held_from_mask(p)) {
		ts->returning = 0;
		return false;
	}
	if (runs_on(p, ts))
		return false;
	placed_nowhere(ts);
	delay_ends(ts, NO_CPU, now);
	park_task(p, ts, now, enq_flags);
	return true;
}

static __always_inline void enqueue_task(port_task *p, struct task_state *ts, u64 now,
					 u64 enq_flags)
{
	s32 cpu = task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);
	bool lost_core;

	if ((enq_flags & ENQ_LAST) && insert_pushed(p, ts, now, enq_flags))
		return;
	wait_begins(ts, now);
	if (enq_flags & ENQ_REENQ)
		count_for(ts->pol.arm, STAT_enq_back);
	/* The task was queued and is queued again, for example after a change of its affinity. */
	if (ts->on_rq)
		delay_ends(ts, NO_CPU, now);
	/*
	 * A task that select_cpu has not seen takes its arm and policy here. One that comes back
	 * (ENQ_REENQ) does not: its wakeup is under way, or ended a moment ago. Since Linux 7.1 the
	 * kernel also hands back a task that it put on an idle CPU when a task of a higher class
	 * preempts it there.
	 */
	if (!(enq_flags & ENQ_REENQ) && (!enq_placed(enq_flags) || task_pinned(p))) {
		/*
		 * A wakeup that another CPU carries out loses the flag that select_cpu was called
		 * (kernel: sched_ttwu_pending()). So a placement on this CPU is kept.
		 */
		if (ts->idle_cpu != cpu + 1)
			placed_nowhere(ts);
		arm_follow(p, ts);
		policy_follow(ts);
		if ((enq_flags & ENQ_WAKEUP) && !ts->woken_at) {
			count_for(ts->pol.arm, STAT_enq_unplaced);
			ts->woken_at = now;
		}
	}
	delayed_ends(ts, now);
	if (limits_exist() && enqueue_parks(p, ts, now, enq_flags))
		return;
	/* A tick sent the task here from another CPU, and the idle core was taken meanwhile. */
	lost_core = ts->idle_cpu == cpu + 1 && ts->runnable_since && ts->on_rq != cpu + 1;
	run_join(ts, cpu, now, ARRIVAL_OTHER);
	if (!before(ts->vruntime, ts->deadline))
		new_request(ts, ts->pol.features);
	if (wins_cpu(cpu, ts, now, enq_flags)) {
		insert_preempting(p, ts, cs, now, enq_flags);
	} else if (overdue(ts, now) && !cpu_taken(cpu) && !local_length(cpu)) {
		/*
		 * One at a time: while the local queue holds tasks, dispatch does not run, and
		 * turns do not change.
		 */
		count(STAT_starved);
		insert_preempting(p, ts, cs, now, enq_flags);
	} else if (pcpu_kthread(p) && (enq_flags & ENQ_WAKEUP)) {
		/*
		 * At the end of a slice it waits like others. Otherwise two of them would take
		 * turns in the local queue, which would never be empty.
		 */
		count_for(ts->pol.arm, STAT_enq_kthread);
		insert_local(p, slice_left(ts), enq_flags);
		if (cs->curr_pid)
			ensure_slice_timer(cpu, cs, now, cs->curr_start + cs->curr_slice);
	} else if (ENQ_IMMED && !(enq_flags & ENQ_REENQ) && cs->weight == ts->weight &&
		   cpu_curr_idle(cpu)) {
		count_for(ts->pol.arm, STAT_enq_idle);
		insert_local(p, slice_left(ts), enq_flags | ENQ_IMMED);
	} else {
		insert_waiting(p, ts, cs, cpu, now, enq_flags);
		if (cs->curr_pid && protection_over(cs, now))
			kick_cpu(cpu, KICK_PREEMPT);
		if (ts->delay_at)
			ensure_delay_timer(cpu, cs, now, ts->delay_at);
		/*
		 * The queue holds the task only after this callback, so a helper is searched for
		 * the task itself.
		 */
		if (lost_core && !task_pinned(p))
			send_help(idle_helper(p, cpu, now), cpu);
	}
}

static __always_inline void run_enqueue(port_task *p, u64 enq_flags)
{
	struct task_state *ts = task_state_of(p);

	know_cpu();
	/*
	 * There is nothing else to run, so the CPU goes idle. Kick it, so that it looks for work:
	 * for this task too, if it stays in the CPU's queue.
	 */
	if (enq_flags & ENQ_LAST)
		kick_cpu(task_cpu(p), 0);
	if (ts)
		enqueue_task(p, ts, cpu_clock(), enq_flags);
	else
		insert_local(p, machine_arm()->task.slice_ns, enq_flags);
}

#endif /* ROOST_ENQUEUE_H */
