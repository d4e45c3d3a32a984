/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy's state of a CPU, an LLC, a task, a wakeup, a cgroup. Facts, which never change after
 * load, are in intf.h. All state starts as zero. What features read of CPUs and tasks is kept all
 * the time, because any feature may be switched on later: features only decide what is done.
 */
#ifndef ROOST_STATE_H
#define ROOST_STATE_H

#include "../intf.h"

enum {
	CACHELINE = 64,
	NO_CPU = -1,
	NR_DELAYED = 4,		/* a power of two: indexes are masked by it */
	SCHED_BATCH_POLICY = 3, /* uapi: SCHED_BATCH, SCHED_IDLE */
	SCHED_IDLE_POLICY = 5,
};

/*
 * Which tasks a waker wakes (kernel: task_struct.last_wakee, wakee_flips, wakee_flip_decay_ts). The
 * idle task's record is in its CPU's state.
 */
struct waker_state {
	u64 decay_at;	/* when flips were last halved, ns */
	u32 last_wakee; /* pid */
	u32 flips;
};

/* How far a search for work goes. */
enum steal_level {
	STEAL_LLC,
	STEAL_NODE,
	STEAL_MACHINE,
	NR_STEAL_LEVELS,
};

/* How the task gets the chosen CPU. */
enum placing {
	PLACE_BUSY, /* queue behind the task that runs there */
	PLACE_IDLE, /* the CPU is idle: run there at once */
	PLACE_NEXT, /* run there as soon as the waker sleeps, ahead of its queue */
};

struct placement {
	s32 cpu;
	enum placing how;
	enum roost_stat rung; /* the rung that decided */
};

/*
 * One wakeup or fork: the facts gathered before the decision, and the decision. It holds only
 * numbers and no pointers. So it can be passed to a subprogram, which the verifier then checks once
 * for any wakeup. The tasks are separate arguments.
 *
 * Each CPU has one for each arm (wakeup_of()), not on the stack: the verifier follows the values in
 * a stack, and would check a path for each of them. So it is not cleared between wakeups.
 * fits_scale, fits_rt, vacant_ns and at are valid only where their feature or subprogram has set
 * them.
 */
struct wakeup {
	u64 now;      /* ns */
	u32 features; /* roost_feature bits */
	u32 arm;      /* the task's arm, which these features are of */
	u32 waker_pid;
	u32 pid;
	s32 this_cpu;  /* the CPU that runs select_cpu: the waker's */
	s32 prev;      /* where the task last ran; NO_CPU if not allowed now */
	s32 last_cpu;  /* the same, allowed or not */
	u32 claim_ttl; /* ns */
	bool fork;
	bool sync; /* the waker says it is about to sleep, and is not exiting */
	bool this_allowed;
	bool waker_pcpu_kthread; /* the waker is a kthread bound to this CPU, in task context */

	/* From the task's state, set by hand_over() before the groups of rungs run. */
	bool sched_idle;  /* policy SCHED_IDLE, or a group with cpu.idle */
	bool short_burst; /* its usual burst is shorter than the migration cost */
	s32 recent;	  /* the recently used CPU; NO_CPU: none */
	u32 util;	  /* estimated utilisation, 0..CAPACITY_SCALE */
	u32 fits_scale;	  /* util_fits: tunables of its arm */
	u32 fits_rt;
	u64 vacant_ns;	  /* how long a core must be idle to be vacant for this task (vacant.h) */
	bool vacant_core; /* [core_first] [smt_spread] the target's LLC has such a core */

	struct placement at; /* the decision, where a subprogram made it */

	/* In BPF, the counters of the arm on this CPU: count_wakeup() is one addition. */
	u64 counts[ROOST_NR_STATS];
};

/* The idle periods of a CPU (avg_idle.h), ns. */
struct idle_time {
	u64 since; /* when the current one began; 0: none */
	u64 mean;
};

/* A task that sleeps, and is still counted in the queue (delayed_dequeue.h). */
struct delayed {
	u64 key; /* which sleep of which task; 0: the slot is free; atomic */
	u64 vruntime;
	u64 weight;
};

