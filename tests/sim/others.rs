// SPDX-License-Identifier: GPL-2.0-only
//! Comparisons besides the policy and the kernel: a scheduler like scx_cosmos, and an upper bound.

use crate::runs::{near, run, smt, workload};
use scx_roost::sim::load::Load;
use scx_roost::sim::{Policy, Scenario, model};

const HOGS: &str = "param n = 128\nwarmup 100ms\nduration 1s\nmeasure rate turns\n\
    task hog x n:\n    forever\n        run 100us\n        count turns\n";

#[test]
fn cosmos_fills_the_machine() {
    for n in [64, 128] {
        let m = run(HOGS, &[("n", n)], "cosmos", 1);
        near(m.result(), 64.0 * smt() * 0.9433 * 1e4, 3.0);
    }
    let half = run(HOGS, &[("n", 32)], "cosmos", 1);
    near(half.result(), 32.0 * 0.9433 * 1e4, 3.0);
}

/// Two tasks share a core while another one is idle: at the end of a slice, which a tick sees, one
/// moves.
#[test]
fn cosmos_leaves_a_shared_core() {
    let text = "measure time\n\
        task here, cpus 0:\n    run 500ms\n\
        task there, cpus 1:\n    run 30ms\n\
        task late, cpus 1, 32:\n    run 500ms\n";
    let m = run(text, &[], "cosmos", 1);
    let shared = m.shared_ns as f64 / 2.0;
    assert!((20e6..30e6 + 2.0 * 4e6).contains(&shared), "{shared} ns");
}

/// The sign of what Roy v7 (source 003) published: close to the speed with Roy's patch, which is
/// far from that without.
#[test]
fn cosmos_spreads_algorithm3() {
    let of = |policy: &str| run(workload("algorithm3"), &[], policy, 1);
    let (cosmos, roy) = (of("cosmos"), of("eevdf:roy-v7"));
    near(cosmos.result(), roy.result(), 6.0);
}

/// 20 threads of 2 s on separate cores with the highest clock; 160 threads of 1 s on 32 full cores.
#[test]
fn the_oracle_is_a_bound() {
    let oracle = |name: &str| run(workload(name), &[], "oracle", 1).result();
    near(oracle("primesieve"), 2e9, 0.01);
    near(
        oracle("openssl"),
        160.0 / (64.0 * smt() * 0.9433) * 1e9,
        0.01,
    );
    for name in ["primesieve", "openssl"] {
        for policy in ["roost", "eevdf", "cosmos"] {
            let m = run(workload(name), &[], policy, 1);
            assert!(m.result() >= oracle(name), "{name} under {policy}");
        }
    }
}

#[test]
fn the_oracle_says_why_it_is_silent() {
    let scenario = Scenario {
        model: &model("tr-3970x").unwrap(),
        load: Load::parse(workload("algorithm3"), &Default::default()).unwrap(),
        policy: &Policy::Oracle,
        seed: 1,
    };
    let error = scenario.run().expect_err("it waits").to_string();
    assert!(error.contains("its tasks wait for each other"), "{error}");
}
