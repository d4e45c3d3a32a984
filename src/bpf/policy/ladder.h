/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a waking or forked task runs: the order of the rungs, and nothing else. The rungs are in
 * other headers; each answers with a CPU or NO_CPU. The first answer wins.
 *
 *	fork:	[pack] the first idle CPU of the node, else:
 *		idlest node, idlest LLC, then an idle CPU or the idlest core and thread
 *	wakeup:	[sync_local] the waker's CPU		the waker is about to sleep
 *		[pack] the first idle CPU of the node	beside a busy thread of its LLC, if any is
 *		[prev_core] the previous CPU		its whole core is idle
 *		target = wake_affine			the waker's or the previous CPU
 *		[smt_spread] a vacant core elsewhere	the target's LLC has none, the task runs
 *							long, its previous core in that LLC is
 *							not idle, and rung 3 has no answer
 *		0 [recent_core] the recently used CPU	its whole core idle; target's cache
 *		  [bias_prev] swaps rungs 1 and 2
 *		1 the target				idle; [sync_core] its whole core idle, and
 *							a sync wakeup; [util_fits] or has room
 *		2 the previous CPU			idle or [util_fits] has room; target's cache
 *		3 the previous CPU			behind its waker, a kthread of this CPU
 *		4 the recently used CPU			as 2; with recent_core only if it has room
 *		5 by capacity				asymmetric machines; the search ends here
 *		6 the previous CPU's SMT sibling	no core in the LLC is wholly idle
 *		7 a wholly idle core of the LLC
 *		8 an idle CPU of the LLC		within [sis_util], [avg_idle_scan] budgets
 *		9 [wide_idle] the node, the machine
 *		  [bias_prev] the previous CPU, busy	target's cache
 *		  the target, busy
 *
 * [delay_migration] If the answer is a move to a CPU at a low frequency, the task first waits
 * beside its waker. So does a forked task.
 *
 * [claim] A rung claims an idle CPU just before it answers with it. If another wakeup claimed the
 * CPU first, the next candidate or rung is tried.
 *
 * With prev_idle and sis_util, and no other feature that acts here, this is the kernel's
 * select_task_rq_fair() (kernel/sched/fair.c). docs/explanation/faithfulness.md lists what
 * it leaves out.
 *
 * The groups of rungs (spread, known CPUs, search) are subprograms, so the verifier's paths join
 * where a group ends.
 *
 * All rungs are live: a mask of features costs at most 3 ns and 18 instructions a decision. The
 * scan of an LLC is a subprogram (20 ns): inlined, the ladder exceeds the verifier's limit.
 */
#ifndef ROOST_LADDER_H
#define ROOST_LADDER_H

#include "bias_prev.h"
#include "capacity.h"
#include "delay_migration.h"
#include "fork.h"
#include "pack.h"
#include "prev_core.h"
#include "smt_spread.h"
#include "sync_local.h"
#include "util_fits.h"
#include "wake_affine.h"

static __always_inline struct placement placed(const struct wakeup *w, s32 cpu, enum placing how,
					       enum roost_stat rung)
{
	struct placement at = { .cpu = cpu, .how = how, .rung = rung };

	count_wakeup(w, rung);
	return at;
}

/*
 * The task gets an idle CPU at once. On a CPU that runs a SCHED_IDLE task it is queued, and
 * preempts that task.
 */
static __always_inline struct placement placed_free(const struct wakeup *w, s32 cpu,
						    enum roost_stat rung)
{
	struct cpu_state *cs = cpu_state(cpu);

	return placed(w, cpu, cs->curr_sched_idle && cs->curr_pid ? PLACE_BUSY : PLACE_IDLE, rung);
}

/* ---- the groups of rungs; subprograms return their answer in w->at ---- */

/* No idle CPU was found: the target, or [bias_prev] the previous CPU. */
static __always_inline struct placement placed_busy(const struct wakeup *w, s32 target)
{
	if (bias_last(w, target))
		return placed(w, w->prev, PLACE_BUSY, STAT_bias_prev_last);
	return placed(w, target, PLACE_BUSY, STAT_sis_none);
}

/*
 * Rung 9: the search of the LLC found nothing. [wide_idle] Search the node's other LLCs, then the
 * machine. A task of brief bursts stays in the node, where its waker and memory are. The target's
 * own LLC is skipped: it has just been searched, as far as the scan budget allows.
 */
static __always_inline struct placement place_beyond(port_task *p, const struct wakeup *w,
						     s32 target)
{
	const volatile struct node_facts *node = node_facts(cpu_facts(target)->node);
	u32 own = cpu_facts(target)->llc;
	struct scan s;
	s32 cpu;

	if (!has(w, FEATURE_wide_idle) || machine_facts()->nr_llcs == 1)
		return placed_busy(w, target);
	s = scan_for(w);
	cpu = scan_llcs_and_take(p, &s, node->first_llc, node->first_llc + node->nr_llcs, own);
	if (cpu != NO_CPU)
		return placed_free(w, cpu, STAT_wide_node);
	if (machine_facts()->nr_nodes > 1 && !w->short_burst) {
		cpu = scan_llcs_and_take(p, &s, 0, machine_facts()->nr_llcs, own);
		if (cpu != NO_CPU)
			return placed_free(w, cpu, STAT_wide_machine);
	}
	return placed_busy(w, target);
}

