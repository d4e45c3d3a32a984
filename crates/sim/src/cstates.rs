// SPDX-License-Identifier: GPL-2.0-only
//! How deeply an idle CPU sleeps: the shallowest state at once, and the deep one when the whole
//! core has idled for as long as makes that worth it. Each state has one exit time. No governor
//! predicts: a CPU is never in a state that is too deep for its idle period.

use super::params::Params;
use scx_roost::machine::Facts;

/// Before a run all CPUs have been idle for this long, ns.
const LONG: i64 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Cpu {
    /// When it went idle, or will after its look for work, ns. None: it is awake.
    idle: Option<i64>,
    /// It is awake from this time on, ns.
    awake: u64,
    /// If it goes idle, it looks for work first, until this time, ns.
    until: u64,
    core: usize,
}

#[derive(Clone, Debug, Default)]
struct Core {
    /// Its CPUs that are online.
    cpus: Vec<usize>,
    /// What it has slept deeply, ns, and until when that is counted.
    slept: i64,
    counted: i64,
}

/// The idle states of all CPUs.
#[derive(Clone)]
pub struct Cstates {
    cpus: Vec<Cpu>,
    cores: Vec<Core>,
    /// ns until a CPU has left the shallow state.
    shallow: u64,
    /// The deep state: ns until a CPU has left it, and ns of idling before a core enters it. None:
    /// it is disabled.
    deep: Option<(u64, i64)>,
}

impl Cstates {
    pub fn new(params: &Params, facts: &Facts) -> Cstates {
        let cpu = |core: usize| Cpu {
            idle: Some(-LONG),
            awake: 0,
            until: 0,
            core,
        };
        let core_of = || facts.cpus.iter().map(|cpu| usize::from(cpu.core));
        let mut cores = vec![Core::default(); core_of().max().map_or(0, |core| core + 1)];
        for (cpu, core) in core_of().enumerate() {
            if facts.cpus[cpu].online != 0 {
                cores[core].cpus.push(cpu);
            }
        }
        let deep = || {
            let after = params.ns("idle_deep_after") as i64;
            (params.ns("idle_deep_exit"), after)
        };
        Cstates {
            cpus: core_of().map(cpu).collect(),
            cores,
            shallow: params.ns("idle_c1_exit"),
            deep: (params.count("idle_deep") > 0).then(deep),
        }
    }

    /// True if the CPU is awake, or about to be, and not about to go idle.
    pub fn awake(&self, cpu: usize) -> bool {
        self.cpus[cpu].idle.is_none()
    }

    /// The CPU goes idle, or has looked for work before it does.
    pub fn begins(&mut self, cpu: usize, now: u64) {
        self.counts(self.cpus[cpu].core, now);
        let at = &mut self.cpus[cpu];
        at.idle = Some(at.until.max(now) as i64);
    }

    /// The CPU, which goes idle now, looks for work until then.
    pub fn stays_up(&mut self, cpu: usize, until: u64) {
        self.cpus[cpu].until = until;
    }

    /// An interrupt wakes the CPU. Returns the ns until it is awake, and whether its core has slept
    /// deeply, which empties its L2.
    pub fn wakes(&mut self, cpu: usize, now: u64) -> (u64, bool) {
        let core = self.cpus[cpu].core;
        let deep = self.counts(core, now);
        let at = &mut self.cpus[cpu];
        let Some(since) = at.idle.take() else {
            return (at.awake.saturating_sub(now), false);
        };
        // The look for work ends: the CPU has entered no state.
        if since > now as i64 {
            (at.awake, at.until) = (now, now);
            return (0, false);
        }
        let exit = match self.deep {
            Some((exit, _)) if deep => exit,
            _ => self.shallow,
        };
        at.awake = now + exit;
        (exit, deep)
    }

    /// The CPU goes offline: it sleeps, and does not matter to its core (kernel: play_dead()).
    pub fn leaves(&mut self, cpu: usize, now: u64) {
        let core = self.cpus[cpu].core;
        self.counts(core, now);
        self.cores[core].cpus.retain(|&thread| thread != cpu);
        self.cpus[cpu].idle = Some(now as i64);
    }

    /// The CPU comes back online, and is awake.
    pub fn returns(&mut self, cpu: usize, now: u64) {
        let core = self.cpus[cpu].core;
        self.counts(core, now);
        self.cores[core].cpus.push(cpu);
        (self.cpus[cpu].idle, self.cpus[cpu].awake) = (None, now);
    }

    /// Counts the core's deep sleep until now. True: it sleeps deeply.
    fn counts(&mut self, core: usize, now: u64) -> bool {
        let now = now as i64;
        let of = &self.cores[core];
        let mut threads = of.cpus.iter().map(|&cpu| self.cpus[cpu].idle);
        let idle = threads.try_fold(-LONG, |last, idle| Some(last.max(idle?)));
        let begins = idle
            .filter(|_| !of.cpus.is_empty())
            .zip(self.deep)
            .map(|(idle, (_, after))| idle + after);
        let deep = begins.filter(|&begins| begins <= now);
        let of = &mut self.cores[core];
        if let Some(begins) = deep {
            of.slept += now - begins.max(of.counted);
        }
        of.counted = now;
        deep.is_some()
    }

    /// The time until now that cores slept deeply, ns of all cores together. A core without a CPU
    /// online does not count.
    pub fn slept(&mut self, now: u64) -> u64 {
        for core in 0..self.cores.len() {
            self.counts(core, now);
        }
        self.cores.iter().map(|core| core.slept as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// Of the 3970X: CPUs 0 and 32 are a core; 1 and 25 us, from 100 us on.
    fn states() -> Cstates {
        let model = model("tr-3970x").expect("it is known");
        let facts = model.machine.facts().expect("it is one");
        Cstates::new(&model.params, &facts)
    }

    #[test]
    fn a_core_sleeps_deeply_once_all_its_threads_have_idled() {
        let mut states = states();
        assert_eq!(states.wakes(0, MS), (25 * US, true));
        // It is still waking up, and so is its core.
        assert_eq!(states.wakes(0, MS + 5 * US), (20 * US, false));
        assert_eq!(states.wakes(32, MS + 5 * US), (US, false));
        for cpu in [0, 32] {
            states.begins(cpu, 2 * MS);
        }
        assert_eq!(states.wakes(0, 2 * MS + 99 * US), (US, false));
        states.begins(0, 2 * MS + 99 * US);
        assert_eq!(states.wakes(32, 2 * MS + 199 * US), (25 * US, true));
    }

    #[test]
    fn a_look_for_work_is_no_sleep() {
        let mut states = states();
        states.wakes(0, MS);
        states.stays_up(0, 2 * MS);
        states.begins(0, MS + 50 * US);
        assert_eq!(states.wakes(0, MS + 60 * US), (0, false));
        states.begins(0, MS + 60 * US);
        assert_eq!(states.wakes(0, MS + 200 * US), (25 * US, true));
    }

    /// 31 cores for 2 ms, and that of the thread which wakes for 1 ms. A thread that has gone away
    /// matters no more.
    #[test]
    fn deep_sleep_is_counted_while_all_threads_that_are_there_idle() {
        let mut states = states();
        assert_eq!(states.slept(0), 0);
        states.wakes(32, MS);
        assert_eq!(states.slept(2 * MS), 63 * MS);
        states.leaves(32, 2 * MS);
        assert_eq!(states.slept(3 * MS), (63 + 32) * MS);
    }
}
