// SPDX-License-Identifier: GPL-2.0-only
//! How deeply an idle CPU sleeps. As it goes idle, a governor predicts for how long, and picks the
//! deepest state that is worth that (kernel: drivers/cpuidle/governors/menu.c). It goes by the
//! CPU's next timer, times how early the CPU was woken before such timers, and by its last eight
//! idle periods, if these are alike. If the prediction is shorter than a tick, the tick goes on,
//! and the governor picks again at each one, once the core is out of its state. A core sleeps no
//! deeper than any of its threads.

use super::params::Params;
use crate::machine::Facts;

/// Kernel: INTERVALS of the governor.
const INTERVALS: usize = 8;
/// us of an idle period before the run.
const LONG: u64 = 60_000_000;
/// us: standard deviation below which a mean is typical; and how many of them the mean may be.
const NARROW: u64 = 20;
const TIMES: u64 = 6;
/// Factors of timers, by the magnitude of the time to the timer (kernel: BUCKETS, RESOLUTION,
/// DECAY).
const BUCKETS: usize = 6;
const UNIT: u64 = 1024;
const DECAY: u64 = 8;
/// us: longer periods are as long as expected; and what a period counts that a tick ended (kernel:
/// MAX_INTERESTING, menu_update()).
const INTERESTING: u64 = 50_000;
const TICKED: u64 = INTERESTING * 9 / 10;
/// ns to the next timer at most: each CPU has timers of the kernel (kernel: vmstat_update(), each
/// second).
const FARTHEST: u64 = 1_000_000_000;

/// An idle state.
#[derive(Clone, Copy, Debug)]
struct State {
    /// ns until the CPU runs again.
    exit: u64,
    /// ns of idling from which on it is worth entering.
    after: u64,
    /// It empties the L2.
    empties: bool,
    /// A write to a cache line ends it (MWAIT), so that no interrupt is needed (kernel:
    /// set_nr_if_polling()). Others are entered through a port.
    listens: bool,
}

/// An idle period.
#[derive(Clone, Copy, Debug)]
struct Idle {
    /// In the future: a tick is waking the CPU up until then.
    since: u64,
    /// The state that its governor picked.
    state: usize,
    /// When the CPU's next timer is due, ns; and its next tick, if that has not been stopped.
    timer: u64,
    tick: Option<u64>,
    /// Before its last tick it was in a state that empties the L2.
    emptied: bool,
}

#[derive(Clone, Debug)]
struct Cpu {
    /// None: it runs, or is about to.
    idle: Option<Idle>,
    /// It is awake from this time on, ns.
    awake: u64,
    /// It looks for work until this time, ns, before it can do anything else.
    until: u64,
    /// Its last idle periods, us.
    last: [u64; INTERVALS],
    next: usize,
    factors: [u64; BUCKETS],
    /// Its tick is stopped until it runs something.
    stopped: bool,
    core: usize,
}

/// The idle states of all CPUs.
pub struct Cstates {
    /// From shallow to deep.
    states: Vec<State>,
    cpus: Vec<Cpu>,
    /// The CPUs of each core.
    cores: Vec<Vec<usize>>,
    tick: u64,
}

impl Cstates {
    /// All CPUs have been idle for long.
    pub fn new(params: &Params, facts: &Facts) -> Cstates {
        let state = |name: &str, empties| State {
            exit: params.ns(&format!("{name}_exit")),
            after: params.ns(&format!("{name}_after")),
            empties,
            listens: true,
        };
        let c1 = State {
            exit: params.ns("idle_c1_exit"),
            after: 0,
            empties: false,
            listens: true,
        };
        let mut states = vec![c1, state("idle_c1e", false), state("idle_c3", true)];
        states.retain(|state| state.exit > 0);
        if params.count("idle_deep") > 0 {
            // Where there is C1E, the driver is intel_idle. ACPI enters the C2 of AMD by a port.
            let listens = states.len() > 1;
            states.push(State {
                listens,
                ..state("idle_deep", true)
            });
        }
        let idle = Idle {
            since: 0,
            state: states.len() - 1,
            timer: FARTHEST,
            tick: None,
            emptied: false,
        };
        let cpu = |core: usize| Cpu {
            idle: Some(idle),
            awake: 0,
            until: 0,
            last: [LONG; INTERVALS],
            next: 0,
            factors: [UNIT * DECAY; BUCKETS],
            stopped: true,
            core,
        };
        let core_of = || facts.cpus.iter().map(|cpu| usize::from(cpu.core));
        let mut cores = vec![Vec::new(); core_of().max().map_or(0, |core| core + 1)];
        let online = core_of()
            .enumerate()
            .filter(|(cpu, _)| facts.cpus[*cpu].online != 0);
        online.for_each(|(cpu, core)| cores[core].push(cpu));
        Cstates {
            states,
            cpus: core_of().map(cpu).collect(),
            cores,
            tick: params.ns("tick_period"),
        }
    }

