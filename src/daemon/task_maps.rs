// SPDX-License-Identifier: GPL-2.0-only
//! Which map keeps the states of tasks, and for how many tasks (`task_state.bpf.h`).

use crate::bpf::skel::OpenBpfMaps;
use crate::machine::host::Host;
use anyhow::Result;
use std::os::fd::BorrowedFd;

/// The kernel's PID_MAX_LIMIT on 64 bits.
const PID_MAX_LIMIT: u64 = 1 << 22;

/// Makes the one map or the other before they are loaded. `members`: the map of processes on an arm
/// from the last load. `limits`: CPU limits are enforced, so tasks may ask to be told of their
/// return to user mode.
pub fn make_room(
    maps: &mut OpenBpfMaps,
    host: &Host,
    by_storage: bool,
    limits: bool,
    members: Option<BorrowedFd>,
) -> Result<()> {
    let tasks = tasks_max(host);
    maps.task_states.set_autocreate(by_storage)?;
    maps.hashed_states.set_autocreate(!by_storage)?;
    maps.hashed_states.set_max_entries(tasks)?;
    if host.preempt_rt() {
        // There a thread of low priority allocates entries. The load, and real-time tasks that
        // fork, would not wait for it, and fail. So all entries are allocated now.
        maps.hashed_states.set_map_flags(0)?;
    }
    maps.return_works
        .set_max_entries(if limits { tasks } else { 1 })?;
    match members {
        Some(members) => maps.arm_members.reuse_fd(members)?,
        None => maps.arm_members.set_max_entries(tasks)?,
    }
    Ok(())
}

/// How many tasks may have a state at a time: twice the kernel's limit of threads, because a task
/// may keep its state for a while after its death. The limit may later be raised, or be below what
/// runs already, so it is at least 32,768.
fn tasks_max(host: &Host) -> u32 {
    let limit = host.proc_text("sys/kernel/threads-max");
    let limit = limit.and_then(|text| text.parse().ok());
    let twice = limit.unwrap_or(PID_MAX_LIMIT).saturating_mul(2);
    twice.clamp(1 << 15, PID_MAX_LIMIT) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_have_room_by_the_limit_of_threads() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::in_folder(root.path());
        let file = host.proc.join("sys/kernel/threads-max");
        assert_eq!(tasks_max(&host), 1 << 22);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        for (limit, tasks) in [("100", 1 << 15), ("193000", 386_000), ("4194303", 1 << 22)] {
            std::fs::write(&file, format!("{limit}\n")).unwrap();
            assert_eq!(tasks_max(&host), tasks);
        }
    }
}
