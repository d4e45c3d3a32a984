/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stealing.
 *
 * Problem: tasks wait in the queue of one CPU while another has nothing to run.
 *
 * Method: a CPU without work looks for a queue that has waiters, in its LLC, then in the node, then
 * in the machine. CPUs with waiters that others may run are in a set, kept like the set of
 * idle CPUs (cpu_set.h).
 *
 * Limits: a queue in the set may give nothing: its tasks are pinned, or gone. The thief then tries
 * the next one, at most STEAL_TRIES in all, and removes an empty queue from the set. A task that
 * arrives there at that moment is not lost: its own CPU serves it, and that CPU's tick adds the
 * queue again.
 *
 * A task that ran within the last migration_cost has a warm cache where it is: its queue is
 * skipped. The tick or slice timer of its CPU calls for help once it has waited.
 */
#ifndef ROOST_STEAL_H
#define ROOST_STEAL_H

#include "aging.h"
#include "avg_idle.h"
#include "idle_scan.h"

enum { STEAL_TRIES = 16 };

static __always_inline void mark_waiting(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);

	if (!set_has(SET_WAITING, f->llc, f->pos))
		set_add(SET_WAITING, f->llc, f->pos);
}

static __always_inline void unmark_waiting(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);

	if (set_has(SET_WAITING, f->llc, f->pos))
		set_remove(SET_WAITING, f->llc, f->pos);
}

/*
 * The first task of @victim's queue ran a moment ago. Threads of a core share its caches, and a
 * SCHED_IDLE task is not worth the wait (kernel: task_hot()). The time is that of the callback that
 * saw the task stop. The kernel's se.exec_start is of a clock without interrupt time, and these
 * clocks of two CPUs may differ by seconds.
 */
subprog bool queue_hot(s32 victim, s32 thief, u64 now)
{
	port_task *head;
	struct task_state *ts;

	if (share_core(victim, thief))
		return false;
	head = first_waiting(victim);
	ts = head ? task_state_if(head) : NULL;
	return ts && !ts->idle_policy &&
	       (s64)(now - ts->ran_at) < (s64)machine_arm()->migration_cost_ns;
}

/* At most this many tasks of a queue are looked at with interrupts off. */
#define QUEUE_LOOKS_MAX 256

/* Move one of the first tasks of @queue that may run here to @here, this CPU. */
subprog bool take_among(u32 queue, s32 here)
{
	port_task *p;
	bool taken = false;
	u32 looks = from_zero;

	/* The kernel would not take a task of another CPU, and put it into its global queue. */
	if (cpu_leaves(here))
		return false;
	for_each_queued(p, queue)
	{
		/*
		 * Moving a task that may not run here is an error, for which the kernel ends the
		 * scheduler.
		 */
		if (!task_pinned(p) && task_allowed(p, here))
			taken = queued_move_here(p);
		if (taken || ++looks == QUEUE_LOOKS_MAX)
			break;
	}
	return taken;
}

/*
 * Move a waiting task of @victim's to @cpu: that of the earliest deadline, or @old_first one of the
 * old queue. The kernel's own search has no limit, so it is used only if the first task fits.
 */
static __always_inline bool take_from(s32 victim, s32 cpu, bool old_first)
{
	port_task *head;
	u32 queue = old_first ? oldest_queue(victim, &head) : first_queue(victim, &head);

	if (!head)
		return false;
	if (!task_pinned(head) && task_allowed(head, cpu) && !domains_split())
		return queue_take(queue);
	return take_among(queue, cpu) ||
	       (cpu_state(victim)->old_waits && take_among(other_queue(queue), cpu));
}

/* Take one waiting task of @victim's queue. */
subprog bool steal_from_queue(s32 victim, s32 cpu, u64 now)
{
	if (queue_hot(victim, cpu, now))
		return false;
	if (take_from(victim, cpu, false))
		return true;
	count(STAT_steal_miss);
	if (!waiting_length(victim))
		unmark_waiting(victim);
	return false;
}

/* Take one waiting task of any CPU of @llc, from position @start and around to it. */
subprog bool steal_from_llc(s32 cpu, u32 llc, u32 start, u64 now, u32 *tries nonnull)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u32 nr_words = f->nr_words, i;

	for_below (i, nr_words + 1, CPU_WORDS + 1) {
		u32 base = walk_base(i, nr_words, start);
		u64 word = *set_word(SET_WAITING, llc, base) & walk_mask(i, nr_words, start);

		while (word && may_loop) {
			s32 victim = llc_cpu(f->first + base + lowest_bit(word));

			word &= word - 1;
			if (victim == cpu || !same_domain(victim, cpu))
				continue;
			if (*tries == 0)
				return false;
			--*tries;
			if (steal_from_queue(victim, cpu, now))
				return true;
		}
	}
	return false;
}