    /// True if the CPU is awake, or about to be.
    pub fn awake(&self, cpu: usize) -> bool {
        self.cpus[cpu].idle.is_none()
    }

    /// True if the CPU idles in a state that a write ends.
    pub fn listens(&mut self, cpu: usize, now: u64) -> bool {
        self.ticks(self.cpus[cpu].core, now);
        let idle = self.cpus[cpu].idle;
        idle.is_some_and(|idle| self.states[idle.state].listens)
    }

    /// The CPU goes idle. `tick`: when its next tick is due. `timer`: its next timer, if any.
    pub fn begins(&mut self, cpu: usize, now: u64, tick: u64, timer: Option<u64>) {
        let timer = timer.map_or(now + FARTHEST, |at| at.clamp(now, now + FARTHEST));
        self.ticks(self.cpus[cpu].core, now);
        self.picks(cpu, now, tick, timer);
    }

    /// The CPU, which idles from now on, is busy with the scheduler's own work until then.
    pub fn stays_up(&mut self, cpu: usize, until: u64) {
        self.cpus[cpu].until = until;
    }

    /// An interrupt wakes the CPU. Returns the ns until it is awake, and whether its L2 is empty.
    pub fn wakes(&mut self, cpu: usize, now: u64) -> (u64, bool) {
        let (exit, empties) = self.leaves(cpu, now);
        let Some(idle) = self.cpus[cpu].idle.take() else {
            return (self.cpus[cpu].awake.saturating_sub(now), false);
        };
        // What is measured has the exit in it (kernel: menu_update()). Between a tick and the end
        // of its exit the CPU does not idle.
        let measured = (now + exit).checked_sub(idle.since).map(|ns| ns / 1000);
        let exit = exit.max(self.cpus[cpu].until.saturating_sub(now));
        self.cpus[cpu].awake = now + exit;
        let requested = self.states[idle.state].exit / 1000;
        if let Some(measured) = measured.filter(|_| idle.since <= now) {
            let us = if measured > 2 * requested {
                measured - requested
            } else {
                measured / 2
            };
            self.learns(cpu, us, idle);
        }
        (exit, empties)
    }

    /// The CPU runs something from now on.
    pub fn runs(&mut self, cpu: usize) {
        self.cpus[cpu].stopped = false;
    }

    /// ns until the core of the idle CPU has left its state, and whether that has emptied its L2.
    fn leaves(&mut self, cpu: usize, now: u64) -> (u64, bool) {
        let core = self.cpus[cpu].core;
        self.ticks(core, now);
        self.exit(core, now)
    }

    /// The same, once ticks until now have been seen. The core's state is the shallowest of its
    /// threads'. While another thread works, this one only halts.
    fn exit(&self, core: usize, now: u64) -> (u64, bool) {
        let (mut shallowest, mut awake, mut emptied) = (self.states.len() - 1, None, true);
        for thread in self.cores[core].iter().map(|&thread| &self.cpus[thread]) {
            match thread.idle {
                // It may be waking up itself.
                None => (awake, emptied) = (awake.max(Some(thread.awake)), false),
                Some(idle) if idle.since > now => {
                    awake = awake.max(Some(idle.since));
                    emptied &= idle.emptied;
                }
                Some(idle) => {
                    shallowest = shallowest.min(idle.state);
                    emptied &= idle.emptied || self.states[idle.state].empties;
                }
            }
        }
        let exit = match awake {
            Some(at) => self.states[0].exit.max(at.saturating_sub(now)),
            None => self.states[shallowest].exit,
        };
        (exit, emptied)
    }

