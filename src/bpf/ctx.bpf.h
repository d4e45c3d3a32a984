/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a task's settings. */
#ifndef ROOST_CTX_BPF_H
#define ROOST_CTX_BPF_H

#include "policy/settings.h"

static __always_inline void task_settings(struct task_state *ts, struct task_struct *p, u64 now)
{
	s32 nice = p->static_prio - RT_PRIOS - 20; /* kernel: PRIO_TO_NICE() */
	u64 slice = p->se.custom_slice ? p->se.slice : 0;

	settings_apply(ts, nice, p->policy, slice, now);
}

#endif /* ROOST_CTX_BPF_H */
