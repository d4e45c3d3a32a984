// SPDX-License-Identifier: GPL-2.0-only
//! Which CPU last wrote the cache lines of a channel, a lock or a barrier. The next CPU that uses
//! it waits until it has them.

use super::cost::Costs;
use super::load::Load;

/// An object that tasks share.
#[derive(Clone, Copy, Debug)]
pub enum Shared {
    Channel(usize),
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
            Shared::Lock(at) => (&mut self.locks[at], costs.lock_lines),
            Shared::Barrier(at) => (&mut self.barriers[at], costs.lock_lines),
        };
        let from = last.replace(cpu);
        from.map_or(0, |from| costs.transfer(lines, from, cpu))
    }
}
