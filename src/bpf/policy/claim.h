/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * claim (Patra 2017). Problem: two wakeups at the same instant see the same CPU idle; the second task waits there behind
 * the first, while other CPUs are idle.
 * Method: who chooses an idle CPU claims it, and to the wakeups of every arm with this feature it is idle no more. Looking
 * claims nothing: a candidate is claimed when it is about to be the answer, and whoever comes second looks on. A
 * compare-and-swap decides who was first, and then the CPU is looked at once more: between look and claim another task may
 * have come and run. The claim ends with the task that it is for: when it runs, there or elsewhere because it was stolen on its
 * way, when it is queued anew, and when it leaves our class. Whoever else comes and goes there meanwhile does not end it.
 * claim_plain: the source's own, a load and a store, and no second look: it narrows the race and does not close it. Such a claim
 * ends also with any other task that the CPU turns to, and when the CPU goes idle, as the source's does in schedule().
 * claim_expiry (ours): a claim older than claim-ttl-us counts for nothing. Without it one of 2 s does, which is there only by a
 * mistake (counter claim_lost). core_claim (ours): who takes a CPU because its whole
 * core is idle claims the core too, so that two do not settle on its two threads at once.
 * Limit: a task that may run on one CPU only is not placed, so it asks no claim and may find one.
 *
 * Here too: how a task finds that it was stacked, on any arm.
 */
#ifndef ROOST_CLAIM_H
#define ROOST_CLAIM_H

#include "wakeup.h"

/* The lowest bit of a stamp: the claim is a plain one. A nanosecond is no matter. */
#define PLAIN_CLAIM 1ULL

/* The stamp of a claim that is made at @now. */
static __always_inline u64 claim_of(u64 now, u32 features)
{
	return features & FEATURE_claim_plain ? now | PLAIN_CLAIM : now & ~PLAIN_CLAIM;
}

/* The claim that @stamp stands for was made at @now, whichever kind it is. */
static __always_inline bool claim_made(u64 stamp, u64 now)
{
	return (stamp | PLAIN_CLAIM) == (now | PLAIN_CLAIM);
}

/* A claim that is so old was forgotten, and that is a mistake of ours; the longest claim_ttl is shorter. ns */
#define CLAIM_LOST_NS 2000000000ULL

/* @stamp: when it was claimed, ns; 0: it is not. */
static __always_inline bool claim_counts(u64 stamp, u32 features, u64 now, u64 ttl)
{
	u64 limit = features & FEATURE_claim_expiry ? ttl : CLAIM_LOST_NS;

	return stamp && (s64)(now - stamp) <= (s64)limit;
}

/* A claim that is taken over should have ended long ago. */
static __always_inline bool claim_lost(u64 stamp, u64 now)
{
	return (s64)(now - stamp) > (s64)CLAIM_LOST_NS;
}

static __always_inline u64 claim_stamp(const u64 *claim)
{
	return *(const volatile u64 *)claim;
}

/* The first thread of @cpu's core: in its state is kept what is of the core. */
static __always_inline s32 first_thread(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);

	return f->nr_sib && sibling(f, 0) < cpu ? sibling(f, 0) : cpu;
}

static __always_inline u64 *core_claim_of(s32 cpu)
{
	return &cpu_state(first_thread(cpu))->core_claim;
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
		return atomic_cas(claim, old, claim_of(now, features));
	*(volatile u64 *)claim = claim_of(now, features);
	return true;
}

/* The claim made at @now ends, if it still stands. */
static __always_inline bool claim_drop(u64 *claim, u64 now)
{
	u64 stamp = claim_stamp(claim);

	return claim_made(stamp, now) && atomic_cas(claim, stamp, 0);
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
	if (old) {
		count_for(arm, claim_lost(old, now) ? STAT_claim_lost : STAT_claim_expired);
		/* Its owner will find the thread another's, and not ask for the core. */
		claim_drop(core_claim_of(cpu), old);
	}
	if ((features & FEATURE_claim_plain) || cpu_free(cpu, false))
		return true;
	if (atomic_cas(claim, claim_of(now, features), 0))
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
	if (old && claim_lost(old, now))
		count_for(arm, STAT_claim_lost);
	if (core_free(cpu) && claim_take(cpu, features, arm, now, ttl))
		return true;
	atomic_cas(core, claim_of(now, features), 0);
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

/* The claim of @cpu that was made at @now ends, and with it that of the core. False: it did not stand. */
subprog bool claim_end(s32 cpu, u64 now)
{
	claim_drop(core_claim_of(cpu), now);
	return claim_drop(&cpu_state(cpu)->claim, now);
}

/* [claim_plain] The CPU turned to something else: a task of ours (@how: STAT_claim_clear_run), or idleness, or another class. */
static __always_inline void plain_claim_clear(s32 cpu, const struct cpu_state *cs, enum roost_stat how)
{
	if ((cs->claim & PLAIN_CLAIM) && claim_end(cpu, cs->claim))
		count(how);
}

/* ---- the task that it is for. Stacked: two tasks were placed on one CPU, each as if it were idle ---- */

/* @looked_at: ns, before the CPU was looked at; the stamp of the task's claim, if it made one. */
static __always_inline void placed_idle(struct task_state *ts, s32 cpu, u64 looked_at)
{
	ts->idle_cpu = cpu + 1;
	ts->idle_at = looked_at;
	ts->idle_seen = cpu_state(cpu)->placed_started;
}

/* Its placement as idle is over. Whether it made a claim tells the stamp: its arm may be another's by now. */
static __always_inline void placed_over(struct task_state *ts, enum roost_stat how)
{
	if (claim_stamp(&cpu_state(ts->idle_cpu - 1)->claim) && claim_end(ts->idle_cpu - 1, ts->idle_at))
		count_for(ts->pol.arm, how);
	ts->idle_cpu = 0;
}

/* The task will not run where it was placed, or is queued there anew. */
static __always_inline void placed_nowhere(struct task_state *ts)
{
	if (ts->idle_cpu)
		placed_over(ts, STAT_claim_release);
}

/* [smt_spread] The running task was to leave for an idle core (tick), and does not: it stays, sleeps, or is taken out of the queue first. */
static __always_inline void spread_lost(struct task_state *ts)
{
	if (!ts->idle_cpu)
		return;
	count_for(ts->pol.arm, STAT_spread_lost);
	placed_over(ts, STAT_claim_release);
}

/*
 * The task runs, on @cpu, whose state is @cs. If another that was placed so began where this one was to, after this one's look,
 * this one was stacked. Not asked by the clock: a virtual CPU may stand still between its clock and its look.
 */
static __always_inline void placed_runs(struct task_state *ts, s32 cpu, struct cpu_state *cs, u64 now)
{
	bool there = ts->idle_cpu == cpu + 1;

	if (!ts->idle_cpu)
		return;
	if (!there)
		cs = cpu_state(ts->idle_cpu - 1);
	if (cs->placed_started != ts->idle_seen)
		count_for(ts->pol.arm, STAT_stacked);
	if (there)
		cs->placed_started = now;
	placed_over(ts, there ? STAT_claim_clear_run : STAT_claim_release);
}

#endif /* ROOST_CLAIM_H */
