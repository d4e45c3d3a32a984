// SPDX-License-Identifier: GPL-2.0-only
/* The functions of policy.h over the native port, one line each. */
#include "policy.h"

struct placement roost_place(struct world *w, port_task *p, struct task_state *ts,
			     struct task_state *waker, const struct wakeup *wakeup)
{
	struct wakeup *here;

	the_world = w;
	here = wakeup_of(wakeup->arm);
	__builtin_memcpy(here, wakeup, offsetof(struct wakeup, counts));
	/* hand_over() sets these; one that is read before makes tests fail. */
	__builtin_memset(&here->sched_idle, 0xa5,
			 offsetof(struct wakeup, counts) - offsetof(struct wakeup, sched_idle));
	return place(p, ts, waker, here);
}

/* ---- domains ---- */

void roost_domains_look(struct world *w)
{
	the_world = w;
	domains_look();
}

/* ---- sets ---- */

void roost_cpu_begins(struct world *w, s32 cpu)
{
	the_world = w;
	cpu_begins(cpu);
}

void roost_mark_idle(struct world *w, s32 cpu)
{
	the_world = w;
	mark_idle(cpu, cpu_state(cpu));
}

void roost_mark_busy(struct world *w, s32 cpu)
{
	the_world = w;
	mark_busy(cpu, cpu_state(cpu));
}

void roost_mark_waiting(struct world *w, s32 cpu)
{
	the_world = w;
	mark_waiting(cpu);
}

void roost_unmark_waiting(struct world *w, s32 cpu)
{
	the_world = w;
	unmark_waiting(cpu);
}

bool roost_anybody_waits(struct world *w)
{
	the_world = w;
	return anybody_waits();
}

bool roost_steal(struct world *w, s32 cpu, u64 now, bool asked)
{
	the_world = w;
	return steal(cpu, now, asked);
}

void roost_idle_begins(struct world *w, s32 cpu, u64 now)
{
	the_world = w;
	idle_begins(cpu_state(cpu), now);
}

void roost_idle_ends(struct world *w, s32 cpu, u64 now, enum arrival arrival)
{
	the_world = w;
	idle_ends(cpu_state(cpu), now, arrival);
}

u64 roost_search_budget(struct world *w, s32 cpu)
{
	the_world = w;
	return search_budget(cpu_state(cpu));
}

s32 roost_idle_helper(struct world *w, port_task *p, s32 cpu, u64 now)
{
	the_world = w;
	return idle_helper(p, cpu, now);
}

s32 roost_spread_target(struct world *w, port_task *p, const struct task_state *ts, s32 cpu,
			u64 now)
{
	the_world = w;
	return spread_target(p, ts, cpu, now);
}

bool roost_assign_queue(struct world *w, s32 cpu, s32 victim, u64 now)
{
	the_world = w;
	return assign_for_balance(cpu, victim, now);
}

s32 roost_assigned_queue(struct world *w, s32 cpu, u64 now)
{
	the_world = w;
	return assigned_queue(cpu_state(cpu), false, now);
}

s32 roost_queue_to_relieve(struct world *w, s32 cpu, u64 now)
{
	the_world = w;
	return queue_to_relieve(cpu, now);
}

/* ---- claims ---- */

void roost_plain_claim_clear(struct world *w, s32 cpu, enum roost_stat how)
{
	the_world = w;
	plain_claim_clear(cpu, cpu_state(cpu), how);
}

void roost_placed_idle(struct world *w, struct task_state *ts, s32 cpu, u64 looked_at)
{
	the_world = w;
	placed_idle(ts, cpu, looked_at);
}

void roost_placed_runs(struct world *w, struct task_state *ts, s32 cpu, u64 now)
{
	the_world = w;
	placed_runs(ts, cpu, cpu_state(cpu), now);
}

void roost_placed_nowhere(struct world *w, struct task_state *ts)
{
	the_world = w;
	placed_nowhere(ts);
}

/* ---- delayed migration ---- */

bool roost_delay_due(const struct task_state *ts, u64 now)
{
	return delay_due(ts, now);
}

u64 roost_delay_take(struct world *w, struct task_state *ts)
{
	the_world = w;
	return delay_take(ts);
}

u64 roost_delay_runs(struct world *w, struct task_state *ts, s32 cpu, u64 now)
{
	the_world = w;
	return delay_runs(ts, cpu, now);
}

/* ---- queues ---- */

void roost_queue_join(struct world *w, s32 cpu, struct task_state *ts, u64 now)
{
	the_world = w;
	queue_join(cpu, ts, now);
}

void roost_queue_leave(struct world *w, struct task_state *ts, u64 now)
{
	the_world = w;
	queue_leave(ts, now);
}

void roost_queue_move(struct world *w, s32 cpu, struct task_state *ts, u64 now)
{
	the_world = w;
	queue_move(cpu, ts, now);
}

void roost_queue_reweigh(struct world *w, struct task_state *ts, u32 weight, u64 now)
{
	the_world = w;
	queue_reweigh(ts, weight, now);
}

void roost_queue_charge(struct world *w, s32 cpu, struct task_state *ts, u64 ns)
{
	the_world = w;
	queue_charge(cpu_state(cpu), ts, ns);
}

