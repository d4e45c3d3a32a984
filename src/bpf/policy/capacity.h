/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asymmetric machines: CPUs differ in capacity, and a task may be too big for some. After the kernel's
 * select_idle_capacity() (kernel/sched/fair.c).
 */
#ifndef ROOST_CAPACITY_H
#define ROOST_CAPACITY_H

#include "select_idle.h"

/* How well a CPU suits that is not the perfect one; less is better (kernel: enum asym_fits_state). */
enum suits {
	SUITS_QUIET,	/* too small, but its core is idle: still more than a shared one gives */
	SUITS_SHARED,	/* big enough, beside a busy sibling */
	SUITS_NEITHER,	/* too small, beside a busy sibling */
	SUITS_NOT_SEEN, /* no CPU yet */
};

struct choice {
	u64 util; /* of the task */
	s32 cpu;  /* the best so far */
	enum suits suits;
	u32 capacity;
	bool core;	 /* some core of the machine is wholly idle */
	bool sched_idle; /* the task has policy SCHED_IDLE */
	bool perfect;	 /* it fits there, and nothing better is to be had */
};

static __always_inline void choose(struct choice *best, s32 cpu)
{
	bool quiet = !best->core || siblings_idle(cpu), fits = fits_capacity(best->util, cpu);
	enum suits suits = quiet ? SUITS_QUIET : fits ? SUITS_SHARED : SUITS_NEITHER;
	u32 capacity = cpu_capacity_now(cpu);

	best->perfect = quiet && fits;
	if (best->perfect || suits < best->suits || (suits == best->suits && capacity > best->capacity)) {
		best->cpu = cpu;
		best->suits = suits;
		best->capacity = capacity;
	}
}

/* Every free CPU of @llc, from position @start on and around, up to the perfect one. */
subprog u32 choose_in_llc(port_task *p trusted, struct choice *best nonnull, u32 llc, u32 start)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u32 nr_words = f->nr_words, i;

	for_below (i, nr_words + 1, CPU_WORDS + 1) {
		u32 base = walk_base(i, nr_words, start);
		u64 word = *set_word(SET_IDLE, llc, base) & walk_mask(i, nr_words, start);

		while (word && may_loop) {
			s32 cpu = llc_cpu(f->first + base + lowest_bit(word));

			word &= word - 1;
			if (!cpu_free(cpu, best->sched_idle) || !task_allowed(p, cpu))
				continue;
			choose(best, cpu);
			if (best->perfect)
				return 0;
		}
	}
	return 0;
}

static __always_inline bool machine_has_idle_core(void)
{
	u32 nr_llcs = machine_facts()->nr_llcs;

	if (!machine_facts()->smt)
		return false;
	return nr_llcs == 1 ? !set_empty(SET_IDLE_CORE, 0) : next_llc(SET_IDLE_CORE, 0, nr_llcs) != NO_CPU;
}

/*
 * A free CPU on which @util fits, over the whole machine and from the target on; without one the free CPU that suits
 * best. While some core is wholly idle, threads beside a busy sibling come last.
 */
subprog s32 sis_capacity(port_task *p trusted, s32 target, u64 util, bool sched_idle)
{
	const volatile struct cpu_facts *t = cpu_facts(target);
	struct choice best = { .cpu = NO_CPU, .suits = SUITS_NOT_SEEN };
	u32 nr_llcs = machine_facts()->nr_llcs, i;

	best.util = util;
	best.sched_idle = sched_idle;
	best.core = machine_has_idle_core();
	for_below (i, nr_llcs, MAX_LLCS) {
		choose_in_llc(p, &best, (t->llc + i) % nr_llcs, i ? 0 : t->pos);
		if (best.perfect)
			break;
	}
	return best.cpu;
}

#endif /* ROOST_CAPACITY_H */
