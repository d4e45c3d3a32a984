// SPDX-License-Identifier: GPL-2.0-only
//! Groups with a CPU limit: cpu.max (systemd's CPUQuota, containers' --cpus). While a sched_ext
//! scheduler runs, only the scheduler can enforce it, if the kernel reports limits to it.

use super::{Check, Verdict};
use crate::machine::groups::groups_in;
use crate::machine::host::Host;
use crate::util::escape;
use crate::util::text::count;
use crate::wire::stats::host::Condition;
use std::fs;
use std::path::{Path, PathBuf};

/// `ignored`: --ignore-cpu-max is given.
pub fn check(host: &Host, ignored: bool) -> Check {
    let Some(root) = &host.cgroup else {
        return Check::ok("cpu.max", "no cgroup v2 tree");
    };
    let mut walk = QuotaWalk::new(root);
    walk.go_on(usize::MAX);
    if ignored {
        walk.check()
    } else {
        strict(walk.limited, host)
    }
}

/// Fails if a group would lose its limit.
fn strict(limited: Vec<String>, host: &Host) -> Check {
    if limited.is_empty() {
        return none();
    }
    let groups = count(limited.len(), "control group");
    let items = sorted(limited);
    if host.limits_hold() {
        let found = format!("the CPU limit (cpu.max) of {groups} is enforced");
        return Check {
            items,
            ..Check::ok("cpu.max", found)
        };
    }
    let why = if host.reports_limits {
        "this kernel (PREEMPT_RT) has no timers for it"
    } else {
        "this kernel does not report it"
    };
    let found = format!("the CPU limit (cpu.max) of {groups} would not be enforced, because {why}");
    let fix = if host.reports_limits {
        "remove the limit, or start with --ignore-cpu-max"
    } else {
        "boot Linux 6.17 or later, remove the limit, or start with --ignore-cpu-max"
    };
    Check {
        items,
        ..Check::fail("cpu.max", found, fix)
    }
}

fn none() -> Check {
    Check::ok("cpu.max", "no control group has a CPU limit")
}

fn sorted(mut limited: Vec<String>) -> Vec<String> {
    limited.sort();
    limited
}

/// A walk through all groups, in parts, because there may be tens of thousands.
pub struct QuotaWalk {
    root: PathBuf,
    ahead: Vec<PathBuf>,
    limited: Vec<String>,
}

impl QuotaWalk {
    pub fn new(root: &Path) -> QuotaWalk {
        QuotaWalk {
            root: root.to_path_buf(),
            ahead: vec![root.to_path_buf()],
            limited: Vec::new(),
        }
    }

    /// Looks at up to `most` groups; true: the walk is complete.
    pub fn go_on(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Some(dir) = self.ahead.pop() else {
                return true;
            };
            self.look(&dir);
        }
        self.ahead.is_empty()
    }

    /// A group that cannot be read has been removed meanwhile.
    fn look(&mut self, dir: &Path) {
        let text = fs::read_to_string(dir.join("cpu.max")).unwrap_or_default();
        if let Some(percent) = limit_percent(&text) {
            let name = dir
                .strip_prefix(&self.root)
                .unwrap_or(dir)
                .to_string_lossy();
            let name = escape::line(&name);
            self.limited.push(format!("/{name} ({percent} % of a CPU)"));
        }
        self.ahead.extend(groups_in(dir));
    }

    /// A warning, if there is one, when the walk is complete.
    pub fn reported(self) -> Option<String> {
        let check = self.check();
        (check.verdict == Verdict::Warn).then(|| check.reported())
    }

    fn check(self) -> Check {
        found(self.limited)
    }
}

fn found(limited: Vec<String>) -> Check {
    if limited.is_empty() {
        return none();
    }
    let mut check = Check::warn(
        "cpu.max",
        format!(
            "the CPU limit (cpu.max) of {} is not enforced while scx_roost runs",
            count(limited.len(), "control group")
        ),
        "start without --ignore-cpu-max on Linux 6.17 or later, or limit them by cpu.weight",
    )
    .lasting(Condition::QuotaIgnored);
    check.items = sorted(limited);
    check
}

/// '50000 100000' is 50; 'max 100000' is no limit.
fn limit_percent(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    quota.saturating_mul(100).checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::super::ITEMS_SHOWN;
    use super::*;

    #[test]
    fn limits_as_the_kernel_writes_them() {
        assert_eq!(limit_percent("max 100000\n"), None);
        assert_eq!(limit_percent("50000 100000\n"), Some(50));
        assert_eq!(limit_percent("400000 100000\n"), Some(400));
        assert_eq!(limit_percent(""), None);
    }

    #[test]
    fn a_group_of_any_name_is_a_part_of_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("x\x1b[2J\n<0>y");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("cpu.max"), "50000 100000\n").unwrap();
        let mut walk = QuotaWalk::new(dir.path());
        assert!(walk.go_on(10));
        let reported = walk.reported().unwrap();
        assert!(reported.contains("/x\\x1b[2J\\n<0>y (50 %"), "{reported}");
    }

    #[test]
    fn a_walk_in_parts_sees_each_group_once_and_tells_of_some() {
        let dir = tempfile::tempdir().unwrap();
        for group in 0..30 {
            let folder = dir.path().join(format!("a{}/b{group}", group % 3));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cpu.max"), "50000 100000\n").unwrap();
        }
        let mut walk = QuotaWalk::new(dir.path());
        let mut parts = 1;
        while !walk.go_on(10) {
            parts += 1;
        }
        assert_eq!(parts, 4, "34 groups");
        let reported = walk.reported().unwrap();
        assert!(reported.contains("of 30 control groups is"), "{reported}");
        assert_eq!(
            reported.matches("% of a CPU").count(),
            ITEMS_SHOWN,
            "{reported}"
        );
        assert!(reported.ends_with("; and 22 more"), "{reported}");
    }
}
