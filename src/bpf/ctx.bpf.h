/* SPDX-License-Identifier: GPL-2.0-only */
/* What we read of a task's settings. */
#ifndef ROOST_CTX_BPF_H
#define ROOST_CTX_BPF_H

#include "policy/cgroup.h"

#define SCHED_BATCH_POLICY 3 /* uapi: SCHED_BATCH */
/*
 * The weight of a nice level (kernel: sched_prio_to_weight[]). p->scx.weight will not do: it is rounded to a hundredth
 * of nice 0, a third off at nice 19.
 */
static __always_inline u32 nice_weight(struct task_struct *p)
{
	static const u32 weights[40] = {
		88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
		3906,  3121,  2501,  1991,  1586,  1277,  1024,	 820,	655,   526,   423,  335,  272,	215,
		172,   137,   110,   87,    70,	   56,	  45,	 36,	29,    23,    18,   15,
	};
	u32 level = p->static_prio - RT_PRIOS;

	if (p->policy == SCHED_IDLE_POLICY)
		return IDLE_WEIGHT;
	return weights[level < 40 ? level : 20] * (NICE0_WEIGHT / 1024);
}

/* Read policy, nice and custom slice, which change together (kernel: __setscheduler_params()); ts->cgroup may be new. */
static __always_inline void task_settings(struct task_state *ts, struct task_struct *p, u64 now)
{
	ts->nice_weight = nice_weight(p);
	ts->idle_policy = p->policy == SCHED_IDLE_POLICY;
	ts->batch = p->policy == SCHED_BATCH_POLICY;
	ts->custom_slice = p->se.custom_slice ? p->se.slice : 0;
	cgroup_follow(ts);
	cgroup_apply(ts, now);
}

#endif /* ROOST_CTX_BPF_H */
