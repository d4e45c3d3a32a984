// SPDX-License-Identifier: GPL-2.0-only
//! What must hold of any decision, for any features and whatever the model says.

use crate::rng::Rng;
use crate::setup::{Case, Machine, Runner};
use scx_roost::placement::{Decision, How};

pub fn check_invariants(machine: &Machine, case: &Case, got: &Decision) {
    let t = &machine.topology;
    let ok = |c: usize| t.cpus[c].online && case.allowed[c];
    let idle = |c: usize| machine.cpus[c].idle;
    let say = || format!("{case:?} got {got:?}");
    assert!(
        ok(got.cpu) || (got.cpu == case.prev && !ok(case.prev)),
        "a CPU that is not allowed: {}",
        say()
    );
    if got.how == How::Idle {
        assert!(ok(got.cpu) && idle(got.cpu), "taken as idle: {}", say());
    }
    prev_idle_rule(machine, case, got);
    match got.claims {
        Some(cpu) => assert!(
            case.features.claim && [Some(got.cpu), got.delayed].contains(&Some(cpu)),
            "claims: {}",
            say()
        ),
        None => assert!(
            !case.features.claim || got.how != How::Idle,
            "an idle CPU is taken unclaimed: {}",
            say()
        ),
    }
    // With claims, a CPU that another wakeup claimed does not count as free, however old the claim
    // is.
    let idle = |c: usize| idle(c) && !(case.features.claim && machine.cpus[c].claim_age.is_some());
    let core_idle = |c: usize| idle(c) && t.siblings(c).iter().all(|&s| idle(s));
    delay_rule(machine, case, got);
    // When delay_migration puts the task on the waker's idle CPU, the CPU that the ladder chose is
    // not known.
    let at_wakers = case.features.delay_migration && got.how == How::Idle && got.cpu == case.this;
    let nothing = ["sis_none", "bias_prev_last"].contains(&got.rung) && !at_wakers;
    let cpu = got.delayed.unwrap_or(got.cpu);
    let bounded = case.features.sis_util || case.features.avg_idle_scan;
    if nothing && !bounded && t.cpus[cpu].online {
        let passed = |c: &&usize| ok(**c) && (idle(**c) || core_idle(**c));
        let reach = t.llc_cpus(t.cpus[cpu].llc);
        assert_eq!(
            reach.iter().find(passed),
            None,
            "an idle CPU was passed over: {}",
            say()
        );
    }
}

/// A delayed task waits on its waker's CPU. It waits for a CPU that has a low frequency and is not
/// its previous one.
fn delay_rule(machine: &Machine, case: &Case, got: &Decision) {
    let Some(cpu) = got.delayed else { return };
    let rule = case.features.delay_migration && case.threshold > 0;
    let moves = cpu != case.prev && cpu != case.this;
    let low = (1..=case.threshold).contains(&machine.cpus[cpu].khz);
    let here = got.cpu == case.this && got.how == How::Busy && case.allowed[case.this];
    assert!(rule && moves && low && here, "{case:?} got {got:?}");
}

/// prev_idle: an idle, unclaimed previous CPU is the target before any comparison of loads. Only
/// wake_wide(), an idle waker's CPU in the same cache, and a sync wakeup by a lone waker come
/// first.
fn prev_idle_rule(machine: &Machine, case: &Case, got: &Decision) {
    let idle_prev = machine.cpus[case.prev].idle;
    let claimed = case.features.claim && machine.cpus[case.prev].claim_age.is_some();
    if got.affine == "wa_prev_idle" {
        assert!(case.features.prev_idle && idle_prev, "{case:?} got {got:?}");
    }
    if got.affine.starts_with("wa_weight") && case.features.prev_idle {
        assert!(
            !idle_prev || claimed,
            "prev_idle passed over an idle CPU: {case:?} got {got:?}"
        );
    }
}

/// An idle CPU of an LLC that has no part in the decision becomes busy: the decision must stay.
pub fn unrelated_idle_changes_nothing(
    machine: &mut Machine,
    runner: &mut Runner,
    case: &Case,
    got: &Decision,
    rng: &mut Rng,
) {
    let f = &case.features;
    let unknown = f.wide_idle || f.smt_spread || f.delay_migration;
    if case.fork || unknown || machine.topology.asym() {
        return;
    }
    let cpu = rng.below(machine.topology.nr_cpu_ids());
    let llc = |c: usize| {
        if machine.topology.cpus[c].online {
            machine.topology.cpus[c].llc
        } else {
            0
        }
    };
    if !machine.cpus[cpu].idle
        || [case.this, case.prev, got.cpu]
            .iter()
            .any(|&c| llc(c) == llc(cpu))
    {
        return;
    }
    let before = machine.cpus[cpu];
    machine.set(cpu, machine.busy());
    let after = runner.native(machine, case);
    assert_eq!(
        &after, got,
        "CPU {cpu} became busy and has no part in this: {case:?}"
    );
    machine.set(cpu, before);
}
