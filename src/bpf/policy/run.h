/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task joins a queue, runs, is charged, stops. The accounting depends on what the task's state
 * holds (on_rq, started), not on the order of callbacks: a task that select_cpu inserts skips
 * enqueue, and bypass mode skips select_cpu, enqueue and dispatch. An extra callback changes
 * nothing.
 */
#ifndef ROOST_RUN_H
#define ROOST_RUN_H

#include "aging.h"
#include "cgroup.h"
#include "claim.h"
#include "delay_queue.h"
#include "delayed_dequeue.h"
#include "nohz.h"
#include "parking.h"

/* ---- the start of CPUs and tasks ---- */

/* A CPU that runs none of our tasks yet. */
static __always_inline void cpu_begins(s32 cpu)
{
	u32 llc = cpu_facts(cpu)->llc;

	core_mask_init(cpu);
	idle_init(cpu_state(cpu));
	cpu_state(cpu)->busy_since = cpu_clock();
	cpu_state(cpu)->slice_cap = slice_cap(wait_bound(), 0);
	llc_state(llc)->scan_budget = llc_facts(llc)->nr_cpus;
}

/* A new task. Its arm and cgroup are set, the rest of its state is 0. */
static __always_inline void task_begins(struct task_state *ts, u64 now)
{
	ts->weight = NICE0_WEIGHT;
	policy_take(ts);
	task_signals_init(ts, now);
}

/* Our state of the kernel's task. It should exist: a missing one is counted. */
static __always_inline struct task_state *task_state_of(port_task *p)
{
	struct task_state *ts = task_state_if(p);

	if (!ts)
		count(STAT_no_task_ctx);
	return ts;
}

/* ---- joining ---- */

/*
 * A new task owes what its parent does. A chain of tasks, each of which forks the next and exits,
 * would otherwise owe nothing, and each would have the earliest deadline. (The kernel finds such a
 * child not eligible, once its parent has gone.)
 */
static __always_inline void owes_as_parent(struct task_state *ts, u64 now)
{
	port_task *parent = in_task() ? current_task() : NULL;
	struct task_state *theirs = parent ? task_state_if(parent) : NULL;
	struct cpu_state *cs;
	s64 lag;

	if (!theirs || !theirs->started || !theirs->on_rq)
		return;
	cs = cpu_state(theirs->on_rq - 1);
	lag = cs->avg_vruntime + clock_behind(cs, ts, now) - theirs->vruntime -
	      to_virtual(waited_since(theirs->started, now), theirs->on_rq_weight);
	if (lag >= 0)
		return;
	ts->lag = clamped_lag(ts, lag);
	ts->left_at = now;
}

/*
 * @cpu's queue starts to count the task, which was runnable elsewhere (@moved: how it came) or was
 * not runnable. Called by enqueue and by running, whichever is first: select_cpu may insert a task
 * that is then not enqueued, and a stolen task comes from another queue. A callback for tasks that
 * become runnable (ops.runnable) would cost more than this test in two places. Nor is there
 * ops.quiescent: a waiting task that the kernel dequeues for a moment, to change its affinity for
 * example, stays counted until it is back.
 */
