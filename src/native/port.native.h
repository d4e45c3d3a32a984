/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The port over plain memory; policy/port.h says what each function means. The caller owns all the
 * memory and makes the arrays exactly as long as the machine needs. An index beyond them is a bug
 * of the policy and ends the process. BPF would wrap it and go on.
 */
#ifndef ROOST_PORT_NATIVE_H
#define ROOST_PORT_NATIVE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Marks for the verifier, without meaning here. */
#define subprog static inline
#define trusted
#define nonnull
#define opaque(x)
#define know_cpu()
#define may_loop  true
#define from_zero 0

/* A histogram of times. */
struct times {
	u64 hist[NR_HIST_BUCKETS];
	u64 sum; /* ns */
};

/* A task. Placement reads only where it may run. */
typedef struct port_task {
	const u64 *allowed; /* one bit per CPU number, as many words as the machine's CPUs need */
	u32 restricted;	    /* the mask excludes some online CPU */

	struct task_state *state; /* NULL: the idle task */
	u64 key;		  /* its key in its queue */
	u64 slice;		  /* ns that it may run now */
	u64 ran;		  /* ns that it has run in all */
	u32 pid;
	s32 cpu;	/* the CPU that it is on */
	bool pinned;	/* it can run on one CPU only */
	bool kthread;	/* a kthread */
	bool runnable;	/* it runs or waits */
	bool sleeps;	/* it stops because it sleeps */
	bool exits;	/* it is exiting */
	bool in_kernel; /* it is in kernel mode, and the caller tells when it returns */
} port_task;

/* The kernel's view of one CPU. */
struct cpu_view {
	u32 idle;	/* kernel: available_idle_cpu() */
	u32 nr_running; /* kernel: rq->nr_running */
	u32 rt_util;	/* kernel: cpu_util_rt() and others */
	u32 domain;	/* CPUs with the same domain are balanced (kernel: rq->rd) */
};

/* More of it, which placement alone does not read. */
struct run_view {
	u32 curr_idle; /* the idle task runs there */
	u32 taken;     /* a task of a higher class runs there */
	u32 local;     /* tasks that run there next */
	u32 speed;     /* 0..CAPACITY_SCALE (kernel: arch_scale_freq_capacity()) */
};

enum timer_kind {
	TIMER_SLICE,
	TIMER_DELAY,
	TIMER_PARK, /* of a queue of parked tasks, whose number replaces the CPU's */
};

/* A position in a queue; all 0: before its first task. */
struct cursor {
	u64 key;
	u64 seq;
};

/*
 * What the caller's machine does for the policy, if it plays more than placement. @self: that of
 * struct world.
 */
struct kernel {
	void (*insert_local)(void *self, port_task *p, s32 cpu, u64 slice,
			     u64 enq_flags); /* NO_CPU: the task's own CPU */
	void (*insert_queued)(void *self, port_task *p, u32 queue, u64 slice, u64 key,
			      u64 enq_flags);
	void (*kick)(void *self, s32 cpu, u64 flags);
	void (*ask_speed)(void *self, s32 cpu, u32 speed);
	/* restarts a running timer */
	void (*start_timer)(void *self, enum timer_kind which, s32 cpu, u64 ns);
};

/*
 * One machine, as one thread sees it. Threads may share the arrays, but each has its own counters.
 */
struct world {
	struct machine_facts machine;
	struct tunables tunables;
	const struct policy_image *policy;
	const struct cpu_facts *cpus;	/* machine.nr_cpu_ids */
	const struct llc_facts *llcs;	/* machine.nr_llcs */
	const struct node_facts *nodes; /* machine.nr_nodes */
	const u16 *llc_cpus;		/* machine.nr_online */
	const struct cpu_view *views;	/* machine.nr_cpu_ids */

	struct cpu_state *cpu_states; /* machine.nr_cpu_ids */
	struct llc_state *llc_states; /* machine.nr_llcs */
	struct llc_sets *llc_sets;
	struct domains *domains;
	struct cgroup_state *cgroups; /* nr_cgroups */
	struct bandwidth *bandwidths; /* nr_cgroups */
	struct limits *limits;
	struct park *parks; /* PARK_QUEUES */
	u64 nr_cgroups;
	const u64 *freqs;     /* machine.nr_cpu_ids; as in cpu_freqs */
	const u64 *llc_scans; /* machine.nr_llcs; as in llc_scans */
	struct wakeup wakeup; /* of any arm; its counts are not used */
	u64 *counters;	      /* ROOST_NR_STATS of each arm */
	struct times *times;  /* ROOST_NR_HISTS of each arm; NULL: not kept */
	/* let other threads run after a CPU was seen idle, for tests of races */
	bool yields;

