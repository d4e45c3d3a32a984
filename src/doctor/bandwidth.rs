// SPDX-License-Identifier: GPL-2.0-only
//! Groups that lose their CPU limit: cpu.max (systemd's CPUQuota, containers' --cpus) is enforced by the kernel's
//! fair class only, and no longer while a scheduler without bandwidth control runs.

use super::Check;
use crate::host::Host;
use crate::stats::host::Condition;
use crate::topology_view::count;
use std::fs;
use std::path::Path;

pub fn check(host: &Host) -> Check {
    let Some(root) = &host.cgroup else {
        return Check::ok("cpu.max", "no cgroup v2 tree");
    };
    let mut limited = Vec::new();
    walk(root, root, &mut limited);
    if limited.is_empty() {
        return Check::ok("cpu.max", "no control group has a CPU limit");
    }
    limited.sort();
    let mut check = Check::warn(
        "cpu.max",
        format!(
            "the CPU limit (cpu.max) of {} is not enforced while scx_roost runs",
            count(limited.len(), "control group")
        ),
        "limit them by cpu.weight, or leave such machines to the kernel's scheduler",
    )
    .lasting(Condition::QuotaIgnored);
    check.items = limited;
    check
}

/// Groups come and go meanwhile: what cannot be read has gone.
fn walk(root: &Path, dir: &Path, limited: &mut Vec<String>) {
    if let Some(percent) =
        limit_percent(&fs::read_to_string(dir.join("cpu.max")).unwrap_or_default())
    {
        let name = dir.strip_prefix(root).unwrap_or(dir).display();
        limited.push(format!("/{name} ({percent} % of a CPU)"));
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            walk(root, &entry.path(), limited);
        }
    }
}

/// '50000 100000' is 50; 'max 100000' is no limit.
fn limit_percent(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    quota.saturating_mul(100).checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_as_the_kernel_writes_them() {
        assert_eq!(limit_percent("max 100000\n"), None);
        assert_eq!(limit_percent("50000 100000\n"), Some(50));
        assert_eq!(limit_percent("400000 100000\n"), Some(400));
        assert_eq!(limit_percent(""), None);
    }
}
