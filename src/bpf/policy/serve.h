/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A busy CPU serves another CPU's queue.
 *
 * Problem: no CPU is idle, so none steals. Still some queue is worse off than others (balance.h),
 * or a task of a higher class keeps a CPU and the tasks that wait there, or the kernel is taking
 * the CPU offline.
 *
 * Method: a tick assigns the queue to its own CPU and interrupts the task that runs there. The next
 * dispatch takes a task from that queue. For balance this happens once. A rescue goes on for
 * RESCUE_NS, unless the queue's own CPU dispatches again: tasks of that queue and of the CPU's own
 * run in turn, more of that queue if a crowd waits there. Then a tick chooses again: the queue at
 * which no CPU has looked for the longest time. One CPU at a time rescues from a short queue, any
 * number from a long one. Tasks in the old queue are rescued first: most have waited for longer.
 *
 * Limits: an assignment comes with a tick of a CPU that runs one of our tasks. Only the first
 * QUEUE_LOOKS_MAX tasks of a queue are looked at.
 */
#ifndef ROOST_SERVE_H
#define ROOST_SERVE_H

#include "slice_timer.h"

/*
 * How long an assignment for balance holds, and for how long no CPU looks again at an abandoned
 * queue that offered nothing. ns
 */
#define SERVE_NS     5000000ULL

/* How long a rescue goes on before other queues are considered. ns */
#define RESCUE_NS    20000000ULL

/* A queue with so many waiters is rescued by any number of CPUs at once. */
#define RESCUE_CROWD 16

/* ---- which queue ---- */

/*
 * @cpu has not dispatched for long: a task of a higher class occupies it, or the kernel has begun
 * to take it offline (hotplug.h) and lets it idle.
 */
static __always_inline bool abandoned(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);

	return !cs->curr_pid && (s64)(now - cs->dispatched_at) >= (s64)machine_arm()->rescue_ns &&
	       (cpu_taken(cpu) || cpu_curr_idle(cpu));
}

/*
 * Enough CPUs rescue tasks of @cpu's queue, or a CPU looked there a moment ago and may take none.
 * Signed: the clocks of two CPUs differ a little.
 */
static __always_inline bool is_rescued(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);

	if (before(now, cs->rescued_until))
		return waiting_length(cpu) < RESCUE_CROWD;
	return (s64)(now - cs->looked_at) < (s64)SERVE_NS;
}

