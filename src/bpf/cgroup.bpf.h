/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of cgroups. The arithmetic is in policy/cgroup.h.
 *
 * Problem: the owner of a group can make any number of groups in it, and the table has MAX_CGROUPS
 * indexes for all.
 *
 * Method: a group gets an index once it needs one: at its first task, its first group below, or the
 * first setting that is not the default. It has the index until it is removed. All groups below one
 * child of the root together may hold as many as are free: the first child half of the table, the
 * next a quarter, each some. A group without an index counts as the nearest group above that has
 * one, in every rule.
 *
 * Limits: users whose groups are below one child of the root share its part. What came while there
 * was no index, tasks and groups below, stays counted above when the group gets one later: tasks
 * until they move, groups until they are made again.
 */
#ifndef ROOST_CGROUP_BPF_H
#define ROOST_CGROUP_BPF_H

#include "bandwidth.bpf.h"
#include "ctx.bpf.h"

#define DEFAULT_CPU_WEIGHT 100 /* kernel: CGROUP_WEIGHT_DFL */

/* ---- a group's entry ---- */

static __always_inline struct cgroup_entry *cgroup_entry(struct cgroup *cgrp)
{
	return bpf_cgrp_storage_get(&cgroup_entries, cgrp, 0, 0);
}

/*
 * cpu.idle, from the cpu controller's own state: the callback's arguments hold it only from Linux
 * 7.3 on.
 */
static __always_inline bool cpu_idle_of(struct cgroup *cgrp)
{
	u64 at = bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id) * sizeof(void *);
	void *css = NULL, *subsys = __builtin_preserve_access_index(&cgrp->subsys);
	struct task_group *tg;

	/* NULL while the group is being made: a new one is not idle. */
	bpf_probe_read_kernel(&css, sizeof(css), subsys + at);
	if (!css)
		return false;
	tg = css - bpf_core_field_offset(struct task_group, css);
	return BPF_CORE_READ(tg, idle);
}

/*
 * It is being removed (kernel: cgroup_is_dead()). Until its cpu controller is offline, some time
 * after rmdir() returned, a load still initializes it. But it gets no storage any more.
 */
static __always_inline bool cgroup_is_dead(struct cgroup *cgrp)
{
	return !(cgrp->self.flags & CSS_ONLINE);
}

/*
 * The kernel allocates here without reclaim, and fails if it cannot take a lock at once
 * (kmalloc_nolock()). A failure ends a load, so it is tried again for a moment.
 */
#define ENTRY_WAIT_NS 10000000ULL

