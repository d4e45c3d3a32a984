// SPDX-License-Identifier: GPL-2.0-only
//! A result for a mailing list: plain text of at most 72 columns. First what a reviewer asks for;
//! then the raw runs, laid out as in Roy v7, and one percent for each comparison.

use super::{MetricReport, Report, VariantReport, headline};
use crate::ab::result::{Header, Recorded};
use crate::machine::parse_cpulist;
use crate::util::text::{quoted, wrap};
use anyhow::Result;
use std::fmt::Write;

const WIDTH: usize = 72;
/// Widest heading of a column; longer names become letters, with a legend.
const NAME_MAX: usize = 8;
const INDENT: usize = 2;

pub fn as_mail(recorded: &Recorded) -> Result<String> {
    let report = Report::new(recorded)?;
    let columns = Columns::new(&report);
    let legend = columns.legend(report.plan);
    Ok(machine(&report) + "\n" + &legend + &body(&report, &columns))
}

/// A line of `label: text`, continued below the text.
fn labelled(text: &mut String, label: &str, value: &str) {
    // A label that is too long has lines of its own.
    let short = INDENT + label.chars().count() + 2 <= WIDTH / 3;
    let mut begin = format!("  {label}: ");
    if !short {
        for line in wrap(&format!("{label}:"), WIDTH - INDENT) {
            let _ = writeln!(text, "  {line}");
        }
        begin = "    ".to_string();
    }
    let indent = begin.chars().count();
    for line in wrap(&tight(value), WIDTH - indent) {
        let _ = writeln!(text, "{begin}{line}");
        begin = format!("{:indent$}", "");
    }
}

/// The machine and the kernel.
fn machine(report: &Report) -> String {
    let plan = report.plan;
    let mut text = String::new();
    let known = |name: &str| plan.host.get(name).map(String::as_str);
    let cpus = known("cpus").and_then(|list| Some(parse_cpulist(list).ok()?.len()));
    let cpu = known("cpu").zip(cpus);
    let cpu = cpu.map(|(cpu, n)| format!("{cpu}, {n} CPUs"));
    let modes: Vec<&str> = report.modes.iter().copied().collect();
    // Across boots each variant has its own.
    let of_boot = |name: &str| known(name).filter(|_| plan.boots.is_none());
    for (label, value) in [
        ("Machine", cpu.as_deref()),
        ("Topology", known("topology")),
        ("Memory", known("memory")),
        ("Kernel", of_boot("kernel")),
        ("Command line", of_boot("cmdline")),
        ("Mitigations", of_boot("mitigations")),
        ("Frequencies", Some(modes.join("; ").as_str())),
        ("Program", known("program")),
        (
            "Version",
            Some(format!("scx_roost {}", plan.version).as_str()),
        ),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            labelled(&mut text, label, value);
        }
    }
    for variant in &plan.variants {
        if let Some(version) = known(variant) {
            labelled(&mut text, variant, version);
        }
    }
    for (variant, boot) in &report.boots {
        let labels = [("cmdline", "command line"), ("mitigations", "mitigations")];
        for (name, label) in labels {
            if let Some(fact) = boot.facts.get(name) {
                labelled(&mut text, &format!("{variant}, {label}"), fact);
            }
        }
    }
    text
}

/// How the runs were made, and what spoils them.
fn runs(report: &Report) -> String {
    let mut text = String::new();
    labelled(&mut text, "Runs", &super::summary(report));
    labelled(&mut text, "Taken", &super::taken(report.plan));
    for warning in &report.warnings {
        labelled(&mut text, "Note", warning);
    }
    text
}

/// The columns of all tables: a heading for each variant.
struct Columns {
    names: Vec<String>,
    width: usize,
}

impl Columns {
    fn new(report: &Report) -> Columns {
        let variants = &report.plan.variants;
        let short = variants.iter().all(|v| v.chars().count() <= NAME_MAX);
        // A to Z, then AA to ZZ.
        let sign = |at: usize| char::from(b'A' + (at % 26) as u8);
        let letter = |at: usize| match at {
            0..26 => sign(at).to_string(),
            _ => format!("{}{}", sign(at / 26 - 1), sign(at)),
        };
        let names: Vec<String> = match short {
            true => variants.clone(),
            false => (0..variants.len()).map(letter).collect(),
        };
        let numbers = report.metrics.iter().flat_map(|m| {
            let of = |v: &VariantReport| {
                let runs = v.runs.iter().map(|(_, value)| shown(*value).len());
                runs.chain([shown(v.median).len()]).max().unwrap_or(0)
            };
            m.variants.iter().map(of).collect::<Vec<_>>()
        });
        let longest = names.iter().map(|n| n.chars().count());
        let width = longest.chain(numbers).max().unwrap_or(0).max(6);
        Columns { names, width }
    }

