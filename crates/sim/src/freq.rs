// SPDX-License-Identifier: GPL-2.0-only
//! Frequencies of cores, or of cores that share one. A governor sets a target, and the frequency
//! goes there in steps. Frequencies are parts of the highest, in 1/FULL.

use super::params::Params;
use super::speed::FULL;
use scx_roost::bpf::intf::CAPACITY_SCALE;

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

/// What a tick sees of a CPU at its idle frequency, 0..=CAPACITY_SCALE.
pub fn idle_speed(params: &Params) -> u32 {
    let lowest = Freqs::new(params, &[], &[]).lowest();
    (lowest * u64::from(CAPACITY_SCALE) / FULL) as u32
}

struct Core {
    domain: usize,
    node: usize,
    busy: bool,
    /// `used` is known up to this time, ns.
    since: u64,
    /// Recent utilisation, of the highest frequency (kernel: so since 5.7,
    /// arch_scale_freq_capacity()).
    used: f64,
    /// The highest request of its busy threads.
    asked: Option<u64>,
}

/// Cores that share a frequency (kernel: struct cpufreq_policy).
#[derive(Default)]
struct Domain {
    now: u64,
    cores: Vec<usize>,
    busy_cores: usize,
    idle_since: u64,
    /// The time of its last step, ns.
    stepped: u64,
}

pub struct Freqs {
    governor: Governor,
    min: u64,
    /// ns between two steps, and the most that one step changes.
    pub step: u64,
    change: u64,
    /// The highest frequency, by the number of busy cores of the node.
    boost: Vec<u64>,
    /// For each node: its busy cores, and the highest frequency as of the last step.
    busy_cores: Vec<usize>,
    highest: Vec<u64>,
    cores: Vec<Core>,
    domains: Vec<Domain>,
}

