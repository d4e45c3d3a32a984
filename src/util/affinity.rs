// SPDX-License-Identifier: GPL-2.0-only
//! The CPUs that a thread may use (sched_setaffinity(2)). Children inherit them.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::Result;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affinity(CpuSet);

impl Affinity {
    pub fn new(cpus: &[u16]) -> Affinity {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|&cpu| set.set(cpu.into()));
        Affinity(set)
    }

    /// Of a thread; 0: the calling one.
    pub fn of(thread: i32) -> Result<Affinity> {
        Ok(Affinity(sched_getaffinity(Pid::from_raw(thread))?))
    }

    /// Sets that of the calling thread. It makes one system call, so it may be called between fork
    /// and exec.
    pub fn take(&self) -> Result<()> {
        Ok(sched_setaffinity(None, &self.0)?)
    }

    /// True if each of its CPUs is in `other`.
    pub fn within(&self, other: &Affinity) -> bool {
        (0..CpuSet::MAX_CPU).all(|cpu| !self.0.is_set(cpu) || other.0.is_set(cpu))
    }
}