    /// The ticks of the core's idle threads until now.
    fn ticks(&mut self, core: usize, now: u64) {
        loop {
            let due = |&cpu: &usize| Some((self.cpus[cpu].idle?.tick?, cpu));
            let next = self.cores[core].iter().filter_map(due).min();
            let Some((tick, cpu)) = next.filter(|&(tick, _)| tick <= now) else {
                return;
            };
            self.ticked(cpu, tick);
        }
    }

    /// A tick of the idle CPU: the core leaves its state, as for any interrupt; the governor learns
    /// that it was wrong, and picks again.
    fn ticked(&mut self, cpu: usize, tick: u64) {
        let up = tick + self.exit(self.cpus[cpu].core, tick).0;
        let Some(idle) = self.cpus[cpu].idle else {
            return;
        };
        let us = match idle.timer - idle.since > self.tick {
            true => TICKED,
            false => tick.saturating_sub(idle.since) / 1000,
        };
        self.learns(cpu, us, idle);
        self.picks(cpu, up, tick + self.tick, idle.timer.max(up));
        let emptied = idle.emptied || self.states[idle.state].empties;
        if let Some(now) = &mut self.cpus[cpu].idle {
            now.emptied = emptied;
        }
    }

    /// The governor picks a state (kernel: menu_select()).
    fn picks(&mut self, cpu: usize, now: u64, tick: u64, timer: u64) {
        let of = &mut self.cpus[cpu];
        let ahead = timer - now;
        let tick = tick.max(now);
        let by_timer = ahead * of.factors[bucket(ahead / 1000)] / (UNIT * DECAY);
        let by_pattern = typical(&of.last).map_or(u64::MAX, |us| us * 1000);
        let mut predicted = by_timer.min(by_pattern);
        let short = predicted < self.tick;
        if of.stopped && short {
            // The CPU could stay in a shallow state for long.
            predicted = ahead;
        }
        let goes_on = short && !of.stopped;
        if goes_on {
            predicted = predicted.min(tick - now);
        }
        of.stopped |= !goes_on;
        let state = self.states.iter().rposition(|s| s.after <= predicted);
        of.idle = Some(Idle {
            since: now,
            state: state.unwrap_or(0),
            timer,
            tick: goes_on.then_some(tick),
            emptied: false,
        });
    }

    /// The governor learns that the CPU idled for `us` (kernel: menu_update()).
    fn learns(&mut self, cpu: usize, us: u64, idle: Idle) {
        let of = &mut self.cpus[cpu];
        let ahead = (idle.timer - idle.since) / 1000;
        let us = us.min(ahead);
        let factor = &mut of.factors[bucket(ahead)];
        let early = match ahead > 0 && us < INTERESTING {
            true => UNIT * us / ahead,
            false => UNIT,
        };
        *factor = (*factor - *factor / DECAY + early).max(1);
        of.last[of.next] = us;
        of.next = (of.next + 1) % INTERVALS;
    }
}

