// SPDX-License-Identifier: GPL-2.0-only
//! Phrases that all forms of a report share.

use super::Report;
use crate::ab::cpus::Cpus;
use crate::ab::result::Header;
use crate::ab::stats::Interval;
use crate::ab::stats::bootstrap::MIN_BLOCKS;
use crate::ab::stats::pairs::Scale;
use crate::ab::stats::plan::Plan;
use crate::ab::stats::verdict::{Direction, Estimate, Judged, Verdict};
use crate::ab::variant::Variant;
use crate::machine::{cpulist_text, parse_cpulist};

/// A note, if one of the verdicts needs it.
pub fn note(verdicts: impl IntoIterator<Item = Verdict>) -> Option<&'static str> {
    let mut verdicts = verdicts.into_iter();
    verdicts.any(|v| v == Verdict::Equivalent).then_some(
        "'equivalent' is decided for each comparison by itself, without a correction for their number",
    )
}

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

/// Four significant digits; from 10,000 to 10 million more, from 0.1 down to 0.0001 fewer.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value == 0.0 => "0".to_string(),
        s if !(1e-4..1e7).contains(&s) => format!("{value:.3e}"),
        s if s >= 1000.0 => format!("{value:.0}"),
        s if s >= 100.0 => format!("{value:.1}"),
        s if s >= 10.0 => format!("{value:.2}"),
        s if s >= 1.0 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// The median of a metric or counter; '-' if there is none.
pub fn median_text(median: Option<f64>) -> String {
    median.map_or("-".to_string(), number)
}

/// The median effect in words: '0.967 (0.951 to 0.983)'.
pub fn effect(judged: &Judged) -> String {
    estimate(judged, &judged.median)
}

/// The Hodges-Lehmann shift in words.
pub fn shift(judged: &Judged) -> String {
    match judged.level {
        Some(_) => estimate(judged, &judged.shift),
        None => String::new(),
    }
}

/// The level of the intervals, and the number of blocks if these are not all.
pub fn level(judged: &Judged, blocks: usize) -> String {
    let level = judged.level.map_or(String::new(), percent);
    match judged.blocks {
        0 => level,
        n if n == blocks => level,
        n => format!("{level}, {n} blocks"),
    }
}

/// A part of 1 as a percentage with at most two decimals.
fn percent(part: f64) -> String {
    format!("{} %", (part * 1e4).round() / 1e2)
}

fn estimate(judged: &Judged, estimate: &Estimate) -> String {
    let value = on_scale(judged.scale, estimate.value);
    match estimate.interval {
        Some(i) => format!("{value} ({})", range(judged.scale, i)),
        None => value,
    }
}

fn on_scale(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Ratio => format!("{value:.3}"),
        Scale::Difference if value > 0.0 => format!("+{}", number(value)),
        Scale::Difference => number(value),
    }
}

fn range(scale: Scale, range: Interval) -> String {
    let [low, high] = [range.low, range.high].map(|value| on_scale(scale, value));
    format!("{low} to {high}")
}

/// The least effect that this many blocks would have found. Empty: they could find none.
pub fn least_effect(judged: &Judged, unit: &str) -> String {
    let in_percent = |percent: f64| match percent {
        p if p >= 1.0 => format!("{p:.1} %"),
        p => format!("{p:.2} %"),
    };
    let least = judged.least_effect.map(|least| match judged.scale {
        Scale::Ratio => in_percent(100.0 * least),
        Scale::Difference => format!("{} {unit}", number(least)),
    });
    least.unwrap_or_default().trim_end().to_string()
}

/// Columns about a comparison; `cells` has their contents.
pub const COLUMNS: [&str; 6] = [
    "of the first",
    "shift",
    "at",
    "p",
    "least effect",
    "verdict",
];

/// `blocks`: of the whole report. None: the others are compared with this variant.
pub fn cells(judged: Option<&Judged>, unit: &str, blocks: usize) -> [String; COLUMNS.len()] {
    let Some(judged) = judged else {
        return Default::default();
    };
    [
        effect(judged),
        shift(judged),
        level(judged, blocks),
        format!("{:.4}", judged.p_adjusted),
        least_effect(judged, unit),
        verdict(judged),
    ]
}

