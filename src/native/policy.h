/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interface between Rust and the natively compiled policy. Each function takes the world on
 * which it works and does one thing of src/bpf/policy/ there. build/native.rs generates the Rust
 * declarations from this header.
 */
#ifndef ROOST_NATIVE_POLICY_H
#define ROOST_NATIVE_POLICY_H

#include "../bpf/policy/dispatch.h"
#include "../bpf/policy/enqueue.h"
#include "../bpf/policy/select_cpu.h"
#include "../bpf/policy/settings.h"
#include "../bpf/policy/tick.h"

/* a task's life, for a caller that plays the kernel (struct world.kernel), as in main.bpf.c */
void roost_task_begins(struct world *w, struct task_state *ts, u64 now);
u32 roost_nice_weight(s32 nice); /* in units of NICE0_WEIGHT */
void roost_set_attr(struct world *w, struct task_state *ts, s32 nice, u32 policy, u64 slice,
		    u64 now);
s32 roost_select_cpu(struct world *w, port_task *p, s32 prev, u64 wake_flags);
void roost_enqueue(struct world *w, port_task *p, u64 enq_flags);
void roost_dispatch(struct world *w, s32 cpu, port_task *prev);
void roost_running(struct world *w, port_task *p);
void roost_tick(struct world *w, port_task *p);
void roost_stopping(struct world *w, port_task *p, bool runnable);
bool roost_yield(struct world *w, port_task *p, port_task *to);
void roost_task_returns(struct world *w, port_task *p);
void roost_disable(struct world *w, port_task *p);
void roost_cpu_turns(struct world *w, s32 cpu, bool comes);
void roost_cgroup_move(struct world *w, struct task_state *ts, u32 index);
void roost_timer(struct world *w, enum timer_kind which, s32 cpu);

/* a task's life, for a caller with queues of its own: only what placement needs, no decision */
/* the task became runnable, or was moved, and counts on its CPU from now */
void roost_joins(struct world *w, port_task *p, enum arrival arrival);
void roost_idles(struct world *w, s32 cpu); /* the CPU has nothing to run */
void roost_tick_signals(struct world *w, port_task *p);
/* the CPU to which the task moves; NO_CPU: it stays */
s32 roost_delay_over(struct world *w, port_task *p);

/* placement (ladder.h) */
struct placement roost_place(struct world *w, port_task *p, struct task_state *ts,
			     struct task_state *waker, const struct wakeup *wakeup);

/* domains of load balance (domain.h) */
void roost_domains_look(struct world *w);

/* idle and waiting sets (idle_scan.h, steal.h) */
void roost_cpu_begins(struct world *w, s32 cpu);
void roost_mark_idle(struct world *w, s32 cpu);
void roost_mark_busy(struct world *w, s32 cpu);
void roost_mark_waiting(struct world *w, s32 cpu);
void roost_unmark_waiting(struct world *w, s32 cpu);
bool roost_anybody_waits(struct world *w);
bool roost_steal(struct world *w, s32 cpu, u64 now, bool asked);
s32 roost_idle_helper(struct world *w, port_task *p, s32 cpu, u64 now);
s32 roost_spread_target(struct world *w, port_task *p, const struct task_state *ts, s32 cpu,
			u64 now);
bool roost_assign_queue(struct world *w, s32 cpu, s32 victim, u64 now);
s32 roost_assigned_queue(struct world *w, s32 cpu, u64 now);
s32 roost_queue_to_relieve(struct world *w, s32 cpu, u64 now);

/* claims (claim.h) */
void roost_plain_claim_clear(struct world *w, s32 cpu, enum roost_stat how);
void roost_placed_idle(struct world *w, struct task_state *ts, s32 cpu, u64 looked_at);
void roost_placed_runs(struct world *w, struct task_state *ts, s32 cpu, u64 now);
void roost_placed_nowhere(struct world *w, struct task_state *ts);

