// SPDX-License-Identifier: GPL-2.0-only
//! How deeply an idle CPU sleeps. As it goes idle, a governor predicts for how long, and picks the
//! deepest state that is worth that (kernel: drivers/cpuidle/governors/menu.c, as of Linux 5.9). It
//! goes by the CPU's next timer, times how early the CPU was woken before such timers, and by its
//! last eight idle periods, if these are alike. If the prediction is shorter than a tick, the tick
//! goes on, and the governor picks again at each one, once the core is out of its state; before
//! 4.17 an idle CPU has no tick. A core sleeps no deeper than any of its threads.
//!
//! The rules are the same in 4.20 to 6.14, but that 6.6 does not always ask for the next timer.
//! From 6.15 on the shortest periods may be left out too. Up to 4.19 a CPU under load picked
//! shallower states (get_loadavg()), which is not modelled.

use super::params::Params;
use scx_roost::machine::Facts;

/// Kernel: INTERVALS of the governor.
const INTERVALS: usize = 8;
/// us: standard deviation below which a mean is typical; and how many of them the mean has to be
/// above else.
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
/// A cap, assumed: ns to the next timer at most. A CPU that has idled for long, as each has before
/// a run, was woken by these alone (the kernel's own history is empty, but only at boot).
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
}

impl Idle {
    /// For long, without a tick.
    fn deepest(states: &[State]) -> Idle {
        Idle {
            since: 0,
            state: states.len() - 1,
            timer: FARTHEST,
            tick: None,
        }
    }
}

/// A look for work, after which the CPU goes idle.
#[derive(Clone, Copy, Debug)]
struct Look {
    until: u64,
    tick: u64,
    timer: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    /// It runs, or is about to.
    Awake,
    Looks(Look),
    Idles(Idle),
}

#[derive(Clone, Debug)]
struct Cpu {
    doing: Doing,
    /// It is awake from this time on, ns.
    awake: u64,
    /// If it goes idle, it looks for work first, until this time, ns.
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
#[derive(Clone)]
pub struct Cstates {
    /// From shallow to deep.
    states: Vec<State>,
    cpus: Vec<Cpu>,
    /// The CPUs of each core that are online.
    cores: Vec<Vec<usize>>,
    /// Each core has been in a state that empties its L2, and no thread has run since.
    emptied: Vec<bool>,
    /// What each core has slept in a state that empties its L2, ns, and until when that is counted.
    slept: Vec<(u64, u64)>,
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
            // Inferred: where there is C1E, the driver is intel_idle, which enters all by MWAIT.
            // ACPI enters the C2 of AMD by a port, and so here the only deep state of any other
            // CPU.
            let listens = states.len() > 1;
            states.push(State {
                listens,
                ..state("idle_deep", true)
            });
        }
        let cpu = |core: usize| Cpu {
            doing: Doing::Idles(Idle::deepest(&states)),
            awake: 0,
            until: 0,
            last: [FARTHEST / 1000; INTERVALS],
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
        let cpus = core_of().map(cpu).collect();
        Cstates {
            states,
            cpus,
            emptied: vec![false; cores.len()],
            slept: vec![(0, 0); cores.len()],
            cores,
            tick: params.ns("tick_period"),
        }
    }

    /// True if the CPU is awake, or about to be, and not about to go idle.
    pub fn awake(&self, cpu: usize) -> bool {
        matches!(self.cpus[cpu].doing, Doing::Awake)
    }

    /// True if the CPU idles in a state that a write ends.
    pub fn listens(&mut self, cpu: usize, now: u64) -> bool {
        self.passes(self.cpus[cpu].core, now);
        match self.cpus[cpu].doing {
            // Else it handles a tick.
            Doing::Idles(idle) => idle.since <= now && self.states[idle.state].listens,
            _ => false,
        }
    }

    /// The CPU goes idle, or has looked for work before it does. `tick`: when its next tick is due.
    /// `timer`: its next timer, if any.
    pub fn begins(&mut self, cpu: usize, now: u64, tick: u64, timer: Option<u64>) {
        self.passes(self.cpus[cpu].core, now);
        let until = self.cpus[cpu].until.max(now);
        self.cpus[cpu].doing = Doing::Looks(Look { until, tick, timer });
        self.passes(self.cpus[cpu].core, now);
    }