/*
 * One CPU's run queue, its running task and its signals. Callbacks that hold the CPU's rq lock
 * write it. Thieves, wakers and timers on any CPU also change the fields marked "atomic". Other
 * CPUs also store to help_for, old_waits, core_mask, yielded_to, rescued_until, dispatched_at and
 * mean_rest. select_cpu, which holds no rq lock, writes idle_waker of its own CPU.
 */
struct cpu_state {
	/* the queue: running and waiting tasks (queue.h) */
	u64 avg_vruntime; /* weighted mean of their virtual run times, ns at NICE0_WEIGHT; atomic */
	u64 weight;	  /* sum of their weights; atomic */
	/* of avg_vruntime, times weight (mean_moves()); a thief at the same time may undo it */
	s64 mean_rest;
	/* by how much tasks that sleep keep it ahead of the mean, times weight (clock_stays()) */
	u64 kept_ahead;
	/* how far running has moved the mean, virtual ns; compared within the LLC (balance.h) */
	u64 progress;
	u64 util_est; /* sum of their estimated utilisation (util_est.h); atomic */

	struct delayed delayed[NR_DELAYED];
	u32 any_delayed; /* some of them may be in use */

	/* the running task; curr_pid == 0: none of our class */
	u32 curr_pid;
	u32 curr_weight;
	u64 curr_deadline;  /* virtual */
	u64 curr_vruntime;  /* virtual run time at curr_start */
	u64 curr_start;	    /* ns: when it began to run, or dispatch last kept it */
	u64 curr_slice;	    /* ns it may run while others wait */
	u64 curr_vprot;	    /* virtual: up to where it is protected (protects()) */
	u64 curr_request;   /* ns that the running task requested */
	u64 least_request;  /* ns: the shortest request of those with a custom slice */
	u64 short_requests; /* how many of those are in the queue; atomic */
	/* virtual: from here on one that waits and asks for little is eligible; 0: none */
	u64 due;
	u32 curr_rules;	     /* FAIR_* bits of the running task */
	u32 curr_untimed;    /* a tick ends its slice, no timer (slice_timer.h) */
	u32 changed_pid;     /* the task that ran last, if it stopped only to be changed */
	u32 curr_light;	     /* [burst_slice] its requests are short */
	u64 charged_at;	     /* ns: when the running task was last charged, or began */
	u32 curr_sched_idle; /* policy SCHED_IDLE, or a group with cpu.idle */
	u32 idle_marked;     /* our bit in the LLC's idle set is set */
	/* ns: when a wakeup claimed this idle CPU for its task (claim.h); 0: none; atomic */
	u64 claim;
	/* the same for the core, kept in the state of its first thread; atomic */
	u64 core_claim;
	u64 placed_started; /* ns: when a task that was placed here as idle last began to run */
	u64 busy_since;	    /* ns: when it last stopped being idle */
	/* ns: when a task was last sent away from the core; kept like core_claim; atomic */
	u64 spread_at;

	/* signals (signal.h) */
	u64 folded_at;	/* ns */
	u64 load_since; /* ns: load_sum is complete up to here */
	u64 load_sum;	/* integral of weight over time since folded_at */
	u64 busy_sum;	/* ns run since folded_at, as time at full speed */
	u64 load_avg;	/* decayed mean of weight, with blocked tasks */
	u32 util_avg;	/* decayed mean of running, 0..CAPACITY_SCALE */
	u32 ticked;	/* a tick has measured its speed */
	u32 slow;	/* what was missing to full speed at the last tick, 0..CAPACITY_SCALE - 1 */
	s64 load_moved; /* load that migrating tasks brought or took since folded_at; atomic */

	/* set in ops.init, and when a thread of the core goes or comes */
	/* the core's threads as bits of this CPU's word; 0: they lie in several words */
	u64 core_mask;

