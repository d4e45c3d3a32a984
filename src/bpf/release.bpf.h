/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task of a higher class takes the CPU: what waits in the CPU's local queue goes back to enqueue, where others find it.
 *
 * Since Linux 6.19 that can be done from anywhere, and the kernel warns in its log of a scheduler that still does it in
 * ops.cpu_release(): there the tracepoint sched_switch takes its place. Userspace chooses (scheduler.rs).
 * It costs about 90 instructions at every switch, 13 of them here, the rest in bpf_trace_run4(). Tracing the functions that
 * put a real-time task on a CPU would be free, but set_next_task_rt() is inline, thus notrace: the attach fails.
 */
#ifndef ROOST_RELEASE_BPF_H
#define ROOST_RELEASE_BPF_H

#include "policy/claim.h"
#include "policy/slice_timer.h"

static __always_inline int give_back_local(void)
{
	s32 cpu = bpf_get_smp_processor_id();

	plain_claim_clear(cpu, cpu_state(cpu), STAT_claim_clear_idle);
	idle_ends(cpu_state(cpu), scx_bpf_now(), ARRIVAL_WAKEUP);
	watch_taken(cpu);
	/* The kernel pushes them off, one by one (hotplug.h): given back each time they would be queued here again. */
	if (cpu_away(cpu))
		return 0;
	if (scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) <= 0)
		return 0;
	count(STAT_given_back);
	scx_bpf_reenqueue_local();
	return 0;
}

/* At every switch, so one comparison rejects nearly all of them. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(roost_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (next->prio < RT_PRIOS && prev->prio >= RT_PRIOS)
		return give_back_local();
	return 0;
}

#endif /* ROOST_RELEASE_BPF_H */
