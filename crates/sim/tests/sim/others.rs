// SPDX-License-Identifier: GPL-2.0-only
//! A comparison besides the policy and the kernel: an upper bound.

use crate::runs::{near, run, smt, workload};
use roost_sim::load::Load;
use roost_sim::{Policy, Scenario, model};

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
        for policy in ["roost", "eevdf"] {
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
