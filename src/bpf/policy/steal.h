/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stealing: a CPU without work looks for a queue that has waiters, in its LLC, then in the node, then in the machine.
 * CPUs with waiters that others may run are in a set, kept like the idle ones (idle_scan.h).
 *
 * A queue may be in the set and give nothing: its tasks are pinned, or gone. The thief then goes on to the next, at most
 * STEAL_TRIES of them, and takes an empty queue out of the set. A task put there at that very moment is not lost: its
 * own CPU serves it, and that CPU's tick enters it again.
 *
 * A task that ran within the last migration_cost is worth more where its cache is warm: its queue is
 * passed over, and the tick or slice timer of its CPU calls for help once it has waited.
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
 * The first task of @victim's queue ran a moment ago, by the clock of the callback that saw it stop: the kernel's
 * se.exec_start leaves out the time of interrupts, which differs by CPU, by seconds. Threads of a core share its caches, and no SCHED_IDLE task is worth
 * the wait (kernel: task_hot()).
 */
subprog bool queue_hot(s32 victim, s32 thief, u64 now)
{
	port_task *head;
	struct task_state *ts;

	if (share_core(victim, thief))
		return false;
	head = first_waiting(victim);
	ts = head ? task_state_if(head) : NULL;
	return ts && !ts->idle_policy && (s64)(now - ts->ran_at) < (s64)machine_arm()->migration_cost_ns;
}

/* So many tasks of a queue are looked at with interrupts off. */
#define QUEUE_LOOKS_MAX 256

/* One of the first tasks of @queue goes to @here, this CPU, where it may run. */
subprog bool take_among(u32 queue, s32 here)
{
	port_task *p;
	bool taken = false;
	u32 looks = 0;

	for_each_queued(p, queue)
	{
		/* A task that does not fit here must not be moved: the kernel ends us for it. */
		if (!task_pinned(p) && task_allowed(p, here))
			taken = queued_move_here(p);
		if (taken || ++looks == QUEUE_LOOKS_MAX)
			break;
	}
	return taken;
}

/*
 * A waiting task of @victim's goes to @cpu. The kernel's own search for one that fits has no end to its looks: it is
 * left to it only where the first one fits.
 */
static __always_inline bool take_from(s32 victim, s32 cpu)
{
	port_task *head;
	u32 queue = first_queue(victim, &head);

	if (!head)
		return false;
	if (!task_pinned(head) && task_allowed(head, cpu) && !domains_split())
		return queue_take(queue);
	return take_among(queue, cpu) || (cpu_state(victim)->old_waits && take_among(other_queue(queue), cpu));
}

/* Take one waiting task of @victim's queue. */
subprog bool steal_from_queue(s32 victim, s32 cpu, u64 now)
{
	if (queue_hot(victim, cpu, now))
		return false;
	if (take_from(victim, cpu))
		return true;
	count(STAT_steal_miss);
	if (!waiting_length(victim))
		unmark_waiting(victim);
	return false;
}

/* Take one waiting task of any CPU of @llc, from position @start on and around. */
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

/* The same over the LLCs [@from, @end), but for its own. */
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

/* Is there anything to steal? */
static __always_inline bool anybody_waits(void)
{
	return set_any(SET_WAITING);
}

/* One search: what it may still spend. */
struct search {
	u64 now;    /* ns */
	u64 budget; /* ns of the idle period that are left */
	u32 tries;
};

static __always_inline bool search_level(s32 cpu, enum steal_level level, struct search *s)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	const volatile struct node_facts *node = node_facts(f->node);

	if (level == STEAL_LLC)
		return steal_from_llc(cpu, f->llc, f->pos, s->now, &s->tries);
	if (level == STEAL_NODE)
		return steal_from_llcs(cpu, node->first_llc, node->first_llc + node->nr_llcs, s->now, &s->tries);
	return steal_from_llcs(cpu, 0, machine_facts()->nr_llcs, s->now, &s->tries);
}

_Static_assert(STAT_dispatch_steal_llc + STEAL_NODE == STAT_dispatch_steal_node &&
		       STAT_dispatch_steal_llc + STEAL_MACHINE == STAT_dispatch_steal_machine,
	       "a counter for each level, in their order");

/* [avg_idle] Search @level if the idle period is worth it. False: nothing, and what is left of the budget is in @s. */
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
 * Give @cpu, which has nothing to run, a waiting task of another: of the LLC, the node, the machine. @asked: somebody has
 * waited so long that its CPU called for help.
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
 * An idle CPU that may run @p, which waits on @cpu: of its LLC, from its own position on and around, then of the node, then
 * of the machine. One that runs a SCHED_IDLE task or a task of another class is in the set, but a kick would not make it
 * look for work. [claim] One that is claimed waits for its task. NO_CPU if there is none.
 */
subprog s32 idle_helper(port_task *p trusted, s32 cpu, u64 now)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	const volatile struct node_facts *node = node_facts(f->node);
	const struct arm *machine = machine_arm();
	struct scan s = { .what = SCAN_CPU, .llc = f->llc, .start = f->pos, .budget = MAX_CPUS, .sched_idle = true };
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

/* ---- a busy CPU is to serve another's queue ---- */

/* An assignment that was not carried out within this lapses. ns */
#define SERVE_NS 5000000ULL

/*
 * @cpu, which runs a task, shall next take one from @victim's queue. All CPUs of an LLC see the same queue: one of them
 * at a time gets it. False: another has it, or @cpu has a queue to serve already.
 */
static __always_inline bool assign_queue(s32 cpu, s32 victim, bool balances, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 *at = &cpu_state(victim)->served_at, last = *at;

	if (cs->serve_next && before(now, cs->serve_until))
		return false;
	/* Signed: the clocks of two CPUs differ a little. */
	if ((s64)(now - last) < (s64)SERVE_NS || !atomic_cas(at, last, now))
		return false;
	cs->serve_next = victim + 1;
	cs->serve_until = now + SERVE_NS;
	cs->serve_balances = balances;
	return true;
}

/* The queue that @cs was assigned; NO_CPU if that was long ago. Asked once, when serve_next is set. */
static __always_inline s32 assigned_queue(struct cpu_state *cs, u64 now)
{
	s32 victim = cs->serve_next - 1;

	cs->serve_next = 0;
	return before(now, cs->serve_until) ? victim : NO_CPU;
}

#endif /* ROOST_STEAL_H */
