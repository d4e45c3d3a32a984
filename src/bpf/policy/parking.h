/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks of groups without budget (bandwidth.h) are parked, and released in the order in which they
 * came.
 *
 * Problem: such a task must not run until its group has budget again. But the kernel ends a
 * scheduler under which a task waits for 10 s without running, in any queue.
 *
 * Method: parked tasks wait in PARK_QUEUES queues of their own, ordered by the time since which
 * they wait. All tasks under one topmost limit are in the same queue. A parked task is counted
 * nowhere: not in its CPU's queue, not as runnable in its group.
 *
 * Each queue has a timer. While tasks are in the queue, it is set for the end of the period of the
 * group that holds them back. When it fires, it walks the queue, refills budgets, and moves each
 * task whose groups have budget into its CPU's queue, with a grant. That queue does not count the
 * task until it runs, because the timer does not hold the CPU's lock. cpu_state.uncounted says that
 * there may be such tasks.
 *
 * No task is parked for longer than half of the bound of a wait (aging.h), 1.25 s. Then it is
 * released for OWED_NS, which its group owes. The task's wait goes on in its CPU's queue, whose
 * aging bounds the rest.
 *
 * A task without budget may hold a lock of the kernel, and others would wait for the lock as long
 * as it is parked. So it is not parked at once: the kernel is asked to tell when the task is about
 * to return to user mode, where it holds none. Until then it runs, and its group owes the time.
 * Kernels with preemption park it within task_returns(): it is bound to its CPU then, and a reader
 * for RCU's grace periods of sleeping programs (tasks trace), until it runs again.
 *
 * A change of affinity, group or class also ends a parked task's wait. The kernel dequeues the task
 * and enqueues it again, and enqueue checks it again. A limit that is set or removed fires all
 * timers.
 *
 * Limits: a pass looks at PARK_LOOKS tasks of a queue and releases PARK_RELEASES at most, within
 * PARK_PASS_NS, and then the timer rests, so it does not keep a CPU to itself. If more tasks than
 * that wait for other groups' budgets, those behind them wait with them.
 */
#ifndef ROOST_PARKING_H
#define ROOST_PARKING_H

#include "aging.h"
#include "bandwidth.h"
#include "hotplug.h"
#include "slice_timer.h"

/* A task is parked for at most this part of the bound of a wait (aging.h). */
#define PARK_PARTS    2
/*
 * After a task came, the timer goes on firing for this time although the queue is empty: the task
 * may be on its way. ns
 */
#define PARK_WATCH_NS 1000000000ULL
/* How often it then fires. ns */
#define PARK_LATER_NS 100000000ULL

/* When a pass has taken so long, it ends. ns */
#define PARK_PASS_NS  1000000ULL
/* The timer rests for so many times as long as its last pass took. */
#define PARK_RESTS    2
/* Tasks that came while the timer was at work are looked at after this time. ns */
#define PARK_CAME_NS  1000000ULL
/* How often a tick goes on to the next queue. ns */
#define PARK_TICK_NS  4000000ULL

enum {
	PARK_LOOKS = 8192,
	PARK_RELEASES = 512,
};

/* ---- on the way to user mode ---- */

/*
 * True: the task runs on without budget, because it may hold a lock of the kernel, and
 * task_returns() is called when it does not (kernel: task_throttle_setup_work()). False: it may be
 * parked. It is, whatever it holds, where the kernel cannot tell (before Linux 6.18).
 */
static __always_inline bool runs_on(port_task *p, struct task_state *ts)
{
	ts->over_budget = !ts->returning && ask_return(p);
	return ts->over_budget;
}

/* The running task, which asked for this, is about to return to user mode. */
static __always_inline void task_returns(port_task *p, struct task_state *ts)
{
	ts->over_budget = 0;
	if (!limits_exist() || !must_park(p, ts, cpu_clock()))
		return;
	ts->returning = 1;
	kick_cpu(task_cpu(p), KICK_PREEMPT);
}

/* ---- parking ---- */

/* The task is not runnable anywhere now, as if it slept. It keeps its lag. */
static __always_inline void park_leaves_queue(struct task_state *ts, s32 cpu, u64 now)
{
	if (ts->runnable_since) {
		ts->runnable_sum += waited_since(ts->runnable_since, now);
		ts->runnable_since = 0;
	}
	cgroup_leave(ts);
	/* The lock of another CPU, where its dequeue was delayed, is not held. */
	if (ts->on_rq == cpu + 1)
		queue_settle(ts, now);
	queue_leave(ts, now);
	ts->woken_at = 0;
}

/* ns: when the task is released whatever budget its group has. */
static __always_inline u64 park_most(const struct task_state *ts)
{
	return ts->waits_since + wait_bound() / PARK_PARTS;
}

