// SPDX-License-Identifier: GPL-2.0-only
//! Faults of the machine while a load runs.

use scx_roost::util::rng::Rng;

/// 0: no such fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Of a thousand timers, how many never fire; and how late the others are at most, ns.
    pub timers_lost: u64,
    pub timers_late: u64,
    /// A CPU has no tick for this many ns out of three times as many, each CPU at another time.
    pub ticks_stop: u64,
    /// Period in ns at which a random task is given the CPUs of a random group.
    pub affinity: u64,
    /// Period in ns at which a random task is given the nice level, policy and slice of a random
    /// group.
    pub attr: u64,
    /// The limit of the kernel's watchdog in ns, instead of 10 s. No task may wait for a quarter of
    /// it.
    pub watchdog: u64,
    /// Period in ns at which a CPU goes away or comes back.
    pub hotplug: u64,
}

impl Faults {
    /// How late a timer that is started now fires, ns; None: never.
    pub fn timer(&self, rng: &mut Rng) -> Option<u64> {
        if self.timers_lost > 0 && rng.below(1000) < self.timers_lost {
            return None;
        }
        match self.timers_late {
            0 => Some(0),
            late => Some(rng.below(late + 1)),
        }
    }

    /// True if the CPU has no tick now.
    pub fn ticks_stop(&self, cpu: usize, now: u64) -> bool {
        now.checked_div(self.ticks_stop)
            .is_some_and(|stretch| (stretch + cpu as u64).is_multiple_of(3))
    }

    /// How late timers and ticks may be, ns.
    pub fn late(&self, tick: u64) -> u64 {
        let lost = if self.timers_lost > 0 { 2 * tick } else { 0 };
        let ticks = if self.ticks_stop > 0 {
            self.ticks_stop + 2 * tick
        } else {
            0
        };
        self.timers_late + lost + ticks
    }
}
