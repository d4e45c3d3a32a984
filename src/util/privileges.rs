// SPDX-License-Identifier: GPL-2.0-only
//! The capabilities that a running scheduler keeps. Each load needs CAP_BPF and CAP_PERFMON. All
//! others are given up for good once the sockets exist, so that a compromised daemon can do less.
//!
//! The kernel keeps capabilities for each thread. So they are given up while there is one thread;
//! later threads inherit what is left.

use anyhow::{Context, Result};
use rustix::fs::{self, AtFlags, CWD};
use rustix::io;
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::path::Path;

/// The subset of these that a load needs; None: these are not sufficient. CAP_SYS_ADMIN alone
/// suffices too: it stood for both before CAP_BPF existed, and the kernel still accepts it.
pub fn to_load(own: CapabilitySet) -> Option<CapabilitySet> {
    let two = CapabilitySet::BPF | CapabilitySet::PERFMON;
    [two, CapabilitySet::SYS_ADMIN]
        .into_iter()
        .find(|needed| own.contains(*needed))
}

/// `CAP_BPF and CAP_PERFMON`, or `none`.
pub fn names(set: CapabilitySet) -> String {
    // The highest number first: those that a load needs.
    let mut names: Vec<String> = set.iter_names().map(|(n, _)| format!("CAP_{n}")).collect();
    names.reverse();
    match names.is_empty() {
        true => "none".to_string(),
        false => names.join(" and "),
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
    fn mode(self) -> fs::Access {
        match self {
            Access::Read => fs::Access::READ_OK | fs::Access::EXEC_OK,
            Access::Remove => fs::Access::WRITE_OK | fs::Access::EXEC_OK,
        }
    }

    fn instead(self) -> CapabilitySet {
        match self {
            Access::Read => CapabilitySet::DAC_READ_SEARCH,
            Access::Remove => CapabilitySet::DAC_OVERRIDE,
        }
    }
}

/// Gives up everything but `needed`, what a load needs, and what an entry of `wanted` needs in
/// addition. Returns what is kept.
///
/// A program started by this process cannot have more: no_new_privs is set, and the bounding and
/// ambient sets are empty. Without CAP_SETPCAP the bounding set cannot be emptied; then
/// no_new_privs alone ensures this. Errors: the kernel refuses one of these steps.
pub fn shed(needed: CapabilitySet, wanted: &[Wanted]) -> Result<CapabilitySet> {
    let own = thread::capabilities(None).context("cannot read this process's capabilities")?;
    let own = own.permitted;
    let mut kept = to_load(own).unwrap_or(CapabilitySet::empty()) | own & needed;
    empty_bounding_set();
    // A kernel without ambient capabilities (before 4.3) has no sched_ext either.
    thread::clear_ambient_capability_set().context("cannot clear the ambient capabilities")?;
    set(kept, own).context("cannot drop capabilities")?;
    for one in wanted.iter().filter(|one| !may(one)) {
        kept |= own & one.access.instead();
    }
    set(kept, kept).context("cannot drop capabilities")?;
    thread::set_no_new_privs(true).context("cannot set no_new_privs")?;
    Ok(kept)
}

/// Checks with the current effective capabilities.
fn may(one: &Wanted) -> bool {
    fs::accessat(CWD, one.path, one.access.mode(), AtFlags::EACCESS).is_ok()
}

fn empty_bounding_set() {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // Fails if unknown to this kernel, or not allowed: no_new_privs is set in any case.
        let _ = thread::remove_capability_from_bounding_set(one);
    }
}

/// Sets the capabilities of this thread. Programs that it starts inherit none.
fn set(effective: CapabilitySet, permitted: CapabilitySet) -> io::Result<()> {
    let sets = CapabilitySets {
        effective,
        permitted,
        inheritable: CapabilitySet::empty(),
    };
    thread::set_capabilities(None, sets)
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
        seen: impl FnOnce(CapabilitySet) -> T + Send,
    ) -> T {
        let body = || seen(shed(CapabilitySet::empty(), wanted).unwrap());
        std::thread::scope(|scope| scope.spawn(body).join().unwrap())
    }

    #[test]
    fn nothing_is_left_but_what_a_load_needs() {
        let own = thread::capabilities(None).unwrap().permitted;
        let allowed = to_load(own).unwrap_or(CapabilitySet::empty());
        after_shedding(&[], move |kept| {
            assert_eq!(kept, allowed);
            for name in ["CapEff:", "CapPrm:"] {
                assert_eq!(status(name), allowed.bits(), "{name}");
            }
            for name in ["CapInh:", "CapAmb:"] {
                assert_eq!(status(name), 0, "{name}");
            }
            assert_eq!(status("NoNewPrivs:"), 1);
            // Only a thread with CAP_SETPCAP can empty the bounding set.
            if own.contains(CapabilitySet::SETPCAP) {
                assert_eq!(status("CapBnd:"), 0);
            }
            let inherited = std::thread::spawn(|| status("CapPrm:")).join().unwrap();
            assert_eq!(inherited, allowed.bits());
        });
    }

    #[test]
    fn a_folder_that_cannot_be_written_otherwise_keeps_a_capability() {
        let own = thread::capabilities(None).unwrap().permitted;
        let dir = tempfile::tempdir().unwrap();
        // As root without capabilities the owner of the folder may not write either.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o500);
        fs::set_permissions(dir.path(), mode).unwrap();
        let of = |access| {
            let path = dir.path();
            after_shedding(&[Wanted { path, access }], |kept| kept)
        };
        let base = to_load(own).unwrap_or(CapabilitySet::empty());
        assert_eq!(of(Access::Read), base);
        let more = own & CapabilitySet::DAC_OVERRIDE;
        assert_eq!(of(Access::Remove), base | more);
    }

    #[test]
    fn what_a_load_needs() {
        let two = CapabilitySet::BPF | CapabilitySet::PERFMON;
        assert_eq!(to_load(CapabilitySet::all()), Some(two));
        assert_eq!(to_load(two), Some(two));
        let admin = CapabilitySet::SYS_ADMIN;
        assert_eq!(to_load(admin | CapabilitySet::BPF), Some(admin));
        assert_eq!(to_load(CapabilitySet::BPF), None);
        assert_eq!(names(two), "CAP_BPF and CAP_PERFMON");
        assert_eq!(names(CapabilitySet::empty()), "none");
    }
}