void roost_policy_follow(struct world *w, struct task_state *ts)
{
	the_world = w;
	policy_follow(ts);
}

void roost_new_request(struct world *w, struct task_state *ts, u32 features)
{
	the_world = w;
	new_request(ts, features);
}

void roost_first_request(struct world *w, struct task_state *ts, u32 features)
{
	the_world = w;
	first_request(ts, features);
}

u64 roost_slice_left(struct world *w, const struct task_state *ts)
{
	the_world = w;
	return slice_left(ts);
}

void roost_queue_yield(struct world *w, s32 cpu, struct task_state *ts, u32 features)
{
	the_world = w;
	queue_yield(cpu_state(cpu), ts, features);
}

u64 roost_protected_ns(struct world *w, s32 cpu, const struct task_state *ts, u32 features)
{
	the_world = w;
	return protected_ns(cpu_state(cpu), ts, features);
}

enum preempt roost_preempts(struct world *w, s32 cpu, const struct task_state *ts, u32 features,
			    u64 now)
{
	the_world = w;
	return preempts(cpu_state(cpu), ts, features, now);
}

void roost_burst_end(struct world *w, struct task_state *ts)
{
	the_world = w;
	burst_end(ts);
}

/* ---- signals ---- */

u64 roost_decayed(u64 avg, u64 ns)
{
	return decayed(avg, ns);
}

void roost_cpu_fold(struct world *w, s32 cpu, u64 now)
{
	the_world = w;
	cpu_fold(cpu_state(cpu), now);
}

u64 roost_cpu_load(struct world *w, s32 cpu, u64 now)
{
	the_world = w;
	return cpu_load(cpu, now);
}

u64 roost_cpu_util(struct world *w, s32 cpu, u64 now)
{
	the_world = w;
	return cpu_util(cpu, now);
}

void roost_task_signals_init(struct world *w, struct task_state *ts, u64 now)
{
	the_world = w;
	task_signals_init(ts, now);
}

void roost_task_fold(struct world *w, struct task_state *ts, u64 now)
{
	the_world = w;
	task_fold(ts, now);
}

u64 roost_task_load(struct world *w, struct task_state *ts, u64 now)
{
	the_world = w;
	return task_load(ts, now);
}

u64 roost_task_util_est(struct world *w, const struct task_state *ts)
{
	the_world = w;
	return task_util_est(ts);
}

u32 roost_cpu_demand(struct world *w, s32 cpu)
{
	the_world = w;
	return cpu_demand(cpu, cpu_state(cpu)->util_avg);
}

bool roost_perf_changes(u32 asked, u32 want)
{
	return perf_changes(asked, want);
}

void roost_util_est_sleep(struct world *w, struct task_state *ts, s32 cpu)
{
	the_world = w;
	util_est_sleep(ts, cpu);
}

void roost_load_follows(struct world *w, struct task_state *ts, s32 cpu, u64 now)
{
	the_world = w;
	load_follows(ts, cpu, now);
}

u32 roost_scan_budget(u64 util, u32 nr_cpus)
{
	return scan_budget(util, nr_cpus);
}

void roost_llc_sum(struct world *w, u32 llc, u64 now)
{
	the_world = w;
	llc_sum(llc, now);
}

/* ---- cgroups ---- */

void roost_cgroup_enter(struct world *w, struct task_state *ts)
{
	the_world = w;
	cgroup_enter(ts);
}

void roost_cgroup_leave(struct world *w, struct task_state *ts)
{
	the_world = w;
	cgroup_leave(ts);
}

void roost_cgroup_follow(struct world *w, struct task_state *ts)
{
	the_world = w;
	cgroup_follow(ts);
}

void roost_cgroup_sweep(struct world *w)
{
	u32 i;

	the_world = w;
	for (i = 1; i < w->nr_cgroups; i++)
		cgroup_measure(i);
	for (i = 1; i < w->nr_cgroups; i++)
		cgroup_settle(i);
}

u32 roost_cgroup_task_weight(struct world *w, u32 index, u32 nice_weight)
{
	the_world = w;
	return cgroup_task_weight(index, nice_weight);
}

void roost_cgroup_weigh(struct world *w, u32 index, u32 cpu_weight, bool idle)
{
	the_world = w;
	cgroup_weigh(index, cpu_weight, idle);
}

void roost_cgroup_apply(struct world *w, struct task_state *ts, u64 now)
{
	the_world = w;
	cgroup_apply(ts, now);
}

/* ---- words ---- */

void roost_limit_set(struct world *w, u32 index, u64 period, u64 quota, u64 burst, u64 now)
{
	the_world = w;
	limit_set(index, period, quota, burst, now);
}

u32 roost_lowest_bit(u64 word)
{
	return lowest_bit(word);
}

u32 roost_count_bits(u64 word)
{
	return count_bits(word);
}

/* ---- names ---- */

const char *roost_stat_name(u32 stat)
{
	static const char *const names[ROOST_NR_STATS] = {
#define STAT(name, help)	 #name,
#define MACHINE_STAT(name, help) #name,
#include "../bpf/stats.tbl.h"
#undef MACHINE_STAT
#undef STAT
	};

	return stat < ROOST_NR_STATS ? names[stat] : NULL;
}
