/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The second half of the port, over kfuncs: what the policy reads of tasks and run queues after
 * placement, and what it has the kernel do. policy/port.h says what each function means. Not in the
 * tests' object, which only places.
 */
#ifndef ROOST_ACT_BPF_H
#define ROOST_ACT_BPF_H

#include "return_work.bpf.h"

#define RT_PRIOS     100 /* kernel: MAX_RT_PRIO, the static_prio of nice -20 */

#define ENQ_WAKEUP   SCX_ENQ_WAKEUP
#define ENQ_LAST     SCX_ENQ_LAST
#define ENQ_REENQ    SCX_ENQ_REENQ
#define ENQ_PREEMPT  SCX_ENQ_PREEMPT
#define ENQ_IMMED    (fault_old_paths ? 0 : SCX_ENQ_IMMED)
#define WAKE_FORK    SCX_WAKE_FORK
#define WAKE_SYNC    SCX_WAKE_SYNC
#define KICK_IDLE    SCX_KICK_IDLE
#define KICK_PREEMPT SCX_KICK_PREEMPT
#define SLICE_INF    SCX_SLICE_INF

/* ---- tasks ---- */

static __always_inline u32 task_pid(port_task *p)
{
	return p->pid;
}

/*
 * p->migration_disabled is also 1 for the current task if the entry of this program disables
 * migration. is_migration_disabled() of the scx headers would need a kconfig extern.
 */
static __always_inline bool migration_disabled(port_task *p)
{
	u32 depth = p->migration_disabled;

	if (depth != 1)
		return depth;
	return !__scx_prolog_disables_migration || p != bpf_get_current_task_btf();
}

static __always_inline u64 task_ran(port_task *p)
{
	return p->se.sum_exec_runtime;
}

static __always_inline bool task_pinned(port_task *p)
{
	return p->nr_cpus_allowed == 1 || migration_disabled(p);
}

static __always_inline bool held_from_mask(port_task *p)
{
	return migration_disabled(p) && !bpf_cpumask_test_cpu(scx_bpf_task_cpu(p), &p->cpus_mask);
}

static __always_inline bool pcpu_kthread(port_task *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

static __always_inline bool task_runnable(port_task *p)
{
	return p->scx.flags & SCX_TASK_QUEUED;
}

static __always_inline bool task_sleeps(port_task *p)
{
	return p->__state;
}

static __always_inline u64 task_key(port_task *p)
{
	return p->scx.dsq_vtime;
}

static __always_inline u64 task_slice(port_task *p)
{
	return p->scx.slice;
}

static __always_inline bool enq_placed(u64 enq_flags)
{
	return __COMPAT_is_enq_cpu_selected(enq_flags);
}

/* Defined after the policy: arm.bpf.h, cgroup.bpf.h. */
static __always_inline void arm_follow(port_task *p, struct task_state *ts);
subprog u32 sweep_cgroups(u64 now);

/*
 * The fields of preempt_count() for NMI, interrupt and softirq context (kernel: in_task()).
 * bpf_in_task() of the scx headers would need a kconfig extern.
 */
#define INTERRUPT_COUNTS 0xff0100

static __always_inline bool in_task(void)
{
	return !(get_preempt_count() & INTERRUPT_COUNTS);
}

static __always_inline port_task *current_task(void)
{
	return bpf_get_current_task_btf();
}

static __always_inline bool task_is_idle(port_task *p)
{
	return p->flags & PF_IDLE;
}

static __always_inline bool task_exits(port_task *p)
{
	return p->flags & PF_EXITING;
}

/* ---- CPUs ---- */

static __always_inline s32 this_cpu(void)
{
	return running_cpu();
}

static __always_inline u64 cpu_clock(void)
{
	return scx_bpf_now();
}

static __always_inline bool cpu_taken(s32 cpu)
{
	struct rq *rq = rq_of(cpu);

	return rq && rq->curr->prio < RT_PRIOS;
}

static __always_inline bool cpu_is_ours(s32 cpu)
{
	struct rq *rq = rq_of(cpu);

	return rq && (rq->scx.flags & SCX_RQ_ONLINE) && rq->curr->prio >= RT_PRIOS;
}

/*
 * From sched_cpu_deactivate() on, balance_push() stands here; ops.cpu_offline comes a grace period
 * later. Another callback, of a real-time task, is gone when the switch ends.
 */
static __always_inline bool cpu_leaves(s32 cpu)
{
	struct rq *rq = rq_of(cpu);

	return rq && rq->balance_callback;
}

static __always_inline u32 local_length(s32 cpu)
{
	struct rq *rq = rq_of(cpu);

	return rq ? rq->scx.local_dsq.nr : 0;
}

static __always_inline u32 cpu_speed(s32 cpu)
{
	return scx_bpf_cpuperf_cur(cpu);
}

static __always_inline void ask_speed(s32 cpu, u32 speed)
{
	scx_bpf_cpuperf_set(cpu, speed);
}

static __always_inline void kick_cpu(s32 cpu, u64 flags)
{
	scx_bpf_kick_cpu(cpu, flags);
}

/* ---- where tasks go ---- */

static __always_inline void insert_local(port_task *p, u64 slice, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice, enq_flags);
}

