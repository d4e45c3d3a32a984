/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delayed dequeue: a task that sleeps while it is ahead of the mean stays counted in its queue, and
 * wakes up where it slept (kernel: DELAY_DEQUEUE, DELAY_ZERO, ttwu_runnable()).
 *
 * Problem: what a task owes would be forgotten by a short sleep, or it would be placed anew, where
 * the kernel asks for no place.
 *
 * Method: each CPU has a few slots with the virtual run times and weights of such sleepers. As soon
 * as the mean has caught up with one, a dispatch takes its weight out, and it owes nothing. The
 * task's own state keeps the slot and its key, so either side can tell who was first, without a
 * lock: the one that clears the key.
 *
 * Limits: with all slots taken a sleeper leaves at once, and the clock stays (clock_stays()); so
 * does each on a CPU where ticks may stop, which others than the running task would keep. The
 * kernel takes one out when it would be the pick, here once it is eligible.
 */
#ifndef ROOST_DELAYED_DEQUEUE_H
#define ROOST_DELAYED_DEQUEUE_H

#include "domain.h"
#include "queue.h"

static __always_inline struct delayed *delayed_slot(struct cpu_state *cs, u32 slot)
{
	return &cs->delayed[masked(slot, NR_DELAYED)];
}

/*
 * The task, which has been charged, sleeps. True: it stays counted. The caller holds the CPU's
 * lock. Without other tasks it is the mean, and not ahead.
 */
subprog bool delays_dequeue(struct cpu_state *cs nonnull, struct task_state *ts nonnull, u32 pid,
			    u64 now)
{
	s32 cpu = ts->on_rq - 1;
	struct delayed *d;
	u32 slot;

	if (!(ts->pol.rules & FAIR_DELAY) || cs->weight <= ts->on_rq_weight ||
	    !before(eligible_until(cs), ts->vruntime) || cpu_facts(cpu)->nohz || cpu_away(cpu))
		return false;
	for_below (slot, NR_DELAYED, NR_DELAYED) {
		d = delayed_slot(cs, slot);
		if (d->key)
			continue;
		d->vruntime = ts->vruntime;
		d->weight = ts->on_rq_weight;
		d->key = (u64)pid << 32 | (u32)now;
		ts->delayed_key = d->key;
		ts->delayed_in = slot + 1;
		ts->lag = clamped_lag(ts, cs->avg_vruntime - ts->vruntime);
		cs->any_delayed = 1;
		util_est_leave(cs, ts);
		ts->on_rq_util = 0;
		short_leaves(cs, ts);
		return true;
	}
	return false;
}

/* A look without the CPU's lock: it may be over a moment later. */
static __always_inline bool still_delayed(const struct task_state *ts)
{
	return ts->delayed_in &&
	       delayed_slot(cpu_state(ts->on_rq - 1), ts->delayed_in - 1)->key == ts->delayed_key;
}

/* The task wakes or leaves. If its queue does not count it any more, it owes nothing. */
static __always_inline void delayed_ends(struct task_state *ts, u64 now)
{
	struct delayed *d;

	if (!ts->delayed_in)
		return;
	d = delayed_slot(cpu_state(ts->on_rq - 1), ts->delayed_in - 1);
	ts->delayed_in = 0;
	if (atomic_cas(&d->key, ts->delayed_key, 0))
		return;
	ts->on_rq = 0;
	ts->lag = 0;
	ts->left_at = now;
}

/*
 * Sleepers that the mean has caught up with leave, or @all. The caller holds the CPU's lock and has
 * charged the running task.
 */
subprog u32 delayed_expire(struct cpu_state *cs nonnull, bool all)
{
	u64 until = eligible_until(cs), key, vruntime, weight;
	u32 slot, left = 0;
	struct delayed *d;
	s64 lag;

	for_below (slot, NR_DELAYED, NR_DELAYED) {
		d = delayed_slot(cs, slot);
		key = d->key;
		vruntime = d->vruntime;
		weight = d->weight;
		if (!key)
			continue;
		if ((!all && before(until, vruntime)) || !atomic_cas(&d->key, key, 0)) {
			left++;
			continue;
		}
		lag = cs->avg_vruntime - vruntime;
		if (lag && cs->weight > weight)
			atomic_add(&cs->avg_vruntime,
				   mean_moves(cs, product(lag, weight), cs->weight - weight));
		atomic_add(&cs->weight, -weight);
	}
	cs->any_delayed = left > 0;
	return 0;
}

/*
 * The task wakes in the queue that still counts it. If the mean has passed it, it stands at the
 * mean now, with a new request; else it keeps its place, but owes no more than when it fell asleep
 * (kernel: requeue_delayed_entity()).
 */
static __always_inline void delayed_requeues(s32 cpu, struct task_state *ts, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	s64 then = ts->lag, lag = eligible_now(cs, ts, now) - ROUNDING_NS - ts->vruntime;

	util_est_join(cs, ts);
	short_joins(cs, ts);
	if (lag <= 0 && lag >= then)
		return;
	queue_leave(ts, now);
	ts->lag = lag > 0 ? 0 : then;
	queue_join(cpu, ts, now);
	new_request(ts, ts->pol.features);
}

#endif /* ROOST_DELAYED_DEQUEUE_H */
