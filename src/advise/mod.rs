// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost advise`: will this machine be faster? The simulator runs loads on the model of this
//! machine under the kernel's own scheduler and under each preset. The answer is half a page, and
//! names what is not known: how often the model was right about published effects.

mod loads;
mod text;

use crate::doctor;
use crate::machine::host::Host;
use crate::machine::{picture, read_advised};
use crate::sim::table::{Record, change};
use crate::sim::{self, Report, Row};
use crate::util::distributions::t_quantile;
use crate::util::stderr::say;
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
const SEEDS: u64 = 8;
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
    /// With what was given before the subcommand.
    pub fn with(self, sysfs: Option<PathBuf>, json: bool) -> AdviseArgs {
        let (sysfs, json) = (self.sysfs.or(sysfs), json || self.json);
        AdviseArgs {
            sysfs,
            json,
            ..self
        }
    }
}

/// How much better than the kernel's own scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Effect {
    pub preset: &'static str,
    /// None: the runs gave no number.
    pub gain_percent: Option<f64>,
    /// Half of the interval at 95 % for all presets together, in the same unit.
    pub margin: f64,
}

impl Effect {
    /// `error`: the standard error.
    fn new(preset: &'static str, gain: f64, error: f64) -> Effect {
        let finite = gain.is_finite() && error.is_finite();
        // Bonferroni: the best of all presets is sought.
        let t = t_quantile(SEEDS as usize - 1, 1.0 - 0.025 / PRESETS.len() as f64);
        Effect {
            preset,
            gain_percent: finite.then_some(gain),
            margin: if finite {
                t.unwrap_or(f64::INFINITY) * error
            } else {
                0.0
            },
        }
    }

    /// The gain, if it is more than chance, and enough to matter.
    fn decided(&self) -> Option<f64> {
        let gain = self.gain_percent?;
        (gain.abs() > self.margin && gain.abs() >= SMALL).then_some(gain)
    }

