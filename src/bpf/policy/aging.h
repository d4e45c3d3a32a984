/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Aging: no task waits forever.
 *
 * Problem: the kernel's watchdog ends a scheduler under which a runnable task does not run for 10 s
 * (timeout_ms in main.bpf.c). By deadline alone, a task of low weight among many waits longer, and
 * so does each of thousands. A change of affinity, policy or group also makes the kernel queue a
 * waiting task again.
 *
 * Method: a CPU has two queues, both ordered by deadline. New arrivals go into the young one, and
 * the next one is picked from both (pick.h). After each turn the queues change roles:
 * the young one, with all its tasks, becomes the old one. If the old one is not empty at the end of
 * its turn, it is late: it is served out of turn until it is empty. This needs no walk over a
 * queue.
 * Slices shrink as the number of waiting tasks grows, and with the part of the CPU that tasks of
 * higher classes leave. While a queue is late, a wakeup preempts only a SCHED_IDLE task.
 * When the kernel queues a task again, the task's wait goes on, as in the kernel's own count. After
 * a long wait it then goes into the old queue, unless that is late. After a very long wait it runs
 * at once, unless another task is about to.
 *
 * The bound B is a quarter of the watchdog's time. The watchdog itself is a work item, due every
 * half of that time (scx_watchdog_workfn()), and it may wait twice: for the thread that handles its
 * timer, then for its worker. B holds for a task that may use some CPU on which no task of a higher
 * class runs. The task is in the young queue for at most a turn and the rest of a late one, and as
 * long in the old queue: 2 * (turn + late) is 0.83 B. Three slices that run past their end are
 * 0.12 B. With 10,000 tasks that wait for one CPU the least slice makes it 0.98 B.
 *
 * Limits: a wait for a task of a higher class is the kernel's. Without timers (PREEMPT_RT) a slice
 * is at least a tick.
 */
#ifndef ROOST_AGING_H
#define ROOST_AGING_H

#include "queue.h"

/*
 * Divisors of the bound. They give a turn; the service of a late queue; the longest slice, 100 ms;
 * and how long a task that is queued again must have waited to go into the old queue, or to run.
 */
#define TURN_PARTS    4
#define LATE_PARTS    6
#define SLICE_PARTS   25
#define OLD_PARTS     16
#define OVERDUE_PARTS 3

/* No slice is shorter. ns */
#define SLICE_CAP_MIN 25000ULL

/*
 * A kernel that has ext_server keeps this part of a CPU for our class beside real-time tasks: 50 ms
 * of each second.
 */
#define KEPT_PARTS    20

/*
 * For each LATE_CROWD tasks in a late queue one more of them is served before the earliest
 * deadline.
 */
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

/* The other queue of the same CPU. */
static __always_inline u32 other_queue(u32 queue)
{
	return queue ^ MAX_CPUS;
}

/* How many tasks wait for @cpu. */
static __always_inline u32 waiting_length(s32 cpu)
{
	u32 young = queue_length(young_queue(cpu));

	return cpu_state(cpu)->old_waits ? young + queue_length(old_queue(cpu)) : young;
}

/*
 * The queue of @cpu whose first task has the earliest deadline; *@head is that task, NULL if none
 * waits.
 */
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

/* As above, but the old queue if a task waits there. */
static __always_inline u32 oldest_queue(s32 cpu, port_task **head)
{
	*head = cpu_state(cpu)->old_waits ? queue_head(old_queue(cpu)) : NULL;
	return *head ? old_queue(cpu) : first_queue(cpu, head);
}

static __always_inline port_task *first_waiting(s32 cpu)
{
	port_task *head;

	first_queue(cpu, &head);
	return head;
}

/* ---- a task that is queued again ---- */

/* The task begins to wait, unless it waits already. */
static __always_inline void wait_begins(struct task_state *ts, u64 now)
{
	if (!ts->waits_since)
		ts->waits_since = now;
}

static __always_inline u64 waited(const struct task_state *ts, u64 now)
{
	return ts->waits_since ? waited_since(ts->waits_since, now) : 0;
}

/* The task has waited so long that it should run now. */
static __always_inline bool overdue(const struct task_state *ts, u64 now)
{
	return waited(ts, now) >= wait_bound() / OVERDUE_PARTS;
}

/*
 * The queue of @cpu that takes the task. A late old queue takes none: enough tasks that are queued
 * again would keep it from becoming empty, and the young one would never have its turn.
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

/*
 * What tasks of higher classes, and interrupts, leave of the next @ns on @cpu, if they go on as
 * they did lately. The signal of a real-time task halves in each 32 ms that our tasks run instead.
 * So a turn that begins late in such a window counts on too much; the next one corrects it.
 */
static __always_inline u64 left_for_us(s32 cpu, u64 ns)
{
	u64 taken = cpu_rt_util(cpu), least = CAPACITY_SCALE / KEPT_PARTS;

	return ns * (taken + least < CAPACITY_SCALE ? CAPACITY_SCALE - taken : least) /
	       CAPACITY_SCALE;
}

/*
 * The slice with which @length tasks all run in @ns of the CPU. Half of that may go to context
 * switches.
 */
static __always_inline u64 slice_cap(u64 ns, u32 length)
{
	u64 cap = ns / 2 / (length + 1), longest = wait_bound() / SLICE_PARTS;

	if (cap > longest)
		return longest;
	return cap > SLICE_CAP_MIN ? cap : SLICE_CAP_MIN;
}

/* The young queue becomes the old one. */
static __always_inline void turn_begins(s32 cpu, struct cpu_state *cs, u64 now)
{
	u64 turn = wait_bound() / TURN_PARTS;
	u32 length;

	cs->young = !cs->young;
	length = queue_length(old_queue(cpu));
	cs->old_waits = length > 0;
	cs->late = 0;
	cs->slice_cap = slice_cap(left_for_us(cpu, turn), length);
	cs->turn_at = now + turn;
}

static __always_inline void late_begins(s32 cpu, struct cpu_state *cs, u32 length)
{
	u32 crowds = 1 + length / LATE_CROWD;
	u64 service = wait_bound() / LATE_PARTS;

	cs->late = crowds;
	cs->late_turns = crowds;
	cs->slice_cap = slice_cap(left_for_us(cpu, service), length + length / crowds);
}

/* The turn of @cpu's queues is over: the old one is late, or the next turn begins. */
subprog u32 turn_over(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u32 length = cs->old_waits ? queue_length(old_queue(cpu)) : 0;

	if (!length)
		turn_begins(cpu, cs, now);
	else if (!cs->late)
		late_begins(cpu, cs, length);
	return 0;
}

/*
 * Run the first task of @cpu's late queue next, for the minimum slice. With whole requests a crowd
 * would get more than its share.
 */
subprog bool serve_late(s32 cpu)
{
	u32 old = old_queue(cpu);
	port_task *head = queue_head(old);
	struct task_state *ts = head ? task_state_if(head) : NULL;

	if (!queue_take(old))
		return false;
	/* If another task was taken, this one's request ends a little early. */
	if (ts)
		ts->deadline = ts->vruntime + to_virtual(SLICE_CAP_MIN, ts->weight);
	count(STAT_starved);
	return true;
}

/* True: the late queue is served now, ahead of the earliest deadline. */
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