/// The factor that belongs to a timer so many us away (kernel: which_bucket()).
fn bucket(us: u64) -> usize {
    match us {
        0..10 => 0,
        10..100 => 1,
        100..1000 => 2,
        1000..10_000 => 3,
        10_000..100_000 => 4,
        _ => 5,
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

    /// Broadwell: C1 2 us, C1E 10 us from 20 on, C3 40 us from 100 on, C6 133 us from 400 on. CPU
    /// 80 is the other thread of CPU 0's core.
    fn broadwell() -> Cstates {
        let model = crate::sim::machines::model("e7-8870v4/active").unwrap();
        model.hardware().unwrap().cstates
    }

    const MS: u64 = 1_000_000;

    /// The time to wake up of CPU 0, us, after `now` us of an idle period, where many others were
    /// of `us`. Both threads of the core idle, the other one for long; `beside`: it worked until
    /// this period. `timer`: how far CPU 0's next timer is, us.
    fn exit(us: u64, beside: bool, now: u64, timer: Option<u64>) -> u64 {
        let mut cstates = broadwell();
        let mut at = 0;
        if beside {
            cstates.wakes(80, at);
        }
        for _ in 0..5 * INTERVALS {
            cstates.wakes(0, at);
            cstates.runs(0);
            at += 8 * MS;
            cstates.begins(0, at, at + 4 * MS, None);
            at += us * 1000;
        }
        cstates.wakes(0, at);
        cstates.runs(0);
        at += 8 * MS;
        cstates.begins(80, at, at + 4 * MS, None);
        cstates.begins(0, at, at + 4 * MS, timer.map(|us| at + us * 1000));
        cstates.wakes(0, at + now * 1000).0 / 1000
    }

    #[test]
    fn the_state_is_what_the_last_periods_are_worth() {
        for (us, beside, expected) in [
            (10, true, 2),
            (30, true, 10),
            (150, false, 40),
            (900, false, 133),
        ] {
            assert_eq!(exit(us, beside, 5, None), expected, "{us} us");
        }
    }

    /// A timer in 50 us: no state that needs 100 is worth it.
    #[test]
    fn the_next_timer_is_known() {
        assert_eq!(exit(900, false, 5, None), 133);
        assert_eq!(exit(900, false, 5, Some(50)), 10);
    }

    /// Ticks at 4, 8 and 12 ms. After three of them the last periods are not alike.
    #[test]
    fn the_tick_goes_on_until_short_periods_are_no_pattern() {
        for ms in [3, 5, 9] {
            assert_eq!(exit(10, true, ms * 1000, None), 2, "{ms} ms");
        }
        assert_eq!(exit(10, true, 13_000, None), 133);
    }

    #[test]
    fn a_core_sleeps_no_deeper_than_any_of_its_threads() {
        let mut cstates = broadwell();
        // Both have slept deeply.
        assert_eq!(cstates.wakes(0, MS), (133_000, true));
        // The core is still waking up. From then on the other one only halts.
        assert_eq!(cstates.wakes(80, MS + 33_000), (100_000, false));
        cstates.begins(0, 3 * MS, 4 * MS, None);
        assert_eq!(cstates.wakes(0, 4 * MS), (2000, false));
        cstates.begins(0, 5 * MS, 8 * MS, None);
        // The other one halts for a timer that is near. The L2 keeps its contents.
        cstates.begins(80, 5 * MS, 8 * MS, Some(5 * MS + 10_000));
        assert_eq!(cstates.wakes(0, 5 * MS + 5000), (2000, false));
    }

    /// intel_idle enters all states by MWAIT. AMD's C2 needs an interrupt, its C1 does not.
    #[test]
    fn a_write_wakes_a_cpu_in_mwait() {
        assert!(broadwell().listens(0, MS));
        let amd = crate::sim::machines::model("tr-3970x").unwrap();
        let mut cstates = amd.hardware().unwrap().cstates;
        assert!(!cstates.listens(0, MS));
        cstates.wakes(0, MS);
        cstates.begins(0, 2 * MS, 4 * MS, Some(2 * MS + 50_000));
        assert!(cstates.listens(0, 2 * MS));
    }

    /// A timer in 3.95 ms, and a tick 50 us before it, which wakes the core: that takes 133 us.
    /// What C6 has emptied stays empty.
    #[test]
    fn a_tick_wakes_its_core_and_what_it_had_emptied_stays_empty() {
        let mut cstates = broadwell();
        cstates.wakes(0, MS);
        cstates.runs(0);
        cstates.begins(0, 2 * MS, 2 * MS + 3_900_000, Some(2 * MS + 3_950_000));
        assert_eq!(cstates.wakes(0, 2 * MS + 3_950_000), (83_000, true));
    }

    #[test]
    fn who_is_about_to_wake_up_is_not_woken_again() {
        let mut cstates = broadwell();
        assert_eq!(cstates.wakes(0, MS), (133_000, true));
        assert_eq!(cstates.wakes(0, MS + 33_000), (100_000, false));
        assert_eq!(cstates.wakes(0, 2 * MS), (0, false));
    }
}
