/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fork: descend to the idlest group: node, LLC, core, CPU. The parent's own group wins a tie; one
 * more idle CPU elsewhere is enough to leave it. After the kernel's sched_balance_find_dst_cpu(),
 * sched_balance_find_dst_group() and sched_balance_find_dst_group_cpu() (kernel/sched/fair.c).
 *
 * Limits: of equally idle CPUs the first in order of number wins; the kernel takes the one in the
 * shallowest idle state. On a machine of equal CPUs every wholly idle core counts as equally idle;
 * the kernel takes the one used least. The sums of LLCs are up to LLC_SUM_NS old, and so is the
 * number of runnable tasks that tells an overloaded group from a full one: forks of that time all
 * go the same way.
 */
#ifndef ROOST_FORK_H
#define ROOST_FORK_H

#include "select_idle.h"

/* What the descent compares (kernel: struct sg_lb_stats). */
struct group {
	u32 idle;    /* idle CPUs that the task may use */
	u32 allowed; /* CPUs that it may use */
	/* of all CPUs of an LLC; of a core or a thread, of those that the task may use */
	u32 cpus;
	u32 nr_running;
	u64 load;
	u64 util;
	u64 capacity;
};

/* How many CPUs in the LLC's idle set may the task use? */
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
		return f->nr_cpus - llc_state(llc)->nr_away;
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
	g->cpus += llc_facts(llc)->nr_cpus - llc_state(llc)->nr_away;
	g->nr_running += llc_state(llc)->nr_running;
	g->load += llc_state(llc)->load;
	g->util += llc_state(llc)->util;
	g->capacity += llc_facts(llc)->capacity;
}

/* Some CPU is idle, or all have time left (kernel: group_has_spare, group_has_capacity()). */
static __always_inline bool has_spare(const struct group *g)
{
	return g->idle || g->util * tunables()->imbalance_pct < g->capacity * 100;
}

/* Of two groups without time to spare (kernel: group_overloaded, group_is_overloaded()). */
static __always_inline bool overloaded(const struct group *g)
{
	return g->nr_running > g->cpus;
}

/* Load in proportion to capacity; g->allowed is not 0. */
static __always_inline u64 mean_load(const struct group *g)
{
	return g->load * CAPACITY_SCALE / g->capacity;
}

/*
 * @a is idler than @b. A group with time to spare is idler than a busy one. Of two with time to
 * spare: more idle CPUs, then less utilisation. Of two busy ones: less load (kernel:
 * update_pick_idlest()).
 */
static __always_inline bool idler(const struct group *a, const struct group *b)
{
	bool spare = has_spare(a);

	if (!a->allowed || !b->allowed)
		return a->allowed;
	if (spare != has_spare(b))
		return spare;
	if (spare)
		return a->idle != b->idle ? a->idle > b->idle : a->util < b->util;
	if (overloaded(a) != overloaded(b))
		return overloaded(b);
	return mean_load(a) < mean_load(b);
}

/*
 * Leave the parent's group if another is idler. Between busy groups: if the load here is more than
 * @pct percent of the load there, and more by @margin. If both have time to spare, only the number
 * of idle CPUs counts.
 */
static __always_inline bool leave_local(const struct group *local, const struct group *idlest,
					u32 pct, u64 margin)
{
	bool spare = has_spare(local);

	if (!local->allowed || !idlest->allowed)
		return idlest->allowed;
	if (spare != has_spare(idlest))
		return !spare;
	if (spare)
		return idlest->idle > local->idle;
	if (overloaded(local) != overloaded(idlest))
		return overloaded(local);
	return mean_load(local) > mean_load(idlest) + margin &&
	       100 * mean_load(local) > pct * mean_load(idlest);
}

/*
 * Across nodes a small imbalance is tolerated while the local node runs little (kernel:
 * adjust_numa_imbalance(), sd->imb_numa_nr: one task per LLC, or an eighth of the CPUs of a node
 * that is one LLC).
 */
static __always_inline bool node_tolerates(u32 node, const struct group *local,
					   const struct group *idlest)
{
	u32 llcs = node_facts(node)->nr_llcs, running = local->allowed - local->idle;
	u32 few = llcs > 1 ? llcs : llc_facts(node_facts(node)->first_llc)->nr_cpus / 8;

	if (!few)
		few = 1;
	if (few > local->allowed)
		few = local->allowed;
	return local->idle && running + 1 <= few && idlest->idle <= local->idle + 2;
}

