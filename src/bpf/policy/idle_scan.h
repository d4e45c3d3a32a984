/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sets of idle CPUs, and the search in them.
 *
 * A CPU enters the set when it looks for work and its own queue is empty (dispatch), and leaves it when a task of
 * ours runs there (running). The set is a filter: a candidate counts only after a peek at the kernel's own state
 * (cpu_idle), so a task of another class, or one just placed there, is seen. A search thus reads words, not CPUs.
 */
#ifndef ROOST_IDLE_SCAN_H
#define ROOST_IDLE_SCAN_H

#include "wakeup.h"

/* ---- keeping the sets ---- */

/* Is @pos set in a set of the LLC? */
static __always_inline bool in_set(u64 *words, u32 pos)
{
	return *word_of(words, pos) & bit_of(pos);
}

static __always_inline bool set_empty(u64 *words, u32 nr_words)
{
	u32 i;

	for (i = 0; i < CPU_WORDS && i < nr_words; i++)
		if (words[i])
			return false;
	return true;
}

/* Add a CPU to a set of its LLC, and the LLC to the set of LLCs that have any. */
static __always_inline void set_add(u64 *words, u64 *llcs, u32 llc, u32 pos)
{
	if (!atomic_or(word_of(words, pos), bit_of(pos)) && machine_facts()->nr_llcs > 1)
		atomic_or(word_of(llcs, llc), bit_of(llc));
}

static __always_inline void set_remove(u64 *words, u64 *llcs, u32 llc, u32 pos)
{
	u32 nr_words = llc_facts(llc)->nr_words;

	if (atomic_and(word_of(words, pos), ~bit_of(pos)) & ~bit_of(pos))
		return;
	if (machine_facts()->nr_llcs == 1 || !set_empty(words, nr_words))
		return;
	atomic_and(word_of(llcs, llc), ~bit_of(llc));
	/* A CPU may have entered between the look and the clearing. */
	if (!set_empty(words, nr_words))
		atomic_or(word_of(llcs, llc), bit_of(llc));
}

/* The core's threads that lie in other words than @cpu, or have no precomputed mask: are all idle? */
static __always_inline bool siblings_marked(struct llc_state *llc, const volatile struct cpu_facts *f)
{
	u32 i;

	for (i = 0; i < MAX_SMT - 1 && i < f->nr_sib; i++)
		if (!in_set(llc->idle, cpu_facts(f->sib[i])->pos))
			return false;
	return true;
}

static __always_inline void core_mark(struct llc_state *llc, const volatile struct cpu_facts *f, bool idle)
{
	u32 i;

	if (idle)
		atomic_or(word_of(llc->idle_core, f->pos), bit_of(f->pos));
	else
		atomic_and(word_of(llc->idle_core, f->pos), ~bit_of(f->pos));
	for (i = 0; i < MAX_SMT - 1 && i < f->nr_sib; i++) {
		u32 pos = cpu_facts(f->sib[i])->pos;

		if (idle)
			atomic_or(word_of(llc->idle_core, pos), bit_of(pos));
		else
			atomic_and(word_of(llc->idle_core, pos), ~bit_of(pos));
	}
}

/* The core of @f became wholly idle, or may have. */
static __always_inline void core_gains(struct llc_state *llc, const volatile struct cpu_facts *f, u64 mask)
{
	if (!mask) {
		if (siblings_marked(llc, f))
			core_mark(llc, f, true);
	} else if ((*word_of(llc->idle, f->pos) & mask) == mask) {
		atomic_or(word_of(llc->idle_core, f->pos), mask);
	}
}

static __always_inline void core_loses(struct llc_state *llc, const volatile struct cpu_facts *f, u64 mask)
{
	if (!mask)
		core_mark(llc, f, false);
	else if (*word_of(llc->idle_core, f->pos) & mask)
		atomic_and(word_of(llc->idle_core, f->pos), ~mask);
}

/* @cpu has nothing to run. Called on that CPU. */
static __always_inline void mark_idle(s32 cpu, struct cpu_state *cs)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	struct llc_state *llc = llc_state(f->llc);

	if (cs->idle_marked)
		return;
	cs->idle_marked = 1;
	set_add(llc->idle, llc_sets()->idle, f->llc, f->pos);
	if (machine_facts()->smt)
		core_gains(llc, f, cs->core_mask);
}

/* @cpu runs a task of ours. */
static __always_inline void mark_busy(s32 cpu, struct cpu_state *cs)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	struct llc_state *llc = llc_state(f->llc);

	if (!cs->idle_marked)
		return;
	cs->idle_marked = 0;
	set_remove(llc->idle, llc_sets()->idle, f->llc, f->pos);
	if (machine_facts()->smt)
		core_loses(llc, f, cs->core_mask);
}

