/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Do the CPUs' sums match what their tasks have added? Userspace checks this on a running
 * scheduler, through BPF_PROG_RUN. A task that comes or goes meanwhile may be missed or counted
 * twice, so userspace takes the best of a few results.
 */
#ifndef ROOST_AUDIT_BPF_H
#define ROOST_AUDIT_BPF_H

#include "ctx.bpf.h"

struct audit audited = {};
s64 util_drifts[MAX_CPUS] = {}; /* of each CPU, as of the last check; read by userspace */

static __always_inline void audit_task(struct task_struct *p)
{
	struct task_state *ts = task_state_if(p);
	s32 joined;

	audited.nr_tasks++;
	if (!ts)
		return;
	joined = ts->on_rq;
	if (!joined)
		return;
	audited.nr_joined++;
	util_drifts[masked(joined - 1, MAX_CPUS)] -= ts->on_rq_util;
}

subprog u32 audit_begins(void)
{
	u32 cpu;

	audited = (struct audit){};
	for_below (cpu, machine.nr_cpu_ids, MAX_CPUS)
		util_drifts[masked(cpu, MAX_CPUS)] = 0;
	return 0;
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
		s64 sum = cpu_state(cpu)->util_est;
		s64 drift = util_drifts[masked(cpu, MAX_CPUS)] += sum;

		audited.util_est += sum;
		audited.util_drift += drift < 0 ? -drift : drift;
	}
	return 0;
}

SEC("syscall")
int roost_audit(struct audit *answer)
{
	audit_begins();
	audit_tasks();
	audit_cpus();
	*answer = audited;
	return 0;
}

#endif /* ROOST_AUDIT_BPF_H */
