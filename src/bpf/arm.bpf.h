/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which arm a task is on. Userspace sets the rules (struct arm_rules, struct arm_member). In order
 * of precedence: how the task's process was started; a rule about its process; a rule about its
 * cgroup or the nearest above it; a rule about its name; else arm 0.
 *
 * A task looks up its arm, at wakeups and ticks, when the rules or its cgroups have changed since
 * it last did. So a change of a rule or a move of a task needs no search for tasks. Neither a
 * tracer nor the cpu controller is needed to follow moves.
 *
 * Limit: cgroups are compared by the address of their set. If the kernel frees a set and makes
 * another at its address, both while the task sleeps, that move is missed until the next change.
 */
#ifndef ROOST_ARM_BPF_H
#define ROOST_ARM_BPF_H

#include "ctx.bpf.h"

#define NO_ARM	       MAX_ARMS
/* Each step of a match goes on in the name, or restarts one letter later. */
#define GLOB_STEPS_MAX (COMM_LEN * COMM_LEN + COMM_LEN)

struct comm_name {
	char text[COMM_LEN];
};

/* The arm of a ticket; NO_ARM: the ticket is no longer valid. */
static __always_inline u32 arm_of_ticket(u32 id)
{
	struct ticket *ticket = &rules.tickets[masked(id, MAX_TICKETS)];

	return id && ticket->id == id ? ticket->arm : NO_ARM;
}

/*
 * What the thread at address @key of process @tgid holds, copied, because the map reuses entries at
 * once. A thread that died between two loads has left its entry, and another thread may have its
 * address now.
 */
static __always_inline bool member_at(u64 key, u32 tgid, struct arm_member *copy)
{
	struct arm_member *member = bpf_map_lookup_elem(&arm_members, &key);

	if (!member)
		return false;
	*copy = *member;
	return copy->tgid == tgid;
}

/* The tickets of the task's process: the leader's, but a dead leader has none (Linux 6.19). */
static __always_inline bool member_of(struct task_struct *p, struct arm_member *copy)
{
	u64 leader = (u64)p->group_leader;

	if (member_at(leader, p->tgid, copy))
		return true;
	return leader != (u64)p && member_at((u64)p, p->tgid, copy);
}

/* The arm by the tickets of the task's process. */
static __always_inline u32 arm_of_process(struct task_struct *p)
{
	struct arm_member member;
	u32 arm;

	if (!member_of(p, &member))
		return NO_ARM;
	arm = arm_of_ticket(member.exec);
	return arm < MAX_ARMS ? arm : arm_of_ticket(member.pid);
}

/*
 * The arm by the nearest cgroup with a rule, from that of @css upwards. RCU keeps the memory of a
 * removed cgroup until the program ends.
 */
subprog u32 arm_of_cgroup(u64 css)
{
	while (css && may_loop) {
		/* A cgroup begins with its own state (kernel: struct cgroup.self). */
		struct cgroup *cgrp = (void *)css;
		u64 id;
		u32 *arm;

		id = BPF_CORE_READ(cgrp, kn, id);
		arm = bpf_map_lookup_elem(&cgroup_rules, &id);
		if (arm)
			return *arm;
		css = (u64)BPF_CORE_READ(cgrp, self.parent);
	}
	return NO_ARM;
}

static __always_inline char letter(const char *text, u32 i)
{
	return text[masked(i, COMM_LEN)];
}

/* Does the name match? At a mismatch the last * takes one letter more. */
subprog bool comm_matches(const struct comm_name *name nonnull, u32 rule)
{
	const struct comm_rule *r = &rules.comms[masked(rule, MAX_COMM_RULES)];
	u32 i, g = from_zero, n = from_zero, star = COMM_LEN, taken = from_zero;

	for_below (i, GLOB_STEPS_MAX, GLOB_STEPS_MAX) {
		char want = letter(r->glob, g), have = letter(name->text, n);

		if (want == '*') {
			star = g++;
			taken = n;
		} else if (have && (want == have || want == '?')) {
			g++;
			n++;
		} else if (!have) {
			return !want;
		} else if (star < COMM_LEN) {
			g = star + 1;
			n = ++taken;
		} else {
			return false;
		}
	}
	return false;
}