/// The verdict with a remark.
pub fn verdict(judged: &Judged) -> String {
    let name = verdict_name(judged.verdict);
    match remark(judged).as_str() {
        "" => name.to_string(),
        remark => format!("{name}: {remark}"),
    }
}

/// Why it is this verdict, or which effect would have been found.
pub fn remark(judged: &Judged) -> String {
    match (judged.verdict, judged.blocks) {
        (Verdict::Inconclusive, ..) if judged.same_bucket => {
            "same bucket: the steps of this metric are wider than the margin".to_string()
        }
        (Verdict::Inconclusive, 0) => "no verdict yet: the plan is not complete".to_string(),
        (Verdict::Inconclusive, n) => match least_effect(judged, "").as_str() {
            "" if n >= MIN_BLOCKS => format!("{n} blocks are too few to find a difference"),
            "" => format!("{n} blocks are too few for any verdict"),
            least => format!("{n} blocks can find {least} or more"),
        },
        (Verdict::NotExercised, ..) => {
            "the variants' difference took effect in at most half of the runs".to_string()
        }
        (Verdict::Equivalent, ..) => equivalence(judged),
        _ => String::new(),
    }
}

/// The interval that led to `equivalent`, which is not the one shown beside it.
fn equivalence(judged: &Judged) -> String {
    let differs = match judged.p_adjusted <= 0.05 {
        true => "a difference that is smaller than the margin; ",
        false => "",
    };
    judged.equivalence.map_or(String::new(), |e| {
        let [interval, margin] = [e.interval, e.margin].map(|i| range(judged.scale, i));
        let level = percent(e.level);
        format!("{differs}{level} interval of the shift {interval}, within {margin}")
    })
}

/// The command in one line.
pub fn command(header: &Header) -> String {
    let workload = header.workload.as_ref();
    let workload = workload.map_or(String::new(), |name| format!("{name}: "));
    workload + &header.command.join(" ")
}

/// What was done, in one line; `taken` is the next line.
pub fn summary(report: &Report) -> String {
    let plan = report.plan;
    let (mirrored, scope) = match &plan.sides {
        Some(sides) => ("", sides.text()),
        None if plan.mirrored => ("mirrored ", format!("on {}", plan.scope.text())),
        None => ("", format!("on {}", plan.scope.text())),
    };
    format!(
        "{} {mirrored}blocks of {} variants, {scope}{}; seed {}, margin {} %",
        report.blocks,
        plan.variants.len(),
        kept_to(plan),
        plan.seed,
        (plan.rule.margin * 1e8).round() / 1e6
    )
}

/// When, where and by which plan the runs were made, in one line.
pub fn taken(plan: &Header) -> String {
    let blocks = match plan.rule.plan {
        Plan::Fixed(blocks) => format!("{blocks} blocks planned"),
        Plan::Auto(most) => format!("auto, {most} blocks at most"),
    };
    let warmups = match plan.warmups {
        0 => "no warm-ups".to_string(),
        1 => "1 warm-up of each variant".to_string(),
        n => format!("{n} warm-ups of each variant"),
    };
    let known = |name: &str| plan.host.get(name);
    let cpus = known("cpus").and_then(|list| parse_cpulist(list).ok());
    let host = [
        known("kernel").map(|release| format!("kernel {release}")),
        known("cpu").cloned(),
        cpus.map(|cpus| format!("{} CPUs", cpus.len())),
    ];
    let host: String = host
        .into_iter()
        .flatten()
        .map(|f| format!(", {f}"))
        .collect();
    let (began, version) = (date(plan.began), &plan.version);
    format!("{began}, scx_roost {version}{host}; {blocks}, {warmups}")
}

/// Such as '2026-01-31 23:59 UTC', from seconds since 1970.
fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400, seconds / 60 % 1440);
    // Years begin in March, so the leap day is their last (Hinnant 2013). 400 years have 146,097
    // days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (400 * era + year, month + 3),
        _ => (400 * era + year + 1, month - 9),
    };
    let (hour, minute) = (minutes / 60, minutes % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
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

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_as_in_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_140, "2024-02-29 23:59 UTC"),
            (1_709_251_200, "2024-03-01 00:00 UTC"),
            (1_767_225_599, "2025-12-31 23:59 UTC"),
            (1_767_225_600, "2026-01-01 00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(seconds), shown);
        }
    }
}
