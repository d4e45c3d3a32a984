/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asymmetric machines: CPUs differ in capacity, and a task may be too big for some. After the
 * kernel's select_idle_capacity() (kernel/sched/fair.c).
 */
#ifndef ROOST_CAPACITY_H
#define ROOST_CAPACITY_H

#include "select_idle.h"
#include "vacant.h"

/* How well a task fits a CPU that is not perfect; less is better (kernel: enum asym_fits_state). */
enum asym_fit {
	ASYM_FIT_QUIET,	   /* too small, no busy sibling: more than a shared core gives */
	ASYM_FIT_SHARED,   /* big enough, beside a busy sibling */
	ASYM_FIT_NEITHER,  /* too small, beside a busy sibling */
	ASYM_FIT_NOT_SEEN, /* no CPU yet */
};

struct choice {
	s32 cpu; /* the best so far */
	/* only CPUs of at least this capacity, whose core is wholly idle; 0: every free CPU */
	u32 least;
	u64 idle_for; /* and has been for so long, ns */
	enum asym_fit fit;
	u32 capacity;
	bool core;    /* some core of the machine is wholly idle; else siblings do not matter */
	bool perfect; /* the task fits there, and no CPU is better */
};

static __always_inline void choose(struct choice *best, u64 util, s32 cpu)
{
	bool quiet = !best->core || siblings_idle(cpu), fits = fits_capacity(util, cpu);
	enum asym_fit fit = quiet ? ASYM_FIT_QUIET : fits ? ASYM_FIT_SHARED : ASYM_FIT_NEITHER;
	u32 capacity = cpu_capacity_now(cpu);

	best->perfect = quiet && fits;
	if (best->perfect || fit < best->fit || (fit == best->fit && capacity > best->capacity)) {
		best->cpu = cpu;
		best->fit = fit;
		best->capacity = capacity;
	}
}

/* May @cpu be chosen? Capacity first: it is the only test that reads nothing of another CPU. */
static __always_inline bool may_be_chosen(port_task *p, const struct wakeup *w,
					  const struct choice *best, s32 cpu)
{
	if (best->least && cpu_capacity_now(cpu) < best->least)
		return false;
	if (best->least ? !core_idle(cpu) : !cpu_free(cpu, w->sched_idle))
		return false;
	if (best->idle_for && !core_vacant(cpu, w->now, best->idle_for))
		return false;
	return !claimed(w, cpu) && task_allowed(p, cpu);
}

/*
 * Is @cpu perfect? A subprogram, because 6.18's verifier has a fault where a loop over a set calls
 * subprograms itself ("global subprog unexpected regs").
 */
subprog bool consider(port_task *p trusted, const struct wakeup *w nonnull,
		      struct choice *best nonnull, s32 cpu)
{
	if (may_be_chosen(p, w, best, cpu))
		choose(best, w->util, cpu);
	return best->perfect;
}

/* Choose among the free CPUs of @llc, from position @start and around; stop at a perfect one. */
subprog u32 choose_in_llc(port_task *p trusted, const struct wakeup *w nonnull,
			  struct choice *best nonnull, u32 llc, u32 start)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u32 nr_words = f->nr_words, i;

	for_below (i, nr_words + 1, CPU_WORDS + 1) {
		u32 base = walk_base(i, nr_words, start);
		u64 word = *set_word(SET_IDLE, llc, base) & walk_mask(i, nr_words, start);

		while (word && may_loop) {
			s32 cpu = llc_cpu(f->first + base + lowest_bit(word));

			word &= word - 1;
			if (consider(p, w, best, cpu))
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
	return nr_llcs == 1 ? !set_empty(SET_IDLE_CORE, 0)
			    : next_llc(SET_IDLE_CORE, 0, nr_llcs) != NO_CPU;
}

/*
 * A free CPU of the machine on which the task fits, from the target on; else the free CPU that
 * fits best. While some core is wholly idle, threads beside a busy sibling come last. @least,
 * @idle_for: as in struct choice.
 */
subprog s32 choose_in_machine(port_task *p trusted, const struct wakeup *w nonnull, s32 target,
			      u32 least, u64 idle_for)
{
	const volatile struct cpu_facts *t = cpu_facts(target);
	struct choice best = {
		.cpu = NO_CPU, .least = least, .idle_for = idle_for, .fit = ASYM_FIT_NOT_SEEN
	};
	u32 nr_llcs = machine_facts()->nr_llcs, i;

	best.core = machine_has_idle_core();
	for_below (i, nr_llcs, MAX_LLCS) {
		choose_in_llc(p, w, &best, (t->llc + i) % nr_llcs, i ? 0 : t->pos);
		if (best.perfect)
			break;
	}
	return best.cpu;
}

/* The choice, taken. [claim] If another wakeup claims it first, choose again. */
subprog s32 take_in_machine(port_task *p trusted, const struct wakeup *w nonnull, s32 target,
			    u32 least)
{
	s32 cpu = choose_in_machine(p, w, target, least, 0);

	while (cpu != NO_CPU && !take(w, cpu) && may_loop)
		cpu = choose_in_machine(p, w, target, least, 0);
	return cpu;
}

static __always_inline s32 sis_capacity(port_task *p, const struct wakeup *w, s32 target)
{
	return take_in_machine(p, w, target, 0);
}

/* ---- while running ---- */

/* The least capacity that is more than @cpu's by over 5 percent (kernel: capacity_greater()). */
static __always_inline u32 greater_capacity(s32 cpu)
{
	return (u64)cpu_capacity_now(cpu) * 1078 / 1024 + 1;
}

/*
 * The task that runs on @cpu is too big for it: an idle bigger CPU to which it should move; NO_CPU:
 * it stays. On one of the machine's biggest CPUs it always stays, as fast as that may be now
 * (kernel: update_misfit_status(), which asks for the biggest that the task may use; and the load
 * balancer's migrate_misfit, which pulls from that CPU). It fills in only what the search reads.
 */
subprog s32 misfit_target(port_task *p trusted, const struct task_state *ts nonnull, s32 cpu,
			  u64 now)
{
	struct wakeup *w = wakeup_of(ts->pol.arm);

	if (cpu_facts(cpu)->capacity == CAPACITY_SCALE || fits_capacity(task_util_est(ts), cpu))
		return NO_CPU;
	w->arm = ts->pol.arm;
	w->features = features_of(ts->pol.features);
	w->now = now;
	w->claim_ttl = ts->pol.claim_ttl_ns;
	w->util = task_util_est(ts);
	return take_in_machine(p, w, cpu, greater_capacity(cpu));
}

#endif /* ROOST_CAPACITY_H */
