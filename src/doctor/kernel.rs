// SPDX-License-Identifier: GPL-2.0-only
//! What the running kernel offers, and which sched_ext scheduler is attached.

use super::Check;
use crate::machine::host::Host;
use crate::util::privileges::{names, to_load};
use crate::wire::stats::host::Condition;
use rustix::thread::CapabilitySet;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time that a scheduler may take to detach.
const SETTLE_TIME: Duration = Duration::from_secs(2);

pub fn release(host: &Host) -> Check {
    let release = host
        .proc_text("sys/kernel/osrelease")
        .unwrap_or_else(|| "unknown".to_string());
    Check::ok("kernel", format!("Linux {release}{}", lacks(host)))
}

/// What newer kernels have. Nothing of that matters where no scheduler can be loaded.
fn lacks(host: &Host) -> String {
    if !host.kernel.join("sched_ext").is_dir() {
        return String::new();
    }
    let all = [
        (
            host.reports_limits,
            "limits of groups (cpu.max; since 6.17)",
        ),
        (
            host.moves_running,
            "moves of running tasks (smt_spread; since 7.1)",
        ),
    ];
    let lacking = all.iter().filter(|(has, _)| !has).map(|(_, what)| *what);
    let lacking: Vec<&str> = lacking.collect();
    match lacking.is_empty() {
        true => String::new(),
        false => format!("; it lacks {}", lacking.join(" and ")),
    }
}

pub fn sched_ext(host: &Host) -> Check {
    if host.kernel.join("sched_ext").is_dir() {
        return Check::ok("sched_ext", "the kernel has sched_ext");
    }
    Check::fail(
        "sched_ext",
        format!("this kernel has no sched_ext: {}", why_none(host)),
        "boot Linux 6.12 or later, built with CONFIG_SCHED_CLASS_EXT=y",
    )
}

/// The first release that can have sched_ext.
const FIRST: [u32; 3] = [6, 12, 0];

fn why_none(host: &Host) -> String {
    let release = host.proc_text("sys/kernel/osrelease").unwrap_or_default();
    match host.release() {
        Some((version, _)) if version >= FIRST => {
            format!("Linux {release} is built without it, like Debian's 6.12")
        }
        Some(_) => format!("Linux {release} is older than {}.{}", FIRST[0], FIRST[1]),
        None => "its release is unknown".to_string(),
    }
}

/// The kernel loads no sched_ext scheduler if isolcpus= keeps CPUs out of its scheduling domains.
/// CPUs that only cpusets isolate are allowed.
pub fn isolation(host: &Host) -> Check {
    let isolated = host.sys_text("devices/system/cpu/isolated");
    let isolated = isolated.filter(|cpus| !cpus.is_empty() && cpus != "(null)");
    let by_boot = host.proc_text("cmdline").is_some_and(|line| {
        line.split_whitespace()
            .filter_map(|word| word.strip_prefix("isolcpus="))
            .any(isolates_domains)
    });
    match isolated {
        Some(cpus) if by_boot => Check::fail(
            "isolation",
            format!(
                "the kernel was booted with isolcpus=, which isolates CPUs {cpus}: such a kernel loads no sched_ext scheduler"
            ),
            "boot without isolcpus= and isolate CPUs by a cpuset partition (docs/reference/isolation.md)",
        ),
        _ => Check::ok("isolation", "no CPU is isolated by isolcpus="),
    }
}

/// True if this value of isolcpus= keeps CPUs out of scheduling domains: it has the flag `domain`,
/// or no flag that the kernel knows (kernel: housekeeping_isolcpus_setup()).
fn isolates_domains(value: &str) -> bool {
    let has = |flag| value.split(',').any(|word| word == flag);
    has("domain") || !(has("nohz") || has("managed_irq"))
}

/// Such a kernel lets no BPF program read its memory (LOCKDOWN_BPF_READ_KERNEL). The file is absent
/// where securityfs is not mounted.
pub fn lockdown(host: &Host) -> Option<Check> {
    let level = host.kernel_text("security/lockdown");
    let line = host.proc_text("cmdline").unwrap_or_default();
    let mut asked = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("lockdown="));
    let is_locked = match level {
        Some(level) => level.contains("[confidentiality]"),
        None => asked.next_back() == Some("confidentiality"),
    };
    is_locked.then(|| {
        Check::fail(
            "lockdown",
            "the kernel is locked down for confidentiality: BPF programs may not read its memory",
            "boot with lockdown=integrity, or without lockdown=",
        )
    })
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
        "boot one built with CONFIG_FUNCTION_TRACER=y",
    )
}

pub fn privileges(host: &Host) -> Check {
    let status = host.proc_text("self/status").unwrap_or_default();
    let effective = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let caps = effective
        .and_then(|c| u64::from_str_radix(c.trim(), 16).ok())
        .unwrap_or(0);
    if let Some(kept) = to_load(CapabilitySet::from_bits_retain(caps)) {
        let found = format!(
            "this user may load a scheduler, which then keeps only {}",
            names(kept)
        );
        return Check::ok("privileges", found);
    }
    Check::fail(
        "privileges",
        "this user may not load a scheduler",
        "run as root or with sudo (the capabilities CAP_BPF and CAP_PERFMON are needed)",
    )
}

/// Only one scheduler can be attached. If it is scx_roost itself this is a mere warning, but a
/// second one cannot start.
pub fn attached(host: &Host) -> Check {
    let state = settled_state(host);
    if state == "disabled" {
        return Check::ok("attached", "no sched_ext scheduler is attached");
    }
    let name = host.attached_ops().unwrap_or_else(|| "unknown".to_string());
    let found = format!("the sched_ext scheduler '{name}' is attached already (state {state})");
    if name.starts_with("roost_") {
        Check::warn("attached", found, "stop it first: scx_roost stop")
    } else {
        let fix = "stop it first, with 'scxctl stop', or with Ctrl-C in its terminal";
        Check::fail("attached", found, fix)
    }
}

fn settled_state(host: &Host) -> String {
    let end = Instant::now() + SETTLE_TIME;
    loop {
        // Without this file there is no sched_ext, which another check reports.
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