    /// The CPU, which goes idle now, looks for work until then.
    pub fn stays_up(&mut self, cpu: usize, until: u64) {
        self.cpus[cpu].until = until;
    }

    /// An interrupt wakes the CPU. Returns the ns until it is awake, and whether its L2 is empty.
    pub fn wakes(&mut self, cpu: usize, now: u64) -> (u64, bool) {
        let core = self.cpus[cpu].core;
        self.passes(core, now);
        let before = std::mem::replace(&mut self.cpus[cpu].doing, Doing::Awake);
        let idle = match before {
            Doing::Awake => return (self.cpus[cpu].awake.saturating_sub(now), false),
            // The look ends (kernel: sched_balance_newidle() stops behind the domain at hand), and
            // no state was entered.
            Doing::Looks(_) => {
                (self.cpus[cpu].awake, self.cpus[cpu].until) = (now, now);
                return (0, false);
            }
            Doing::Idles(idle) => idle,
        };
        self.cpus[cpu].doing = before;
        let (exit, empties) = self.exit(core, now);
        self.cpus[cpu].doing = Doing::Awake;
        self.cpus[cpu].awake = now + exit;
        // What is measured has the exit in it (kernel: menu_update()). Between a tick and the end
        // of its exit the CPU does not idle.
        let requested = self.states[idle.state].exit / 1000;
        if let Some(ns) = (now + exit)
            .checked_sub(idle.since)
            .filter(|_| idle.since <= now)
        {
            let measured = ns / 1000;
            let us = if measured > 2 * requested {
                measured - requested
            } else {
                measured / 2
            };
            self.learns(cpu, us, idle);
        }
        (exit, std::mem::take(&mut self.emptied[core]) || empties)
    }

    /// The CPU runs something from now on.
    pub fn runs(&mut self, cpu: usize) {
        self.cpus[cpu].stopped = false;
    }

    /// The CPU goes offline: it sleeps as deeply as it can, without a tick, and does not matter to
    /// its core (kernel: play_dead()).
    pub fn leaves(&mut self, cpu: usize, now: u64) {
        let core = self.cpus[cpu].core;
        self.passes(core, now);
        self.cores[core].retain(|&thread| thread != cpu);
        self.cpus[cpu].doing = Doing::Idles(Idle::deepest(&self.states));
    }

    /// The CPU comes back online, and is awake.
    pub fn returns(&mut self, cpu: usize, now: u64) {
        let core = self.cpus[cpu].core;
        self.passes(core, now);
        self.cores[core].push(cpu);
        (self.cpus[cpu].doing, self.cpus[cpu].awake) = (Doing::Awake, now);
    }

    /// ns until the core has left its state, and whether that has emptied its L2; once what
    /// happened until now has been seen. The core's state is the shallowest of its threads'. While
    /// another thread works, this one only halts.
    fn exit(&self, core: usize, now: u64) -> (u64, bool) {
        let (mut shallowest, mut awake) = (self.states.len() - 1, None);
        for thread in self.cores[core].iter().map(|&thread| &self.cpus[thread]) {
            match thread.doing {
                // It may be waking up itself.
                Doing::Awake => awake = awake.max(Some(thread.awake)),
                Doing::Looks(_) => awake = awake.max(Some(now)),
                Doing::Idles(idle) if idle.since > now => awake = awake.max(Some(idle.since)),
                Doing::Idles(idle) => shallowest = shallowest.min(idle.state),
            }
        }
        match awake {
            Some(at) => (self.states[0].exit.max(at.saturating_sub(now)), false),
            None => {
                let state = self.states[shallowest];
                (state.exit, state.empties)
            }
        }
    }