static __always_inline void run_join(struct task_state *ts, s32 cpu, u64 now, enum arrival moved)
{
	bool is_new = !ts->load_cpu, stays;

	if (ts->on_rq == cpu + 1 && ts->runnable_since)
		return;
	if (ts->runnable_since && ts->pushed)
		moved = ARRIVAL_OTHER;
	idle_ends(cpu_state(cpu), now,
		  ts->runnable_since ? moved
		  : is_new	     ? ARRIVAL_FORK
				     : ARRIVAL_WAKEUP);
	if (ts->runnable_since) {
		ts->pushed = 0;
		queue_move(cpu, ts, now);
		load_follows(ts, cpu, now);
		return;
	}
	ts->runnable_since = now;
	cgroup_enter(ts);
	/* Its dequeue was delayed: it stays, or leaves now. The lock of another CPU is not held. */
	stays = ts->on_rq == cpu + 1 && !cgroup_differs(ts);
	if (ts->on_rq == cpu + 1)
		queue_settle(ts, now);
	if (!stays)
		queue_leave(ts, now);
	if (cgroup_differs(ts))
		cgroup_apply(ts, now);
	load_follows(ts, cpu, now);
	if (stays) {
		delayed_requeues(cpu, ts, now);
		return;
	}
	if (is_new)
		owes_as_parent(ts, now);
	queue_join(cpu, ts, now);
	if (is_new)
		first_request(ts, ts->pol.features);
	else
		new_request(ts, ts->pol.features);
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

/*
 * Take over a weight that the task's cgroup has changed much, and once a period any; then fold the
 * signals too.
 */
static __always_inline void run_fold(struct task_state *ts, u64 now)
{
	if ((s64)(now - ts->folded_at) < (s64)PERIOD_NS) {
		if (!ts->delayed_in && cgroup_differs(ts))
			cgroup_apply(ts, now);
		return;
	}
	if (ts->runnable_since) {
		ts->runnable_sum += waited_since(ts->runnable_since, now);
		ts->runnable_since = now;
	}
	task_fold(ts, now);
	if (ts->cgroup != ROOT_CGROUP && !ts->delayed_in)
		cgroup_apply(ts, now);
}

/* ---- running, stopping ---- */

/* How long a task may run while others wait. */
static __always_inline u64 turn_ns(struct cpu_state *cs, const struct task_state *ts)
{
	u64 left = slice_left(ts);

	if (cs->slice_cap && cs->slice_cap < left)
		return cs->slice_cap;
	if (ts->pol.rules & FAIR_PARITY)
		return left;
	return until_due(cs, eligible_until(cs), 0, left, ts->pol.min_slice_ns);
}

/*
 * By the kernel's rules a tick ends some slices, no timer: but not one that is short because of a
 * crowd, nor where ticks may stop.
 */
static __always_inline bool tick_may_end(const struct cpu_state *cs, const struct task_state *ts)
{
	return ts->pol.rules & FAIR_PARITY && !cs->late && cs->curr_slice == slice_left(ts) &&
	       !cpu_facts(ts->on_rq - 1)->nohz;
}

/*
 * The task's turn begins. The kernel also stops and starts a running task to change its policy,
 * priority, group or affinity: then its turn goes on. Else it would have one for as long as it
 * changes itself.
 */
static __always_inline void curr_begins(struct cpu_state *cs, const struct task_state *ts, u32 pid,
					u64 now)
{
	u64 began = cs->curr_start;
	bool goes_on = cs->changed_pid == pid;

	cs->changed_pid = 0;
	curr_shows(cs, ts, now);
	if (goes_on) {
		cs->curr_vruntime -= to_virtual(waited_since(began, now), ts->on_rq_weight);
		cs->curr_start = began;
		return;
	}
	protects(cs, ts);
	cs->curr_slice = turn_ns(cs, ts);
	cs->curr_untimed = !(ts->pol.rules & FAIR_HRTICK) && tick_may_end(cs, ts);
}

static __always_inline void wakeup_ends(struct task_state *ts, u64 now)
{
	u64 waited = waited_since(ts->woken_at, now);

	hist_for(ts->pol.arm, HIST_wakeup_latency, waited);
	if (ts->by_fits)
		hist_for(ts->pol.arm, HIST_fits_wait, waited);
	ts->woken_at = ts->by_fits = 0;
}

static __always_inline void task_runs(port_task *p, struct task_state *ts, u64 now)
{
	s32 cpu = task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);

	delay_ends(ts, cpu, now);
	delayed_ends(ts, now);
	run_join(ts, cpu, now, ARRIVAL_STEAL);
	idle_is_over(cs);
	placed_runs(ts, cpu, cs, now);
	plain_claim_clear(cpu, cs, STAT_claim_clear_run);
	if (ts->woken_at)
		wakeup_ends(ts, now);
	ts->started = cs->charged_at = now;
	ts->waits_since = 0;
	cs->curr_pid = task_pid(p);
	cs->curr_weight = ts->on_rq_weight;
	cs->curr_sched_idle = ts->sched_idle;
	curr_begins(cs, ts, cs->curr_pid, now);
	cs->dispatched_at = now;
	if (cs->idle_marked)
		cs->busy_since = now;
	if (ts->sched_idle)
		mark_idle(cpu, cs);
	else
		mark_busy(cpu, cs);
	if (limits_exist())
		budget_begins(p, ts, cpu, now);
	/* In a queue its slice was another time (pick.h). Without timers a tick ends the slice. */
	if (task_slice(p) != cs->curr_slice)
		set_slice(p, time_until(cs->curr_start + cs->curr_slice, now));
	if (timer_ends_slice(cs))
		ensure_slice_timer(cpu, cs, now, cs->curr_start + cs->curr_slice);
	nohz_runs(p, cpu, cs);
	away_runs(p, cpu);
}