/* delayed migration (delay_migration.h) */
bool roost_delay_due(const struct task_state *ts, u64 now);
u64 roost_delay_take(struct world *w, struct task_state *ts);
u64 roost_delay_runs(struct world *w, struct task_state *ts, s32 cpu, u64 now);

/* idle periods (avg_idle.h) */
void roost_idle_begins(struct world *w, s32 cpu, u64 now);
void roost_idle_ends(struct world *w, s32 cpu, u64 now, enum arrival arrival);
u64 roost_search_budget(struct world *w, s32 cpu);

/* queues (queue.h) */
void roost_queue_join(struct world *w, s32 cpu, struct task_state *ts, u64 now);
void roost_queue_leave(struct world *w, struct task_state *ts, u64 now);
void roost_queue_move(struct world *w, s32 cpu, struct task_state *ts, u64 now);
void roost_queue_reweigh(struct world *w, struct task_state *ts, u32 weight, u64 now);
void roost_queue_charge(struct world *w, s32 cpu, struct task_state *ts, u64 ns);
void roost_policy_follow(struct world *w, struct task_state *ts);
void roost_new_request(struct world *w, struct task_state *ts, u32 features);
void roost_first_request(struct world *w, struct task_state *ts, u32 features);
u64 roost_slice_left(struct world *w, const struct task_state *ts);
void roost_queue_yield(struct world *w, s32 cpu, struct task_state *ts, u32 features);
u64 roost_protected_ns(struct world *w, s32 cpu, const struct task_state *ts, u32 features);
enum preempt roost_preempts(struct world *w, s32 cpu, const struct task_state *ts, u32 features,
			    u64 now);
void roost_burst_end(struct world *w, struct task_state *ts);

/* signals (signal.h) */
u64 roost_decayed(u64 avg, u64 ns);
void roost_cpu_fold(struct world *w, s32 cpu, u64 now);
u64 roost_cpu_load(struct world *w, s32 cpu, u64 now);
u64 roost_cpu_util(struct world *w, s32 cpu, u64 now);
void roost_task_signals_init(struct world *w, struct task_state *ts, u64 now);
void roost_task_fold(struct world *w, struct task_state *ts, u64 now);
u64 roost_task_load(struct world *w, struct task_state *ts, u64 now);
u64 roost_task_util_est(struct world *w, const struct task_state *ts);
u32 roost_cpu_demand(struct world *w, s32 cpu);
bool roost_perf_changes(u32 asked, u32 want);
void roost_util_est_sleep(struct world *w, struct task_state *ts, s32 cpu);
void roost_load_follows(struct world *w, struct task_state *ts, s32 cpu, u64 now);
u32 roost_scan_budget(u64 util, u32 nr_cpus);
void roost_llc_sum(struct world *w, u32 llc, u64 now);

/* cgroup weights (cgroup.h) */
void roost_cgroup_enter(struct world *w, struct task_state *ts);
void roost_cgroup_leave(struct world *w, struct task_state *ts);
void roost_cgroup_follow(struct world *w, struct task_state *ts);
void roost_cgroup_sweep(struct world *w);
u32 roost_cgroup_task_weight(struct world *w, u32 index, u32 nice_weight);
void roost_cgroup_weigh(struct world *w, u32 index, u32 cpu_weight, bool idle);
void roost_cgroup_apply(struct world *w, struct task_state *ts, u64 now);

/* CPU limits (bandwidth.h, parking.h); ns, a quota of 0: none */
void roost_limit_set(struct world *w, u32 index, u64 period, u64 quota, u64 burst, u64 now);

/* words (bits.h) */
u32 roost_lowest_bit(u64 word);
u32 roost_count_bits(u64 word);

/* The name of a counter in stats.tbl.h; NULL beyond the last. */
const char *roost_stat_name(u32 stat);

#endif /* ROOST_NATIVE_POLICY_H */
