/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.weight, hierarchical, flattened into the weight of each task.
 *
 * Problem: a group's weight is what all its tasks together may have against its sibling groups, but
 * queues order tasks.
 *
 * Method: in a group compete its own tasks, by nice weights, and the groups below it, by their
 * weights (kernel: all are entities of its cfs_rq). A group's share is its part of what its parent
 * has; a task's effective weight is its part of what its group has. scx_flatcg has the same idea. A
 * group counts the nice weights of its runnable tasks: one atomic when a task wakes, one when it
 * sleeps. Against these a task's weight is worked out when it wakes, and when it has run, if they
 * have changed by a quarter since: a mean over time could be outrun by a crowd that wakes at once
 * or moves from group to group. A sweep every SWEEP_NS finds which groups are active. A group of
 * tasks counts for its weight times the part of the time in which one of them is runnable, since in
 * the rest it leaves its part to its siblings. A group with active groups below it counts for its
 * whole weight. Runnable tasks are counted, and not the time charged when a task runs, because
 * tasks of low weight wait long and would deliver their time in lumps.
 * cpu.idle: the group weighs as much as one SCHED_IDLE task, and its tasks give way to others as
 * such a task does (kernel: sched_group_set_idle(), se_is_idle()).
 *
 * Limits: shares follow a change of siblings with a delay of some sweeps; a change far above, in
 * the worst order of indexes, with one more for each level. A group below which tasks seldom run,
 * each in a group of its own, counts as if one always did, until 0.7 s after the last.
 *
 * Weights here are scaled to NICE0_WEIGHT = cpu.weight 100.
 */
#ifndef ROOST_CGROUP_H
#define ROOST_CGROUP_H

#include "bits.h"
#include "delayed_dequeue.h"

#define SWEEP_NS 10000000ULL

enum {
	ROOT_CGROUP = 0,
	MIN_WEIGHT = 1,				 /* of a task, whatever its group has */
	MAX_WEIGHT = 1 << 22,			 /* kernel: MAX_SHARES, in our scale */
	IDLE_WEIGHT = 3 * (NICE0_WEIGHT / 1024), /* kernel: WEIGHT_IDLEPRIO */
	MEAN_SWEEPS = 8,			 /* sweeps that a mean reaches back, on average */
	FRACTION_BITS = 16,			 /* of a share */
};

static __always_inline void cgroup_weigh(u32 index, u32 cpu_weight, bool idle)
{
	struct cgroup_state *cg = cgroup_state(index);

	cg->cpu_weight = cpu_weight;
	cg->idle = idle;
	cg->weight = idle ? IDLE_WEIGHT : cpu_weight;
}

/*
 * The sum of what competes in the group now, with a group or task of @weight, which may not be
 * counted yet.
 */
static __always_inline u64 competing(const struct cgroup_state *cg, u64 weight)
{
	u64 sum = cg->runnable + cg->children;

	return sum > weight ? sum : weight;
}

/*
 * What the group has against children of the root: at most what its parent has. In units of
 * 1 / 2^FRACTION_BITS of a weight.
 */
static __always_inline u64 group_share(const struct cgroup_state *cg)
{
	const struct cgroup_state *parent = cgroup_state(cg->parent);

	if (cg->parent == ROOT_CGROUP)
		return (u64)cg->weight << FRACTION_BITS;
	return parent->share * cg->weight / competing(parent, cg->weight);
}

/* The task becomes runnable. What was added is remembered, so that exactly that is subtracted. */
static __always_inline void cgroup_enter(struct task_state *ts)
{
	if (ts->cgroup == ROOT_CGROUP)
		return;
	ts->counted_in = ts->cgroup;
	ts->counted_weight = ts->nice_weight;
	atomic_add(&cgroup_state(ts->cgroup)->runnable, ts->nice_weight);
}

/* The task sleeps, leaves our class or its group, or exits. */
static __always_inline void cgroup_leave(struct task_state *ts)
{
	if (ts->counted_in == ROOT_CGROUP)
		return;
	atomic_add(&cgroup_state(ts->counted_in)->runnable, -(u64)ts->counted_weight);
	ts->counted_in = ROOT_CGROUP;
}

