/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of features. A row is FEATURE(name, source, help), or SUBSWITCH(name, parent, source,
 * help) for a deviation that can be switched on where its feature is on. Its position is its bit.
 * build.rs reads the same rows for Rust (src/policy/features.rs), so a feature is named only here.
 *
 * The name is the interface that users type. Bits have a meaning within one build only, so rows may
 * move and go until version 1.0. From then on rows stay where they are, and new ones are appended.
 */
FEATURE(prev_idle, "Lawall 2020", "wake_affine: an idle previous CPU is the target, also across LLCs")
FEATURE(sis_util, "mainline (SIS_UTIL)", "the scan for an idle CPU in the LLC visits fewer CPUs the busier the LLC is")
FEATURE(wide_idle, "scx_roost", "without an idle CPU in the LLC, search the other LLCs of the node, then the machine")
FEATURE(burst_slice, "scx_roost", "a task that uses less than 1/8 of a CPU requests what it last used, and may interrupt after 1/8 of the minimum slice; shares do not change")
FEATURE(prev_core, "Roy v7 2025", "a wakeup keeps the previous CPU when its whole core is idle")
FEATURE(core_first, "scx_roost", "an idle CPU beside a busy sibling is passed over while its LLC has a vacant core: one wholly idle for twice as long as the task slept")
FEATURE(sync_local, "scx_roost", "a sync wakeup whose waker is alone and about to sleep stays on the waker's CPU")
FEATURE(recent_core, "Roy v7 2025", "before the target is tried, a wakeup takes the recently used CPU when its whole core is idle")
FEATURE(sync_core, "Roy v7 2025", "an idle target is taken only on a sync wakeup, and only when its whole core is idle")
SUBSWITCH(prev_core_fits, prev_core, "scx_roost", "prev_core and recent_core pass over a CPU that is too small for the task")
FEATURE(claim, "Patra 2017", "a wakeup claims the idle CPU that it chose, so that no other wakeup chooses it too")
SUBSWITCH(claim_plain, claim, "Patra 2017", "as in the source, a claim is a load and a store without a recheck, and it ends with whatever the CPU does next")
SUBSWITCH(claim_expiry, claim, "scx_roost", "a claim older than claim-ttl-us is ignored")
SUBSWITCH(core_claim, claim, "scx_roost", "a wakeup that takes a CPU because its whole core is idle also claims the core")
FEATURE(avg_idle, "mainline until 2026", "a CPU does not search for work when its mean idle period is shorter than the search takes; a wakeup ends a period")
SUBSWITCH(avg_idle_every, avg_idle, "Huang v6", "every arriving task ends the idle period, not only a woken one")
SUBSWITCH(avg_idle_scan, avg_idle, "mainline until 2023 (SIS_PROP)", "the scan for an idle CPU in the LLC visits fewer CPUs the shorter the idle periods there are, but at least four")
FEATURE(util_fits, "Desnoyers 2023", "a busy target, previous or recently used CPU is taken when the task's estimated utilisation fits into its spare capacity")
FEATURE(bias_prev, "Desnoyers 2023", "the previous CPU is tried before the target, and is the result when nothing is idle")
FEATURE(delay_migration, "Gouicem 2020", "a woken or forked task whose new CPU runs at a low frequency first waits beside its waker for a moment; it moves only if it did not run there")
SUBSWITCH(delay_repick, delay_migration, "scx_roost", "if the CPU of a delayed task becomes busy, the task moves to an idle CPU of that LLC")
SUBSWITCH(delay_only_idle, delay_migration, "scx_roost", "a move to a busy CPU is not delayed")
SUBSWITCH(delay_hold_claim, delay_migration, "scx_roost", "the claim of a delayed task's CPU is kept during the delay")
FEATURE(smt_spread, "scx_roost", "a long-running task, or a sync_local pair, leaves a shared core for a vacant one, also in another LLC")
