/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whose is an idle core? Problem: tasks that wait for each other, at a barrier or for a step of a build, sleep and wake together.
 * The first to wake sees the cores of those that still sleep as idle. If it leaves its own CPU for one of them, the owner finds
 * that busy and leaves for the next: all move at each step, and end unevenly over the LLCs.
 *
 * Method: a core is vacant when it has been idle for twice as long as the task slept, or, for one that is sent away as it runs, for as
 * long as its CPU has been busy: whoever left that core hardly went to sleep with the task, and will hardly wake with it. In any case a core idle for
 * less than a migration costs is not vacant, and one idle for ten times that is. smt_spread takes vacant cores alone; core_first passes
 * over an idle CPU only where its LLC has one.
 *
 * Limits: twice is a guess, that those who wait together wait about as long; whoever sleeps for more than five times what a migration costs
 * may find the cores of others vacant that sleep as long. The search of an LLC, for core_first too, takes any idle core, and a task
 * whose CPU is busy needs one: waiting is worse. Until a task that was sent to an idle CPU runs there, and while one of policy SCHED_IDLE or of
 * a real-time class does, the CPU is not idle here.
 */
#ifndef ROOST_VACANT_H
#define ROOST_VACANT_H

#include "wakeup.h"

#define VACANT_SLEEPS 2	 /* times the sleep of the task */
#define VACANT_COSTS  10 /* times the migration cost, at most */

/* At least the migration cost, at most VACANT_COSTS of it. ns */
static __always_inline u64 vacant_within(u64 ns)
{
	u64 cost = machine_arm()->migration_cost_ns;

	if (ns < cost)
		return cost;
	return ns < VACANT_COSTS * cost ? ns : VACANT_COSTS * cost;
}

/* How long a core has to be idle to be vacant for a task that wakes. ns */
static __always_inline u64 vacant_for_sleeper(const struct task_state *ts, u64 now)
{
	s64 slept = now - ts->left_at;

	return vacant_within(slept > 0 ? VACANT_SLEEPS * (u64)slept : 0);
}

/* @cpu has been idle for @ns; another clock may be a little behind this one. */
static __always_inline bool cpu_vacant(s32 cpu, u64 now, u64 ns)
{
	u64 since = *(volatile u64 *)&cpu_state(cpu)->idle_every.since;

	return since && (s64)(now - since) >= (s64)ns;
}

/* So has each thread of its core. */
subprog bool core_vacant(s32 cpu, u64 now, u64 ns)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	if (!cpu_vacant(cpu, now, ns))
		return false;
	for_below (i, f->nr_sib, MAX_SMT)
		if (!cpu_away(sibling(f, i)) && !cpu_vacant(sibling(f, i), now, ns))
			return false;
	return true;
}

#endif /* ROOST_VACANT_H */
