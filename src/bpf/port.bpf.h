/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The port over kfuncs and maps; policy/port.h says what each function means. With ROOST_TEST what
 * it reads of the kernel comes from maps (port.test.bpf.h).
 */
#ifndef ROOST_PORT_BPF_H
#define ROOST_PORT_BPF_H

#include <scx/common.bpf.h>
#include <bpf_experimental.h>
#include "maps.bpf.h"

#define subprog	  __noinline
#define nonnull	  __arg_nonnull
#define opaque(x) barrier_var(x)
#define may_loop  can_loop
#define from_zero unknown_zero

/* ---- facts and state ---- */

static __always_inline const volatile struct machine_facts *machine_facts(void)
{
	return &machine;
}

static __always_inline const volatile struct cpu_facts *cpu_facts(s32 cpu)
{
	return &cpus[(u32)cpu % MAX_CPUS];
}

static __always_inline const volatile struct llc_facts *llc_facts(u32 llc)
{
	return &llcs[llc % MAX_LLCS];
}

static __always_inline const volatile struct node_facts *node_facts(u32 node)
{
	return &nodes[node % MAX_NODES];
}

static __always_inline s32 llc_cpu(u32 index)
{
	return llc_cpus[index % MAX_CPUS];
}

static __always_inline const volatile struct tunables *tunables(void)
{
	return &tun;
}

/* One load of the index. What is read through it depends on it, so no barrier is needed. */
static __always_inline const struct policy_image *image_now(void)
{
	u32 slot = *(volatile u32 *)&policy.index;

	return &policy.slot[slot % 2];
}

static __always_inline const struct arm *arm_of(const struct policy_image *image, u32 arm)
{
	return &image->arm[masked(arm, MAX_ARMS)];
}

static __always_inline u32 cpu_capacity_now(s32 cpu)
{
	return image_now()->capacity[masked(cpu, MAX_CPUS)];
}

static __always_inline struct freq_rule freq_rule(u32 arm, s32 cpu)
{
	const struct policy_image *image = image_now();
	struct freq_rule rule = { .stale_ms = image->freq_stale_ms };

	rule.low = image->threshold[masked(arm, MAX_ARMS)][masked(cpu, MAX_CPUS)];
	return rule;
}

static __always_inline u64 cpu_freq_read(s32 cpu)
{
	return *(volatile u64 *)&cpu_freqs[masked(cpu, MAX_CPUS)];
}

static __always_inline u64 llc_scan_bound(u32 llc)
{
	return *(volatile u64 *)&llc_scans[masked(llc, MAX_LLCS)];
}

static __always_inline struct cpu_state *cpu_state(s32 cpu)
{
	return &cpu_states[(u32)cpu % MAX_CPUS];
}

static __always_inline struct llc_state *llc_state(u32 llc)
{
	return &llc_states[llc % MAX_LLCS];
}

static __always_inline struct llc_sets *llc_sets(void)
{
	return &sets_of_llcs;
}

static __always_inline struct domains *domains(void)
{
	return &the_domains;
}

static __always_inline struct cgroup_state *cgroup_state(u32 index)
{
	return &cgroup_states[masked(index, MAX_CGROUPS)];
}

static __always_inline struct bandwidth *bandwidth(u32 index)
{
	return &bandwidths[masked(index, MAX_CGROUPS)];
}

static __always_inline struct limits *limits(void)
{
	return &all_limits;
}

static __always_inline struct park *park_of(u32 queue)
{
	return &parks[masked(queue, PARK_QUEUES)];
}

/*
 * The CPU that runs this program, and runs it to its end: BPF programs run with migration disabled.
 * In assembly, so that the compiler knows that a second call in the same function gives the same:
 * it makes none. The verifier copies the whole program for each call that it inlines.
 */
static __always_inline u64 running_cpu(void)
{
	u64 cpu;

	asm("call %[helper]; %[cpu] = r0"
	    : [cpu] "=r"(cpu)
	    : [helper] "i"(BPF_FUNC_get_smp_processor_id)
	    : "r0", "r1", "r2", "r3", "r4", "r5");
	return cpu;
}

