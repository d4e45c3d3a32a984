/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slices end on time.
 *
 * Problem: a slice that only a tick ends lasts up to a tick longer (4 ms at 250 Hz).
 *
 * Method: one timer per CPU, like the kernel's hrtick. It is started when a task has to wait,
 * unless it already fires in time. It is never cancelled. When it fires, the slice is over, or it
 * starts itself for the rest, or no task waits any more. So it is started about once per slice, not
 * once per context switch. Measured before it was built: p50 of a probe among hogs 1.7 ms, with
 * ticks alone 7.5; it costs 100 instructions a switch, a timer that each running task starts 740;
 * one periodic timer doubles p50 and p99.
 *
 * Limits: without timers (PREEMPT_RT) slices end at a tick.
 */
#ifndef ROOST_SLICE_TIMER_H
#define ROOST_SLICE_TIMER_H

#include "cgroup.h"
#include "hotplug.h"
#include "steal.h"

/* A slice that ends within this is over: starting a timer again would cost more. ns */
#define SLICE_SLACK_NS 20000ULL

/* A timer that is this late has been lost. ns */
#define TIMER_LOST_NS  4000000ULL

subprog u32 slice_timer_start(s32 cpu, u64 now, u64 at)
{
	struct cpu_state *cs = cpu_state(cpu);

	cs->timer_at = at;
	count(STAT_timer_start);
	if (start_slice_timer(cpu, time_until(at, now)))
		cs->timer_at = 0;
	return 0;
}

static __always_inline void ensure_slice_timer(s32 cpu, struct cpu_state *cs, u64 now, u64 at)
{
	if (!tunables()->timers)
		return;
	/* It fires in time already, unless it is long overdue: then it was lost. */
	if (cs->timer_at && !before(at, cs->timer_at) && before(now, cs->timer_at + TIMER_LOST_NS))
		return;
	slice_timer_start(cpu, now, at);
}

/*
 * A task waits for @cpu in its queue, or uncounted in the kernel's local queue. That happens when
 * two wakeups found the same CPU idle, or when the waker runs longer than it said (sync_local). Or
 * the running task's budget ends (bandwidth.h).
 */
static __always_inline bool somebody_waits(s32 cpu, const struct cpu_state *cs)
{
	return slice_ends(cs) || local_length(cpu);
}

/* When a real-time task has kept a CPU for this long, the tasks waiting there need another. ns */
#define TAKEN_NS    2000000ULL

/* How many tasks of a queue are checked for an idle CPU. */
#define QUEUE_LOOKS 4

/*
 * A real-time task takes @cpu. While it runs, sched_ext gets no tick there, nor on idle CPUs. So
 * the timer looks after the waiting tasks.
 */
static __always_inline void watch_taken(s32 cpu)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 now;

	if (!queue_holds(cs))
		return;
	now = cpu_clock();
	ensure_slice_timer(cpu, cs, now, now + TAKEN_NS);
}

/* An idle CPU that may run one of the first tasks of @queue, one of @cpu's. */
static __always_inline s32 helper_among(u32 queue, s32 cpu, u64 now)
{
	s32 helper = NO_CPU;
	port_task *p;
	u32 looks = from_zero;

	for_each_queued(p, queue)
	{
		if (!task_pinned(p))
			helper = idle_helper(p, cpu, now);
		if (helper != NO_CPU || ++looks == QUEUE_LOOKS)
			break;
	}
	return helper;
}

/* As above, for both queues of @cpu. */
static __always_inline s32 queue_helper(s32 cpu, u64 now)
{
	s32 helper = helper_among(young_queue(cpu), cpu, now);

	if (helper == NO_CPU && cpu_state(cpu)->old_waits)
		helper = helper_among(old_queue(cpu), cpu, now);
	return helper;
}

/* Kick @helper, if there is one, to look into @cpu's queue. */
static __always_inline void send_help(s32 helper, s32 cpu)
{
	if (helper == NO_CPU)
		return;
	count(STAT_idle_kick);
	cpu_state(helper)->help_for = cpu + 1;
	kick_cpu(helper, KICK_IDLE);
}

/* Tasks wait on @cpu: make an idle CPU look for work (kernel: nohz_balancer_kick()). */
subprog u32 call_help(s32 cpu, u64 now)
{
	if (!waiting_length(cpu))
		return 0;
	mark_waiting(cpu);
	send_help(queue_helper(cpu, now), cpu);
	return 0;
}

/* No task of ours runs on @cpu. Tasks wait there, or were released there uncounted (parking.h). */
static __always_inline bool idles_beside_tasks(s32 cpu, const struct cpu_state *cs)
{
	return cs->uncounted || waiting_length(cpu) || local_length(cpu);
}

/*
 * Make the idle @cpu look for work. If it does not for long, the kernel has begun to take it
 * offline: then its tasks go to the kernel's own queue, also those that no other CPU may run.
 */
static __always_inline void look_again(s32 cpu, struct cpu_state *cs, u64 now)
{
	if (cpu_curr_idle(cpu) && waiting_length(cpu) &&
	    !before(now, cs->dispatched_at + 2 * machine_arm()->rescue_ns))
		give_up_queues(cpu);
	kick_cpu(cpu, KICK_IDLE);
	call_help(cpu, now);
	ensure_slice_timer(cpu, cs, now, now + TAKEN_NS);
}

/*
 * An idle CPU, or one that runs a task of a higher class, gets no tick of ours: its timer looks
 * after the waiting tasks.
 */
static __always_inline void slice_timer_fires(s32 cpu)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 now = cpu_clock(), end = cs->curr_start + cs->curr_slice;

	/*
	 * A full barrier: a task queued from here on finds no timer and starts it, or its weight is
	 * seen below.
	 */
	atomic_swap(&cs->timer_at, 0);
	count(STAT_timer_fire);
	if (!cs->curr_pid && cpu_taken(cpu) && queue_holds(cs)) {
		call_help(cpu, now);
		ensure_slice_timer(cpu, cs, now, now + TAKEN_NS);
	} else if (!cs->curr_pid && idles_beside_tasks(cpu, cs)) {
		look_again(cpu, cs, now);
	} else if (!cs->curr_pid || cpu_away(cpu) || !somebody_waits(cpu, cs) ||
		   (!timer_ends_slice(cs) && !local_length(cpu))) {
		count(STAT_timer_spurious);
	} else if (before(now + SLICE_SLACK_NS, end)) {
		ensure_slice_timer(cpu, cs, now, end);
	} else {
		count(STAT_preempt_slice);
		kick_cpu(cpu, KICK_PREEMPT);
		call_help(cpu, now);
	}
}

#endif /* ROOST_SLICE_TIMER_H */
