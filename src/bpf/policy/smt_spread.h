/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * smt_spread (ours). Problem: two tasks share a core while another core has none, because the search for an idle CPU ends at
 * the LLC, and because who never sleeps is never placed anew. The kernel's load balancer repairs it, late.
 * Method: one thread per core is where a machine that is not full shall come to rest. At a wakeup, when the target's LLC has
 * no vacant core (vacant.h) that is nobody's yet, so that whatever is found there lies beside a busy thread or is another's,
 * the task goes to such a core of the node, then of the machine. While it runs: when two threads of a core have both been busy
 * for a slice and a core is vacant, the tick sends the task of one of the two there, of the LLC, the node, the machine; at most one
 * of a core and slice. A task of short bursts too, where sync_local keeps two that wake each other on one CPU: the other comes along.
 * Limits: a move costs what the caches held. So at a wakeup only tasks that usually run for migration_cost at least, and from a
 * CPU that has been busy for as long at least. Not on machines of unequal CPUs, where the search by capacity asks for quiet
 * siblings itself.
 */
#ifndef ROOST_SMT_SPREAD_H
#define ROOST_SMT_SPREAD_H

#include "select_idle.h"

/* What runs for so long at a time is worth a move to a core of its own. */
static __always_inline bool worth_a_core(u64 ran)
{
	return ran >= machine_arm()->migration_cost_ns;
}

/* An idle core of an LLC that the task may use. */
static __always_inline s32 scan_core(port_task *p, const struct scan *s)
{
	return s->features & FEATURE_claim ? scan_and_take(p, s) : scan_llc(p, s);
}

/* The same of the LLCs [@from, @end) but @own. @s: all but the LLC. */
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

/* The same of the node of @cpu but its own LLC, then of the other nodes. */
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

/* A vacant core away from the target's LLC, which has none; NO_CPU: it has, the task's own core is idle, or nowhere is one. */
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
		count_for(w->arm, STAT_spread_none);
	return cpu;
}

/* ---- while running ---- */

/* A task of ours runs on @cpu, which has not been idle for @ns. */
static __always_inline bool busy_for(s32 cpu, u64 ns, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);

	return cs->curr_pid && !cs->idle_marked && (s64)(now - cs->busy_since) >= (s64)ns;
}

/* The same of another thread of its core. */
subprog bool sibling_busy_for(s32 cpu, u64 ns, u64 now)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	for_below (i, f->nr_sib, MAX_SMT)
		if (busy_for(sibling(f, i), ns, now))
			return true;
	return false;
}

/* That its CPU has been busy is the work of the task, or of it and a partner that follows it. */
static __always_inline bool keeps_cpu_busy(const struct task_state *ts)
{
	return worth_a_core(ts->burst_run) || features_of(ts->pol.features) & FEATURE_sync_local;
}

/* @cpu shares its core, and has for a slice. Most often no core idles, and that is asked first. */
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
 * The idle core that the task that runs on @cpu shall go to; NO_CPU: it stays. The ticks of two threads may come at once: one
 * of them gets the turn of its core. So may those of two cores: each begins to look from its own place, or both would choose the same.
 */
subprog s32 spread_target(port_task *p trusted, const struct task_state *ts nonnull, s32 cpu, u64 now)
{
	u64 *turn = &cpu_state(first_thread(cpu))->spread_at, last = *turn;
	const volatile struct cpu_facts *own = cpu_facts(cpu);
	struct scan s = { .what = SCAN_CORE, .llc = own->llc, .start = own->pos, .budget = MAX_CPUS };
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
