/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * claim (Patra 2017). Problem: two wakeups at the same instant see the same CPU idle; the second task waits there behind
 * the first, while other CPUs are idle.
 * Method: who chooses an idle CPU claims it, and to the wakeups of every arm with this feature it is idle no more. Looking
 * claims nothing: a candidate is claimed when it is about to be the answer, and whoever comes second looks on. A
 * compare-and-swap decides who was first, and then the CPU is looked at once more: between look and claim another task may
 * have come and run. The claim ends when a task of ours runs there, when the CPU goes idle, when a task of a higher class
 * takes it, and when the task that it was for runs elsewhere, because it was stolen on its way.
 * claim_plain: the source's own, a load and a store, and no second look: it narrows the race and does not close it.
 * claim_expiry (ours): a claim older than claim-ttl-us counts for nothing. core_claim (ours): who takes a CPU because its whole
 * core is idle claims the core too, so that two do not settle on its two threads at once.
 * Limits: a third task that comes and goes between a claim and its insertion ends the claim. One whose task was killed, or that
 * stands on a CPU with a SCHED_IDLE task and was stolen, stays until something runs there, or with claim_expiry until it is old.
 *
 * Here too: how a task finds that it was stacked, on any arm.
 */
#ifndef ROOST_CLAIM_H
#define ROOST_CLAIM_H

#include "wakeup.h"

/* @stamp: when it was claimed, ns; 0: it is not. */
static __always_inline bool claim_counts(u64 stamp, u32 features, u64 now, u64 ttl)
{
	return stamp && !((features & FEATURE_claim_expiry) && (s64)(now - stamp) > (s64)ttl);
}

static __always_inline u64 claim_stamp(const u64 *claim)
{
	return *(const volatile u64 *)claim;
}

/* A core is claimed in the state of its first thread. */
static __always_inline u64 *core_claim_of(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	s32 first = f->nr_sib && sibling(f, 0) < cpu ? sibling(f, 0) : cpu;

	return &cpu_state(first)->core_claim;
}

/* ---- looking ---- */

subprog bool claim_live(s32 cpu, u32 features, u64 now, u64 ttl)
{
	return claim_counts(claim_stamp(&cpu_state(cpu)->claim), features, now, ttl);
}

static __always_inline bool claimed(const struct wakeup *w, s32 cpu)
{
	return has(w, FEATURE_claim) && claim_live(cpu, w->features, w->now, w->claim_ttl);
}

/* Idle, and not chosen by another. */
static __always_inline bool idle_unclaimed(const struct wakeup *w, s32 cpu)
{
	return cpu_idle_marked(cpu) && !claimed(w, cpu);
}

/* No thread of the core is claimed, nor [core_claim] the core. */
subprog bool core_unclaimed(s32 cpu, u32 features, u64 now, u64 ttl)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	/* claim_live() written out: the deepest chain of programs that ends here has eight frames, which is the most. */
	if ((features & FEATURE_core_claim) && claim_counts(claim_stamp(core_claim_of(cpu)), features, now, ttl))
		return false;
	if (claim_counts(claim_stamp(&cpu_state(cpu)->claim), features, now, ttl))
		return false;
	for_below (i, f->nr_sib, MAX_SMT)
		if (claim_counts(claim_stamp(&cpu_state(sibling(f, i))->claim), features, now, ttl))
			return false;
	return true;
}

/* ---- taking ---- */

/* @old: what stood there when it was found free. */
static __always_inline bool claim_word(u64 *claim, u64 old, u64 now, u32 features)
{
	if (!(features & FEATURE_claim_plain))
		return atomic_cas(claim, old, now);
	*(volatile u64 *)claim = now;
	return true;
}

