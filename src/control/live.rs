// SPDX-License-Identifier: GPL-2.0-only
//! What a loaded scheduler is told and asked (`crate::live` does it; tests have their own).

use crate::bpf::intf::policy_image;
use crate::rules::Table;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A loaded scheduler, or a test's own.
pub trait Live: Send {
    /// Makes the image live; the answer is its generation, which is greater than that of the image and of the one before.
    fn publish(&mut self, image: &policy_image) -> Result<u32>;
    fn set_rules(&mut self, table: &Table) -> Result<()>;
    /// How fast ticks found each of the first `nr_cpus` CPUs, of CAPACITY_SCALE.
    fn speeds(&self, nr_cpus: usize) -> Vec<u32>;
    /// The frequency of each CPU by number, in kHz, as it was `age` ago.
    fn set_frequencies(&mut self, khz: &[Option<u32>], age: Duration);
    /// The mean idle period of each of the first `nr_cpus` CPUs, in ns; `every`: as ended by whatever arrives.
    fn idle_means(&self, nr_cpus: usize, every: bool) -> Vec<u64>;
    /// How many CPUs of each LLC a scan is worth, which counts for so long.
    fn set_scans(&mut self, worth: &[u32], counts_ms: u32);
    /// Each thread of the process, which then asks anew.
    fn tell(&mut self, process: BorrowedFd, ticket: Ticket) -> Result<()>;
    /// The kernel has ended it, or is about to.
    fn ended(&self) -> bool;
    fn audit(&mut self) -> Result<Audit>;
    /// Groups with a CPU limit.
    fn limits(&self) -> Vec<Limit>;
}

/// The CPU limit of a group (cpu.max), and what became of it (struct bandwidth).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Limit {
    /// The inode of the group's folder.
    pub cgroup: u64,
    pub quota_us: u64,
    pub period_us: u64,
    pub burst_us: u64,
    /// Periods that were begun.
    pub periods: u32,
    /// How often the group ran out of budget while a task wanted to run, and for how long it had
    /// none then.
    pub throttled: u32,
    pub throttled_us: u64,
    /// What tasks of the group and below ran.
    pub used_us: u64,
    /// Tasks parked, as often as they were; and tasks that are parked now.
    pub parks: u32,
    pub parked: u64,
}

/// Of util_est, which each CPU sums up over the tasks that it counts (src/bpf/audit.bpf.h). Who comes or goes meanwhile may be
/// missed or counted twice.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Audit {
    pub tasks: u64,
    /// Those that some CPU counts.
    pub joined: u64,
    /// Of all CPUs.
    pub util_est: u64,
    /// By how much the CPUs' sums are not what their tasks gave, without sign.
    pub util_drift: u64,
    /// Of the CPUs where that is not 0, by number.
    pub drift_of_cpu: BTreeMap<usize, i64>,
}

/// What a process is told; the first counts more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ticket {
    Exec(u32),
    Pid(u32),
}
