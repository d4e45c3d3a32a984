/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * claim (Patra 2017).
 *
 * Problem: two wakeups at the same instant see the same CPU idle. The second task then waits behind
 * the first while other CPUs are idle.
 *
 * Method: a wakeup claims the idle CPU that it chooses. To wakeups of any arm with this feature the
 * CPU is then not idle. A search claims nothing: only its answer is claimed, and a wakeup that
 * finds a claim goes on searching. A compare-and-swap decides which wakeup is first. Then the CPU
 * is checked again, because another task may have come and run between the check and the claim. A
 * claim ends with its task: when the task runs, there or elsewhere after a steal, when it is queued
 * on another CPU or parked, and when it leaves our class. Other tasks that come and go on the CPU
 * do not end it.
 *
 * A claim older than claim-ttl-us does not count.
 *
 * claim_plain: as in the original patch, a load and a store without a second check. This narrows
 * the race but does not close it. A plain claim also ends when the CPU runs any other task or goes
 * idle, as the patch's ends in schedule(). It counts for 2 s.
 * core_claim (scx_roost): a wakeup that takes a CPU because its whole core is idle also claims the
 * core. So two wakeups do not take both threads at once.
 *
 * Limit: a task that may run on only one CPU is not placed. It makes no claim and may run on a
 * claimed CPU.
 *
 * This file also finds out whether a task was stacked, on any arm.
 */
#ifndef ROOST_CLAIM_H
#define ROOST_CLAIM_H

#include "wakeup.h"

/* The lowest bit of a stamp marks a plain claim. A nanosecond does not matter. */
#define PLAIN_CLAIM 1ULL

/* The stamp of a claim made at @now. */
static __always_inline u64 claim_of(u64 now, u32 features)
{
	return features & FEATURE_claim_plain ? now | PLAIN_CLAIM : now & ~PLAIN_CLAIM;
}

/* @stamp is that of a claim made at @now, of either kind. */
static __always_inline bool claim_made(u64 stamp, u64 now)
{
	return (stamp | PLAIN_CLAIM) == (now | PLAIN_CLAIM);
}

/* A claim this old is a bug: nothing released it. Longer than the longest claim_ttl. ns */
#define CLAIM_LOST_NS 2000000000ULL

/* @stamp: when the claim was made, ns; 0: no claim. */
static __always_inline bool claim_counts(u64 stamp, u64 now, u64 ttl)
{
	u64 limit = stamp & PLAIN_CLAIM ? CLAIM_LOST_NS : ttl;

	return stamp && (s64)(now - stamp) <= (s64)limit;
}

/* The claim should have ended long ago. */
static __always_inline bool claim_lost(u64 stamp, u64 now)
{
	return (s64)(now - stamp) > (s64)CLAIM_LOST_NS;
}

static __always_inline u64 claim_stamp(const u64 *claim)
{
	return *(const volatile u64 *)claim;
}

/* The first thread of @cpu's core. Its state holds what belongs to the core. */
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

subprog bool claim_live(s32 cpu, u64 now, u64 ttl)
{
	return claim_counts(claim_stamp(&cpu_state(cpu)->claim), now, ttl);
}

static __always_inline bool claimed(const struct wakeup *w, s32 cpu)
{
	return has(w, FEATURE_claim) && claim_live(cpu, w->now, w->claim_ttl);
}

/* Idle, and not claimed by another wakeup. */
static __always_inline bool idle_unclaimed(const struct wakeup *w, s32 cpu)
{
	return cpu_idle_marked(cpu) && !claimed(w, cpu);
}

/* Neither a thread of the core nor [core_claim] the core is claimed. */
subprog bool core_unclaimed(s32 cpu, u32 features, u64 now, u64 ttl)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	/*
	 * claim_live() written out: the deepest call chains end here, and kernels before 7.2 allow
	 * eight frames.
	 */
	if ((features & FEATURE_core_claim) &&
	    claim_counts(claim_stamp(core_claim_of(cpu)), now, ttl))
		return false;
	if (claim_counts(claim_stamp(&cpu_state(cpu)->claim), now, ttl))
		return false;
	for_below (i, f->nr_sib, MAX_SMT)
		if (claim_counts(claim_stamp(&cpu_state(sibling(f, i))->claim), now, ttl))
			return false;
	return true;
}

/* ---- taking ---- */

/* @old: the value with which it was found free. */
static __always_inline bool claim_word(u64 *claim, u64 old, u64 now, u32 features)
{
	if (!(features & FEATURE_claim_plain))
		return atomic_cas(claim, old, claim_of(now, features));
	*(volatile u64 *)claim = claim_of(now, features);
	return true;
}