	/* 1 + the CPU whose queue this CPU was kicked to help; 0: none */
	u32 help_for;
	/* the LLC in which its tick last looked for abandoned queues */
	u32 rescue_llc;
	u32 balance_llc;		    /* the other LLC whose queues its tick last compared */
	struct idle_time idle_wakeup;	    /* ended by wakeups only */
	struct idle_time idle_every;	    /* ended by any arrival */
	u64 steal_cost[NR_STEAL_LEVELS];    /* the most that a search of the level costs, ns */
	u64 steal_cost_at[NR_STEAL_LEVELS]; /* ns: when that last changed */
	/* ns: when this CPU last compared its queue with others */
	u64 balanced_at;
	u64 dispatched_at; /* ns: when this CPU last chose a task */
	u64 turn_at;	   /* ns: when its two queues change roles (aging.h) */
	u64 slice_cap;	   /* ns: no task runs longer while others wait; 0: no cap */
	u32 young;	   /* which of its two queues is the young one: 0, 1 */
	u32 old_waits;	   /* the old one may hold tasks */
	/* not 0: the old one is late, and this many of its tasks run per earliest deadline */
	u32 late;
	u32 yielded_to; /* pid of a task in its queue to which another has yielded; 0: none */
	u32 late_turns; /* how many of these are left, before the earliest deadline runs once */
	u64 served_at;	/* ns: when another CPU was last assigned this queue for balance; atomic */
	u64 looked_at;	/* ns: when another CPU last looked for a task to rescue here; atomic */
	u64 rescued_until;     /* ns: another CPU rescues tasks from here until then */
	u64 serve_until;       /* ns: when assigned_cpu lapses */
	u32 assigned_cpu;      /* 1 + the CPU whose queue this CPU is to serve next; 0: none */
	u32 assigned_balances; /* 1: assigned_cpu is for balance; 0: for a rescue */
	/* how many tasks of that queue are still to run before one of its own */
	u32 serve_turns;
	u32 cpuperf;	    /* the last speed request, 0..CAPACITY_SCALE */
	u64 timer_at;	    /* ns: when the slice timer fires; 0: it is not started; atomic */
	u64 delay_timer_at; /* the same for the delay timer */
	/* 1: its queues may hold tasks that were parked, uncounted (parking.h); atomic */
	u64 uncounted;
	u32 budgeted; /* 1: a cgroup limits the running task's time (bandwidth.h) */
	struct waker_state idle_waker;
} __attribute__((aligned(2 * CACHELINE)));

/* Sets of an LLC's CPUs (cpu_set.h). */
enum cpu_set {
	SET_IDLE,	 /* CPUs that have none of our tasks to run, or only a SCHED_IDLE one */
	SET_IDLE_CORE,	 /* those whose whole core is idle */
	SET_WAITING,	 /* CPUs whose queue holds a task that another CPU may run */
	NR_CPU_SETS = 4, /* a power of two: indexes are masked by it */
};

/* One LLC. A CPU is bit pos % 64 of word pos / 64 of a set; words are changed by atomics only. */
struct llc_state {
	u64 set[NR_CPU_SETS][CPU_WORDS];
	u64 summed_at;	 /* ns: when the sums below were made; atomic */
	u64 rescue_at;	 /* ns: when one of its CPUs last looked for abandoned queues; atomic */
	u64 load;	 /* sum of the CPUs' load_avg */
	u32 util;	 /* sum of the CPUs' cpu_demand() */
	u32 scan_budget; /* CPUs that a wakeup may visit (kernel: sd_share->nr_idle_scan) */
	u32 nr_running;	 /* runnable tasks of its CPUs, of all classes */
	u32 nr_away;	 /* CPUs gone since the load (hotplug.h) */
} __attribute__((aligned(CACHELINE)));

/* For each set, the LLCs in which it is not empty; kept if there is more than one LLC. */
struct llc_sets {
	u64 set[NR_CPU_SETS][CPU_WORDS] __attribute__((aligned(CACHELINE)));
};

/* Is the machine split into domains? (domain.h) */
struct domains {
	/* a mask of this many CPUs excludes no CPU; NO_MASK: the machine is split */
	u32 whole;
	u32 next;	   /* the CPU to check next */
	u32 differ;	   /* two CPUs checked so far are in different domains */
	u64 first;	   /* the domain of the first CPU checked */
	u64 looked_at;	   /* ns; atomic */
	u8 away[MAX_CPUS]; /* 1: the CPU is offline (hotplug.h) */
};

