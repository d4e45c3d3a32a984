/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fork: descent to the idlest group, from nodes to LLCs to CPUs, the parent's own group preferred as long as no other
 * is clearly idler. After the kernel's sched_balance_find_dst_cpu(), sched_balance_find_dst_group() and
 * sched_balance_find_dst_group_cpu() (kernel/sched/fair.c).
 *
 * Limits: ties between equally idle CPUs go to the first in order of number, where the kernel asks for the shallowest
 * idle state; loads are the sums of the last LLC_SUM_NS.
 */
#ifndef ROOST_FORK_H
#define ROOST_FORK_H

#include "select_idle.h"

/* What the descent compares (kernel: struct sg_lb_stats). */
struct group {
	u32 idle;    /* idle CPUs that the task may use */
	u32 allowed; /* CPUs that it may use */
	u32 cpus;    /* all CPUs of the LLCs of which it may use some, */
	u64 load;    /* and their load */
};

subprog u32 llc_idle_allowed(port_task *p trusted, u32 llc)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	bool restricted = task_restricted(p);
	u32 nr_words = f->nr_words, n = 0, i;

	for_below (i, nr_words, CPU_WORDS) {
		u64 word = *set_word(SET_IDLE, llc, i * WORD_BITS);

		if (!restricted) {
			n += count_bits(word);
			continue;
		}
		for (; word && may_loop; word &= word - 1)
			n += task_allowed(p, llc_cpu(f->first + i * WORD_BITS + lowest_bit(word)));
	}
	return n;
}

/* How many CPUs of the LLC may the task use? */
subprog u32 llc_allowed(port_task *p trusted, u32 llc)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u32 n = 0, i;

	if (!task_restricted(p))
		return f->nr_cpus;
	for_below (i, f->nr_cpus, MAX_CPUS)
		n += task_allowed(p, llc_cpu(f->first + i));
	return n;
}

static __always_inline void group_add(struct group *g, port_task *p, u32 llc)
{
	u32 allowed = llc_allowed(p, llc);

	if (!allowed)
		return;
	g->idle += llc_idle_allowed(p, llc);
	g->allowed += allowed;
	g->cpus += llc_facts(llc)->nr_cpus;
	g->load += llc_state(llc)->load;
}

/* Is @a idler than @b: more idle CPUs, or with none in either, less load per CPU? */
static __always_inline bool idler(const struct group *a, const struct group *b)
{
	if (!a->allowed || !b->allowed)
		return a->allowed;
	if (a->idle || b->idle)
		return a->idle > b->idle;
	return a->load * b->cpus < b->load * a->cpus;
}

/* The parent's own group is kept unless another is idler by more than the margin. */
static __always_inline bool leave_local(const struct group *local, const struct group *idlest)
{
	if (!local->allowed)
		return true;
	if (local->idle || idlest->idle)
		return idlest->idle > local->idle;
	return 100 * local->load * idlest->cpus > tunables()->imbalance_pct * idlest->load * local->cpus;
}

/*
 * Across nodes a small imbalance is tolerated while the local node runs little (kernel: adjust_numa_imbalance(),
 * sd->imb_numa_nr: one task per LLC, or an eighth of the CPUs of a node that is one LLC).
 */
static __always_inline bool node_tolerates(u32 node, const struct group *local, const struct group *idlest)
{
	u32 llcs = node_facts(node)->nr_llcs, running = local->allowed - local->idle;
	u32 few = llcs > 1 ? llcs : local->cpus / 8;

	if (!few)
		few = 1;
	if (few > local->allowed)
		few = local->allowed;
	return local->idle && running + 1 <= few && idlest->idle <= local->idle + 2;
}

/* All LLCs of a node. Apart from the loop over nodes: inside it the verifier multiplies the one by the other. */
subprog u32 node_group(port_task *p trusted, u32 node, struct group *g nonnull)
{
	const volatile struct node_facts *f = node_facts(node);
	u32 i;

	for_below (i, f->nr_llcs, MAX_LLCS)
		group_add(g, p, f->first_llc + i);
	return g->allowed;
}

subprog u32 fork_node(port_task *p trusted, u32 local_node)
{
	struct group local = {}, best = {};
	u32 nr_nodes = machine_facts()->nr_nodes, best_node = local_node, n;

	if (nr_nodes == 1)
		return local_node;
	for_below (n, nr_nodes, MAX_NODES) {
		struct group g = {};

		node_group(p, n, &g);
		if (n == local_node) {
			local = g;
		} else if (idler(&g, &best)) {
			best = g;
			best_node = n;
		}
	}
	if (node_tolerates(local_node, &local, &best) || !best.allowed || !leave_local(&local, &best))
		return local_node;
	return best_node;
}

subprog u32 fork_llc(port_task *p trusted, u32 node, u32 local_llc)
{
	const volatile struct node_facts *f = node_facts(node);
	struct group local = {}, best = {};
	u32 best_llc = f->first_llc, i;

	for_below (i, f->nr_llcs, MAX_LLCS) {
		struct group g = {};

		group_add(&g, p, f->first_llc + i);
		if (f->first_llc + i == local_llc) {
			local = g;
		} else if (idler(&g, &best)) {
			best = g;
			best_llc = f->first_llc + i;
		}
	}
	return best.allowed && leave_local(&local, &best) ? best_llc : local.allowed ? local_llc : best_llc;
}

/* Nothing is idle in the LLC: its least loaded CPU, by load per capacity. */
subprog s32 least_loaded(port_task *p trusted, u32 llc, u64 now)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u64 least = ~0ULL;
	s32 best = NO_CPU;
	u32 i;

	for_below (i, f->nr_cpus, MAX_CPUS) {
		s32 cpu = llc_cpu(f->first + i);
		u64 load = cpu_load(cpu, now) * CAPACITY_SCALE / cpu_facts(cpu)->capacity;

		if (load < least && task_allowed(p, cpu)) {
			least = load;
			best = cpu;
		}
	}
	return best;
}

/* In the chosen LLC: a wholly idle core, the parent's idle sibling, any idle CPU; NO_CPU if there is none. */
static __always_inline s32 fork_idle_cpu(const struct wakeup *w, u32 llc)
{
	bool local = cpu_facts(w->this_cpu)->llc == llc;
	u32 start = local ? after(w->this_cpu) : 0;
	s32 cpu = NO_CPU;

	if (machine_facts()->smt) {
		cpu = scan(w, llc, start, SCAN_CORE, MAX_CPUS);
		if (cpu == NO_CPU && local)
			cpu = free_sibling(w->p, w->this_cpu, w->ts->sched_idle);
	}
	return cpu != NO_CPU ? cpu : scan(w, llc, start, SCAN_CPU, MAX_CPUS);
}

#endif /* ROOST_FORK_H */