/* ns: when the timer has to look at a task that is parked now. */
static __always_inline u64 park_until(const struct task_state *ts, u32 of, u64 now)
{
	u32 blocker = limit_blocker(of, now);
	struct bandwidth *bw = bandwidth(blocker);
	u64 end = bw->period_end, most = park_most(ts);

	/* There is budget, but it is not the task's turn. */
	if (blocker == ROOT_CGROUP)
		return now + PARK_AGAIN_NS;
	if (!bw->throttled_since && atomic_cas(&bw->throttled_since, 0, now))
		bw->throttled++;
	return before(end, most) ? end : most;
}

static __always_inline void park_task(port_task *p, struct task_state *ts, u64 now, u64 enq_flags)
{
	u32 of = limit_of(ts->cgroup), queue = park_queue(of);

	park_leaves_queue(ts, task_cpu(p), now);
	/* In this order: the count never goes below 0. */
	atomic_add(&bandwidth(of)->parked, 1);
	ts->parked_in = of;
	bandwidth(of)->parks++;
	count_for(ts->pol.arm, STAT_park);
	insert_queued(p, park_number(queue), virtual_request(ts, ts->pol.features), ts->waits_since,
		      enq_flags);
	/*
	 * A full barrier: the timer sees that a task came, or park_timer_start() sees that the
	 * timer is done.
	 */
	atomic_swap(&park_of(queue)->came_at, now);
	park_timer_start(queue, now, park_until(ts, of, now));
}

/* ---- releasing ---- */

/* A pass over a queue of parked tasks, and data of the current task. */
struct park_pass {
	/* ns: when a task that stays may be released; 0: none is left */
	u64 next;
	u32 park;  /* the number of the queue */
	u32 queue; /* the number of the CPU's queue */
	u64 key;   /* its key there */
	u64 grant;
	u32 of; /* its limit; ROOT_CGROUP: none */
	u32 pinned;
	s32 help;  /* a CPU where a released task has to wait; NO_CPU: none */
	u64 began; /* by clock_ns() */
	u32 looks;
	u32 released;
	u32 mixed; /* not all tasks are of one limit */
	u32 ends;  /* those behind the current task wait for the same budget */
};

static __always_inline void park_waits(struct park_pass *pass, u64 at)
{
	if (!pass->next || before(at, pass->next))
		pass->next = at;
}

/*
 * The current task stays parked. If all tasks of the queue have its limit, the pass ends: those
 * behind it came later.
 */
static __always_inline void park_stays(struct park_pass *pass)
{
	if (pass->mixed)
		return;
	if (bandwidth(pass->of)->parked == queue_length(pass->park))
		pass->ends = 1;
	else
		pass->mixed = 1;
}

/* True: the task goes, with a grant unless it has no limit any more. False: it stays. */
static __always_inline bool park_grants(port_task *p, struct task_state *ts, u64 now,
					struct park_pass *pass)
{
	u64 most = park_most(ts);
	u32 blocker;

	pass->of = limit_on(p, ts);
	pass->grant = 0;
	if (pass->of == ROOT_CGROUP)
		return true;
	blocker = limit_blocker(pass->of, now);
	if (blocker == ROOT_CGROUP) {
		pass->grant = grant_take(pass->of, now);
		/* Others took the budget first. */
		if (!pass->grant)
			park_waits(pass, now + PARK_AGAIN_NS);
	} else if (!before(now, most)) {
		count(STAT_park_owed);
		pass->grant = OWED_NS;
		budget_settle(pass->of, 0, -(s64)OWED_NS);
	} else {
		park_waits(pass, bandwidth(blocker)->period_end);
		park_waits(pass, most);
		park_stays(pass);
	}
	return pass->grant;
}

/* The CPU in whose queue a parked task waits from now on; NO_CPU: it stays. */
subprog s32 park_leaves(port_task *p trusted, u64 now, struct park_pass *pass nonnull)
{
	struct task_state *ts = task_state_if(p);
	s32 cpu = task_cpu(p);

	if (!ts || !park_grants(p, ts, now, pass))
		return NO_CPU;
	if (pass->grant)
		atomic_add(&ts->granted, pass->grant);
	pass->queue = queue_for(cpu, ts, now);
	pass->pinned = task_pinned(p);
	pass->key = cpu_state(cpu)->avg_vruntime - ts->lag + virtual_request(ts, ts->pol.features);
	park_ends(ts);
	return cpu;
}

/* The current task has moved to @cpu's queue. */
subprog u32 park_left(s32 cpu, u64 now, struct park_pass *pass nonnull)
{
	struct cpu_state *cs = cpu_state(cpu);

	count(STAT_park_release);
	pass->released++;
	atomic_swap(&cs->uncounted, 1);
	/* Pairs with the barrier in cpu_goes(). */
	if (cpu_away(cpu)) {
		give_up_queues(cpu);
		/* Before Linux 6.19 the move alone does not wake an idle CPU. */
		kick_cpu(cpu, KICK_IDLE);
		return 0;
	}
	if (!pass->pinned)
		mark_waiting(cpu);
	if (!cs->curr_pid && !cpu_taken(cpu)) {
		cs->dispatched_at = now;
		kick_cpu(cpu, KICK_IDLE);
		return 0;
	}
	ensure_slice_timer(cpu, cs, now,
			   cs->curr_pid ? cs->curr_start + cs->curr_slice : now + TAKEN_NS);
	pass->help = cpu;
	return 0;
}

