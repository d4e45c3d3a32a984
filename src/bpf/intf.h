/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What BPF, native C and Rust share: sizes, feature bits, counters, and the facts and tunables that userspace
 * writes before load. Plain C; bindgen reads it too.
 */
#ifndef ROOST_INTF_H
#define ROOST_INTF_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
#endif

enum {
	MAX_CPUS = 1024,     /* CPU ids below this; a larger machine is refused at load */
	MAX_LLCS = MAX_CPUS, /* without an L3 or L2 every core may be its own LLC */
	MAX_NODES = 64,
	MAX_SMT = 8,   /* hardware threads of one core */
	MAX_ARMS = 16, /* a power of two: indexes are masked by it */
	MAX_CGROUPS = 4096,
	CGROUP_WORDS = MAX_CGROUPS / 64,
	PARK_QUEUES = 64, /* queues of tasks whose group has used up its CPU limit */
	NR_HIST_BUCKETS = 24,
	WORD_BITS = 64,
	CPU_WORDS = MAX_CPUS / WORD_BITS, /* words of a set of CPUs, of an LLC's CPUs, of a set of LLCs */
	CAPACITY_SCALE = 1024,		  /* kernel: SCHED_CAPACITY_SCALE, the capacity of the biggest CPU */
	NICE0_WEIGHT = 1 << 14,		  /* weight of nice 0 and of cpu.weight 100; 16 times the kernel's, so that a
						   group shared by many tasks still divides well */
};

enum roost_feature_bit {
#define FEATURE(name, source, help)	      FEATURE_BIT_##name,
#define SUBSWITCH(name, parent, source, help) FEATURE_BIT_##name,
#include "features.tbl.h"
#undef SUBSWITCH
#undef FEATURE
	ROOST_NR_FEATURES
};

