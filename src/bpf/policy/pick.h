/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pick: which of the tasks in a CPU's queues runs there next (kernel: pick_eevdf()).
 *
 * Problem: by deadline alone a task that has had more than its share may run before one that is
 * owed time. The tasks of a crowd in one group weigh little, so their deadlines are far away and
 * near each other: when they come, all of them run in a row.
 *
 * Method: a task that is ahead of the mean is not eligible. Of those that are, the one with the
 * earliest deadline runs. Queues are ordered by deadline, and mostly their first task is eligible;
 * else a walk looks for the first that is. It reads no task's state: in a queue a task's slice is
 * the virtual rest of its request, so its deadline less its slice is its virtual run time.
 *
 * Limits: a walk looks at PICK_LOOKS tasks of a queue, and at the CPU's other queue only if the
 * first has none. If it finds none, the earliest deadline decides.
 */
#ifndef ROOST_PICK_H
#define ROOST_PICK_H

#include "aging.h"

#define PICK_LOOKS 16

/* The task waits in a queue whose tasks are eligible up to @until. */
static __always_inline bool queued_eligible(port_task *p, u64 until)
{
	return !before(until, task_key(p) - task_slice(p));
}

/* An eligible task of @queue has its deadline before @limit. */
subprog bool has_eligible(u32 queue, u64 until, u64 limit)
{
	port_task *p;
	bool found = false;
	u32 looks = from_zero;

	for_each_queued(p, queue)
	{
		if (!before(task_key(p), limit))
			break;
		found = queued_eligible(p, until);
		if (found || ++looks == PICK_LOOKS)
			break;
	}
	return found;
}

/* An eligible task waits for @cpu whose deadline is before @limit. */
static __always_inline bool waits_eligible(s32 cpu, u64 until, u64 limit)
{
	return has_eligible(young_queue(cpu), until, limit) ||
	       (cpu_state(cpu)->old_waits && has_eligible(old_queue(cpu), until, limit));
}

/* Run the first eligible task of @queue next on @cpu, if its deadline is before @limit. */
subprog bool take_eligible(s32 cpu, u32 queue, u64 limit)
{
	u64 until = eligible_until(cpu_state(cpu));
	port_task *p;
	bool taken = false;
	u32 looks = from_zero;

	for_each_queued(p, queue)
	{
		if (!before(task_key(p), limit))
			break;
		if (queued_eligible(p, until) && task_cpu(p) == cpu)
			taken = queued_move_here(p);
		if (taken || ++looks == PICK_LOOKS)
			break;
	}
	if (taken)
		count(STAT_dispatch_own);
	return taken;
}

/* For take_eligible(): any deadline is before it. */
static __always_inline u64 no_limit(const struct cpu_state *cs)
{
	return cs->avg_vruntime + (1ULL << 62);
}

/* The first task of @queue is not eligible: run one that is next. @limit: as above. */
static __always_inline bool pass_over(s32 cpu, u32 queue, u64 limit)
{
	return take_eligible(cpu, queue, limit) ||
	       (cpu_state(cpu)->old_waits && take_eligible(cpu, other_queue(queue), limit));
}

#endif /* ROOST_PICK_H */
