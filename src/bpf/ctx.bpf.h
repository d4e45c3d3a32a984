/* SPDX-License-Identifier: GPL-2.0-only */
/* From the kernel's task to ours, where ours must be there, and what we read of a task's settings. */
#ifndef ROOST_CTX_BPF_H
#define ROOST_CTX_BPF_H

#include "policy/cgroup.h"
#include "policy/delay_wait.h"

#define SCHED_BATCH_POLICY 3   /* uapi: SCHED_BATCH */
#define RT_PRIOS	   100 /* kernel: MAX_RT_PRIO; static_prio of nice -20 */

static __always_inline struct task_state *task_state_of(struct task_struct *p)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);

	if (!ts)
		count(STAT_no_task_ctx);
	return ts;
}

/* ns; the clocks of two CPUs differ a little. */
static __always_inline u64 waited_since(u64 since, u64 now)
{
	s64 waited = now - since;

	return waited > 0 ? waited : 0;
}

/* The CPU that the task is on; where the kernel keeps it in the task, without a call. */
static __always_inline s32 task_cpu(struct task_struct *p)
{
	if (bpf_core_field_exists(p->thread_info.cpu))
		return p->thread_info.cpu;
	return scx_bpf_task_cpu(p);
}

/*
 * p->migration_disabled is 1 also for a task that is only inside this program, where the program's entry disables
 * migration (see is_migration_disabled() of the scx headers, which would need a kconfig extern).
 */
static __always_inline bool migration_disabled(struct task_struct *p)
{
	u32 depth = p->migration_disabled;

	if (depth != 1)
		return depth;
	return !__scx_prolog_disables_migration || p != bpf_get_current_task_btf();
}

/* The task can run on one CPU only. */
static __always_inline bool task_pinned(struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 || migration_disabled(p);
}

/* A task that waits in a queue may go to another CPU now: it can, and it waits for no delayed move. */
subprog bool may_leave(struct task_struct *p trusted, u64 now)
{
	struct task_state *ts;

	if (task_pinned(p))
		return false;
	ts = bpf_task_storage_get(&task_states, p, 0, 0);
	return ts && !delay_keeps(ts, now);
}

/* So many tasks of a queue are looked at with interrupts off. */
#define QUEUE_LOOKS_MAX 32

/* The port's question that wants a task's state. A task that does not fit here must not be moved: the kernel ends us for it. */
subprog bool queue_take_settled(s32 cpu, s32 here, u64 now)
{
	struct task_struct *p;
	bool taken = false;
	u32 looks = 0;

	bpf_for_each (scx_dsq, p, cpu, 0) {
		if (may_leave(p, now) && task_allowed(p, here))
			taken = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
		if (taken || ++looks == QUEUE_LOOKS_MAX)
			break;
	}
	return taken;
}

static __always_inline bool pcpu_kthread(struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

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
