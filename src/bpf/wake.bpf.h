/* SPDX-License-Identifier: GPL-2.0-only */
/* select_cpu: gather the facts of a wakeup or fork, let the ladder decide, carry the decision out. */
#ifndef ROOST_WAKE_BPF_H
#define ROOST_WAKE_BPF_H

#include "timer.bpf.h"
#include "policy/ladder.h"

/* preempt_count()'s fields of NMI, interrupt and softirq being served (kernel: in_task()); bpf_in_task() of the scx headers would need a kconfig extern. */
#define INTERRUPT_COUNTS 0xff0100

static __always_inline bool in_task(void)
{
	return !(get_preempt_count() & INTERRUPT_COUNTS);
}

/*
 * Who wakes. In an interrupt that is the task it interrupted, as in the kernel's own rule; only the test for a
 * per-CPU kthread asks for task context there too.
 */
static __always_inline void gather_waker(struct wakeup *w, u64 wake_flags)
{
	struct task_struct *waker = bpf_get_current_task_btf();

	w->waker_pid = waker->pid;
	w->sync = (wake_flags & SCX_WAKE_SYNC) && !(waker->flags & PF_EXITING);
	if (waker->flags & PF_IDLE)
		return;
	/* NULL for a waker of another class. */
	w->waker_ts = bpf_task_storage_get(&task_states, waker, 0, 0);
	w->waker_pcpu_kthread = pcpu_kthread(waker) && in_task();
}

/* The waker said that it is about to sleep. If it does not, its slice ends on time. */
static __always_inline void waker_gives_way(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);

	arm_slice_timer(cpu, cs, now, cs->curr_start + cs->curr_slice);
}

static __always_inline s32 wake_select(struct task_struct *p, s32 prev, u64 wake_flags)
{
	struct wakeup w = {};
	struct placement at;

	w.ts = task_state_of(p);
	if (!w.ts)
		return prev;
	w.p = p;
	w.pid = p->pid;
	w.now = scx_bpf_now();
	w.features = tun.features;
	w.this_cpu = bpf_get_smp_processor_id();
	w.prev_any = prev;
	w.prev = task_allowed(p, prev) ? prev : NO_CPU;
	w.fork = wake_flags & SCX_WAKE_FORK;
	w.this_allowed = task_allowed(p, w.this_cpu);
	gather_waker(&w, wake_flags);

	at = place(&w);
	if (at.how == PLACE_BUSY)
		return at.cpu;
	if (at.how == PLACE_NEXT) {
		waker_gives_way(w.this_cpu, w.now);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, tun.slice_ns, 0);
	} else if (SCX_ENQ_IMMED) {
		count(STAT_enq_idle);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, tun.slice_ns, SCX_ENQ_IMMED);
	}
	return at.cpu;
}

#endif /* ROOST_WAKE_BPF_H */