    fn worse(&self) -> bool {
        self.decided().is_some_and(|gain| gain < 0.0)
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    pub load: String,
    /// What counts: "files a second".
    pub unit: String,
    /// The profile that is meant for such a load; it was not simulated.
    pub profile: Option<&'static str>,
    /// One for each preset, in the order of `PRESETS`.
    pub effects: Vec<Effect>,
    /// The command that shows more of it.
    pub command: String,
}

/// What to start: the effect over all loads, as a geometric mean. None: stay with the kernel's own
/// scheduler.
pub type Choice = Option<Effect>;

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
    let machine = read_advised(sysfs)?;
    let asked = loads::asked(&args.loads, machine.online().len() as u64)?;
    let variants: Vec<&str> = [BASE].into_iter().chain(PRESETS).collect();
    // All of them first: what is wrong with one is said before any runs.
    let plans = asked.into_iter().map(|load| {
        let words = load.words(sysfs, args.params.as_deref(), &variants, SEEDS);
        Ok((load, sim::plan(&words)?))
    });
    let plans: Vec<_> = plans.collect::<Result<_>>()?;
    let (mut loads, all) = (Vec::new(), plans.len());
    for (at, (load, plan)) in plans.into_iter().enumerate() {
        say!("simulating '{}', {} of {all}", load.name, at + 1);
        let report = sim::run(&plan)?;
        loads.push(Simulated {
            load: load.name,
            unit: counts(&report),
            profile: load.profile,
            effects: effects(&report),
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

/// What counts of a load, in words.
fn counts(report: &Report) -> String {
    match report.unit.strip_prefix("median of ") {
        Some(what) => format!("99 % of {} within", what.trim_end_matches(", ns")),
        None => report.unit.trim_end_matches(", ns").to_string(),
    }
}

/// The first row is the base's. Where the load measures latencies, the slowest hundredth counts.
/// Runs with the same seed are a pair.
fn effects(report: &Report) -> Vec<Effect> {
    let (base, others) = report.rows.split_first().expect("a base and the presets");
    let effect = |(preset, row): (&&'static str, &Row)| {
        let change = match (base.p99.is_empty(), report.more_is_better) {
            (false, _) => change(&row.p99, &base.p99),
            (_, true) => change(&base.results, &row.results),
            (_, false) => change(&row.results, &base.results),
        };
        Effect::new(preset, change.value, change.error.unwrap_or(f64::NAN))
    };
    PRESETS.iter().zip(others).map(effect).collect()
}

/// The preset that is decidedly better over all loads and decidedly worse on none: roost, unless
/// another one is decidedly better than that.
fn choose(loads: &[Simulated]) -> Choice {
    let harms = |at: usize| loads.iter().any(|load| load.effects[at].worse());
    let possible = (0..PRESETS.len()).filter(|at| !harms(*at));
    let possible: Vec<Effect> = possible.filter_map(|at| over(loads, at)).collect();
    let best = possible.iter().max_by(|a, b| {
        a.gain_percent
            .unwrap_or(0.0)
            .total_cmp(&b.gain_percent.unwrap_or(0.0))
    })?;
    let ours = possible.iter().find(|e| e.preset == OURS);
    // Both margins hold an error of the base, so this asks for more than it had to.
    let leads = |ours: &Effect| {
        let lead = best.gain_percent.unwrap_or(0.0) - ours.gain_percent.unwrap_or(0.0);
        lead > best.margin.hypot(ours.margin) && lead >= SMALL
    };
    let taken = ours.filter(|ours| !leads(ours)).unwrap_or(best);
    (taken.decided()? > 0.0).then(|| taken.clone())
}

/// The effect of a preset over all loads. None: a load gave no number.
fn over(loads: &[Simulated], at: usize) -> Option<Effect> {
    let n = loads.len() as f64;
    let (mut logs, mut squares) = (0.0, 0.0);
    for load in loads {
        let effect = &load.effects[at];
        let ratio = 1.0 + effect.gain_percent? / 100.0;
        logs += ratio.ln();
        squares += (effect.margin / 100.0 / ratio).powi(2);
    }
    let mean = (logs / n).exp();
    mean.is_finite().then(|| Effect {
        preset: PRESETS[at],
        gain_percent: Some((mean - 1.0) * 100.0),
        margin: squares.sqrt() / n * mean * 100.0,
    })
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
        self.choice.as_ref().map_or(OURS, |effect| effect.preset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Gains = [(f64, f64); 6];

    /// Gains and their margins.
    fn load(gains: Gains) -> Simulated {
        let effect = |(preset, (gain, margin)): (&&'static str, (f64, f64))| Effect {
            preset,
            gain_percent: gain.is_finite().then_some(gain),
            margin,
        };
        Simulated {
            load: "x".into(),
            unit: "files a second".into(),
            profile: None,
            effects: PRESETS.iter().zip(gains).map(effect).collect(),
            command: String::new(),
        }
    }

    fn chosen(loads: &[Gains]) -> Option<&'static str> {
        let loads: Vec<Simulated> = loads.iter().map(|gains| load(*gains)).collect();
        choose(&loads).map(|effect| effect.preset)
    }

    const NOTHING: (f64, f64) = (0.0, 2.0);

    #[test]
    fn nothing_gained_is_the_kernels_own() {
        assert_eq!(chosen(&[[NOTHING; 6]]), None);
        // Within the margin, or too small to matter.
        assert_eq!(chosen(&[[(5.0, 6.0); 6]]), None);
        assert_eq!(chosen(&[[(1.5, 0.1); 6]]), None);
        assert_eq!(chosen(&[[(-9.0, 2.0); 6]]), None);
    }

    #[test]
    fn roost_wins_a_tie_and_loses_to_what_is_decidedly_better() {
        let with = |roy| [(10.0, 2.0), NOTHING, NOTHING, NOTHING, roy, NOTHING];
        assert_eq!(chosen(&[with((10.5, 2.0))]), Some("roost"));
        assert_eq!(chosen(&[with((12.5, 3.0))]), Some("roost"));
        assert_eq!(chosen(&[with((20.0, 2.0))]), Some("roy-v7"));
    }

    #[test]
    fn a_preset_that_harms_one_load_is_not_chosen() {
        let one = [(30.0, 2.0), NOTHING, NOTHING, NOTHING, (8.0, 2.0), NOTHING];
        let harmed = [(-6.0, 2.0), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING];
        assert_eq!(chosen(&[one, harmed]), Some("roy-v7"));
        let doubtful = [(-6.0, 8.0), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING];
        assert_eq!(chosen(&[one, doubtful]), Some("roost"));
    }

    #[test]
    fn a_preset_without_a_number_is_not_chosen_and_hides_no_other() {
        let nan = (f64::NAN, 0.0);
        assert_eq!(
            chosen(&[[nan, nan, nan, nan, (9.0, 2.0), nan]]),
            Some("roy-v7")
        );
        assert_eq!(chosen(&[[nan; 6]]), None);
        let effect = Effect::new("roost", f64::INFINITY, 1.0);
        assert_eq!((effect.gain_percent, effect.decided()), (None, None));
        assert_eq!(Effect::new("roost", 9.0, f64::NAN).gain_percent, None);
    }

    #[test]
    fn the_mean_is_geometric_with_its_margin() {
        let gains = [(100.0, 2.0), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING];
        let choice = choose(&[load(gains), load([(0.0, 1.0); 6])]).unwrap();
        assert!(
            (choice.gain_percent.unwrap() - 41.421).abs() < 0.01,
            "{choice:?}"
        );
        // sqrt((2/200)^2 + (1/100)^2) / 2, of 141.4
        assert!((choice.margin - 1.0).abs() < 0.01, "{choice:?}");
    }

    /// Student's t of 7 degrees of freedom at 1 - 0.025 / 6.
    #[test]
    fn a_margin_is_of_all_presets_together() {
        let effect = Effect::new("roost", 10.0, 1.0);
        assert!((effect.margin - 3.6358).abs() < 0.001, "{}", effect.margin);
    }
}
