// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's statistics in OpenMetrics. Names, types, units and help texts come from the
//! tables in `stats`. docs/guides/monitoring.md describes the metrics.
//!
//! A family counts by arm or for all arms, never both, so a sum over its labels counts nothing
//! twice. `roost_x_total` ends with its arm, like a counter of a process that has exited.
//! `roost_all_x_total` includes arms that are gone. Counters of the whole machine exist only as
//! `roost_all_x_total`. No arm stands for those that are gone: its counters would jump when one
//! goes, and a rate would take that for events.

use super::source::{Answer, Sample};
use crate::policy::features::FEATURES;
use crate::wire::stats::host::{CPU_GAUGES, Condition, CpuGauges, EVENTS, GAUGES, HostRow};
use crate::wire::stats::{HIST_HELPS, HISTS, Metrics, NR_BUCKETS, ROWS, Row};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::fmt;

pub fn open_metrics(answer: Answer) -> String {
    let mut registry = Registry::with_prefix("roost");
    registry.register_collector(Box::new(Exposition(answer)));
    let mut text = String::new();
    // Writing to a String cannot fail. On any other error the last line, # EOF, is missing, and
    // scrapers reject the text.
    let _ = text::encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Exposition(Answer);

impl Collector for Exposition {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut families = Families(encoder);
        let (up, failed) = match &self.0 {
            Answer::Up(_) => (1.0, false),
            Answer::Down { failed } => (0.0, *failed),
        };
        let help = "1 while a scheduler answers the exporter; at 0 only roost_failed is given too";
        families.gauge(&Family::new("up", help), [(vec![], up)])?;
        let help = "1 while no scheduler answers and the last one did not end on request: it failed, was killed, or hangs";
        let failed = f64::from(u8::from(failed));
        families.gauge(&Family::new("failed", help), [(vec![], failed)])?;
        match &self.0 {
            Answer::Up(sample) => families.sample(sample),
            Answer::Down { .. } => Ok(()),
        }
    }
}

/// Pairs of name and value.
type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Name, unit and help text of one metric family.
struct Family {
    name: String,
    unit: Option<Unit>,
    help: String,
}

impl Family {
    fn new(name: impl Into<String>, help: &str) -> Family {
        Family {
            name: name.into(),
            unit: None,
            // Escaped as in labels; the crate does not escape help texts.
            help: help
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n"),
        }
    }

    fn of_unit(mut self, unit: &str) -> Family {
        self.unit = Some(Unit::Other(unit.to_string()));
        self
    }
}

struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    fn sample(&mut self, sample: &Sample) -> fmt::Result {
        let metrics = &sample.metrics;
        self.about(metrics)?;
        self.arms(metrics)?;
        self.all(metrics)?;
        self.histograms(metrics)?;
        self.host(metrics)?;
        self.conditions(metrics)?;
        self.cpus(&sample.cpus)
    }

    /// What runs: versions, presets, features.
    fn about(&mut self, m: &Metrics) -> fmt::Result {
        let scheduler = vec![
            ("version", m.version.as_str()),
            ("profile", &m.profile),
            ("preset", &m.preset),
            ("governor", &m.governor),
            ("cpuperf", &m.cpuperf),
            ("freq_source", &m.freq_source),
        ];
        let help = "the scheduler: its version, profile (empty: none) and preset of arm default with what differs from it, cpufreq governors, source of frequencies";
        self.info("scheduler", help, [scheduler])?;
        let exporter = vec![("version", env!("CARGO_PKG_VERSION"))];
        self.info("exporter", "the exporter", [exporter])?;
        let arms = m.arms.iter();
        let arms = arms.map(|(arm, of)| {
            let profile = ("profile", of.profile.as_str());
            vec![("arm", arm.as_str()), profile, ("preset", &of.preset)]
        });
        self.info(
            "arm",
            "an arm: its profile (empty: none), and its preset with what differs from it",
            arms,
        )?;
        let loaded =
            "1 while the scheduler is loaded; 0 before the first load and during a restart";
        let running = m.running as f64;
        self.gauge(&Family::new("running", loaded), [(vec![], running)])?;
        let started = "when the scheduler was started, in seconds since 1970";
        let at = m.start_time_s as f64;
        self.gauge(&Family::new("start_time_seconds", started), [(vec![], at)])?;
        let help = "restarts that added a CPU which was offline at the load";
        self.counter("restarts", help, [(vec![], m.restarts)])?;
        let features = m.arms.iter().flat_map(|(arm, of)| {
            let on = |name| of.features.split(' ').any(|on| on == name);
            FEATURES.iter().map(move |f| {
                let labels = vec![("arm", arm.as_str()), ("feature", f.name)];
                (labels, f64::from(u8::from(on(f.name))))
            })
        });
        self.gauge(
            &Family::new("feature", "1 while a feature is on, by arm"),
            features,
        )
    }

    fn arms(&mut self, m: &Metrics) -> fmt::Result {
        let arms: Vec<_> = m
            .arms
            .iter()
            .map(|(arm, of)| (arm, of.counters()))
            .collect();
        let by_arm = |(_, row): &(usize, &Row)| !row.machine;
        for (i, row) in ROWS.iter().enumerate().filter(by_arm) {
            let samples = arms
                .iter()
                .map(|(arm, n)| (vec![("arm", arm.as_str())], n[i]));
            self.counter(row.name, row.help, samples)?;
        }
        Ok(())
    }

    fn all(&mut self, m: &Metrics) -> fmt::Result {
        for (row, n) in ROWS.iter().zip(m.counters()) {
            let help = match row.machine {
                true => row.help.to_string(),
                false => format!("all arms, deleted ones included: {}", row.help),
            };
            self.counter(&format!("all_{}", row.name), &help, [(vec![], n)])?;
        }
        Ok(())
    }

    fn histograms(&mut self, m: &Metrics) -> fmt::Result {
        let arms: Vec<_> = m.arms.iter().map(|(arm, of)| (arm, of.hists())).collect();
        for (i, (name, help)) in HISTS.iter().zip(HIST_HELPS).enumerate() {
            let family = Family::new(*name, help).of_unit("seconds");
            let mut encoder = self.family(&family, MetricType::Histogram)?;
            for (arm, hists) in &arms {
                let (counts, sum_us) = hists[i];
                // The scheduler is of another version.
                if counts.len() != NR_BUCKETS {
                    continue;
                }
                let buckets: Vec<(f64, u64)> =
                    (0..).map(upper_end).zip(counts.iter().copied()).collect();
                let sum = sum_us as f64 / 1e6;
                let labels = [("arm", arm.as_str())];
                encoder
                    .encode_family(&labels)?
                    .encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &buckets, None)?;
            }
        }
        Ok(())
    }

    fn host(&mut self, m: &Metrics) -> fmt::Result {
        for (row, n) in EVENTS.iter().zip(m.events.values()) {
            self.counter(row.name, row.help, [(vec![], n)])?;
        }
        for (row, n) in GAUGES.iter().zip(m.gauges.values()) {
            let gauge = Gauge::of("", row);
            self.gauge(&gauge.family, gauge.value(n).map(|v| (vec![], v)))?;
        }
        Ok(())
    }

    fn conditions(&mut self, m: &Metrics) -> fmt::Result {
        let known = || {
            Condition::ALL
                .iter()
                .filter_map(|c| Some((c.name(), m.conditions.get(c.name())?)))
        };
        let all: Vec<String> = Condition::ALL
            .iter()
            .map(|c| format!("{}: {}", c.name(), c.help()))
            .collect();
        let help = format!("1 while a condition lasts. {}", all.join(". "));
        let active = known().map(|(name, c)| (vec![("condition", name)], c.active as f64));
        self.gauge(&Family::new("condition_active", &help), active)?;
        let begun = known().map(|(name, c)| (vec![("condition", name)], c.count));
        self.counter("condition_begun", "how often a condition began", begun)
    }

    fn cpus(&mut self, cpus: &BTreeMap<u64, CpuGauges>) -> fmt::Result {
        if cpus.is_empty() {
            return Ok(());
        }
        let cpus: Vec<Cpu> = cpus.iter().map(Cpu::new).collect();
        for (i, row) in CPU_GAUGES.iter().enumerate() {
            if PLACES.contains(&row.name) {
                continue;
            }
            let gauge = Gauge::of("cpu_", row);
            let samples = cpus
                .iter()
                .filter_map(|cpu| Some((cpu.labels(), gauge.value(cpu.values[i])?)));
            self.gauge(&gauge.family, samples)?;
        }
        Ok(())
    }

    fn family<'s>(
        &'s mut self,
        f: &'s Family,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0
            .encode_descriptor(&f.name, &f.help, f.unit.as_ref(), kind)
    }

    fn gauge<'s>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = (Labels<'s>, f64)>,
    ) -> fmt::Result {
        let mut encoder = self.family(family, MetricType::Gauge)?;
        for (labels, value) in samples {
            match labels.is_empty() {
                true => encoder.encode_gauge(&value)?,
                false => encoder.encode_family(&labels)?.encode_gauge(&value)?,
            }
        }
        Ok(())
    }

    fn counter<'s>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'s>, u64)>,
    ) -> fmt::Result {
        let family = Family::new(name, help);
        let mut encoder = self.family(&family, MetricType::Counter)?;
        for (labels, value) in samples {
            match labels.is_empty() {
                true => encoder.encode_counter::<NoLabelSet, _, f64>(&value, None)?,
                false => encoder
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, f64>(&value, None)?,
            }
        }
        Ok(())
    }

    fn info<'s>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Labels<'s>>,
    ) -> fmt::Result {
        let family = Family::new(name, help);
        let mut encoder = self.family(&family, MetricType::Info)?;
        for labels in samples {
            encoder.encode_info(&labels)?;
        }
        Ok(())
    }
}

