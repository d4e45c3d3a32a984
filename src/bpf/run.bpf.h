/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task's way through a queue: enqueue, dispatch, running, stopping. The bookkeeping hangs on what the
 * task context remembers (joined, started), not on the order of callbacks: a task that exits or cannot migrate may
 * skip enqueue, bypass mode skips all of them, and one callback too many changes nothing.
 */
#ifndef ROOST_RUN_BPF_H
#define ROOST_RUN_BPF_H

#include "arm.bpf.h"
#include "policy/claim.h"
#include "policy/steal.h"
#include "delay.bpf.h"

/* ---- joining ---- */

/*
 * @cpu's queue counts the task, which was runnable elsewhere (@moved: how it came) or arrives. Called by enqueue and by running,
 * whichever comes first: a task inserted straight from select_cpu is not enqueued, and a stolen one comes from another queue. A
 * callback of its own for what becomes runnable would cost more than this test in two places.
 */
static __always_inline void run_join(struct task_state *ts, s32 cpu, u64 now, enum arrival moved)
{
	bool is_new = !ts->load_cpu;

	if (ts->joined == cpu + 1)
		return;
	if (ts->runnable_since && ts->sent)
		moved = ARRIVAL_OTHER;
	idle_ends(cpu_state(cpu), now, ts->runnable_since ? moved : is_new ? ARRIVAL_FORK : ARRIVAL_WAKEUP);
	if (ts->runnable_since) {
		ts->sent = 0;
		queue_move(cpu, ts, now);
		load_follows(ts, cpu, now);
		return;
	}
	ts->runnable_since = now;
	cgroup_enter(ts);
	load_follows(ts, cpu, now);
	queue_join(cpu, ts, now);
	if (is_new)
		first_request(ts, ts->pol.features);
	else
		new_request(ts, ts->pol.features);
}

/* ---- enqueue ---- */

/* The task takes the CPU at once: ahead of the local queue, the running task's slice is cut. */
static __always_inline void insert_preempting(struct task_struct *p, struct task_state *ts, struct cpu_state *cs,
					      u64 now, u64 enq_flags)
{
	count_for(ts->pol.arm, STAT_preempt_wakeup);
	/* Until it runs, the next wakeup is compared with this task and not with the one that gives way. */
	cs->curr_deadline = ts->deadline;
	cs->curr_vruntime = ts->vruntime;
	cs->curr_start = now;
	cs->curr_sched_idle = ts->sched_idle;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_left(ts), enq_flags | SCX_ENQ_PREEMPT);
}

/* The task waits its turn by deadline. Somebody waits now: the running slice has to end on time. */
static __always_inline void insert_waiting(struct task_struct *p, struct task_state *ts, struct cpu_state *cs, s32 cpu,
					   u64 now, u64 enq_flags)
{
	if (task_pinned(p))
		count_for(ts->pol.arm, STAT_enq_pinned);
	else if (!delay_keeps(ts, now))
		mark_waiting(cpu);
	count_for(ts->pol.arm, STAT_enq_queued);
	ts->waits_since = now;
	scx_bpf_dsq_insert_vtime(p, cpu, slice_left(ts), ts->deadline, enq_flags);
	/* Before Linux 7.1 who goes to an idle CPU waits here too, and nothing tells if a real-time task comes first. */
	if (cs->curr_pid)
		arm_slice_timer(cpu, cs, now, cs->curr_start + cs->curr_slice);
	else if (!SCX_ENQ_IMMED || cpu_taken(cpu))
		arm_slice_timer(cpu, cs, now, now + TAKEN_NS);
}

/* The same beside its waker, until its time comes. */
static __always_inline void insert_delayed(struct task_struct *p, struct task_state *ts, struct cpu_state *cs, s32 cpu,
					   u64 now, u64 enq_flags)
{
	delay_begins(cs, ts->delay_at);
	insert_waiting(p, ts, cs, cpu, now, enq_flags);
	arm_delay_timer(cpu, cs, now, ts->delay_at);
}

/*
 * [smt_spread] The running task was told to leave for an idle core (tick), and its CPU found nothing else to run (SCX_ENQ_LAST).
 * The only way from here to another CPU's local queue. False: the core is not to be had any more.
 */
static __always_inline bool insert_spread(struct task_struct *p, struct task_state *ts, u64 enq_flags)
{
	s32 to = ts->idle_cpu - 1;

	if (to == NO_CPU)
		return false;
	if (task_pinned(p) || !task_allowed(p, to) || !core_idle(to)) {
		count_for(ts->pol.arm, STAT_spread_lost);
		placed_nowhere(ts);
		return false;
	}
	count_for(ts->pol.arm, STAT_spread_run);
	ts->sent = 1;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | to, slice_left(ts), enq_flags | SCX_ENQ_IMMED);
	return true;
}