    /// What each letter stands for. Empty: the headings are the names.
    fn legend(&self, plan: &Header) -> String {
        let mut text = String::new();
        for (letter, variant) in self.names.iter().zip(&plan.variants) {
            if letter != variant {
                labelled(&mut text, letter, variant);
            }
        }
        if text.is_empty() { text } else { text + "\n" }
    }

    /// Cells in one line. Variants that do not fit into 72 columns are left to a second table.
    fn row(&self, cells: &[String], behind: &str) -> String {
        let width = self.width;
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>width$}")).collect();
        format!("  {}{behind}\n", cells.join("  "))
    }

    /// How many variants fit beside a text of this length.
    fn fit(&self, behind: usize) -> usize {
        (WIDTH.saturating_sub(INDENT + behind) / (self.width + 2)).max(1)
    }
}

/// As a source prints numbers: two decimals, more below 1, none for large counts.
fn shown(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{value:.0}"),
        v if v < 1.0 && v > 0.0 => format!("{value:.4}"),
        _ => format!("{value:.2}"),
    }
}

fn body(report: &Report, columns: &Columns) -> String {
    let line = ":".to_string() + &"-".repeat(WIDTH - 5);
    let plan = report.plan;
    let mut text = format!("{line}\n");
    let program = plan.command.first().map_or("", String::as_str);
    for part in wrap(program, WIDTH - 2) {
        let _ = writeln!(text, ": {part}");
    }
    text += &format!("{line}\n");
    let words: Vec<String> = plan.command.iter().map(|word| quoted(word)).collect();
    let lines = wrap(&words.join(" "), WIDTH - INDENT - 2);
    let last = lines.len().saturating_sub(1);
    for (at, line) in lines.iter().enumerate() {
        let _ = writeln!(text, "  {line}{}", if at < last { " \\" } else { "" });
    }
    for metric in &report.metrics {
        text += &table(metric, columns);
        text += &verdicts(report, metric);
    }
    text + &format!("\n{}\n", runs(report))
}

/// A number keeps its sign when lines are broken.
fn tight(text: &str) -> String {
    let mut tight = String::new();
    let mut rest = text.chars().peekable();
    while let Some(sign) = rest.next() {
        let after_digit = tight.ends_with(|c: char| c.is_ascii_digit());
        if !(sign == ' ' && after_digit && rest.peek() == Some(&'%')) {
            tight.push(sign);
        }
    }
    tight
}

/// The raw runs in order, and their medians.
fn table(metric: &MetricReport, columns: &Columns) -> String {
    let (direction, unit) = (super::direction_text(metric.better), metric.unit);
    let word = match unit {
        "" => format!("  median {}", metric.metric),
        unit => format!("  median {}, {unit}", metric.metric),
    };
    let word: String = word.chars().take(30).collect();
    let fit = columns.fit(word.chars().count().max(direction.len()) + 2);
    let mut text = String::new();
    for shown_now in metric.variants.chunks(fit).zip(columns.names.chunks(fit)) {
        let (variants, names) = shown_now;
        let row = |cell: &dyn Fn(&VariantReport) -> String, behind: &str| {
            let cells: Vec<String> = variants.iter().map(cell).collect();
            columns.row(&cells, behind)
        };
        let rule = row(&|_| "-".repeat(columns.width), "");
        let _ = write!(text, "\n{}{rule}", columns.row(names, ""));
        let runs = variants.iter().map(|v| v.runs.len()).max().unwrap_or(0);
        for run in 0..runs {
            let value = |v: &VariantReport| v.runs.get(run).map(|(_, value)| *value);
            text += &row(&|v| value(v).map_or("-".to_string(), shown), "");
        }
        text += &rule;
        let median = |v: &VariantReport| match v.runs.len() {
            0 => "-".to_string(),
            _ => shown(v.median),
        };
        text += &row(&median, &word);
        text += &row(&|_| String::new(), &format!("  {direction}"));
    }
    text
}

/// The verdicts on it, with what stands in their way.
fn verdicts(report: &Report, metric: &MetricReport) -> String {
    let base = &report.plan.variants[0];
    let mut text = "\n".to_string();
    for (variant, judged) in metric.judged() {
        let line = tight(&headline(base, variant, metric, judged));
        for (at, line) in wrap(&line, WIDTH - 4).iter().enumerate() {
            let _ = writeln!(text, "{}{line}", if at == 0 { "  " } else { "    " });
        }
    }
    text
}
