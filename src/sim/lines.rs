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

/// The load of a group of tasks (kernel: tg->load_avg), which each CPU writes when a task of the
/// group comes or goes. Writes wait for each other.
#[derive(Default)]
pub struct GroupLoad {
    last: Option<usize>,
    free: u64,
}

impl GroupLoad {
    /// The CPU writes. Returns the ns until it has done so.
    pub fn write(&mut self, cpu: usize, now: u64, costs: &Costs) -> u64 {
        let from = self.last.replace(cpu);
        let ns = from.map_or(0, |from| costs.transfer(1, from, cpu));
        self.free = self.free.max(now) + ns;
        self.free - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two writes at once, 92 ns apart: caches of one node.
    #[test]
    fn writes_wait_for_each_other() {
        let model = crate::sim::model("tr-3970x").unwrap();
        let costs = model.hardware().unwrap().costs;
        let mut load = GroupLoad::default();
        let writes = [(0, 100), (8, 100), (16, 100), (16, 120), (0, 1000)];
        let waits = writes.map(|(cpu, now)| load.write(cpu, now, &costs));
        assert_eq!(waits, [0, 92, 184, 164, 92]);
    }
}
