// SPDX-License-Identifier: GPL-2.0-only
//! Counts how often a command and its descendants migrate to another CPU: the kernel's software
//! event, by perf_event_open.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

const TYPE_SOFTWARE: u32 = 1;
/// include/uapi/linux/perf_event.h.
const CPU_MIGRATIONS: u64 = 4;
/// disabled, inherit, enable_on_exec.
const FLAGS: u64 = 1 | 1 << 1 | 1 << 12;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// struct perf_event_attr in its first version, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

/// The migrations of all processes that this thread starts from now on, each from its exec.
pub struct Migrations(File);

/// Whether they can be counted here.
pub fn can_count() -> bool {
    Migrations::of_children().is_some()
}

impl Migrations {
    /// None if the kernel does not permit it.
    pub fn of_children() -> Option<Migrations> {
        let attr = Attr {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attr>() as u32,
            config: CPU_MIGRATIONS,
            flags: FLAGS,
            ..Attr::default()
        };
        let (this_thread, any_cpu, no_group) = (0, -1, -1);
        // SAFETY: the attributes are alive and hold their size; nothing else owns the returned
        // descriptor.
        unsafe {
            let fd = libc::syscall(
                libc::SYS_perf_event_open,
                &attr,
                this_thread,
                any_cpu,
                no_group,
                CLOSE_ON_EXEC,
            );
            (fd >= 0).then(|| Migrations(File::from_raw_fd(fd as i32)))
        }
    }

    pub fn count(&mut self) -> Option<f64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes).ok()?;
        Some(u64::from_ne_bytes(bytes) as f64)
    }
}
