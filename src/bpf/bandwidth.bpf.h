/* SPDX-License-Identifier: GPL-2.0-only */
/* cpu.max as the kernel reports it. policy/bandwidth.h applies it. */
#ifndef ROOST_BANDWIDTH_BPF_H
#define ROOST_BANDWIDTH_BPF_H

#include "policy/parking.h"

#define NO_QUOTA_US   (~0ULL) /* kernel: RUNTIME_INF */
#define NO_PERIOD_US  100000ULL
#define NSEC_PER_USEC 1000ULL

/*
 * The limit of the group at @index is set, changed, or removed (NO_QUOTA_US). If there is none
 * to remove, nothing is done.
 */
static __always_inline void limit_set_us(u32 index, u64 period_us, u64 quota_us, u64 burst_us)
{
	bool none = quota_us == NO_QUOTA_US;

	if (none && !bandwidth(index)->quota)
		return;
	limit_set(index, period_us * NSEC_PER_USEC, none ? 0 : quota_us * NSEC_PER_USEC,
		  burst_us * NSEC_PER_USEC, scx_bpf_now());
}

#endif /* ROOST_BANDWIDTH_BPF_H */