/*
 * All LLCs of a node. Not part of the loop over nodes, where the verifier would check every
 * combination.
 */
subprog u32 node_group(port_task *p trusted, u32 node, struct group *g nonnull)
{
	const volatile struct node_facts *f = node_facts(node);
	u32 i;

	for_below (i, f->nr_llcs, MAX_LLCS)
		group_add(g, p, f->first_llc + i);
	return g->allowed;
}

/* The idlest node; a small imbalance does not lead away from @local_node. */
subprog u32 fork_node(port_task *p trusted, u32 local_node)
{
	struct group local = {}, best = {};
	u32 nr_nodes = machine_facts()->nr_nodes, best_node = local_node, n,
	    pct = tunables()->imbalance_pct;

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
	/* Between nodes there is also a margin in load: pct - 100 percent of a nice 0 task's. */
	if (node_tolerates(local_node, &local, &best) ||
	    !leave_local(&local, &best, pct, NICE0_WEIGHT * (pct - 100) / 100))
		return local_node;
	return best_node;
}

/* The idlest LLC of @node; in a tie @local_llc, if it is there. */
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
	return leave_local(&local, &best, tunables()->imbalance_pct, 0) || !local.allowed
		       ? best_llc
		       : local_llc;
}

/* ---- the descent within the LLC ---- */

/* [claim] A claimed CPU is busy soon. Of equal CPUs, an idle one was taken before the descent. */
static __always_inline bool fork_sees_idle(const struct wakeup *w, s32 cpu)
{
	return machine_facts()->asym && cpu_idle(cpu) && !claimed(w, cpu);
}

/*
 * The idle one of two CPUs, else the less loaded; @a if they are equal or @b is not allowed. NO_CPU
 * has more load than any (kernel: sched_balance_find_dst_group_cpu()).
 */
subprog s32 less_loaded(port_task *p trusted, const struct wakeup *w nonnull, s32 a, s32 b)
{
	if (!task_allowed(p, b))
		return a;
	if (a != NO_CPU && fork_sees_idle(w, a) != fork_sees_idle(w, b))
		return fork_sees_idle(w, b) ? b : a;
	return a == NO_CPU || cpu_load(b, w->now) < cpu_load(a, w->now) ? b : a;
}

subprog s32 least_loaded_of_llc(port_task *p trusted, const struct wakeup *w nonnull, u32 llc)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	s32 best = NO_CPU;
	u32 i;

	for_below (i, f->nr_cpus, MAX_CPUS)
		best = less_loaded(p, w, best, llc_cpu(f->first + i));
	return best;
}

/* The least loaded CPU of @cpu's core. */
subprog s32 least_loaded_of_core(port_task *p trusted, const struct wakeup *w nonnull, s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	s32 best = less_loaded(p, w, NO_CPU, cpu);
	u32 i;

	for_below (i, f->nr_sib, MAX_SMT)
		best = less_loaded(p, w, best, sibling(f, i));
	return best;
}

subprog u32 group_add_cpu(port_task *p trusted, const struct wakeup *w nonnull,
			  struct group *g nonnull, s32 cpu)
{
	if (!task_allowed(p, cpu))
		return 0;
	g->idle += fork_sees_idle(w, cpu);
	g->allowed++;
	g->cpus++;
	g->nr_running += cpu_nr_running(cpu);
	g->load += cpu_load(cpu, w->now);
	g->util += cpu_demand(cpu, cpu_util(cpu, w->now));
	g->capacity += cpu_facts(cpu)->capacity;
	return 0;
}

/* Add the CPUs of @cpu's core. */
subprog u32 group_add_core(port_task *p trusted, const struct wakeup *w nonnull,
			   struct group *g nonnull, s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	group_add_cpu(p, w, g, cpu);
	for_below (i, f->nr_sib, MAX_SMT)
		group_add_cpu(p, w, g, sibling(f, i));
	return 0;
}

