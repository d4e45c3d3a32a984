// SPDX-License-Identifier: GPL-2.0-only
//! Which tasks each CPU has: for the schedulers of the simulator, and as the policy sees it.

use scx_roost::native::{Kernel, TaskId};

pub struct Cpus {
    /// The task that runs on each CPU.
    pub current: Vec<Option<TaskId>>,
    /// The number of tasks of each CPU that run or wait, in any queue (kernel: rq->nr_running).
    pub nr_running: Vec<u32>,
}

impl Cpus {
    /// All CPUs idle, also for the policy.
    pub fn new(kernel: &mut Kernel) -> Cpus {
        let cpus = kernel.world().nr_cpus();
        let new = Cpus {
            current: vec![None; cpus],
            nr_running: vec![0; cpus],
        };
        (0..cpus).for_each(|cpu| new.view(kernel, cpu));
        new
    }

    /// True if the CPU runs nothing, and no task waits there.
    pub fn idle(&self, cpu: usize) -> bool {
        self.current[cpu].is_none() && self.nr_running[cpu] == 0
    }

    /// Shows the policy the CPU as it is now.
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
