/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delayed migration: the task waits in the queue of its waker's CPU, and a timer of that CPU moves
 * it. delay_migration.h decides that it waits, delay_wait.h when its delay is over.
 *
 * There is one timer per CPU, as for slices. It is started for the earliest move and never
 * cancelled. When it fires, it walks the queue, moves the tasks whose delay is over, and starts
 * itself for the next. If no delayed task is left, it has fired for nothing. If it is lost, the
 * tick of its CPU starts it again. Frequencies are not checked again, as in the source.
 */
#ifndef ROOST_DELAY_QUEUE_H
#define ROOST_DELAY_QUEUE_H

#include "delay_migration.h"
#include "slice_timer.h"

/* A timer that is this late is as good as lost. ns */
#define DELAY_LATE_NS 2000000ULL

subprog u32 delay_timer_start(s32 cpu, u64 now, u64 at)
{
	struct cpu_state *cs = cpu_state(cpu);

	cs->delay_timer_at = at;
	count(STAT_delay_timer_start);
	if (start_delay_timer(cpu, time_until(at, now)))
		cs->delay_timer_at = 0;
	return 0;
}

static __always_inline void ensure_delay_timer(s32 cpu, struct cpu_state *cs, u64 now, u64 at)
{
	if (!tunables()->timers)
		return;
	if (cs->delay_timer_at && !before(at, cs->delay_timer_at) &&
	    before(now, cs->delay_timer_at + DELAY_LATE_NS))
		return;
	delay_timer_start(cpu, now, at);
}

/* The task runs on @cpu, or is queued again (NO_CPU), and has not moved: end its delay. */
static __always_inline void delay_ends(struct task_state *ts, s32 cpu, u64 now)
{
	u64 began;

	if (!ts->delay_at)
		return;
	began = delay_runs(ts, cpu, now);
	if (began)
		hist_for(ts->pol.arm, HIST_delay_wait, waited_since(began, now));
}

/* From the tick: start the CPU's timer again if it is overdue. */
static __always_inline void delay_watch(s32 cpu, struct cpu_state *cs, u64 now)
{
	if (!tunables()->timers || !cs->delay_timer_at ||
	    before(now, cs->delay_timer_at + DELAY_LATE_NS))
		return;
	count(STAT_delay_late);
	if (waiting_length(cpu)) {
		mark_waiting(cpu);
		delay_timer_start(cpu, now, now);
	} else {
		cs->delay_timer_at = 0;
	}
}

/*
 * A pass over a queue: its results, and data of the current task. They are copied, because a task
 * that has moved belongs to another CPU.
 */
struct delay_pass {
	u64 next;  /* ns: the end of the next delay; 0: none waits */
	bool more; /* the pass ended before the queue did */
	u32 moved; /* tasks */
	u32 stay;  /* tasks that do not move after all */
	u32 arm;
};

/* The current task does not move. */
static __always_inline void delay_stays(struct delay_pass *pass, enum roost_stat why)
{
	count_for(pass->arm, why);
	pass->stay++;
}

/* The current task has moved to @to. */
subprog u32 delay_moved(s32 to, u64 now, struct delay_pass *pass nonnull)
{
	struct cpu_state *cs = cpu_state(to);

	count_for(pass->arm, STAT_delay_expire);
	pass->moved++;
	/*
	 * The task that runs there has to end its slice on time, though no task waits in its queue.
	 */
	if (cs->curr_pid)
		ensure_slice_timer(to, cs, now, cs->curr_start + cs->curr_slice);
	return 0;
}

/* True: the task's delay is over. The end of a delay that is not over is noted in @pass. */
static __always_inline bool delay_turn(const struct task_state *ts, u64 now,
				       struct delay_pass *pass)
{
	u64 at = ts->delay_at;

	if (!at || delay_due(ts, now))
		return at;
	if (!pass->next || before(at, pass->next))
		pass->next = at;
	return false;
}

/*
 * The CPU to which a task of the queue moves now; NO_CPU: it does not move. A subprogram, because
 * 6.18's verifier gives up on a loop over a queue that compares times itself.
 */
subprog s32 delay_leaves(port_task *p trusted, u64 now, struct delay_pass *pass nonnull)
{
	struct task_state *ts = task_state_if(p);
	u64 began;
	s32 to;

	if (!ts || !delay_turn(ts, now, pass))
		return NO_CPU;
	to = ts->delay_cpu - 1;
	pass->arm = ts->pol.arm;
	began = delay_take(ts);
	if (!began)
		return NO_CPU;
	hist_for(pass->arm, HIST_delay_wait, waited_since(began, now));
	if (!task_pinned(p) && task_allowed(p, to) && cpu_is_ours(to)) {
		ts->pushed = 1;
		return to;
	}
	delay_stays(pass, STAT_delay_disallowed);
	return NO_CPU;
}

/* The kernel did not move the task: it has just been taken from the queue. */
subprog u32 delay_refused(port_task *p trusted, struct delay_pass *pass nonnull)
{
	struct task_state *ts = task_state_if(p);

	if (ts)
		ts->pushed = 0;
	delay_stays(pass, STAT_delay_refused);
	return 0;
}

/*
 * Move the tasks of @queue whose delay is over. Interrupts are off, so at most QUEUE_LOOKS_MAX
 * tasks are looked at. A task that was dequeued and queued again since the loop came to it is not
 * moved: the kernel sees that it is not where the loop found it. So the mask that was checked
 * before still holds. Since Linux 7.1 a CPU that cannot run the task at once sends it to its queue
 * (ENQ_IMMED). Before, the task is next there, but a real-time task that came after cpu_is_ours()
 * runs first.
 */
subprog u32 delay_expire(u32 queue, u64 now, struct delay_pass *pass nonnull)
{
	port_task *p;
	u32 looks = from_zero;

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
		ensure_delay_timer(cpu, cs, now, now);
	else if (pass.next)
		ensure_delay_timer(cpu, cs, now, pass.next);
	if (pass.stay || (pass.more && !pass.moved))
		call_help(cpu, now);
	else if (!pass.moved && !pass.next)
		count(STAT_delay_timer_spurious);
}

#endif /* ROOST_DELAY_QUEUE_H */
