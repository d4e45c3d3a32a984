/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Vacant cores: idle ones to which no task is likely to return soon.
 *
 * Problem: tasks that wait for each other, at a barrier or for a step of a build, sleep and wake
 * together. The first to wake sees the cores of those that still sleep as idle. If it moves to one
 * of them, the task that slept there finds its core busy and moves too. So all move at each step,
 * and end up unevenly spread over the LLCs.
 *
 * Method: a core is vacant when it has been idle for twice as long as the task slept. For a task
 * that is sent away while it runs: for as long as its CPU has been busy. The task that left that
 * core probably does not wake together with this one. A core idle for less than the migration cost
 * is never vacant; one idle for ten times that always is. smt_spread takes vacant cores only.
 * core_first passes over an idle CPU only if its LLC has a vacant core.
 *
 * Limits: twice is a guess that tasks which wait together wait about as long. A task that sleeps
 * for more than five times the migration cost may take cores of tasks that sleep as long. The
 * search of an LLC takes any idle core, with core_first too: its task needs a CPU, and waiting is
 * worse. A CPU whose queue a task has joined, or that runs a SCHED_IDLE or real-time task, does not
 * count as idle here.
 */
#ifndef ROOST_VACANT_H
#define ROOST_VACANT_H

#include "wakeup.h"

#define VACANT_SLEEPS 2	 /* multiples of the task's sleep */
#define VACANT_COSTS  10 /* multiples of the migration cost, at most */

/* At least the migration cost, at most VACANT_COSTS of it. ns */
static __always_inline u64 vacant_within(u64 ns)
{
	u64 cost = machine_arm()->migration_cost_ns;

	if (ns < cost)
		return cost;
	return ns < VACANT_COSTS * cost ? ns : VACANT_COSTS * cost;
}

/* How long a core must have been idle to be vacant for a task that wakes. ns */
static __always_inline u64 vacant_for_sleeper(const struct task_state *ts, u64 now)
{
	s64 slept = now - ts->left_at;

	return vacant_within(slept > 0 ? VACANT_SLEEPS * (u64)slept : 0);
}

/* @cpu has been idle for @ns. Signed: the clocks of two CPUs differ a little. */
static __always_inline bool cpu_vacant(s32 cpu, u64 now, u64 ns)
{
	u64 since = *(volatile u64 *)&cpu_state(cpu)->idle_every.since;

	return since && (s64)(now - since) >= (s64)ns;
}

/* Each thread of @cpu's core has been idle for @ns; offline threads do not count. */
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
