// SPDX-License-Identifier: GPL-2.0-only
//! What must hold of any decision, whatever the features and whatever the model says.

use crate::model::{Decision, How};
use crate::rng::Rng;
use crate::setup::{Case, Machine, Runner};

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
    let core_idle = |c: usize| idle(c) && t.siblings(c).iter().all(|&s| idle(s));
    let nothing = ["sis_none", "bias_prev_last"].contains(&got.rung);
    if nothing && !case.features.sis_util && t.cpus[got.cpu].online {
        let passed = |c: &&usize| ok(**c) && (idle(**c) || core_idle(**c));
        let reach = t.llc_cpus(t.cpus[got.cpu].llc);
        assert_eq!(
            reach.iter().find(passed),
            None,
            "an idle CPU was passed over: {}",
            say()
        );
    }
}

/// prev_idle: an idle, allowed previous CPU is the target, unless the waker's CPU is idle beside it, or the waker is
/// alone and about to sleep.
fn prev_idle_rule(machine: &Machine, case: &Case, got: &Decision) {
    let idle_prev = machine.cpus[case.prev].idle;
    if got.affine == "wa_prev_idle" {
        assert!(case.features.prev_idle && idle_prev, "{case:?} got {got:?}");
    }
    if got.affine.starts_with("wa_weight") && case.features.prev_idle {
        assert!(
            !idle_prev,
            "prev_idle passed over an idle CPU: {case:?} got {got:?}"
        );
    }
}

/// An idle CPU of another LLC than all that matter here becomes busy: the decision stays.
pub fn unrelated_idle_changes_nothing(
    machine: &mut Machine,
    runner: &mut Runner,
    case: &Case,
    got: &Decision,
    rng: &mut Rng,
) {
    if case.fork || case.features.wide_idle || machine.topology.asym() {
        return;
    }
    let cpu = rng.below(machine.topology.len());
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
