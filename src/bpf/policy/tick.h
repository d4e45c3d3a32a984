/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tick of a running task does for its CPU, its LLC and the machine: signals, frequency,
 * help for queues.
 */
#ifndef ROOST_TICK_H
#define ROOST_TICK_H

#include "balance.h"
#include "capacity.h"
#include "run.h"
#include "serve.h"
#include "smt_spread.h"

#define LLC_SUM_NS 4000000ULL

/*
 * Utilisation is relative to the highest frequency. So on a CPU that is always busy it is at most
 * what was requested before plus schedutil's headroom of a quarter. A CPU gets up to speed in such
 * steps, so any increase is requested. A decrease is requested only if it is worth a change.
 */
static __always_inline bool perf_changes(u32 asked, u32 want)
{
	return want > asked || want + CAPACITY_SCALE / 16 <= asked;
}

/*
 * Request the speed that the CPU's tasks need; schedutil adds the headroom itself (kernel:
 * sugov_effective_cpu_perf()). When it is enabled, sched_ext sets every CPU to the maximum and
 * leaves it there.
 */
static __always_inline void tick_cpuperf(s32 cpu, struct cpu_state *cs)
{
	u32 want;

	if (tunables()->cpuperf != CPUPERF_UTIL)
		return;
	want = cpu_demand(cpu, cs->util_avg) * CAPACITY_SCALE / cpu_facts(cpu)->capacity;
	if (!perf_changes(cs->cpuperf, want))
		return;
	cs->cpuperf = want;
	count(STAT_cpuperf_set);
	ask_speed(cpu, want);
}

/*
 * The CPU's speed; full speed if the kernel does not know it (kernel: arch_scale_freq_capacity()).
 */
static __always_inline void tick_speed(s32 cpu, struct cpu_state *cs)
{
	u32 speed = cpu_speed(cpu);

	cs->slow = speed < CAPACITY_SCALE ? CAPACITY_SCALE - speed : 0;
	cs->ticked = 1;
}

/* One tick of the LLC at a time renews its sums. */
static __always_inline void tick_llc(s32 cpu, u64 now)
{
	u32 llc = cpu_facts(cpu)->llc;
	u64 *at = &llc_state(llc)->summed_at, last = *at;

	if ((s64)(now - last) >= (s64)LLC_SUM_NS && atomic_cas(at, last, now))
		llc_sum(llc, now);
}

/* Every BALANCE_NS: fetch a task from a queue that is worse off. */
subprog u32 tick_balance(s32 cpu, u64 now)
{
	s32 victim = queue_to_relieve(cpu, now);

	searches_forgotten(cpu_state(cpu), now);
	if (victim != NO_CPU)
		balance_from(cpu, victim, now);
	return 0;
}

/* cpu.idle may have changed while the task runs alone. Wakeups would not notice otherwise. */
static __always_inline void follow_idle(s32 cpu, struct cpu_state *cs, const struct task_state *ts,
					u64 now)
{
	if (cs->curr_sched_idle == ts->sched_idle)
		return;
	cs->curr_sched_idle = ts->sched_idle;
	if (ts->sched_idle) {
		mark_idle(cpu, cs);
		return;
	}
	cs->busy_since = now;
	mark_busy(cpu, cs);
}

/*
 * Send the running task to a better core, if one is idle: of unequal CPUs to a bigger one if it
 * does not fit here, of equal CPUs [smt_spread] to a core of its own. Without a slice it comes to
 * dispatch, which lets it leave.
 */
static __always_inline void tick_push(port_task *p, struct cpu_state *cs, struct task_state *ts,
				      s32 cpu, u64 now)
{
	bool asym = machine_facts()->asym;
	s32 to;

	if (!asym && !(features_of(ts->pol.features) & FEATURE_smt_spread))
		return;
	if (task_pinned(p) || queue_contended(cs))
		return;
	/*
	 * A task that sync_local put behind this one has not joined the queue. It would run next,
	 * and this task would wait here instead of leaving.
	 */
	if (cpu_nr_running(cpu) > 1)
		return;
	/*
	 * One order at a time: the task may not have come to dispatch yet. Without ENQ_IMMED it
	 * could get stuck behind another task on the new core.
	 */
	if (ts->idle_cpu || !ENQ_IMMED)
		return;
	to = asym ? misfit_target(p, ts, cpu, now) : spread_target(p, ts, cpu, now);
	if (to == NO_CPU)
		return;
	placed_idle(ts, to, now);
	if (!set_slice(p, 0))
		placed_nowhere(ts);
}

/* Bring the signals that placement reads up to now. */
static __always_inline void tick_signals(s32 cpu, struct cpu_state *cs, struct task_state *ts,
					 u64 now)
{
	tick_speed(cpu, cs);
	run_charge(cs, ts, now);
	run_fold(ts, now);
	/* The weight of its cgroup may have changed the task's. */
	cs->curr_weight = ts->on_rq_weight;
	follow_idle(cpu, cs, ts, now);
	cpu_fold(cs, now);
	tick_cpuperf(cpu, cs);
	tick_llc(cpu, now);
}

/*
 * Look after the queues of other CPUs. Not when a kthread that is bound to this CPU has just begun
 * to run: it may be taking the CPU offline, and the kernel says so only after a while (hotplug.h).
 */
static __always_inline void tick_others(port_task *p, struct cpu_state *cs, s32 cpu, u64 now)
{
	if (pcpu_kthread(p) && before(now, cs->curr_start + machine_arm()->rescue_ns))
		return;
	tick_rescue(cpu, now);
	if (now - cs->balanced_at < BALANCE_NS)
		return;
	cs->balanced_at = now;
	tick_balance(cpu, now);
}

static __always_inline void tick_task(port_task *p, struct task_state *ts, u64 now)
{
	s32 cpu = task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);

	tick_signals(cpu, cs, ts, now);
	if (cpu_away(cpu)) {
		away_tick(p, cs, cpu, now);
		return;
	}
	sweep_cgroups(now);
	if (limits_exist())
		park_watch(cpu, now);
	domains_follow(now);
	delay_watch(cpu, cs, now);
	if (queue_contended(cs))
		call_help(cpu, now);
	if (protection_over(cs, now))
		set_slice(p, 0);
	tick_push(p, cs, ts, cpu, now);
	tick_others(p, cs, cpu, now);
	nohz_tick(p, ts, cs, cpu, now);
}

static __always_inline void run_tick(port_task *p)
{
	struct task_state *ts = task_state_of(p);

	if (!ts)
		return;
	/* A task that never sleeps follows its arm here. */
	arm_follow(p, ts);
	tick_task(p, ts, cpu_clock());
}

#endif /* ROOST_TICK_H */
