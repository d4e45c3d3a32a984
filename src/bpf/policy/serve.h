/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A busy CPU serves another CPU's queue.
 *
 * Problem: no CPU is idle, so none steals. Still some queue is worse off than others (balance.h),
 * or a task of a higher class keeps a CPU and the tasks that wait there.
 *
 * Method: a tick assigns the queue to its own CPU and interrupts the task that runs there. The next
 * dispatch takes a task from that queue. For balance this happens once. A rescue goes on until the
 * queue's own CPU dispatches again or the queue is empty: tasks of it and of the CPU's own run in
 * turn, more of it if a crowd waits there. One CPU serves a short queue, any number of CPUs a long
 * one.
 *
 * Limits: an assignment comes with a tick of a CPU that runs one of our tasks. Only the first
 * QUEUE_LOOKS_MAX tasks of a queue are looked at.
 */
#ifndef ROOST_SERVE_H
#define ROOST_SERVE_H

#include "steal.h"

/* An assignment that is not carried out within this lapses. ns */
#define SERVE_NS     5000000ULL

/* A queue with so many waiters is rescued by any number of CPUs at once. */
#define RESCUE_CROWD 16

/* ---- which queue ---- */

/* A task of a higher class occupies @cpu, which has not dispatched for long. */
static __always_inline bool abandoned(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);

	return !cs->curr_pid && (s64)(now - cs->dispatched_at) >= (s64)machine_arm()->rescue_ns &&
	       cpu_taken(cpu);
}

/* Enough CPUs serve @cpu's queue. Signed: the clocks of two CPUs differ a little. */
static __always_inline bool is_served(s32 cpu, bool balances, u64 now)
{
	return (s64)(now - cpu_state(cpu)->served_at) < (s64)SERVE_NS &&
	       (balances || waiting_length(cpu) < RESCUE_CROWD);
}

/* Of two CPUs whose queues are abandoned, the one that has not been served for longer. */
static __always_inline s32 longer_abandoned(s32 best, s32 cpu)
{
	if (best != NO_CPU && !before(cpu_state(cpu)->served_at, cpu_state(best)->served_at))
		return best;
	return cpu;
}

/*
 * A CPU of @llc whose queue is abandoned; NO_CPU if there is none. All are checked, because the
 * first may never hold a task that may run on @cpu.
 */
subprog s32 abandoned_queue(s32 cpu, u32 llc, u64 now)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u32 nr_words = f->nr_words, i;
	s32 best = NO_CPU;

	for_below (i, nr_words, CPU_WORDS) {
		u64 word = *set_word(SET_WAITING, llc, i * WORD_BITS);

		for (; word && may_loop; word &= word - 1) {
			s32 other = llc_cpu(f->first + i * WORD_BITS + lowest_bit(word));

			if (other != cpu && abandoned(other, now) &&
			    !is_served(other, false, now) && same_domain(other, cpu))
				best = longer_abandoned(best, other);
		}
	}
	return best;
}

/*
 * As above, in one other LLC, the next that has waiters: real-time tasks may occupy all CPUs of a
 * small LLC. Each tick checks another LLC.
 */
subprog s32 abandoned_elsewhere(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	s32 llc = next_llc_around(SET_WAITING, cs->rescue_llc + 1);

	if (llc == NO_CPU)
		return NO_CPU;
	cs->rescue_llc = llc;
	return abandoned_queue(cpu, llc, now);
}

/* ---- a queue is assigned ---- */

/* How many tasks of @victim's queue a rescuer runs for each one of its own. */
static __always_inline u32 serve_turns(s32 victim)
{
	return 1 + waiting_length(victim) / LATE_CROWD;
}

/*
 * Have @cpu, which runs a task, take one from @victim's queue next. All CPUs of an LLC see the same
 * queue. False: enough CPUs serve it, or @cpu has a queue to serve already.
 */
static __always_inline bool assign_queue(s32 cpu, s32 victim, bool balances, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 *at = &cpu_state(victim)->served_at, last = *at;

	if (cs->assigned_cpu && before(now, cs->serve_until))
		return false;
	if (is_served(victim, balances, now) || !atomic_cas(at, last, now))
		return false;
	cs->assigned_cpu = victim + 1;
	cs->serve_until = now + SERVE_NS;
	cs->serve_turns = serve_turns(victim);
	cs->assigned_balances = balances;
	return true;
}

