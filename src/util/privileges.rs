// SPDX-License-Identifier: GPL-2.0-only
//! The capabilities that a running scheduler keeps. Each load needs CAP_BPF and CAP_PERFMON. All
//! others are given up for good once the sockets exist, so that a compromised daemon can do less.
//!
//! The kernel keeps capabilities for each thread. So they are given up while there is one thread;
//! later threads inherit what is left.

use anyhow::{Context, Result};
use std::fmt;
use std::io::Error;
use std::path::Path;

/// uapi: _LINUX_CAPABILITY_VERSION_3
const VERSION: u32 = 0x2008_0522;
/// More than the kernel defines.
const CAPABILITIES_MAX: u32 = 64;

/// A set of capabilities, by the numbers of include/uapi/linux/capability.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

const NAMES: [(Capabilities, &str); 8] = [
    (Capabilities::BPF, "CAP_BPF"),
    (Capabilities::PERFMON, "CAP_PERFMON"),
    (Capabilities::SYS_ADMIN, "CAP_SYS_ADMIN"),
    (Capabilities::DAC_OVERRIDE, "CAP_DAC_OVERRIDE"),
    (Capabilities::DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"),
    (Capabilities::IPC_LOCK, "CAP_IPC_LOCK"),
    (Capabilities::SYS_NICE, "CAP_SYS_NICE"),
    (Capabilities::SYS_RESOURCE, "CAP_SYS_RESOURCE"),
];

impl Capabilities {
    pub const DAC_OVERRIDE: Capabilities = Capabilities(1 << 1);
    pub const DAC_READ_SEARCH: Capabilities = Capabilities(1 << 2);
    pub const IPC_LOCK: Capabilities = Capabilities(1 << 14);
    pub const SYS_NICE: Capabilities = Capabilities(1 << 23);
    pub const SYS_RESOURCE: Capabilities = Capabilities(1 << 24);
    pub const SYS_ADMIN: Capabilities = Capabilities(1 << 21);
    pub const PERFMON: Capabilities = Capabilities(1 << 38);
    pub const BPF: Capabilities = Capabilities(1 << 39);

    pub const fn with(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }

    pub const fn and(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 & other.0)
    }

    pub const fn has(self, others: Capabilities) -> bool {
        self.0 & others.0 == others.0
    }

    /// The subset of these that a load needs; None: these are not sufficient. CAP_SYS_ADMIN alone
    /// suffices too: it stood for both before CAP_BPF existed, and the kernel still accepts it.
    pub fn to_load(self) -> Option<Capabilities> {
        let two = Capabilities::BPF.with(Capabilities::PERFMON);
        [two, Capabilities::SYS_ADMIN]
            .into_iter()
            .find(|needed| self.has(*needed))
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let named = NAMES.iter().filter(|(one, _)| self.has(*one));
        let names: Vec<&str> = named.map(|(_, name)| *name).collect();
        match names.is_empty() {
            true => f.write_str("none"),
            false => f.write_str(&names.join(" and ")),
        }
    }
}

/// A path that is needed after the start, and how. A capability replaces a missing permission.
pub struct Wanted<'a> {
    pub path: &'a Path,
    pub access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Files in this folder are read.
    Read,
    /// A file of this folder is removed at the end.
    Remove,
}

impl Access {
    fn mode(self) -> i32 {
        match self {
            Access::Read => libc::R_OK | libc::X_OK,
            Access::Remove => libc::W_OK | libc::X_OK,
        }
    }

    fn instead(self) -> Capabilities {
        match self {
            Access::Read => Capabilities::DAC_READ_SEARCH,
            Access::Remove => Capabilities::DAC_OVERRIDE,
        }
    }
}

/// Gives up everything but `needed`, what a load needs, and what an entry of `wanted` needs in
/// addition. Returns what is kept.
///
/// A program started by this process cannot have more: no_new_privs is set, and the bounding and
/// ambient sets are empty. Without CAP_SETPCAP the bounding set cannot be emptied; then
/// no_new_privs alone ensures this. Errors: the kernel refuses one of these steps.
pub fn shed(needed: Capabilities, wanted: &[Wanted]) -> Result<Capabilities> {
    let own = permitted().context("cannot read this process's capabilities")?;
    let mut kept = own.to_load().unwrap_or_default().with(own.and(needed));
    empty_bounding_set();
    // A kernel without ambient capabilities (before 4.3) has no sched_ext either.
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64)
        .context("cannot clear the ambient capabilities")?;
    set(kept, own).context("cannot drop capabilities")?;
    for one in wanted.iter().filter(|one| !may(one)) {
        kept = kept.with(own.and(one.access.instead()));
    }
    set(kept, kept).context("cannot drop capabilities")?;
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1).context("cannot set no_new_privs")?;
    Ok(kept)
}