static __always_inline bool wins_cpu(struct task_state *ts, struct cpu_state *cs, u64 now, u64 enq_flags)
{
	enum preempt verdict;

	/* What is forked or moved interrupts nobody but a SCHED_IDLE task. */
	if (!(enq_flags & SCX_ENQ_WAKEUP) && !cs->curr_sched_idle)
		return false;
	verdict = preempts(cs, ts, ts->pol.features, now);
	if (verdict == PREEMPT_LATER)
		count_for(ts->pol.arm, STAT_preempt_protected);
	return verdict == PREEMPT_NOW;
}

static __always_inline void run_enqueue(struct task_struct *p, struct task_state *ts, u64 now, u64 enq_flags)
{
	s32 cpu = task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);
	bool lost_core;

	if ((enq_flags & SCX_ENQ_LAST) && insert_spread(p, ts, enq_flags))
		return;
	if (enq_flags & SCX_ENQ_REENQ)
		count_for(ts->pol.arm, STAT_enq_back);
	/* It was queued, and is again: as after a change of its affinity. */
	if (ts->joined)
		delay_ends(ts, NO_CPU, now);
	/*
	 * Else select_cpu has done it. One that comes back is in the middle of its wakeup, or was so lately: since Linux 7.1 the
	 * kernel hands back also who was put on an idle CPU and is interrupted by a task of a higher class while it runs.
	 */
	if (!(enq_flags & SCX_ENQ_REENQ) && (!__COMPAT_is_enq_cpu_selected(enq_flags) || task_pinned(p))) {
		/* A wakeup that another CPU is told to do has lost the mark that select_cpu was asked (kernel: sched_ttwu_pending()). */
		if (ts->idle_cpu != cpu + 1)
			placed_nowhere(ts);
		arm_follow(p, ts);
		policy_follow(ts);
		if ((enq_flags & SCX_ENQ_WAKEUP) && !ts->woken_at) {
			count_for(ts->pol.arm, STAT_enq_unplaced);
			ts->woken_at = now;
		}
	}
	/* [smt_spread] It ran elsewhere, and the idle core to which it was sent is taken. */
	lost_core = ts->idle_cpu == cpu + 1 && ts->joined && ts->joined != cpu + 1;
	run_join(ts, cpu, now, ARRIVAL_OTHER);
	if (!before(ts->vruntime, ts->deadline))
		new_request(ts, ts->pol.features);
	if (ts->delay_at) {
		insert_delayed(p, ts, cs, cpu, now, enq_flags);
	} else if (wins_cpu(ts, cs, now, enq_flags)) {
		insert_preempting(p, ts, cs, now, enq_flags);
	} else if (pcpu_kthread(p) && (enq_flags & SCX_ENQ_WAKEUP)) {
		/* At the end of a slice it waits as others do: two that went to the local queue in turn would keep it for good. */
		count_for(ts->pol.arm, STAT_enq_kthread);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_left(ts), enq_flags);
		if (cs->curr_pid)
			arm_slice_timer(cpu, cs, now, cs->curr_start + cs->curr_slice);
	} else if (SCX_ENQ_IMMED && !(enq_flags & SCX_ENQ_REENQ) && cs->weight == ts->weight && cpu_curr_idle(cpu)) {
		count_for(ts->pol.arm, STAT_enq_idle);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_left(ts), enq_flags | SCX_ENQ_IMMED);
	} else {
		insert_waiting(p, ts, cs, cpu, now, enq_flags);
		/* The queue holds it only when this callback is over; so it is asked itself. */
		if (lost_core && !task_pinned(p))
			send_help(idle_helper(p, cpu, now), cpu);
	}
}

/* ---- charging ---- */

/* Account what the running task has used since it was last charged. */
static __always_inline void run_charge(struct cpu_state *cs, struct task_state *ts, u64 now)
{
	s64 ns = now - ts->started;
	u64 work;

	if (!ts->started || ns <= 0)
		return;
	work = at_full_speed(cs, ns);
	ts->started = cs->charged_at = now;
	ts->running_sum += work;
	ts->burst_run += ns;
	cs->busy_sum += work;
	queue_charge(cs, ts, ns);
}

/* At most once a period: fold the task's signals, take over a weight that its cgroup changed. */
static __always_inline void run_fold(struct task_state *ts, u64 now)
{
	if ((s64)(now - ts->folded_at) < (s64)PERIOD_NS)
		return;
	if (ts->runnable_since) {
		ts->runnable_sum += now - ts->runnable_since;
		ts->runnable_since = now;
	}
	task_fold(ts, now);
	if (ts->cgroup != ROOT_CGROUP)
		cgroup_apply(ts, now);
}

/* ---- dispatch ---- */

static __always_inline bool take_own(s32 cpu)
{
	if (!queue_take(cpu))
		return false;
	count(STAT_dispatch_own);
	return true;
}

