/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records what the kernel's fair class decided, and the state that it decided on. Tracing programs
 * at the end of its functions: of the pick (pick_eevdf()), which changes nothing, and of the test
 * whether a waking task preempts (wakeup_preempt_fair()), which makes a pick.
 *
 * Limits: queues of groups are not recorded. Nothing here changes the kernel.
 */
#include <scx/common.bpf.h>
#include "event.h"

char _license[] SEC("license") = "GPL";

/* Fields that the header of this build may lack. */
struct sched_entity___parity {
	u64 vprot;
} __attribute__((preserve_access_index));

struct cfs_rq___buddy {
	struct sched_entity *next;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 32 << 20);
} events SEC(".maps");

/* One CPU's decision in the making, and the nodes of the tree that are still to be read. */
struct scratch {
	struct event event;
	u64 todo[MAX_QUEUED];
	u32 waking; /* within wakeup_preempt_fair() */
	u32 complete;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

u64 skipped[NR_SKIPPED];

static __always_inline struct scratch *scratch(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

static __always_inline void skip(enum skipped why)
{
	__sync_fetch_and_add(&skipped[why], 1);
}

static __always_inline bool is_task(u64 se)
{
	return !BPF_CORE_READ((struct sched_entity *)se, my_q);
}

static __always_inline u32 pid_of(u64 se)
{
	u64 task = se - bpf_core_field_offset(struct task_struct, se);

	return se ? BPF_CORE_READ((struct task_struct *)task, pid) : 0;
}

static __always_inline u32 buddy_of(struct cfs_rq *cfs_rq)
{
	return pid_of((u64)BPF_CORE_READ((struct cfs_rq___buddy *)cfs_rq, next));
}

static __always_inline void entity_read(struct entity *to, u64 at)
{
	struct sched_entity *se = (void *)at;
	struct task_struct *p = (void *)(at - bpf_core_field_offset(struct task_struct, se));

	to->pid = BPF_CORE_READ(p, pid);
	to->policy = BPF_CORE_READ(p, policy);
	to->on_rq = BPF_CORE_READ(se, on_rq);
	to->delayed = BPF_CORE_READ(se, sched_delayed);
	to->custom_slice = BPF_CORE_READ(se, custom_slice);
	to->vruntime = BPF_CORE_READ(se, vruntime);
	to->deadline = BPF_CORE_READ(se, deadline);
	to->slice = BPF_CORE_READ(se, slice);
	to->weight = BPF_CORE_READ(se, load.weight);
	to->vprot = 0;
	if (bpf_core_field_exists(struct sched_entity___parity, vprot))
		to->vprot = BPF_CORE_READ((struct sched_entity___parity *)se, vprot);
}

/* Reads the queue into the scratch. False: it cannot be recorded. */
static __always_inline bool queue_read(struct scratch *s, struct cfs_rq *cfs_rq)
{
	struct event *e = &s->event;
	u64 curr = (u64)BPF_CORE_READ(cfs_rq, curr), se;
	struct rb_node *node;
	u32 known = 0;
	int i;

	s->complete = 0;
	e->curr.pid = 0;
	e->cpu = bpf_get_smp_processor_id();
	e->ran = 0;
	e->buddy = buddy_of(cfs_rq);
	if (curr) {
		if (!is_task(curr)) {
			skip(SKIPPED_GROUP);
			return false;
		}
		entity_read(&e->curr, curr);
		e->ran = BPF_CORE_READ((struct sched_entity *)curr, sum_exec_runtime) -
			 BPF_CORE_READ((struct sched_entity *)curr, prev_sum_exec_runtime);
	}
	node = BPF_CORE_READ(cfs_rq, tasks_timeline.rb_root.rb_node);
	if (node) {
		s->todo[0] = (u64)node;
		known = 1;
	}
	bpf_for (i, 0, MAX_QUEUED) {
		u64 next[2];
		int side;

		if (i >= known || i >= MAX_QUEUED)
			break;
		node = (void *)s->todo[i];
		se = (u64)node - bpf_core_field_offset(struct sched_entity, run_node);
		if (!is_task(se)) {
			skip(SKIPPED_GROUP);
			return false;
		}
		entity_read(&e->queued[i], se);
		next[0] = (u64)BPF_CORE_READ(node, rb_left);
		next[1] = (u64)BPF_CORE_READ(node, rb_right);
		for (side = 0; side < 2; side++) {
			if (!next[side])
				continue;
			if (known >= MAX_QUEUED) {
				skip(SKIPPED_LONG);
				return false;
			}
			s->todo[known & (MAX_QUEUED - 1)] = next[side];
			known++;
		}
	}
	e->nr_queued = known;
	s->complete = 1;
	return true;
}

static __always_inline void hand_over(struct scratch *s)
{
	if (bpf_ringbuf_output(&events, &s->event, sizeof(s->event), 0))
		skip(SKIPPED_FULL);
}

SEC("fexit/pick_eevdf")
int BPF_PROG(picked, struct cfs_rq *cfs_rq, bool protect, struct sched_entity *answer)
{
	struct scratch *s = scratch();

	if (!s || !queue_read(s, cfs_rq))
		return 0;
	s->event.protect = protect;
	s->event.answer = pid_of((u64)answer);
	s->event.kind = KIND_PICK;
	s->event.wakee = s->event.flags = 0;
	if (!s->waking)
		hand_over(s);
	return 0;
}

SEC("fentry/wakeup_preempt_fair")
int BPF_PROG(wakeup_begins, struct rq *rq, struct task_struct *p, int flags)
{
	struct scratch *s = scratch();

	if (!s)
		return 0;
	s->waking = 1;
	s->complete = 0;
	s->event.answer = 0;
	return 0;
}

SEC("fexit/wakeup_preempt_fair")
int BPF_PROG(wakeup_ends, struct rq *rq, struct task_struct *p, int flags)
{
	struct scratch *s = scratch();
	struct sched_entity *curr = BPF_CORE_READ(rq, cfs.curr);

	if (!s || !s->waking)
		return 0;
	s->waking = 0;
	if (!curr || (!s->complete && !queue_read(s, &rq->cfs)))
		return 0;
	s->event.kind = KIND_WAKEUP;
	s->event.wakee = p->pid;
	s->event.flags = flags;
	s->event.buddy_after = buddy_of(&rq->cfs);
	s->event.vprot_after = 0;
	if (bpf_core_field_exists(struct sched_entity___parity, vprot))
		s->event.vprot_after = BPF_CORE_READ((struct sched_entity___parity *)curr, vprot);
	hand_over(s);
	return 0;
}