enum roost_feature {
#define FEATURE(name, source, help)	      FEATURE_##name = 1 << FEATURE_BIT_##name,
#define SUBSWITCH(name, parent, source, help) FEATURE_##name = 1 << FEATURE_BIT_##name,
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

enum cpuperf_mode {
	CPUPERF_OFF,  /* never touch the frequency request; sched_ext sets it to SCX_CPUPERF_ONE at enable */
	CPUPERF_UTIL, /* follow the CPU's utilisation */
};

/* Facts of one CPU, written by userspace before load and never changed: what hotplug changes is in policy/hotplug.h. */
struct cpu_facts {
	u16 llc;      /* index into llc_facts */
	u16 pos;      /* rank among the LLC's CPUs in order of CPU number: its bit in the LLC's words */
	u16 node;     /* NUMA node, dense index */
	u16 core;     /* core, dense index over the machine */
	u16 capacity; /* 1..CAPACITY_SCALE, the kernel's cpu_capacity; 1024 on a symmetric machine */
	u8 online;
	u8 nr_sib;	  /* other online hardware threads of the core: 0 without SMT */
	u16 sib[MAX_SMT]; /* their CPU numbers */
	u16 nohz;	  /* 1: the tick may stop while a task runs (kernel: nohz_full=) */
};

/* One last-level cache. LLCs are numbered node by node: those of one node are neighbours in the table. */
struct llc_facts {
	u16 first;    /* index of its first CPU in llc_cpus[] */
	u16 nr_cpus;  /* online CPUs */
	u16 nr_words; /* words that hold one bit per CPU */
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
	u32 nohz; /* 1: some CPU has its nohz set */
};

/* What is settled at load. */
struct tunables {
	u32 cpuperf;	   /* cpuperf_mode */
	u32 timers;	   /* 0: bpf_timer is not to be had (PREEMPT_RT): slices end at the tick */
	u64 wait_bound_ns; /* no task that could run waits longer: half of the watchdog's time (aging.h) */
	u32 imbalance_pct; /* kernel: sd->imbalance_pct, 117 between cores, in wake_affine's weight rule */
	u32 frozen;	   /* 1: there is no arm but arm 0, and it never changes */
	u32 features;	   /* frozen: roost_feature bits of it */
	u32 limits;	   /* 1: cpu.max is enforced */
};

/* What a task takes of its arm with each wakeup and each new request. */
struct task_policy {
	u32 features; /* roost_feature bits */
	u32 arm;      /* whose this is */
	/* ns */
	u64 slice_ns;	  /* request of a task that sets none (kernel: base_slice_ns) */
	u64 min_slice_ns; /* a running task is not preempted by a wakeup before this */
	u64 claim_ttl_ns; /* at most a second; with claim_expiry: an older claim counts for nothing */
	/* util_fits */
	u32 fits_scale; /* demand counts so many times as much, of CAPACITY_SCALE; that itself: no margin */
	u32 fits_rt;	/* 1: capacity less real-time, deadline and interrupt time */
	/* delay_migration */
	u32 delay_ns; /* how long a move is delayed; its threshold is in policy_image.threshold */
	u32 pad;
};

/*
 * One policy: what may change while the scheduler runs, for the tasks that are on this arm. Arm 0 is everybody else's; an arm
 * that is not used is a copy of it, for tasks that are not told yet.
 */
struct arm {
	struct task_policy task;
	/* ns, of the machine as a whole: read from arm 0 only */
	u64 rescue_ns;	       /* a queue whose CPU has not dispatched for this long is open to rescue */
	u64 migration_cost_ns; /* a task that ran this recently is not stolen (kernel: sysctl_sched_migration_cost) */
};

/* All that may change, in one piece. */
struct policy_image {
	u32 generation; /* one more with every publication */
	u32 nr_arms;	/* used ones */
	struct arm arm[MAX_ARMS];
	u16 capacity[MAX_CPUS]; /* of each CPU as cpufreq limits it now, 1..CAPACITY_SCALE; 0: offline */
	/*
	 * What is a low frequency, for tasks of each arm: this or less; 0: none is. In kHz, as userspace reads frequencies; or,
	 * where freq_stale_ms is 0, as ticks see them, of CAPACITY_SCALE.
	 */
	u32 threshold[MAX_ARMS][MAX_CPUS];
	u32 freq_stale_ms; /* a frequency that was read longer ago is not known */
};

/*
 * One image is live, userspace writes the other and then flips the index (src/publish/). Readers load the index once
 * and reach the image through it.
 */
struct policy_store {
	struct policy_image slot[2];
	u32 index;
};

/* ---- who is on which arm (arm.bpf.h) ---- */

enum {
	MAX_COMM_RULES = 64,
	MAX_CGROUP_RULES = 256,
	MAX_TICKETS = 512, /* a power of two: indexes are masked by it */
	COMM_LEN = 16,	   /* kernel: TASK_COMM_LEN */
};

/* Tasks whose name matches are on that arm. Of several the first counts. */
struct comm_rule {
	char glob[COMM_LEN]; /* * and ? as in a shell; ends with 0 */
	u32 arm;
};

/* What a process was told: it is on an arm while the ticket is good. So an arm is deleted without looking for its members. */
struct ticket {
	u32 id; /* 0: none */
	u32 arm;
};

/* Userspace alone writes it. A change is told by seq, which grows after it: a task then asks anew. */
struct arm_rules {
	u32 seq; /* from 2 on; 1 and 0 mean that a task must ask anew, once or twice */
	u32 nr_comms;
	u32 nr_cgroups; /* of the map cgroup_rules */
	struct comm_rule comms[MAX_COMM_RULES];
	struct ticket tickets[MAX_TICKETS]; /* at their id's remainder */
};

/* Kept with the threads of a process by the kernel, and by us over loads; the leader's counts. Ids of tickets; 0: none. */
struct arm_member {
	u32 exec; /* it was started by 'scx_roost exec' */
	u32 pid;  /* a rule names the process or one above it */
};

/* What userspace tells a process: roost_tell goes over its threads. */
struct arm_told {
	struct arm_member member; /* 0: that one stays */
	u32 threads;		  /* how many have been told */
};

/* ---- are the sums right? (audit.bpf.h) ---- */

struct audit {
	u64 util_drift; /* over all CPUs, by how much util_est is not the sum of what its tasks gave */
	u64 util_est;	/* the sum over all CPUs */
	u64 nr_tasks;
	u64 nr_joined; /* those that some CPU counts */
};

#endif /* ROOST_INTF_H */
