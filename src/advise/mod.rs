// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost advise`: will this machine be faster? The simulator runs loads on the model of this
//! machine under the kernel's own scheduler and under each preset. The answer is half a page, and
//! names what is not known: how often the model was right about published effects.

mod loads;
mod text;

use crate::doctor;
use crate::machine::host::Host;
use crate::machine::{Machine, picture};
use crate::sim::table::Record;
use crate::sim::{self, Row};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};

pub const EXAMPLES: &str = "\
Examples:
  scx_roost advise                    the usual mix of loads on this machine
  scx_roost advise build game         these loads alone
  scx_roost advise server --params here.tsv
                                      with what 'sim calibrate --output here.tsv' has measured
  sudo scx_roost advise --measure     then also measure, in about a quarter of an hour

Loads: build, desktop, game, server, workers, messages. Also a workload of 'scx_roost sim --list', or
the path of a workload file.";

/// The kernel's own scheduler, as the simulator names it.
const BASE: &str = "eevdf";
const OURS: &str = "roost";
/// Presets that differ. roost comes first: it wins a tie.
const PRESETS: [&str; 6] = [OURS, "mainline", "smove", "patra", "roy-v7", "desnoyers"];
const SEEDS: u64 = 5;
/// Per cent below which a difference does not matter.
const SMALL: f64 = 2.0;

#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// What this machine does: build, desktop, game, server, workers, messages; a workload of sim,
    /// or a file [default: the first five]
    #[arg(value_name = "LOAD")]
    loads: Vec<String>,

    /// Read the machine from DIR instead of /sys
    #[arg(long, value_name = "DIR", conflicts_with = "measure")]
    sysfs: Option<PathBuf>,

    /// Use parameters that `sim calibrate --output FILE` measured
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,

    /// Then measure: ab's suite under the kernel's own scheduler and under the preset; needs root
    #[arg(long, conflicts_with = "json")]
    pub measure: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl AdviseArgs {
    /// `json`: as given before the subcommand.
    pub fn or_json(self, json: bool) -> AdviseArgs {
        let json = json || self.json;
        AdviseArgs { json, ..self }
    }
}

/// How much better than the kernel's own scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Effect {
    pub preset: &'static str,
    pub gain_percent: f64,
    /// Standard error, in the same unit.
    pub error: f64,
}

impl Effect {
    /// More than chance, and enough to matter.
    fn decided(&self) -> bool {
        self.gain_percent.abs() > 2.0 * self.error && self.gain_percent.abs() >= SMALL
    }

    fn worse(&self) -> bool {
        self.decided() && self.gain_percent < 0.0
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    pub load: String,
    /// What counts: "files a second".
    pub unit: String,
    /// One for each preset, in the order of `PRESETS`.
    pub effects: Vec<Effect>,
    /// The command that shows more of it.
    pub command: String,
}

/// What to start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// None: stay with the kernel's own scheduler.
    pub preset: Option<&'static str>,
    /// Over all loads, geometric mean.
    pub gain_percent: f64,
    pub error: f64,
}

#[derive(Debug, Serialize)]
pub struct Advice {
    pub machine: String,
    pub seeds: u64,
    pub loads: Vec<Simulated>,
    pub choice: Choice,
    /// How often the model was right.
    pub record: Record,
    /// None: scx_roost can run here. Otherwise the first reason.
    pub obstacle: Option<String>,
}

/// Simulates. Errors: the machine or a file cannot be read; a load is unknown.
pub fn advise(args: &AdviseArgs) -> Result<Advice> {
    let sysfs = args.sysfs.as_deref().unwrap_or(Path::new("/sys"));
    let machine = Machine::read(sysfs)?;
    let asked = loads::asked(&args.loads, machine.online().len() as u64)?;
    let variants: Vec<&str> = [BASE].into_iter().chain(PRESETS).collect();
    let mut loads = Vec::new();
    for load in asked {
        let plan = sim::plan(&load.words(sysfs, args.params.as_deref(), &variants, SEEDS))?;
        let report = sim::run(&plan)?;
        loads.push(Simulated {
            load: load.name,
            unit: report.unit.trim_end_matches(", ns").to_string(),
            effects: effects(&report.rows),
            command: plan.again,
        });
    }
    let failed = doctor::examine(&Host::new(sysfs));
    let failed = failed.checks.into_iter();
    Ok(Advice {
        machine: picture::summary(&machine),
        seeds: SEEDS,
        choice: choose(&loads),
        loads,
        record: Record::read()?,
        obstacle: failed
            .filter(|check| check.verdict == doctor::Verdict::Fail)
            .map(|check| check.found)
            .next(),
    })
}

/// The first row is the base's.
fn effects(rows: &[Row]) -> Vec<Effect> {
    let base = rows[0].error_percent;
    let effect = |(preset, row): (&&'static str, &Row)| Effect {
        preset,
        gain_percent: row.gain_percent,
        error: (1.0 + row.gain_percent / 100.0) * row.error_percent.hypot(base),
    };
    PRESETS.iter().zip(&rows[1..]).map(effect).collect()
}

