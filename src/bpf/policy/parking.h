/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks of groups without budget (bandwidth.h) are parked, and released in the order in which they
 * came.
 *
 * Parked tasks wait in PARK_QUEUES queues of their own, ordered by the time since when they wait;
 * all tasks under one topmost limit in the same. A parked task is counted nowhere: not in its CPU's queue, not as runnable in its group.
 * Each queue has a timer, which is armed while tasks are in it: for the end of the period of the
 * group that holds them back. When it fires it goes through the queue, fills budgets up, and moves
 * each task whose groups have some into the queue of its CPU, with a grant.
 * That queue does not count it until it runs: the timer holds no lock of the CPU's.
 * cpu_state.unjoined says that there may be such tasks.
 * No task is parked for longer than half of the bound of a wait (aging.h), 1.25 s: it is released
 * then, for OWED_NS, which its group owes. The kernel ends a scheduler under which a task waits for
 * 5 s without running, in whichever queue. The time since when it waits goes on in its CPU's queue,
 * whose aging bounds the rest.
 * What ends a parked task's wait otherwise, as a change of its affinity, its group, its class, is a
 * dequeue by the kernel and an enqueue, where it is asked anew. A limit that is set or removed
 * fires all timers.
 * Limits: of PARK_LOOKS tasks of a queue at most so many are released in a go, and then the timer
 * rests. If more than these wait for other groups' budgets, those behind them wait with them.
 */
#ifndef ROOST_PARKING_H
#define ROOST_PARKING_H

#include "aging.h"
#include "bandwidth.h"
#include "hotplug.h"
#include "slice_timer.h"

/* So many parts of the bound of a wait (aging.h) a task is parked at most. */
#define PARK_PARTS    2
/*
 * So long after a task came the timer goes on firing though the queue is empty: the task may be on
 * its way. ns
 */
#define PARK_WATCH_NS 1000000000ULL
#define PARK_LATER_NS 100000000ULL

/*
 * For each task that it looked at the timer rests for so long, and for one that it released the
 * longer: it keeps no CPU to itself. ns
 */
#define PARK_REST_NS  1000ULL
#define PARK_MOVED_NS 4000ULL
/* Tasks that came while the timer was at work are looked at so soon. ns */
#define PARK_CAME_NS  1000000ULL
/* Ticks look after another queue so often: ns. */
#define PARK_TICK_NS  4000000ULL

enum {
	PARK_LOOKS = 8192,
	PARK_RELEASES = 512,
};

/* ---- parking ---- */

/* The task is runnable nowhere now, as if it slept; its lag is kept. */
static __always_inline void park_leaves_queue(struct task_state *ts, u64 now)
{
	if (ts->runnable_since) {
		ts->runnable_sum += waited_since(ts->runnable_since, now);
		ts->runnable_since = 0;
	}
	cgroup_leave(ts);
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

	park_leaves_queue(ts, now);
	/* In this order: the count never goes below 0. */
	atomic_add(&bandwidth(of)->parked, 1);
	ts->parked_in = of;
	bandwidth(of)->parks++;
	count_for(ts->pol.arm, STAT_park);
	insert_queued(p, park_number(queue), ts->pol.slice_ns, ts->waits_since, enq_flags);
	/* A full barrier: the timer sees that a task comes, or it is seen below that it is done. */
	atomic_swap(&park_of(queue)->came_at, now);
	park_timer_start(queue, now, park_until(ts, of, now));
}

/* ---- releasing ---- */

/* A look through a queue of parked tasks, and the task at hand. */
struct park_pass {
	u64 next;  /* ns: when a task may be released that was not; 0: none is left */
	u32 park;  /* the number of the queue */
	u32 queue; /* of the CPU's queue */
	u64 key;   /* there */
	u64 grant;
	u32 of; /* the limit that it is of; ROOT_CGROUP: none */
	u32 pinned;
	s32 help; /* a CPU where a task was released that has to wait there; NO_CPU: none */
	u32 looks;
	u32 released;
	u32 mixed; /* not all are of one limit */
	u32 ends;  /* those behind the task at hand wait for the same budget */
};

static __always_inline void park_waits(struct park_pass *pass, u64 at)
{
	if (!pass->next || before(at, pass->next))
		pass->next = at;
}

/* A task stays parked. Are all of the queue of its limit? Those behind it came later. */
static __always_inline void park_stays(struct park_pass *pass)
{
	if (pass->mixed)
		return;
	if (bandwidth(pass->of)->parked == queue_length(pass->park))
		pass->ends = 1;
	else
		pass->mixed = 1;
}

/*
 * What the task may have now: true, and a grant unless it has no limit any more. False: it stays.
 */
static __always_inline bool park_grants(port_task *p, struct task_state *ts, u64 now, struct park_pass *pass)
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
		/* Others were quicker. */
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

