// SPDX-License-Identifier: GPL-2.0-only
//! What the running kernel offers and who uses it.

use super::Check;
use crate::host::Host;
use crate::stats::host::Condition;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// include/uapi/linux/capability.h
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// A scheduler that is just leaving may take this long.
const SETTLE_TIME: Duration = Duration::from_secs(2);

pub fn release(host: &Host) -> Check {
    let release = host
        .proc_text("sys/kernel/osrelease")
        .unwrap_or_else(|| "unknown".to_string());
    Check::ok("kernel", format!("Linux {release}"))
}

pub fn sched_ext(host: &Host) -> Check {
    if host.kernel.join("sched_ext").is_dir() {
        return Check::ok("sched_ext", "the kernel has sched_ext");
    }
    Check::fail(
        "sched_ext",
        "this kernel has no sched_ext",
        "boot a kernel of 6.12 or later that is built with CONFIG_SCHED_CLASS_EXT=y",
    )
}

pub fn jit(host: &Host) -> Check {
    match host.proc_text("sys/net/core/bpf_jit_enable").as_deref() {
        Some("0") => Check::fail(
            "jit",
            "the BPF JIT is off",
            "switch it on with 'sysctl net.core.bpf_jit_enable=1'; sched_ext needs it",
        ),
        _ => Check::ok("jit", "the BPF JIT is on"),
    }
}

pub fn tracer(host: &Host) -> Check {
    if host.proc.join("sys/kernel/ftrace_enabled").exists() {
        return Check::ok("tracer", "the kernel has a function tracer");
    }
    Check::fail(
        "tracer",
        "the kernel has no function tracer",
        "boot one that is built with CONFIG_FUNCTION_TRACER=y",
    )
}

pub fn privileges(host: &Host) -> Check {
    let status = host.proc_text("self/status").unwrap_or_default();
    let effective = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let caps = effective
        .and_then(|c| u64::from_str_radix(c.trim(), 16).ok())
        .unwrap_or(0);
    if caps & CAP_SYS_ADMIN != 0 || caps & (CAP_BPF | CAP_PERFMON) == CAP_BPF | CAP_PERFMON {
        return Check::ok("privileges", "this user may load a scheduler");
    }
    Check::fail(
        "privileges",
        "this user may not load a scheduler",
        "run as root or with sudo (the capabilities CAP_BPF and CAP_PERFMON are needed)",
    )
}

/// One scheduler at a time. Finding our own is good news for the machine, but nothing starts beside it either.
pub fn attached(host: &Host) -> Check {
    let state = settled_state(host);
    if state == "disabled" {
        return Check::ok("attached", "no sched_ext scheduler is attached");
    }
    let name = host
        .kernel_text("sched_ext/root/ops")
        .unwrap_or_else(|| "unknown".to_string());
    let found = format!("the sched_ext scheduler '{name}' is attached already (state {state})");
    let fix = "stop it first, with 'scxctl stop' or Ctrl-C where it runs";
    if name.starts_with("roost_") {
        Check::warn("attached", found, fix)
    } else {
        Check::fail("attached", found, fix)
    }
}

fn settled_state(host: &Host) -> String {
    let end = Instant::now() + SETTLE_TIME;
    loop {
        // Without the file there is no sched_ext, which is another check.
        let state = host
            .kernel_text("sched_ext/state")
            .unwrap_or_else(|| "disabled".to_string());
        if state != "disabling" || Instant::now() > end {
            return state;
        }
        sleep(Duration::from_millis(20));
    }
}

pub fn realtime(host: &Host) -> Check {
    if !host.preempt_rt() {
        return Check::ok("realtime", "not a PREEMPT_RT kernel");
    }
    Check::warn(
        "realtime",
        "a PREEMPT_RT kernel refuses BPF timers",
        "slices end at the tick; choose another kernel for short waits on a full machine",
    )
    .lasting(Condition::NoTimers)
}

pub fn memlock(host: &Host) -> Check {
    let limits = host.proc_text("self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max locked memory"));
    let hard = line
        .and_then(|l| l.split_whitespace().nth(1))
        .unwrap_or("unknown");
    Check::ok(
        "memlock",
        format!(
            "locked memory: limit {hard} (raised at start; kernels since 5.11 do not count it)"
        ),
    )
}
