// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost tune`: which features and tunables suit a workload. Rounds look for them and claim nothing: in each, of what is left the better
//! half stays (successive halving, Jamieson and Talwalkar 2016). What is left in the end is put together and compared with the base on runs of
//! its own, by the rule of any comparison: nothing that was looked at before counts there, so that its error is the error of the whole.

use super::analysis;
use super::cpus::Cpus;
use super::result::{Header, Recorded};
use super::stats::pairs::Scale;
use super::stats::plan::Plan;
use super::stats::verdict::{Direction, Judged, Verdict};
use super::variant::{Kind, Scope, Variant, quoted};
use crate::features::{FEATURES, SLICE};
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Of each round: the least of which anything can be said.
const BLOCKS: usize = 6;
/// So many are put together.
const LEFT: usize = 3;
/// The name of the first round.
pub const FIRST: &str = "round-1";
/// That the commands name which are printed.
const ARM: &str = "tuned";

/// What was tried on the way, and what it came to there: below 0 is better than the base. No verdict: many were looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    pub variant: String,
    /// In percent of the base, or in the unit of the metric where a value is 0 or less.
    pub effect: f64,
    pub round: usize,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Tuned {
    pub base: String,
    pub command: Vec<String>,
    pub scope: Scope,
    pub metric: String,
    /// In the last round that they were in, the best first.
    pub tried: Vec<Tried>,
    /// The best, beside the base, on runs of its own. None: nothing was better on the way.
    pub best: Option<(String, Judged)>,
}

/// Result file of a round.
pub fn file(folder: &Path, round: &str) -> PathBuf {
    folder.join(round).with_extension("jsonl")
}

/// Makes the runs of a comparison, or goes on with them; the name is the round's.
pub type Run<'a> = &'a mut dyn FnMut(&Header, &str) -> Result<Recorded>;

/// One change each of what the base has, and that can be for that scope: a feature the other way round, half and twice the slice.
pub fn candidates(base: &str, cpus: u32, scope: Scope) -> Result<Vec<String>> {
    let parsed = Variant::parse(base)?;
    scope.takes(std::slice::from_ref(&parsed))?;
    ensure!(
        parsed.cpus == Cpus::All,
        "{base} has CPUs, which tune does not search: keep the command to them, as by taskset"
    );
    let Kind::Roost(roost) = &parsed.kind else {
        bail!("{base} has no features: give a preset, as --base mainline");
    };
    let features = FEATURES.iter().map(|feature| {
        let on = roost.1.features.has(feature.bit);
        format!("{}={}", feature.name, if on { "off" } else { "on" })
    });
    let slice = SLICE.default.value(cpus);
    let slices = [slice / 2, slice * 2].map(|us| format!("{}={us}", SLICE.name));
    let slices = slices
        .into_iter()
        .filter(|_| !roost.0.set.contains_key(SLICE.name));
    let all = features.chain(slices).map(|c| format!("{base}+{c}"));
    // A sub-switch without its feature is none.
    let can_be = |name: &String| {
        let variant = Variant::parse(name);
        variant.is_ok_and(|v| scope.takes(&[parsed.clone(), v]).is_ok())
    };
    Ok(all.filter(can_be).collect())
}

/// `confirm`: its variants are the base alone, its plan that of the last comparison.
pub fn tune(confirm: &Header, candidates: Vec<String>, run: Run) -> Result<Tuned> {
    ensure!(
        confirm.metrics.len() == 1,
        "one metric says what is best: give --metric once"
    );
    let mut search = Search {
        base: confirm.variants[0].clone(),
        confirm,
        round: 0,
        tried: Vec::new(),
        run,
    };
    let mut left = candidates;
    while left.len() > LEFT {
        let half = left.len().div_ceil(2);
        left = search.better(left)?;
        left.truncate(half);
    }
    let together = search.together(&left);
    let best = match together.len() {
        0 | 1 => together.into_iter().next(),
        _ => search.better(together)?.into_iter().next(),
    };
    let best = best.map(|best| search.confirmed(best)).transpose()?;
    let mut tried = search.tried;
    tried.sort_by(|a, b| b.round.cmp(&a.round).then(a.effect.total_cmp(&b.effect)));
    Ok(Tuned {
        base: confirm.variants[0].clone(),
        command: confirm.command.clone(),
        scope: confirm.scope,
        metric: confirm.metrics[0].metric.clone(),
        tried,
        best,
    })
}

struct Search<'a> {
    base: String,
    confirm: &'a Header,
    round: usize,
    tried: Vec<Tried>,
    run: Run<'a>,
}

