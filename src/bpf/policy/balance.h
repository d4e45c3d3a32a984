/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Balance of busy CPUs (kernel: sched_balance_rq()).
 *
 * Problem: weights hold across CPUs only if their queues advance alike.
 *
 * Method: every BALANCE_NS the tick of a busy CPU looks for a queue from which to fetch a task:
 *
 *  - in its LLC, one that outweighs its own by more than two of that queue's tasks;
 *  - in its LLC, one that is behind its own by AHEAD_NS. No move of a task evens out three tasks on
 *    two CPUs, for example; this way they take turns. The kernel leaves such an imbalance as it is,
 *    within imbalance_pct;
 *  - in another LLC, a different one each time, if both the CPUs' mean load and the queue's weight
 *    are higher there.
 *
 * Limits: one task is fetched at a time, and none from a queue whose first task ran a moment ago.
 */
#ifndef ROOST_BALANCE_H
#define ROOST_BALANCE_H

#include "steal.h"

/* How often a CPU looks, ns */
#define BALANCE_NS  20000000ULL

/* How far the tasks of a CPU may be ahead of another's, in its own running time, ns */
#define AHEAD_NS    50000000ULL

/*
 * A CPU that is behind by more than this, in units of AHEAD_NS, has been idle. Its tasks are not
 * owed that time.
 */
#define AHEAD_LIMIT 4

/* @other's queue, of weight @most, outweighs one of weight @own by more than two of its tasks. */
static __always_inline bool outweighs(s32 other, u64 most, u64 own)
{
	return other != NO_CPU && most - own > 2 * most / (waiting_length(other) + 1);
}

/* The heaviest queue of @llc, if it outweighs @cpu's; else NO_CPU. */
subprog s32 heavier_queue(s32 cpu, u32 llc)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u64 own = cpu_state(cpu)->weight, most = own;
	s32 heaviest = NO_CPU;
	u32 i;

	for_below (i, f->nr_cpus, MAX_CPUS) {
		s32 other = llc_cpu(f->first + i);

		if (cpu_state(other)->weight <= most || !set_has(SET_WAITING, llc, i) ||
		    !same_domain(other, cpu))
			continue;
		most = cpu_state(other)->weight;
		heaviest = other;
	}
	return outweighs(heaviest, most, own) ? heaviest : NO_CPU;
}

/*
 * Of the heavier queues in @cpu's LLC, the one that is furthest behind its own, if far enough; else
 * NO_CPU.
 */
subprog s32 slower_queue(s32 cpu)
{
	const volatile struct llc_facts *f = llc_facts(cpu_facts(cpu)->llc);
	struct cpu_state *own = cpu_state(cpu);
	u64 ahead = to_virtual(AHEAD_NS, own->weight ? own->weight : NICE0_WEIGHT);
	u64 least = own->progress, first = own->progress;
	s32 slowest = NO_CPU;
	u32 i;

	for_below (i, f->nr_cpus, MAX_CPUS) {
		s32 other = llc_cpu(f->first + i);
		struct cpu_state *cs = cpu_state(other);

		if (before(first, cs->progress))
			first = cs->progress;
		if (cs->weight <= own->weight || !before(cs->progress, least) ||
		    !set_has(SET_WAITING, cpu_facts(cpu)->llc, i) || !same_domain(other, cpu))
			continue;
		least = cs->progress;
		slowest = other;
	}
	if (before(least + ahead, own->progress))
		return slowest;
	if (before(own->progress + AHEAD_LIMIT * ahead, first))
		own->progress = first - AHEAD_LIMIT * ahead;
	return NO_CPU;
}

/*
 * The CPUs of @llc have more load than those of @own, beyond the tolerance (kernel:
 * sd->imbalance_pct).
 */
static __always_inline bool llc_loaded_more(u32 llc, u32 own)
{
	u64 there = llc_state(llc)->load * llc_facts(own)->nr_cpus;
	u64 here = llc_state(own)->load * llc_facts(llc)->nr_cpus;

	return there * 100 > here * tunables()->imbalance_pct;
}

/* The heavier queue of one other LLC, the next that has waiters, if that LLC has more load. */
subprog s32 uneven_llc(s32 cpu)
{
	struct cpu_state *cs = cpu_state(cpu);
	u32 own = cpu_facts(cpu)->llc;
	s32 llc = next_llc_around(SET_WAITING, cs->balance_llc + 1);

	if (llc == NO_CPU)
		return NO_CPU;
	cs->balance_llc = llc;
	if ((u32)llc == own || !llc_loaded_more(llc, own))
		return NO_CPU;
	return heavier_queue(cpu, llc);
}

/*
 * The queue from which @cpu, which runs a task, should fetch one; NO_CPU: none, or its first task's
 * cache is warm.
 */
static __always_inline s32 queue_to_relieve(s32 cpu, u64 now)
{
	s32 victim = heavier_queue(cpu, cpu_facts(cpu)->llc);

	if (victim == NO_CPU)
		victim = slower_queue(cpu);
	if (victim == NO_CPU && machine_facts()->nr_llcs > 1)
		victim = uneven_llc(cpu);
	if (victim == NO_CPU || queue_hot(victim, cpu, now))
		return NO_CPU;
	return victim;
}

#endif /* ROOST_BALANCE_H */
