// SPDX-License-Identifier: GPL-2.0-only
//! How much of its time each CPU, and the machine, is busy.

use crate::machine::CpuTime;

/// In thousandths of the time between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Of all CPUs together.
    pub machine: u32,
    /// By CPU number, ascending.
    pub cpus: Vec<(u16, u32)>,
}

impl Busy {
    /// All CPUs together, in thousandths of one CPU.
    pub fn of_one(&self) -> u32 {
        self.cpus.iter().map(|(_, busy)| busy).sum()
    }
}

/// Compares each look with the last one.
#[derive(Default)]
pub struct BusyMeter {
    last: Vec<(u16, CpuTime)>,
}

impl BusyMeter {
    /// None at the first look. A CPU that the last look did not see counts as idle.
    pub fn look(&mut self, now: Vec<(u16, CpuTime)>) -> Option<Busy> {
        let last = std::mem::replace(&mut self.last, now);
        if last.is_empty() {
            return None;
        }
        let (mut busy, mut all) = (0, 0);
        let of = |(cpu, now): &(u16, CpuTime)| {
            let then = last.binary_search_by_key(cpu, |(cpu, _)| *cpu);
            let then = then.map_or(*now, |i| last[i].1);
            // The kernel's idle times may decrease by a tick.
            let used = now.busy.saturating_sub(then.busy);
            let time = used + now.idle.saturating_sub(then.idle);
            busy += used;
            all += time;
            (*cpu, permille(used, time))
        };
        let cpus = self.last.iter().map(of).collect();
        Some(Busy {
            machine: permille(busy, all),
            cpus,
        })
    }
}

fn permille(part: u64, all: u64) -> u32 {
    (part * 1000).checked_div(all).unwrap_or(0).min(1000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(busy: u64, idle: u64) -> CpuTime {
        CpuTime { busy, idle }
    }

    #[test]
    fn parts_of_the_time_since_the_last_look() {
        let mut meter = BusyMeter::default();
        assert_eq!(meter.look(vec![(0, time(500, 0)), (3, time(0, 9))]), None);
        let busy = meter.look(vec![(0, time(550, 50)), (3, time(0, 109))]);
        let expected = Busy {
            machine: 250,
            cpus: vec![(0, 500), (3, 0)],
        };
        assert_eq!(busy, Some(expected));
    }

    #[test]
    fn cpus_come_and_go_and_counters_run_back() {
        let mut meter = BusyMeter::default();
        meter.look(vec![(0, time(5, 5)), (1, time(5, 5))]);
        let busy = meter
            .look(vec![(0, time(8, 4)), (2, time(900, 1))])
            .unwrap();
        assert_eq!((busy.machine, busy.cpus), (1000, vec![(0, 1000), (2, 0)]));
        let same = meter.look(vec![(0, time(8, 4))]).unwrap();
        assert_eq!((same.machine, same.cpus), (0, vec![(0, 0)]));
    }
}
