/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sets of idle CPUs, and the search in them.
 *
 * A CPU enters the set when it looks for work and its own queue is empty (dispatch), or when it
 * runs a SCHED_IDLE task (running). It leaves the set when any other task of ours runs there
 * (running). The tick follows a change of cpu.idle. The set is a filter: a candidate also has to be
 * idle by the kernel's own state (cpu_idle). So the search sees a task of another class, or one
 * that was just placed there. A search reads words, not CPUs.
 *
 * These callbacks run anyway. ops.update_idle would be one more for each transition.
 */
#ifndef ROOST_IDLE_SCAN_H
#define ROOST_IDLE_SCAN_H

#include "claim.h"
#include "cpu_set.h"
#include "vacant.h"

/* ---- idle cores whose threads lie in several words: the slow way ---- */

subprog bool siblings_marked(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	for_below (i, f->nr_sib, MAX_SMT)
		if (!cpu_away(sibling(f, i)) &&
		    !set_has(SET_IDLE, f->llc, cpu_facts(sibling(f, i))->pos))
			return false;
	return true;
}

subprog u32 core_enters_split(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	set_add(SET_IDLE_CORE, f->llc, f->pos);
	for_below (i, f->nr_sib, MAX_SMT)
		set_add(SET_IDLE_CORE, f->llc, cpu_facts(sibling(f, i))->pos);
	return 0;
}

subprog u32 core_leaves_split(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	set_remove(SET_IDLE_CORE, f->llc, f->pos);
	for_below (i, f->nr_sib, MAX_SMT)
		set_remove(SET_IDLE_CORE, f->llc, cpu_facts(sibling(f, i))->pos);
	return 0;
}

/* ---- idle cores; @mask: the core's threads as bits of one word; 0: they lie in several ---- */

static __always_inline bool core_marked(s32 cpu, u32 llc, u32 pos, u64 mask)
{
	return mask ? (*set_word(SET_IDLE, llc, pos) & mask) == mask : siblings_marked(cpu);
}

static __always_inline void core_enters(s32 cpu, u32 llc, u32 pos, u64 mask)
{
	if (mask)
		set_add_mask(SET_IDLE_CORE, llc, pos, mask);
	else
		core_enters_split(cpu);
}

static __always_inline void core_leaves(s32 cpu, u32 llc, u32 pos, u64 mask)
{
	if (!mask)
		core_leaves_split(cpu);
	else if (*set_word(SET_IDLE_CORE, llc, pos) & mask)
		set_remove_mask(SET_IDLE_CORE, llc, pos, mask);
}

/*
 * A sibling became busy while the core was added. Removing the core may undo the entry of a sibling
 * that is idle again, so repeat until the set and the last check agree.
 */
subprog u32 core_settles(s32 cpu, u32 llc, u32 pos, u64 mask)
{
	while (may_loop) {
		core_leaves(cpu, llc, pos, mask);
		if (!core_marked(cpu, llc, pos, mask))
			break;
		core_enters(cpu, llc, pos, mask);
		if (core_marked(cpu, llc, pos, mask))
			break;
	}
	return 0;
}

/*
 * @cpu became idle: add its core if all its threads are idle. A sibling that becomes busy between
 * the check and the entry finds nothing to remove, so check again.
 */
static __always_inline void core_gains(s32 cpu, u32 llc, u32 pos, u64 mask)
{
	if (!core_marked(cpu, llc, pos, mask))
		return;
	core_enters(cpu, llc, pos, mask);
	if (!core_marked(cpu, llc, pos, mask))
		core_settles(cpu, llc, pos, mask);
}

/* @cpu has nothing to run, or only a SCHED_IDLE task. Called on that CPU. */
static __always_inline void mark_idle(s32 cpu, struct cpu_state *cs)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);

	if (cs->idle_marked)
		return;
	cs->idle_marked = 1;
	set_add(SET_IDLE, f->llc, f->pos);
	if (machine_facts()->smt)
		core_gains(cpu, f->llc, f->pos, cs->core_mask);
}

