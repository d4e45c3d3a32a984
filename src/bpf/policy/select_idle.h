/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rungs of the kernel's select_idle_sibling(): each answers with an idle CPU near the target, or NO_CPU.
 * Their order is in ladder.h.
 */
#ifndef ROOST_SELECT_IDLE_H
#define ROOST_SELECT_IDLE_H

#include "idle_scan.h"

static __always_inline s32 free_and_fits(const struct wakeup *w, s32 cpu)
{
	return cpu_free(w, cpu) && asym_fits(w, cpu) ? cpu : NO_CPU;
}

/* The target itself: the waker's CPU or the previous one, and either may be forbidden to the task. */
static __always_inline s32 sis_target(const struct wakeup *w, s32 target)
{
	bool allowed = target == w->this_cpu ? w->this_allowed : target == w->prev;

	return allowed ? free_and_fits(w, target) : NO_CPU;
}

/* The previous CPU, when it shares the target's cache. */
static __always_inline s32 sis_prev(const struct wakeup *w, s32 target)
{
	if (w->prev == NO_CPU || w->prev == target || !share_cache(w->prev, target))
		return NO_CPU;
	return free_and_fits(w, w->prev);
}

/*
 * A per-CPU kthread wakes the task that waits for it on this CPU and will sleep next: stay, behind it. The kernel's
 * case is a kworker that completes I/O.
 */
static __always_inline s32 sis_kthread(const struct wakeup *w)
{
	if (!w->waker_pcpu_kthread || w->prev != w->this_cpu || cpu_nr_running(w->this_cpu) > 1)
		return NO_CPU;
	return asym_fits(w, w->prev) ? w->prev : NO_CPU;
}

/* The CPU used before the previous one. */
static __always_inline s32 sis_recent(const struct wakeup *w, s32 recent, s32 target)
{
	if (recent == NO_CPU || recent == w->prev_any || recent == target || !share_cache(recent, target))
		return NO_CPU;
	if (!task_allowed(w->p, recent))
		return NO_CPU;
	return free_and_fits(w, recent);
}

static __always_inline bool llc_has_idle_core(u32 llc)
{
	return machine_facts()->smt && !set_empty(llc_state(llc)->idle_core, llc_facts(llc)->nr_words);
}

static __always_inline bool has_idle_core(s32 cpu)
{
	return llc_has_idle_core(cpu_facts(cpu)->llc);
}

static __always_inline bool machine_has_idle_core(void)
{
	u32 nr_llcs = machine_facts()->nr_llcs, i;

	for (i = 0; i < nr_llcs && i < MAX_LLCS && may_loop; i++)
		if (llc_has_idle_core(i))
			return true;
	return false;
}

/* How well a CPU suits that is not the perfect one; less is better (kernel: enum asym_fits_state). */
enum suits {
	SUITS_QUIET,	/* too small, but its core is idle: still more than a shared one gives */
	SUITS_SHARED,	/* big enough, beside a busy sibling */
	SUITS_NEITHER,	/* too small, beside a busy sibling */
	SUITS_NOT_SEEN, /* no CPU yet */
};

struct choice {
	s32 cpu;
	enum suits suits;
	u32 capacity;
};

/* Keeps @cpu if it is the best so far; true: the task fits there, and nothing better is to be had. */
static __always_inline bool choose(struct choice *best, const struct wakeup *w, s32 cpu, bool core)
{
	bool quiet = !core || siblings_idle(cpu), fits = util_fits(w, cpu);
	enum suits suits = quiet ? SUITS_QUIET : fits ? SUITS_SHARED : SUITS_NEITHER;
	u32 capacity = cpu_facts(cpu)->capacity;

	if ((quiet && fits) || suits < best->suits || (suits == best->suits && capacity > best->capacity)) {
		best->cpu = cpu;
		best->suits = suits;
		best->capacity = capacity;
	}
	return quiet && fits;
}

/* The same for every free CPU of @llc, from position @start on and around. */
static __always_inline bool choose_in_llc(struct choice *best, const struct wakeup *w, u32 llc, u32 start, bool core)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	u32 nr_words = f->nr_words, i;

	for (i = 0; i <= nr_words && i <= CPU_WORDS && may_loop; i++) {
		u32 base = ((start / WORD_BITS + i) % nr_words) * WORD_BITS;
		u64 word = *word_of(llc_state(llc)->idle, base) & walk_mask(i, nr_words, start);

		for (; word && may_loop; word &= word - 1) {
			s32 cpu = llc_cpu(f->first + base + lowest_bit(word));

			if (cpu_free(w, cpu) && task_allowed(w->p, cpu) && choose(best, w, cpu, core))
				return true;
		}
	}
	return false;
}