/* The previous task goes on: its deadline is still the earliest, or nobody else is there. */
static __always_inline void keep(struct task_struct *prev, struct task_state *ts, struct cpu_state *cs, u64 now)
{
	count_for(ts->pol.arm, STAT_dispatch_keep);
	cs->curr_deadline = ts->deadline;
	cs->curr_vruntime = ts->vruntime;
	cs->curr_start = now;
	cs->curr_slice = slice_left(ts);
	cs->dispatched_at = now;
	scx_bpf_task_set_slice(prev, cs->curr_slice);
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
	count_for(ts->pol.arm, STAT_spread_lost);
	placed_nowhere(ts);
	return false;
}

/*
 * The previous task is still runnable: does it, or the first in the queue, go next? If a thief takes that one meanwhile, the
 * previous task goes on. False: it has no context.
 */
static __always_inline bool dispatch_prev(s32 cpu, struct cpu_state *cs, struct task_struct *prev)
{
	struct task_state *ts = task_state_of(prev);
	struct task_struct *head = NULL;
	u64 now = scx_bpf_now();
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
	gives_way = head && before(head->scx.dsq_vtime, ts->deadline);
	if (!gives_way || !take_own(cpu))
		keep(prev, ts, cs, now);
	return true;
}

/* Another CPU's queue was assigned to this one by its tick. */
static __always_inline bool dispatch_assigned(s32 cpu, struct cpu_state *cs)
{
	u64 now = scx_bpf_now();
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
	if (!steal_from_queue(from, cpu, scx_bpf_now()))
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
	struct task_struct *p;
	bool served = false;

	bpf_for_each (scx_dsq, p, cpu, 0) {
		struct task_state *ts = task_state_of(p);

		if (!ts || (s64)(now - ts->waits_since) < (s64)HUNGRY_NS)
			continue;
		served = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
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
static __always_inline void run_dispatch(s32 cpu, struct task_struct *prev)
{
	struct cpu_state *cs = cpu_state(cpu);
	bool asked;
	u64 now;

	if (cs->serve_next && dispatch_assigned(cpu, cs))
		return;
	if (dispatch_hungry(cpu, cs))
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED) && dispatch_prev(cpu, cs, prev))
		return;
	if (cs->weight && take_own(cpu))
		return;
	unmark_waiting(cpu);
	/* One that is marked may be claimed for a task on its way, though it was woken for nothing. */
	if (!cs->idle_marked)
		plain_claim_clear(cpu, cs, STAT_claim_clear_idle);
	mark_idle(cpu, cs);
	now = scx_bpf_now();
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

/* ---- running, stopping ---- */

static __always_inline void wakeup_ends(struct task_state *ts, u64 now)
{
	u64 waited = waited_since(ts->woken_at, now);

	hist_for(ts->pol.arm, HIST_wakeup_latency, waited);
	if (ts->by_fits)
		hist_for(ts->pol.arm, HIST_fits_wait, waited);
	ts->woken_at = ts->by_fits = 0;
}

static __always_inline void run_running(struct task_struct *p, struct task_state *ts, u64 now)
{
	s32 cpu = task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);

	delay_ends(ts, cpu, now);
	run_join(ts, cpu, now, ARRIVAL_STEAL);
	placed_runs(ts, cpu, cs, now);
	plain_claim_clear(cpu, cs, STAT_claim_clear_run);
	if (ts->woken_at)
		wakeup_ends(ts, now);
	ts->started = cs->charged_at = now;
	cs->curr_pid = p->pid;
	cs->curr_weight = ts->joined_weight;
	cs->curr_deadline = ts->deadline;
	cs->curr_vruntime = ts->vruntime;
	cs->curr_start = now;
	cs->curr_slice = slice_left(ts);
	cs->curr_sched_idle = ts->sched_idle;
	cs->dispatched_at = now;
	if (cs->idle_marked)
		cs->busy_since = now;
	if (ts->sched_idle)
		mark_idle(cpu, cs);
	else
		mark_busy(cpu, cs);
	if (queue_contended(cs))
		arm_slice_timer(cpu, cs, now, now + cs->curr_slice);
}

static __always_inline void run_stopping(struct task_struct *p, struct task_state *ts, bool runnable, u64 now)
{
	/* A task whose priority, affinity or group changes while it runs is taken out too, and does not sleep. */
	bool sleeps = !runnable && p->__state;
	s32 cpu = task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);

	run_charge(cs, ts, now);
	ts->started = 0;
	cs->curr_pid = 0;
	cs->curr_weight = 0;
	if (sleeps)
		burst_end(ts);
	if (!runnable) {
		ts->runnable_sum += now - ts->runnable_since;
		ts->runnable_since = 0;
		cgroup_leave(ts);
		queue_leave(ts, now);
		placed_nowhere(ts);
	}
	run_fold(ts, now);
	if (sleeps)
		util_est_sleep(ts, cpu);
	cpu_fold(cs, now);
}

#endif /* ROOST_RUN_BPF_H */
