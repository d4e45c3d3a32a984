// SPDX-License-Identifier: GPL-2.0-only
//! The interface of a loaded scheduler. `crate::daemon::bpf_memory` implements it, and so do tests.

use crate::bpf::intf::policy_image;
use crate::policy::rules::Table;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A loaded scheduler, or a test's own.
pub trait Live: Send {
    /// Makes the image live. Returns its generation, which exceeds that of the image and that of
    /// the previous one.
    fn publish(&mut self, image: &policy_image) -> Result<u32>;
    fn set_rules(&mut self, table: &Table) -> Result<()>;
    /// The speed at which ticks found each of the first `nr_cpus` CPUs, of CAPACITY_SCALE.
    fn speeds(&self, nr_cpus: usize) -> Vec<u32>;
    /// Sets the frequency of each CPU by number, in kHz, as of `age` ago.
    fn set_frequencies(&mut self, khz: &[Option<u32>], age: Duration);
    /// The mean idle period of each of the first `nr_cpus` CPUs, in ns. `every`: over periods ended
    /// by any event, not only by wakeups.
    fn idle_means(&self, nr_cpus: usize, every: bool) -> Vec<u64>;
    /// Sets the number of CPUs that a scan may visit in each LLC. It is valid for `counts_ms`.
    fn set_scans(&mut self, worth: &[u32], counts_ms: u32);
    /// Gives the ticket to each thread of the process; they then ask for their arm again.
    fn assign(&mut self, process: BorrowedFd, ticket: Ticket) -> Result<()>;
    /// The kernel has ended the scheduler, or is about to.
    fn ended(&self) -> bool;
    fn audit(&mut self) -> Result<Audit>;
    /// Groups with a CPU limit.
    fn limits(&self) -> Vec<Limit>;
    fn refused(&self) -> Refused;
}

/// Groups that need a place in the scheduler's table and have none (src/bpf/cgroup.bpf.h).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Refused {
    pub count: u64,
    /// The inode of the folder of the one that was refused last.
    pub last: u64,
}

/// The CPU limit of a group (cpu.max), and its account (struct bandwidth).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Limit {
    /// The inode of the group's folder.
    pub cgroup: u64,
    pub quota_us: u64,
    pub period_us: u64,
    pub burst_us: u64,
    /// Periods started so far.
    pub periods: u32,
    /// How often the group ran out of budget while a task wanted to run, and for how long in total
    /// it then had none.
    pub throttled: u32,
    pub throttled_us: u64,
    /// Runtime of tasks of the group and its descendants.
    pub used_us: u64,
    /// How often tasks were parked; and the tasks that are parked now.
    pub parks: u32,
    pub parked: u64,
}

/// An audit of util_est, which each CPU sums up over the tasks that it counts
/// (src/bpf/audit.bpf.h). Tasks that come or go meanwhile may be missed or counted twice.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Audit {
    pub tasks: u64,
    /// Tasks that some CPU counts.
    pub joined: u64,
    /// The sum over all CPUs.
    pub util_est: u64,
    /// The sum of the absolute differences between a CPU's sum and what its tasks added.
    pub util_drift: u64,
    /// The difference of each CPU where it is not 0, by number.
    pub drift_of_cpu: BTreeMap<usize, i64>,
}

/// The ticket of a process. `Exec` takes precedence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ticket {
    Exec(u32),
    Pid(u32),
}
