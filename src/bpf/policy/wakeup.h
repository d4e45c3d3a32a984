/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One wakeup or fork: the facts gathered before the decision, and the decision. What decides reads this and the
 * port, and touches neither clock nor kernel.
 *
 * struct wakeup holds numbers only, no pointer: so it can be handed to a subprogram, which the verifier checks once for
 * any wakeup. The tasks themselves are arguments beside it.
 */
#ifndef ROOST_WAKEUP_H
#define ROOST_WAKEUP_H

#include "cpu_set.h"
#include "domain.h"
#include "util_est.h"

#define SMT_IMBALANCE_PCT 110 /* kernel: sd_init(), of the threads of a core */

struct wakeup {
	u64 now;      /* ns */
	u32 features; /* roost_feature bits */
	u32 arm;      /* whose they are */
	u32 waker_pid;
	u32 pid;
	s32 this_cpu;  /* the CPU that decides: the waker's */
	s32 prev;      /* where the task last ran; NO_CPU if it may not run there now */
	s32 prev_any;  /* the same, allowed or not */
	u32 claim_ttl; /* ns */
	bool fork;
	bool sync; /* the waker says that it is about to sleep, and is not exiting */
	bool this_allowed;
	bool waker_pcpu_kthread; /* the waker is a kthread of this one CPU, in task context */

	/* of the task's state; only groups of rungs have these: hand_over() */
	bool sched_idle; /* it has policy SCHED_IDLE, or its group cpu.idle */
	bool brief;	 /* what it usually does before it sleeps is shorter than a migration costs */
	s32 recent;	 /* the recently used CPU; NO_CPU: none */
	u32 util;	 /* what it is estimated to use, 0..CAPACITY_SCALE */
	u32 fits_scale;	 /* util_fits: its arm's */
	u32 fits_rt;
	u64 vacant_ns;	  /* how long a core has to be idle to be nobody's, for this task (vacant.h) */
	bool vacant_core; /* [core_first] [smt_spread] the target's LLC has such a core */
};

/* How the chosen CPU is to be taken. */
enum placing {
	PLACE_BUSY, /* queue behind whoever runs there */
	PLACE_IDLE, /* idle: run there at once */
	PLACE_NEXT, /* run there as soon as the waker sleeps, ahead of its queue */
};

struct placement {
	s32 cpu;
	enum placing how;
	enum roost_stat rung; /* which rung decided */
};

/* What the task is estimated to use; a new one: as it will begin. 0..CAPACITY_SCALE */
static __always_inline u32 demand_of(const struct wakeup *w, struct task_state *ts)
{
	return ts->load_cpu ? task_util_est(ts) : first_util_est(w->prev_any, w->now);
}

static __always_inline bool has(const struct wakeup *w, enum roost_feature f)
{
	return w->features & f;
}

/* What a group of rungs has to know of the task's state, as far as one of them will ask. */
static __always_inline void hand_over(struct wakeup *w, struct task_state *ts)
{
	w->recent = ts->recent_cpu - 1;
	w->sched_idle = ts->sched_idle;
	w->brief = ts->burst && ts->burst < machine_arm()->migration_cost_ns;
	w->util = 0;
	if (has(w, FEATURE_util_fits)) {
		w->fits_scale = ts->pol.fits_scale;
		w->fits_rt = ts->pol.fits_rt;
	}
	if (machine_facts()->asym || has(w, FEATURE_util_fits))
		w->util = demand_of(w, ts);
}

/* Does a SCHED_IDLE task, and nothing else, occupy @cpu? (kernel: sched_idle_cpu()) */
static __always_inline bool cpu_sched_idle(s32 cpu)
{
	struct cpu_state *cs = cpu_state(cpu);

	return cs->curr_sched_idle && cs->curr_pid && cpu_nr_running(cpu) == 1;
}

/* @cpu is in the idle set, so it may be free. Most CPUs of a busy machine are not: asked before the kernel's state. */
static __always_inline bool cpu_marked(s32 cpu)
{
	return cpu_state(cpu)->idle_marked;
}

/* cpu_idle(), without a look at the kernel's state where ours rules it out already. */
static __always_inline bool cpu_idle_marked(s32 cpu)
{
	return cpu_marked(cpu) && cpu_idle(cpu);
}

/*
 * Free for a task: idle, or as good as. A SCHED_IDLE task (@sched_idle) has to share with another
 * (kernel: choose_idle_cpu()).
 */
static __always_inline bool cpu_free(s32 cpu, bool sched_idle)
{
	return cpu_idle(cpu) || (!sched_idle && cpu_sched_idle(cpu));
}

/* Every other thread of the core is idle. */
subprog bool siblings_idle(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	for_below (i, f->nr_sib, MAX_SMT)
		if (!cpu_idle(sibling(f, i)))
			return false;
	return true;
}

/* Every thread of the core is idle. Without SMT: the CPU is. */
static __always_inline bool core_idle(s32 cpu)
{
	return cpu_idle(cpu) && (!machine_facts()->smt || siblings_idle(cpu));
}

/* Every thread of the core is free (source: is_idle_core()). */
subprog bool core_free(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	if (!cpu_free(cpu, false))
		return false;
	for_below (i, f->nr_sib, MAX_SMT)
		if (!cpu_free(sibling(f, i), false))
			return false;
	return true;
}

/* @util fits on @cpu with a fifth to spare (kernel: fits_capacity()). */
static __always_inline bool fits_capacity(u64 util, s32 cpu)
{
	return util * 1280 < (u64)cpu_capacity_now(cpu) * 1024;
}

/* On a machine of unequal CPUs, the task has to fit, and a busy sibling would take from it (kernel: asym_fits_cpu()). */
static __always_inline bool asym_fits(const struct wakeup *w, s32 cpu)
{
	return !machine_facts()->asym || (siblings_idle(cpu) && fits_capacity(w->util, cpu));
}

#endif /* ROOST_WAKEUP_H */
