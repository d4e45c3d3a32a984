// SPDX-License-Identifier: GPL-2.0-only
//! A task as the policy sees it, and one wakeup of it.

use super::{World, sys};
use crate::machine::Facts;

/// A task's state (state.h), its pid and its CPU mask.
#[derive(Clone, Debug)]
pub struct Task {
    pub pid: u32,
    pub state: sys::task_state,
    allowed: Vec<u64>,
    restricted: bool,
}

impl Task {
    /// A task of nice 0 that may run everywhere, with the policy of arm 0.
    pub fn new(pid: u32, world: &World) -> Self {
        let words = world.nr_cpus().div_ceil(64);
        let arm = &world.policy().arm[0].task;
        Task {
            pid,
            state: sys::task_state {
                pol: sys::task_policy {
                    features: arm.features,
                    arm: arm.arm,
                    slice_ns: arm.slice_ns,
                    min_slice_ns: arm.min_slice_ns,
                    claim_ttl_ns: arm.claim_ttl_ns,
                    fits_scale: arm.fits_scale,
                    fits_rt: arm.fits_rt,
                    delay_ns: arm.delay_ns,
                    rules: 0,
                },
                weight: sys::NICE0_WEIGHT,
                nice_weight: sys::NICE0_WEIGHT,
                ..Default::default()
            },
            allowed: vec![u64::MAX; words],
            restricted: false,
        }
    }

    /// Restricts the task to the CPUs of `mask`, one bit per CPU number.
    pub fn allow(&mut self, mask: &[u64], facts: &Facts) {
        self.allowed.copy_from_slice(mask);
        self.restricted =
            (0..facts.cpus.len()).any(|c| facts.cpus[c].online != 0 && !self.in_mask(c));
    }

    /// The mask that `allow` has set.
    pub fn mask(&self) -> &[u64] {
        &self.allowed
    }

    /// The mask excludes some online CPU.
    pub fn restricted(&self) -> bool {
        self.restricted
    }

    fn in_mask(&self, cpu: usize) -> bool {
        self.allowed[cpu / 64] >> (cpu % 64) & 1 != 0
    }

    /// The CPU is online and in the task's mask.
    pub fn may_use(&self, cpu: usize, facts: &Facts) -> bool {
        facts.cpus[cpu].online != 0 && self.in_mask(cpu)
    }

    /// As `port`, on a CPU.
    pub fn port_on(&self, cpu: usize) -> sys::port_task {
        sys::port_task {
            cpu: cpu as i32,
            ..self.port()
        }
    }

    /// The task for C: its mask and its pid.
    pub fn port(&self) -> sys::port_task {
        sys::port_task {
            allowed: self.allowed.as_ptr(),
            restricted: self.restricted.into(),
            pid: self.pid,
            ..Default::default()
        }
    }
}

/// The facts of one wakeup or fork, as select_cpu gathers them (select_cpu.h).
pub struct Wakeup<'a> {
    pub task: &'a mut Task,
    /// The current task; None: the idle task, or a task without state.
    pub waker: Option<&'a mut Task>,
    pub waker_pid: u32,
    /// ns
    pub now: u64,
    /// Bits of `sys::roost_feature`.
    pub features: u32,
    pub this_cpu: usize,
    /// Where the task last ran, allowed or not.
    pub prev: usize,
    pub prev_allowed: bool,
    pub this_allowed: bool,
    pub fork: bool,
    pub sync: bool,
    pub waker_pcpu_kthread: bool,
}

impl<'a> Wakeup<'a> {
    /// A plain wakeup by a task without state; the caller changes what is different.
    pub fn new(task: &'a mut Task, this_cpu: usize, prev: usize, facts: &Facts) -> Self {
        Wakeup {
            prev_allowed: task.may_use(prev, facts),
            this_allowed: task.may_use(this_cpu, facts),
            task,
            waker: None,
            waker_pid: 0,
            now: 0,
            features: 0,
            this_cpu,
            prev,
            fork: false,
            sync: false,
            waker_pcpu_kthread: false,
        }
    }

    /// The task, on the CPU where it last ran.
    pub(super) fn port(&self) -> sys::port_task {
        self.task.port_on(self.prev)
    }

    pub(super) fn raw(&self) -> sys::wakeup {
        sys::wakeup {
            pid: self.task.pid,
            now: self.now,
            features: self.features,
            arm: self.task.state.pol.arm,
            claim_ttl: self.task.state.pol.claim_ttl_ns as u32,
            waker_pid: self.waker_pid,
            this_cpu: self.this_cpu as i32,
            prev: if self.prev_allowed {
                self.prev as i32
            } else {
                sys::NO_CPU
            },
            last_cpu: self.prev as i32,
            fork: self.fork,
            sync: self.sync,
            this_allowed: self.this_allowed,
            waker_pcpu_kthread: self.waker_pcpu_kthread,
            // The rest is from the task's state, and C adds it.
            ..Default::default()
        }
    }
}