subprog u32 arm_of_comm(const struct comm_name *name nonnull)
{
	u32 i;

	for_below (i, rules.nr_comms, MAX_COMM_RULES) {
		if (comm_matches(name, i))
			return rules.comms[masked(i, MAX_COMM_RULES)].arm;
	}
	return NO_ARM;
}

subprog u32 arm_by_rules(struct task_struct *p trusted)
{
	u32 arm = arm_of_process(p);

	if (arm >= MAX_ARMS && rules.nr_cgroups)
		arm = arm_of_cgroup((u64)BPF_CORE_READ(p, cgroups, dfl_cgrp));
	if (arm >= MAX_ARMS && rules.nr_comms) {
		struct comm_name name;

		__builtin_memcpy(name.text, p->comm, COMM_LEN);
		arm = arm_of_comm(&name);
	}
	return arm < MAX_ARMS ? arm : 0;
}

/* Put the task on the arm that the rules give it. */
static __always_inline void arm_follow(struct task_struct *p, struct task_state *ts)
{
	u64 css_set;
	u32 seq;

	if (tun.frozen)
		return;
	seq = *(volatile u32 *)&rules.seq; /* userspace changes it last */
	css_set = (u64)p->cgroups;
	if (ts->css_set == css_set && ts->rules_seq == seq)
		return;
	ts->css_set = css_set;
	/*
	 * A task that is being renamed (0) may still have its old name: it looks up again. seq is
	 * stored before the lookup, so that a change meanwhile causes another one.
	 */
	__sync_lock_test_and_set(&ts->rules_seq, ts->rules_seq ? seq : 1);
	ts->arm = arm_by_rules(p);
}

/*
 * A thread of the process for which userspace sets tickets. It looks up its arm at its next wakeup
 * or tick.
 */
static __always_inline void arm_assign(struct task_struct *p)
{
	u64 key = (u64)p;
	struct arm_member member;
	struct task_state *ts = task_state_if(p);

	if (!member_at(key, p->tgid, &member)) {
		/* Since Linux 6.19 a dead leader has left the scheduler. */
		if (task_exits(p))
			return;
		member = (struct arm_member){ .tgid = p->tgid };
	}
	if (assignment.exec)
		member.exec = assignment.exec;
	if (assignment.pid)
		member.pid = assignment.pid;
	if (bpf_map_update_elem(&arm_members, &key, &member, BPF_ANY))
		return;
	assignment.threads++;
	if (ts)
		__sync_lock_test_and_set(&ts->rules_seq, 0);
}

/* The task has died, or its fork has failed; or what is at its address is another's. */
static __always_inline void arm_forget(struct task_struct *p)
{
	u64 key = (u64)p;

	if (bpf_map_lookup_elem(&arm_members, &key))
		bpf_map_delete_elem(&arm_members, &key);
}

/*
 * A fork by the current task. The child's cgroups are not set yet: if they turn out to differ from
 * the parent's, it looks up its arm. A new process inherits its parent's tickets. A new thread has
 * its leader's, and also gets a copy, as existing threads do in arm_assign(): a thread that calls
 * exec becomes the leader (kernel: de_thread()).
 */
static __always_inline void arm_inherit(struct task_struct *p, struct task_state *ts)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct task_state *parent_ts = task_state_if(parent);
	struct arm_member member;
	u64 key = (u64)p;

	if (parent_ts) {
		ts->arm = parent_ts->arm;
		ts->rules_seq = parent_ts->rules_seq;
		ts->css_set = parent_ts->css_set;
	}
	if (!member_of(parent, &member)) {
		arm_forget(p);
		return;
	}
	member.tgid = p->tgid;
	bpf_map_update_elem(&arm_members, &key, &member, BPF_ANY);
}

#endif /* ROOST_ARM_BPF_H */