static __always_inline void task_stops(port_task *p, struct task_state *ts, bool runnable, u64 now)
{
	/*
	 * A change of priority, affinity or group also dequeues a running task, which does not
	 * sleep then.
	 */
	bool sleeps = !runnable && task_sleeps(p);
	s32 cpu = task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);

	run_charge(cs, ts, now);
	if (ts->budget_of)
		budget_ends(p, ts, runnable, now);
	ts->started = 0;
	ts->ran_at = now;
	cs->budgeted = 0;
	cs->changed_pid = runnable || sleeps ? 0 : cs->curr_pid;
	/*
	 * Its slice was over, or a kick has ended it. If the kernel only changes the task, it must
	 * not get another slice (curr_begins()).
	 */
	if (!task_slice(p))
		cs->curr_slice = 0;
	cs->curr_pid = 0;
	cs->curr_weight = 0;
	if (sleeps)
		burst_end(ts);
	if (runnable)
		wait_begins(ts, now);
	if (!runnable) {
		ts->runnable_sum += waited_since(ts->runnable_since, now);
		ts->runnable_since = 0;
		cgroup_leave(ts);
		queue_settle(ts, now);
		if (!sleeps || !delays_dequeue(cs, ts, task_pid(p), now)) {
			queue_leave(ts, now);
			if (sleeps)
				clock_stays(cs, ts);
		}
		/*
		 * Its placement ended when it began to run, so idle_cpu is a core that a tick has
		 * chosen since.
		 */
		push_lost(ts);
	}
	run_fold(ts, now);
	/* What it wakes up to is in the kernel. */
	if (sleeps) {
		ts->returning = 0;
		util_est_sleep(ts, cpu);
	}
	cpu_fold(cs, now);
}

static __always_inline void run_running(port_task *p)
{
	struct task_state *ts = task_state_of(p);

	know_cpu();
	if (ts)
		task_runs(p, ts, cpu_clock());
}

static __always_inline void run_stopping(port_task *p, bool runnable)
{
	struct task_state *ts = task_state_of(p);

	know_cpu();
	if (ts)
		task_stops(p, ts, runnable, cpu_clock());
}

static __always_inline void yields(port_task *p)
{
	struct task_state *ts = task_state_of(p);
	struct cpu_state *cs = cpu_state(task_cpu(p));

	if (ts && queue_contended(cs)) {
		run_charge(cs, ts, cpu_clock());
		queue_yield(cs, ts, ts->pol.features);
	}
	if (!cpu_away(task_cpu(p)) || local_length(task_cpu(p)))
		set_slice(p, 0);
}

/*
 * @p yields. With @to it yields to that task, which its CPU then runs next (kernel:
 * yield_to_task_fair(), by its next buddy). False with @to: that task waits for no CPU, and nothing
 * has changed.
 */
static __always_inline bool run_yield(port_task *p, port_task *to)
{
	struct task_state *ts = to ? task_state_if(to) : NULL;
	struct cpu_state *cs;
	s32 cpu;

	if (!to) {
		yields(p);
		return false;
	}
	if (!ts || !ts->on_rq || ts->delayed_in)
		return false;
	cpu = ts->on_rq - 1;
	cs = cpu_state(cpu);
	if (cs->curr_pid == task_pid(to))
		return false;
	cs->yielded_to = task_pid(to);
	yields(p);
	if (cpu != task_cpu(p) && !cpu_away(cpu))
		kick_cpu(cpu, KICK_PREEMPT);
	return true;
}

/*
 * The task, which the kernel has dequeued, goes to another group. Its weight there is worked out
 * when it wakes or has run. Now would be too early: of a crowd that moves at once, the first would
 * get the whole weight of the group.
 */
static __always_inline void run_moves(struct task_state *ts, u32 cgroup)
{
	if (limits_exist())
		limit_leaves(ts);
	ts->cgroup = cgroup;
	ts->competed = 0;
	cgroup_follow(ts);
}

/* The task leaves our class, or dies; it may still be counted in a queue. */
static __always_inline void run_disable(port_task *p)
{
	struct task_state *ts = task_state_of(p);
	u64 now = cpu_clock();

	if (!ts)
		return;
	cgroup_leave(ts);
	delayed_ends(ts, now);
	queue_settle(ts, now);
	queue_leave(ts, now);
	load_ends(ts, now);
	delay_ends(ts, NO_CPU, now);
	placed_nowhere(ts);
	if (limits_exist())
		limit_leaves(ts);
	ts->budget_of = ROOT_CGROUP;
	/*
	 * waits_since stays: the watchdog's time goes on too (kernel: SCX_TASK_RESET_RUNNABLE_AT).
	 */
	ts->started = ts->runnable_since = ts->woken_at = 0;
}

#endif /* ROOST_RUN_H */
