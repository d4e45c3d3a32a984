// SPDX-License-Identifier: GPL-2.0-only
/*
 * scx_roost: the kernel's own wakeup placement, with the ideas of five LKML threads as switches on
 * top.
 *
 * This file binds sched_ext's callbacks to the policy, in the order of a task's life:
 *
 *	select_cpu			choose a CPU		policy/select_cpu.h, policy/ladder.h
 *	enqueue				join a queue		policy/enqueue.h, policy/queue.h
 *	dispatch			choose the next task	policy/dispatch.h, policy/steal.h
 *	running, tick, stopping		account time		policy/run.h, policy/tick.h,
 *								policy/signal.h
 *	cpu_online, cpu_offline		CPUs come and go	policy/hotplug.h
 *	timers				end slices, move tasks	policy/slice_timer.h,
 *								policy/delay_queue.h, timers.bpf.h
 *	init_task ... exit_task		a task's state, its arm	task_state.bpf.h, ctx.bpf.h,
 *								arm.bpf.h
 *	cgroup_*			weights of groups	policy/cgroup.h, cgroup.bpf.h
 *	cgroup_set_bandwidth		limits of groups	policy/bandwidth.h,
 *								policy/parking.h, bandwidth.bpf.h
 *	roost_audit			check the sums		audit.bpf.h, for ctl show --audit
 *
 * The policy is plain C over the port (policy/port.h) and is also compiled natively. No decision
 * waits for userspace. No kconfig extern is used, so it loads without a /boot/config.
 */
#include <scx/common.bpf.h>
#include "arm.bpf.h"
#include "audit.bpf.h"
#include "cgroup.bpf.h"
#include "release.bpf.h"
#include "timers.bpf.h"
#include "policy/dispatch.h"
#include "policy/enqueue.h"
#include "policy/select_cpu.h"
#include "policy/tick.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

s32 BPF_STRUCT_OPS(roost_select_cpu, struct task_struct *p, s32 prev, u64 wake_flags)
{
	return run_select_cpu(p, prev, wake_flags);
}

void BPF_STRUCT_OPS(roost_enqueue, struct task_struct *p, u64 enq_flags)
{
	run_enqueue(p, enq_flags);
}

void BPF_STRUCT_OPS(roost_dispatch, s32 cpu, struct task_struct *prev)
{
	run_dispatch(cpu, prev);
}

void BPF_STRUCT_OPS(roost_tick, struct task_struct *p)
{
	run_tick(p);
}

void BPF_STRUCT_OPS(roost_running, struct task_struct *p)
{
	run_running(p);
}

void BPF_STRUCT_OPS(roost_stopping, struct task_struct *p, bool runnable)
{
	run_stopping(p, runnable);
}

bool BPF_STRUCT_OPS(roost_yield, struct task_struct *from, struct task_struct *to)
{
	return run_yield(from, to);
}

/* Also called when the task joins our class, right after ops.enable. */
void BPF_STRUCT_OPS(roost_set_weight, struct task_struct *p, u32 weight)
{
	struct task_state *ts = task_state_of(p);

	if (ts)
		task_settings(ts, p, scx_bpf_now());
}

void BPF_STRUCT_OPS(roost_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	give_back_local();
}

void BPF_STRUCT_OPS(roost_cpu_online, s32 cpu)
{
	if (!cpu_comes(cpu, scx_bpf_now()))
		scx_bpf_exit(SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG,
			     "CPU %d was offline at the load", cpu);
}

void BPF_STRUCT_OPS(roost_cpu_offline, s32 cpu)
{
	cpu_goes(cpu);
}

s32 BPF_STRUCT_OPS(roost_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	s32 err = timers_init();
	struct task_state *ts;

	if (err)
		return err;
	ts = task_state_new(p);
	if (!ts)
		return -ENOMEM;
	if (args->fork)
		arm_inherit(p, ts);
	ts->cgroup = cgroup_index(args->cgroup);
	task_begins(ts, scx_bpf_now());
	return 0;
}

/*
 * The task leaves our class or dies; the kernel calls this before ops.exit_task. A queue may still
 * count the task.
 */
void BPF_STRUCT_OPS(roost_disable, struct task_struct *p)
{
	run_disable(p);
}

/* The task has died, its fork has failed, or the scheduler ends. */
void BPF_STRUCT_OPS(roost_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	task_state_drop(p);
	return_work_drop(p);
	if (args->cancelled || task_exits(p))
		arm_forget(p);
}

/* Called before the task has its new name. Attached while there are rules about names. */
SEC("tp_btf/task_rename")
int BPF_PROG(roost_rename, struct task_struct *p, const char *comm)
{
	struct task_state *ts = task_state_if(p);

	if (ts)
		ts->rules_seq = 0;
	return 0;
}

/*
 * Run over the threads of one process, leader first. So a thread that is cloned meanwhile copies
 * the new values.
 */