impl Search<'_> {
    fn judged(&mut self, variants: &[String], plan: Plan, name: &str) -> Result<Vec<Judged>> {
        let mut header = self.confirm.clone();
        header.variants.extend_from_slice(variants);
        header.rule.plan = plan;
        let recorded = (self.run)(&header, name)?;
        analysis::judged(&recorded.header, &recorded.runs)
    }

    /// Those that did better than the base, and acted; the best first.
    fn better(&mut self, variants: Vec<String>) -> Result<Vec<String>> {
        self.round += 1;
        let name = format!("round-{}", self.round);
        let judged = self.judged(&variants, Plan::Fixed(BLOCKS), &name)?;
        let direction = self.confirm.metrics[0].better;
        let acted = |(_, judged): &(String, Judged)| judged.verdict != Verdict::NotExercised;
        let mut effects: Vec<(String, f64)> = variants
            .into_iter()
            .zip(judged)
            .filter(acted)
            .map(|(variant, judged)| (variant, effect(&judged, direction)))
            .collect();
        effects.sort_by(|a, b| a.1.total_cmp(&b.1));
        for (variant, effect) in &effects {
            self.tried.retain(|t| t.variant != *variant);
            self.tried.push(Tried {
                variant: variant.clone(),
                effect: *effect,
                round: self.round,
            });
        }
        effects.retain(|(_, effect)| *effect < 0.0);
        Ok(effects.into_iter().map(|(variant, _)| variant).collect())
    }

    /// The first, the first two, and so on, as far as they go together.
    fn together(&self, left: &[String]) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for variant in left {
            let change = variant.strip_prefix(&self.base).unwrap_or_default();
            let before = all.last().unwrap_or(&self.base);
            let next = format!("{before}{change}");
            all.extend(Variant::parse(&next).is_ok().then_some(next));
        }
        all
    }

    fn confirmed(&mut self, best: String) -> Result<(String, Judged)> {
        let plan = self.confirm.rule.plan;
        let judged = self.judged(std::slice::from_ref(&best), plan, "confirm")?;
        let judged = judged.into_iter().next().context("it was compared")?;
        Ok((best, judged))
    }
}

/// Below 0 is better.
fn effect(judged: &Judged, better: Direction) -> f64 {
    let value = match judged.scale {
        Scale::Ratio => 100.0 * (judged.shift.value - 1.0),
        Scale::Difference => judged.shift.value,
    };
    match better {
        Direction::Lower => value,
        Direction::Higher => -value,
    }
}

impl Tuned {
    /// The best is better, and that is more than chance.
    pub fn found(&self) -> Option<&str> {
        let best = self.best.as_ref();
        let best = best.filter(|(_, judged)| judged.verdict == Verdict::Better);
        best.map(|(variant, _)| variant.as_str())
    }

    /// What makes it last, for whom it was measured: the machine, or the command alone.
    pub fn commands(&self) -> Result<Vec<String>> {
        let Some(found) = self.found() else {
            return Ok(Vec::new());
        };
        let Kind::Roost(roost) = Variant::parse(found)?.kind else {
            bail!("{found} is no variant of scx_roost");
        };
        let change = &roost.0;
        let preset = change.preset.as_deref().unwrap_or_default();
        let mut switches = String::new();
        for (option, names) in [("enable", &change.enable), ("disable", &change.disable)] {
            names
                .iter()
                .for_each(|n| switches += &format!(" --{option} {n}"));
        }
        let tunables = |option: fn(&str, &str) -> String| -> String {
            let all = change.set.iter();
            all.map(|(name, value)| option(name, value.as_str().unwrap_or_default()))
                .collect()
        };
        if self.scope == Scope::Machine {
            let tunables = tunables(|name, value| format!(" --{name} {value}"));
            return Ok(vec![format!(
                "scx_roost --preset {preset}{switches}{tunables}"
            )]);
        }
        let tunables = tunables(|name, value| format!(" --set {name}={value}"));
        let set = format!("scx_roost ctl set --arm {ARM}{switches}{tunables}");
        let program = self.command[0].rsplit('/').next().unwrap_or_default();
        let words: Vec<String> = self.command.iter().map(|w| quoted(w)).collect();
        // As the kernel cuts names.
        let comm: String = program.chars().take(15).collect();
        Ok(vec![
            format!("scx_roost ctl arms add {ARM} --preset {preset}"),
            set,
            format!(
                "scx_roost ctl rules add --comm {} --arm {ARM}",
                quoted(&comm)
            ),
            format!("scx_roost exec --arm {ARM} -- {}", words.join(" ")),
        ])
    }

    pub fn text(&self) -> Result<String> {
        let mut text = format!(
            "Changes of {}, by {} of '{}'; less than 0 is better, in % of {} (in its unit where a value is 0 or less).\n\
             Looked at on the way, which proves nothing:\n",
            self.base,
            self.metric,
            self.command.join(" "),
            self.base
        );
        for tried in &self.tried {
            let change = tried.variant.strip_prefix(&self.base);
            let change = change.unwrap_or(&tried.variant).trim_start_matches('+');
            text += &format!("  {:8.2}  {change} (round {})\n", tried.effect, tried.round);
        }
        let Some((best, judged)) = &self.best else {
            return Ok(text + &format!("Nothing did better than {}.\n", self.base));
        };
        text += &format!(
            "Compared anew, {} blocks: {best} is {}: {}, p {:.4}\n",
            judged.blocks,
            super::report::verdict_name(judged.verdict),
            super::report::effect(judged),
            judged.p_adjusted
        );
        let commands = self.commands()?;
        if commands.is_empty() {
            return Ok(text + &format!("So stay with {}.\n", self.base));
        }
        text += match self.scope {
            Scope::Machine => "To have it from now on, for all tasks, as it was measured:\n",
            Scope::Workload => {
                "To have it from now on, for the process of that name (rules) or for all that the command starts (exec):\n"
            }
        };
        Ok(text
            + &commands
                .iter()
                .map(|c| format!("  {c}\n"))
                .collect::<String>())
    }
}
