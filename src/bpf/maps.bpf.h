/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All maps and globals of the scheduler. Facts and tunables are set by userspace and constant to
 * the verifier. The policy may change at any time; only userspace writes it. State with an
 * index is in globals, not maps: an access then needs no lookup and no test for NULL.
 */
#ifndef ROOST_MAPS_BPF_H
#define ROOST_MAPS_BPF_H

#include "policy/state.h"

/* ---- facts, set before load ---- */

const volatile struct machine_facts machine = {};
const volatile struct cpu_facts cpus[MAX_CPUS] = {};
const volatile struct llc_facts llcs[MAX_LLCS] = {};
const volatile struct node_facts nodes[MAX_NODES] = {};
const volatile u16 llc_cpus[MAX_CPUS] = {};
const volatile struct tunables tun = {};
const volatile u8 keeps_task_storage = 0; /* the kernel does, after a fork that it refused */

/*
 * Faults of builds for tests. old_paths: do not use what older kernels lack; spin: widen races, and
 * lose the delay timer.
 */
#ifdef ROOST_FAULTS
const volatile u8 fault_old_paths, fault_spin;
#else
#define fault_old_paths false
#define fault_spin	false
#endif

/* ---- policy, set before load and published again while the scheduler runs ---- */

struct policy_store policy = {};
struct arm_rules rules = {};
struct arm_assignment assignment = {};

/*
 * Frequencies as userspace reads them: kHz, and in the upper half the time of the reading, ms of
 * clock_ns(). 0: unknown.
 */
u64 cpu_freqs[MAX_CPUS] = {};

/*
 * How many CPUs of each LLC a scan may visit, and in the upper half until when that is valid, ms of
 * clock_ns(). 0: unknown.
 */
u64 llc_scans[MAX_LLCS] = {};

/* ---- state ---- */

struct cpu_state cpu_states[MAX_CPUS] = {};
struct llc_state llc_states[MAX_LLCS] = {};
struct llc_sets sets_of_llcs = {};
struct domains the_domains = {};
struct cgroup_state cgroup_states[MAX_CGROUPS] = {};
u64 cgroups_used[CGROUP_WORDS] = {}; /* bit: the index is in use */
u64 cgroup_words = 0;		     /* how far a sweep goes; only grows; atomic */
struct cgroups_refused cgroups_refused = {};
struct bandwidth bandwidths[MAX_CGROUPS] = {};
struct limits all_limits = {};
struct park parks[PARK_QUEUES] = {};
u64 swept_at = 0; /* ns: when a tick last swept cgroups */
/* The word where the sweep goes on: first all are measured, then all are settled. */
u32 sweep_next = 0;
u32 sweep_words = 0; /* how far this sweep goes */

u32 timers_set = 0; /* bool */

volatile u32 unknown_zero = 0; /* always 0, unknown to the verifier (port.h: from_zero) */

struct cpu_stats {
	struct wakeup wakeup; /* with the counters of stats.tbl.h */
	u64 hist[ROOST_NR_HISTS][NR_HIST_BUCKETS];
	u64 hist_sum[ROOST_NR_HISTS]; /* ns */
} __attribute__((aligned(CACHELINE)));

/*
 * The wakeup and the counters of each arm on each CPU, a CPU's rows together; userspace sums the
 * counters. A map of its own, because userspace sizes it for the kernel's CPUs before the load
 * (src/daemon/counters.rs). The verifier knows the number of CPUs, so an index needs no bound here.
 */
struct cpu_stats stats[MAX_ARMS] SEC(".bss.stats");

/* The state of each task; which of the two maps has it: task_state.bpf.h. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} task_states SEC(".maps");

/* By address of the task. Userspace sets how many there may be. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct task_state);
} hashed_states SEC(".maps");

struct task_state blank_state = {};

/*
 * Threads of processes that were put on an arm, by address of the task. The daemon passes it from
 * one load to the next. What dies between two loads is left in it (arm.bpf.h: member_at()).
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct arm_member);
} arm_members SEC(".maps");

/* For ask_return(): a task that has asked, by its address. Userspace sets how many there may be. */
struct return_work {
	struct bpf_task_work work;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct return_work);
} return_works SEC(".maps");

/* From the id of a cgroup to the arm of the tasks in it and below. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_CGROUP_RULES);
	__type(key, u64);
	__type(value, u32);
} cgroup_rules SEC(".maps");

/* A cgroup of the cpu controller: its settings, and the index of its state if it needed one. */
struct cgroup_entry {
	u64 own;     /* its index; ROOT_CGROUP: none of its own; atomic */
	u64 changes; /* of the settings; atomic */
	u64 period_us;
	u64 quota_us;
	u64 burst_us;
	u64 refused; /* it needed an index, and the table had none for it; atomic */
	u32 parent;  /* the index of the nearest group above that has one */
	u32 weight;  /* cpu.weight */
	u32 idle;    /* cpu.idle */
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cgroup_entry);
} cgroup_entries SEC(".maps");

struct slice_timer {
	struct bpf_timer timer;
};

/* Ends slices on time; one per CPU, never cancelled (slice_timer.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct slice_timer);
} slice_timers SEC(".maps");

struct delay_timer {
	struct bpf_timer timer;
};

/* Moves delayed tasks; one per CPU, never cancelled (delay_queue.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct delay_timer);
} delay_timers SEC(".maps");

struct park_timer {
	struct bpf_timer timer;
};

/* Releases parked tasks; one per queue of them (parking.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PARK_QUEUES);
	__type(key, u32);
	__type(value, struct park_timer);
} park_timers SEC(".maps");

#endif /* ROOST_MAPS_BPF_H */
