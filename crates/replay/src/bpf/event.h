/* SPDX-License-Identifier: GPL-2.0-only */
/* What the recorder hands to Rust: a decision of the fair class, and what it saw. */
#ifndef ROOST_REPLAY_EVENT_H
#define ROOST_REPLAY_EVENT_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

enum {
	MAX_QUEUED = 32, /* decisions over more waiting tasks are only counted */
};

enum kind {
	KIND_PICK,   /* pick_eevdf() */
	KIND_WAKEUP, /* wakeup_preempt_fair() */
};

/* kernel: struct sched_entity of a task */
struct entity {
	u32 pid; /* 0: there is none */
	u8 on_rq;
	u8 delayed; /* it sleeps, and stays in the queue until its lag is gone */
	u8 policy;
	u8 custom_slice;
	u64 vruntime, deadline, vprot; /* virtual ns */
	u64 slice;		       /* ns */
	u64 weight;		       /* kernel: load.weight; nice 0: 1 << 20 */
};

struct event {
	u32 kind;
	u32 cpu;
	u32 protect;	 /* the pick heeds the running task's protection */
	u32 answer;	 /* the pid picked; 0: no pick was made */
	u32 buddy;	 /* kernel: the pid of cfs_rq->next, before the decision */
	u32 buddy_after; /* KIND_WAKEUP: and after it */
	u32 wakee;	 /* KIND_WAKEUP: its pid */
	u32 flags;	 /* KIND_WAKEUP: kernel's WF_* */
	u32 nr_queued;	 /* of queued[] */
	u32 pad;
	u64 vprot_after; /* KIND_WAKEUP: the running task's, after the decision */
	u64 ran;	 /* ns that the running task has run since it was picked */
	struct entity curr;
	struct entity queued[MAX_QUEUED]; /* in no order */
};

/* Decisions that were seen and not recorded, by reason. */
enum skipped {
	SKIPPED_GROUP, /* a queue of groups, or of a group */
	SKIPPED_LONG,  /* more than MAX_QUEUED tasks wait */
	SKIPPED_FULL,  /* the buffer was full */
	NR_SKIPPED,
};

#endif /* ROOST_REPLAY_EVENT_H */
