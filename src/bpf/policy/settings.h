/* SPDX-License-Identifier: GPL-2.0-only */
/* The settings of a task: nice level, policy, a slice of its own (kernel: struct sched_attr). */
#ifndef ROOST_SETTINGS_H
#define ROOST_SETTINGS_H

#include "cgroup.h"

/*
 * The weight of a nice level (kernel: sched_prio_to_weight[]). p->scx.weight is too coarse: it is
 * rounded to a hundredth of nice 0, which is off by a third at nice 19.
 */
static __always_inline u32 nice_weight(s32 nice)
{
	static const u32 weights[40] = {
		88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
		9548,  7620,  6100,  4904,  3906,  3121,  2501,	 1991,	1586,  1277,
		1024,  820,   655,   526,   423,   335,	  272,	 215,	172,   137,
		110,   87,    70,    56,    45,	   36,	  29,	 23,	18,    15,
	};
	u32 level = nice + 20;

	return weights[level < 40 ? level : 20] * (NICE0_WEIGHT / 1024);
}

/*
 * Take over settings, which change together (kernel: __setscheduler_params()). @slice: ns; 0: none
 * of its own.
 */
static __always_inline void settings_apply(struct task_state *ts, s32 nice, u32 policy, u64 slice,
					   u64 now)
{
	ts->idle_policy = policy == SCHED_IDLE_POLICY;
	ts->batch = policy == SCHED_BATCH_POLICY;
	ts->nice_weight = ts->idle_policy ? IDLE_WEIGHT : nice_weight(nice);
	ts->custom_slice = slice;
	cgroup_follow(ts);
	cgroup_apply(ts, now);
}

#endif /* ROOST_SETTINGS_H */
