// SPDX-License-Identifier: GPL-2.0-only
//! Where to read the kernel and the machine. The roots of /sys and /proc are values, never
//! constants in the code that reads them. So tests describe whole machines in a folder, and one
//! test can have two machines.

use anyhow::{Context, Result};
use scx_utils::compat;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Host {
    /// Describes the machine: /sys, or the folder given with --sysfs.
    pub sys: PathBuf,
    /// Describes the running kernel: /sys/kernel.
    pub kernel: PathBuf,
    pub proc: PathBuf,
    /// Root of the cgroup v2 tree, where there is one.
    pub cgroup: Option<PathBuf>,
    /// The kernel reports CPU limits (cpu.max) to the scheduler: since Linux 6.17.
    pub tells_of_limits: bool,
}

impl Host {
    /// The running kernel, on the machine that `sys` describes.
    pub fn new(sys: &Path) -> Host {
        Host {
            sys: sys.to_path_buf(),
            kernel: PathBuf::from("/sys/kernel"),
            proc: PathBuf::from("/proc"),
            cgroup: cgroup_mount(),
            tells_of_limits: tells_of_limits(),
        }
    }

    /// Machine and kernel as described by a folder, which has the contents of /sys, and of /proc
    /// below `proc`.
    pub fn in_folder(root: &Path) -> Host {
        Host {
            sys: root.to_path_buf(),
            kernel: root.join("kernel"),
            proc: root.join("proc"),
            cgroup: Some(root.join("fs/cgroup")).filter(|p| p.is_dir()),
            tells_of_limits: false,
        }
    }

    /// The machine is the one that the kernel runs on.
    pub fn own_machine(&self) -> bool {
        self.sys == Path::new("/sys")
    }

    /// The machine is described elsewhere (--sysfs) than the kernel. Its files may be on any file
    /// system, and hang.
    pub fn described(&self) -> bool {
        self.kernel != self.sys.join("kernel")
    }

    /// The kernel is the one that runs this process.
    pub fn own_kernel(&self) -> bool {
        self.kernel == Path::new("/sys/kernel")
    }

    /// The trimmed text of a file below /sys. None: it cannot be read.
    pub fn sys_text(&self, path: &str) -> Option<String> {
        text(&self.sys.join(path))
    }

    /// The same below /sys/kernel.
    pub fn kernel_text(&self, path: &str) -> Option<String> {
        text(&self.kernel.join(path))
    }

    pub fn proc_text(&self, path: &str) -> Option<String> {
        text(&self.proc.join(path))
    }

    /// The kernel is built with PREEMPT_RT, which refuses bpf_timer. Not every such kernel has the
    /// file `realtime`.
    pub fn preempt_rt(&self) -> bool {
        self.kernel_text("realtime").as_deref() == Some("1")
            || self
                .proc_text("sys/kernel/version")
                .is_some_and(|v| v.split_whitespace().any(|word| word == "PREEMPT_RT"))
    }

    /// CPU limits of groups can be enforced. That needs timers, because slices must end when a
    /// group's budget does.
    pub fn limits_hold(&self) -> bool {
        self.tells_of_limits && !self.preempt_rt()
    }

    /// The kernel's count of hotplug events. It is read before the machine and passed to the kernel
    /// with the scheduler. The kernel refuses the scheduler if a CPU came or went in between.
    pub fn hotplug_seq(&self) -> Result<u64> {
        let path = self.kernel.join("sched_ext/hotplug_seq");
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read {}: this kernel has no sched_ext",
                path.display()
            )
        })?;
        text.trim().parse().with_context(|| {
            format!(
                "{} reads '{}': expected a number",
                path.display(),
                text.trim()
            )
        })
    }
}

/// The kernel's PID_MAX_LIMIT on 64 bits.
const PID_MAX_LIMIT: u64 = 1 << 22;

/// How many tasks may have a state at a time: twice the kernel's limit of threads, because a dead
/// task may keep its state until an RCU grace period is over. The limit may later be raised, or be
/// below what runs already, so it is at least 32,768. `proc`: /proc.
pub fn tasks_max(proc: &Path) -> u32 {
    let limit = text(&proc.join("sys/kernel/threads-max")).and_then(|t| t.parse().ok());
    let limit: u64 = limit.unwrap_or(PID_MAX_LIMIT);
    limit.saturating_mul(2).clamp(1 << 15, PID_MAX_LIMIT) as u32
}

/// Version and patch level of the kernel's release, as in 7.2. `proc`: /proc.
pub fn version(proc: &Path) -> Option<(u32, u32)> {
    let release = text(&proc.join("sys/kernel/osrelease"))?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

fn tells_of_limits() -> bool {
    compat::struct_has_field("sched_ext_ops", "cgroup_set_bandwidth").unwrap_or(false)
}

fn cgroup_mount() -> Option<PathBuf> {
    let mounts = text(Path::new("/proc/self/mounts"))?;
    let mut fields = mounts
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>());
    let mount = fields.find(|f| f.get(2) == Some(&"cgroup2"))?;
    Some(PathBuf::from(unescaped(mount[1])))
}

/// A path as /proc/self/mounts writes it, where three octal digits after `\` are a byte (kernel:
/// mangle()).
fn unescaped(path: &str) -> OsString {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|d| str::from_utf8(d).ok());
        let byte = digits.and_then(|d| u8::from_str_radix(d, 8).ok());
        match byte.filter(|_| first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

fn text(path: &Path) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mounts_are_decoded() {
        for (escaped, path) in [
            ("/sys/fs/cgroup", "/sys/fs/cgroup"),
            (r"/my\040groups", "/my groups"),
            (r"/a\134040", r"/a\040"),
            (r"/end\04", r"/end\04"),
        ] {
            assert_eq!(unescaped(escaped), path);
        }
    }

    #[test]
    fn tasks_have_room_by_the_limit_of_threads() {
        let proc = tempfile::tempdir().unwrap();
        let file = proc.path().join("sys/kernel/threads-max");
        assert_eq!(tasks_max(proc.path()), 1 << 22);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        for (limit, tasks) in [("100", 1 << 15), ("193000", 386_000), ("4194303", 1 << 22)] {
            std::fs::write(&file, format!("{limit}\n")).unwrap();
            assert_eq!(tasks_max(proc.path()), tasks);
        }
    }
}