	u64 clock; /* ns; each read advances it by clock_step */
	u64 clock_step;

	/*
	 * the caller's queues: two per CPU, then PARK_QUEUES of parked tasks (aging.h, parking.h)
	 */
	void *queues;
	bool (*queue_take)(void *queues, u32 queue);
	u32 (*queue_length)(void *queues, u32 queue);
	port_task *(*queue_next)(void *queues, u32 queue, struct cursor *at);	/* NULL: the end */
	bool (*queued_move)(void *queues, port_task *p, s32 cpu);		/* NO_CPU: here */
	bool (*queued_requeue)(void *queues, port_task *p, u32 queue, u64 key); /* into that one */

	/* the caller's machine, if it plays one */
	const struct kernel *kernel;
	void *self;
	const struct run_view *runs; /* machine.nr_cpu_ids */
	port_task *current;	     /* the task that runs on this_cpu */
	s32 this_cpu;
	u64 immed; /* IMMED; 0: as before Linux 7.1 */
};

static _Thread_local struct world *the_world;

static __attribute__((noinline, cold, noreturn)) void out_of_range(const char *what, u32 index,
								   u64 end)
{
	fprintf(stderr, "native policy: %s %u asked for, there are %llu\n", what, index,
		(unsigned long long)end);
	abort();
}

static __always_inline u32 in_range(const char *what, u32 index, u64 end)
{
	if (__builtin_expect(index >= end, 0))
		out_of_range(what, index, end);
	return index;
}

/* ---- facts and state ---- */

static __always_inline const volatile struct machine_facts *machine_facts(void)
{
	return &the_world->machine;
}

static __always_inline const volatile struct cpu_facts *cpu_facts(s32 cpu)
{
	return &the_world->cpus[in_range("cpu", cpu, the_world->machine.nr_cpu_ids)];
}

static __always_inline const volatile struct llc_facts *llc_facts(u32 llc)
{
	return &the_world->llcs[in_range("llc", llc, the_world->machine.nr_llcs)];
}

static __always_inline const volatile struct node_facts *node_facts(u32 node)
{
	return &the_world->nodes[in_range("node", node, the_world->machine.nr_nodes)];
}

static __always_inline s32 llc_cpu(u32 index)
{
	return the_world->llc_cpus[in_range("llc_cpu", index, the_world->machine.nr_online)];
}

static __always_inline const volatile struct tunables *tunables(void)
{
	return &the_world->tunables;
}

static __always_inline const struct policy_image *image_now(void)
{
	return the_world->policy;
}

static __always_inline const struct arm *arm_of(const struct policy_image *image, u32 arm)
{
	return &image->arm[in_range("arm", arm, MAX_ARMS)];
}

static __always_inline u32 cpu_capacity_now(s32 cpu)
{
	return the_world->policy->capacity[in_range("cpu", cpu, the_world->machine.nr_cpu_ids)];
}

static __always_inline struct freq_rule freq_rule(u32 arm, s32 cpu)
{
	const struct policy_image *image = the_world->policy;
	u32 row = in_range("arm", arm, MAX_ARMS),
	    at = in_range("cpu", cpu, the_world->machine.nr_cpu_ids);

	return (struct freq_rule){ .low = image->threshold[row][at],
				   .stale_ms = image->freq_stale_ms };
}

static __always_inline u64 cpu_freq_read(s32 cpu)
{
	return the_world->freqs[in_range("cpu", cpu, the_world->machine.nr_cpu_ids)];
}

static __always_inline u64 llc_scan_bound(u32 llc)
{
	return the_world->llc_scans[in_range("llc", llc, the_world->machine.nr_llcs)];
}

static __always_inline struct cpu_state *cpu_state(s32 cpu)
{
	return &the_world->cpu_states[in_range("cpu", cpu, the_world->machine.nr_cpu_ids)];
}

static __always_inline struct llc_state *llc_state(u32 llc)
{
	return &the_world->llc_states[in_range("llc", llc, the_world->machine.nr_llcs)];
}

static __always_inline struct llc_sets *llc_sets(void)
{
	return the_world->llc_sets;
}

