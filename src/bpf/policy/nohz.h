/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nohz_full: a task alone on such a CPU is not interrupted by ticks.
 *
 * Problem: the kernel stops a CPU's tick only while a task with an infinite slice runs (kernel:
 * set_next_task_scx(), scx_can_stop_tick()).
 *
 * Method: a task that runs there alone gets such a slice. The policy still accounts its own slice.
 * When another task joins the queue, that slice is over, and the slice timer ends it at once. If
 * the timer is lost, the kernel's remote tick, once a second, ends it.
 *
 * Limits: the kernel checks the slice when it switches to a task. A task that becomes alone while
 * it runs keeps its ticks until the next switch. Without timers (PREEMPT_RT) nothing else would end
 * the slice, so ticks go on. The remote tick updates the signals of such a CPU.
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

/*
 * The running task is alone on @cpu: no other task waits there, and no limit of its group ends its
 * slice.
 */
static __always_inline bool runs_alone(s32 cpu, const struct cpu_state *cs)
{
	return !slice_ends(cs) && cpu_nr_running(cpu) == 1;
}

/* No tick will measure what the CPU needs, so request full speed. */
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

/* The task runs without a budget, but its group has a limit now. */
static __always_inline bool limit_came(port_task *p, const struct task_state *ts,
				       const struct cpu_state *cs)
{
	return limits_exist() && !cs->budgeted && limit_on(p, ts) != ROOT_CGROUP;
}

/* The tick of @cpu; where its own has stopped, the remote one. */
static __always_inline void nohz_tick(port_task *p, const struct task_state *ts,
				      struct cpu_state *cs, s32 cpu, u64 now)
{
	if (!nohz_cpu(cpu) || before(now, cs->curr_start + cs->curr_slice))
		return;
	if (somebody_waits(cpu, cs) || limit_came(p, ts, cs))
		set_slice(p, 0);
}

#endif /* ROOST_NOHZ_H */