/// Checks with the current effective capabilities.
fn may(one: &Wanted) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(one.path.as_os_str().as_bytes()) else {
        return true;
    };
    // SAFETY: the path is alive.
    unsafe {
        libc::faccessat(
            libc::AT_FDCWD,
            path.as_ptr(),
            one.access.mode(),
            libc::AT_EACCESS,
        ) == 0
    }
}

fn empty_bounding_set() {
    for capability in 0..CAPABILITIES_MAX {
        // Fails if unknown to this kernel, or not allowed: no_new_privs is set in any case.
        let _ = prctl(libc::PR_CAPBSET_DROP, capability.into());
    }
}

fn prctl(what: i32, value: u64) -> Result<(), Error> {
    // SAFETY: only numbers are passed.
    match unsafe { libc::prctl(what, value, 0u64, 0u64, 0u64) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// uapi: struct __user_cap_header_struct
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// uapi: struct __user_cap_data_struct; the first of two has the lower 32 capabilities.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const OWN: Header = Header {
    version: VERSION,
    pid: 0,
};

fn permitted() -> Result<Capabilities, Error> {
    let (mut header, mut data) = (OWN, [Data::default(); 2]);
    // SAFETY: the kernel writes two of `Data` for this version.
    let rc = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) };
    if rc < 0 {
        return Err(Error::last_os_error());
    }
    Ok(Capabilities(
        u64::from(data[0].permitted) | u64::from(data[1].permitted) << 32,
    ))
}

/// Sets the capabilities of this thread. Programs that it starts inherit none.
fn set(effective: Capabilities, permitted: Capabilities) -> Result<(), Error> {
    let half = |shift: u32| Data {
        effective: (effective.0 >> shift) as u32,
        permitted: (permitted.0 >> shift) as u32,
        inheritable: 0,
    };
    let (mut header, data) = (OWN, [half(0), half(32)]);
    // SAFETY: the kernel reads two of `Data` for this version.
    match unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Of the calling thread.
    fn status(name: &str) -> u64 {
        let text = fs::read_to_string("/proc/thread-self/status").unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(value.unwrap().trim(), 16).unwrap()
    }

    /// In a thread of its own, because capabilities are given up for good.
    fn after_shedding<T: Send>(
        wanted: &[Wanted],
        seen: impl FnOnce(Capabilities) -> T + Send,
    ) -> T {
        let body = || seen(shed(Capabilities::default(), wanted).unwrap());
        std::thread::scope(|scope| scope.spawn(body).join().unwrap())
    }

    #[test]
    fn nothing_is_left_but_what_a_load_needs() {
        let own = permitted().unwrap();
        let allowed = own.to_load().unwrap_or_default();
        after_shedding(&[], move |kept| {
            assert_eq!(kept, allowed);
            for name in ["CapEff:", "CapPrm:"] {
                assert_eq!(status(name), allowed.0, "{name}");
            }
            for name in ["CapInh:", "CapAmb:"] {
                assert_eq!(status(name), 0, "{name}");
            }
            assert_eq!(status("NoNewPrivs:"), 1);
            // Only a thread with CAP_SETPCAP can empty the bounding set.
            if own.has(Capabilities(1 << 8)) {
                assert_eq!(status("CapBnd:"), 0);
            }
            let inherited = std::thread::spawn(|| status("CapPrm:")).join().unwrap();
            assert_eq!(inherited, allowed.0);
        });
    }

    #[test]
    fn a_folder_that_cannot_be_written_otherwise_keeps_a_capability() {
        let own = permitted().unwrap();
        let dir = tempfile::tempdir().unwrap();
        // As root without capabilities the owner of the folder may not write either.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o500);
        fs::set_permissions(dir.path(), mode).unwrap();
        let of = |access| {
            let path = dir.path();
            after_shedding(&[Wanted { path, access }], |kept| kept)
        };
        let base = own.to_load().unwrap_or_default();
        assert_eq!(of(Access::Read), base);
        let more = own.and(Capabilities::DAC_OVERRIDE);
        assert_eq!(of(Access::Remove), base.with(more));
    }

    #[test]
    fn what_a_load_needs() {
        let two = Capabilities::BPF.with(Capabilities::PERFMON);
        let all = Capabilities(u64::MAX);
        assert_eq!(all.to_load(), Some(two));
        assert_eq!(two.to_load(), Some(two));
        let admin = Capabilities::SYS_ADMIN;
        assert_eq!(admin.with(Capabilities::BPF).to_load(), Some(admin));
        assert_eq!(Capabilities::BPF.to_load(), None);
        assert_eq!(two.to_string(), "CAP_BPF and CAP_PERFMON");
        assert_eq!(Capabilities(0).to_string(), "none");
    }
}
