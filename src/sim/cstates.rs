// SPDX-License-Identifier: GPL-2.0-only
//! How deeply an idle CPU sleeps. As it goes idle, a governor predicts for how long, from its last
//! eight idle periods, and picks the deepest state that is worth that (kernel: the governor menu,
//! get_typical_interval()). Without a pattern it expects a long period: the kernel goes by the next
//! timer then, which is not modelled. If it was wrong, the next tick picks the deepest state.

use super::params::Params;

/// Kernel: INTERVALS of the governor.
const INTERVALS: usize = 8;
/// us of an idle period before the run.
const LONG: u64 = 60_000_000;
/// us: standard deviation below which a mean is typical; and how many of them the mean may be.
const NARROW: u64 = 20;
const TIMES: u64 = 6;

/// An idle state.
#[derive(Clone, Copy, Debug)]
struct State {
    /// ns until the CPU runs again.
    exit: u64,
    /// ns of idling from which on it is worth entering.
    after: u64,
    /// It empties the L2.
    empties: bool,
}

/// What a CPU is in, and its last idle periods, us.
#[derive(Clone, Debug)]
struct Cpu {
    state: State,
    last: [u64; INTERVALS],
    next: usize,
}

/// The idle states of all CPUs.
pub struct Cstates {
    /// From shallow to deep.
    states: Vec<State>,
    cpus: Vec<Cpu>,
    tick: u64,
}

impl Cstates {
    /// All CPUs have been idle for long.
    pub fn new(params: &Params, cpus: usize) -> Cstates {
        let state = |name: &str, empties| State {
            exit: params.ns(&format!("{name}_exit")),
            after: params.ns(&format!("{name}_after")),
            empties,
        };
        let c1 = State {
            exit: params.ns("idle_c1_exit"),
            after: 0,
            empties: false,
        };
        let mut states = vec![c1, state("idle_c1e", false), state("idle_c3", true)];
        states.retain(|state| state.exit > 0);
        if params.count("idle_deep") > 0 {
            states.push(state("idle_deep", true));
        }
        let deepest = states[states.len() - 1];
        let cpu = Cpu {
            state: deepest,
            last: [LONG; INTERVALS],
            next: 0,
        };
        Cstates {
            states,
            cpus: vec![cpu; cpus],
            tick: params.ns("tick_period"),
        }
    }

    /// The CPU goes idle.
    pub fn begins(&mut self, cpu: usize) {
        let of = &mut self.cpus[cpu];
        let predicted = typical(&of.last).map_or(u64::MAX, |us| us * 1000);
        let worth = self.states.iter().rev().find(|s| s.after <= predicted);
        of.state = *worth.unwrap_or(&self.states[0]);
    }

    /// The CPU runs again, after `idle` ns. True: its L2 is empty.
    pub fn ends(&mut self, cpu: usize, idle: u64) -> bool {
        let state = self.state(cpu, idle);
        let of = &mut self.cpus[cpu];
        of.last[of.next] = idle.saturating_sub(state.exit) / 1000;
        of.next = (of.next + 1) % INTERVALS;
        state.empties
    }

    /// ns until a CPU that has been idle for `idle` ns runs.
    pub fn exit(&self, cpu: usize, idle: u64) -> u64 {
        self.state(cpu, idle).exit
    }

    fn state(&self, cpu: usize, idle: u64) -> State {
        match idle < self.tick {
            true => self.cpus[cpu].state,
            false => self.states[self.states.len() - 1],
        }
    }
}

/// The mean of the last idle periods, us, if they are alike. The longest are left out one after the
/// other, at most a quarter of them. None: there is no pattern.
fn typical(last: &[u64; INTERVALS]) -> Option<u64> {
    let mut sorted = *last;
    sorted.sort_unstable();
    (INTERVALS * 3 / 4..=INTERVALS).rev().find_map(|count| {
        let of = &sorted[..count];
        let mean = of.iter().sum::<u64>() / count as u64;
        let squares = of.iter().map(|us| us.abs_diff(mean).pow(2));
        let variance = squares.sum::<u64>() / count as u64;
        let narrow = variance <= NARROW * NARROW || mean * mean > variance * TIMES * TIMES;
        narrow.then_some(mean)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_found_beside_two_long_periods() {
        assert_eq!(typical(&[100; 8]), Some(100));
        assert_eq!(
            typical(&[100, 100, 100, 100, 100, 100, 9000, 8000]),
            Some(100)
        );
        assert_eq!(typical(&[100, 100, 100, 100, 100, 7000, 9000, 8000]), None);
        assert_eq!(typical(&[1, 5, 3, 30, 20, 11, 2, 9]), Some(10));
    }

    /// Broadwell: C1 2 us, C1E 10 us from 20 on, C3 40 us from 100 on, C6 133 us from 400 on.
    #[test]
    fn the_state_is_what_the_last_periods_are_worth() {
        let params = Params::of("e7-8870v4/active");
        let exit = |us: u64, now: u64| {
            let mut cstates = Cstates::new(&params, 1);
            for _ in 0..INTERVALS {
                cstates.begins(0);
                let exit = cstates.exit(0, us * 1000);
                cstates.ends(0, us * 1000 + exit);
            }
            cstates.begins(0);
            cstates.exit(0, now * 1000)
        };
        for (us, expected) in [(10, 2), (30, 10), (150, 40), (900, 133)] {
            assert_eq!(exit(us, 50), expected * 1000, "{us} us");
        }
        // After a tick the governor knows better.
        assert_eq!(exit(10, 5000), 133_000);
    }
}
