// SPDX-License-Identifier: GPL-2.0-only
//! scx_rustland_core, as it generates itself into a program (build/rustland.rs), and its state of a
//! task.

use super::Stamps;
use crate::bpf::exit::{self, Exit};
use crate::bpf::skel::types::user_exit_info;
use crate::bpf::{copy_rows, twins};
use anyhow::Context;
use libbpf_rs::MapCore;
use libbpf_rs::libbpf_sys::bpf_map_lookup_elem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::slice::{from_mut, from_ref};

#[allow(clippy::all, clippy::pedantic, dead_code, missing_docs)]
#[allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]
mod bpf_intf {
    include!(concat!(env!("OUT_DIR"), "/rustland/bpf_intf.rs"));
}

#[allow(clippy::all, clippy::pedantic, dead_code, missing_docs)]
mod bpf_skel {
    include!(concat!(env!("OUT_DIR"), "/rustland/bpf_skel.rs"));
}

#[rustfmt::skip]
#[allow(clippy::all, clippy::pedantic, dead_code, missing_docs, unused)]
mod bpf {
    include!(concat!(env!("OUT_DIR"), "/rustland/core.rs"));
}

pub use bpf::{BpfScheduler, DispatchedTask, QueuedTask, RL_CPU_ANY};

twins! { unsafe user_exit_info = bpf_skel::types::user_exit_info }

/// Detaches, and reports why the scheduler ended. After an error exit the reason is the error.
pub fn unload(bpf: &mut BpfScheduler) -> anyhow::Result<Exit> {
    bpf.detach();
    let data = bpf.skel.maps.data_data.as_ref();
    let data = data.context("scx_rustland_core has no .data")?;
    let mut recorded = user_exit_info::default();
    copy_rows(from_mut(&mut recorded), from_ref(&data.uei))?;
    exit::report(&recorded)
}

/// struct task_ctx in the core's main.bpf.c.
#[repr(C)]
#[derive(Default)]
struct TaskCtx {
    start_ts: u64,
    stop_ts: u64,
    exec_runtime: u64,
    enq_cnt: u64,
}

/// Kept for so many tasks, each with a file.
const FILES_MAX: usize = 512;

/// Reads the core's stamps of tasks, by a pidfd of each. The slot of a pid is its remainder.
pub struct TaskStates {
    map: i32,
    files: Vec<Option<(i32, OwnedFd)>>,
}

impl TaskStates {
    /// Fails if the core's state of a task is not what it was.
    pub fn new(bpf: &BpfScheduler) -> anyhow::Result<TaskStates> {
        let map = &bpf.skel.maps.task_ctx_stor;
        anyhow::ensure!(
            map.value_size() as usize == size_of::<TaskCtx>(),
            "scx_rustland_core keeps {} bytes of a task, not {}: its struct task_ctx has changed",
            map.value_size(),
            size_of::<TaskCtx>()
        );
        Ok(TaskStates {
            map: map.as_fd().as_raw_fd(),
            files: (0..FILES_MAX).map(|_| None).collect(),
        })
    }

    /// None: the task has ended.
    pub fn stamps(&mut self, pid: i32) -> Option<Stamps> {
        let slot = &mut self.files[pid as usize % FILES_MAX];
        if let Some((of, file)) = slot
            && *of == pid
            && let Some(stamps) = stamps_of(self.map, file)
        {
            return Some(stamps);
        }
        // It may be another task, which was given the pid of an ended one.
        *slot = None;
        let file = pidfd_of_thread(pid)?;
        let stamps = stamps_of(self.map, &file)?;
        *slot = Some((pid, file));
        Some(stamps)
    }
}

/// None: its task has ended.
fn stamps_of(map: i32, pidfd: &OwnedFd) -> Option<Stamps> {
    let (key, mut state) = (pidfd.as_raw_fd(), TaskCtx::default());
    // SAFETY: the key is a file descriptor, and the map's values are as long as `state`.
    let found =
        unsafe { bpf_map_lookup_elem(map, (&raw const key).cast(), (&raw mut state).cast()) };
    (found == 0).then_some(Stamps {
        start: state.start_ts,
        stop: state.stop_ts,
    })
}

/// Makes the process's table of files large enough for all of them. The kernel enlarges it only
/// after an RCU grace period, whose thread waits for this scheduler: later that would never end.
pub fn make_room() -> anyhow::Result<()> {
    const LAST: i32 = FILES_MAX as i32 + 128;
    // SAFETY: numbers are passed; the descriptor is new.
    unsafe {
        let last = libc::fcntl(2, libc::F_DUPFD_CLOEXEC, LAST);
        if last < 0 {
            let e = std::io::Error::last_os_error();
            anyhow::bail!(
                "--backend rust needs {} open files: {e}; raise the limit (ulimit -n)",
                LAST + 1
            );
        }
        libc::close(last);
    }
    Ok(())
}

fn pidfd_of_thread(pid: i32) -> Option<OwnedFd> {
    /// uapi: PIDFD_THREAD, since Linux 6.9
    const THREAD: i32 = libc::O_EXCL;
    // SAFETY: two numbers are passed; the descriptor is new.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, THREAD) as i32;
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}