/* As above, in the LLCs [@from, @end) except its own. */
subprog bool steal_from_llcs(s32 cpu, u32 from, u32 end, u64 now, u32 *tries nonnull)
{
	u32 own = cpu_facts(cpu)->llc;

	while (*tries && may_loop) {
		s32 llc = next_llc(SET_WAITING, from, end);

		if (llc == NO_CPU)
			return false;
		if ((u32)llc != own && steal_from_llc(cpu, llc, 0, now, tries))
			return true;
		from = llc + 1;
	}
	return false;
}

/* Some queue may have a task to steal. */
static __always_inline bool anybody_waits(void)
{
	return set_any(SET_WAITING);
}

/* What a search may still spend. */
struct search {
	u64 now;    /* ns */
	u64 budget; /* ns that are left of the idle period */
	u32 tries;
};

static __always_inline bool search_level(s32 cpu, enum steal_level level, struct search *s)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	const volatile struct node_facts *node = node_facts(f->node);

	if (level == STEAL_LLC)
		return steal_from_llc(cpu, f->llc, f->pos, s->now, &s->tries);
	if (level == STEAL_NODE)
		return steal_from_llcs(cpu, node->first_llc, node->first_llc + node->nr_llcs,
				       s->now, &s->tries);
	return steal_from_llcs(cpu, 0, machine_facts()->nr_llcs, s->now, &s->tries);
}

_Static_assert(STAT_dispatch_steal_llc + STEAL_NODE == STAT_dispatch_steal_node &&
		       STAT_dispatch_steal_llc + STEAL_MACHINE == STAT_dispatch_steal_machine,
	       "a counter for each level, in their order");

/*
 * [avg_idle] Search @level if the idle period is worth it. False: nothing found; @s has what is
 * left.
 */
static __always_inline bool steal_level(s32 cpu, enum steal_level level, struct search *s)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 began, took;
	bool got;

	if (s->budget < cs->steal_cost[level]) {
		count(STAT_steal_skipped);
		s->budget = 0;
		return false;
	}
	began = clock_ns();
	got = search_level(cpu, level, s);
	took = clock_ns() - began;
	search_took(cs, level, took, s->now);
	s->budget = s->budget > took ? s->budget - took : 0;
	if (got)
		count(STAT_dispatch_steal_llc + level);
	return got;
}

/*
 * Give @cpu, which has nothing to run, a waiting task of another CPU: of the LLC, the node, the
 * machine. @asked: a CPU whose task has waited too long has called for help; then time does not
 * limit the search.
 */
static __always_inline bool steal(s32 cpu, u64 now, bool asked)
{
	struct search s = { .now = now, .tries = STEAL_TRIES };

	s.budget = asked ? ~0ULL : search_budget(cpu_state(cpu));
	if (!set_empty(SET_WAITING, cpu_facts(cpu)->llc) && steal_level(cpu, STEAL_LLC, &s))
		return true;
	if (machine_facts()->nr_llcs == 1 || !s.budget)
		return false;
	if (node_facts(cpu_facts(cpu)->node)->nr_llcs > 1 && steal_level(cpu, STEAL_NODE, &s))
		return true;
	if (machine_facts()->nr_nodes == 1 || !s.budget)
		return false;
	return steal_level(cpu, STEAL_MACHINE, &s);
}

/*
 * An idle CPU that may run @p, which waits on @cpu: in the LLC, from @cpu's position and around,
 * then in the node, then in the machine. A CPU that runs a SCHED_IDLE task or a task of another
 * class is in the set, but a kick would not make it look for work. [claim] A claimed CPU waits for
 * its task. NO_CPU if there is none.
 */
subprog s32 idle_helper(port_task *p trusted, s32 cpu, u64 now)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	const volatile struct node_facts *node = node_facts(f->node);
	const struct arm *machine = machine_arm();
	struct scan s = { .what = SCAN_CPU,
			  .llc = f->llc,
			  .start = f->pos,
			  .budget = MAX_CPUS,
			  .sched_idle = true };
	s32 helper;

	s.features = machine->task.features;
	s.claim_ttl = machine->task.claim_ttl_ns;
	s.now = now;
	helper = scan_llc(p, &s);
	if (helper != NO_CPU || machine_facts()->nr_llcs == 1)
		return helper;
	helper = scan_llcs(p, &s, node->first_llc, node->first_llc + node->nr_llcs, f->llc);
	if (helper != NO_CPU || machine_facts()->nr_nodes == 1)
		return helper;
	return scan_llcs(p, &s, 0, machine_facts()->nr_llcs, f->llc);
}

#endif /* ROOST_STEAL_H */
