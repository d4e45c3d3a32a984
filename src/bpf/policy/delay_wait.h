/* SPDX-License-Identifier: GPL-2.0-only */
/* When the delay of a task that waits for a move is over (delay_migration.h). */
#ifndef ROOST_DELAY_WAIT_H
#define ROOST_DELAY_WAIT_H

#include "port.h"

/* A task moves up to this much early: starting the timer again would cost more. ns */
#define DELAY_SLACK_NS 2000ULL

/* The delay is over, and the task has not run. */
static __always_inline bool delay_due(const struct task_state *ts, u64 now)
{
	return ts->delay_at && (s64)(ts->delay_at - now) <= (s64)DELAY_SLACK_NS;
}

#endif /* ROOST_DELAY_WAIT_H */
