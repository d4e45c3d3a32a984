/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delayed migration: the task waits in the queue of its waker's CPU, and a timer of that CPU moves it (policy/delay_migration.h
 * decides both).
 *
 * One timer per CPU, as for slices: armed for whose time comes first, never cancelled. When it fires it goes through the queue,
 * moves those whose time has come, and arms itself for the next; if nobody is left it has fired for nothing. Should it be lost,
 * the tick of its CPU arms it again. Frequencies are not looked at again: the source does not either.
 */
#ifndef ROOST_DELAY_QUEUE_H
#define ROOST_DELAY_QUEUE_H

#include "delay_migration.h"
#include "slice_timer.h"

/* So late the timer is as good as lost. ns */
#define DELAY_LATE_NS 2000000ULL

subprog u32 delay_timer_start(s32 cpu, u64 now, u64 at)
{
	struct cpu_state *cs = cpu_state(cpu);

	cs->delay_timer_at = at;
	count(STAT_delay_timer_arm);
	if (start_delay_timer(cpu, time_until(at, now)))
		cs->delay_timer_at = 0;
	return 0;
}

static __always_inline void arm_delay_timer(s32 cpu, struct cpu_state *cs, u64 now, u64 at)
{
	if (!tunables()->timers)
		return;
	if (cs->delay_timer_at && !before(at, cs->delay_timer_at) && before(now, cs->delay_timer_at + DELAY_LATE_NS))
		return;
	delay_timer_start(cpu, now, at);
}

/* The task runs on @cpu, or is queued anew (NO_CPU), and has not moved. */
static __always_inline void delay_ends(struct task_state *ts, s32 cpu, u64 now)
{
	u64 began;

	if (!ts->delay_at)
		return;
	began = delay_runs(ts, cpu, now);
	if (began)
		hist_for(ts->pol.arm, HIST_delay_wait, waited_since(began, now));
}

/* The tick of a CPU whose timer is overdue. */
static __always_inline void delay_watch(s32 cpu, struct cpu_state *cs, u64 now)
{
	if (!tunables()->timers || !cs->delay_timer_at || before(now, cs->delay_timer_at + DELAY_LATE_NS))
		return;
	count(STAT_delay_late);
	if (waiting_length(cpu)) {
		mark_waiting(cpu);
		delay_timer_start(cpu, now, now);
	} else {
		cs->delay_timer_at = 0;
	}
}

/* A look through a queue: what it came to, and the task at hand, which belongs to others once it has moved. */
struct delay_pass {
	u64 next;   /* ns: when the next task's delay is over; 0: none waits */
	bool more;  /* it ended before the queue did */
	u32 moved;  /* tasks */
	u32 stay;   /* those that do not move after all */
	u64 began;  /* ns: when the task at hand was placed */
	s32 placed; /* where; its claim is there */
	u32 arm;
};

/* The task at hand does not move: others may have it. */
static __always_inline void delay_stays(struct delay_pass *pass, enum roost_stat why)
{
	delay_unclaim(pass->arm, pass->placed, pass->began);
	count_for(pass->arm, why);
	pass->stay++;
}

/* It has moved to @to, and keeps others away itself: [delay_hold_claim] its claim may end. */
subprog u32 delay_moved(s32 to, u64 now, struct delay_pass *pass nonnull)
{
	struct cpu_state *cs = cpu_state(to);

	delay_unclaim(pass->arm, pass->placed, pass->began);
	if (to != pass->placed)
		count_for(pass->arm, STAT_delay_repick);
	count_for(pass->arm, STAT_delay_expire);
	pass->moved++;
	/* Who runs there ends its slice on time, though nobody waits in its queue. */
	if (cs->curr_pid)
		arm_slice_timer(to, cs, now, cs->curr_start + cs->curr_slice);
	return 0;
}

/* Has the task's time come? */
static __always_inline bool delay_turn(const struct task_state *ts, u64 now, struct delay_pass *pass)
{
	u64 at = ts->delay_at;

	if (!at || delay_due(ts, now))
		return at;
	if (!pass->next || before(at, pass->next))
		pass->next = at;
	return false;
}

/*
 * Where a task of the queue goes now. NO_CPU: it goes nowhere. A subprogram: 6.18's verifier gives up on a loop over a queue
 * that compares times itself.
 */
subprog s32 delay_leaves(port_task *p trusted, u64 now, struct delay_pass *pass nonnull)
{
	struct task_state *ts = task_state_if(p);
	s32 to;

	if (!ts || !delay_turn(ts, now, pass))
		return NO_CPU;
	pass->placed = ts->delay_cpu - 1;
	pass->arm = ts->pol.arm;
	pass->began = delay_take(ts);
	if (!pass->began)
		return NO_CPU;
	hist_for(pass->arm, HIST_delay_wait, waited_since(pass->began, now));
	to = task_pinned(p) ? NO_CPU : delay_goes_to(p, ts, now);
	if (to != NO_CPU && cpu_is_ours(to)) {
		ts->sent = 1;
		return to;
	}
	delay_stays(pass, STAT_delay_disallowed);
	return NO_CPU;
}

/* The kernel did not move it: it has just been taken from the queue. */
subprog u32 delay_refused(port_task *p trusted, struct delay_pass *pass nonnull)
{
	struct task_state *ts = task_state_if(p);

	if (ts)
		ts->sent = 0;
	delay_stays(pass, STAT_delay_refused);
	return 0;
}

/*
 * Move those of @queue whose time has come, of so many as are looked at with interrupts off.
 * A task that was taken off and queued anew since the loop came to it is not moved: the kernel sees that it is not where the
 * loop found it. So its mask, looked at before, still holds. Since Linux 7.1 a CPU that cannot run it at once sends it to its
 * queue (ENQ_IMMED); before, it is next there, and should a real-time task have come since cpu_is_ours() looked, after that one.
 */
subprog u32 delay_expire(u32 queue, u64 now, struct delay_pass *pass nonnull)
{
	port_task *p;
	u32 looks = 0;

	for_each_queued(p, queue)
	{
		s32 to = delay_leaves(p, now, pass);

		if (to == NO_CPU)
			;
		else if (queued_move_to(p, to, ENQ_IMMED))
			delay_moved(to, now, pass);
		else
			delay_refused(p, pass);
		if (++looks == QUEUE_LOOKS_MAX) {
			pass->more = true;
			break;
		}
	}
	return 0;
}

static __always_inline void delay_timer_fires(s32 cpu)
{
	struct delay_pass pass = {};
	struct cpu_state *cs = cpu_state(cpu);
	u64 now = cpu_clock();

	cs->delay_timer_at = 0;
	count(STAT_delay_timer_fire);
	delay_expire(young_queue(cpu), now, &pass);
	if (cs->old_waits)
		delay_expire(old_queue(cpu), now, &pass);
	if (pass.more && pass.moved)
		arm_delay_timer(cpu, cs, now, now);
	else if (pass.next)
		arm_delay_timer(cpu, cs, now, pass.next);
	if (pass.stay || (pass.more && !pass.moved))
		call_help(cpu, now);
	else if (!pass.moved && !pass.next)
		count(STAT_delay_timer_spurious);
}

#endif /* ROOST_DELAY_QUEUE_H */