static __always_inline void insert_on(port_task *p, s32 cpu, u64 slice, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cpu, slice, enq_flags);
}

static __always_inline void insert_queued(port_task *p, u32 queue, u64 slice, u64 key,
					  u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, queue, slice, key, enq_flags);
}

static __always_inline bool set_slice(port_task *p, u64 slice)
{
	return scx_bpf_task_set_slice(p, slice);
}

#define for_each_queued(p, queue) bpf_for_each (scx_dsq, p, queue, 0)
#define queued_move_here(p)	  scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)
#define queued_move_to(p, cpu, enq_flags)                                                          \
	scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | (cpu), enq_flags)

/* The task gets that key in the queue. */
#define queued_requeue(p, queue, key)                                                              \
	({                                                                                         \
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, key);                                \
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, queue, 0);                            \
	})

/* ---- timers; timers.bpf.h sets them up ---- */

/* A bpf_timer can be pinned only to its caller's CPU. */
static __always_inline s32 start_timer(struct bpf_timer *timer, s32 cpu, u64 ns)
{
	return bpf_timer_start(timer, ns, cpu == this_cpu() ? BPF_F_TIMER_CPU_PIN : 0);
}

static __always_inline s32 start_slice_timer(s32 cpu, u64 ns)
{
	u32 key = cpu;
	struct slice_timer *t = bpf_map_lookup_elem(&slice_timers, &key);

	return t ? start_timer(&t->timer, cpu, ns) : -ENOENT;
}

static __always_inline s32 start_delay_timer(s32 cpu, u64 ns)
{
	u32 key = cpu;
	struct delay_timer *t = bpf_map_lookup_elem(&delay_timers, &key);

	/* A fault for tests: the timer is lost. */
	if (fault_spin)
		return 0;
	return t ? start_timer(&t->timer, cpu, ns) : -ENOENT;
}

/*
 * PREEMPT_RT rejects a program with a timer. The verifier knows tun, and drops the code after the
 * return.
 */
static __always_inline s32 start_park_timer(u32 queue, u64 ns)
{
	u32 key = queue % PARK_QUEUES;
	struct park_timer *t;

	if (!tun.timers)
		return -ENOENT;
	t = bpf_map_lookup_elem(&park_timers, &key);
	return t ? bpf_timer_start(&t->timer, ns, 0) : -ENOENT;
}

/* ---- tests ---- */

#ifdef ROOST_FAULTS
/* A pause between the check of a CPU and the insertion there, long enough for a race to be seen. */
#define SPIN_NS 1000000ULL

subprog u32 spin_gap(void)
{
	u64 end = bpf_ktime_get_ns() + (fault_spin ? SPIN_NS : 0);

	while ((s64)(bpf_ktime_get_ns() - end) < 0 && may_loop)
		;
	return 0;
}
#else
#define spin_gap()
#endif

#endif /* ROOST_ACT_BPF_H */
