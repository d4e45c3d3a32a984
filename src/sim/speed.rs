// SPDX-License-Identifier: GPL-2.0-only
//! How fast a CPU works now: its core's frequency, less what the core's other threads take. The only place that multiplies them.

use super::params::Params;

/// Work in a ns at full speed.
pub const FULL: u64 = 1 << 20;

/// What the machine's parts do to each other. Parts of one, in 1/FULL.
#[derive(Clone, Debug)]
pub struct Speeds {
    /// A thread's speed while another thread of its core is busy.
    pub smt: u64,
    /// The same of work that waits for memory.
    pub smt_memory: u64,
    /// With so many busy cores, and with all: the speed of each.
    pub boost: Vec<u64>,
    /// How late clocks of cores follow, ns.
    pub late: u64,
}

impl Speeds {
    /// With more than `boost_cores` busy cores their speed falls evenly, to `boost_all` with all.
    pub fn new(params: &Params, cores: usize) -> Speeds {
        let part = |x: f64| (x * FULL as f64).round() as u64;
        let (some, all) = (
            params.count("boost_cores") as usize,
            params.part("boost_all"),
        );
        let boost = |busy: usize| {
            let over = busy.saturating_sub(some) as f64 / cores.saturating_sub(some).max(1) as f64;
            part(1.0 - (1.0 - all) * over)
        };
        Speeds {
            smt: part(params.part("smt_speed")),
            smt_memory: part(params.part("smt_speed_memory")),
            boost: (0..=cores).map(boost).collect(),
            late: params.ns("freq_ramp"),
        }
    }
}

/// Which CPUs are busy, and what that makes of the speed of each.
pub struct Cores {
    speeds: Speeds,
    core_of: Vec<usize>,
    /// Busy threads of each core.
    busy: Vec<u32>,
    busy_cores: usize,
    /// The speed that all cores have now; it follows the number of busy ones late.
    boost: u64,
}

impl Cores {
    pub fn new(speeds: Speeds, core_of: Vec<usize>) -> Cores {
        let cores = core_of.iter().max().map_or(0, |c| c + 1);
        let boost = speeds.boost[0];
        Cores {
            busy: vec![0; cores],
            busy_cores: 0,
            boost,
            core_of,
            speeds,
        }
    }

    /// A thread of the core begins or ceases to be busy.
    pub fn turns(&mut self, cpu: usize, busy: bool) {
        let threads = &mut self.busy[self.core_of[cpu]];
        if busy {
            *threads += 1;
            self.busy_cores += usize::from(*threads == 1);
        } else {
            *threads -= 1;
            self.busy_cores -= usize::from(*threads == 0);
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
            true => (self.speeds.smt, self.speeds.smt_memory),
            false => (FULL, FULL),
        };
        let core = smt * self.boost / FULL;
        match memory {
            0 => core,
            // The times of both parts add up.
            _ => 100 * core * smt_memory / ((100 - memory) * smt_memory + memory * core),
        }
    }

    /// The clocks of all cores follow what is busy. True: they are others now.
    pub fn follow(&mut self) -> bool {
        let boost = self.speeds.boost[self.busy_cores];
        std::mem::replace(&mut self.boost, boost) != boost
    }

    /// How late they follow, ns.
    pub fn late(&self) -> u64 {
        self.speeds.late
    }

    /// They would be others.
    pub fn behind(&self) -> bool {
        self.speeds.boost[self.busy_cores] != self.boost
    }
}