struct task_state {
	/*
	 * The policy of its arm as of its last wakeup or request. Callbacks read this and not the
	 * live image, which may change between them.
	 */
	struct task_policy pol;
	u32 pol_generation; /* of the image from which it was copied */
	u32 arm;	    /* which arm the task is on */
	u32 rules_seq;	    /* the rules (arm_rules.seq) that gave the arm */
	u64 css_set;	    /* and the cgroups (kernel: task_struct.cgroups) */
	u64 woken_at;	    /* ns: when it woke; 0: it has run since, or was forked */
	u32 by_fits;	    /* that wakeup was placed on a busy CPU by util_fits */

	/* queue */
	u64 vruntime; /* virtual run time, ns at NICE0_WEIGHT; valid while joined */
	u64 deadline; /* virtual; key of the deadline queue */
	s64 lag;      /* what the queue owes it, virtual ns; valid while not joined */
	u64 left_at;  /* ns: when it left its queue */
	/* ns: when it last began to wait; 0: it runs or sleeps (kernel: scx.runnable_at) */
	u64 waits_since;
	s32 on_rq;	  /* 1 + the CPU whose queue counts it; 0: none (kernel: on_rq, a state) */
	u32 on_rq_weight; /* the weight that queue counts */
	u32 on_rq_util;	  /* its part of that CPU's util_est (util_est.h) */
	u32 on_rq_short;  /* 1: it counts in that CPU's short_requests */
	/* 1 + its slot among the delayed of that CPU; 0: none (delayed_dequeue.h) */
	u32 delayed_in;
	u64 delayed_key;  /* the key of that slot, while it is the task's */
	u32 weight;	  /* effective: nice and cgroups */
	u32 nice_weight;  /* from nice or SCHED_IDLE only */
	u64 custom_slice; /* ns from sched_attr.sched_runtime; 0: none */
	u32 idle_policy;  /* policy SCHED_IDLE */
	u32 sched_idle;	  /* that, or a group above it has cpu.idle */
	u32 batch;	  /* policy SCHED_BATCH */

	/* running */
	u64 ran_at;    /* ns: when it last stopped */
	u64 started;   /* ns: when it began to run or was last charged; 0: not running */
	u64 burst_run; /* ns run since it woke */
	u64 burst;     /* ns that it usually runs between wakeup and sleep; 0: unknown */

	/* signals */
	u64 folded_at;	    /* ns */
	u64 runnable_since; /* ns; 0: asleep */
	u64 runnable_sum;   /* ns runnable since folded_at */
	u64 running_sum;    /* ns run since folded_at, as time at full speed */
	u64 est_at;	    /* folded_at when util_est was last renewed */
	u32 runnable_avg;   /* 0..CAPACITY_SCALE */
	u32 util_avg;	    /* 0..CAPACITY_SCALE */
	u32 util_est;	    /* its usual utilisation as of its last sleep; 0..CAPACITY_SCALE */
	s32 load_cpu;	    /* 1 + the CPU whose load_avg holds its load; 0: none */

	/* placement */
	u64 idle_at;   /* ns: a time before idle_cpu was checked; the stamp of a claim there */
	u64 idle_seen; /* that CPU's placed_started, after the check */
	/* 1 + the CPU on which it was placed as idle and has not run yet; 0: none */
	s32 idle_cpu;
	s32 recent_cpu; /* 1 + the recently used CPU (kernel: recent_used_cpu); 0: none */
	/* ns: when it moves to delay_cpu unless it has run by then; 0: no delay; atomic */
	u64 delay_at;
	u64 delay_began; /* ns: when the delay began */
	/* 1: a delayed move or smt_spread put it on another CPU, where it has not run yet */
	u8 pushed;
	s32 delay_cpu; /* 1 + the CPU to which it moves */
	struct waker_state waker;

	/* cgroups, as indexes into their table; 0: the root */
	u32 cgroup;
	/* the group whose runnable includes it; 0: none, because the root keeps no sum */
	u32 counted_in;
	u32 counted_weight; /* with this weight */
	u64 competed;	    /* the sum against which its weight was worked out (competing()) */

