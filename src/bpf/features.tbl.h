/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of features. A row is FEATURE(name, source, help), or SUBSWITCH(name, parent, source,
 * help) for a deviation that can be switched on where its feature is on. Its position is its bit.
 * build.rs reads the same rows for Rust (src/features.rs), so each feature is named only here.
 *
 * The name is the interface that users type. Bits have a meaning within one build only, so rows may
 * move and go until version 1.0. From then on rows stay where they are, and new ones are appended.
 */
FEATURE(prev_idle, "Lawall 2020", "wake_affine: an idle previous CPU is the target, also across LLCs")
FEATURE(sis_util, "mainline (SIS_UTIL)", "the scan for an idle CPU in the LLC visits fewer CPUs the busier the LLC is")
FEATURE(wide_idle, "scx_roost", "no idle CPU found in the LLC: look in the others of the node, then of the machine")
FEATURE(burst_slice, "scx_roost", "a task that uses less than 1/8 of a CPU requests what it last used, and may interrupt after 1/8 of the minimum slice; shares do not change")
FEATURE(prev_core, "Roy v7 2025", "a wakeup keeps the previous CPU when its whole core is idle")
FEATURE(core_first, "scx_roost", "an idle CPU beside a busy sibling is not taken while a core of its LLC is vacant: wholly idle, for twice as long as the task slept")
FEATURE(sync_local, "scx_roost", "a sync wakeup whose waker is alone and about to sleep stays on the waker's CPU")
FEATURE(recent_core, "Roy v7 2025", "a wakeup takes the recently used CPU when its whole core is idle, before the target")
FEATURE(sync_core, "Roy v7 2025", "the target is taken as idle only on a sync wakeup, and when its whole core is idle")
SUBSWITCH(prev_core_fits, prev_core, "scx_roost", "prev_core and recent_core pass over a CPU that is too small for the task")
FEATURE(claim, "Patra 2017", "an idle CPU that a wakeup chose is claimed, so that another does not choose it too")
SUBSWITCH(claim_plain, claim, "Patra 2017", "as in the source the claim is a load and a store without a second look, and ends with whatever the CPU turns to")
SUBSWITCH(claim_expiry, claim, "scx_roost", "a claim older than claim-ttl-us counts for nothing")
SUBSWITCH(core_claim, claim, "scx_roost", "who takes a CPU because its whole core is idle claims the core too")
FEATURE(avg_idle, "mainline until 2026", "a CPU whose mean idle period is shorter than a search for work costs does not search; wakeups end the period")
SUBSWITCH(avg_idle_every, avg_idle, "Huang v6", "whatever arrives ends the idle period, not wakeups alone")
SUBSWITCH(avg_idle_scan, avg_idle, "mainline until 2023 (SIS_PROP)", "the scan for an idle CPU in the LLC visits fewer CPUs the shorter the idle periods there are, but at least four")
FEATURE(util_fits, "Desnoyers 2023", "a busy target, previous or recently used CPU is taken when the task's estimated use fits into what it has left")
FEATURE(bias_prev, "Desnoyers 2023", "the previous CPU is asked before the target, and is the answer when nothing is idle")
FEATURE(delay_migration, "Gouicem 2020", "a task that wakes or is forked for a CPU at a low frequency waits beside its waker for a moment, and moves only if it did not run there")
SUBSWITCH(delay_repick, delay_migration, "scx_roost", "a delayed task whose CPU has become busy moves to an idle one of that LLC")
SUBSWITCH(delay_only_idle, delay_migration, "scx_roost", "the move to a busy CPU is not delayed")
SUBSWITCH(delay_hold_claim, delay_migration, "scx_roost", "the claim of the CPU to which a move is delayed is kept")
FEATURE(smt_spread, "scx_roost", "a task that runs long, or a pair of sync_local, leaves a core that it shares for a vacant one, in other LLCs too")