#define know_cpu() asm volatile("" ::"r"(running_cpu()))

#ifdef ROOST_TEST
#include "port.test.bpf.h"
#else

/* A macro, not a typedef: CO-RE relocates fields by the name of the struct. */
#define port_task struct task_struct
#define trusted	  __arg_trusted

/* ---- the kernel's view of a CPU ---- */

static __always_inline struct rq *rq_of(s32 cpu)
{
	return bpf_per_cpu_ptr(&runqueues, cpu);
}

/* The idle task runs there. */
static __always_inline bool cpu_curr_idle(s32 cpu)
{
	struct rq *rq = rq_of(cpu);

	return rq && rq->curr == rq->idle;
}

/*
 * A look, as in the kernel. sched_ext's own test (scx_bpf_test_and_clear_cpu_idle()) would take the
 * CPU from all other searches, whether it is chosen or not.
 */
static __always_inline bool cpu_idle(s32 cpu)
{
	struct rq *rq = rq_of(cpu);

	return rq && rq->curr == rq->idle && !rq->nr_running && !rq->ttwu_pending;
}

static __always_inline u32 cpu_nr_running(s32 cpu)
{
	struct rq *rq = rq_of(cpu);

	return rq ? rq->nr_running : 0;
}

/* A run queue also has this where interrupt time is accounted. */
struct rq___irq {
	struct sched_avg avg_irq;
} __attribute__((preserve_access_index));

static __always_inline u64 cpu_rt_util(s32 cpu)
{
	struct rq *rq = rq_of(cpu);
	u64 util;

	if (!rq)
		return 0;
	util = rq->avg_rt.util_avg + rq->avg_dl.util_avg;
	if (bpf_core_field_exists(((struct rq___irq *)rq)->avg_irq))
		util += ((struct rq___irq *)rq)->avg_irq.util_avg;
	return util;
}

/* Read through a helper, so that the result is a number to the verifier. */
static __always_inline u64 cpu_domain(s32 cpu)
{
	struct rq *rq = rq_of(cpu);

	if (!rq || !BPF_CORE_READ(rq, sd))
		return cpu + 1;
	return (u64)BPF_CORE_READ(rq, rd);
}

/* ---- where a task may run ---- */

/* A mask may include offline CPUs. So only one with every possible CPU surely excludes none. */
static __always_inline bool task_narrow(port_task *p, u32 whole)
{
	return p->nr_cpus_allowed < whole;
}

static __always_inline bool task_in_mask(port_task *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/* Read from the task itself where the kernel keeps it there, without a call. */
static __always_inline s32 task_cpu(port_task *p)
{
	if (bpf_core_field_exists(p->thread_info.cpu))
		return p->thread_info.cpu;
	return scx_bpf_task_cpu(p);
}

/* ---- queues: two user DSQs per CPU, numbered in aging.h ---- */

static __always_inline bool queue_take(u32 queue)
{
	return scx_bpf_dsq_move_to_local(queue, 0);
}

static __always_inline u32 queue_length(u32 queue)
{
	return scx_bpf_dsq_nr_queued(queue);
}

/* No program that calls this can sleep, so RCU keeps the task's memory. */
static __always_inline struct task_struct *queue_head(u32 queue)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p = NULL;

	/* The kfunc exists since 6.19, and its peek is correct for deadline-ordered queues. */
	if (!fault_old_paths && bpf_ksym_exists(scx_bpf_dsq_peek))
		return scx_bpf_dsq_peek(queue);
	if (!bpf_iter_scx_dsq_new(&it, queue, 0))
		p = bpf_iter_scx_dsq_next(&it);
	bpf_iter_scx_dsq_destroy(&it);
	return p;
}

#include "act.bpf.h"

#endif /* ROOST_TEST */

