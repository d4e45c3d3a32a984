// SPDX-License-Identifier: GPL-2.0-only
//! Delayed migration: frequencies of CPUs, and what happens to a task that waits for its move.

use super::{Task, World, sys};

impl World {
    /// Sets userspace's last reading of the CPU's frequency, in kHz, `age_ms` ago by a clock that
    /// does not advance; 0 kHz: unknown.
    pub fn set_freq(&mut self, cpu: usize, khz: u32, age_ms: u32) {
        let at = (self.clock_step / 1_000_000) as u32;
        self.freqs[cpu] = u64::from(at.wrapping_sub(age_ms)) << 32 | u64::from(khz);
    }

    /// What `set_freq` has set.
    pub fn freqs(&self) -> &[u64] {
        &self.freqs
    }

    /// The task waits for a move, and its delay is over.
    pub fn delay_due(&self, task: &Task, now: u64) -> bool {
        // SAFETY: pure.
        unsafe { sys::roost_delay_due(&task.state, now) }
    }

    /// Ends the delay and returns when it began, ns; None: it was over already.
    pub fn delay_take(&mut self, task: &mut Task) -> Option<u64> {
        // SAFETY: the task lives through the call; the same holds below.
        let began = self.run(|w| unsafe { sys::roost_delay_take(w, &mut task.state) });
        (began > 0).then_some(began)
    }

    /// The task runs on the CPU, or is queued again (None). Ends its delay and returns when it
    /// began, ns.
    pub fn delay_runs(&mut self, task: &mut Task, cpu: Option<usize>, now: u64) -> Option<u64> {
        let cpu = cpu.map_or(sys::NO_CPU, |c| c as i32);
        // SAFETY: see `delay_take`; the CPU is only compared.
        let began = self.run(|w| unsafe { sys::roost_delay_runs(w, &mut task.state, cpu, now) });
        (began > 0).then_some(began)
    }
}