/* The task's group or nice weight may have changed, awake or asleep. */
static __always_inline void cgroup_follow(struct task_state *ts)
{
	cgroup_leave(ts);
	if (ts->runnable_since)
		cgroup_enter(ts);
}

/* Move @mean a step towards @now, up as fast as down. Rounded up, so that it arrives. */
static __always_inline u64 mean_step(u64 mean, u64 now)
{
	if (now >= mean)
		return mean + (now - mean + MEAN_SWEEPS - 1) / MEAN_SWEEPS;
	return mean - (mean - now + MEAN_SWEEPS - 1) / MEAN_SWEEPS;
}

/* The group counts for @weight in this sweep, unless it counts for as much already. */
static __always_inline bool counts_for(struct cgroup_state *cg, u32 weight)
{
	if (weight <= cg->counted)
		return false;
	cgroup_state(cg->parent)->next_children += weight - cg->counted;
	cg->counted = weight;
	return true;
}

/* First half of a sweep, for one group: update its means, and count it and its ancestors. */
subprog u32 cgroup_measure(u32 index)
{
	struct cgroup_state *cg = cgroup_state(index);
	u64 runnable = cg->runnable;
	u32 level;

	/* Most groups of a machine sleep most of the time. */
	if (!runnable && !cg->busy)
		return 0;
	/* A group that comes after a long sleep has no past to average with. */
	cg->busy = cg->busy ? mean_step(cg->busy, runnable ? NICE0_WEIGHT : 0) : NICE0_WEIGHT;
	if (!cg->busy)
		return 0;
	counts_for(cg, (u64)cg->weight * cg->busy / NICE0_WEIGHT);
	for_below (level, MAX_CGROUPS, MAX_CGROUPS) {
		index = cg->parent;
		if (index == ROOT_CGROUP)
			return 0;
		cg = cgroup_state(index);
		if (!counts_for(cg, cg->weight))
			return 0;
	}
	return 0;
}

/* Second half: publish the sums and the share. A parent mostly has the smaller index. */
static __always_inline void cgroup_settle(u32 index)
{
	struct cgroup_state *cg = cgroup_state(index);

	cg->children = cg->next_children;
	cg->next_children = 0;
	cg->counted = 0;
	cg->share = group_share(cg);
	cg->sched_idle = cg->idle || cgroup_state(cg->parent)->sched_idle;
}

/* The weight that a task of nice weight @nice_weight has in its CPU's queue. */
static __always_inline u32 cgroup_task_weight(u32 index, u32 nice_weight)
{
	struct cgroup_state *cg = cgroup_state(index);
	u64 weight;

	if (index == ROOT_CGROUP)
		return nice_weight;
	weight = group_share(cg) * nice_weight / competing(cg, nice_weight);
	weight = (weight + (1 << FRACTION_BITS) / 2) >> FRACTION_BITS;
	return weight < MIN_WEIGHT ? MIN_WEIGHT : weight > MAX_WEIGHT ? MAX_WEIGHT : weight;
}

/* Take over the current weight and cpu.idle of the task's group. A sleeper leaves its queue. */
static __always_inline void cgroup_apply(struct task_state *ts, u64 now)
{
	if (ts->delayed_in) {
		delayed_ends(ts, now);
		queue_leave(ts, now);
	}
	ts->competed = competing(cgroup_state(ts->cgroup), ts->nice_weight);
	ts->sched_idle = ts->idle_policy || cgroup_state(ts->cgroup)->sched_idle;
	queue_reweigh(ts, cgroup_task_weight(ts->cgroup, ts->nice_weight), now);
}

/* In its group competes much more, or less, than when the task's weight was worked out. */
static __always_inline bool cgroup_differs(const struct task_state *ts)
{
	u64 then = ts->competed, now;

	if (ts->cgroup == ROOT_CGROUP)
		return false;
	now = competing(cgroup_state(ts->cgroup), ts->nice_weight);
	return now > then + then / 4 || now < then - then / 4;
}

#endif /* ROOST_CGROUP_H */
