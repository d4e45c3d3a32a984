// SPDX-License-Identifier: GPL-2.0-only
//! What goes wrong on the machine while a load runs.

use crate::rng::Rng;

/// 0: it does not go wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Of a thousand timers that are started so many never fire; the others are up to so many ns late.
    pub timers_lost: u64,
    pub timers_late: u64,
    /// A CPU has no tick for so many ns, of three times as many; each CPU at another time.
    pub ticks_stop: u64,
    /// Every so many ns some task is given the CPUs of some group.
    pub affinity: u64,
    /// Every so many ns some task is given the nice level, policy and slice of some group.
    pub attr: u64,
    /// The kernel's watchdog, which else has 5 s, has so many ns: nobody may wait half of it.
    pub watchdog: u64,
    /// Every so many ns a CPU goes away, or one that is away comes back.
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

    /// The CPU has no tick now.
    pub fn ticks_stop(&self, cpu: usize, now: u64) -> bool {
        now.checked_div(self.ticks_stop)
            .is_some_and(|stretch| (stretch + cpu as u64).is_multiple_of(3))
    }

    /// What hangs on a timer or a tick may be so late, ns.
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