static __always_inline struct cgroup_entry *make_entry(struct cgroup *cgrp)
{
	u64 end = clock_ns() + ENTRY_WAIT_NS;
	struct cgroup_entry *e;

	do
		e = bpf_cgrp_storage_get(&cgroup_entries, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	while (!e && !cgroup_is_dead(cgrp) && (s64)(clock_ns() - end) < 0 && may_loop);
	return e;
}

/* ---- indexes ---- */

static __always_inline u32 scaled_weight(u32 weight)
{
	return weight * NICE0_WEIGHT / 100;
}

static __always_inline void sweep_reaches(u64 words)
{
	u64 seen;

	do
		seen = cgroup_words;
	while (seen < words && !atomic_cas(&cgroup_words, seen, words) && may_loop);
}

/* A free index, marked as taken; ROOT_CGROUP when the table is full. */
subprog u32 find_index(void)
{
	u32 i;

	for_below (i, CGROUP_WORDS, CGROUP_WORDS) {
		u64 *word = &cgroups_used[masked(i, CGROUP_WORDS)];
		/* Index 0 is the root's. */
		u64 vacant = ~*word & (i ? ~0ULL : ~1ULL);
		u64 bit = vacant & -vacant;

		if (vacant && !(atomic_or(word, bit) & bit)) {
			sweep_reaches(i + 1);
			return i * WORD_BITS + lowest_bit(bit);
		}
	}
	return ROOT_CGROUP;
}

/* The groups below one child of the root hold as many indexes as are free, or more. */
static __always_inline bool has_its_part(u32 parent)
{
	u64 held = cgroup_state(ROOT_CGROUP)->held;

	return parent != ROOT_CGROUP &&
	       cgroup_state(cgroup_state(parent)->top)->held + held >= MAX_CGROUPS;
}

static __always_inline void holds(u32 index, u64 more)
{
	atomic_add(&cgroup_state(cgroup_state(index)->top)->held, more);
	atomic_add(&cgroup_state(ROOT_CGROUP)->held, more);
}

static __always_inline void free_index(u32 index)
{
	holds(index, -1ULL);
	atomic_and(&cgroups_used[masked(index / WORD_BITS, CGROUP_WORDS)], ~bit_of(index));
}

/* An index for the group with kernfs id @id, in the state of a group without tasks or settings. */
static __always_inline u32 take_index(u32 parent, u64 id)
{
	u32 index = has_its_part(parent) ? ROOT_CGROUP : find_index();
	struct cgroup_state *cg = cgroup_state(index);

	if (index == ROOT_CGROUP)
		return ROOT_CGROUP;
	cg->parent = parent;
	cg->top = cgroup_state(parent)->top;
	if (parent == ROOT_CGROUP) {
		cg->top = index;
		cg->held = 0;
	}
	holds(index, 1);
	cgroup_weigh(index, scaled_weight(DEFAULT_CPU_WEIGHT), false);
	cg->sched_idle = cgroup_state(parent)->sched_idle;
	/*
	 * All but runnable, which still counts tasks of the index's last group: a dying task may
	 * outlive its group.
	 */
	cg->children = cg->next_children = cg->busy = cg->counted = 0;
	cg->share = group_share(cg);
	limit_begins(index, id);
	return index;
}

/* ---- settings ---- */

/* Bring the state at the group's index up to its settings, also if they change meanwhile. */
subprog u32 apply_settings(struct cgroup_entry *e nonnull, u32 index)
{
	struct cgroup_state *cg = cgroup_state(index);
	u64 changes;

	do {
		changes = atomic_fetch_add(&e->changes, 0);
		cgroup_weigh(index, scaled_weight(e->weight), e->idle);
		cg->sched_idle = cg->idle || cgroup_state(cg->parent)->sched_idle;
		if (tun.limits)
			limit_set_us(index, e->period_us, e->quota_us, e->burst_us);
	} while (e->changes != changes && may_loop);
	return 0;
}

/* The table has no index for the group: its settings have no effect, and userspace says so. */
static __always_inline void refuse(struct cgroup_entry *e, u64 id)
{
	if (atomic_swap(&e->refused, 1))
		return;
	count(STAT_cgroup_full);
	atomic_swap(&cgroups_refused.last, id);
	atomic_add(&cgroups_refused.count, 1);
}

static __always_inline void refused_no_more(struct cgroup_entry *e)
{
	if (!e->refused || !atomic_swap(&e->refused, 0))
		return;
	atomic_add(&cgroups_refused.count, -1ULL);
}

/* The group needs an index. Returns the one that it counts as: its own, or of a group above. */
subprog u32 index_for(struct cgroup_entry *e nonnull, u64 id)
{
	u32 index = e->own;

	if (index != ROOT_CGROUP)
		return index;
	index = take_index(e->parent, id);
	if (index == ROOT_CGROUP) {
		refuse(e, id);
		return e->parent;
	}
	/* Another CPU may have been first. */
	if (!atomic_cas(&e->own, ROOT_CGROUP, index)) {
		free_index(index);
		return e->own;
	}
	refused_no_more(e);
	apply_settings(e, index);
	return index;
}

/* The index that a task counts in which is in the group, or enters it. */
static __always_inline u32 cgroup_index(struct cgroup *cgrp)
{
	struct cgroup_entry *e = cgroup_entry(cgrp);

	return e ? index_for(e, BPF_CORE_READ(cgrp, kn, id)) : ROOT_CGROUP;
}

static __always_inline u32 parent_index(struct cgroup *cgrp)
{
	struct cgroup *parent;
	u32 index;

	if (cgrp->level <= 1)
		return ROOT_CGROUP;
	parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	if (!parent)
		return ROOT_CGROUP;
	index = cgroup_index(parent);
	bpf_cgroup_release(parent);
	return index;
}

static __always_inline bool has_settings(const struct cgroup_entry *e)
{
	return e->weight != DEFAULT_CPU_WEIGHT || e->idle ||
	       (tun.limits && e->quota_us != NO_QUOTA_US);
}

/* The entry's settings have changed. */
static __always_inline void cgroup_is_set(struct cgroup *cgrp, struct cgroup_entry *e)
{
	/* A full barrier: a CPU that takes an index sees the new settings, or we see its index. */
	atomic_fetch_add(&e->changes, 1);
	if (e->own != ROOT_CGROUP)
		apply_settings(e, e->own);
	else if (has_settings(e))
		index_for(e, cgrp->kn->id);
}

/* ---- groups come and go ---- */

static __always_inline s32 cgroup_add(struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct cgroup_entry *e;

	if (cgrp->level == 0)
		return 0;
	e = make_entry(cgrp);
	/* The tasks of a dead one, which are all exiting, count as the root's: cgroup_index(). */
	if (!e)
		return cgroup_is_dead(cgrp) ? 0 : -ENOMEM;
	e->own = ROOT_CGROUP;
	e->refused = 0;
	e->parent = parent_index(cgrp);
	e->weight = args->weight;
	e->idle = cpu_idle_of(cgrp);
	e->quota_us = NO_QUOTA_US;
	e->period_us = NO_PERIOD_US;
	if (bpf_core_field_exists(args->bw_quota_us)) {
		e->period_us = args->bw_period_us;
		e->quota_us = args->bw_quota_us;
		e->burst_us = args->bw_burst_us;
	}
	cgroup_is_set(cgrp, e);
	return 0;
}

static __always_inline void cgroup_remove(struct cgroup *cgrp)
{
	struct cgroup_entry *e = cgroup_entry(cgrp);
	u32 index;

	if (!e)
		return;
	refused_no_more(e);
	index = e->own;
	if (index == ROOT_CGROUP)
		return;
	if (bandwidth(index)->quota)
		limit_set_us(index, NO_PERIOD_US, NO_QUOTA_US, 0);
	free_index(index);
}

/* ---- the sweep ---- */

/* How many words of the table a tick measures or settles. */
#define SWEEP_WORDS    8

/* ns after which a later tick goes on with the sweep; the last part is done long before. */
#define SWEEP_PAUSE_NS 1000000ULL

/*
 * One CPU at a time sweeps the cgroups in use: first all are measured, then all are settled.
 * Interrupts are off, so with more than 256 cgroups a later tick goes on.
 */
subprog u32 sweep_cgroups(u64 now)
{
	u64 last = swept_at;
	u32 words, at = sweep_next, i;

	/* Signed: the clocks of two CPUs differ a little. */
	if ((s64)(now - last) < (s64)(at ? SWEEP_PAUSE_NS : SWEEP_NS) ||
	    !atomic_cas(&swept_at, last, now))
		return 0;
	/* The table may grow between the parts of a sweep. */
	if (!at)
		sweep_words = cgroup_words;
	words = sweep_words;
	for_below (i, SWEEP_WORDS, SWEEP_WORDS) {
		bool settles;
		u32 first;
		u64 word;

		/* So the verifier does not follow each number. */
		at += from_zero;
		settles = at >= words;
		first = masked(settles ? at - words : at, CGROUP_WORDS);
		for (word = cgroups_used[first]; word && may_loop; word &= word - 1) {
			u32 index = first * WORD_BITS + lowest_bit(word);

			if (settles)
				cgroup_settle(index);
			else
				cgroup_measure(index);
		}
		if (++at >= 2 * words) {
			at = 0;
			break;
		}
	}
	sweep_next = at;
	return 0;
}

#endif /* ROOST_CGROUP_BPF_H */
