/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets of CPUs: one word per 64 CPUs of each LLC, and for each set the LLCs that have a CPU in it.
 * A search reads words, not CPUs, and on a machine of many LLCs skips those that have none.
 *
 * When no change is under way, every LLC that has a CPU in a set is marked for that set. An LLC
 * that has none may stay marked until its next change; that costs a search one check.
 */
#ifndef ROOST_CPU_SET_H
#define ROOST_CPU_SET_H

#include "bits.h"

/* The word of @set that holds position @pos of @llc. */
static __always_inline u64 *set_word(enum cpu_set set, u32 llc, u32 pos)
{
	return &llc_state(llc)->set[set % NR_CPU_SETS][masked(pos / WORD_BITS, CPU_WORDS)];
}

/* The word that says whether @set has any CPU of @llc. */
static __always_inline u64 *llcs_word(enum cpu_set set, u32 llc)
{
	return &llc_sets()->set[set % NR_CPU_SETS][masked(llc / WORD_BITS, CPU_WORDS)];
}

static __always_inline bool set_has(enum cpu_set set, u32 llc, u32 pos)
{
	return *set_word(set, llc, pos) & bit_of(pos);
}

/*
 * No CPU of @llc is in @set. Words beyond the LLC's are 0. So all are read, in a loop that the
 * compiler unrolls: 6.18's verifier fails where a branch joins another one after a call of a
 * program with a loop ("verifier bug", mark_chain_precision).
 */
static __always_inline bool set_empty(enum cpu_set set, u32 llc)
{
	const u64 *words = llc_state(llc)->set[set % NR_CPU_SETS];
	u64 any = words[0];
	u32 i;

	if (any || llc_facts(llc)->nr_words == 1)
		return !any;
	for (i = 1; i < CPU_WORDS; i++)
		any |= words[i];
	return !any;
}

/* Add the CPUs of @mask, which lie in the word of @pos. */
static __always_inline void set_add_mask(enum cpu_set set, u32 llc, u32 pos, u64 mask)
{
	atomic_or(set_word(set, llc, pos), mask);
	/*
	 * Tested after the entry, never before. A CPU that empties the LLC meanwhile checks again
	 * after it has cleared the LLC's bit, so one of the two sets it.
	 */
	if (machine_facts()->nr_llcs > 1 && !(*llcs_word(set, llc) & bit_of(llc)))
		atomic_or(llcs_word(set, llc), bit_of(llc));
}

static __always_inline void set_remove_mask(enum cpu_set set, u32 llc, u32 pos, u64 mask)
{
	u64 *word = set_word(set, llc, pos);

	atomic_and(word, ~mask);
	if (*word)
		return;
	if (machine_facts()->nr_llcs == 1 || !set_empty(set, llc))
		return;
	atomic_and(llcs_word(set, llc), ~bit_of(llc));
	/* A CPU may have entered between the check and the clearing. */
	if (!set_empty(set, llc))
		atomic_or(llcs_word(set, llc), bit_of(llc));
}

static __always_inline void set_add(enum cpu_set set, u32 llc, u32 pos)
{
	set_add_mask(set, llc, pos, bit_of(pos));
}

static __always_inline void set_remove(enum cpu_set set, u32 llc, u32 pos)
{
	set_remove_mask(set, llc, pos, bit_of(pos));
}

/* The next LLC in [@from, @end) in which @set is not empty; NO_CPU if there is none. */
subprog s32 next_llc(u32 set, u32 from, u32 end)
{
	while (from < end && may_loop) {
		u64 word = *llcs_word(set, from) & (~0ULL << (from % WORD_BITS));

		if (word) {
			from = from / WORD_BITS * WORD_BITS + lowest_bit(word);
			return from < end ? (s32)from : NO_CPU;
		}
		from = (from / WORD_BITS + 1) * WORD_BITS;
	}
	return NO_CPU;
}

/* The next such LLC from @from on, around to it. */
static __always_inline s32 next_llc_around(u32 set, u32 from)
{
	s32 llc = next_llc(set, from, machine_facts()->nr_llcs);

	return llc != NO_CPU ? llc : next_llc(set, 0, from);
}

/* Some CPU is in @set. Up to 64 LLCs fit into one word; with more the answer is always true. */
static __always_inline bool set_any(enum cpu_set set)
{
	if (machine_facts()->nr_llcs == 1)
		return !set_empty(set, 0);
	return machine_facts()->nr_llcs > WORD_BITS || *llcs_word(set, 0);
}

/*
 * @cpu's whole core is in the set of idle cores. Without SMT there is no such set, and the CPU is
 * its core.
 */
static __always_inline bool in_idle_core(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);

	return set_has(machine_facts()->smt ? SET_IDLE_CORE : SET_IDLE, f->llc, f->pos);
}

/*
 * The bits of word @i in a walk from position @start and around to it. The first word is walked
 * from @start on, and comes last again, up to @start.
 */
static __always_inline u64 walk_mask(u32 i, u32 nr_words, u32 start)
{
	u64 from = ~0ULL << (start % WORD_BITS);

	return i == 0 ? from : i == nr_words ? ~from : ~0ULL;
}

/* The first position of word @i of such a walk. */
static __always_inline u32 walk_base(u32 i, u32 nr_words, u32 start)
{
	return ((start / WORD_BITS + i) % nr_words) * WORD_BITS;
}

#endif /* ROOST_CPU_SET_H */