impl Freqs {
    /// `nodes` and `domains`: the node and the frequency domain of each core.
    pub fn new(params: &Params, nodes: &[usize], domains: &[usize]) -> Freqs {
        let part = |x: f64| (x * FULL as f64).round() as u64;
        let governor = match params.count("governor") {
            0 => Governor::Performance,
            1 => Governor::Schedutil,
            _ => Governor::Hardware,
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
        let first = match governor {
            Governor::Performance => FULL,
            _ => min,
        };
        let core = |(&node, &domain): (&usize, &usize)| Core {
            domain,
            node,
            busy: false,
            since: 0,
            used: 0.0,
            asked: None,
        };
        let domain = |at: usize| Domain {
            now: first,
            cores: (0..domains.len()).filter(|&c| domains[c] == at).collect(),
            ..Domain::default()
        };
        let nr_domains = domains.iter().max().map_or(0, |d| d + 1);
        Freqs {
            governor,
            min,
            step,
            change: ((FULL - min) as f64 * (step as f64 / ramp as f64).min(1.0)) as u64,
            boost: (0..=nodes.len()).map(boost).collect(),
            highest: vec![FULL; nr_nodes],
            busy_cores: vec![0; nr_nodes],
            cores: nodes.iter().zip(domains).map(core).collect(),
            domains: (0..nr_domains).map(domain).collect(),
        }
    }

    /// The lowest frequency that the governor uses.
    pub fn lowest(&self) -> u64 {
        match self.governor {
            Governor::Performance => FULL,
            _ => self.min,
        }
    }

    pub fn of(&self, core: usize) -> u64 {
        self.domain(core).now
    }

    fn domain(&self, core: usize) -> &Domain {
        &self.domains[self.cores[core].domain]
    }

    /// The scheduler asks for a part of the highest frequency for the core.
    pub fn ask(&mut self, core: usize, part: u64) {
        self.cores[core].asked = Some(part);
    }

    /// Accounts for the time until now, in which the core was busy or idle.
    pub fn account(&mut self, core: usize, now: u64) {
        let speed = self.of(core) as f64 / FULL as f64;
        let core = &mut self.cores[core];
        let ns = now - core.since;
        core.since = now;
        if self.governor == Governor::Schedutil {
            let kept = (-(ns as f64) / HALF_LIFE).exp2();
            let was = if core.busy { speed } else { 0.0 };
            core.used = was + (core.used - was) * kept;
        }
    }

    /// The core becomes busy or idle.
    pub fn turns(&mut self, core: usize, busy: bool, now: u64) {
        self.account(core, now);
        let of = &mut self.cores[core];
        of.busy = busy;
        let domain = &mut self.domains[of.domain];
        for count in [&mut self.busy_cores[of.node], &mut domain.busy_cores] {
            match busy {
                true => *count += 1,
                false => *count -= 1,
            }
        }
        match (busy, domain.busy_cores) {
            (false, 0) => domain.idle_since = now,
            (true, 1) => self.wakes(core, now),
            _ => {}
        }
    }

    /// The first core of its domain becomes busy.
    fn wakes(&mut self, core: usize, now: u64) {
        let (of, domain) = (&self.cores[core], self.domain(core));
        let highest = self.highest[of.node];
        let next = match self.governor {
            Governor::Performance => highest,
            // A step that is due is taken at once: it is the scheduler's call about the task which
            // wakes up that leads to it (kernel: cpufreq_update_util()).
            Governor::Schedutil if self.due(of.domain, now) => self.towards(of.domain),
            Governor::Schedutil => domain.now,
            Governor::Hardware => {
                let down = (now - domain.idle_since) / self.step.max(1);
                let left = domain.now.saturating_sub(down.saturating_mul(self.change));
                left.max(self.min).min(highest)
            }
        };
        self.steps(of.domain, next, now);
    }

    /// A change of schedutil's delays the next one; a request for the same frequency does not
    /// (kernel: sugov_update_next_freq()).
    fn steps(&mut self, domain: usize, next: u64, now: u64) {
        let domain = &mut self.domains[domain];
        if std::mem::replace(&mut domain.now, next) != next {
            domain.stepped = now;
        }
    }

    /// The target of the busy core and of those that share its frequency: the highest that any busy
    /// one of them wants (kernel: sugov_next_freq_shared()).
    fn wanted(&self, core: usize) -> u64 {
        let domain = self.domain(core);
        let busy = domain.cores.iter().filter(|&&c| self.cores[c].busy);
        let most = busy.map(|&c| self.wanted_by(c)).max();
        most.unwrap_or(domain.now)
    }

    fn wanted_by(&self, core: usize) -> u64 {
        let core = &self.cores[core];
        let wanted = match self.governor {
            Governor::Performance | Governor::Hardware => FULL,
            Governor::Schedutil => {
                let used = core.asked.unwrap_or((core.used * FULL as f64) as u64);
                ((used as f64 * HEADROOM) as u64).clamp(self.min, FULL)
            }
        };
        wanted.min(self.boost[self.busy_cores[core.node]])
    }

    /// Sets the core to the highest frequency that any governor allows beside the cores that are
    /// busy.
    pub fn at_best(&mut self, core: usize) {
        let highest = self.boost[self.busy_cores[self.cores[core].node]];
        let at = self.cores[core].domain;
        self.domains[at].now = highest;
    }

    /// ns until the next step of the core, while it is busy, or of the other cores of its node.
    /// None: they are at their target.
    pub fn behind(&self, core: usize, busy: bool, now: u64) -> Option<u64> {
        let node = self.cores[core].node;
        let moved = self.highest[node] != self.boost[self.busy_cores[node]];
        let wants = busy && self.of(core) != self.wanted(core);
        if wants && self.governor == Governor::Schedutil {
            let due = self.domain(core).stepped + self.step;
            return Some(due.saturating_sub(now));
        }
        (moved || wants || busy && self.rises(core)).then_some(self.step)
    }

    /// True if the core's utilisation can grow while it is busy, and its target with it.
    fn rises(&self, core: usize) -> bool {
        let of = &self.cores[core];
        let highest = self.boost[self.busy_cores[of.node]];
        self.governor == Governor::Schedutil && of.asked.is_none() && self.of(core) != highest
    }

    /// True if the domain may take a step. schedutil's are at least so far apart, whatever leads to
    /// them (kernel: sugov_should_update_freq()).
    fn due(&self, domain: usize, now: u64) -> bool {
        self.governor != Governor::Schedutil || now >= self.domains[domain].stepped + self.step
    }

    /// All busy domains take a step towards their targets, if it is due.
    pub fn follow(&mut self, now: u64) {
        for (highest, busy) in self.highest.iter_mut().zip(&self.busy_cores) {
            *highest = self.boost[*busy];
        }
        for at in 0..self.domains.len() {
            if self.domains[at].busy_cores > 0 && self.due(at, now) {
                self.steps(at, self.towards(at), now);
            }
        }
    }

    /// The frequency of the busy domain after a step towards its target.
    fn towards(&self, domain: usize) -> u64 {
        let change = match self.governor {
            Governor::Performance => FULL,
            Governor::Schedutil | Governor::Hardware => self.change,
        };
        let domain = &self.domains[domain];
        let wanted = self.wanted(domain.cores[0]);
        wanted.clamp(domain.now.saturating_sub(change), domain.now + change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of 4 ms, each all the way. Neither a clock of other cores nor a core that becomes busy
    /// again makes one come sooner.
    #[test]
    fn schedutils_steps_are_apart() {
        const MS: u64 = 1_000_000;
        let params = Params::of("e7-8870v4/passive");
        let mut freqs = Freqs::new(&params, &[0; 4], &[0, 1, 2, 3]);
        let half = (FULL / 2) as f64 * HEADROOM;
        freqs.ask(0, FULL / 2);
        freqs.turns(0, true, 10 * MS);
        assert_eq!(freqs.of(0), half as u64);
        freqs.ask(0, FULL);
        freqs.follow(11 * MS);
        assert_eq!(
            (freqs.of(0), freqs.behind(0, true, 11 * MS)),
            (half as u64, Some(3 * MS))
        );
        freqs.follow(14 * MS);
        assert_eq!((freqs.of(0), freqs.behind(0, true, 14 * MS)), (FULL, None));
        freqs.turns(0, false, 15 * MS);
        freqs.ask(0, FULL / 2);
        freqs.turns(0, true, 16 * MS);
        assert_eq!(freqs.of(0), FULL);
    }

    /// The same frequency again delays nothing: what is asked for then is due at once.
    #[test]
    fn a_request_for_the_same_is_no_step() {
        const MS: u64 = 1_000_000;
        let params = Params::of("e7-8870v4/passive");
        let mut freqs = Freqs::new(&params, &[0; 4], &[0, 1, 2, 3]);
        freqs.ask(0, FULL / 2);
        freqs.turns(0, true, 10 * MS);
        freqs.turns(0, false, 20 * MS);
        freqs.turns(0, true, 30 * MS);
        freqs.follow(30 * MS);
        freqs.ask(0, FULL);
        assert_eq!(freqs.behind(0, true, 30 * MS), Some(0));
        freqs.follow(30 * MS);
        assert_eq!(freqs.of(0), FULL);
    }
}
