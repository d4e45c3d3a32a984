/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Do the CPUs' sums hold what their tasks say they gave them? Asked from outside through BPF_PROG_RUN, of a scheduler that
 * runs. A task that comes or goes meanwhile may be missed or counted twice: whoever asks takes the best of a few answers.
 */
#ifndef ROOST_AUDIT_BPF_H
#define ROOST_AUDIT_BPF_H

#include "ctx.bpf.h"

struct audit {
	u64 util_drift; /* over all CPUs, by how much util_est is not the sum of what its tasks gave */
	u64 util_est;	/* the sum over all CPUs */
	u64 nr_tasks;
	u64 nr_joined; /* those that some CPU counts */
};

struct audit audited = {};
u64 audited_util[MAX_CPUS] = {};

static __always_inline void audit_task(struct task_struct *p)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);
	s32 joined;

	audited.nr_tasks++;
	if (!ts)
		return;
	joined = ts->joined;
	if (!joined)
		return;
	audited.nr_joined++;
	audited_util[(u32)(joined - 1) % MAX_CPUS] += ts->joined_util;
}

subprog u32 audit_tasks(void)
{
	struct task_struct *p;

	bpf_rcu_read_lock();
	bpf_for_each (task, p, NULL, BPF_TASK_ITER_ALL_THREADS)
		audit_task(p);
	bpf_rcu_read_unlock();
	return 0;
}

subprog u32 audit_cpus(void)
{
	u32 cpu;

	for_below (cpu, machine.nr_cpu_ids, MAX_CPUS) {
		u64 sum = cpu_state(cpu)->util_est;
		s64 drift = sum - audited_util[cpu % MAX_CPUS];

		audited.util_est += sum;
		audited.util_drift += drift < 0 ? -drift : drift;
		audited_util[cpu % MAX_CPUS] = 0;
	}
	return 0;
}

SEC("syscall")
int roost_audit(struct audit *answer)
{
	audited.util_drift = audited.util_est = audited.nr_tasks = audited.nr_joined = 0;
	audit_tasks();
	audit_cpus();
	answer->util_drift = audited.util_drift;
	answer->util_est = audited.util_est;
	answer->nr_tasks = audited.nr_tasks;
	answer->nr_joined = audited.nr_joined;
	return 0;
}

#endif /* ROOST_AUDIT_BPF_H */
