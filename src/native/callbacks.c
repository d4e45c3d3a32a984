// SPDX-License-Identifier: GPL-2.0-only
/*
 * sched_ext's callbacks, bound to the policy as in src/bpf/main.bpf.c, for a caller that plays the
 * kernel; see policy.h.
 */
#include "policy.h"

void roost_task_begins(struct world *w, struct task_state *ts, u64 now)
{
	the_world = w;
	task_begins(ts, now);
}

void roost_set_attr(struct world *w, struct task_state *ts, s32 nice, u32 policy, u64 slice,
		    u64 now)
{
	the_world = w;
	settings_apply(ts, nice, policy, slice, now);
}

u32 roost_nice_weight(s32 nice)
{
	return nice_weight(nice);
}

s32 roost_select_cpu(struct world *w, port_task *p, s32 prev, u64 wake_flags)
{
	the_world = w;
	/* A fact that is read before it is set makes tests fail. */
	__builtin_memset(&w->wakeup, 0xa5, offsetof(struct wakeup, counts));
	return run_select_cpu(p, prev, wake_flags);
}

void roost_enqueue(struct world *w, port_task *p, u64 enq_flags)
{
	the_world = w;
	run_enqueue(p, enq_flags);
}

void roost_dispatch(struct world *w, s32 cpu, port_task *prev)
{
	the_world = w;
	run_dispatch(cpu, prev);
}

void roost_running(struct world *w, port_task *p)
{
	the_world = w;
	run_running(p);
}

void roost_tick(struct world *w, port_task *p)
{
	the_world = w;
	run_tick(p);
}

void roost_stopping(struct world *w, port_task *p, bool runnable)
{
	the_world = w;
	run_stopping(p, runnable);
}

bool roost_yield(struct world *w, port_task *p, port_task *to)
{
	the_world = w;
	return run_yield(p, to);
}

void roost_task_returns(struct world *w, port_task *p)
{
	the_world = w;
	task_returns(p, task_state_if(p));
}

void roost_disable(struct world *w, port_task *p)
{
	the_world = w;
	run_disable(p);
}

void roost_cpu_turns(struct world *w, s32 cpu, bool comes)
{
	the_world = w;
	if (comes)
		cpu_comes(cpu, cpu_clock());
	else
		cpu_goes(cpu);
}

void roost_cgroup_move(struct world *w, struct task_state *ts, u32 index)
{
	the_world = w;
	run_moves(ts, index);
}

void roost_timer(struct world *w, enum timer_kind which, s32 cpu)
{
	the_world = w;
	if (which == TIMER_SLICE)
		slice_timer_fires(cpu);
	else if (which == TIMER_DELAY)
		delay_timer_fires(cpu);
	else
		park_timer_fires(cpu);
}

/* ---- for a caller with queues of its own: keeps what placement needs and decides nothing ---- */

void roost_joins(struct world *w, port_task *p, enum arrival arrival)
{
	the_world = w;
	run_join(task_state_if(p), task_cpu(p), cpu_clock(), arrival);
}

void roost_idles(struct world *w, s32 cpu)
{
	struct cpu_state *cs;

	the_world = w;
	cs = cpu_state(cpu);
	if (!cs->idle_marked)
		plain_claim_clear(cpu, cs, STAT_claim_clear_idle);
	mark_idle(cpu, cs);
	idle_begins(cs, cpu_clock());
}

void roost_tick_signals(struct world *w, port_task *p)
{
	s32 cpu = task_cpu(p);

	the_world = w;
	tick_signals(cpu, cpu_state(cpu), task_state_if(p), cpu_clock());
}

s32 roost_delay_over(struct world *w, port_task *p)
{
	struct task_state *ts = task_state_if(p);
	s32 placed = ts->delay_cpu - 1;

	the_world = w;
	return delay_take(ts) && task_allowed(p, placed) ? placed : NO_CPU;
}
