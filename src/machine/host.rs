// SPDX-License-Identifier: GPL-2.0-only
//! Where to read the kernel and the machine. The roots of /sys and /proc are values, never
//! constants in the code that reads them. So tests describe whole machines in a folder, and one
//! test can have two machines.

use super::files::trimmed;
use crate::util::escape;
use crate::util::plain_file;
use anyhow::{Context, Error, Result};
use scx_utils::compat;
use std::ffi::OsString;
use std::io::ErrorKind;
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
    pub reports_limits: bool,
    /// A scheduler can move a running task (SCX_ENQ_IMMED): since Linux 7.1.
    pub moves_running: bool,
}

/// The numbers of a kernel's release, as `uname -r` prints it, and whether it is a candidate.
pub fn release_of(text: &str) -> Option<([u32; 3], bool)> {
    let version = text.split(['-', '+']).next()?;
    let mut numbers = version.split('.').map(|n| n.parse().ok());
    let (major, minor) = (numbers.next()??, numbers.next()??);
    let patch = numbers.next().flatten().unwrap_or(0);
    Some(([major, minor, patch], text.contains("-rc")))
}

impl Host {
    /// The running kernel, on the machine that `sys` describes.
    pub fn new(sys: &Path) -> Host {
        let btf = has_btf();
        Host {
            sys: sys.to_path_buf(),
            kernel: PathBuf::from("/sys/kernel"),
            proc: PathBuf::from("/proc"),
            cgroup: cgroup_mount(),
            reports_limits: btf && reports_limits(),
            moves_running: btf && moves_running(),
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
            reports_limits: false,
            moves_running: false,
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

    /// The one line of a file below /sys, or of a tree of a user's. None: it cannot be read.
    pub fn sys_text(&self, path: &str) -> Option<String> {
        let text = plain_file::text(&self.sys.join(path)).ok()?;
        Some(escape::line(trimmed(&text)).into_owned())
    }

    /// The same below /sys/kernel.
    pub fn kernel_text(&self, path: &str) -> Option<String> {
        text(&self.kernel.join(path))
    }

    pub fn proc_text(&self, path: &str) -> Option<String> {
        text(&self.proc.join(path))
    }

    /// The name of the sched_ext scheduler that is attached. None: there is none.
    pub fn attached_ops(&self) -> Option<String> {
        let state = self.kernel_text("sched_ext/state")?;
        let unknown = || "unknown".to_string();
        let name = || {
            self.kernel_text("sched_ext/root/ops")
                .unwrap_or_else(unknown)
        };
        (state != "disabled").then(name)
    }

    /// The kernel is built with PREEMPT_RT, which refuses bpf_timer. Not every such kernel has the
    /// file `realtime`.
    pub fn preempt_rt(&self) -> bool {
        self.kernel_text("realtime").as_deref() == Some("1")
            || self
                .proc_text("sys/kernel/version")
                .is_some_and(|v| v.split_whitespace().any(|word| word == "PREEMPT_RT"))
    }

    /// The release in numbers, as in 7.2.13, and whether it is only a candidate of that release.
    pub fn release(&self) -> Option<([u32; 3], bool)> {
        release_of(&self.proc_text("sys/kernel/osrelease")?)
    }

    /// A task keeps its task storage when a fork of its is refused. CVE-2026-72110 lists the
    /// releases.
    pub fn keeps_task_storage(&self) -> bool {
        match self.release() {
            Some(([6, 12, patch], _)) => patch >= 97,
            Some(([6, 18, patch], _)) => patch >= 40,
            Some(([7, 1, patch], _)) => patch >= 5,
            Some(([7, 2, 0], candidate)) => !candidate,
            Some((release, _)) => release >= [7, 2, 0],
            None => false,
        }
    }

    /// CPU limits of groups can be enforced. That needs timers, because slices must end when a
    /// group's budget does.
    pub fn limits_hold(&self) -> bool {
        self.reports_limits && !self.preempt_rt()
    }

    /// The kernel's count of hotplug events. It is read before the machine and passed to the kernel
    /// with the scheduler. The kernel refuses the scheduler if a CPU came or went in between.
    pub fn hotplug_seq(&self) -> Result<u64> {
        let path = self.kernel.join("sched_ext/hotplug_seq");
        let text = std::fs::read_to_string(&path).map_err(|e| {
            let why = match e.kind() {
                ErrorKind::NotFound => ": this kernel has no sched_ext",
                _ => "",
            };
            Error::new(e).context(format!("cannot read {}{why}", path.display()))
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

/// scx_utils panics without BTF, as on a kernel that is built without.
fn has_btf() -> bool {
    libbpf_rs::btf::Btf::from_vmlinux().is_ok()
}

fn moves_running() -> bool {
    compat::read_enum("scx_enq_flags", "SCX_ENQ_IMMED").is_ok()
}

fn reports_limits() -> bool {
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
    Some(trimmed(&std::fs::read_to_string(path).ok()?).to_string())
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
    fn releases_that_keep_task_storage_are_known() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::in_folder(root.path());
        assert!(!host.keeps_task_storage());
        std::fs::create_dir_all(host.proc.join("sys/kernel")).unwrap();
        for (release, keeps) in [
            ("6.12.96", false),
            ("6.12.97-arch1", true),
            ("6.16.12+deb13-cloud-amd64", false),
            ("6.18.40", true),
            ("6.19.14+deb13-cloud-amd64", false),
            ("7.0.0-27-generic", false),
            ("7.1.13+deb13-amd64", true),
            ("7.2.0-rc3", false),
            ("7.2-rc3-amd64", false),
            ("7.2.0", true),
            ("7.3.0-rc1", true),
            ("8.0.1", true),
            ("unknown", false),
        ] {
            std::fs::write(host.proc.join("sys/kernel/osrelease"), release).unwrap();
            assert_eq!(host.keeps_task_storage(), keeps, "{release}");
        }
    }
}
