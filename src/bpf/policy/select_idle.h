/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rungs of the kernel's select_idle_sibling(). Each answers with an idle CPU near the target,
 * or NO_CPU; only sis_kthread() answers with a busy one. Their order is in ladder.h.
 */
#ifndef ROOST_SELECT_IDLE_H
#define ROOST_SELECT_IDLE_H

#include "idle_scan.h"
#include "recent_core.h"
#include "sync_core.h"

/* Sums of an LLC that are older than this do not count. ns */
#define STALE_SUM_NS 20000000ULL

/*
 * The LLC of @cpu may have an idle core. The set only answers this; a search tests the CPUs. A core
 * that another class has just taken, or that runs only SCHED_IDLE tasks, is still in it (kernel:
 * test_idle_cores(), a hint that any failed search clears).
 */
static __always_inline bool has_idle_core(s32 cpu)
{
	return machine_facts()->smt && !set_empty(SET_IDLE_CORE, cpu_facts(cpu)->llc);
}

/*
 * How many CPUs of the LLC a search may visit; all of them if the LLC's sums are old. Only ticks of
 * running tasks renew the sums, so those of an idle LLC say nothing (the kernel also renews them in
 * idle balancing).
 */
static __always_inline u32 llc_budget(u32 llc, u64 now)
{
	const struct llc_state *ls = llc_state(llc);
	/*
	 * All ones if stale. No branch, because 6.18's verifier would follow both ways each time.
	 */
	u32 stale = (s64)(ls->summed_at + STALE_SUM_NS - now) >> 63;

	opaque(stale);
	return (ls->scan_budget & ~stale) | (llc_facts(llc)->nr_cpus & stale);
}

/* [claim] Neither @cpu's core nor a thread of it is claimed. */
static __always_inline bool core_free_of_claims(const struct wakeup *w, s32 cpu)
{
	return !has(w, FEATURE_claim) || core_unclaimed(cpu, w->features, w->now, w->claim_ttl);
}

/* @cpu's core is wholly idle and [claim] unclaimed. */
static __always_inline bool core_whole(const struct wakeup *w, s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);

	return set_has(SET_IDLE_CORE, f->llc, f->pos) && core_free_of_claims(w, cpu);
}

/* Of a core's threads, one that is there is looked at: the first, or if it is away, any. */
static __always_inline bool stands_for_core(s32 cpu)
{
	return first_thread(cpu) == cpu || cpu_away(first_thread(cpu));
}

/* A wholly idle core of @llc is vacant and [claim] unclaimed. */
subprog bool llc_has_vacant_core(u32 llc, const struct wakeup *w nonnull)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u32 nr_words = f->nr_words, i;

	for_below (i, nr_words, CPU_WORDS) {
		u64 word = *set_word(SET_IDLE_CORE, llc, i * WORD_BITS);

		for (; word && may_loop; word &= word - 1) {
			s32 cpu = llc_cpu(f->first + i * WORD_BITS + lowest_bit(word));

			if (stands_for_core(cpu) && core_vacant(cpu, w->now, w->vacant_ns) &&
			    core_free_of_claims(w, cpu))
				return true;
		}
	}
	return false;
}

/* Done once per wakeup, because all rungs around the target need the answer for the same LLC. */
static __always_inline void look_for_vacant_core(struct wakeup *w, const struct task_state *ts,
						 s32 target)
{
	w->vacant_core = false;
	if (!has(w, FEATURE_core_first) && !has(w, FEATURE_smt_spread))
		return;
	w->vacant_ns = vacant_for_sleeper(ts, w->now);
	w->vacant_core = has_idle_core(target) && llc_has_vacant_core(cpu_facts(target)->llc, w);
}

/*
 * [core_first] @cpu's core is not wholly idle, and its LLC has a vacant core. Not if sis_util's
 * budget for the LLC is 0: no search would find that core, so @cpu is good enough.
 */
static __always_inline bool core_to_be_had(const struct wakeup *w, s32 cpu)
{
	if (!has(w, FEATURE_core_first) || !w->vacant_core || core_whole(w, cpu))
		return false;
	return !has(w, FEATURE_sis_util) || llc_budget(cpu_facts(cpu)->llc, w->now);
}

/*
 * @cpu is free for the task. The set is tested first, because most CPUs are not in it. It also
 * holds CPUs that run only a SCHED_IDLE task.
 */
static __always_inline bool marked_free(const struct wakeup *w, s32 cpu)
{
	return cpu_marked(cpu) && cpu_free(cpu, w->sched_idle);
}

/*
 * @cpu, if it is free, fits, [core_first] is not passed over, and [claim] has been claimed; else
 * NO_CPU.
 */
static __always_inline s32 free_and_fits(const struct wakeup *w, s32 cpu)
{
	if (!marked_free(w, cpu) || !asym_fits(w, cpu))
		return NO_CPU;
	if (!core_to_be_had(w, cpu))
		return take(w, cpu) ? cpu : NO_CPU;
	count_wakeup(w, STAT_core_first);
	return NO_CPU;
}

/* The task may use the target, which is the waker's CPU or the previous one. */
static __always_inline bool target_usable(const struct wakeup *w, s32 target)
{
	return target == w->this_cpu ? w->this_allowed : target == w->prev;
}

/* The previous CPU is allowed and shares the target's cache. */
static __always_inline bool prev_usable(const struct wakeup *w, s32 target)
{
	return w->prev != NO_CPU && share_cache(w->prev, target);
}

