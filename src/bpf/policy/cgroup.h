/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.weight, hierarchical, flattened into the weight of each task.
 *
 * Problem: a group's weight is what all its tasks together may have against its siblings, but queues order tasks.
 * Method: a task's effective weight is its group's weight among the active siblings at each level, shared among the
 * runnable tasks of the group by their nice weights (the idea of scx_flatcg, and of the kernel's own group shares).
 * What is active and how much is runnable comes from a sweep every SWEEP_NS over sums that tasks add to at most once
 * a period: nothing is done on a wakeup.
 * cpu.idle: the group weighs as much as one SCHED_IDLE task, and its tasks give way to others as such a task does
 * (kernel: sched_group_set_idle(), se_is_idle()).
 * Limits: shares follow a change with a delay of some sweeps; a group beyond MAX_CGROUPS counts as its parent.
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
	CGROUP_DEPTH = 16,			 /* levels that are looked at; deeper groups count as their ancestor */
	MIN_WEIGHT = 16,			 /* of a task, whatever its group has */
	MAX_WEIGHT = 1 << 22,			 /* kernel: MAX_SHARES, in our scale */
	IDLE_WEIGHT = 3 * (NICE0_WEIGHT / 1024), /* kernel: WEIGHT_IDLEPRIO */
};

static __always_inline void cgroup_weigh(u32 index, u32 cpu_weight, bool idle)
{
	struct cgroup_state *cg = cgroup_state(index);

	cg->cpu_weight = cpu_weight;
	cg->idle = idle;
	cg->weight = idle ? IDLE_WEIGHT : cpu_weight;
}

/* A task of the group was runnable for @ns with @weight. */
static __always_inline void cgroup_charge(u32 index, u64 ns, u32 weight)
{
	if (index != ROOT_CGROUP)
		atomic_add(&cgroup_state(index)->run_sum, ns * weight);
}

/* First half of a sweep, for one group: its load over the last @ns, and its ancestors become active with it. */
static __always_inline void cgroup_measure(u32 index, u64 ns)
{
	struct cgroup_state *cg = cgroup_state(index);
	u64 load = atomic_swap(&cg->run_sum, 0) / ns;
	u32 level;

	/* A mean over a few sweeps; a group that slept through this one keeps a rest of activity. */
	cg->load = load >= cg->load ? (cg->load + 3 * load) / 4 : cg->load - (cg->load - load + 3) / 4;
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
	/* Its part of the group; the group's load already holds this task, or will after the next sweep. */
	weight = (u64)cg->weight * nice_weight / (cg->load > nice_weight ? cg->load : nice_weight);
	for_below (level, CGROUP_DEPTH, CGROUP_DEPTH) {
		struct cgroup_state *parent = cgroup_state(cg->parent);

		if (cg->parent == ROOT_CGROUP)
			break;
		/* The siblings share what the parent has. */
		weight = weight * parent->weight / (parent->children > cg->weight ? parent->children : cg->weight);
		cg = parent;
	}
	return weight < MIN_WEIGHT ? MIN_WEIGHT : weight > MAX_WEIGHT ? MAX_WEIGHT : weight;
}

/* Take over what the task's group has now. */
static __always_inline void cgroup_apply(struct task_state *ts, u64 now)
{
	ts->sched_idle = ts->idle_policy || cgroup_state(ts->cgroup)->sched_idle;
	queue_reweigh(ts, cgroup_task_weight(ts->cgroup, ts->nice_weight), now);
}

#endif /* ROOST_CGROUP_H */
