// SPDX-License-Identifier: GPL-2.0-only
//! Phrases that all forms of a report share.

use super::{MetricReport, Report};
use crate::ab::cpus::Cpus;
use crate::ab::metric::unit_of;
use crate::ab::result::{FORMAT, Header};
use crate::ab::stats::Interval;
use crate::ab::stats::plan::Plan;
use crate::ab::stats::turns::Scale;
use crate::ab::stats::verdict::{Against, Direction, Judged, Verdict};
use crate::ab::variant::Variant;
use crate::machine::host::release_of;
use crate::machine::{cpulist_text, parse_cpulist};
use crate::policy::fair;
use crate::util::escape;
use crate::util::text::count;
use crate::util::wall_clock::date;

pub fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotExercised => "not exercised",
    }
}

pub fn direction_text(better: Direction) -> &'static str {
    match better {
        Direction::Lower => "lower is better",
        Direction::Higher => "higher is better",
    }
}

/// At most four significant digits; from 10,000 to 10 million more, below 0.1 fewer. No zeros at
/// the end of a fraction: they would look measured.
pub fn number(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        _ if value == 0.0 => return "0".to_string(),
        s if !(1e-4..1e7).contains(&s) => return format!("{value:.3e}"),
        s if s >= 1000.0 => 0,
        s if s >= 100.0 => 1,
        s if s >= 10.0 => 2,
        s if s >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// A metric or counter with its unit.
pub fn named(name: &str) -> String {
    match unit_of(name) {
        "" => name.to_string(),
        unit => format!("{name}, {unit}"),
    }
}

/// A number with its unit.
pub fn with_unit(value: f64, unit: &str) -> String {
    format!("{} {unit}", number(value)).trim_end().to_string()
}

/// The median of a metric or counter; '-' if there is none.
pub fn median_text(median: Option<f64>) -> String {
    median.map_or("-".to_string(), number)
}

/// A part of 1 as a percentage with at most two decimals. It is 100 only if it is all.
pub fn percent(part: f64) -> String {
    let shown = (part * 1e4).round() / 1e2;
    let almost = part < 1.0 && shown == 100.0;
    format!("{} %", if almost { 99.99 } else { shown })
}

/// The coefficient of variation; '-' if there is none.
pub fn cv_text(cv: Option<f64>) -> String {
    cv.map_or("-".to_string(), |cv| format!("{:.1} %", 100.0 * cv))
}

/// Of percents.
const DECIMALS_MAX: usize = 4;

/// Values on the scale of a comparison, with a sign and as many decimals as their interval allows:
/// percent of the first variant, or numbers in the metric's unit.
struct Signed<'a> {
    scale: Scale,
    unit: &'a str,
    decimals: usize,
}

impl Signed<'_> {
    fn new(scale: Scale, unit: &str, around: f64) -> Signed<'_> {
        let percents = 100.0 * around;
        let decimals = match percents {
            p if p >= 20.0 => 0,
            p if p >= 1.0 => 1,
            _ => 2,
        };
        Signed {
            scale,
            unit,
            decimals,
        }
    }

    /// Without its unit.
    fn bare(&self, value: f64) -> String {
        let decimals = self.decimals;
        match self.scale {
            Scale::Ratio => format!("{:+.decimals$}", 100.0 * (value - 1.0)),
            Scale::Difference if value > 0.0 => format!("+{}", number(value)),
            Scale::Difference => number(value),
        }
    }

    fn unit(&self) -> String {
        match (self.scale, self.unit) {
            (Scale::Ratio, _) => " %".to_string(),
            (Scale::Difference, "") => String::new(),
            (Scale::Difference, unit) => format!(" {unit}"),
        }
    }

    fn range(&self, range: Interval) -> String {
        format!("{} to {}", self.bare(range.low), self.bare(range.high))
    }
}

fn signed<'a>(judged: &Judged, unit: &'a str) -> Signed<'a> {
    let shift = judged.shift.unwrap_or(1.0);
    let around = judged
        .interval
        .map_or((shift - 1.0).abs(), |i| i.half_width());
    let mut signed = Signed::new(judged.scale, unit, around);
    // An end beside "no change" or the margin is shown on its side of it.
    let ends = judged.interval.map_or(vec![], |i| vec![i.low, i.high]);
    let borders = [1.0, judged.margin.low, judged.margin.high];
    let hidden = |signed: &Signed| {
        ends.iter().any(|end| {
            let shown = |value: f64| {
                signed
                    .bare(value)
                    .trim_start_matches(['+', '-'])
                    .to_string()
            };
            borders
                .iter()
                .any(|border| end != border && shown(*end) == shown(*border))
        })
    };
    while judged.scale == Scale::Ratio && signed.decimals < DECIMALS_MAX && hidden(&signed) {
        signed.decimals += 1;
    }
    signed
}

/// The shift: '-3.1 %', and its interval with its level: '95 % interval -4.0 to -2.2 %'.
pub fn shift(judged: &Judged, unit: &str) -> String {
    let signed = signed(judged, unit);
    let value = |shift: f64| signed.bare(shift) + &signed.unit();
    let value = judged.shift.map_or("nothing to compare".to_string(), value);
    match judged.interval.zip(judged.level) {
        Some((interval, level)) => format!(
            "{value}, {} interval {}{}",
            percent(level),
            signed.range(interval),
            signed.unit()
        ),
        None => value,
    }
}

