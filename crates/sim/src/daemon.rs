// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon does while a scheduler runs: it looks at frequencies and idle periods, learns
//! which frequencies are low, and publishes. It is the same code (`model`, `publish`), over the
//! policy's memory.

use scx_roost::bpf::intf::CAPACITY_SCALE;
use scx_roost::machine::host::Host;
use scx_roost::machine::{Facts, FreqSource, Policies};
use scx_roost::model::FreqRule;
use scx_roost::native::Kernel;
use scx_roost::policy::config::Config;
use scx_roost::policy::features::bits;
use scx_roost::policy::settings::Settings;
use scx_roost::publish::{Frequencies, Scans};
use std::path::Path;

pub struct Daemon {
    /// None: no move is delayed.
    frequencies: Option<Frequencies>,
    rule: FreqRule,
    /// None: no scan is bounded.
    scans: Option<Scans>,
    /// Whether any arrival ends an idle period, or only a wakeup.
    every: bool,
    /// The time between two looks, ns.
    pub period: u64,
}

impl Daemon {
    pub fn new(settings: &Settings, facts: &Facts, policies: &Policies) -> Daemon {
        let period = Config::default().freq_period;
        let rule = settings.freq_rule();
        // Ticks report frequencies, so no file is read.
        let nowhere = Host::new(Path::new("/"));
        let frequencies = || {
            let source = FreqSource::Cpuperf;
            Frequencies::new(&nowhere, &source, policies, period).learning_at_once()
        };
        let bounded = bits::avg_idle.with(bits::avg_idle_scan);
        let scans = || Scans::new(&facts.llcs, &facts.llc_cpus, period);
        Daemon {
            frequencies: (rule != FreqRule::Off).then(frequencies),
            rule,
            scans: settings.features.has(bounded).then(scans),
            every: settings.features.has(bits::avg_idle_every),
            period: period.as_nanos() as u64,
        }
    }

    /// True if the settings need the daemon's looks.
    pub fn wanted(&self) -> bool {
        self.frequencies.is_some() || self.scans.is_some()
    }

    pub fn look(&mut self, kernel: &mut Kernel) {
        let cpus = 0..kernel.world().nr_cpus();
        if let Some(scans) = &self.scans {
            let mean = |cpu: usize| {
                let state = kernel.world().cpu(cpu);
                match self.every {
                    true => state.idle_every.mean,
                    false => state.idle_wakeup.mean,
                }
            };
            let means: Vec<u64> = cpus.clone().map(mean).collect();
            kernel.set_scans(&scans.worth(&means), scans.counts_ms);
        }
        if let Some(frequencies) = &mut self.frequencies {
            let speed = |cpu| CAPACITY_SCALE.saturating_sub(kernel.world().cpu(cpu).slow);
            let speeds: Vec<u32> = cpus.map(speed).collect();
            let sample = frequencies.sample(&speeds, None);
            if sample.is_some_and(|sample| sample.learnt) {
                let rules = std::array::from_fn(|_| self.rule);
                frequencies.fill(kernel.world_mut().policy_mut(), &rules);
            }
        }
    }
}
