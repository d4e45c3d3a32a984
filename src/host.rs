// SPDX-License-Identifier: GPL-2.0-only
//! Where the kernel shows itself. The roots of /sys and /proc are values, never constants in the code that reads
//! them: tests describe whole machines in a folder, and two of them can exist in one test.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Host {
    pub sys: PathBuf,
    pub proc: PathBuf,
    /// Root of the cgroup v2 tree, where there is one.
    pub cgroup: Option<PathBuf>,
}

impl Host {
    /// The running machine, with /sys replaced by `sys`.
    pub fn new(sys: &Path) -> Host {
        let mut host = Host {
            sys: sys.to_path_buf(),
            proc: PathBuf::from("/proc"),
            cgroup: None,
        };
        host.cgroup = host.find_cgroup();
        host
    }

    /// On the running machine it may be mounted anywhere; a described machine has it in its usual place.
    fn find_cgroup(&self) -> Option<PathBuf> {
        if !self.is_real() {
            return Some(self.sys.join("fs/cgroup")).filter(|p| p.is_dir());
        }
        let mounts = self.proc_text("self/mounts")?;
        let mut fields = mounts
            .lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>());
        let mount = fields.find(|f| f.get(2) == Some(&"cgroup2"))?;
        Some(PathBuf::from(mount[1]))
    }

    pub fn is_real(&self) -> bool {
        self.sys == Path::new("/sys")
    }

    /// The trimmed text of a file below /sys, or None where the kernel does not offer it.
    pub fn sys_text(&self, path: &str) -> Option<String> {
        text(&self.sys.join(path))
    }

    pub fn proc_text(&self, path: &str) -> Option<String> {
        text(&self.proc.join(path))
    }

    /// The kernel is built with PREEMPT_RT, where bpf_timer is refused.
    pub fn preempt_rt(&self) -> bool {
        self.sys_text("kernel/realtime").as_deref() == Some("1")
    }

    /// Counts CPUs coming and going. It is read before the machine and handed to the kernel with the scheduler,
    /// which refuses it if a CPU came or went in between.
    pub fn hotplug_seq(&self) -> Result<u64> {
        let path = self.sys.join("kernel/sched_ext/hotplug_seq");
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read {}: this kernel has no sched_ext",
                path.display()
            )
        })?;
        text.trim().parse().with_context(|| {
            format!(
                "{} reads '{}', a number is expected",
                path.display(),
                text.trim()
            )
        })
    }
}

fn text(path: &Path) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_string())
}
