// SPDX-License-Identifier: GPL-2.0-only
//! Delayed migration: frequencies of CPUs, and what becomes of a task that waits for its move.

use super::{Task, World, sys};

impl World {
    /// What userspace last read of the CPU's frequency, in kHz, `age_ms` ago by a clock that stands still; 0: nothing.
    pub fn set_freq(&mut self, cpu: usize, khz: u32, age_ms: u32) {
        let at = (self.clock_step / 1_000_000) as u32;
        self.freqs[cpu] = u64::from(at.wrapping_sub(age_ms)) << 32 | u64::from(khz);
    }

    /// As `set_freq` left them.
    pub fn freqs(&self) -> &[u64] {
        &self.freqs
    }

    /// The task's delay, if it waits for a move, is over, and it has not run.
    pub fn delay_due(&self, task: &Task, now: u64) -> bool {
        // SAFETY: pure.
        unsafe { sys::roost_delay_due(&task.state, now) }
    }

    /// The delay is over: when it began; None: it was over already.
    pub fn delay_take(&mut self, task: &mut Task) -> Option<u64> {
        // SAFETY: the task lives through the call; so below.
        let began = self.run(|w| unsafe { sys::roost_delay_take(w, &mut task.state) });
        (began > 0).then_some(began)
    }

    /// The task runs on the CPU, or is queued anew (None): when its delay began.
    pub fn delay_runs(&mut self, task: &mut Task, cpu: Option<usize>, now: u64) -> Option<u64> {
        let cpu = cpu.map_or(sys::NO_CPU, |c| c as i32);
        // SAFETY: see `delay_take`; the CPU is only compared.
        let began = self.run(|w| unsafe { sys::roost_delay_runs(w, &mut task.state, cpu, now) });
        (began > 0).then_some(began)
    }

    /// Where the task goes whose delay is over. None: it stays.
    pub fn delay_goes_to(&mut self, task: &Task, now: u64) -> Option<usize> {
        let mut port = task.port();
        // SAFETY: see `delay_take`; C checks the CPU.
        let to = self.run(|w| unsafe { sys::roost_delay_goes_to(w, &mut port, &task.state, now) });
        usize::try_from(to).ok()
    }
}
