/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Aging: nobody waits for ever.
 *
 * Problem: the kernel ends a scheduler under which a task that can run does not for 5 s. By deadline
 * alone a light task among many waits longer; so does each of thousands; and a change of affinity,
 * policy or group puts a task that waits into a queue anew.
 * Method: a CPU has two queues, both ordered by deadline. What comes goes into the young one, and
 * the earliest deadline of both runs. After each turn they change roles: the young one, with all
 * that waits, becomes the old one. If the old one is not empty by the end of its turn, then it is
 * late, and is served out of turn until it is empty. No queue is walked for it.
 * Slices shrink with the number of those that wait. While a queue is late no wakeup interrupts.
 * A task keeps the time since when it waits over all changes, as the kernel does. One that is queued
 * anew after a long wait goes into the old queue, unless that is late; after a very long one it runs
 * at once, if no other is about to.
 *
 * The bound, for a task that some CPU of our class may run: half of the watchdog's time, B. It is
 * in the young queue for at most a turn and the rest of a late one, and as long in the old queue:
 * 2 * (turn + late) is 0.83 B, and three slices that end after the moment are 0.12 B. With 10,000
 * that wait for one CPU the least slice makes it 0.98 B.
 * Limits: waiting for a task of a higher class is the kernel's. Where there are no timers
 * (PREEMPT_RT) a slice is at least a tick.
 */
#ifndef ROOST_AGING_H
#define ROOST_AGING_H

#include "queue.h"

/*
 * Parts of the bound: a turn; the service of a late queue; the longest slice, 100 ms; how long a task
 * that is queued anew has waited so that it goes into the old queue, or runs.
 */
#define TURN_PARTS    4
#define LATE_PARTS    6
#define SLICE_PARTS   25
#define OLD_PARTS     16
#define OVERDUE_PARTS 3

/* No slice is shorter: ns. */
#define SLICE_CAP_MIN 25000ULL

/* For each so many in a late queue one more of them is served before the earliest deadline is. */
#define LATE_CROWD    1024

static __always_inline u64 wait_bound(void)
{
	return tunables()->wait_bound_ns;
}

/* The number of a CPU's queue: each CPU has two. */
static __always_inline u32 queue_id(s32 cpu, u32 which)
{
	return (u32)cpu + (which ? MAX_CPUS : 0);
}

static __always_inline u32 young_queue(s32 cpu)
{
	return queue_id(cpu, cpu_state(cpu)->young);
}

static __always_inline u32 old_queue(s32 cpu)
{
	return queue_id(cpu, !cpu_state(cpu)->young);
}

/* The other one of the same CPU. */
static __always_inline u32 other_queue(u32 queue)
{
	return queue ^ MAX_CPUS;
}

/* How many wait for @cpu. */
static __always_inline u32 waiting_length(s32 cpu)
{
	u32 young = queue_length(young_queue(cpu));

	return cpu_state(cpu)->old_waits ? young + queue_length(old_queue(cpu)) : young;
}

/* The queue of @cpu whose first task has the earliest deadline; *@head is that task, NULL if nobody waits. */
static __always_inline u32 first_queue(s32 cpu, port_task **head)
{
	u32 young = young_queue(cpu), old = old_queue(cpu);
	port_task *older;

	*head = queue_head(young);
	if (!cpu_state(cpu)->old_waits)
		return young;
	older = queue_head(old);
	if (!older || (*head && before(task_key(*head), task_key(older))))
		return young;
	*head = older;
	return old;
}

static __always_inline port_task *first_waiting(s32 cpu)
{
	port_task *head;

	first_queue(cpu, &head);
	return head;
}

/* ---- a task that is queued anew ---- */

/* It begins to wait, unless it did already. */
static __always_inline void wait_begins(struct task_state *ts, u64 now)
{
	if (!ts->waits_since)
		ts->waits_since = now;
}

static __always_inline u64 waited(const struct task_state *ts, u64 now)
{
	return ts->waits_since ? waited_since(ts->waits_since, now) : 0;
}

/* It has waited so long that it is not queued again. */
static __always_inline bool overdue(const struct task_state *ts, u64 now)
{
	return waited(ts, now) >= wait_bound() / OVERDUE_PARTS;
}

/*
 * The queue of @cpu that takes the task. While the old one is late it takes none: with enough tasks
 * that are queued anew it would never be empty, and the young one would never have its turn.
 */
static __always_inline u32 queue_for(s32 cpu, const struct task_state *ts, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);

	if (cs->late || waited(ts, now) < wait_bound() / OLD_PARTS)
		return young_queue(cpu);
	cs->old_waits = 1;
	return old_queue(cpu);
}

/* ---- turns ---- */

/* So long a slice may be if each of @length shall run within @ns; half of it may go to switches. */
static __always_inline u64 slice_cap(u64 ns, u32 length)
{
	u64 cap = ns / 2 / (length + 1), longest = wait_bound() / SLICE_PARTS;

	if (cap > longest)
		return longest;
	return cap > SLICE_CAP_MIN ? cap : SLICE_CAP_MIN;
}

/* What was the young queue is now the old one. */
static __always_inline void turn_begins(s32 cpu, struct cpu_state *cs, u64 now)
{
	u64 turn = wait_bound() / TURN_PARTS;
	u32 length;

	cs->young = !cs->young;
	length = queue_length(old_queue(cpu));
	cs->old_waits = length > 0;
	cs->late = 0;
	cs->slice_cap = slice_cap(turn, length);
	cs->turn_at = now + turn;
}

static __always_inline void late_begins(struct cpu_state *cs, u32 length)
{
	u32 crowds = 1 + length / LATE_CROWD;

	cs->late = crowds;
	cs->late_turns = crowds;
	cs->slice_cap = slice_cap(wait_bound() / LATE_PARTS, length + length / crowds);
}

/* The turn of @cpu's queues is over: the old one is late, or the next turn begins. */
subprog u32 turn_over(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u32 length = cs->old_waits ? queue_length(old_queue(cpu)) : 0;

	if (!length)
		turn_begins(cpu, cs, now);
	else if (!cs->late)
		late_begins(cs, length);
	return 0;
}

/* The first of @cpu's late queue is to run next, for the least slice: with all of its request a crowd would get more than it is due. */
subprog bool serve_late(s32 cpu)
{
	u32 old = old_queue(cpu);
	port_task *head = queue_head(old);
	struct task_state *ts = head ? task_state_if(head) : NULL;

	if (!queue_take(old))
		return false;
	/* If it was not that one that was taken, its request is over a little early. */
	if (ts)
		ts->deadline = ts->vruntime;
	count(STAT_hungry);
	return true;
}

/* Does the old queue go before all others now? */
static __always_inline bool late_turn(struct cpu_state *cs)
{
	if (!cs->late)
		return false;
	if (cs->late_turns) {
		cs->late_turns--;
		return true;
	}
	cs->late_turns = cs->late;
	return false;
}

#endif /* ROOST_AGING_H */
