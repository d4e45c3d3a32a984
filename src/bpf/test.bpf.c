// SPDX-License-Identifier: GPL-2.0-only
/*
 * Placement as BPF, for tests and benches only (tests/policy/jit.rs). The headers, the compiler and
 * the kernel's JIT are those of main.bpf.c, but it runs through BPF_PROG_RUN, on a machine that
 * exists only in maps. A separate object, so that the scheduler's contains none of it.
 */
#define ROOST_TEST
#include <scx/common.bpf.h>
#include "policy/ladder.h"
#include "policy/avg_idle.h"
#include "policy/queue.h"

char _license[] SEC("license") = "GPL";

enum { NR_PAIRS = 1024 };

/*
 * A wakeup as the test describes it. The rest of struct wakeup is derived from it; the features are
 * the arm's.
 */
struct query {
	u64 now;
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
u32 ran_on = 0; /* the CPU whose counters have changed */

struct pair pairs[NR_PAIRS] = {};
u32 nr_decisions = 0;
u64 took_ns = 0;

static __always_inline struct wakeup *gather(s32 this_cpu, s32 prev)
{
	struct wakeup *w;

	policy_take(&wakee);
	w = wakeup_of(wakee.pol.arm);
	w->features = wakee.pol.features;
	w->arm = wakee.pol.arm;
	w->claim_ttl = wakee.pol.claim_ttl_ns;
	w->now = query.now;
	w->waker_pid = query.waker_pid;
	w->pid = query.pid;
	w->this_cpu = this_cpu;
	w->last_cpu = prev;
	w->prev = task_allowed(&task, prev) ? prev : NO_CPU;
	w->fork = query.fork;
	w->sync = query.sync;
	w->this_allowed = task_allowed(&task, this_cpu);
	w->waker_pcpu_kthread = query.waker_pcpu_kthread;
	return w;
}

static __always_inline struct placement place_query(struct wakeup *w)
{
	return place(&task, &wakee, query.waker_ours ? &waker : NULL, w);
}

/* One decision. */
SEC("syscall")
int decide(void *ctx)
{
	answer = place_query(gather(query.this_cpu, query.prev));
	ran_on = bpf_get_smp_processor_id();
	return 0;
}

/* As above, for a pair of CPUs. */
subprog s32 decide_pair(u32 i)
{
	struct pair *pair = &pairs[masked(i, NR_PAIRS)];

	return place_query(gather(pair->this_cpu, pair->prev)).cpu;
}

/* nr_decisions decisions, timed. */
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

/* An event of CPU 0's idle periods. */
u32 begins = 0; /* 1: one begins; 0: one ends by the arrival below */
u32 arrives = 0;

SEC("syscall")
int idle_event(void *ctx)
{
	if (begins)
		idle_begins(cpu_state(0), query.now);
	else
		idle_ends(cpu_state(0), query.now, arrives % (ARRIVAL_OTHER + 1));
	return 0;
}

/* Reads of an arm whose numbers are all equal, and how many of them saw two different ones. */
u64 nr_reads = 0;
u64 nr_torn = 0;

subprog u32 read_arm(void)
{
	const struct arm *arm;
	u64 first, last;
	u32 i;

	bpf_rcu_read_lock();
	arm = machine_arm();
	first = arm->task.features;
	/* Long enough for many flips. */
	for (i = from_zero; i < 10000 && may_loop; i++)
		barrier();
	last = arm->migration_cost_ns;
	bpf_rcu_read_unlock();
	nr_reads++;
	nr_torn += first != last;
	return 0;
}

/* Like callbacks: nr_decisions reads, each in its own RCU section. */
SEC("syscall")
int read_arms(void *ctx)
{
	u32 i;

	bpf_for (i, 0, nr_decisions)
		read_arm();
	return 0;
}
