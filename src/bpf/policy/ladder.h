/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task that wakes or is forked shall run: the order of the rungs, and nothing else. Each rung lives in its
 * own header; it answers with a CPU or NO_CPU, and the first answer wins.
 *
 *	fork:	idlest node -> idlest LLC -> an idle CPU, or the idlest core and thread
 *	wakeup:	[sync_local] the waker's CPU		the waker is about to sleep
 *		[prev_core] the previous CPU		its whole core idle
 *		target = wake_affine			who of waker and previous CPU to look around
 *		1 the target				idle
 *		2 the previous CPU			idle, same cache as the target
 *		3 behind the per-CPU kthread that wakes it
 *		4 the recently used CPU			idle, same cache as the target
 *		5 by capacity				asymmetric machines; ends here
 *		6 the previous CPU's SMT sibling	no core in the LLC is wholly idle
 *		7 a wholly idle core of the LLC
 *		8 an idle CPU of the LLC		[sis_util] within the budget
 *		9 [wide_idle] the node, the machine
 *		  the target, busy
 *
 * With prev_idle and sis_util, and nothing else, this is the kernel's select_task_rq_fair() (kernel/sched/fair.c);
 * what it leaves out is listed in docs/faithfulness.md.
 */
#ifndef ROOST_LADDER_H
#define ROOST_LADDER_H

#include "capacity.h"
#include "fork.h"
#include "prev_core.h"
#include "sync_local.h"
#include "wake_affine.h"

static __always_inline struct placement placed(s32 cpu, enum placing how, enum roost_stat rung)
{
	struct placement at = { .cpu = cpu, .how = how, .rung = rung };

	count(rung);
	return at;
}

/* Free CPUs are taken at once when idle; one that runs a SCHED_IDLE task is queued on, and preempted there. */
static __always_inline struct placement placed_free(s32 cpu, enum roost_stat rung)
{
	struct cpu_state *cs = cpu_state(cpu);

	return placed(cpu, cs->curr_sched_idle && cs->curr_pid ? PLACE_BUSY : PLACE_IDLE, rung);
}

static __always_inline struct placement place_fork(const struct wakeup *w)
{
	const volatile struct cpu_facts *f = cpu_facts(w->this_cpu);
	u32 llc = fork_llc(w->p, fork_node(w->p, f->node), f->llc);
	s32 cpu = fork_idle_cpu(w, llc);

	inherit(w);

	if (cpu != NO_CPU)
		return placed_free(cpu, STAT_fork_idle);
	cpu = fork_busy_cpu(w->p, llc, w->this_cpu, w->now);
	return placed(cpu != NO_CPU ? cpu : w->prev_any, PLACE_BUSY, STAT_fork_busy);
}

/*
 * Rung 9: nothing in the LLC; [wide_idle] an idle CPU in another of the target's node, then anywhere. The LLC itself is
 * not looked at again: if something is idle there, sis_util's budget forbade to look so far.
 */
static __always_inline struct placement place_beyond(const struct wakeup *w, s32 target)
{
	const volatile struct node_facts *node = node_facts(cpu_facts(target)->node);
	u32 own = cpu_facts(target)->llc;
	s32 cpu;

	if (!has(w, FEATURE_wide_idle) || machine_facts()->nr_llcs == 1)
		return placed(target, PLACE_BUSY, STAT_sis_none);
	cpu = scan_llcs(w->p, node->first_llc, node->first_llc + node->nr_llcs, own, w->ts->sched_idle);

	if (cpu != NO_CPU)
		return placed_free(cpu, STAT_wide_node);
	if (machine_facts()->nr_nodes > 1) {
		cpu = scan_llcs(w->p, 0, machine_facts()->nr_llcs, own, w->ts->sched_idle);
		if (cpu != NO_CPU)
			return placed_free(cpu, STAT_wide_machine);
	}
	return placed(target, PLACE_BUSY, STAT_sis_none);
}

/*
 * Rungs 6 to 9: search. A budget of 0 spares the search for a core too; otherwise it bounds only the walk that starts
 * without hope of a core (kernel: select_idle_cpu()).
 */
static __always_inline struct placement place_search(const struct wakeup *w, s32 target)
{
	bool core = has_idle_core(target);
	s32 cpu = NO_CPU;
	u32 budget;

	if (set_empty(SET_IDLE, cpu_facts(target)->llc))
		return place_beyond(w, target);
	if (machine_facts()->smt && !core) {
		cpu = sis_smt(w, target);
		if (cpu != NO_CPU)
			return placed_free(cpu, STAT_sis_smt);
	}
	budget = sis_budget(w, target);
	if (budget && core) {
		cpu = sis_core(w, target);
		if (cpu != NO_CPU)
			return placed_free(cpu, STAT_sis_core);
		budget = MAX_CPUS;
	}
	if (budget)
		cpu = sis_cpu(w, target, budget);
	if (cpu != NO_CPU)
		return placed_free(cpu, STAT_sis_cpu);
	return place_beyond(w, target);
}

/* Rungs 1 to 5: CPUs known by name. */
static __always_inline struct placement select_idle_sibling(const struct wakeup *w, s32 target)
{
	s32 recent, cpu = sis_target(w, target);

	if (cpu != NO_CPU)
		return placed_free(cpu, STAT_sis_target);
	cpu = sis_prev(w, target);
	if (cpu != NO_CPU)
		return placed_free(cpu, STAT_sis_prev);
	cpu = sis_kthread(w);
	if (cpu != NO_CPU)
		return placed(cpu, PLACE_BUSY, STAT_sis_kthread);
	recent = w->ts->recent_cpu - 1;
	w->ts->recent_cpu = w->prev_any + 1;
	cpu = sis_recent(w, recent, target);
	if (cpu != NO_CPU)
		return placed_free(cpu, STAT_sis_recent);
	if (machine_facts()->asym) {
		cpu = sis_capacity(w->p, target, task_util(w->ts, w->now), w->ts->sched_idle);
		return cpu != NO_CPU ? placed_free(cpu, STAT_sis_capacity) : placed(target, PLACE_BUSY, STAT_sis_none);
	}
	return place_search(w, target);
}

static __always_inline struct placement place_wakeup(const struct wakeup *w)
{
	/* Asked before this wakeup makes the task its waker's last wakee. */
	bool local = sync_local(w);
	s32 cpu;

	record_wakee(w);
	if (local)
		return placed(w->this_cpu, PLACE_NEXT, STAT_sync_local);
	cpu = prev_core(w);
	if (cpu != NO_CPU)
		return placed_free(cpu, STAT_prev_core);
	return select_idle_sibling(w, wake_target(w));
}

/* What the wakeup got, whichever rung gave it. */
static __always_inline void count_placement(const struct wakeup *w, s32 cpu)
{
	if (cpu == w->prev_any)
		count(STAT_placed_prev);
	else if (!share_cache(cpu, w->prev_any))
		count(STAT_placed_other_llc);
	if (in_idle_core(cpu))
		count(STAT_placed_idle_core);
}

/* The whole decision. The CPU may be one that the task may not use (prev_any): the caller leaves that to the core. */
static __always_inline struct placement place(const struct wakeup *w)
{
	struct placement at = w->fork ? place_fork(w) : place_wakeup(w);

	if (!w->fork)
		count_placement(w, at.cpu);
	return at;
}

#endif /* ROOST_LADDER_H */
