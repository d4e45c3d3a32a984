/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel calls task_returns() as a task is about to return to user mode: by task work, which
 * BPF may add since Linux 6.18. An entry stays until its task dies. Only tasks of groups with a
 * limit ever have one.
 */
#ifndef ROOST_RETURN_WORK_BPF_H
#define ROOST_RETURN_WORK_BPF_H

#include "task_state.bpf.h"

/* Since Linux 7.0; before, with one more argument. The headers of some machines declare them. */
extern int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *work,
					 void *map__map,
					 bpf_task_work_callback_t callback) __ksym __weak;
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work,
					      void *map__map, bpf_task_work_callback_t callback,
					      void *aux__prog) __ksym __weak;

/* In timers.bpf.h, because it is policy. */
static int task_returned(struct bpf_map *map, void *key, void *value);

static __always_inline struct return_work *return_work_of(port_task *p)
{
	struct return_work *work, blank = {};
	u64 key = (u64)p;

	work = bpf_map_lookup_elem(&return_works, &key);
	if (work || bpf_map_update_elem(&return_works, &key, &blank, BPF_NOEXIST))
		return work;
	return bpf_map_lookup_elem(&return_works, &key);
}

static __always_inline bool ask_return(port_task *p)
{
	struct return_work *work;
	s32 err;

	/* Not in one condition: the compiler would OR the addresses, which no verifier allows. */
	if (bpf_ksym_exists(bpf_task_work_schedule_resume)) {
		work = return_work_of(p);
		err = work ? bpf_task_work_schedule_resume(p, &work->work, &return_works,
							   task_returned)
			   : -ENOMEM;
	} else if (bpf_ksym_exists(bpf_task_work_schedule_resume_impl)) {
		work = return_work_of(p);
		err = work ? bpf_task_work_schedule_resume_impl(p, &work->work, &return_works,
								task_returned, NULL)
			   : -ENOMEM;
	} else {
		return false;
	}
	/*
	 * -EBUSY: it has asked already. Or it is within task_returns(), which has found budget:
	 * then it asks again at the end of its grant.
	 */
	return !err || err == -EBUSY;
}

static __always_inline void return_work_drop(port_task *p)
{
	u64 key = (u64)p;

	if (limits()->any)
		bpf_map_delete_elem(&return_works, &key);
}

#endif /* ROOST_RETURN_WORK_BPF_H */
