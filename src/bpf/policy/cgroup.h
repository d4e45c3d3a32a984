/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.weight, hierarchical, flattened into the weight of each task.
 *
 * Problem: a group's weight is what all its tasks together may have against its sibling groups, but
 * queues order tasks.
 *
 * Method: a task's effective weight is its group's weight among the active siblings at each level,
 * shared among the group's runnable tasks by their nice weights. scx_flatcg and the kernel's own
 * group shares have the same idea. A group counts the nice weights of its runnable tasks: one
 * atomic when a task wakes, one when it sleeps. A sweep every SWEEP_NS takes the mean over time and
 * finds out which groups are active. Runnable tasks are counted, and not the time charged when a
 * task runs, because tasks of low weight wait long and would deliver their time in lumps.
 * cpu.idle: the group weighs as much as one SCHED_IDLE task, and its tasks give way to others as
 * such a task does (kernel: sched_group_set_idle(), se_is_idle()).
 *
 * Limits: shares follow a change with a delay of some sweeps. A group stays active until its mean
 * is 0, which is 0.7 s after its last task. A group beyond MAX_CGROUPS counts as its parent.
 *
 * Weights here are scaled to NICE0_WEIGHT = cpu.weight 100.
 */
#ifndef ROOST_CGROUP_H
#define ROOST_CGROUP_H

#include "bits.h"
#include "queue.h"

#define SWEEP_NS 10000000ULL

enum {
	ROOT_CGROUP = 0,
	CGROUP_DEPTH = 16,			 /* levels that count, from a group upwards */
	MIN_WEIGHT = 1,				 /* of a task, whatever its group has */
	MAX_WEIGHT = 1 << 22,			 /* kernel: MAX_SHARES, in our scale */
	IDLE_WEIGHT = 3 * (NICE0_WEIGHT / 1024), /* kernel: WEIGHT_IDLEPRIO */
	MEAN_SWEEPS = 8,			 /* sweeps that a mean reaches back, on average */
	FRACTION_BITS = 8,			 /* of a weight in computations */
};

static __always_inline void cgroup_weigh(u32 index, u32 cpu_weight, bool idle)
{
	struct cgroup_state *cg = cgroup_state(index);

	cg->cpu_weight = cpu_weight;
	cg->idle = idle;
	cg->weight = idle ? IDLE_WEIGHT : cpu_weight;
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

/*
 * First half of a sweep, for one group: update its load, and mark it and its ancestors as active.
 */
static __always_inline void cgroup_measure(u32 index)
{
	struct cgroup_state *cg = cgroup_state(index);
	u64 runnable = cg->runnable;
	u32 level;

	/* Most groups of a machine sleep most of the time. */
	if (!runnable && !cg->load)
		return;
	/* A group that comes after a long sleep has no past to average with. */
	cg->load = cg->load ? mean_step(cg->load, runnable) : runnable;
	if (!cg->load)
		return;
	for_below (level, CGROUP_DEPTH, CGROUP_DEPTH) {
		if (index == ROOT_CGROUP)
			return;
		cg = cgroup_state(index);
		if (cg->active)
			return;
		cg->active = 1;
		cgroup_state(cg->parent)->next_children += cg->weight;
		index = cg->parent;
	}
}

/* Second half: publish the sums. */
static __always_inline void cgroup_settle(u32 index)
{
	struct cgroup_state *cg = cgroup_state(index);

	cg->children = cg->next_children;
	cg->next_children = 0;
	cg->active = 0;
	cg->sched_idle = cg->idle || cgroup_state(cg->parent)->sched_idle;
}

/* The weight that a task of nice weight @nice_weight has in its CPU's queue. */
static __always_inline u32 cgroup_task_weight(u32 index, u32 nice_weight)
{
	struct cgroup_state *cg = cgroup_state(index);
	u64 weight;
	u32 level;

	if (index == ROOT_CGROUP)
		return nice_weight;
	/*
	 * Its part of the group. The group's load holds this task already, or will after the next
	 * sweep.
	 */
	weight = ((u64)cg->weight * nice_weight << FRACTION_BITS) /
		 (cg->load > nice_weight ? cg->load : nice_weight);
	for_below (level, CGROUP_DEPTH, CGROUP_DEPTH) {
		struct cgroup_state *parent = cgroup_state(cg->parent);

		if (cg->parent == ROOT_CGROUP)
			break;
		/* The siblings share what the parent has. */
		weight = weight * parent->weight /
			 (parent->children > cg->weight ? parent->children : cg->weight);
		cg = parent;
	}
	weight = (weight + (1 << FRACTION_BITS) / 2) >> FRACTION_BITS;
	return weight < MIN_WEIGHT ? MIN_WEIGHT : weight > MAX_WEIGHT ? MAX_WEIGHT : weight;
}

/* Take over the current weight and cpu.idle of the task's group. */
static __always_inline void cgroup_apply(struct task_state *ts, u64 now)
{
	ts->sched_idle = ts->idle_policy || cgroup_state(ts->cgroup)->sched_idle;
	queue_reweigh(ts, cgroup_task_weight(ts->cgroup, ts->nice_weight), now);
}

#endif /* ROOST_CGROUP_H */