/* @cpu runs a task of ours. */
static __always_inline void mark_busy(s32 cpu, struct cpu_state *cs)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);

	if (!cs->idle_marked)
		return;
	cs->idle_marked = 0;
	set_remove(SET_IDLE, f->llc, f->pos);
	if (machine_facts()->smt)
		core_leaves(cpu, f->llc, f->pos, cs->core_mask);
}

/*
 * Compute the mask of a core whose threads lie in one word; at init and when a thread goes or
 * comes.
 */
subprog u32 core_mask_init(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u64 mask = bit_of(f->pos);
	u32 i;

	for_below (i, f->nr_sib, MAX_SMT) {
		u32 pos = cpu_facts(sibling(f, i))->pos;

		if (cpu_away(sibling(f, i)))
			continue;
		if (pos / WORD_BITS != f->pos / WORD_BITS) {
			mask = 0;
			break;
		}
		mask |= bit_of(pos);
	}
	cpu_state(cpu)->core_mask = mask;
	return 0;
}

/* ---- searching them ---- */

enum scan_for {
	SCAN_CPU,    /* any free CPU */
	SCAN_CORE,   /* a CPU of a wholly idle core */
	SCAN_BESIDE, /* a free CPU beside a busy one of its core */
};

/* A search in one LLC, in order of CPU number, from position @start and around to it. */
struct scan {
	enum scan_for what;
	u32 llc;
	u32 start;
	u32 budget;	 /* CPUs to visit at most */
	bool by_idle;	 /* the budget is avg_idle_scan's; else sis_util's */
	bool sched_idle; /* policy SCHED_IDLE, or a group with cpu.idle */

	/* from the wakeup, if there is one: needed to claim what is found */
	u32 arm;
	u32 features;
	u64 now;
	u64 claim_ttl;
	u64 vacant_ns; /* how long the core must have been idle; 0: any time */
};

static __always_inline struct scan scan_for(const struct wakeup *w)
{
	struct scan s = { .budget = MAX_CPUS };

	s.sched_idle = w->sched_idle;
	s.arm = w->arm;
	s.features = w->features;
	s.now = w->now;
	s.claim_ttl = w->claim_ttl;
	return s;
}

/* No other wakeup has claimed @cpu, or for SCAN_CORE its core. */
static __always_inline bool scan_unclaimed(const struct scan *s, s32 cpu)
{
	bool free;

	if (s->what == SCAN_CORE)
		free = core_unclaimed(cpu, s->features, s->now, s->claim_ttl);
	else
		free = !claim_live(cpu, s->now, s->claim_ttl);
	if (!free)
		count_for(s->arm, STAT_claim_seen);
	return free;
}

static __always_inline bool scan_accepts(port_task *p, const struct scan *s, s32 cpu)
{
	/* Our own memory is read before the kernel's. */
	if (s->vacant_ns && !core_vacant(cpu, s->now, s->vacant_ns))
		return false;
	if (s->what == SCAN_CORE ? !core_idle(cpu) : !cpu_free(cpu, s->sched_idle))
		return false;
	if (!task_allowed(p, cpu))
		return false;
	return !(s->features & FEATURE_claim) || scan_unclaimed(s, cpu);
}

/*
 * How many CPUs a walk visits before @pos. The kernel walks over the task's allowed CPUs only
 * (select_idle_cpu(): cpumask_and()), so those of a restricted task are counted.
 */
subprog u32 walk_distance(port_task *p trusted, u32 llc, u32 start, u32 pos)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u32 distance = pos >= start ? pos - start : pos + f->nr_cpus - start;
	u32 visited = 0, i;

	if (!task_restricted(p))
		return distance;
	for_below (i, distance, MAX_CPUS)
		visited += task_allowed(p, llc_cpu(f->first + (start + i) % f->nr_cpus));
	return visited;
}

/* The candidates of the word at position @base. */
static __always_inline u64 scan_word(const struct scan *s, u32 base)
{
	if (s->what == SCAN_CORE)
		return *set_word(SET_IDLE_CORE, s->llc, base);
	if (s->what == SCAN_BESIDE)
		return *set_word(SET_IDLE, s->llc, base) & ~*set_word(SET_IDLE_CORE, s->llc, base);
	return *set_word(SET_IDLE, s->llc, base);
}

