/* SPDX-License-Identifier: GPL-2.0-only */
/* select_cpu: gather the facts of a wakeup or fork, let the ladder decide, carry the decision out. */
#ifndef ROOST_WAKE_BPF_H
#define ROOST_WAKE_BPF_H

#include "arm.bpf.h"
#include "timer.bpf.h"
#include "policy/ladder.h"

/*
 * preempt_count()'s fields of NMI, interrupt and softirq being served (kernel: in_task()); bpf_in_task() of the scx headers would
 * need a kconfig extern.
 */
#define INTERRUPT_COUNTS 0xff0100

static __always_inline bool in_task(void)
{
	return !(get_preempt_count() & INTERRUPT_COUNTS);
}

/*
 * Who wakes. In an interrupt that is the task it interrupted, as in the kernel's own rule; only the test for a
 * per-CPU kthread asks for task context there too. NULL: the idle task, or one of another class.
 */
static __always_inline struct task_state *gather_waker(struct wakeup *w, u64 wake_flags)
{
	struct task_struct *waker = bpf_get_current_task_btf();

	w->waker_pid = waker->pid;
	w->waker_pcpu_kthread = false;
	w->sync = (wake_flags & SCX_WAKE_SYNC) && !(waker->flags & PF_EXITING);
	if (waker->flags & PF_IDLE)
		return NULL;
	w->waker_pcpu_kthread = pcpu_kthread(waker) && in_task();
	return bpf_task_storage_get(&task_states, waker, 0, 0);
}

/* The waker said that it is about to sleep. If it does not, its slice ends on time. */
static __always_inline void waker_gives_way(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);

	arm_slice_timer(cpu, cs, now, cs->curr_start + cs->curr_slice);
}

#ifdef ROOST_SPIN
/* Of a test's build alone: the instant between the look at a CPU and the insertion there, made long enough to be met. */
#define SPIN_NS 1000000ULL

subprog u32 spin_gap(void)
{
	u64 end = bpf_ktime_get_ns() + SPIN_NS;

	while (before(bpf_ktime_get_ns(), end) && may_loop)
		;
	return 0;
}
#else
#define spin_gap()
#endif

static __always_inline s32 wake_select(struct task_struct *p, s32 prev, u64 wake_flags)
{
	struct task_state *ts = task_state_of(p), *waker;
	struct wakeup facts, *w = &facts;
	struct placement at;

	if (!ts)
		return prev;
	/* They are handed to subprograms in memory: the compiler shall not keep them in registers, and spill those, as well. */
	opaque(w);
	w->pid = p->pid;
	w->now = scx_bpf_now();
	arm_follow(p, ts);
	policy_follow(ts);
	w->features = features_of(ts->pol.features);
	w->arm = ts->pol.arm;
	w->claim_ttl = ts->pol.claim_ttl_ns;
	w->this_cpu = bpf_get_smp_processor_id();
	w->prev_any = prev;
	w->prev = task_allowed(p, prev) ? prev : NO_CPU;
	w->fork = wake_flags & SCX_WAKE_FORK;
	ts->woken_at = w->fork ? 0 : w->now;
	w->this_allowed = task_allowed(p, w->this_cpu);
	waker = gather_waker(w, wake_flags);

	at = place(p, ts, waker, w);
	if (has(w, FEATURE_util_fits))
		ts->by_fits = placed_by_fits(&at);
	if (at.how == PLACE_BUSY) {
		/* With a SCHED_IDLE task it is as good as idle, and claimed. */
		if (has(w, FEATURE_claim) && claim_made(cpu_state(at.cpu)->claim, w->now))
			placed_idle(ts, at.cpu, w->now);
		return at.cpu;
	}
	if (at.how == PLACE_NEXT) {
		waker_gives_way(w->this_cpu, w->now);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, ts->pol.slice_ns, 0);
		return at.cpu;
	}
	placed_idle(ts, at.cpu, w->now);
	spin_gap();
	if (SCX_ENQ_IMMED) {
		count_for(w->arm, STAT_enq_idle);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, ts->pol.slice_ns, SCX_ENQ_IMMED);
	}
	return at.cpu;
}

#endif /* ROOST_WAKE_BPF_H */