/* The CPU in whose queue a parked task goes on waiting; NO_CPU: it stays. */
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
	pass->key = cpu_state(cpu)->vtime - ts->lag + to_virtual(request_ns(ts, ts->pol.features), ts->weight);
	park_ends(ts);
	return cpu;
}

/* It is in that CPU's queue. */
subprog u32 park_left(s32 cpu, u64 now, struct park_pass *pass nonnull)
{
	struct cpu_state *cs = cpu_state(cpu);

	count(STAT_park_release);
	pass->released++;
	atomic_swap(&cs->unjoined, 1);
	/* The barrier's other side is in cpu_goes(). */
	if (cpu_away(cpu)) {
		give_up_queues(cpu);
		/* Before Linux 6.19 the move alone does not tell an idle CPU. */
		kick_cpu(cpu, KICK_IDLE);
		return 0;
	}
	if (!pass->pinned)
		mark_waiting(cpu);
	if (!cs->curr_pid && !cpu_taken(cpu)) {
		kick_cpu(cpu, KICK_IDLE);
		return 0;
	}
	arm_slice_timer(cpu, cs, now, cs->curr_pid ? cs->curr_start + cs->curr_slice : now + TAKEN_NS);
	pass->help = cpu;
	return 0;
}

/* Somebody has taken it off meanwhile; it is asked anew. */
subprog u32 park_missed(port_task *p trusted, struct park_pass *pass nonnull)
{
	struct task_state *ts = task_state_if(p);

	if (ts)
		grant_drop(ts, pass->of);
	return 0;
}

/* The look is over, though not all were looked at. */
static __always_inline bool park_enough(struct park_pass *pass, u64 now)
{
	if (pass->ends)
		return true;
	if (++pass->looks < PARK_LOOKS && pass->released < PARK_RELEASES)
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

/* The timer is done, for now: @next is when it fires again; 0: it does not. */
static __always_inline void park_timer_again(u32 queue, u64 now, u64 next, u64 came)
{
	struct park *park = park_of(queue);

	if (next && before(next, park->rests_until))
		next = park->rests_until;
	atomic_swap(&park->timer_at, next);
	/* Those that came meanwhile found it at work; those that came a moment before it may have been on their way. */
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
	struct park_pass pass = { .help = NO_CPU, .park = park_number(queue) };
	struct park *park = park_of(queue);
	u64 now = cpu_clock(), came;

	/* Full barriers, here and when it is done, as in park_task(). */
	atomic_swap(&park->timer_at, now);
	came = park->came_at;
	park_release(now, &pass);
	park->rests_until = now + pass.looks * PARK_REST_NS + pass.released * PARK_MOVED_NS;
	if (pass.help != NO_CPU)
		call_help(pass.help, now);
	if (!pass.next && waited_since(park->came_at, now) < PARK_WATCH_NS)
		pass.next = now + PARK_LATER_NS;
	park_timer_again(queue, now, pass.next, came);
}

/*
 * Of a tick, where limits exist: a timer that could not be armed, or is long overdue. Each tick
 * looks at one queue.
 */
subprog u32 park_watch(s32 cpu, u64 now)
{
	u32 queue = (cpu + now / PARK_TICK_NS) % PARK_QUEUES;
	u64 armed = park_of(queue)->timer_at;

	if ((!armed || park_timer_lost(armed, now)) && queue_length(park_number(queue)))
		park_timer_start(queue, now, now);
	return 0;
}

/* ---- limits are set ---- */

/* A subprogram of its own: inlined into the loop below, its index has no bound to the verifier. */
subprog u32 park_ask(u32 queue, u64 now)
{
	if (!queue_length(park_number(queue)))
		return 0;
	/* A timer that is at work looks again. */
	atomic_swap(&park_of(queue)->came_at, now);
	park_timer_start(queue, now, now);
	return 0;
}

/* All that are parked are asked anew. */
subprog u32 park_ask_all(u64 now)
{
	u32 queue;

	for_below (queue, PARK_QUEUES, PARK_QUEUES)
		park_ask(queue, now);
	return 0;
}

/* ns. @quota is 0 where there is no limit, @period is not. */
static __always_inline void limit_set(u32 index, u64 period, u64 quota, u64 burst, u64 now)
{
	struct bandwidth *bw = bandwidth(index);

	/* More than all CPUs have: it would never be used up, and sums of it would not fit. */
	if (quota / MAX_CPUS >= period)
		quota = 0;
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
}

/* A group is made at an index that was another's. Its tasks look for its limit anew. */
static __always_inline void limit_begins(u32 index, u64 id)
{
	struct bandwidth *bw = bandwidth(index);

	*bw = (struct bandwidth){ .id = id };
}

#endif /* ROOST_PARKING_H */
