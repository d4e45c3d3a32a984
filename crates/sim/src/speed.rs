// SPDX-License-Identifier: GPL-2.0-only
//! How fast a CPU works now: its core's frequency, less what the core's other threads take. Only
//! this file combines them.

use super::freq::Freqs;
use super::params::Params;
use scx_roost::bpf::intf::CAPACITY_SCALE;
use scx_roost::machine::Facts;

/// Work per ns at full speed.
pub const FULL: u64 = 1 << 20;

/// What has been counted on a CPU (APERF, MPERF).
#[derive(Clone, Copy, Debug, Default)]
struct Cycles {
    /// ns that the CPU was busy.
    busy: u64,
    /// The same, times the frequency.
    done: u64,
}

impl Cycles {
    fn ran(&mut self, ns: u64, frequency: u64) {
        self.busy += ns;
        self.done += ns * frequency;
    }
}

/// A reader of the counters.
#[derive(Clone, Copy, Debug, Default)]
struct Reader(Cycles);

impl Reader {
    /// The mean frequency since the last read, while the CPU was busy. None: it was idle.
    fn read(&mut self, counted: Cycles) -> Option<u64> {
        let before = std::mem::replace(&mut self.0, counted);
        let busy = counted.busy - before.busy;
        (counted.done - before.done).checked_div(busy)
    }
}

/// What is counted on a CPU.
struct Counters {
    busy: bool,
    /// What the scheduler asked for, as a part of the highest frequency. None: nothing yet.
    asked: Option<u64>,
    /// Counted up to this time, ns.
    since: u64,
    cycles: Cycles,
    tick: Reader,
}

/// Which CPUs are busy, and the speed of each that follows from it.
pub struct Cores {
    /// The speed of a thread while another thread of its core is busy, and the same for work that
    /// waits for memory, in 1/FULL.
    smt: u64,
    smt_memory: u64,
    core_of: Vec<usize>,
    /// The capacity of each CPU beside the biggest, 1..=CAPACITY_SCALE.
    capacity: Vec<u64>,
    /// Busy threads of each core.
    busy: Vec<u32>,
    freqs: Freqs,
    cpus: Vec<Counters>,
    threads: Vec<Vec<usize>>,
}

impl Cores {
    /// `domains`: the frequency domain of each core.
    pub fn new(params: &Params, facts: &Facts, domains: &[usize]) -> Cores {
        let part = |name| (params.part(name) * FULL as f64).round() as u64;
        let core_of: Vec<usize> = facts.cpus.iter().map(|c| c.core.into()).collect();
        let cores = core_of.iter().max().map_or(0, |c| c + 1);
        let mut nodes = vec![0; cores];
        for cpu in facts.cpus.iter().filter(|c| c.online != 0) {
            nodes[usize::from(cpu.core)] = cpu.node.into();
        }
        let mut threads = vec![Vec::new(); cores];
        for (cpu, &core) in core_of.iter().enumerate() {
            threads[core].push(cpu);
        }
        let freqs = Freqs::new(params, &nodes, &domains[..cores]);
        let counters = |_| Counters {
            busy: false,
            asked: None,
            since: 0,
            cycles: Cycles::default(),
            tick: Reader::default(),
        };
        Cores {
            cpus: core_of.iter().map(counters).collect(),
            threads,
            smt: part("smt_speed"),
            smt_memory: part("smt_speed_memory"),
            core_of,
            capacity: facts.cpus.iter().map(|c| c.capacity.into()).collect(),
            busy: vec![0; cores],
            freqs,
        }
    }

    /// Counts for the core's threads until now, at the core's frequency.
    fn count(&mut self, core: usize, now: u64) {
        let frequency = self.freqs.of(core);
        for &cpu in &self.threads[core] {
            let counters = &mut self.cpus[cpu];
            let ns = now - std::mem::replace(&mut counters.since, now);
            if counters.busy {
                counters.cycles.ran(ns, frequency);
            }
        }
    }

    /// Asks for the highest frequency that a busy thread of the core wants.
    fn vote(&mut self, core: usize) {
        let busy = self.threads[core]
            .iter()
            .map(|&cpu| &self.cpus[cpu])
            .filter(|c| c.busy);
        if let Some(most) = busy.filter_map(|c| c.asked).max() {
            self.freqs.ask(core, most);
        }
    }

    /// A tick of a busy CPU. Returns its mean frequency while it was busy since its last tick
    /// (kernel: arch_scale_freq_tick()).
    pub fn tick(&mut self, cpu: usize, now: u64) -> u64 {
        let core = self.core_of[cpu];
        self.count(core, now);
        let counters = &mut self.cpus[cpu];
        let mean = counters.tick.read(counters.cycles);
        mean.unwrap_or(self.freqs.of(core))
    }

    /// A CPU becomes busy or idle.
    pub fn turns(&mut self, cpu: usize, busy: bool, now: u64) {
        let core = self.core_of[cpu];
        self.count(core, now);
        self.cpus[cpu].busy = busy;
        self.vote(core);
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

    /// True if some thread of the CPU's core is busy.
    pub fn busy(&self, cpu: usize) -> bool {
        self.busy[self.core_of[cpu]] > 0
    }

    /// True if another thread of the busy CPU's core is busy too.
    pub fn shared(&self, cpu: usize) -> bool {
        self.busy[self.core_of[cpu]] > 1
    }

    /// Work per ns of a busy CPU, for a task that waits for memory for `memory` percent of its time
    /// at full speed. The frequency does not change the speed of that part.
    pub fn rate(&self, cpu: usize, memory: u64) -> u64 {
        let (smt, smt_memory) = match self.shared(cpu) {
            true => (self.smt, self.smt_memory),
            false => (FULL, FULL),
        };
        let scale = u64::from(CAPACITY_SCALE);
        let core = smt * self.clock(cpu) / FULL * self.capacity[cpu] / scale;
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

    /// The scheduler asks for a part of the highest frequency.
    pub fn ask(&mut self, cpu: usize, part: u64) {
        self.cpus[cpu].asked = Some(part);
        self.vote(self.core_of[cpu]);
    }

    /// Frequencies take a step, where one is due. Returns when that of a busy core needs the next.
    pub fn follow(&mut self, now: u64) -> Option<u64> {
        let busy: Vec<usize> = (0..self.busy.len()).filter(|&c| self.busy[c] > 0).collect();
        for &core in &busy {
            self.count(core, now);
            self.freqs.account(core, now);
        }
        self.freqs.follow(now);
        let behind = |&core: &usize| self.freqs.behind(core, true, now);
        // A step that is due has been taken.
        let next = busy.iter().filter_map(behind).filter(|&ns| ns > 0).min();
        next.map(|ns| now + ns)
    }

    /// Sets busy cores to the highest frequencies that any governor allows beside each other.
    pub fn at_best(&mut self) {
        for core in (0..self.busy.len()).filter(|&core| self.busy[core] > 0) {
            self.freqs.at_best(core);
        }
    }

    /// ns until a step is due, if the CPU's core or its neighbours are not at their target.
    pub fn behind(&self, cpu: usize, now: u64) -> Option<u64> {
        self.freqs.behind(self.core_of[cpu], self.busy(cpu), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOWEST: u64 = FULL * 2 / 5;

    #[test]
    fn a_reader_sees_the_mean_of_what_was_busy() {
        let (mut reader, mut counted) = (Reader::default(), Cycles::default());
        counted.ran(3_000_000, FULL);
        counted.ran(1_000_000, LOWEST);
        assert_eq!(reader.read(counted), Some((3 * FULL + LOWEST) / 4));
        assert_eq!(reader.read(counted), None);
    }
}