/* The task was dequeued meanwhile, and enqueue checks it again. */
subprog u32 park_missed(port_task *p trusted, struct park_pass *pass nonnull)
{
	struct task_state *ts = task_state_if(p);

	if (ts)
		grant_drop(ts, pass->of);
	return 0;
}

/* The pass is over, before the end of the queue. */
static __always_inline bool park_enough(struct park_pass *pass, u64 now)
{
	if (pass->ends)
		return true;
	if (++pass->looks < PARK_LOOKS && pass->released < PARK_RELEASES &&
	    clock_ns() - pass->began < PARK_PASS_NS)
		return false;
	park_waits(pass, now);
	return true;
}

subprog u32 park_release(u64 now, struct park_pass *pass nonnull)
{
	port_task *p;

	for_each_queued(p, pass->park)
	{
		s32 cpu = park_leaves(p, now, pass);

		if (cpu == NO_CPU)
			;
		else if (queued_requeue(p, pass->queue, pass->key))
			park_left(cpu, now, pass);
		else
			park_missed(p, pass);
		if (park_enough(pass, now))
			break;
	}
	return 0;
}

/* The timer is done. @next: when it fires again; 0: it does not. */
static __always_inline void park_timer_again(u32 queue, u64 now, u64 next, u64 came)
{
	struct park *park = park_of(queue);

	if (next && before(next, park->rests_until))
		next = park->rests_until;
	atomic_swap(&park->timer_at, next);
	/*
	 * Tasks that came during the pass found the timer at work. Those that came just before may
	 * not have been in the queue yet.
	 */
	if ((park->came_at != came || waited_since(came, now) < PARK_CAME_NS) &&
	    (!next || before(now + PARK_CAME_NS, next))) {
		next = now + PARK_CAME_NS;
		park->timer_at = next;
	}
	if (next && start_park_timer(queue, time_until(next, now)))
		park->timer_at = 0;
}

static __always_inline void park_timer_fires(u32 queue)
{
	struct park_pass pass = { .help = NO_CPU, .park = park_number(queue), .began = clock_ns() };
	struct park *park = park_of(queue);
	u64 now = cpu_clock(), came;

	/* Full barriers, here and when it is done, as in park_task(). */
	atomic_swap(&park->timer_at, now);
	came = park->came_at;
	park_release(now, &pass);
	park->rests_until = now + PARK_RESTS * (clock_ns() - pass.began);
	if (pass.help != NO_CPU)
		call_help(pass.help, now);
	if (!pass.next && waited_since(park->came_at, now) < PARK_WATCH_NS)
		pass.next = now + PARK_LATER_NS;
	park_timer_again(queue, now, pass.next, came);
}

/*
 * From a tick, where limits exist: start a timer that could not be started, or is long overdue.
 * Each tick looks at one queue.
 */
subprog u32 park_watch(s32 cpu, u64 now)
{
	u32 queue = (cpu + now / PARK_TICK_NS) % PARK_QUEUES;
	u64 fires_at = park_of(queue)->timer_at;

	if ((!fires_at || park_timer_lost(fires_at, now)) && queue_length(park_number(queue)))
		park_timer_start(queue, now, now);
	return 0;
}

/* ---- limits are set ---- */

/* A subprogram: inlined into the loop below, its index would have no bound for the verifier. */
subprog u32 park_ask(u32 queue, u64 now)
{
	if (!queue_length(park_number(queue)))
		return 0;
	/* A timer that is at work makes another pass. */
	atomic_swap(&park_of(queue)->came_at, now);
	park_timer_start(queue, now, now);
	return 0;
}

/* Check all parked tasks again. */
subprog u32 park_ask_all(u64 now)
{
	u32 queue;

	for_below (queue, PARK_QUEUES, PARK_QUEUES)
		park_ask(queue, now);
	return 0;
}

/* Set the limit of a group. ns. @quota is 0 for no limit, @period is never 0. */
subprog u32 limit_set(u32 index, u64 period, u64 quota, u64 burst, u64 now)
{
	struct bandwidth *bw = bandwidth(index);

	/* More than all CPUs have would never be used up, and sums of it would not fit. */
	if (quota / MAX_CPUS >= period)
		quota = 0;
	/* Another setting of the group has changed. */
	if (bw->period == period && bw->quota == quota && bw->burst == burst)
		return 0;
	bw->period = period;
	bw->burst = burst;
	bw->runtime = quota;
	bw->period_end = now + period;
	bw->quota = quota;
	throttle_counts(bw, now, false);
	if (quota)
		limits()->any = 1;
	limits_changed();
	if (limits()->any)
		park_ask_all(now);
	return 0;
}

/* A new group gets an index that another one had. Its tasks look up their limit again. */
static __always_inline void limit_begins(u32 index, u64 id)
{
	struct bandwidth *bw = bandwidth(index);

	*bw = (struct bandwidth){ .id = id };
}

#endif /* ROOST_PARKING_H */
