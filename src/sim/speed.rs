// SPDX-License-Identifier: GPL-2.0-only
//! How fast a CPU works now: its core's frequency, less what the core's other threads take. The only place that multiplies them.

use super::freq::Freqs;
use super::params::Params;
use crate::machine::Facts;

/// Work in a ns at full speed.
pub const FULL: u64 = 1 << 20;

/// Which CPUs are busy, and what that makes of the speed of each.
pub struct Cores {
    /// A thread's speed while another thread of its core is busy; and that of work that waits for memory. In 1/FULL.
    smt: u64,
    smt_memory: u64,
    core_of: Vec<usize>,
    /// Busy threads of each core.
    busy: Vec<u32>,
    freqs: Freqs,
}

impl Cores {
    pub fn new(params: &Params, facts: &Facts) -> Cores {
        let part = |name| (params.part(name) * FULL as f64).round() as u64;
        let core_of: Vec<usize> = facts.cpus.iter().map(|c| c.core.into()).collect();
        let cores = core_of.iter().max().map_or(0, |c| c + 1);
        let mut nodes = vec![0; cores];
        for cpu in facts.cpus.iter().filter(|c| c.online != 0) {
            nodes[usize::from(cpu.core)] = cpu.node.into();
        }
        Cores {
            smt: part("smt_speed"),
            smt_memory: part("smt_speed_memory"),
            core_of,
            busy: vec![0; cores],
            freqs: Freqs::new(params, &nodes),
        }
    }

    /// A thread of the core begins or ceases to be busy.
    pub fn turns(&mut self, cpu: usize, busy: bool, now: u64) {
        let core = self.core_of[cpu];
        let threads = &mut self.busy[core];
        if busy {
            *threads += 1;
            if *threads == 1 {
                self.freqs.turns(core, true, now);
            }
        } else {
            *threads -= 1;
            if *threads == 0 {
                self.freqs.turns(core, false, now);
            }
        }
    }

    /// Some thread of the CPU's core is busy.
    pub fn busy(&self, cpu: usize) -> bool {
        self.busy[self.core_of[cpu]] > 0
    }

    /// Another thread of the busy CPU's core is busy too.
    pub fn shared(&self, cpu: usize) -> bool {
        self.busy[self.core_of[cpu]] > 1
    }

    /// Work in a ns of a busy CPU, of a task that waits for memory for so many percent of its time at full speed. No clock makes
    /// that part faster or slower.
    pub fn rate(&self, cpu: usize, memory: u64) -> u64 {
        let (smt, smt_memory) = match self.shared(cpu) {
            true => (self.smt, self.smt_memory),
            false => (FULL, FULL),
        };
        let core = smt * self.clock(cpu) / FULL;
        match memory {
            0 => core,
            // The times of both parts add up.
            _ => 100 * core * smt_memory / ((100 - memory) * smt_memory + memory * core),
        }
    }

    /// The frequency of the CPU's core, as a part of the highest.
    pub fn clock(&self, cpu: usize) -> u64 {
        self.freqs.of(self.core_of[cpu])
    }

    /// The scheduler asks for a part of the highest.
    pub fn ask(&mut self, cpu: usize, part: u64) {
        self.freqs.ask(self.core_of[cpu], part);
    }

    /// Frequencies take their steps. True: those of a busy core have more to take.
    pub fn follow(&mut self, now: u64) -> bool {
        self.freqs.steps();
        let mut behind = false;
        for core in (0..self.busy.len()).filter(|&core| self.busy[core] > 0) {
            self.freqs.follow(core, now);
            behind |= self.freqs.behind(core, true);
        }
        behind
    }

    /// Busy cores are as fast as any governor ever lets them be beside each other.
    pub fn at_best(&mut self) {
        for core in (0..self.busy.len()).filter(|&core| self.busy[core] > 0) {
            self.freqs.at_best(core);
        }
    }

    /// When steps are due, ns from now, if the CPU's core or those around are not where they shall go.
    pub fn behind(&self, cpu: usize) -> Option<u64> {
        let behind = self.freqs.behind(self.core_of[cpu], self.busy(cpu));
        behind.then_some(self.freqs.step)
    }

    pub fn step(&self) -> u64 {
        self.freqs.step
    }
}