/*
 * One of the first tasks of @queue may run on @cpu. Checks as many as take_among() does, because
 * pinned tasks may stay in front for long.
 */
subprog bool offers_among(u32 queue, s32 cpu)
{
	port_task *p;
	bool offers = false;
	u32 looks = 0;

	for_each_queued(p, queue)
	{
		offers = !task_pinned(p) && task_allowed(p, cpu);
		if (offers || ++looks == QUEUE_LOOKS_MAX)
			break;
	}
	return offers;
}

static __always_inline bool queue_offers(s32 victim, s32 cpu)
{
	return offers_among(young_queue(victim), cpu) ||
	       (cpu_state(victim)->old_waits && offers_among(old_queue(victim), cpu));
}

/*
 * Have @cpu, which runs a task, take one from @victim's queue next. If none there may run on @cpu,
 * the queue still counts as served for a while, so that others search further.
 */
subprog u32 serve_from(s32 cpu, s32 victim, bool balances, u64 now)
{
	if (!assign_queue(cpu, victim, balances, now))
		return 0;
	if (queue_offers(victim, cpu))
		kick_cpu(cpu, KICK_PREEMPT);
	else
		cpu_state(cpu)->assigned_cpu = 0;
	return 0;
}

/* ---- rescue ---- */

/*
 * How often the CPUs of an LLC together look for abandoned queues. Each look reads what others
 * write. ns
 */
#define RESCUE_LOOK_NS 1000000ULL

/* Serve an abandoned queue from here, instead of the task that runs here now. */
subprog u32 tick_rescue(s32 cpu, u64 now)
{
	u32 llc = cpu_facts(cpu)->llc;
	u64 *at = &llc_state(llc)->rescue_at, last = *at;
	s32 victim;

	if ((s64)(now - last) < (s64)RESCUE_LOOK_NS || !atomic_cas(at, last, now))
		return 0;
	victim = abandoned_queue(cpu, llc, now);
	if (victim == NO_CPU && machine_facts()->nr_llcs > 1)
		victim = abandoned_elsewhere(cpu, now);
	if (victim != NO_CPU)
		serve_from(cpu, victim, false, now);
	return 0;
}

/* ---- in dispatch ---- */

/*
 * The queue that was assigned to @cs; NO_CPU if that has lapsed, or a task of the CPU's own is to
 * run first. Called when assigned_cpu is set; clears it, except before that task.
 */
static __always_inline s32 assigned_queue(struct cpu_state *cs, u64 now)
{
	s32 victim = cs->assigned_cpu - 1;

	if (!before(now, cs->serve_until)) {
		cs->assigned_cpu = 0;
		return NO_CPU;
	}
	if (!cs->serve_turns) {
		cs->serve_turns = serve_turns(victim);
		cs->serve_until = now + SERVE_NS;
		return NO_CPU;
	}
	cs->assigned_cpu = 0;
	return victim;
}

/* A task of @victim's queue was rescued to @cs. If others still need it, the next one follows. */
static __always_inline void rescue_goes_on(struct cpu_state *cs, s32 victim, u64 now)
{
	if (!abandoned(victim, now))
		return;
	cs->serve_turns--;
	cs->assigned_cpu = victim + 1;
	cs->serve_until = now + SERVE_NS;
	cpu_state(victim)->served_at = now;
}

/* Serve another CPU's queue, which this CPU's tick has assigned to it. */
static __always_inline bool dispatch_assigned(s32 cpu, struct cpu_state *cs)
{
	u64 now = cpu_clock();
	s32 from = assigned_queue(cs, now);

	if (from == NO_CPU || !take_from(from, cpu))
		return false;
	if (cs->assigned_balances) {
		count(STAT_balance_pull);
		return true;
	}
	count(STAT_rescue);
	rescue_goes_on(cs, from, now);
	return true;
}

#endif /* ROOST_SERVE_H */