/// The preset that is best over all loads and decidedly worse on none; roost, unless another one is
/// decidedly better. Stays with the kernel if nothing is gained.
fn choose(loads: &[Simulated]) -> Choice {
    let over = |at: usize| {
        let of = || loads.iter().map(|load| &load.effects[at]);
        let n = loads.len() as f64;
        let logs = of().map(|e| (e.gain_percent / 100.0).ln_1p()).sum::<f64>();
        let errors = of().map(|e| (e.error / (100.0 + e.gain_percent)).powi(2));
        let mean = logs / n;
        let error = errors.sum::<f64>().sqrt() / n;
        let harms = of().any(Effect::worse);
        Effect {
            preset: PRESETS[at],
            gain_percent: mean.exp_m1() * 100.0,
            error: error * mean.exp() * 100.0,
        }
        .unless(harms)
    };
    let possible: Vec<Effect> = (0..PRESETS.len()).filter_map(over).collect();
    let best = possible
        .iter()
        .max_by(|a, b| a.gain_percent.total_cmp(&b.gain_percent));
    let ours = possible.iter().find(|e| e.preset == OURS);
    let taken = match (ours, best) {
        (Some(ours), Some(best)) => {
            let lead = best.gain_percent - ours.gain_percent;
            match lead > 2.0 * best.error.hypot(ours.error) && lead >= SMALL {
                true => Some(best),
                false => Some(ours),
            }
        }
        (None, best) => best,
        (ours, None) => ours,
    };
    match taken.filter(|e| e.decided() && e.gain_percent > 0.0) {
        Some(effect) => Choice {
            preset: Some(effect.preset),
            gain_percent: effect.gain_percent,
            error: effect.error,
        },
        None => Choice {
            preset: None,
            gain_percent: 0.0,
            error: 0.0,
        },
    }
}

impl Effect {
    fn unless(self, harms: bool) -> Option<Effect> {
        (!harms).then_some(self)
    }
}

/// The command line that measures a preset, in about a quarter of an hour.
pub fn measurement(preset: &str) -> [&str; 8] {
    let [option, suite] = ["--variant", "--suite"];
    [
        "scx_roost",
        "ab",
        suite,
        "placement",
        option,
        BASE,
        option,
        preset,
    ]
}

impl Advice {
    /// The preset to measure and to try.
    pub fn tried(&self) -> &'static str {
        self.choice.preset.unwrap_or(OURS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(gains: [(f64, f64); 6]) -> Simulated {
        let effect = |(preset, (gain_percent, error)): (&&'static str, (f64, f64))| Effect {
            preset,
            gain_percent,
            error,
        };
        Simulated {
            load: "x".into(),
            unit: "files a second".into(),
            effects: PRESETS.iter().zip(gains).map(effect).collect(),
            command: String::new(),
        }
    }

    fn chosen(loads: &[[(f64, f64); 6]]) -> Option<&'static str> {
        let loads: Vec<Simulated> = loads.iter().map(|gains| load(*gains)).collect();
        choose(&loads).preset
    }

    const NOTHING: (f64, f64) = (0.0, 1.0);

    #[test]
    fn nothing_gained_is_the_kernels_own() {
        assert_eq!(chosen(&[[NOTHING; 6]]), None);
        // Within two errors, or too small to matter.
        assert_eq!(chosen(&[[(5.0, 3.0); 6]]), None);
        assert_eq!(chosen(&[[(1.5, 0.1); 6]]), None);
        assert_eq!(chosen(&[[(-9.0, 1.0); 6]]), None);
    }

    #[test]
    fn roost_wins_a_tie_and_loses_to_what_is_decidedly_better() {
        let with = |roy| [(10.0, 1.0), NOTHING, NOTHING, NOTHING, roy, NOTHING];
        assert_eq!(chosen(&[with((10.5, 1.0))]), Some("roost"));
        assert_eq!(chosen(&[with((12.5, 1.5))]), Some("roost"));
        assert_eq!(chosen(&[with((20.0, 1.0))]), Some("roy-v7"));
    }

    #[test]
    fn a_preset_that_harms_one_load_is_not_chosen() {
        let one = [(30.0, 1.0), NOTHING, NOTHING, NOTHING, (8.0, 1.0), NOTHING];
        let harmed = [(-6.0, 1.0), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING];
        assert_eq!(chosen(&[one, harmed]), Some("roy-v7"));
        let doubtful = [(-6.0, 4.0), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING];
        assert_eq!(chosen(&[one, doubtful]), Some("roost"));
    }

    #[test]
    fn the_mean_is_geometric_with_its_error() {
        let gains = [(100.0, 2.0), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING];
        let halved = [(-50.0, 30.0), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING];
        assert_eq!(choose(&[load(gains), load(halved)]).preset, None);
        let choice = choose(&[load(gains), load([NOTHING; 6])]);
        assert!((choice.gain_percent - 41.421).abs() < 0.01, "{choice:?}");
        // sqrt((2/200)^2 + (1/100)^2) / 2, of 141.4
        assert!((choice.error - 1.0).abs() < 0.01, "{choice:?}");
    }
}