/*
 * The first CPU that the scan accepts; NO_CPU if there is none (kernel: select_idle_cpu(),
 * for_each_cpu_wrap()).
 */
subprog s32 scan_llc(port_task *p trusted, const struct scan *s nonnull)
{
	const volatile struct llc_facts *f = llc_facts(s->llc);
	u32 nr_words = f->nr_words, i;

	for_below (i, nr_words + 1, CPU_WORDS + 1) {
		u32 base = walk_base(i, nr_words, s->start);
		u64 word = scan_word(s, base) & walk_mask(i, nr_words, s->start);

		while (word && may_loop) {
			u32 pos = base + lowest_bit(word);
			s32 cpu = llc_cpu(f->first + pos);

			if (s->budget < f->nr_cpus &&
			    walk_distance(p, s->llc, s->start, pos) >= s->budget) {
				count_for(s->arm,
					  s->by_idle ? STAT_idle_scan_out : STAT_sis_budget_out);
				return NO_CPU;
			}
			if (scan_accepts(p, s, cpu))
				return cpu;
			word &= word - 1;
		}
	}
	return NO_CPU;
}

/* Claim what the scan found. False: another wakeup was first, and the scan goes on. */
static __always_inline bool scan_takes(const struct scan *s, s32 cpu)
{
	if (s->what == SCAN_CORE)
		return claim_core_take(cpu, s->features, s->arm, s->now, s->claim_ttl);
	return claim_take(cpu, s->features, s->arm, s->now, s->claim_ttl);
}

/*
 * The first CPU that the scan accepts, claimed. Separate from scan_llc(), which other callers use
 * deep in a call chain.
 */
subprog s32 scan_and_take(port_task *p trusted, const struct scan *s nonnull)
{
	while (may_loop) {
		s32 cpu = scan_llc(p, s);

		if (cpu == NO_CPU || scan_takes(s, cpu))
			return cpu;
	}
	return NO_CPU;
}

static __always_inline s32 scan_within(port_task *p, const struct wakeup *w, struct scan *s)
{
	return has(w, FEATURE_claim) ? scan_and_take(p, s) : scan_llc(p, s);
}

/* A scan without a budget. */
static __always_inline s32 scan(port_task *p, const struct wakeup *w, u32 llc, u32 start,
				enum scan_for what)
{
	struct scan s = scan_for(w);

	s.what = what;
	s.llc = llc;
	s.start = start;
	return scan_within(p, w, &s);
}

/*
 * A free CPU in the LLCs [@from, @end) except @own; in each LLC a wholly idle core first. Sets the
 * LLC, start and kind of @s; on return they are those of the CPU found.
 */
subprog s32 scan_llcs(port_task *p trusted, struct scan *s nonnull, u32 from, u32 end, u32 own)
{
	while (may_loop) {
		s32 llc = next_llc(SET_IDLE, from, end), cpu = NO_CPU;

		if (llc == NO_CPU)
			return NO_CPU;
		from = llc + 1;
		if ((u32)llc == own)
			continue;
		s->llc = llc;
		s->start = 0;
		s->what = SCAN_CORE;
		if (machine_facts()->smt)
			cpu = scan_llc(p, s);
		if (cpu != NO_CPU)
			return cpu;
		s->what = SCAN_CPU;
		cpu = scan_llc(p, s);
		if (cpu != NO_CPU)
			return cpu;
	}
	return NO_CPU;
}

subprog s32 scan_llcs_and_take(port_task *p trusted, struct scan *s nonnull, u32 from, u32 end,
			       u32 own)
{
	while (may_loop) {
		s32 cpu = scan_llcs(p, s, from, end, own);

		if (cpu == NO_CPU || !(s->features & FEATURE_claim) || scan_takes(s, cpu))
			return cpu;
	}
	return NO_CPU;
}

#endif /* ROOST_IDLE_SCAN_H */