SEC("iter/task")
int roost_assign(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;

	if (p)
		arm_assign(p);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(roost_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	return cgroup_add(cgrp, args);
}

void BPF_STRUCT_OPS(roost_cgroup_exit, struct cgroup *cgrp)
{
	cgroup_remove(cgrp);
}

void BPF_STRUCT_OPS(roost_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct task_state *ts = task_state_of(p);

	if (!ts)
		return;
	run_moves(ts, cgroup_index(to));
}

void BPF_STRUCT_OPS(roost_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct cgroup_entry *e = cgroup_entry(cgrp);

	if (!e)
		return;
	e->weight = weight;
	cgroup_is_set(cgrp, e);
}

void BPF_STRUCT_OPS(roost_cgroup_set_idle, struct cgroup *cgrp, bool idle)
{
	struct cgroup_entry *e = cgroup_entry(cgrp);

	if (!e)
		return;
	e->idle = idle;
	cgroup_is_set(cgrp, e);
}

void BPF_STRUCT_OPS(roost_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us,
		    u64 burst_us)
{
	struct cgroup_entry *e = cgroup_entry(cgrp);

	if (!e)
		return;
	e->period_us = period_us;
	e->quota_us = quota_us;
	e->burst_us = burst_us;
	cgroup_is_set(cgrp, e);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(roost_init)
{
	s32 err, cpu, queue;

	bpf_for (cpu, 0, machine.nr_cpu_ids)
		domains()->away[masked(cpu, MAX_CPUS)] = !cpu_facts(cpu)->online;
	bpf_for (cpu, 0, machine.nr_cpu_ids / DOMAIN_LOOKS + 1)
		domains_look();
	bpf_for (cpu, 0, machine.nr_cpu_ids) {
		if (!cpu_facts(cpu)->online)
			continue;
		cpu_begins(cpu);
		err = scx_bpf_create_dsq(queue_id(cpu, 0), -1)
			      ?: scx_bpf_create_dsq(queue_id(cpu, 1), -1);
		if (err)
			return err;
	}
	if (!tun.limits)
		return 0;
	bpf_for (queue, 0, PARK_QUEUES) {
		err = scx_bpf_create_dsq(park_number(queue), -1);
		if (err)
			return err;
	}
	return 0;
}

/* Dump the queues of parked tasks. */
void BPF_STRUCT_OPS(roost_dump, struct scx_dump_ctx *dctx)
{
	u64 now = scx_bpf_now();
	s32 queue;

	if (!tun.limits)
		return;
	bpf_for (queue, 0, PARK_QUEUES) {
		struct park *park = park_of(queue);
		s32 length = queue_length(park_number(queue));

		if (length > 0)
			scx_bpf_dump(
				"roost: queue %d: parked=%d timer_at=%lld came_at=%lld ns from now\n",
				queue, length, (s64)(park->timer_at - now),
				(s64)(park->came_at - now));
	}
}

void BPF_STRUCT_OPS(roost_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	struct cpu_state *cs = cpu_state(cpu);

	scx_bpf_dump(
		"roost: curr=%d weight=%llu/%u avg_vruntime=%llu deadline=%llu young=%d old=%d late=%u idle_marked=%u util=%u",
		cs->curr_pid, cs->weight, cs->curr_weight, cs->avg_vruntime, cs->curr_deadline,
		queue_length(young_queue(cpu)), queue_length(old_queue(cpu)), cs->late,
		cs->idle_marked, cs->util_avg);
}

void BPF_STRUCT_OPS(roost_dump_task, struct scx_dump_ctx *dctx, struct task_struct *p)
{
	struct task_state *ts = task_state_if(p);

	if (ts)
		scx_bpf_dump(
			"roost: on_rq=%d weight=%u vruntime=%llu deadline=%llu lag=%lld waits_since=%llu "
			"cgroup=%u parked=%llu",
			ts->on_rq - 1, ts->weight, ts->vruntime, ts->deadline, ts->lag,
			ts->waits_since, ts->cgroup, ts->parked_in);
}

void BPF_STRUCT_OPS(roost_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

/*
 * ENQ_LAST: a running task that leaves its core gets no slice, and comes to enqueue when nothing
 * else is there to run; no other callback may send it to another CPU. ENQ_MIGRATION_DISABLED: tasks
 * that may not migrate now wait in the CPU's queues like others (enqueue.h). ALLOW_QUEUED_WAKEUP: a
 * waker leaves the insertion on another CPU to that CPU (kernel: ttwu_queue_wakelist()).
 */
/* clang-format off */
SCX_OPS_DEFINE(roost_ops,
	       .select_cpu		= (void *)roost_select_cpu,
	       .enqueue			= (void *)roost_enqueue,
	       .dispatch		= (void *)roost_dispatch,
	       .tick			= (void *)roost_tick,
	       .running			= (void *)roost_running,
	       .stopping		= (void *)roost_stopping,
	       .yield			= (void *)roost_yield,
	       .set_weight		= (void *)roost_set_weight,
	       .cpu_release		= (void *)roost_cpu_release,
	       .cpu_online		= (void *)roost_cpu_online,
	       .cpu_offline		= (void *)roost_cpu_offline,
	       .init_task		= (void *)roost_init_task,
	       .disable			= (void *)roost_disable,
	       .exit_task		= (void *)roost_exit_task,
	       .cgroup_init		= (void *)roost_cgroup_init,
	       .cgroup_exit		= (void *)roost_cgroup_exit,
	       .cgroup_move		= (void *)roost_cgroup_move,
	       .cgroup_set_weight	= (void *)roost_cgroup_set_weight,
	       .cgroup_set_idle		= (void *)roost_cgroup_set_idle,
	       .cgroup_set_bandwidth	= (void *)roost_cgroup_set_bandwidth,
	       .dump			= (void *)roost_dump,
	       .dump_cpu		= (void *)roost_dump_cpu,
	       .dump_task		= (void *)roost_dump_task,
	       .init			= (void *)roost_init,
	       .exit			= (void *)roost_exit,
	       .flags			= SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING |
				  SCX_OPS_ENQ_MIGRATION_DISABLED | SCX_OPS_ALLOW_QUEUED_WAKEUP,
	       .timeout_ms		= 10000,
	       .name			= "roost");
/* clang-format on */