/*
 * CPUs differ in capacity: a free one that fits, over the whole machine and from the target on; without one the free
 * CPU that suits best. While some core is wholly idle, threads beside a busy sibling come last. (kernel:
 * select_idle_capacity())
 */
static __always_inline s32 sis_capacity(const struct wakeup *w, s32 target)
{
	const volatile struct cpu_facts *t = cpu_facts(target);
	struct choice best = { .cpu = NO_CPU, .suits = SUITS_NOT_SEEN };
	u32 nr_llcs = machine_facts()->nr_llcs, i;
	bool core = machine_has_idle_core();

	for (i = 0; i < nr_llcs && i < MAX_LLCS && may_loop; i++)
		if (choose_in_llc(&best, w, (t->llc + i) % nr_llcs, i ? 0 : t->pos, core))
			break;
	return best.cpu;
}

/* Another thread of @cpu's core. */
static __always_inline s32 idle_sibling(const struct wakeup *w, s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	for (i = 0; i < MAX_SMT - 1 && i < f->nr_sib; i++)
		if (cpu_free(w, f->sib[i]) && task_allowed(w->p, f->sib[i]))
			return f->sib[i];
	return NO_CPU;
}

/* Another thread of the previous CPU's core. */
static __always_inline s32 sis_smt(const struct wakeup *w, s32 target)
{
	return share_cache(w->prev_any, target) ? idle_sibling(w, w->prev_any) : NO_CPU;
}

static __always_inline u32 after(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);

	return f->pos + 1 < llc_facts(f->llc)->nr_cpus ? f->pos + 1 : 0;
}

/* [sis_util] The busier the target's LLC, the fewer CPUs of it are looked at; none when it is nearly full. */
static __always_inline u32 sis_budget(const struct wakeup *w, s32 target)
{
	u32 budget = has(w, FEATURE_sis_util) ? llc_state(cpu_facts(target)->llc)->scan_budget : MAX_CPUS;

	if (!budget)
		count(STAT_sis_budget_out);
	return budget;
}

/* A wholly idle core of the target's LLC. */
static __always_inline s32 sis_core(const struct wakeup *w, s32 target)
{
	return scan_llc(w, cpu_facts(target)->llc, after(target), SCAN_CORE, MAX_CPUS);
}

/* An idle CPU of the target's LLC, at most @budget CPUs away. */
static __always_inline s32 sis_cpu(const struct wakeup *w, s32 target, u32 budget)
{
	return scan_llc(w, cpu_facts(target)->llc, after(target), SCAN_CPU, budget);
}

/*
 * How many CPUs of an LLC a wakeup may visit in search of an idle one: all when the LLC is idle, none when its
 * utilisation nears 85 %. @util: sum over its CPUs, 0..nr_cpus * CAPACITY_SCALE.
 * (kernel: update_idle_cpu_scan(), with imbalance_pct 117 of an LLC domain)
 */
static __always_inline u32 scan_budget(u64 util, u32 nr_cpus)
{
	const u64 pct = 117;
	u64 mean = util / nr_cpus;
	u64 used = mean * mean * pct * pct / (10000 * CAPACITY_SCALE);

	return used >= CAPACITY_SCALE ? 0 : nr_cpus * (CAPACITY_SCALE - used) / CAPACITY_SCALE;
}

/* Sum the LLC's signals and set its budget. Called from a tick, by one CPU of the LLC every LLC_SUM_NS. */
static __always_inline void llc_sum(u32 llc, u64 now)
{
	const volatile struct llc_facts *f = llc_facts(llc);
	struct llc_state *ls = llc_state(llc);
	u64 load = 0, util = 0;
	u32 i;

	for (i = 0; i < f->nr_cpus && i < MAX_CPUS && may_loop; i++) {
		s32 cpu = llc_cpu(f->first + i);

		load += cpu_load(cpu, now);
		util += cpu_util(cpu, now);
	}
	ls->load = load;
	ls->util = util;
	ls->scan_budget = scan_budget(util, f->nr_cpus);
}

#endif /* ROOST_SELECT_IDLE_H */
