/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task's state is kept: in task storage, but on kernels with CVE-2026-72110 in a hash map,
 * at the task's address. There a fork that the kernel refuses early frees the task storage of the
 * parent, which can crash the kernel (kernel: copy_process(), free_task()). A lookup in the hash
 * map takes 80 instructions instead of 20.
 *
 * Entries of the hash map are reused at once. So a callback that has found the state of a task
 * which runs elsewhere may write to that of a new task, if the first one dies and a fork takes its
 * entry before the callback ends.
 */
#ifndef ROOST_TASK_STATE_BPF_H
#define ROOST_TASK_STATE_BPF_H

static __always_inline struct task_state *task_state_if(port_task *p)
{
	u64 key = (u64)p;

	if (keeps_task_storage)
		return bpf_task_storage_get(&task_states, p, 0, 0);
	return bpf_map_lookup_elem(&hashed_states, &key);
}

/* A new state, all zero. NULL: no memory, or more tasks than userspace made room for. */
static __always_inline struct task_state *task_state_new(port_task *p)
{
	u64 key = (u64)p;

	if (keeps_task_storage)
		return bpf_task_storage_get(&task_states, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (bpf_map_update_elem(&hashed_states, &key, &blank_state, BPF_ANY))
		return NULL;
	return bpf_map_lookup_elem(&hashed_states, &key);
}

/* Task storage goes with the task. */
static __always_inline void task_state_drop(port_task *p)
{
	u64 key = (u64)p;

	if (!keeps_task_storage)
		bpf_map_delete_elem(&hashed_states, &key);
}

#endif /* ROOST_TASK_STATE_BPF_H */
