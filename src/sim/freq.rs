// SPDX-License-Identifier: GPL-2.0-only
//! Frequencies of cores: a governor says where each shall go, and it goes there in steps. Parts of the highest, in 1/FULL.

use super::params::Params;
use super::speed::FULL;
use crate::bpf::intf::CAPACITY_SCALE;

/// Half-life of a CPU's utilisation (kernel: PELT), ns.
const HALF_LIFE: f64 = 32e6;
/// schedutil asks for so much more than is used (kernel: map_util_perf()).
const HEADROOM: f64 = 1.25;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Governor {
    /// The highest, always.
    Performance,
    /// By utilisation, or what the scheduler asks for.
    Schedutil,
    /// What the driver of each CPU asks for (kernel: intel_pstate's powersave; see `pstate`).
    Pstate,
}

/// What a tick sees of a CPU that idles along, 0..=CAPACITY_SCALE.
pub fn idle_speed(params: &Params) -> u32 {
    let lowest = Freqs::new(params, &[]).lowest();
    (lowest * u64::from(CAPACITY_SCALE) / FULL) as u32
}

struct Core {
    now: u64,
    node: usize,
    /// Until then `used` and `now` are known, ns.
    since: u64,
    /// What was used of its highest frequency, of late (kernel: utilisation is that of the highest since 5.7, arch_scale_freq_capacity()).
    used: f64,
    /// What was asked for, of its busy threads the highest.
    asked: Option<u64>,
}

pub struct Freqs {
    governor: Governor,
    min: u64,
    /// ns between two steps, and the most that one step changes.
    pub step: u64,
    change: u64,
    /// The highest frequency with so many busy cores of a node.
    boost: Vec<u64>,
    /// Of each node; and the highest as of the last step.
    busy_cores: Vec<usize>,
    highest: Vec<u64>,
    cores: Vec<Core>,
}

impl Freqs {
    /// `nodes`: of each core.
    pub fn new(params: &Params, nodes: &[usize]) -> Freqs {
        let part = |x: f64| (x * FULL as f64).round() as u64;
        let governor = match params.count("governor") {
            0 => Governor::Performance,
            1 => Governor::Schedutil,
            _ => Governor::Pstate,
        };
        let min = part(f64::from(params.khz("freq_min")) / f64::from(params.khz("freq_max")));
        let (step, ramp) = (params.ns("freq_step"), params.ns("freq_ramp"));
        let nr_nodes = nodes.iter().max().map_or(0, |n| n + 1);
        let of_node = nodes.iter().filter(|n| **n == 0).count();
        let (some, all) = (
            params.count("boost_cores") as usize,
            params.part("boost_all"),
        );
        let boost = |busy: usize| {
            let over =
                busy.saturating_sub(some) as f64 / of_node.saturating_sub(some).max(1) as f64;
            part(1.0 - (1.0 - all) * over.min(1.0))
        };
        let core = |&node: &usize| Core {
            now: match governor {
                Governor::Performance => FULL,
                _ => min,
            },
            node,
            since: 0,
            used: 0.0,
            asked: None,
        };
        Freqs {
            governor,
            min,
            step,
            change: ((FULL - min) as f64 * (step as f64 / ramp as f64).min(1.0)) as u64,
            boost: (0..=nodes.len()).map(boost).collect(),
            highest: vec![FULL; nr_nodes],
            busy_cores: vec![0; nr_nodes],
            cores: nodes.iter().map(core).collect(),
        }
    }

    /// CPUs are sampled.
    pub fn sampled(&self) -> bool {
        self.governor == Governor::Pstate
    }

    /// The lowest of all.
    pub fn lowest(&self) -> u64 {
        match self.governor {
            Governor::Performance => FULL,
            _ => self.min,
        }
    }

    pub fn of(&self, core: usize) -> u64 {
        self.cores[core].now
    }

    /// The scheduler, or the driver, asks for a part of the highest, for the core.
    pub fn ask(&mut self, core: usize, part: u64) {
        self.cores[core].asked = Some(part);
    }

    /// Until now the core was busy or idle.
    fn account(&mut self, core: usize, busy: bool, now: u64) {
        let core = &mut self.cores[core];
        let ns = now - core.since;
        core.since = now;
        if self.governor == Governor::Schedutil {
            let kept = (-(ns as f64) / HALF_LIFE).exp2();
            let speed = core.now as f64 / FULL as f64;
            let was = if busy { speed } else { 0.0 };
            core.used = was + (core.used - was) * kept;
        }
    }

    /// The core begins or ceases to be busy.
    pub fn turns(&mut self, core: usize, busy: bool, now: u64) {
        self.account(core, !busy, now);
        let count = &mut self.busy_cores[self.cores[core].node];
        match busy {
            true => *count += 1,
            false => *count -= 1,
        }
        if busy {
            let highest = self.highest[self.cores[core].node];
            let now = match self.governor {
                Governor::Performance => highest,
                // What was not used for long is not wanted.
                Governor::Schedutil => self.cores[core].now.min(self.wanted(core)),
                // Who idles asks for nothing new.
                Governor::Pstate => self.cores[core].now.min(highest),
            };
            self.cores[core].now = now;
        }
    }

    /// Where a busy core shall go.
    fn wanted(&self, core: usize) -> u64 {
        let core = &self.cores[core];
        let wanted = match self.governor {
            Governor::Performance => FULL,
            Governor::Pstate => core.asked.unwrap_or(self.min),
            Governor::Schedutil => {
                let used = core.asked.unwrap_or((core.used * FULL as f64) as u64);
                ((used as f64 * HEADROOM) as u64).clamp(self.min, FULL)
            }
        };
        wanted.min(self.boost[self.busy_cores[core.node]])
    }

    /// The core is as fast as its governor ever lets it be beside those that are busy.
    pub fn at_best(&mut self, core: usize) {
        let highest = self.boost[self.busy_cores[self.cores[core].node]];
        self.cores[core].now = highest;
    }

    /// The core, if it is busy, or others of its node are not where they shall go.
    pub fn behind(&self, core: usize, busy: bool) -> bool {
        let node = self.cores[core].node;
        let moved = self.highest[node] != self.boost[self.busy_cores[node]];
        moved || busy && (self.cores[core].now != self.wanted(core) || self.rises(core))
    }

    /// Its utilisation grows while it is busy, and with it what is wanted.
    fn rises(&self, core: usize) -> bool {
        let of = &self.cores[core];
        let highest = self.boost[self.busy_cores[of.node]];
        self.governor == Governor::Schedutil && of.asked.is_none() && of.now != highest
    }

    /// Steps of all busy cores begin.
    pub fn steps(&mut self) {
        for (highest, busy) in self.highest.iter_mut().zip(&self.busy_cores) {
            *highest = self.boost[*busy];
        }
    }

    /// A step of a busy core towards where it shall go.
    pub fn follow(&mut self, core: usize, now: u64) {
        self.account(core, true, now);
        let wanted = self.wanted(core);
        let change = match self.governor {
            Governor::Performance | Governor::Pstate => FULL,
            Governor::Schedutil => self.change,
        };
        let at = &mut self.cores[core];
        let next = wanted.clamp(at.now.saturating_sub(change), at.now + change);
        at.now = next;
    }
}
