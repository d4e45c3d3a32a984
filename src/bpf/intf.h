/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by BPF, native C and Rust: sizes, feature bits, counters, and what userspace writes: facts
 * and tunables before load, the policy and the rules at any time. Plain C, because bindgen reads it
 * too.
 */
#ifndef ROOST_INTF_H
#define ROOST_INTF_H

#ifndef __VMLINUX_H__
#include <stdbool.h>
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
#endif

enum {
	MAX_CPUS = 1024,     /* CPU ids below this; a larger machine is refused at load */
	MAX_LLCS = MAX_CPUS, /* without an L3 or L2, each core may be an LLC of its own */
	MAX_NODES = 64,
	MAX_SMT = 8,   /* hardware threads of one core */
	MAX_ARMS = 16, /* a power of two: indexes are masked by it */
	MAX_CGROUPS = 4096,
	CGROUP_WORDS = MAX_CGROUPS / 64,
	PARK_QUEUES = 64, /* queues of tasks whose group has used up its CPU limit */
	NR_HIST_BUCKETS = 24,
	WORD_BITS = 64,
	CPU_WORDS = MAX_CPUS / WORD_BITS, /* words of a set of CPUs or of LLCs */
	CAPACITY_SCALE = 1024,		  /* kernel: SCHED_CAPACITY_SCALE, of the biggest CPU */
	/*
	 * Weight of nice 0 and of cpu.weight 100. 16 times the kernel's, so that a group shared by
	 * many tasks still divides well.
	 */
	NICE0_WEIGHT = 1 << 14,
};

enum roost_feature_bit {
#define FEATURE(name, source, counters, help)		FEATURE_BIT_##name,
#define SUBSWITCH(name, parent, source, counters, help) FEATURE_BIT_##name,
#include "features.tbl.h"
#undef SUBSWITCH
#undef FEATURE
	ROOST_NR_FEATURES
};

enum roost_feature {
#define FEATURE(name, source, counters, help)		FEATURE_##name = 1 << FEATURE_BIT_##name,
#define SUBSWITCH(name, parent, source, counters, help) FEATURE_##name = 1 << FEATURE_BIT_##name,
#include "features.tbl.h"
#undef SUBSWITCH
#undef FEATURE
};

enum roost_stat {
#define STAT(name, help)	 STAT_##name,
#define MACHINE_STAT(name, help) STAT_##name,
#include "stats.tbl.h"
#undef MACHINE_STAT
#undef STAT
	ROOST_NR_STATS
};

enum roost_hist {
#define HIST(name, help) HIST_##name,
#include "hist.tbl.h"
#undef HIST
	ROOST_NR_HISTS
};

/*
 * Rules of the kernel's fair class that its versions differ in, or that scx_roost has rules of its
 * own in place of. Without a bit, the rule is scx_roost's.
 */
enum {
	/* a running task is protected to the end of its request (RUN_TO_PARITY) */
	FAIR_PARITY = 1 << 0,
	/* beside a shorter request, for as long as that (set_protect_slice(); 6.17 to 7.2) */
	FAIR_SHORTEST = 1 << 1,
	/*
	 * beside a shorter request, until it is ahead of the others; that one preempts at once if
	 * it is eligible (set_short_buddy(); from 7.3)
	 */
	FAIR_INELIGIBLE = 1 << 2,
	/* a new task is tested as one that wakes (up to 6.18) */
	FAIR_FORK = 1 << 3,
	/* a yield moves the deadline alone (yield_task_fair(); up to 6.16) */
	FAIR_PUSH = 1 << 4,
	/* lag is limited to a request and a tick (entity_lag(); from 6.19) */
	FAIR_LAG_TICK = 1 << 5,
	/* a task that sleeps ahead of the mean stays in its queue (DELAY_DEQUEUE) */
	FAIR_DELAY = 1 << 6,
	/* a timer ends the slice of a task that begins to run (HRTICK; from 7.1) */
	FAIR_HRTICK = 1 << 7,
	/* those of the running kernel (tunables.kernel_rules) */
	FAIR_AUTO = 1 << 30,
};

enum cpuperf_mode {
	CPUPERF_OFF,  /* leave the request alone, which sched_ext sets to SCX_CPUPERF_ONE */
	CPUPERF_UTIL, /* follow the CPU's utilisation */
};

/*
 * Facts of one CPU, which userspace writes before load and which never change. policy/hotplug.h has
 * what hotplug changes.
 */
struct cpu_facts {
	u16 llc;      /* index into llc_facts */
	u16 pos;      /* rank among the LLC's CPUs by number: its bit in the LLC's words */
	u16 node;     /* NUMA node, dense index */
	u16 core;     /* core, dense index over the machine */
	u16 capacity; /* 1..CAPACITY_SCALE, the kernel's cpu_capacity; 1024 if symmetric */
	u8 online;
	u8 nr_sib;	  /* other online threads of the core: 0 without SMT */
	u16 sib[MAX_SMT]; /* their CPU numbers */
	u16 nohz;	  /* 1: the tick may stop while a task runs (nohz_full=) */
};

/*
 * One last-level cache. LLCs are numbered node by node, so those of a node are adjacent in the
 * table.
 */
struct llc_facts {
	u16 first;    /* index of its first CPU in llc_cpus[] */
	u16 nr_cpus;  /* online CPUs */
	u16 nr_words; /* words for one bit per CPU */
	u16 node;
	u32 capacity; /* sum of its CPUs' */
};

struct node_facts {
	u16 first_llc;
	u16 nr_llcs;
};

