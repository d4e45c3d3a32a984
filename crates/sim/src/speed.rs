// SPDX-License-Identifier: GPL-2.0-only
//! How fast a CPU works now: its core's frequency, less what the core's other threads take. Only
//! this file combines them. A governor says which frequency a busy core should have, and the core
//! goes there in steps. Frequencies are parts of the highest, in 1/FULL.

use super::params::Params;
use scx_roost::bpf::intf::CAPACITY_SCALE;
use scx_roost::machine::Facts;

/// Work per ns at full speed.
pub const FULL: u64 = 1 << 20;
/// Half-life of a CPU's utilisation (kernel: PELT), ns.
const HALF_LIFE: f64 = 32e6;
/// schedutil asks for this much more than is used (kernel: map_util_perf()).
const HEADROOM: f64 = 1.25;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Governor {
    /// The highest, always.
    Performance,
    /// By utilisation, or by what the scheduler asks for.
    Schedutil,
    /// The hardware by itself (HWP, CPPC): up while something runs, down while nothing does, at the
    /// same pace.
    Hardware,
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    governor: Governor,
    min: u64,
    /// ns between two steps, and the most that one step changes.
    step: u64,
    change: u64,
}

impl Clock {
    fn new(params: &Params) -> Clock {
        let governor = match params.count("governor") {
            0 => Governor::Performance,
            1 => Governor::Schedutil,
            _ => Governor::Hardware,
        };
        let (lowest, highest) = (params.khz("freq_min"), params.khz("freq_max"));
        let min = u64::from(lowest) * FULL / u64::from(highest);
        let (step, ramp) = (params.ns("freq_step"), params.ns("freq_ramp"));
        let part = (step as f64 / ramp as f64).min(1.0);
        Clock {
            governor,
            min,
            step,
            change: match governor {
                Governor::Schedutil => FULL,
                _ => ((FULL - min) as f64 * part) as u64,
            },
        }
    }

    fn lowest(&self) -> u64 {
        match self.governor {
            Governor::Performance => FULL,
            _ => self.min,
        }
    }
}

/// What a tick sees of a CPU at its idle frequency, 0..=CAPACITY_SCALE.
pub fn idle_speed(params: &Params) -> u32 {
    let lowest = Clock::new(params).lowest();
    (lowest * u64::from(CAPACITY_SCALE) / FULL) as u32
}

/// What is counted on a CPU (APERF, MPERF).
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    is_busy: bool,
    /// What the scheduler asked for. None: nothing yet.
    asked: Option<u64>,
    /// Since its last tick: ns that the CPU was busy, and the same times the frequency.
    busy: u64,
    done: u64,
}

struct Core {
    threads: Vec<usize>,
    /// Busy threads.
    busy: u32,
    frequency: u64,
    /// All is accounted for up to this time, ns.
    since: u64,
    /// Recent utilisation, of the highest frequency.
    used: f64,
    /// The time of its last step, ns.
    stepped: u64,
}

/// Which CPUs are busy, and the speed of each that follows from it.
pub struct Cores {
    clock: Clock,
    /// The speed of a thread while another thread of its core is busy, in 1/FULL.
    smt: u64,
    core_of: Vec<usize>,
    /// The capacity of each CPU beside the biggest, 1..=CAPACITY_SCALE.
    capacity: Vec<u64>,
    cores: Vec<Core>,
    cpus: Vec<Counters>,
}

impl Cores {
    pub fn new(params: &Params, facts: &Facts) -> Cores {
        let clock = Clock::new(params);
        let core_of: Vec<usize> = facts.cpus.iter().map(|c| c.core.into()).collect();
        let core = |number: usize| Core {
            threads: (0..core_of.len())
                .filter(|&c| core_of[c] == number)
                .collect(),
            busy: 0,
            frequency: clock.lowest(),
            since: 0,
            used: 0.0,
            stepped: 0,
        };
        Cores {
            clock,
            smt: (params.part("smt_speed") * FULL as f64).round() as u64,
            capacity: facts.cpus.iter().map(|c| c.capacity.into()).collect(),
            cores: (0..core_of.iter().max().map_or(0, |c| c + 1))
                .map(core)
                .collect(),
            cpus: vec![Counters::default(); core_of.len()],
            core_of,
        }
    }

    /// Accounts for the core's time until now.
    fn account(&mut self, core: usize, now: u64) {
        let of = &mut self.cores[core];
        let ns = now - std::mem::replace(&mut of.since, now);
        if self.clock.governor == Governor::Schedutil {
            let kept = (-(ns as f64) / HALF_LIFE).exp2();
            let was = match of.busy {
                0 => 0.0,
                _ => of.frequency as f64 / FULL as f64,
            };
            of.used = was + (of.used - was) * kept;
        }
        for &cpu in &of.threads {
            let counters = &mut self.cpus[cpu];
            if counters.is_busy {
                counters.busy += ns;
                counters.done += ns * of.frequency;
            }
        }
    }

    /// The frequency that the core should have while it is busy.
    fn wanted(&self, core: usize) -> u64 {
        let of = &self.cores[core];
        if self.clock.governor != Governor::Schedutil {
            return FULL;
        }
        let busy = of.threads.iter().map(|&cpu| &self.cpus[cpu]);
        let asked = busy.filter(|c| c.is_busy).filter_map(|c| c.asked).max();
        let most = asked.map_or(of.used, |part| part as f64 / FULL as f64);
        ((most * HEADROOM * FULL as f64) as u64).clamp(self.clock.min, FULL)
    }

    /// Takes a step if one is due.
    fn step(&mut self, core: usize, now: u64) {
        let wanted = self.wanted(core);
        let (step, change) = (self.clock.step, self.clock.change);
        let of = &mut self.cores[core];
        if of.busy == 0 || of.frequency == wanted || now < of.stepped + step {
            return;
        }
        of.frequency = wanted.clamp(of.frequency.saturating_sub(change), of.frequency + change);
        of.stepped = now;
    }