/* Claim @cpu, which was just seen idle; false: another was quicker. */
subprog bool claim_take(s32 cpu, u32 features, u32 arm, u64 now, u64 ttl)
{
	u64 *claim = &cpu_state(cpu)->claim, old = claim_stamp(claim);

	if (claim_counts(old, features, now, ttl)) {
		count_for(arm, STAT_claim_seen);
		return false;
	}
	if (!claim_word(claim, old, now, features)) {
		count_for(arm, STAT_claim_conflict);
		return false;
	}
	count_for(arm, STAT_claim_set);
	if (old)
		count_for(arm, STAT_claim_expired);
	if ((features & FEATURE_claim_plain) || cpu_free(cpu, false))
		return true;
	if (atomic_cas(claim, now, 0))
		count_for(arm, STAT_claim_release);
	return false;
}

/* The same for a CPU that is wanted because its whole core was just seen idle. */
subprog bool claim_core_take(s32 cpu, u32 features, u32 arm, u64 now, u64 ttl)
{
	u64 *core = core_claim_of(cpu), old = claim_stamp(core);

	if (!core_unclaimed(cpu, features, now, ttl)) {
		count_for(arm, STAT_claim_seen);
		return false;
	}
	if (!(features & FEATURE_core_claim))
		return claim_take(cpu, features, arm, now, ttl);
	if (claim_counts(old, features, now, ttl) || !claim_word(core, old, now, features)) {
		count_for(arm, STAT_core_claim_conflict);
		return false;
	}
	if (core_free(cpu) && claim_take(cpu, features, arm, now, ttl))
		return true;
	atomic_cas(core, now, 0);
	return false;
}

/* The answer to a search is @cpu. Without claims it is nobody's, as in the kernel. */
static __always_inline bool take(const struct wakeup *w, s32 cpu)
{
	return !has(w, FEATURE_claim) || claim_take(cpu, w->features, w->arm, w->now, w->claim_ttl);
}

static __always_inline bool core_take(const struct wakeup *w, s32 cpu)
{
	return !has(w, FEATURE_claim) || claim_core_take(cpu, w->features, w->arm, w->now, w->claim_ttl);
}

/* ---- giving back ---- */

/* @ran: a task of ours runs there; else the CPU idles, or another class took it. */
subprog u32 claim_end(s32 cpu, bool ran)
{
	if (atomic_swap(&cpu_state(cpu)->claim, 0))
		count(ran ? STAT_claim_clear_run : STAT_claim_clear_idle);
	atomic_swap(core_claim_of(cpu), 0);
	return 0;
}

static __always_inline void claim_clear(s32 cpu, const struct cpu_state *cs, bool ran)
{
	if (cs->claim)
		claim_end(cpu, ran);
}

/* ---- stacked: two tasks were placed on one CPU, each as if it were idle ---- */

/* @looked_at: ns, before the CPU was looked at. */
static __always_inline void placed_idle(struct task_state *ts, s32 cpu, u64 looked_at)
{
	ts->idle_cpu = cpu + 1;
	ts->idle_at = looked_at;
}

/* The task will not run on the CPU that it claimed, at @stamp: it was stolen on its way, or left our class. */
subprog u32 claim_give_back(s32 cpu, u32 arm, u64 stamp)
{
	if (atomic_cas(&cpu_state(cpu)->claim, stamp, 0))
		count_for(arm, STAT_claim_release);
	atomic_cas(core_claim_of(cpu), stamp, 0);
	return 0;
}

static __always_inline void placed_nowhere(struct task_state *ts)
{
	if (ts->idle_cpu)
		claim_give_back(ts->idle_cpu - 1, ts->pol.arm, ts->idle_at);
	ts->idle_cpu = 0;
}

/* The task runs, on @cpu. Another that was placed so began where this one was to, after this one's look: it was stacked. */
static __always_inline void placed_runs(struct task_state *ts, s32 cpu, u64 now)
{
	struct cpu_state *cs;

	if (!ts->idle_cpu)
		return;
	cs = cpu_state(ts->idle_cpu - 1);
	if ((s64)(cs->placed_started - ts->idle_at) > 0)
		count_for(ts->pol.arm, STAT_stacked);
	if (ts->idle_cpu != cpu + 1) {
		placed_nowhere(ts);
		return;
	}
	cs->placed_started = now;
	ts->idle_cpu = 0;
}

#endif /* ROOST_CLAIM_H */