/*
 * The waker is a per-CPU kthread of this CPU, where the task ran last, and is about to sleep: queue
 * behind it. The kernel does this for a kworker that completes I/O.
 */
static __always_inline s32 sis_kthread(const struct wakeup *w)
{
	if (!w->waker_pcpu_kthread || w->prev != w->this_cpu || cpu_nr_running(w->this_cpu) > 1)
		return NO_CPU;
	return asym_fits(w, w->prev) ? w->prev : NO_CPU;
}

/* A free sibling of @cpu. */
subprog s32 free_sibling(port_task *p trusted, const struct wakeup *w nonnull, s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	for_below (i, f->nr_sib, MAX_SMT)
		if (cpu_free(sibling(f, i), w->sched_idle) && task_allowed(p, sibling(f, i)) &&
		    take(w, sibling(f, i)))
			return sibling(f, i);
	return NO_CPU;
}

/* A free sibling of the previous CPU, if that shares the target's cache. */
static __always_inline s32 sis_smt(port_task *p, const struct wakeup *w, s32 target)
{
	return share_cache(w->last_cpu, target) ? free_sibling(p, w, w->last_cpu) : NO_CPU;
}

/* The position after @cpu's in its LLC; 0 after the last one. */
static __always_inline u32 after(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);

	return f->pos + 1 < llc_facts(f->llc)->nr_cpus ? f->pos + 1 : 0;
}

/*
 * [sis_util] The busier the target's LLC, the fewer of its CPUs are searched; none if it is nearly
 * full.
 */
static __always_inline u32 sis_budget(const struct wakeup *w, s32 target)
{
	u32 budget =
		has(w, FEATURE_sis_util) ? llc_budget(cpu_facts(target)->llc, w->now) : MAX_CPUS;

	if (!budget)
		count_wakeup(w, STAT_sis_budget_out);
	return budget;
}

/*
 * [avg_idle_scan] How many CPUs of @llc a scan may visit. Userspace computes this from the LLC's
 * idle periods, at least four, so that each scan does search (src/model/idle.rs). MAX_CPUS means no
 * bound: the value is not less than @budget or the whole LLC, is missing, or is too old.
 */
subprog u32 scan_worth(u32 llc, u32 budget, u32 arm)
{
	u64 bound = llc_scan_bound(llc);
	u32 worth = bound;

	if (worth >= budget || worth >= llc_facts(llc)->nr_cpus)
		return MAX_CPUS;
	if (!worth || (s32)((u32)(bound >> 32) - clock_ms()) < 0) {
		count_for(arm, STAT_idle_scan_unknown);
		return MAX_CPUS;
	}
	count_for(arm, STAT_idle_scan_bound);
	return worth;
}

/* A wholly idle core of the target's LLC. */
static __always_inline s32 sis_core(port_task *p, const struct wakeup *w, s32 target)
{
	return scan(p, w, cpu_facts(target)->llc, after(target), SCAN_CORE);
}

/*
 * An idle CPU of the target's LLC, at most @budget CPUs away. @hope: the LLC has a wholly idle
 * core. Then avg_idle_scan sets no bound, like sis_util.
 */
static __always_inline s32 sis_cpu(port_task *p, const struct wakeup *w, s32 target, u32 budget,
				   bool hope)
{
	struct scan s = scan_for(w);
	const u32 idle = FEATURE_avg_idle | FEATURE_avg_idle_scan;
	u32 worth = MAX_CPUS;

	s.what = SCAN_CPU;
	s.llc = cpu_facts(target)->llc;
	s.start = after(target);
	if ((w->features & idle) == idle && !hope)
		worth = scan_worth(s.llc, budget, w->arm);
	s.by_idle = worth < budget;
	s.budget = s.by_idle ? worth : budget;
	return scan_within(p, w, &s);
}

/*
 * How many CPUs of an LLC a wakeup may visit in search of an idle one: all when the LLC is idle,
 * none when its utilisation nears 85 %. @util: sum over its CPUs, 0..nr_cpus * CAPACITY_SCALE.
 * (kernel: update_idle_cpu_scan(), with imbalance_pct 117 of an LLC domain)
 */
static __always_inline u32 scan_budget(u64 util, u32 nr_cpus)
{
	const u64 pct = 117;
	u64 mean = util / nr_cpus;
	u64 used = mean * mean * pct * pct / (10000 * CAPACITY_SCALE);

	return used >= CAPACITY_SCALE ? 0 : nr_cpus * (CAPACITY_SCALE - used) / CAPACITY_SCALE;
}

/*
 * Sum the LLC's signals and set its budget. A tick of one CPU of the LLC calls this every
 * LLC_SUM_NS.
 */
subprog u32 llc_sum(u32 llc, u64 now)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	struct llc_state *ls = llc_state(llc);
	u64 load = 0, util = 0;
	u32 nr_running = 0, i;

	for_below (i, f->nr_cpus, MAX_CPUS) {
		s32 cpu = llc_cpu(f->first + i);

		load += cpu_load(cpu, now);
		util += cpu_demand(cpu, cpu_util(cpu, now));
		nr_running += cpu_nr_running(cpu);
	}
	ls->load = load;
	ls->util = util;
	ls->nr_running = nr_running;
	ls->scan_budget = scan_budget(util, f->nr_cpus);
	return 0;
}

#endif /* ROOST_SELECT_IDLE_H */
