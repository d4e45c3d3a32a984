// SPDX-License-Identifier: GPL-2.0-only
/*
 * Placement as BPF, for tests and benches alone (tests/policy/jit.rs): the same headers as in main.bpf.c, compiled by
 * the same compiler and translated by the kernel, but run through BPF_PROG_RUN on a machine that exists in maps only.
 * An object of its own, so that the scheduler's carries none of it.
 */
#define ROOST_TEST
#include <scx/common.bpf.h>
#include "policy/ladder.h"

char _license[] SEC("license") = "GPL";

enum { NR_PAIRS = 1024 };

/* A wakeup as the test describes it; the rest of struct wakeup is set from it. */
struct query {
	u64 now;
	u32 features;
	u32 waker_pid;
	u32 pid;
	s32 this_cpu;
	s32 prev;
	u32 waker_ours;
	u32 fork;
	u32 sync;
	u32 waker_pcpu_kthread;
};

struct pair {
	s32 this_cpu;
	s32 prev;
};

struct query query = {};
struct port_task task = {};
struct task_state wakee = {};
struct task_state waker = {};
struct placement answer = {};

struct pair pairs[NR_PAIRS] = {};
u32 nr_decisions = 0;
u64 took_ns = 0;

static __always_inline void gather(struct wakeup *w, s32 this_cpu, s32 prev)
{
	w->now = query.now;
	w->waker_pid = query.waker_pid;
	w->pid = query.pid;
	w->this_cpu = this_cpu;
	w->prev_any = prev;
	w->prev = task_allowed(&task, prev) ? prev : NO_CPU;
	w->fork = query.fork;
	w->sync = query.sync;
	w->this_allowed = task_allowed(&task, this_cpu);
	w->waker_pcpu_kthread = query.waker_pcpu_kthread;
}

static __always_inline struct placement place_query(struct wakeup *w)
{
	return place(&task, &wakee, query.waker_ours ? &waker : NULL, w);
}

/* One decision, with the features of the query. */
SEC("syscall")
int decide(void *ctx)
{
	struct wakeup w = { .features = query.features };

	gather(&w, query.this_cpu, query.prev);
	answer = place_query(&w);
	return 0;
}

/* The same with the features constant, as the scheduler has them, for a pair of CPUs. */
subprog s32 decide_pair(u32 i)
{
	struct wakeup w = { .features = tun.features };

	gather(&w, pairs[i % NR_PAIRS].this_cpu, pairs[i % NR_PAIRS].prev);
	return place_query(&w).cpu;
}

/* nr_decisions of them, timed. */
SEC("syscall")
int cost(void *ctx)
{
	u64 start = bpf_ktime_get_ns();
	u32 i;

	bpf_for (i, 0, nr_decisions)
		decide_pair(i);
	took_ns = bpf_ktime_get_ns() - start;
	return 0;
}