/*
 * Rungs 6 to 9: the search. A budget of 0 also skips the search for a core. Any other budget bounds
 * only a walk that starts without an idle core in the LLC (kernel: select_idle_cpu()).
 */
static __always_inline struct placement place_search(port_task *p, const struct wakeup *w,
						     s32 target)
{
	bool core = has_idle_core(target);
	s32 cpu = NO_CPU;
	u32 budget;

	if (set_empty(SET_IDLE, cpu_facts(target)->llc))
		return place_beyond(p, w, target);
	if (machine_facts()->smt && !core) {
		cpu = sis_smt(p, w, target);
		if (cpu != NO_CPU)
			return placed_free(w, cpu, STAT_sis_smt);
	}
	budget = sis_budget(w, target);
	if (budget && core) {
		cpu = sis_core(p, w, target);
		if (cpu != NO_CPU)
			return placed_free(w, cpu, STAT_sis_core);
		budget = MAX_CPUS;
	}
	if (budget)
		cpu = sis_cpu(p, w, target, budget, core);
	if (cpu != NO_CPU)
		return placed_free(w, cpu, STAT_sis_cpu);
	return place_beyond(p, w, target);
}

/*
 * Rungs 5 to 9: an idle CPU found by a search around the target. If there is none: the target, or
 * as placed_busy() says.
 */
subprog u32 search(port_task *p trusted, struct wakeup *w nonnull, s32 target)
{
	s32 cpu;

	if (!machine_facts()->asym) {
		w->at = place_search(p, w, target);
		return 0;
	}
	cpu = sis_capacity(p, w, target);
	w->at = cpu != NO_CPU ? placed_free(w, cpu, STAT_sis_capacity)
			      : placed(w, target, PLACE_BUSY, STAT_sis_none);
	return 0;
}

/* [util_fits] @cpu, if it is busy and has room for the task; else NO_CPU. */
static __always_inline struct placement place_beside(const struct wakeup *w, s32 cpu,
						     enum roost_stat fits)
{
	struct placement none = { .cpu = NO_CPU };

	if (!has(w, FEATURE_util_fits) || !fits_beside(w, cpu))
		return none;
	if (!set_empty(SET_IDLE, cpu_facts(cpu)->llc))
		count_wakeup(w, STAT_fits_idle_available);
	if (fits == STAT_fits_target && !w->sync)
		count_wakeup(w, STAT_fits_target_nonsync);
	return placed(w, cpu, PLACE_BUSY, fits);
}

/* @cpu, if it is free or [util_fits] has room for the task; else NO_CPU. */
static __always_inline struct placement place_there(const struct wakeup *w, s32 cpu,
						    enum roost_stat idle, enum roost_stat fits)
{
	if (free_and_fits(w, cpu) != NO_CPU)
		return placed_free(w, cpu, idle);
	return place_beside(w, cpu, fits);
}

static __always_inline bool placed_by_fits(const struct placement *at)
{
	return at->rung == STAT_fits_target || at->rung == STAT_fits_prev ||
	       at->rung == STAT_fits_recent;
}

static __always_inline struct placement place_target(const struct wakeup *w, s32 target)
{
	if (!has(w, FEATURE_sync_core))
		return place_there(w, target, STAT_sis_target, STAT_fits_target);
	if (sync_core(w, target) != NO_CPU)
		return placed_free(w, target, STAT_sync_core);
	return place_beside(w, target, STAT_fits_target);
}

/* Rungs 1 and 2; with bias_prev in reverse order. */
static __always_inline struct placement place_target_or_prev(const struct wakeup *w, s32 target)
{
	struct placement at = { .cpu = NO_CPU };
	bool bias = bias_first(w, target);

	if (bias)
		at = place_there(w, w->prev, STAT_sis_prev, STAT_fits_prev);
	if (at.cpu != NO_CPU) {
		count_wakeup(w, STAT_bias_prev_first);
		return at;
	}
	if (target_usable(w, target) && !(bias && w->prev == target))
		at = place_target(w, target);
	if (at.cpu == NO_CPU && !bias && w->prev != target && prev_usable(w, target))
		at = place_there(w, w->prev, STAT_sis_prev, STAT_fits_prev);
	return at;
}

