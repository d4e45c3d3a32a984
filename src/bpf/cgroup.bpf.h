/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of cgroups: an index for each cgroup that the cpu controller knows. The arithmetic is
 * in policy/cgroup.h.
 */
#ifndef ROOST_CGROUP_BPF_H
#define ROOST_CGROUP_BPF_H

#include "bandwidth.bpf.h"
#include "ctx.bpf.h"

static __always_inline u32 scaled_weight(u32 weight)
{
	return weight * NICE0_WEIGHT / 100;
}

static __always_inline u32 cgroup_index(struct cgroup *cgrp)
{
	struct cgroup_index *ci = bpf_cgrp_storage_get(&cgroup_indices, cgrp, 0, 0);

	return ci ? ci->index : ROOT_CGROUP;
}

/* A free index, marked as taken; ROOT_CGROUP when the table is full. */
subprog u32 take_index(void)
{
	u32 i;

	for_below (i, CGROUP_WORDS, CGROUP_WORDS) {
		u64 *word = &cgroups_used[masked(i, CGROUP_WORDS)];
		/* Index 0 is the root's. */
		u64 vacant = ~*word & (i ? ~0ULL : ~1ULL);
		u64 bit = vacant & -vacant;

		if (vacant && !(atomic_or(word, bit) & bit)) {
			if (i >= cgroup_words)
				cgroup_words = i + 1;
			return i * WORD_BITS + lowest_bit(bit);
		}
	}
	return ROOT_CGROUP;
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
#define INDEX_WAIT_NS 10000000ULL

static __always_inline struct cgroup_index *make_index(struct cgroup *cgrp)
{
	u64 end = clock_ns() + INDEX_WAIT_NS;
	struct cgroup_index *ci;

	do
		ci = bpf_cgrp_storage_get(&cgroup_indices, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	while (!ci && !cgroup_is_dead(cgrp) && (s64)(clock_ns() - end) < 0 && may_loop);
	return ci;
}

static __always_inline s32 cgroup_add(struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct cgroup_index *ci;
	struct cgroup_state *cg;
	u32 index;

	if (cgrp->level == 0)
		return 0;
	ci = make_index(cgrp);
	/* The tasks of a dead one, which are all exiting, count as the root's: cgroup_index(). */
	if (!ci)
		return cgroup_is_dead(cgrp) ? 0 : -ENOMEM;
	index = take_index();
	if (index == ROOT_CGROUP) {
		count(STAT_cgroup_full);
		ci->index = parent_index(cgrp);
		return 0;
	}
	cg = cgroup_state(index);
	cgroup_weigh(index, scaled_weight(args->weight), cpu_idle_of(cgrp));
	cg->parent = parent_index(cgrp);
	cg->sched_idle = cg->idle || cgroup_state(cg->parent)->sched_idle;
	/*
	 * All but runnable, which still counts tasks of the index's last group: a dying task may
	 * outlive its group.
	 */
	cg->load = cg->children = cg->next_children = cg->active = 0;
	limit_begins(index, cgrp->kn->id);
	ci->index = index;
	if (tun.limits && bpf_core_field_exists(args->bw_quota_us))
		limit_set_us(index, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return 0;
}

/* The group's index; ROOT_CGROUP if the table was full, so that it has its parent's. */
static __always_inline u32 own_index(struct cgroup *cgrp)
{
	u32 index = cgroup_index(cgrp);

	if (index == ROOT_CGROUP || (cgrp->level > 1 && index == parent_index(cgrp)))
		return ROOT_CGROUP;
	return index;
}

static __always_inline void cgroup_remove(struct cgroup *cgrp)
{
	u32 index = own_index(cgrp);

	if (index == ROOT_CGROUP)
		return;
	if (bandwidth(index)->quota)
		limit_set_us(index, NO_PERIOD_US, NO_QUOTA_US, 0);
	atomic_and(&cgroups_used[masked(index / WORD_BITS, CGROUP_WORDS)], ~bit_of(index));
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
		bool settles = at >= words;
		u32 first = masked(settles ? at - words : at, CGROUP_WORDS);
		u64 word = cgroups_used[first];

		for (; word && may_loop; word &= word - 1) {
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
