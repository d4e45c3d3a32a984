/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of features. A row is FEATURE(name, source, counters, help), or SUBSWITCH(name, parent,
 * source, counters, help) for a deviation that can be switched on where its feature is on. Its
 * position is its bit. When the feature changes a decision, at least one of its counters grows. If
 * none grows in an experiment, the feature never acted. build.rs reads the same rows for Rust
 * (src/policy/features.rs), so a feature is named only here.
 *
 * The name is the interface that users type. Bits have a meaning within one build only, so rows may
 * move and go until version 1.0. From then on rows stay where they are, and new ones are appended.
 */
FEATURE(prev_idle, "Lawall 2020", "wa_prev_idle", "wake_affine: an idle previous CPU is the target, also across LLCs")
FEATURE(sis_util, "mainline (SIS_UTIL)", "sis_budget_out", "the scan for an idle CPU in the LLC visits fewer CPUs the busier the LLC is")
FEATURE(wide_idle, "scx_roost", "wide_node wide_machine", "without an idle CPU in the LLC, search the other LLCs of the node, then the machine")
FEATURE(burst_slice, "scx_roost", "burst_request burst_preempt", "a task that uses less than 1/8 of a CPU requests its usual burst, and may interrupt after 1/8 of the minimum slice; shares do not change")
FEATURE(prev_core, "Roy v7 2025", "prev_core", "a wakeup keeps the previous CPU when its whole core is idle")
FEATURE(core_first, "scx_roost", "core_first", "an idle CPU beside a busy sibling is passed over while its LLC has a vacant core: one wholly idle for twice as long as the task slept")
FEATURE(sync_local, "scx_roost", "sync_local", "a sync wakeup whose waker is alone and about to sleep stays on the waker's CPU")
FEATURE(recent_core, "Roy v7 2025", "recent_core", "before the target is tried, a wakeup takes the recently used CPU when its whole core is idle")
FEATURE(sync_core, "Roy v7 2025", "sync_core sync_core_passed", "an idle target is taken only on a sync wakeup, and only when its whole core is idle")
FEATURE(claim, "Patra 2017", "claim_seen claim_conflict", "a wakeup claims the idle CPU that it chose, so that no other wakeup chooses it too; a claim counts for claim-ttl-us at most, with claim_plain for 2 s")
SUBSWITCH(claim_plain, claim, "Patra 2017", "claim_set", "as in the source, a claim is a load and a store without a recheck, and it ends with whatever the CPU does next")
SUBSWITCH(core_claim, claim, "scx_roost", "claim_seen core_claim_conflict", "a wakeup that takes a CPU because its whole core is idle also claims the core")
FEATURE(avg_idle, "mainline until 2026", "steal_skipped", "a CPU does not search for work when its mean idle period is shorter than the search takes; a wakeup ends a period")
SUBSWITCH(avg_idle_every, avg_idle, "Huang v6", "avg_idle_fork avg_idle_steal avg_idle_other", "every arriving task ends the idle period, not only a woken one")
SUBSWITCH(avg_idle_scan, avg_idle, "mainline until 2023 (SIS_PROP)", "idle_scan_bound", "the scan for an idle CPU in the LLC visits fewer CPUs the shorter the idle periods there are, but at least four")
FEATURE(util_fits, "Desnoyers 2023", "fits_target fits_prev fits_recent", "a busy target, previous or recently used CPU is taken when the task's estimated utilisation fits into its spare capacity")
FEATURE(bias_prev, "Desnoyers 2023", "bias_prev_first bias_prev_last", "the previous CPU is tried before the target, and is the result when nothing is idle")
FEATURE(delay_migration, "Gouicem 2020", "delay_wake delay_fork", "a woken or forked task whose new CPU runs at a low frequency first waits beside its waker for a moment; it moves only if it did not run there")
FEATURE(smt_spread, "scx_roost", "spread_wakeup spread_run", "a long-running task, or a sync_local pair, leaves a shared core for a vacant one, also in another LLC")
FEATURE(pack, "scx_roost", "pack fork_pack", "a wakeup or fork takes the first idle CPU of its node, beside a busy thread before a whole core; saves power, costs speed")
