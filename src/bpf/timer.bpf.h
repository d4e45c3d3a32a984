/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slices end on time: one timer per CPU, as the kernel's hrtick, because a slice that only a tick may end lasts up to
 * a tick longer (4 ms at 250 Hz).
 *
 * A timer is armed when somebody has to wait, unless it already fires in time; it is never cancelled. When it fires it
 * looks again: the slice is over, or it arms itself for the rest, or nobody waits any more. So it is armed about once
 * per slice, not once per context switch. The choice was measured: docs/experiments.md.
 */
#ifndef ROOST_TIMER_BPF_H
#define ROOST_TIMER_BPF_H

#include "ctx.bpf.h"
#include "policy/steal.h"

/* A slice that ends within this is over: arming a timer again would cost more. ns. */
#define SLICE_SLACK_NS 20000ULL

/* May be called from any CPU: a bpf_timer is pinned only to its caller's. */
static __always_inline void arm_slice_timer(s32 cpu, struct cpu_state *cs, u64 now, u64 at)
{
	struct slice_timer *t;
	u32 key = cpu;

	if (!tun.timers || (cs->timer_at && !before(at, cs->timer_at)))
		return;
	t = bpf_map_lookup_elem(&slice_timers, &key);
	if (!t)
		return;
	cs->timer_at = at;
	count(STAT_timer_arm);
	bpf_timer_start(&t->timer, before(now, at) ? at - now : 0,
			cpu == bpf_get_smp_processor_id() ? BPF_F_TIMER_CPU_PIN : 0);
}

/*
 * Somebody waits for @cpu: in its queue, or in the kernel's local one, uncounted yet, because two wakeups found the same
 * CPU idle or because the waker stays longer than it said (sync_local).
 */
static __always_inline bool somebody_waits(s32 cpu, const struct cpu_state *cs)
{
	struct rq *rq;

	if (queue_contended(cs))
		return true;
	rq = rq_of(cpu);
	return rq && rq->scx.local_dsq.nr;
}

/* Tasks wait on @cpu: an idle CPU shall look for work (kernel: nohz_balancer_kick()). */
subprog u32 call_help(s32 cpu)
{
	s32 helper;

	if (!queue_length(cpu))
		return 0;
	mark_waiting(cpu);
	helper = idle_helper(cpu);
	if (helper == NO_CPU)
		return 0;
	count(STAT_idle_kick);
	scx_bpf_kick_cpu(helper, SCX_KICK_IDLE);
	return 0;
}

static int slice_timer_fired(void *map, u32 *key, struct slice_timer *t)
{
	s32 cpu = *key;
	struct cpu_state *cs = cpu_state(cpu);
	u64 now = scx_bpf_now(), end = cs->curr_start + cs->curr_slice;

	cs->timer_at = 0;
	count(STAT_timer_fire);
	if (!cs->curr_pid || !somebody_waits(cpu, cs)) {
		count(STAT_timer_spurious);
	} else if (before(now + SLICE_SLACK_NS, end)) {
		arm_slice_timer(cpu, cs, now, end);
	} else {
		count(STAT_preempt_slice);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		call_help(cpu);
	}
	return 0;
}

static __always_inline s32 slice_timer_init(u32 cpu)
{
	struct slice_timer *t = bpf_map_lookup_elem(&slice_timers, &cpu);
	s32 err;

	if (!t)
		return -ENOENT;
	err = bpf_timer_init(&t->timer, &slice_timers, CLOCK_MONOTONIC);
	return err ?: bpf_timer_set_callback(&t->timer, slice_timer_fired);
}

#endif /* ROOST_TIMER_BPF_H */
