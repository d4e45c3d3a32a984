// SPDX-License-Identifier: GPL-2.0-only
//! Which tasks each CPU has, as every scheduler of the simulator keeps it, and as the policy is shown it.

use crate::native::{Kernel, TaskId};

pub struct Cpus {
    /// Who runs on each.
    pub current: Vec<Option<TaskId>>,
    /// Tasks of each that run or wait, in whichever queue (kernel: rq->nr_running).
    pub nr_running: Vec<u32>,
}

impl Cpus {
    /// All idle; the policy sees them so.
    pub fn new(kernel: &mut Kernel) -> Cpus {
        let cpus = kernel.world().nr_cpus();
        let new = Cpus {
            current: vec![None; cpus],
            nr_running: vec![0; cpus],
        };
        (0..cpus).for_each(|cpu| new.view(kernel, cpu));
        new
    }

    /// It runs nothing, and nobody waits there.
    pub fn idle(&self, cpu: usize) -> bool {
        self.current[cpu].is_none() && self.nr_running[cpu] == 0
    }

    /// The policy sees the CPU as it is now.
    pub fn view(&self, kernel: &mut Kernel, cpu: usize) {
        let local = kernel.local(cpu).len() as u32;
        let (view, run) = kernel.view(cpu);
        view.idle = self.idle(cpu).into();
        view.nr_running = self.nr_running[cpu];
        run.curr_idle = self.current[cpu].is_none().into();
        run.local = local;
    }

    pub fn counts(&mut self, kernel: &mut Kernel, cpu: usize, more: i32) {
        let count = self.nr_running[cpu].checked_add_signed(more);
        self.nr_running[cpu] = count.expect("no CPU has less than no task");
        self.view(kernel, cpu);
    }
}