    /// A tick of a busy CPU. Returns its mean frequency while it was busy since its last tick
    /// (kernel: arch_scale_freq_tick()).
    pub fn tick(&mut self, cpu: usize, now: u64) -> u64 {
        let core = self.core_of[cpu];
        self.account(core, now);
        let counters = &mut self.cpus[cpu];
        let mean = counters.done.checked_div(counters.busy);
        (counters.busy, counters.done) = (0, 0);
        mean.unwrap_or(self.cores[core].frequency)
    }

    /// A CPU becomes busy or idle.
    pub fn turns(&mut self, cpu: usize, busy: bool, now: u64) {
        let core = self.core_of[cpu];
        let idled = now - self.cores[core].since;
        self.account(core, now);
        self.cpus[cpu].is_busy = busy;
        let of = &mut self.cores[core];
        match busy {
            true => of.busy += 1,
            false => of.busy -= 1,
        }
        if !busy || of.busy > 1 {
            return;
        }
        if self.clock.governor == Governor::Hardware {
            let down = (idled / self.clock.step.max(1)).saturating_mul(self.clock.change);
            of.frequency = of.frequency.saturating_sub(down).max(self.clock.min);
            of.stepped = now;
        }
        // A step that is due is taken at once: it is the scheduler's call about the task which
        // wakes up that leads to it (kernel: cpufreq_update_util()).
        self.step(core, now);
    }

    /// True if another thread of the busy CPU's core is busy too.
    pub fn shared(&self, cpu: usize) -> bool {
        self.cores[self.core_of[cpu]].busy > 1
    }

    /// Work per ns of a busy CPU.
    pub fn rate(&self, cpu: usize) -> u64 {
        let smt = if self.shared(cpu) { self.smt } else { FULL };
        let frequency = self.cores[self.core_of[cpu]].frequency;
        smt * frequency / FULL * self.capacity[cpu] / u64::from(CAPACITY_SCALE)
    }

    /// The scheduler asks for a part of the highest frequency.
    pub fn ask(&mut self, cpu: usize, part: u64) {
        self.cpus[cpu].asked = Some(part);
    }

    /// Busy cores take a step, where one is due. Returns when one of them needs the next.
    pub fn follow(&mut self, now: u64) -> Option<u64> {
        let busy = (0..self.cores.len()).filter(|&core| self.cores[core].busy > 0);
        for core in busy.collect::<Vec<_>>() {
            self.account(core, now);
            self.step(core, now);
        }
        let firsts = self.cores.iter().filter_map(|core| core.threads.first());
        let next = firsts.filter_map(|&cpu| self.behind(cpu, now)).min();
        next.map(|ns| now + ns.max(1))
    }

    /// ns until a step of the CPU's core is due. None: it is idle, or has the frequency that it
    /// should have.
    pub fn behind(&self, cpu: usize, now: u64) -> Option<u64> {
        let core = self.core_of[cpu];
        let of = &self.cores[core];
        let late = of.busy > 0 && of.frequency != self.wanted(core);
        late.then(|| (of.stepped + self.clock.step).saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, model};

    const MS: u64 = 1_000_000;

    fn cores(governor: f64, ramp: f64) -> Cores {
        let mut model: Model = model("tr-3970x").expect("it is known");
        for (name, value) in [("governor", governor), ("freq_ramp", ramp)] {
            model.params.set(name, value).expect("in its range");
        }
        let facts = model.machine.facts().expect("it is one");
        Cores::new(&model.params, &facts)
    }

    /// Steps of 1 ms. A core that becomes busy again gets none sooner.
    #[test]
    fn schedutils_steps_are_apart() {
        let mut cores = cores(1.0, 1.0);
        cores.ask(0, FULL / 2);
        cores.turns(0, true, 10 * MS);
        assert_eq!(cores.rate(0), FULL * 5 / 8);
        cores.ask(0, FULL);
        assert_eq!(cores.behind(0, 10 * MS + MS / 4), Some(3 * MS / 4));
        assert_eq!(cores.follow(11 * MS), None);
        assert_eq!(cores.rate(0), FULL);
        cores.turns(0, false, 11 * MS + 1);
        cores.ask(0, FULL / 2);
        cores.turns(0, true, 11 * MS + 2);
        assert_eq!(cores.rate(0), FULL);
    }

    #[test]
    fn the_hardware_goes_up_while_a_core_is_busy_and_down_while_it_idles() {
        let mut cores = cores(2.0, 10.0);
        let lowest = cores.clock.min;
        cores.turns(0, true, 10 * MS);
        assert_eq!(cores.rate(0), lowest);
        for ms in 11..16 {
            cores.follow(ms * MS);
        }
        let risen = cores.rate(0);
        assert_eq!(risen, lowest + 5 * cores.clock.change);
        cores.turns(0, false, 16 * MS);
        cores.turns(0, true, 18 * MS);
        assert_eq!(cores.rate(0), risen - 2 * cores.clock.change);
    }

    /// 3 ms at the lowest frequency and 1 ms at the highest.
    #[test]
    fn a_tick_sees_the_mean_of_what_was_busy() {
        let mut cores = cores(2.0, 1.0);
        let lowest = cores.clock.min;
        cores.clock.step = 3 * MS;
        cores.turns(0, true, 0);
        cores.follow(3 * MS);
        assert_eq!(cores.tick(0, 4 * MS), (3 * lowest + FULL) / 4);
        cores.turns(0, false, 4 * MS);
        assert_eq!(cores.tick(0, 9 * MS), FULL);
    }
}
