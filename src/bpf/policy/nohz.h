/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nohz_full: a task alone on such a CPU is not interrupted by ticks.
 *
 * Problem: the kernel stops the tick of a CPU only under a task whose slice has no end (kernel:
 * set_next_task_scx(), scx_can_stop_tick()).
 * Method: a task that runs there alone gets such a slice. The policy's own account of it goes on.
 * A task that joins the queue finds the request used up, and the slice timer ends it at once. Should
 * that timer be lost, the kernel's remote tick, once a second, ends the slice.
 * Limits: the kernel looks at the slice when it switches to a task. One that becomes alone while it
 * runs keeps its ticks until the next switch. Without timers (PREEMPT_RT) nothing else would end the
 * slice: ticks go on. Signals of such a CPU are brought up to date by the remote tick.
 */
#ifndef ROOST_NOHZ_H
#define ROOST_NOHZ_H

#include "bandwidth.h"
#include "slice_timer.h"

/* The tick of @cpu may stop while a task runs. */
static __always_inline bool nohz_cpu(s32 cpu)
{
	return machine_facts()->nohz && tunables()->timers && cpu_facts(cpu)->nohz;
}

/* The task runs on @cpu, no other waits there or for it, and no limit of its group will end it. */
static __always_inline bool runs_alone(s32 cpu, const struct cpu_state *cs)
{
	return !queue_contended(cs) && !cs->budgeted && cpu_nr_running(cpu) == 1;
}

/* No tick will tell of what the CPU needs: all of it is asked for. */
static __always_inline void ask_full_speed(s32 cpu, struct cpu_state *cs)
{
	if (tunables()->cpuperf != CPUPERF_UTIL || cs->cpuperf == CAPACITY_SCALE)
		return;
	cs->cpuperf = CAPACITY_SCALE;
	count(STAT_cpuperf_set);
	ask_speed(cpu, CAPACITY_SCALE);
}

/* The task begins to run on @cpu, or goes on. */
static __always_inline void nohz_runs(port_task *p, s32 cpu, struct cpu_state *cs)
{
	if (!nohz_cpu(cpu) || !runs_alone(cpu, cs))
		return;
	set_slice(p, SLICE_INF);
	ask_full_speed(cpu, cs);
}

/* It runs without a budget, and its group has a limit now. */
static __always_inline bool limit_came(port_task *p, const struct task_state *ts, const struct cpu_state *cs)
{
	return limits_exist() && !cs->budgeted && limit_on(p, ts) != ROOT_CGROUP;
}

/* The tick of @cpu, which is the remote one where its own has stopped. */
static __always_inline void nohz_tick(port_task *p, const struct task_state *ts, struct cpu_state *cs, s32 cpu, u64 now)
{
	if (!nohz_cpu(cpu) || before(now, cs->curr_start + cs->curr_slice))
		return;
	if (somebody_waits(cpu, cs) || limit_came(p, ts, cs))
		set_slice(p, 0);
}

#endif /* ROOST_NOHZ_H */