/// The result of a comparison in a line, for people who read nothing else.
pub fn headline(base: &str, variant: &str, metric: &MetricReport, judged: &Judged) -> String {
    let (name, unit) = (&metric.metric, metric.unit);
    let p = match judged.level {
        Some(_) if judged.p_adjusted < 0.0001 => ", p below 0.0001".to_string(),
        Some(_) => format!(", p {:.4}", judged.p_adjusted),
        None => String::new(),
    };
    let why = match remark(judged, unit).as_str() {
        "" => String::new(),
        why => format!("; {why}"),
    };
    format!(
        "{variant} against {base}: {}, {name} {}{p}{why}",
        verdict_name(judged.verdict),
        shift(judged, unit)
    )
}

/// Runs whose difference is known only within this part say nothing about schedulers.
const USELESS: f64 = 0.5;

/// What the verdict does not say.
fn remark(judged: &Judged, unit: &str) -> String {
    let margin = margin(judged, unit);
    let wide = |i: Interval| judged.scale == Scale::Ratio && i.half_width() > USELESS;
    match (judged.verdict, judged.against) {
        (Verdict::NotExercised, _) => {
            "the variants' difference took effect in at most half of the runs".to_string()
        }
        (Verdict::Equivalent, _) => format!(
            "within {margin}; a run in {} or more may be slow without being seen",
            (judged.rounds / 3).max(1)
        ),
        (Verdict::Better | Verdict::Worse, _) if judged.within_margin => {
            format!("by less than {margin}")
        }
        (Verdict::Better | Verdict::Worse, Some(Against::Steps)) => {
            "the steps of this metric are as wide: by how much is not known".to_string()
        }
        (Verdict::Better | Verdict::Worse, _) => String::new(),
        (Verdict::Inconclusive, Some(against)) => speaks_against(against, &margin),
        (Verdict::Inconclusive, None) if judged.rounds == 0 => {
            "no verdict yet: the plan is not complete".to_string()
        }
        (Verdict::Inconclusive, None) if judged.interval.is_some_and(wide) => {
            "runs are too short or differ too much: make them a second or longer".to_string()
        }
        (Verdict::Inconclusive, None) if judged.interval.is_none() => {
            "too few runs for a verdict".to_string()
        }
        (Verdict::Inconclusive, None) => {
            "the interval has 'no change' in it, and is not within the margin".to_string()
        }
    }
}

fn speaks_against(against: Against, margin: &str) -> String {
    match against {
        Against::Failures => {
            "failed runs are not equally many: counted as the worst, they leave no verdict"
                .to_string()
        }
        Against::Steps => format!(
            "within {margin}, but the steps of this metric are as wide: measure it finer, or make runs longer"
        ),
        Against::Mean => {
            format!("most runs are within {margin}, the mean may not be: some are far off")
        }
    }
}

/// The margin in words.
fn margin(judged: &Judged, unit: &str) -> String {
    match judged.scale {
        Scale::Ratio => percent(judged.margin.high - 1.0),
        Scale::Difference => with_unit(judged.margin.high, unit),
    }
}

/// The command in one line.
pub fn command(header: &Header) -> String {
    escape::line(&header.command.join(" ")).into_owned()
}

/// What was done, in one line; `taken` is the next line.
pub fn summary(report: &Report) -> String {
    let plan = report.plan;
    format!(
        "{} of each of {} variants on average, on {}{}; seed {}, margin {} %",
        count(report.rounds, "run"),
        plan.variants.len(),
        plan.scope.text(),
        kept_to(plan),
        plan.seed,
        (plan.rule.margin * 1e8).round() / 1e6
    )
}

/// When, where and by which plan the runs were made, in one line.
pub fn taken(plan: &Header) -> String {
    let planned = match plan.rule.plan {
        _ if plan.format != FORMAT => "in blocks".to_string(),
        Plan::Fixed(rounds) => format!("-n {rounds}"),
        Plan::Auto(most) => format!("-n auto:{most}"),
    };
    let warmups = match plan.warmups {
        0 => "no warm-ups".to_string(),
        1 => "1 warm-up of each variant".to_string(),
        n => format!("{n} warm-ups of each variant"),
    };
    let known = |name: &str| plan.host.get(name);
    let cpus = known("cpus").and_then(|list| parse_cpulist(list).ok());
    // Across boots each variant names its kernel.
    let kernel = known("kernel").filter(|_| plan.boots.is_none());
    let host = [
        kernel.map(|release| {
            let numbers = release_of(release).map(|(numbers, _)| numbers);
            let rules = fair::of_release(numbers).name;
            format!("kernel {release} (its rules: {rules})")
        }),
        known("cpu").cloned(),
        cpus.map(|cpus| format!("{} CPUs", cpus.len())),
    ];
    let host: String = host
        .into_iter()
        .flatten()
        .map(|f| format!(", {f}"))
        .collect();
    let (began, version) = (date(plan.began), &plan.version);
    let boots = plan.boots.map_or(String::new(), |runs| {
        format!(", each a boot with {} that count", count(runs, "run"))
    });
    format!(
        "{began}, scx_roost {version}{host}; {planned}{boots}, {warmups}{}",
        plan.hooks.text()
    )
}

/// The CPUs of the command, for variants that restrict it.
fn kept_to(plan: &Header) -> String {
    let cores = plan.host.get("cores");
    let cpus = |variant: Variant| match variant.cpus {
        Cpus::All => None,
        Cpus::Cores => Some((
            variant.name,
            cores.cloned().unwrap_or("one of each core".to_string()),
        )),
        Cpus::List(cpus) => Some((variant.name, cpulist_text(&cpus))),
    };
    let variants = plan.variants().into_iter().flatten().filter_map(cpus);
    let each = variants.map(|(name, cpus)| format!(", {name} on CPUs {cpus}"));
    each.collect()
}
