/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slices end on time: one timer per CPU, as the kernel's hrtick, because a slice that only a tick may end lasts up to
 * a tick longer (4 ms at 250 Hz).
 *
 * A timer is armed when somebody has to wait, unless it already fires in time; it is never cancelled. When it fires it
 * looks again: the slice is over, or it arms itself for the rest, or nobody waits any more. So it is armed about once
 * per slice, not once per context switch. The choice was measured: docs/experiments.md.
 */
#ifndef ROOST_SLICE_TIMER_H
#define ROOST_SLICE_TIMER_H

#include "cgroup.h"
#include "steal.h"

/* A slice that ends within this is over: arming a timer again would cost more. ns. */
#define SLICE_SLACK_NS 20000ULL

/* So late no timer is: ns. */
#define TIMER_LOST_NS  4000000ULL

subprog u32 slice_timer_start(s32 cpu, u64 now, u64 at)
{
	struct cpu_state *cs = cpu_state(cpu);

	cs->timer_at = at;
	count(STAT_timer_arm);
	if (start_slice_timer(cpu, time_until(at, now)))
		cs->timer_at = 0;
	return 0;
}

static __always_inline void arm_slice_timer(s32 cpu, struct cpu_state *cs, u64 now, u64 at)
{
	if (!tunables()->timers)
		return;
	/* It fires in time already. But one that is long overdue was lost. */
	if (cs->timer_at && !before(at, cs->timer_at) && before(now, cs->timer_at + TIMER_LOST_NS))
		return;
	slice_timer_start(cpu, now, at);
}

/*
 * Somebody waits for @cpu: in its queue, or in the kernel's local one, uncounted yet, because two wakeups found the same
 * CPU idle or because the waker stays longer than it said (sync_local). Or the running task's
 * budget ends (bandwidth.h).
 */
static __always_inline bool somebody_waits(s32 cpu, const struct cpu_state *cs)
{
	return queue_contended(cs) || cs->budgeted || local_length(cpu);
}

/* A real-time task keeps a CPU for so long: what waits there needs another. ns */
#define TAKEN_NS    2000000ULL

/* So many tasks of a queue are asked where they may run. */
#define QUEUE_LOOKS 4

/*
 * A real-time task takes @cpu. While it runs there is no tick of ours, and idle CPUs have none either: the timer looks
 * after those that wait.
 */
static __always_inline void watch_taken(s32 cpu)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 now;

	if (!queue_holds(cs))
		return;
	now = cpu_clock();
	arm_slice_timer(cpu, cs, now, now + TAKEN_NS);
}

/* An idle CPU that may run one of the first tasks of @queue, which is @cpu's. */
static __always_inline s32 helper_among(u32 queue, s32 cpu, u64 now)
{
	s32 helper = NO_CPU;
	port_task *p;
	u32 looks = 0;

	for_each_queued(p, queue)
	{
		if (!task_pinned(p))
			helper = idle_helper(p, cpu, now);
		if (helper != NO_CPU || ++looks == QUEUE_LOOKS)
			break;
	}
	return helper;
}

/* The same of both queues of @cpu. */
static __always_inline s32 queue_helper(s32 cpu, u64 now)
{
	s32 helper = helper_among(young_queue(cpu), cpu, now);

	if (helper == NO_CPU && cpu_state(cpu)->old_waits)
		helper = helper_among(old_queue(cpu), cpu, now);
	return helper;
}

/* @helper, if there is one, shall look into @cpu's queue. */
static __always_inline void send_help(s32 helper, s32 cpu)
{
	if (helper == NO_CPU)
		return;
	count(STAT_idle_kick);
	cpu_state(helper)->help_for = cpu + 1;
	kick_cpu(helper, KICK_IDLE);
}

/* Tasks wait on @cpu: an idle CPU shall look for work (kernel: nohz_balancer_kick()). */
subprog u32 call_help(s32 cpu, u64 now)
{
	if (!waiting_length(cpu))
		return 0;
	mark_waiting(cpu);
	send_help(queue_helper(cpu, now), cpu);
	return 0;
}

/* An idle CPU, or one that runs a task of a higher class, has no tick of ours: its timer looks after those that wait. */
static __always_inline void slice_timer_fires(s32 cpu)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 now = cpu_clock(), end = cs->curr_start + cs->curr_slice;

	/* A full barrier: what is queued from here on finds no timer and arms it, or its weight is seen below. */
	atomic_swap(&cs->timer_at, 0);
	count(STAT_timer_fire);
	if (!cs->curr_pid && queue_holds(cs) && cpu_taken(cpu)) {
		call_help(cpu, now);
		arm_slice_timer(cpu, cs, now, now + TAKEN_NS);
	} else if (!cs->curr_pid && cs->unjoined) {
		/* Released as the CPU went idle. */
		kick_cpu(cpu, KICK_IDLE);
	} else if (!cs->curr_pid || !somebody_waits(cpu, cs)) {
		count(STAT_timer_spurious);
	} else if (before(now + SLICE_SLACK_NS, end)) {
		arm_slice_timer(cpu, cs, now, end);
	} else {
		count(STAT_preempt_slice);
		kick_cpu(cpu, KICK_PREEMPT);
		call_help(cpu, now);
	}
}

#endif /* ROOST_SLICE_TIMER_H */