/* A CPU of the LLC's idlest core; @cpu itself unless another core is clearly idler. */
subprog s32 fork_core(port_task *p trusted, const struct wakeup *w nonnull, u32 llc, s32 cpu)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	struct group local = {}, best = {};
	s32 best_cpu = cpu;
	u32 i;

	group_add_core(p, w, &local, cpu);
	for_below (i, f->nr_cpus, MAX_CPUS) {
		s32 other = llc_cpu(f->first + i);
		const volatile struct cpu_facts *o = cpu_facts(other);
		struct group g = {};

		/* Each core once, by its first thread. */
		if ((o->nr_sib && sibling(o, 0) < other) || share_core(other, cpu))
			continue;
		group_add_core(p, w, &g, other);
		if (idler(&g, &best)) {
			best = g;
			best_cpu = other;
		}
	}
	return leave_local(&local, &best, tunables()->imbalance_pct, 0) ? best_cpu : cpu;
}

/* The idlest CPU of @cpu's core; @cpu itself unless another is clearly idler. */
subprog s32 fork_thread(port_task *p trusted, const struct wakeup *w nonnull, s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	struct group local = {}, best = {};
	s32 best_cpu = cpu;
	u32 i;

	group_add_cpu(p, w, &local, cpu);
	for_below (i, f->nr_sib, MAX_SMT) {
		struct group g = {};

		group_add_cpu(p, w, &g, sibling(f, i));
		if (idler(&g, &best)) {
			best = g;
			best_cpu = sibling(f, i);
		}
	}
	return leave_local(&local, &best, SMT_IMBALANCE_PCT, 0) ? best_cpu : cpu;
}

/* From the parent's CPU, or in another LLC from its least loaded CPU. */
subprog s32 fork_descent(port_task *p trusted, const struct wakeup *w nonnull, u32 llc)
{
	s32 from = w->this_cpu, cpu;

	if (cpu_facts(from)->llc != llc)
		from = least_loaded_of_llc(p, w, llc);
	if (from == NO_CPU)
		return NO_CPU;
	cpu = fork_core(p, w, llc, from);
	if (cpu != from)
		cpu = least_loaded_of_core(p, w, cpu);
	if (cpu != NO_CPU)
		cpu = fork_thread(p, w, cpu);
	return cpu != NO_CPU && task_allowed(p, cpu) ? cpu : NO_CPU;
}

/* ---- idle CPUs ---- */

/*
 * With its core, if that is wholly idle and nothing of it is claimed. [claim] False: another wakeup
 * was first. The descent counts claims, so a thread beside a claimed one is its answer only where
 * no other core is idler.
 */
static __always_inline bool fork_take(const struct wakeup *w, s32 cpu)
{
	if (machine_facts()->smt && core_idle(cpu) && core_free_of_claims(w, cpu))
		return core_take(w, cpu);
	return take(w, cpu);
}

/*
 * In the chosen LLC: a wholly idle core, the parent's idle sibling, any idle CPU; NO_CPU if there
 * is none. Equal cores need no comparison. Of unequal ones, one with more threads is idler.
 */
subprog s32 fork_idle_cpu(port_task *p trusted, const struct wakeup *w nonnull, u32 llc)
{
	bool local = cpu_facts(w->this_cpu)->llc == llc;
	u32 start = local ? after(w->this_cpu) : 0;
	s32 cpu = NO_CPU;

	if (machine_facts()->asym && !set_empty(SET_IDLE, llc)) {
		cpu = fork_descent(p, w, llc);
		if (cpu != NO_CPU && cpu_free(cpu, w->sched_idle) && fork_take(w, cpu))
			return cpu;
		cpu = NO_CPU;
	}
	if (machine_facts()->smt) {
		cpu = scan(p, w, llc, start, SCAN_CORE);
		if (cpu == NO_CPU && local)
			cpu = free_sibling(p, w, w->this_cpu);
	}
	return cpu != NO_CPU ? cpu : scan(p, w, llc, start, SCAN_CPU);
}

/*
 * A child starts with a copy of its parent's record of wakees (kernel: dup_task_struct()), and with
 * the parent's CPU as the recently used one (wake_up_new_task()).
 */
static __always_inline void inherit(struct task_state *ts, const struct task_state *parent,
				    const struct wakeup *w)
{
	ts->recent_cpu = w->last_cpu + 1;
	if (parent)
		ts->waker = parent->waker;
}

#endif /* ROOST_FORK_H */
