/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * smt_spread (scx_roost).
 *
 * Problem: two tasks share a core while another core is idle. The search for an idle CPU ends at
 * the LLC, and a task that never sleeps is never placed again. The kernel's load balancer repairs
 * this, late.
 *
 * Method: a machine that is not full should end up with one busy thread per core. At a wakeup: if
 * the target's LLC has no vacant core (vacant.h) that is unclaimed, the task goes to one in the
 * node, then in the machine. While a task runs: if two threads of its core have been busy for a
 * slice and some core is vacant, the tick moves one of the two tasks there. It tries the LLC, the
 * node, the machine, and moves at most one task per core and slice. With sync_local it also moves
 * tasks of short bursts, because the partner follows.
 *
 * Limits: a move loses what the caches held. So at a wakeup only tasks move that usually run for
 * migration_cost, and a running task moves only if its CPU has been busy for that long. Not on
 * machines of unequal CPUs, where the search by capacity prefers quiet siblings already. Before
 * Linux 7.1 no running task moves (no SCX_ENQ_IMMED).
 */
#ifndef ROOST_SMT_SPREAD_H
#define ROOST_SMT_SPREAD_H

#include "select_idle.h"

/* A task that runs for this long at a time is worth a core of its own. */
static __always_inline bool worth_a_core(u64 ran)
{
	return ran >= machine_arm()->migration_cost_ns;
}

/* An idle core of the scan's LLC that the task may use. */
static __always_inline s32 scan_core(port_task *p, const struct scan *s)
{
	return s->features & FEATURE_claim ? scan_and_take(p, s) : scan_llc(p, s);
}

/* As above, in the LLCs [@from, @end) except @own. @s: all but the LLC is set. */
subprog s32 scan_cores(port_task *p trusted, struct scan *s nonnull, u32 from, u32 end, u32 own)
{
	while (may_loop) {
		s32 llc = next_llc(SET_IDLE_CORE, from, end), cpu;

		if (llc == NO_CPU)
			return NO_CPU;
		from = llc + 1;
		if ((u32)llc == own)
			continue;
		s->llc = llc;
		cpu = scan_core(p, s);
		if (cpu != NO_CPU)
			return cpu;
	}
	return NO_CPU;
}

/* As above, in the other LLCs of @cpu's node, then in the other nodes. */
static __always_inline s32 core_around(port_task *p, struct scan *s, s32 cpu)
{
	const volatile struct node_facts *node = node_facts(cpu_facts(cpu)->node);
	u32 first = node->first_llc, end = first + node->nr_llcs, own = cpu_facts(cpu)->llc;
	s32 found = scan_cores(p, s, first, end, own);

	if (found == NO_CPU && first)
		found = scan_cores(p, s, 0, first, own);
	if (found == NO_CPU && end < machine_facts()->nr_llcs)
		found = scan_cores(p, s, end, machine_facts()->nr_llcs, own);
	return found;
}

/* ---- at a wakeup ---- */

/*
 * A vacant core outside the target's LLC. NO_CPU: the target's LLC has one, the task's own core is
 * idle, or there is none.
 */
static __always_inline s32 spread_wakeup(port_task *p, const struct wakeup *w, s32 target)
{
	struct scan s;
	s32 cpu;

	if (!machine_facts()->smt || machine_facts()->nr_llcs == 1 || machine_facts()->asym)
		return NO_CPU;
	if (w->vacant_core || sis_kthread(w) != NO_CPU)
		return NO_CPU;
	if (prev_usable(w, target) && core_whole(w, w->prev))
		return NO_CPU;
	s = scan_for(w);
	s.what = SCAN_CORE;
	s.vacant_ns = w->vacant_ns;
	cpu = core_around(p, &s, target);
	if (cpu == NO_CPU)
		count_wakeup(w, STAT_spread_none);
	return cpu;
}

/* ---- while running ---- */

/* A task of ours runs on @cpu, which has not been idle for @ns. */
static __always_inline bool busy_for(s32 cpu, u64 ns, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);

	return cs->curr_pid && !cs->idle_marked && (s64)(now - cs->busy_since) >= (s64)ns;
}

/* As above, for some sibling of @cpu. */
subprog bool sibling_busy_for(s32 cpu, u64 ns, u64 now)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	for_below (i, f->nr_sib, MAX_SMT)
		if (busy_for(sibling(f, i), ns, now))
			return true;
	return false;
}

/*
 * The task itself keeps its CPU busy, or does so together with a sync_local partner that follows
 * it.
 */
static __always_inline bool keeps_cpu_busy(const struct task_state *ts)
{
	return worth_a_core(ts->burst_run) || features_of(ts->pol.features) & FEATURE_sync_local;
}

/* @cpu has shared its core for a slice. The most common case, no idle core, is tested first. */
static __always_inline bool spread_due(const struct task_state *ts, s32 cpu, u64 now)
{
	u64 slice = ts->pol.slice_ns;
	u64 last;

	if (!machine_facts()->smt || machine_facts()->asym || !set_any(SET_IDLE_CORE))
		return false;
	if (!busy_for(cpu, slice, now) || !sibling_busy_for(cpu, slice, now))
		return false;
	if (!worth_a_core(now - cpu_state(cpu)->busy_since) || !keeps_cpu_busy(ts))
		return false;
	last = cpu_state(first_thread(cpu))->spread_at;
	return (s64)(now - last) >= (s64)slice;
}

/*
 * The idle core to which the task that runs on @cpu should move; NO_CPU: it stays. The
 * compare-and-swap on the core's turn lets only one of two simultaneous ticks of its threads pass.
 * Each core starts its scan at its own position, so that ticks of different cores choose different
 * cores.
 */
subprog s32 spread_target(port_task *p trusted, const struct task_state *ts nonnull, s32 cpu,
			  u64 now)
{
	u64 *turn = &cpu_state(first_thread(cpu))->spread_at, last = *turn;
	const volatile struct cpu_facts *own = cpu_facts(cpu);
	struct scan s = {
		.what = SCAN_CORE, .llc = own->llc, .start = own->pos, .budget = MAX_CPUS
	};
	s32 to;

	if (!spread_due(ts, cpu, now) || !atomic_cas(turn, last, now))
		return NO_CPU;
	s.arm = ts->pol.arm;
	s.features = ts->pol.features;
	s.now = now;
	s.claim_ttl = ts->pol.claim_ttl_ns;
	s.vacant_ns = vacant_within(now - cpu_state(cpu)->busy_since);
	to = scan_core(p, &s);
	if (to == NO_CPU && machine_facts()->nr_llcs > 1)
		to = core_around(p, &s, cpu);
	if (to == NO_CPU)
		count_for(ts->pol.arm, STAT_spread_none);
	return to;
}

#endif /* ROOST_SMT_SPREAD_H */
