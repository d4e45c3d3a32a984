// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the policy natively (src/native/policy.c) and generates its Rust declarations. The
//! object is part of the library; the linker leaves it out of a binary that calls none of it.
//!
//! With the feature `sanitize` the C is built with clang's address and undefined-behaviour
//! sanitizers. Only the links of this package change, so no dependency is rebuilt. The feature
//! `fuzz` also records coverage.

use super::sanitizers;
use std::path::Path;

const SANITIZERS: &str = "-fsanitize=address,undefined";
/// The same coverage as scripts/covered-rustc requests of rustc.
const COVERAGE: &str = "-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp";

pub fn build(out: &Path) -> Result<(), String> {
    for file in [
        "policy.c",
        "callbacks.c",
        "policy.h",
        "port.native.h",
        "act.native.h",
    ] {
        println!("cargo:rerun-if-changed=src/native/{file}");
    }
    let mut cc = cc::Build::new();
    cc.files(["src/native/policy.c", "src/native/callbacks.c"])
        .define("ROOST_NATIVE", None)
        .std("gnu11")
        .warnings(true)
        .extra_warnings(true);
    let feature = |name: &str| std::env::var_os(format!("CARGO_FEATURE_{name}")).is_some();
    if feature("SANITIZE") {
        cc.compiler(sanitizers::clang())
            .opt_level(1)
            .debug(true)
            .flag(SANITIZERS)
            .flag("-fno-sanitize-recover=undefined")
            .flag("-fno-omit-frame-pointer");
        if feature("FUZZ") {
            cc.flag(COVERAGE);
        }
        sanitizers::link()?;
    } else {
        cc.opt_level(2);
    }
    cc.try_compile("roost_policy")
        .map_err(|e| format!("the native policy does not build: {e}"))?;
    declarations(out)
}

fn declarations(out: &Path) -> Result<(), String> {
    bindgen::Builder::default()
        .header("src/native/policy.h")
        .clang_args(["-DROOST_NATIVE", "-std=gnu11"])
        .allowlist_function("roost_.*")
        .allowlist_type("(cgroup|cpu|llc)_state|bandwidth|limits|park|cpu_set|steal_level|llc_sets|world|roost_.*|placing|preempt|wakeup|port_task|(cpu|run)_view|times|kernel|cursor|timer_kind|domains")
        // `machine::facts` and `config` make these.
        .blocklist_type("(cpu|llc|node|machine)_facts|tunables|arm|policy_image")
        .raw_line("use crate::bpf::intf::{cpu_facts, llc_facts, machine_facts, node_facts, policy_image, tunables};")
        .allowlist_var("(MAX|MIN|CPU|WORD|STEAL|PARK|GRANT|OWED)_.*|NO_CPU|CAPACITY_SCALE|NICE0_WEIGHT|ROOT_CGROUP|SET_.*|IDLE_WEIGHT|NR_HIST_BUCKETS|ROOST_NR_HISTS|IMMED|CLAIM_LOST_NS|PLAIN_CLAIM|HUNGRY_.*|(ENQ|KICK|WAKE)_.*|SLICE_INF|DOMAIN_LOOKS")
        .derive_default(true)
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(true)
        .generate()
        .map_err(|e| format!("no declarations from src/native/policy.h: {e}"))?
        .write_to_file(out.join("native_policy.rs"))
        .map_err(|e| format!("native_policy.rs: {e}"))
}
