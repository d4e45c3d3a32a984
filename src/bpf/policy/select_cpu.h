/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ops.select_cpu: gather the facts of a wakeup or fork, run the ladder, carry out its answer.
 *
 * It inserts a task for an idle CPU, and that of sync_local. Every other task goes to enqueue,
 * which holds the lock that joining a queue needs, and decides on preemption. Before Linux 7.1 a
 * task for an idle CPU goes there too: only with ENQ_IMMED it runs at once or comes back. Else it
 * could be in a local queue behind a real-time task, where no thief and no timer would find it.
 */
#ifndef ROOST_SELECT_CPU_H
#define ROOST_SELECT_CPU_H

#include "ladder.h"
#include "run.h"

/*
 * Fill in the facts about the waker and return its state; NULL: it is the idle task, or has none.
 * In an interrupt the waker is the interrupted task, as in the kernel. Only the test for a per-CPU
 * kthread requires task context, also as in the kernel. A task of another class has state too.
 */
static __always_inline struct task_state *gather_waker(struct wakeup *w, u64 wake_flags)
{
	port_task *waker = current_task();

	w->waker_pid = task_pid(waker);
	w->waker_pcpu_kthread = false;
	w->sync = (wake_flags & WAKE_SYNC) && !task_exits(waker);
	if (task_is_idle(waker))
		return NULL;
	w->waker_pcpu_kthread = pcpu_kthread(waker) && in_task();
	return task_state_if(waker);
}

/* A sync waker is about to sleep. If it does not, the timer ends its slice on time. */
static __always_inline void waker_gives_way(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);

	ensure_slice_timer(cpu, cs, now, cs->curr_start + cs->curr_slice);
}

static __always_inline s32 run_select_cpu(port_task *p, s32 prev, u64 wake_flags)
{
	struct task_state *ts = task_state_of(p), *waker;
	struct placement at;
	struct wakeup *w;

	if (!ts)
		return prev;
	arm_follow(p, ts);
	policy_follow(ts);
	/* It is still in its queue, so the kernel asks for no other (ttwu_runnable()). */
	if (still_delayed(ts) && task_allowed(p, prev) && !cpu_away(prev)) {
		ts->woken_at = cpu_clock();
		count_for(ts->pol.arm, STAT_wake_delayed);
		return prev;
	}
	/*
	 * Nothing else wakes a task here meanwhile: the kernel holds p->pi_lock, a raw spinlock,
	 * with interrupts off, and nothing that is called from here wakes a task.
	 */
	w = wakeup_of(ts->pol.arm);
	w->pid = task_pid(p);
	w->now = cpu_clock();
	w->features = features_of(ts->pol.features);
	w->arm = ts->pol.arm;
	w->claim_ttl = ts->pol.claim_ttl_ns;
	w->this_cpu = this_cpu();
	w->last_cpu = prev;
	w->prev = task_allowed(p, prev) ? prev : NO_CPU;
	w->fork = wake_flags & WAKE_FORK;
	ts->woken_at = w->fork ? 0 : w->now;
	/* It will be parked: search and claim no CPU. */
	if (limits_exist() && w->prev != NO_CPU && must_park(p, ts, w->now) && !runs_on(p, ts))
		return prev;
	w->this_allowed = task_allowed(p, w->this_cpu);
	waker = gather_waker(w, wake_flags);

	at = place(p, ts, waker, w);
	if (has(w, FEATURE_util_fits))
		ts->by_fits = placed_by_fits(&at);
	if (at.how == PLACE_BUSY) {
		/* A CPU that runs only a SCHED_IDLE task is as good as idle and may be claimed. */
		if (has(w, FEATURE_claim) && claim_made(cpu_state(at.cpu)->claim, w->now))
			placed_idle(ts, at.cpu, w->now);
		return at.cpu;
	}
	if (at.how == PLACE_NEXT) {
		waker_gives_way(w->this_cpu, w->now);
		insert_local(p, ts->pol.slice_ns, 0);
		return at.cpu;
	}
	placed_idle(ts, at.cpu, w->now);
	spin_gap();
	if (ENQ_IMMED) {
		count_wakeup(w, STAT_enq_idle);
		insert_local(p, ts->pol.slice_ns, ENQ_IMMED);
	}
	return at.cpu;
}

#endif /* ROOST_SELECT_CPU_H */
