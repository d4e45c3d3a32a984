/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task of a higher class takes the CPU: tasks in the CPU's local queue go back to enqueue, and
 * other CPUs can then take them.
 *
 * Since Linux 6.19 this can be done from anywhere, and the kernel logs a warning if a scheduler
 * still does it in ops.cpu_release(). There the tracepoint sched_switch is used instead; userspace
 * chooses (scheduler.rs). It costs about 90 instructions per switch, 13 of them here, the rest in
 * bpf_trace_run4(). Tracing the functions that put a real-time task on a CPU would cost nothing.
 * But set_next_task_rt() is inline and thus notrace, so the attach fails.
 */
#ifndef ROOST_RELEASE_BPF_H
#define ROOST_RELEASE_BPF_H

#include "policy/claim.h"
#include "policy/slice_timer.h"

static __always_inline int give_back_local(void)
{
	s32 cpu = this_cpu();

	plain_claim_clear(cpu, cpu_state(cpu), STAT_claim_clear_idle);
	idle_ends(cpu_state(cpu), scx_bpf_now(), ARRIVAL_WAKEUP);
	watch_taken(cpu);
	/*
	 * The kernel pushes these tasks to other CPUs, one by one (hotplug.h). If each time the
	 * rest was given back, it would be queued here again.
	 */
	if (cpu_away(cpu))
		return 0;
	if (scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) <= 0)
		return 0;
	count(STAT_given_back);
	scx_bpf_reenqueue_local();
	return 0;
}

/* Runs at every switch, so one comparison rejects nearly all of them. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(roost_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (next->prio < RT_PRIOS && prev->prio >= RT_PRIOS)
		return give_back_local();
	return 0;
}

#endif /* ROOST_RELEASE_BPF_H */