/* End the claim made at @now, if it is still there. */
static __always_inline bool claim_drop(u64 *claim, u64 now)
{
	u64 stamp = claim_stamp(claim);

	return claim_made(stamp, now) && atomic_cas(claim, stamp, 0);
}

/* Claim @cpu, which was just seen idle. False: another wakeup was first. */
subprog bool claim_take(s32 cpu, u32 features, u32 arm, u64 now, u64 ttl)
{
	u64 *claim = &cpu_state(cpu)->claim, old = claim_stamp(claim);

	if (claim_counts(old, now, ttl)) {
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
		/*
		 * The task of the old claim also ends its core claim, but only while some claim is
		 * on the CPU. This one may be gone by then.
		 */
		claim_drop(core_claim_of(cpu), old);
	}
	/* The kernel counts a task before its claim ends, so one that came meanwhile is seen. */
	if ((features & FEATURE_claim_plain) || cpu_free(cpu, false))
		return true;
	if (atomic_cas(claim, claim_of(now, features), 0))
		count_for(arm, STAT_claim_release);
	return false;
}

/* As claim_take(), for a CPU that was chosen because its whole core was seen idle. */
subprog bool claim_core_take(s32 cpu, u32 features, u32 arm, u64 now, u64 ttl)
{
	u64 *core = core_claim_of(cpu), old = claim_stamp(core);

	if (!core_unclaimed(cpu, features, now, ttl)) {
		count_for(arm, STAT_claim_seen);
		return false;
	}
	if (!(features & FEATURE_core_claim))
		return claim_take(cpu, features, arm, now, ttl);
	if (claim_counts(old, now, ttl) || !claim_word(core, old, now, features)) {
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

/* Claim @cpu, the answer of a search. Without the feature nothing is claimed, as in the kernel. */
static __always_inline bool take(const struct wakeup *w, s32 cpu)
{
	return !has(w, FEATURE_claim) || claim_take(cpu, w->features, w->arm, w->now, w->claim_ttl);
}

static __always_inline bool core_take(const struct wakeup *w, s32 cpu)
{
	return !has(w, FEATURE_claim) ||
	       claim_core_take(cpu, w->features, w->arm, w->now, w->claim_ttl);
}

/* ---- ending ---- */

/*
 * End the claim of @cpu made at @now, and that of its core. False: the CPU has another claim or
 * none.
 */
subprog bool claim_end(s32 cpu, u64 now)
{
	claim_drop(core_claim_of(cpu), now);
	return claim_drop(&cpu_state(cpu)->claim, now);
}

/*
 * [claim_plain] The CPU has switched to a task of ours (@how: STAT_claim_clear_run), to another
 * class or to idle: a plain claim ends.
 */
static __always_inline void plain_claim_clear(s32 cpu, const struct cpu_state *cs,
					      enum roost_stat how)
{
	if ((cs->claim & PLAIN_CLAIM) && claim_end(cpu, cs->claim))
		count(how);
}

/* ---- the claim's task; it is stacked if another task was also placed on the CPU as idle ---- */

/*
 * @looked_at: a time before the CPU was checked, ns; the stamp of the task's claim, if it made one.
 */
static __always_inline void placed_idle(struct task_state *ts, s32 cpu, u64 looked_at)
{
	ts->idle_cpu = cpu + 1;
	ts->idle_at = looked_at;
	ts->idle_seen = cpu_state(cpu)->placed_started;
}

/*
 * The task's placement as idle is over. Its claim is found by the stamp, not by its features: the
 * task may be on another arm by now.
 */
static __always_inline void placed_over(struct task_state *ts, enum roost_stat how)
{
	if (claim_stamp(&cpu_state(ts->idle_cpu - 1)->claim) &&
	    claim_end(ts->idle_cpu - 1, ts->idle_at))
		count_for(ts->pol.arm, how);
	ts->idle_cpu = 0;
}

/* The task will not run where it was placed. */
static __always_inline void placed_nowhere(struct task_state *ts)
{
	if (ts->idle_cpu)
		placed_over(ts, STAT_claim_release);
}

/*
 * The tick chose an idle core for the running task (tick_push()), but the task stays, sleeps, or is
 * dequeued before it gets there.
 */
static __always_inline void push_lost(struct task_state *ts)
{
	if (!ts->idle_cpu)
		return;
	count_for(ts->pol.arm, STAT_push_lost);
	placed_over(ts, STAT_claim_release);
}

/*
 * The task runs on @cpu, whose state is @cs. It was stacked if another task placed as idle has
 * begun to run on its chosen CPU since this one's check. This compares placed_started and not
 * times: a virtual CPU may be stopped between its clock and its check.
 */
static __always_inline void placed_runs(struct task_state *ts, s32 cpu, struct cpu_state *cs,
					u64 now)
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
