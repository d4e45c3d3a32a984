// SPDX-License-Identifier: GPL-2.0-only
//! Which CPU last wrote the cache lines of a channel, a lock or a barrier. The next CPU that uses
//! it waits until it has them. One line of the kernel is written by all CPUs.

use super::cost::Costs;
use super::load::Load;

/// An object that tasks share.
#[derive(Clone, Copy, Debug)]
pub enum Shared {
    Channel(usize),
    /// A channel that is a kernel pipe.
    Pipe(usize),
    Lock(usize),
    Barrier(usize),
}

pub struct Lines {
    channels: Vec<Option<usize>>,
    locks: Vec<Option<usize>>,
    barriers: Vec<Option<usize>>,
}

impl Lines {
    pub fn new(load: &Load) -> Lines {
        Lines {
            channels: vec![None; load.channels.len()],
            locks: vec![None; load.locks],
            barriers: vec![None; load.barriers.len()],
        }
    }

    /// The CPU uses the object. Returns ns until it has the lines.
    pub fn come(&mut self, shared: Shared, cpu: usize, costs: &Costs) -> u64 {
        let (last, lines) = match shared {
            Shared::Channel(at) => (&mut self.channels[at], costs.message_lines),
            Shared::Pipe(at) => (&mut self.channels[at], costs.pipe_lines),
            Shared::Lock(at) => (&mut self.locks[at], costs.lock_lines),
            Shared::Barrier(at) => (&mut self.barriers[at], costs.lock_lines),
        };
        let from = last.replace(cpu);
        from.map_or(0, |from| costs.transfer(lines, from, cpu))
    }
}

/// The load of a group of tasks (kernel: tg->load_avg): one line, which a CPU writes when the load
/// of its own part of the group has changed. Writes wait for each other. Assumed: all tasks of a
/// workload are one group; each task that comes or goes is more than a 64th of its CPU's part,
/// above which the kernel writes (update_tg_load_avg()). Not modelled: each update reads the line
/// too.
pub struct GroupLoad {
    last: Option<usize>,
    free: u64,
    /// Tasks have left these CPUs, which have not written that yet (kernel: cfs_rq->removed).
    left: Vec<bool>,
}

impl GroupLoad {
    pub fn new(cpus: usize) -> GroupLoad {
        GroupLoad {
            last: None,
            free: 0,
            left: vec![false; cpus],
        }
    }

    /// A task wakes up on `to` that was on `from`, which only notes that (kernel:
    /// remove_entity_load_avg()). Returns the ns for which `by`, which wakes it, waits.
    pub fn moves(&mut self, from: usize, to: usize, by: usize, now: u64, costs: &Costs) -> u64 {
        let left = std::mem::take(&mut self.left[to]);
        self.left[from] |= from != to;
        match from != to || left {
            true => self.write(by, now, costs),
            false => 0,
        }
    }

    /// The CPU ticks. Returns the ns for which it waits.
    pub fn ticks(&mut self, cpu: usize, now: u64, costs: &Costs) -> u64 {
        match std::mem::take(&mut self.left[cpu]) {
            true => self.write(cpu, now, costs),
            false => 0,
        }
    }

    /// The CPU writes. Returns the ns until it has done so.
    fn write(&mut self, cpu: usize, now: u64, costs: &Costs) -> u64 {
        let from = self.last.replace(cpu);
        let ns = from.map_or(0, |from| costs.transfer(1, from, cpu));
        self.free = self.free.max(now) + ns;
        self.free - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Costs {
        let model = crate::sim::model("tr-3970x").unwrap();
        model.hardware().unwrap().costs
    }

    /// Two writes at once, 92 ns apart: caches of one node.
    #[test]
    fn writes_wait_for_each_other() {
        let costs = costs();
        let mut load = GroupLoad::new(64);
        let writes = [(0, 100), (8, 100), (16, 100), (16, 120), (0, 1000)];
        let waits = writes.map(|(cpu, now)| load.write(cpu, now, &costs));
        assert_eq!(waits, [0, 92, 184, 164, 92]);
    }

    /// Of a task that moves from CPU 8 to CPU 16, which wakes it, CPU 8 hears at its next tick; or
    /// when a task wakes up there, once.
    #[test]
    fn the_cpu_that_a_task_left_writes_later() {
        let costs = costs();
        let mut load = GroupLoad::new(64);
        assert_eq!(load.moves(8, 16, 16, 100, &costs), 0);
        assert_eq!(load.moves(8, 16, 16, 1000, &costs), 0);
        assert_eq!(load.ticks(16, 2000, &costs), 0);
        assert_eq!(load.moves(8, 8, 8, 3000, &costs), 92);
        assert_eq!(load.moves(8, 8, 8, 4000, &costs), 0);
        load.moves(8, 16, 16, 5000, &costs);
        assert_eq!([6000, 7000].map(|at| load.ticks(8, at, &costs)), [92, 0]);
    }
}