/// Upper end of the bucket in seconds. The last bucket has none.
fn upper_end(bucket: usize) -> f64 {
    if bucket + 1 >= NR_BUCKETS {
        f64::INFINITY
    } else {
        (1024u64 << (bucket + 1)) as f64 / 1e9
    }
}

/// A gauge of a table, converted to OpenMetrics' base units.
struct Gauge {
    family: Family,
    /// `scale.0` base units equal `scale.1` units of the row. Exact, unlike a factor of 0.001.
    scale: (f64, f64),
    /// 0 means "not known": the sample is left out.
    zero_is_unknown: bool,
}

impl Gauge {
    fn of(prefix: &str, row: &HostRow) -> Gauge {
        let (suffix, unit, scale) = match row.unit {
            "milliseconds" => ("ms", "seconds", (1.0, 1e3)),
            "microseconds" => ("us", "seconds", (1.0, 1e6)),
            "kilohertz" => ("khz", "hertz", (1e3, 1.0)),
            "permille" => ("permille", "ratio", (1.0, 1e3)),
            "kilobytes" => ("kb", "bytes", (1024.0, 1.0)),
            _ => ("", "", (1.0, 1.0)),
        };
        let stem = row.name.strip_suffix(suffix).unwrap_or(row.name);
        let known = row.help.strip_suffix("; 0: not known");
        let help = known.unwrap_or(row.help);
        let help = help.strip_suffix(", in thousandths").unwrap_or(help);
        let family = Family::new(format!("{prefix}{stem}").trim_end_matches('_'), help);
        Gauge {
            family: if unit.is_empty() {
                family
            } else {
                family.of_unit(unit)
            },
            scale,
            zero_is_unknown: known.is_some(),
        }
    }