/* Of two CPUs whose queues are abandoned, the one at which no CPU has looked for longer. */
static __always_inline s32 longer_abandoned(s32 best, s32 cpu)
{
	if (best != NO_CPU && !before(cpu_state(cpu)->looked_at, cpu_state(best)->looked_at))
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

			if (other != cpu && abandoned(other, now) && !is_rescued(other, now) &&
			    same_domain(other, cpu))
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

/* The CPU has a queue to serve already. */
static __always_inline bool serves(const struct cpu_state *cs, u64 now)
{
	return cs->assigned_cpu && before(now, cs->serve_until);
}

/* How many tasks of @victim's queue a rescuer runs for each one of its own. */
static __always_inline u32 serve_turns(s32 victim)
{
	return 1 + waiting_length(victim) / LATE_CROWD;
}

/* Have @cpu, which runs a task, take one from @victim's queue next, within @ns. */
static __always_inline void assign(struct cpu_state *cs, s32 victim, bool balances, u64 now, u64 ns)
{
	cs->assigned_cpu = victim + 1;
	cs->serve_until = now + ns;
	cs->serve_turns = serve_turns(victim);
	cs->assigned_balances = balances;
}

/*
 * Assign @victim's queue to @cpu for balance. All CPUs of an LLC see the same queue, so only one at
 * a time gets it. False: another has it, or @cpu has a queue to serve already.
 */
static __always_inline bool assign_for_balance(s32 cpu, s32 victim, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 *at = &cpu_state(victim)->served_at, last = *at;

	if (serves(cs, now) || (s64)(now - last) < (s64)SERVE_NS || !atomic_cas(at, last, now))
		return false;
	assign(cs, victim, true, now, SERVE_NS);
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
	u32 looks = from_zero;

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
 * Have @cpu, which runs a task, take one from @victim's queue next, for balance. If none there may
 * run on @cpu, the queue still counts as served for a while, so that others search further.
 */
subprog u32 balance_from(s32 cpu, s32 victim, u64 now)
{
	if (!assign_for_balance(cpu, victim, now))
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

/* Rescue tasks of @victim's queue, if one of the first may run on @cpu. */
subprog u32 rescue_from(s32 cpu, s32 victim, u64 now)
{
	struct cpu_state *theirs = cpu_state(victim);
	u64 last = theirs->looked_at;

	if (!atomic_cas(&theirs->looked_at, last, now))
		return 0;
	/* It hands tasks to the kernel that no other CPU may run. */
	if (cpu_curr_idle(victim))
		ensure_slice_timer(victim, theirs, now, now + TAKEN_NS);
	if (!queue_offers(victim, cpu))
		return 0;
	theirs->rescued_until = now + RESCUE_NS;
	assign(cpu_state(cpu), victim, false, now, RESCUE_NS);
	kick_cpu(cpu, KICK_PREEMPT);
	return 0;
}

/* Serve an abandoned queue from here, instead of the task that runs here now. */
subprog u32 tick_rescue(s32 cpu, u64 now)
{
	u32 llc = cpu_facts(cpu)->llc;
	u64 *at = &llc_state(llc)->rescue_at, last = *at;
	s32 victim, other;

	/* A CPU that serves already leaves the look to others. */
	if (serves(cpu_state(cpu), now))
		return 0;
	if ((s64)(now - last) < (s64)RESCUE_LOOK_NS || !atomic_cas(at, last, now))
		return 0;
	victim = abandoned_queue(cpu, llc, now);
	other = machine_facts()->nr_llcs > 1 ? abandoned_elsewhere(cpu, now) : NO_CPU;
	if (other != NO_CPU)
		victim = longer_abandoned(victim, other);
	if (victim != NO_CPU)
		rescue_from(cpu, victim, now);
	return 0;
}

/* ---- in dispatch ---- */

/*
 * The queue that @cs is to serve now; NO_CPU: none, or a task of its own runs first (@own: there is
 * one). Called when assigned_cpu is set; clears it, unless the assignment goes on.
 */
static __always_inline s32 assigned_queue(struct cpu_state *cs, bool own, u64 now)
{
	s32 victim = cs->assigned_cpu - 1;
	bool lapsed = !before(now, cs->serve_until);

	if (cs->assigned_balances || lapsed || !abandoned(victim, now)) {
		cs->assigned_cpu = 0;
		return cs->assigned_balances && !lapsed ? victim : NO_CPU;
	}
	if (own && !cs->serve_turns) {
		cs->serve_turns = serve_turns(victim);
		return NO_CPU;
	}
	return victim;
}

/*
 * A task of @victim's queue was rescued. Slices shrink with the crowd that waits there, so that
 * this CPU alone could serve all of it in time, in turn with tasks of its own.
 */
static __always_inline void rescued(struct cpu_state *cs, s32 victim)
{
	u64 cap = slice_cap(wait_bound() / 2, waiting_length(victim));

	count(STAT_rescue);
	if (cs->serve_turns)
		cs->serve_turns--;
	if (cap < cs->slice_cap)
		cs->slice_cap = cap;
}

/* Serve another CPU's queue, which this CPU's tick has assigned to it. @own: as above. */
static __always_inline bool dispatch_assigned(s32 cpu, struct cpu_state *cs, bool own)
{
	s32 from = assigned_queue(cs, own, cpu_clock());

	if (from == NO_CPU)
		return false;
	if (!take_from(from, cpu, !cs->assigned_balances)) {
		cs->assigned_cpu = 0;
		/* Another CPU may be allowed to take what is left. */
		if (!cs->assigned_balances)
			cpu_state(from)->rescued_until = 0;
		return false;
	}
	if (cs->assigned_balances)
		count(STAT_balance_pull);
	else
		rescued(cs, from);
	return true;
}

#endif /* ROOST_SERVE_H */