static __always_inline struct domains *domains(void)
{
	return the_world->domains;
}

static __always_inline struct cgroup_state *cgroup_state(u32 index)
{
	return &the_world->cgroups[in_range("cgroup", index, the_world->nr_cgroups)];
}

static __always_inline struct bandwidth *bandwidth(u32 index)
{
	return &the_world->bandwidths[in_range("cgroup", index, the_world->nr_cgroups)];
}

static __always_inline struct limits *limits(void)
{
	return the_world->limits;
}

static __always_inline struct park *park_of(u32 queue)
{
	return &the_world->parks[in_range("park", queue, PARK_QUEUES)];
}

/* ---- the kernel's view of a CPU ---- */

static __always_inline bool cpu_idle(s32 cpu)
{
	bool idle = the_world->views[in_range("cpu", cpu, the_world->machine.nr_cpu_ids)].idle;

	if (idle && the_world->yields)
		sched_yield();
	return idle;
}

static __always_inline u32 cpu_nr_running(s32 cpu)
{
	return the_world->views[in_range("cpu", cpu, the_world->machine.nr_cpu_ids)].nr_running;
}

static __always_inline u64 cpu_rt_util(s32 cpu)
{
	return the_world->views[in_range("cpu", cpu, the_world->machine.nr_cpu_ids)].rt_util;
}

static __always_inline u64 cpu_domain(s32 cpu)
{
	return 1 + the_world->views[in_range("cpu", cpu, the_world->machine.nr_cpu_ids)].domain;
}

/* ---- where a task may run ---- */

static __always_inline bool task_narrow(port_task *p, u32 whole)
{
	return p->restricted || whole > the_world->machine.nr_cpu_ids;
}

static __always_inline bool task_in_mask(port_task *p, s32 cpu)
{
	return p->allowed[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1;
}

static __always_inline s32 task_cpu(port_task *p)
{
	return p->cpu;
}

/* ---- queues ---- */

static __always_inline bool queue_take(u32 queue)
{
	return the_world->queue_take(the_world->queues, queue);
}

static __always_inline u32 queue_length(u32 queue)
{
	return the_world->queue_length(the_world->queues, queue);
}

static __always_inline u64 clock_ns(void)
{
	return the_world->clock += the_world->clock_step;
}

/* ---- memory and counting ---- */

static __always_inline u64 atomic_or(u64 *p, u64 bits)
{
	return __atomic_fetch_or(p, bits, __ATOMIC_SEQ_CST);
}

static __always_inline u64 atomic_and(u64 *p, u64 bits)
{
	return __atomic_fetch_and(p, bits, __ATOMIC_SEQ_CST);
}

static __always_inline void atomic_add(u64 *p, u64 v)
{
	__atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
}

static __always_inline u64 atomic_fetch_add(u64 *p, u64 v)
{
	return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
}

static __always_inline u64 atomic_swap(u64 *p, u64 v)
{
	return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
}

static __always_inline bool atomic_cas(u64 *p, u64 old, u64 v)
{
	return __atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static __always_inline void count_for(u32 arm, enum roost_stat s)
{
	the_world->counters[in_range("arm", arm, MAX_ARMS) * ROOST_NR_STATS + s]++;
}

static __always_inline void count(enum roost_stat s)
{
	count_for(0, s);
}

static __always_inline struct wakeup *wakeup_of(u32 arm)
{
	in_range("arm", arm, MAX_ARMS);
	return &the_world->wakeup;
}

static __always_inline void count_wakeup(const struct wakeup *w, enum roost_stat s)
{
	/* In BPF any other one has no counters beside it. */
	in_range("count_wakeup: not of wakeup_of()", w != &the_world->wakeup, 1);
	count_for(w->arm, s);
}

/* Buckets as in port.bpf.h: floor(log2(us)), at most the last. */
static __always_inline void hist_for(u32 arm, enum roost_hist h, u64 ns)
{
	u32 bucket = 63 - __builtin_clzll((ns >> 10) | 1);
	struct times *of;

	if (!the_world->times)
		return;
	of = &the_world->times[in_range("arm", arm, MAX_ARMS) * ROOST_NR_HISTS + h];
	of->hist[bucket < NR_HIST_BUCKETS ? bucket : NR_HIST_BUCKETS - 1]++;
	of->sum += ns;
}

#include "act.native.h"

#endif /* ROOST_PORT_NATIVE_H */