/* Set the precomputed mask of a core whose threads lie in one word; once, at init. */
static __always_inline void core_mask_init(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u64 mask = bit_of(f->pos);
	u32 i;

	for (i = 0; i < MAX_SMT - 1 && i < f->nr_sib; i++) {
		u32 pos = cpu_facts(f->sib[i])->pos;

		if (pos / WORD_BITS != f->pos / WORD_BITS) {
			mask = 0;
			break;
		}
		mask |= bit_of(pos);
	}
	cpu_state(cpu)->core_mask = mask;
}

/* ---- searching them ---- */

enum scan_for {
	SCAN_CPU,  /* any free CPU */
	SCAN_CORE, /* a CPU of a wholly idle core */
};

static __always_inline bool scan_accepts(const struct wakeup *w, s32 cpu, enum scan_for what)
{
	if (what == SCAN_CORE ? !core_idle(cpu) : !cpu_free(w, cpu))
		return false;
	return task_allowed(w->p, cpu);
}

/* The bits of word @i of a walk that begins at position @start and comes around to it: first its end, last its head. */
static __always_inline u64 walk_mask(u32 i, u32 nr_words, u32 start)
{
	u64 from = ~0ULL << (start % WORD_BITS);

	return i == 0 ? from : i == nr_words ? ~from : ~0ULL;
}

/*
 * How many CPUs a walk from @start has visited before it comes to @pos. The kernel's walk is over the task's allowed
 * CPUs only (select_idle_cpu: cpumask_and), so a restricted task's have to be counted.
 */
static __always_inline u32 walk_distance(const struct wakeup *w, const volatile struct llc_facts *f, u32 start, u32 pos)
{
	u32 distance = pos >= start ? pos - start : pos + f->nr_cpus - start;
	u32 visited = 0, i;

	if (!task_restricted(w->p))
		return distance;
	for (i = 0; i < distance && i < MAX_CPUS && may_loop; i++)
		visited += task_allowed(w->p, llc_cpu(f->first + (start + i) % f->nr_cpus));
	return visited;
}

/*
 * The first CPU of @llc that @what accepts, in order of CPU number from position @start on and around, at
 * most @budget CPUs away; NO_CPU if there is none. (kernel: select_idle_cpu(), for_each_cpu_wrap)
 */
static __always_inline s32 scan_llc(const struct wakeup *w, u32 llc, u32 start, enum scan_for what, u32 budget)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u64 *words = what == SCAN_CORE ? llc_state(llc)->idle_core : llc_state(llc)->idle;
	u32 nr_words = f->nr_words, i;

	for (i = 0; i <= nr_words && i <= CPU_WORDS && may_loop; i++) {
		u32 base = ((start / WORD_BITS + i) % nr_words) * WORD_BITS;
		u64 word = *word_of(words, base) & walk_mask(i, nr_words, start);

		while (word && may_loop) {
			u32 pos = base + lowest_bit(word);
			s32 cpu = llc_cpu(f->first + pos);

			if (budget < f->nr_cpus && walk_distance(w, f, start, pos) >= budget) {
				count(STAT_sis_budget_out);
				return NO_CPU;
			}
			if (scan_accepts(w, cpu, what))
				return cpu;
			word &= word - 1;
		}
	}
	return NO_CPU;
}

/* The next LLC at or after @from and before @end that is in the set; NO_CPU if there is none. */
static __always_inline s32 next_llc(u64 *llcs, u32 from, u32 end)
{
	while (from < end && from < MAX_LLCS && may_loop) {
		u64 word = *word_of(llcs, from) & (~0ULL << (from % WORD_BITS));

		if (word) {
			from = from / WORD_BITS * WORD_BITS + lowest_bit(word);
			return from < end ? (s32)from : NO_CPU;
		}
		from = (from / WORD_BITS + 1) * WORD_BITS;
	}
	return NO_CPU;
}

/* A free CPU in the LLCs [@from, @end), a wholly idle core before a thread. */
static __always_inline s32 scan_llcs(const struct wakeup *w, u32 from, u32 end)
{
	s32 llc, cpu;

	while (may_loop) {
		llc = next_llc(llc_sets()->idle, from, end);
		if (llc == NO_CPU)
			return NO_CPU;
		cpu = machine_facts()->smt ? scan_llc(w, llc, 0, SCAN_CORE, MAX_CPUS) : NO_CPU;
		if (cpu == NO_CPU)
			cpu = scan_llc(w, llc, 0, SCAN_CPU, MAX_CPUS);
		if (cpu != NO_CPU)
			return cpu;
		from = llc + 1;
	}
	return NO_CPU;
}

#endif /* ROOST_IDLE_SCAN_H */