	/* CPU limits (bandwidth.h) */
	u32 budget_of;	 /* the limit on whose budget it runs; 0: none, or it does not run */
	u64 budget;	 /* ns that it may run from budget_from on */
	u64 budget_from; /* ns that it had run in all when the budget began */
	u64 granted;	 /* ns of the budget that it holds while it waits; atomic */
	u64 parked_in;	 /* the group that counts it as parked; 0: none; atomic */
	u32 returning;	 /* it is about to return to user mode, and holds no lock of the kernel */
	u32 over_budget; /* it runs without budget until it returns to user mode */
};

/* When the frequency of a CPU counts as low. */
struct freq_rule {
	u32 low;      /* this or less; 0: never */
	u32 stale_ms; /* as in struct policy_image */
};

struct cgroup_state {
	u64 runnable;	   /* sum of the nice weights of its own runnable tasks; atomic */
	u64 share;	   /* against children of the root, as of the last sweep (group_share()) */
	u64 children;	   /* sum of what its child groups count for, as of the last sweep */
	u64 next_children; /* the sum in the making */
	u32 cpu_weight;	   /* cpu.weight scaled to NICE0_WEIGHT = 100 */
	u32 weight;	   /* cpu_weight, or with cpu.idle that of a SCHED_IDLE task */
	u32 parent;	   /* index; the root's parent is itself */
	u32 busy;	   /* how often a task of its own was runnable; NICE0_WEIGHT: always */
	u32 counted;	   /* what it counts for in its parent's sum in the making */
	u32 idle;	   /* cpu.idle */
	u32 sched_idle;	   /* cpu.idle, its own or of a group above it, as of the last sweep */
	u64 held; /* indexes of the group and those below it; of a child of the root; atomic */
	u32 top;  /* the child of the root that it is below; itself, if it is one */
};

/*
 * The CPU limit of a cgroup (cpu.max, bandwidth.h) and its accounting. Times are ns. The setter
 * writes the first part, callbacks on any CPU the rest.
 */
struct bandwidth {
	u64 id;	    /* kernel: kernfs id of the cgroup, which is its inode */
	u64 quota;  /* in a period; 0: no limit */
	u64 period; /* not 0 where there is a quota */
	u64 burst;

	u64 runtime;	/* signed: what is left of the quota; below 0: owed; atomic */
	u64 period_end; /* atomic */
	u64 parked;	/* parked tasks whose nearest limit this is; atomic */
	/* when a task was first parked, or throttled_ns last grew; 0: it has budget; atomic */
	u64 throttled_since;
	/*
	 * The nearest group with a limit, from this one upwards; 0: none. Plus MAX_CGROUPS times
	 * the count of limit changes at which it was found. One word, so that no CPU sees parts of
	 * two.
	 */
	u64 near;

	/* counted since the group, or the scheduler, began */
	u32 periods;	  /* periods begun */
	u32 throttled;	  /* times that it ran out of budget while a task wanted to run */
	u32 parks;	  /* how often tasks were parked; may miss one */
	u64 throttled_ns; /* ns without budget while a task wanted to run */
	u64 used_ns;	  /* ns that its tasks ran; atomic */
} __attribute__((aligned(2 * CACHELINE)));

/* State of all limits together. */
struct limits {
	u64 changes; /* how often limits were set; atomic */
	u32 any;     /* a group has had a limit since the load */
} __attribute__((aligned(CACHELINE)));

/* Groups that need an index and have none (cgroup.bpf.h). */
struct cgroups_refused {
	u64 count; /* how many there are; atomic */
	u64 last;  /* kernel: the kernfs id of the one that was refused last */
};

/* A queue of parked tasks (parking.h). */
struct park {
	u64 timer_at;	 /* ns: when its timer fires; 0: it is not started; atomic */
	u64 came_at;	 /* ns: when a task was last parked there; atomic */
	u64 rests_until; /* ns: the timer does not fire before */
} __attribute__((aligned(CACHELINE)));

#endif /* ROOST_STATE_H */