    /// What the core's threads do until now by themselves: looks end, and idle threads tick.
    fn passes(&mut self, core: usize, now: u64) {
        loop {
            let due = |&cpu: &usize| match self.cpus[cpu].doing {
                Doing::Awake => None,
                Doing::Looks(look) => Some((look.until, cpu)),
                Doing::Idles(idle) => Some((idle.tick?, cpu)),
            };
            let next = self.cores[core].iter().filter_map(due).min();
            let Some((at, cpu)) = next.filter(|&(at, _)| at <= now) else {
                return self.counts(core, now);
            };
            self.counts(core, at);
            match self.cpus[cpu].doing {
                Doing::Awake => {}
                Doing::Looks(look) => self.enters(cpu, look),
                Doing::Idles(idle) => self.ticked(cpu, at, idle),
            }
        }
    }

    /// Counts the core's sleep until now. All its threads have done the same since the last count.
    fn counts(&mut self, core: usize, now: u64) {
        let (slept, until) = &mut self.slept[core];
        let since = |&cpu: &usize| match self.cpus[cpu].doing {
            Doing::Idles(idle) if self.states[idle.state].empties => Some(idle.since),
            _ => None,
        };
        let mut threads = self.cores[core].iter().map(since);
        let since = threads.try_fold(*until, |last, since| Some(last.max(since?)));
        if let Some(since) = since.filter(|_| !self.cores[core].is_empty()) {
            *slept += now.saturating_sub(since);
        }
        *until = now;
    }

    /// The time until now that cores slept in states that empty their L2, ns of all cores together.
    /// A core without a CPU online does not count.
    pub fn slept(&mut self, now: u64) -> u64 {
        (0..self.cores.len()).for_each(|core| self.passes(core, now));
        self.slept.iter().map(|&(slept, _)| slept).sum()
    }

    /// The look is over, and the CPU idles. Ticks that were due meanwhile found it busy.
    fn enters(&mut self, cpu: usize, look: Look) {
        let (now, mut tick) = (look.until, look.tick);
        if tick < now {
            tick += (now - tick).div_ceil(self.tick) * self.tick;
        }
        let farthest = now + FARTHEST;
        let timer = look.timer.map_or(farthest, |at| at.clamp(now, farthest));
        self.picks(cpu, now, tick, timer);
    }

    /// A tick of the idle CPU: the core leaves its state, as for any interrupt; the governor learns
    /// that it was wrong, and picks again.
    fn ticked(&mut self, cpu: usize, tick: u64, idle: Idle) {
        let core = self.cpus[cpu].core;
        let (exit, empties) = self.exit(core, tick);
        self.emptied[core] |= empties;
        let up = tick + exit;
        let us = match idle.timer - idle.since > self.tick {
            true => TICKED,
            false => tick.saturating_sub(idle.since) / 1000,
        };
        self.learns(cpu, us, idle);
        self.picks(cpu, up, tick + self.tick, idle.timer.max(up));
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
        of.doing = Doing::Idles(Idle {
            since: now,
            state: state.unwrap_or(0),
            timer,
            tick: goes_on.then_some(tick),
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

/// The mean of the last idle periods, us, if they are alike. Else the longest are left out, all
/// that are equally long at once, as long as more than three quarters are left before; or the
/// shortest, if these are farther from the mean. None: there is no pattern (kernel:
/// get_typical_interval()).
fn typical(last: &[u64; INTERVALS]) -> Option<u64> {
    const MANY: usize = INTERVALS * 3 / 4;
    let mut sorted = *last;
    sorted.sort_unstable();
    let mut of = &sorted[..];
    loop {
        let count = of.len() as u64;
        let mean = of.iter().sum::<u64>() / count;
        let squares = of.iter().map(|us| us.abs_diff(mean).pow(2));
        let variance = squares.sum::<u64>() / count;
        let beside = mean * mean > variance * TIMES * TIMES;
        if variance <= NARROW * NARROW || beside && of.len() >= MANY {
            return Some(mean);
        }
        if of.len() <= MANY {
            return None;
        }
        let (shortest, longest) = (of[0], of[of.len() - 1]);
        of = match mean - shortest > longest - mean {
            true => &of[of.partition_point(|&us| us <= shortest)..],
            false => &of[..of.partition_point(|&us| us < longest)],
        };
    }
}

#[cfg(test)]
mod tests;