/* Rungs 0 to 4: CPUs that need no search. NO_CPU: a search is needed. */
static __always_inline struct placement place_known(port_task *p, struct task_state *ts,
						    const struct wakeup *w, s32 target)
{
	struct placement at;
	s32 cpu;

	if (has(w, FEATURE_recent_core)) {
		ts->recent_cpu = w->last_cpu + 1;
		cpu = recent_core(p, w, target);
		if (cpu != NO_CPU)
			return placed_free(w, cpu, STAT_recent_core);
	}
	at = place_target_or_prev(w, target);
	if (at.cpu != NO_CPU)
		return at;
	cpu = sis_kthread(w);
	if (cpu != NO_CPU)
		return placed(w, cpu, PLACE_BUSY, STAT_sis_kthread);
	ts->recent_cpu = w->last_cpu + 1;
	if (!recent_usable(p, w, target))
		return at;
	if (has(w, FEATURE_recent_core))
		return place_beside(w, w->recent, STAT_fits_recent);
	return place_there(w, w->recent, STAT_sis_recent, STAT_fits_recent);
}

subprog bool known_cpus(port_task *p trusted, struct task_state *ts nonnull,
			struct wakeup *w nonnull, s32 target)
{
	w->at = place_known(p, ts, w, target);
	return w->at.cpu != NO_CPU;
}

/*
 * [smt_spread] Runs before the other rungs around the target. If the target's LLC has no vacant
 * core, its idle CPUs are beside busy threads, or their last tasks will soon be back.
 */
subprog bool spread(port_task *p trusted, struct task_state *ts nonnull, struct wakeup *w nonnull,
		    s32 target)
{
	s32 cpu = spread_wakeup(p, w, target);

	if (cpu == NO_CPU)
		return false;
	ts->recent_cpu = w->last_cpu + 1;
	w->at = placed_free(w, cpu, STAT_spread_wakeup);
	return true;
}

/* ---- their order ---- */

static __always_inline struct placement select_idle_sibling(port_task *p, struct task_state *ts,
							    struct wakeup *w, s32 target)
{
	hand_over(w, ts);
	look_for_vacant_core(w, ts, target);
	if (has(w, FEATURE_smt_spread) && worth_a_core(ts->burst) && spread(p, ts, w, target))
		return w->at;
	if (!known_cpus(p, ts, w, target))
		search(p, w, target);
	return w->at;
}

static __always_inline struct placement place_wakeup(port_task *p, struct task_state *ts,
						     struct task_state *waker, struct wakeup *w)
{
	/* Checked before record_wakee() makes the task its waker's last wakee. */
	bool local = sync_local(ts, waker, w);
	s32 cpu;

	record_wakee(waker, w);
	if (local)
		return placed(w, w->this_cpu, PLACE_NEXT, STAT_sync_local);
	cpu = pack(p, ts, w);
	if (cpu != NO_CPU)
		return placed_free(w, cpu, STAT_pack);
	cpu = prev_core(p, ts, w);
	if (cpu != NO_CPU)
		return placed_free(w, cpu, STAT_prev_core);
	return select_idle_sibling(p, ts, w, wake_target(ts, waker, w));
}

static __always_inline struct placement place_fork(port_task *p, const struct task_state *ts,
						   struct wakeup *w)
{
	const volatile struct cpu_facts *f = cpu_facts(w->this_cpu);
	s32 cpu = pack(p, ts, w);
	u32 llc;

	if (cpu != NO_CPU)
		return placed_free(w, cpu, STAT_fork_pack);
	llc = fork_llc(p, fork_node(p, f->node), f->llc);
	cpu = fork_idle_cpu(p, w, llc);
	if (cpu != NO_CPU)
		return placed_free(w, cpu, STAT_fork_idle);
	cpu = fork_descent(p, w, llc);
	return placed(w, cpu != NO_CPU ? cpu : w->last_cpu, PLACE_BUSY, STAT_fork_busy);
}

static __always_inline struct placement place_child(port_task *p, struct task_state *ts,
						    struct task_state *parent, struct wakeup *w)
{
	struct placement at;

	hand_over(w, ts);
	at = place_fork(p, ts, w);
	inherit(ts, parent, w);
	return at;
}

/* Count the ladder's answer, whichever rung gave it, before the delay stage. */
static __always_inline void count_placement(const struct wakeup *w, s32 cpu)
{
	if (cpu == w->last_cpu)
		count_wakeup(w, STAT_placed_prev);
	else if (!share_cache(cpu, w->last_cpu))
		count_wakeup(w, STAT_placed_other_llc);
	if (in_idle_core(cpu))
		count_wakeup(w, STAT_placed_idle_core);
}

/*
 * The whole decision. @waker: the state of the current task; NULL for the idle task or a task
 * without state. The answer may be a CPU that the task may not use (last_cpu): the kernel then
 * picks another (select_fallback_rq()).
 */
static __always_inline struct placement place(port_task *p, struct task_state *ts,
					      struct task_state *waker, struct wakeup *w)
{
	struct placement at;

	if (w->fork) {
		at = place_child(p, ts, waker, w);
	} else {
		at = place_wakeup(p, ts, waker, w);
		count_placement(w, at.cpu);
	}
	return delay_stage(ts, w, at);
}

#endif /* ROOST_LADDER_H */