/* The machine as a whole. */
struct machine_facts {
	u32 nr_cpu_ids; /* highest possible CPU number + 1 */
	u32 nr_online;
	u32 nr_llcs;
	u32 nr_nodes;
	u32 smt;  /* 1: some core has more than one online thread */
	u32 asym; /* 1: CPUs differ in capacity (kernel: sched_asym_cpucap_active) */
	u32 nohz; /* 1: some CPU has nohz set */
};

/* Fixed at load. */
struct tunables {
	u32 cpuperf; /* cpuperf_mode */
	u32 timers;  /* 0: no bpf_timer (PREEMPT_RT); slices end at the tick */
	/* no runnable task waits longer: a quarter of the watchdog's time (aging.h) */
	u64 wait_bound_ns;
	/* kernel: sd->imbalance_pct, 117 between cores; for wake_affine, fork and balance */
	u32 imbalance_pct;
	u32 frozen;	  /* 1: arm 0 is the only one, and never changes */
	u32 features;	  /* if frozen, its roost_feature bits */
	u32 limits;	  /* 1: cpu.max is enforced */
	u32 kernel_rules; /* FAIR_* bits of the running kernel */
};

/* What a task copies from its arm at each wakeup and each new request. */
struct task_policy {
	u32 features; /* roost_feature bits */
	u32 arm;      /* this policy's arm */
	/* ns */
	u64 slice_ns;	  /* request of a task without one of its own (kernel: base_slice_ns) */
	u64 min_slice_ns; /* a wakeup does not preempt an eligible task before this */
	u64 claim_ttl_ns; /* at most 1 s; an older claim does not count */
	/* util_fits */
	u32 fits_scale; /* factor of demand, in 1/CAPACITY_SCALE; CAPACITY_SCALE: no margin */
	u32 fits_rt;	/* 1: subtract real-time, deadline and interrupt time from the capacity */
	/* delay_migration */
	u32 delay_ns; /* how long a move is delayed; see policy_image.threshold */
	u32 rules;    /* FAIR_* bits */
};

/*
 * One policy: what may change at run time for the tasks on this arm. Tasks of no other arm are on
 * arm 0. An unused arm is a copy of arm 0, for tasks that have not yet noticed that their arm is
 * gone.
 */
struct arm {
	struct task_policy task;
	/* ns, for the machine as a whole: read from arm 0 only */
	u64 rescue_ns; /* a queue whose CPU has not dispatched for this long may be rescued */
	/* a task that ran this recently is not stolen (kernel: sysctl_sched_migration_cost) */
	u64 migration_cost_ns;
};

/* All that may change at run time, in one piece. */
struct policy_image {
	u32 generation; /* incremented with each publication */
	u32 nr_arms;	/* in use */
	struct arm arm[MAX_ARMS];
	/* of each CPU under cpufreq's limit; 1..CAPACITY_SCALE, 0: offline */
	u16 capacity[MAX_CPUS];
	/*
	 * For tasks of each arm, a frequency of at most this is low; 0: none is. The unit is kHz,
	 * as userspace reads frequencies. If freq_stale_ms is 0, it is 1/CAPACITY_SCALE, as ticks
	 * measure speed.
	 */
	u32 threshold[MAX_ARMS][MAX_CPUS];
	u32 freq_stale_ms; /* a frequency read longer ago counts as unknown; 0: see above */
};

/*
 * One image is live. Userspace writes the other and then flips the index (src/publish/). Readers
 * load the index once and reach the image through it.
 */
struct policy_store {
	struct policy_image slot[2];
	u32 index;
};

/* ---- which task is on which arm (arm.bpf.h) ---- */

enum {
	MAX_COMM_RULES = 64,
	MAX_CGROUP_RULES = 256,
	MAX_TICKETS = 512, /* a power of two: indexes are masked by it */
	COMM_LEN = 16,	   /* kernel: TASK_COMM_LEN */
};

/* Tasks whose name matches are on that arm. The first rule that matches counts. */
struct comm_rule {
	char glob[COMM_LEN]; /* * and ? as in a shell; ends with 0 */
	u32 arm;
};

/*
 * A process that holds a ticket is on the ticket's arm while the ticket is valid. So an arm can be
 * deleted without a search for its members.
 */
struct ticket {
	u32 id; /* 0: none */
	u32 arm;
};

/*
 * Written by userspace only. Each change increments seq last. A task that sees another seq than
 * before looks up its arm again.
 */
struct arm_rules {
	u32 seq; /* 2 or more; in task_state.rules_seq, 1: look up once more, 0: twice */
	u32 nr_comms;
	u32 nr_cgroups; /* entries of the map cgroup_rules */
	struct comm_rule comms[MAX_COMM_RULES];
	struct ticket tickets[MAX_TICKETS]; /* at id modulo MAX_TICKETS */
};

/*
 * Ids of tickets, 0: none. A map keeps them for each thread of a process, and userspace hands that
 * map from one load to the next. Those of the leader count.
 */
struct arm_member {
	u32 exec; /* of the 'scx_roost exec' that started the process */
	u32 pid;  /* of a rule that names the process or an ancestor */
	u32 tgid; /* the process */
};

/* What userspace sets for a process; roost_assign walks its threads. */
struct arm_assignment {
	u32 exec, pid; /* as in arm_member; 0: keep that one */
	u32 threads;   /* how many threads have been visited */
};

/* ---- are the sums right? (audit.bpf.h) ---- */

struct audit {
	u64 util_drift; /* sum over CPUs of |util_est - what its tasks added| */
	u64 util_est;	/* its sum over CPUs */
	u64 nr_tasks;
	u64 nr_joined; /* tasks that some CPU counts */
};

#endif /* ROOST_INTF_H */