    fn value(&self, n: u64) -> Option<f64> {
        let (base, row) = self.scale;
        (n > 0 || !self.zero_is_unknown).then(|| n as f64 * base / row)
    }
}

/// Rows of `CPU_GAUGES` that are labels of the other rows.
const PLACES: [&str; 3] = ["core", "llc", "node"];

struct Cpu {
    /// Its number, then its core, LLC and node.
    names: [String; 4],
    /// In the order of `CPU_GAUGES`.
    values: Vec<u64>,
}

impl Cpu {
    fn new((number, of): (&u64, &CpuGauges)) -> Cpu {
        Cpu {
            names: [*number, of.core, of.llc, of.node].map(|n| n.to_string()),
            values: of.values(),
        }
    }

    fn labels(&self) -> Labels<'_> {
        std::iter::once("cpu")
            .chain(PLACES)
            .zip(self.names.iter().map(String::as_str))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::stats::ArmMetrics;
    use std::sync::Arc;

    #[test]
    fn texts_of_others_cannot_break_a_line() {
        let mut sample = Sample::default();
        sample.metrics.governor = "a\"b\\c\nroost_up 7".into();
        let text = open_metrics(Answer::Up(Arc::new(sample)));
        assert!(
            text.contains("governor=\"a\\\"b\\\\c\\nroost_up 7\""),
            "{text}"
        );
        assert_eq!(Family::new("x", "a \"b\"\nc\\").help, "a \\\"b\\\"\\nc\\\\");
    }

    #[test]
    fn the_profile_of_arm_default_is_a_label() {
        let mut sample = Sample::default();
        sample.metrics.profile = "auto: powersave".into();
        sample.metrics.preset = "mainline".into();
        let text = open_metrics(Answer::Up(Arc::new(sample)));
        let labels = "profile=\"auto: powersave\",preset=\"mainline\"";
        assert!(text.contains(labels), "{text}");
    }

    #[test]
    fn the_profile_of_each_arm_is_a_label() {
        let arm = ArmMetrics {
            profile: "gaming".into(),
            preset: "roost".into(),
            ..ArmMetrics::default()
        };
        let mut sample = Sample::default();
        sample.metrics.arms.insert("x".into(), arm);
        let text = open_metrics(Answer::Up(Arc::new(sample)));
        let info = "roost_arm_info{arm=\"x\",profile=\"gaming\",preset=\"roost\"} 1";
        assert!(text.contains(info), "{text}");
    }

    #[test]
    fn a_missing_histogram_is_left_out() {
        let mut sample = Sample::default();
        sample.metrics.arms.insert("x".into(), Default::default());
        let text = open_metrics(Answer::Up(Arc::new(sample)));
        assert!(text.contains("roost_sis_prev_total{arm=\"x\"} 0"));
        assert!(!text.contains("latency_seconds_count"), "{text}");
    }

    #[test]
    fn every_unit_of_the_tables_has_its_base_unit() {
        for row in GAUGES.iter().chain(CPU_GAUGES) {
            let gauge = Gauge::of("x_", row);
            assert_eq!(
                gauge.family.unit.is_some(),
                !row.unit.is_empty(),
                "{}",
                row.name
            );
            let help = &gauge.family.help;
            assert!(!gauge.family.name.ends_with("_ms") && !help.contains("in thousandths"));
            assert!(!help.contains("not known"), "{help}");
            // A threshold of 0 is a known value: no frequency is below it.
            let known = gauge.value(0).is_some();
            assert_eq!(known, !row.help.ends_with("not known"), "{help}");
        }
    }

    #[test]
    fn buckets_end_where_the_next_begin() {
        assert_eq!(upper_end(0), 2.048e-6);
        assert_eq!(upper_end(1), 4.096e-6);
        assert!(upper_end(NR_BUCKETS - 2).is_finite() && upper_end(NR_BUCKETS - 1).is_infinite());
    }
}