static __always_inline u64 clock_ns(void)
{
	return bpf_ktime_get_ns();
}

/* ---- memory and counting ---- */

/*
 * If the result is unused, the compiler chooses BPF's atomics without one. On x86 that is a locked
 * instruction, a full barrier. On other architectures these order nothing, so there the result is
 * marked as used.
 */
#ifdef __TARGET_ARCH_x86
#define full_barrier(old)
#else
#define full_barrier(old) barrier_var(old)
#endif

static __always_inline u64 atomic_or(u64 *p, u64 bits)
{
	u64 old = __sync_fetch_and_or(p, bits);

	full_barrier(old);
	return old;
}

static __always_inline u64 atomic_and(u64 *p, u64 bits)
{
	u64 old = __sync_fetch_and_and(p, bits);

	full_barrier(old);
	return old;
}

static __always_inline void atomic_add(u64 *p, u64 v)
{
	__sync_fetch_and_add(p, v);
}

static __always_inline u64 atomic_fetch_add(u64 *p, u64 v)
{
	u64 old = __sync_fetch_and_add(p, v);

	full_barrier(old);
	return old;
}

static __always_inline u64 atomic_swap(u64 *p, u64 v)
{
	return __sync_lock_test_and_set(p, v);
}

static __always_inline bool atomic_cas(u64 *p, u64 old, u64 v)
{
	return __sync_bool_compare_and_swap(p, old, v);
}

/*
 * This CPU's rows, one for each arm. The only index whose bound is the machine's: there are rows
 * for as many CPUs as the kernel has (counters.rs), and every verifier knows that number. It is
 * hidden from the compiler, which would OR the arm into it: of an OR the verifier knows no bound
 * but the next power of two.
 */
static __always_inline struct cpu_stats *stats_of_cpu(void)
{
	u64 first = running_cpu() * MAX_ARMS;

	/* As opaque(), but the compiler may still see that two are the same. */
	asm("" : "+r"(first));
	return &stats[first];
}

static __always_inline struct cpu_stats *stats_of(u32 arm)
{
	return &stats_of_cpu()[masked(arm, MAX_ARMS)];
}

static __always_inline struct wakeup *wakeup_of(u32 arm)
{
	return &stats_of(arm)->wakeup;
}

static __always_inline void count_for(u32 arm, enum roost_stat s)
{
	wakeup_of(arm)->counts[s]++;
}

/* Rungs have the wakeup const: they change nothing that a rung reads. */
static __always_inline void count_wakeup(const struct wakeup *w, enum roost_stat s)
{
	((struct wakeup *)w)->counts[s]++;
}

static __always_inline void count(enum roost_stat s)
{
	stats_of_cpu()->wakeup.counts[s]++;
}

static const u8 log2_of[256] = {
	[2 ... 3] = 1,	 [4 ... 7] = 2,	   [8 ... 15] = 3,    [16 ... 31] = 4,
	[32 ... 63] = 5, [64 ... 127] = 6, [128 ... 255] = 7,
};

subprog u32 long_bucket(u64 us)
{
	if (us < 1 << 16)
		return 8 + log2_of[us >> 8];
	if (us < 1 << 24)
		return 16 + log2_of[us >> 16];
	return NR_HIST_BUCKETS - 1;
}

/*
 * The bucket of a time is floor(log2(us)), up to the last bucket. A table, because every wakeup
 * calls this.
 */
static __always_inline void hist_for(u32 arm, enum roost_hist h, u64 ns)
{
	u64 us = ns >> 10;
	u32 bucket;

	/* The verifier needs the bound on the same value that indexes the table. */
	opaque(us);
	bucket = us < 1 << 8 ? log2_of[us] : long_bucket(us);
	if (bucket < NR_HIST_BUCKETS) {
		struct cpu_stats *of = stats_of(arm);

		of->hist[h][bucket]++;
		of->hist_sum[h] += ns;
	}
}

#endif /* ROOST_PORT_BPF_H */
