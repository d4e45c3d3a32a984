// SPDX-License-Identifier: GPL-2.0-only
//! Groups that lose their CPU limit: cpu.max (systemd's CPUQuota, containers' --cpus) is enforced by the kernel's
//! fair class only, and no longer while a scheduler without bandwidth control runs.

use super::{Check, Verdict};
use crate::host::Host;
use crate::stats::host::Condition;
use crate::topology_view::count;
use std::fs;
use std::path::{Path, PathBuf};

pub fn check(host: &Host) -> Check {
    let Some(root) = &host.cgroup else {
        return Check::ok("cpu.max", "no cgroup v2 tree");
    };
    let mut walk = QuotaWalk::new(root);
    walk.go_on(usize::MAX);
    walk.check()
}

/// Through all groups, in parts: there may be tens of thousands.
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

    /// Looks at so many groups at most; true: those were the last.
    pub fn go_on(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Some(dir) = self.ahead.pop() else {
                return true;
            };
            self.look(&dir);
        }
        self.ahead.is_empty()
    }

    /// Groups come and go meanwhile: what cannot be read has gone.
    fn look(&mut self, dir: &Path) {
        let text = fs::read_to_string(dir.join("cpu.max")).unwrap_or_default();
        if let Some(percent) = limit_percent(&text) {
            let name = dir.strip_prefix(&self.root).unwrap_or(dir).display();
            self.limited.push(format!("/{name} ({percent} % of a CPU)"));
        }
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
        self.ahead.extend(folders.map(|e| e.path()));
    }

    /// What is to be told when the walk is over.
    pub fn told(self) -> Option<String> {
        let check = self.check();
        (check.verdict == Verdict::Warn).then(|| check.told())
    }

    fn check(self) -> Check {
        found(self.limited)
    }
}

fn found(mut limited: Vec<String>) -> Check {
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

/// '50000 100000' is 50; 'max 100000' is no limit.
fn limit_percent(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    quota.saturating_mul(100).checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::super::ITEMS_TOLD;
    use super::*;

    #[test]
    fn limits_as_the_kernel_writes_them() {
        assert_eq!(limit_percent("max 100000\n"), None);
        assert_eq!(limit_percent("50000 100000\n"), Some(50));
        assert_eq!(limit_percent("400000 100000\n"), Some(400));
        assert_eq!(limit_percent(""), None);
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
        let told = walk.told().unwrap();
        assert!(told.contains("of 30 control groups is"), "{told}");
        assert_eq!(told.matches("% of a CPU").count(), ITEMS_TOLD, "{told}");
        assert!(told.ends_with("; and 22 more"), "{told}");
    }
}
