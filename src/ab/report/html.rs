// SPDX-License-Identifier: GPL-2.0-only
//! A self-contained HTML page: the results in words, then how they came about.

use super::closing::Closing;
use super::text::title;
use super::{
    MARK, Medians, MetricReport, Report, VariantReport, command, cv_text, effect, least_effect,
    level, median_text, named, number, plots, ratio_text, summary, taken, verdict, verdict_name,
};
use crate::ab::stats::pairs::Scale;
use crate::wire::stats::{ROWS, Row};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
/// As many warnings are shown without a click.
const FEW: usize = 3;

pub fn html(report: &Report) -> String {
    let command = escape(&command(report.plan));
    let head = format!(
        "{}<h1 class=\"run\"><code>{command}</code></h1>\n{}",
        results(report),
        run(report)
    );
    page(&command, &(head + &section(report)))
}

/// All workloads of a suite, first their results. `closing`: its other results. None: the suite was
/// stopped.
pub fn html_of_suite(reports: &[Report], closing: Option<&Closing>) -> String {
    let title = format!("A suite of {} workloads", reports.len());
    let told = closing.map_or(String::new(), |c| escape(&c.title()));
    let mut body = format!("<h1>{title}</h1>\n<p>{told}</p>\n<div class=\"box\"><table>\n");
    for report in reports {
        let mut workload = escape(report.plan.workload.as_deref().unwrap_or_default());
        for (verdict, line) in report.headlines() {
            let (class, workload) = (verdict_name(verdict), std::mem::take(&mut workload));
            let _ = writeln!(
                body,
                "<tr><th>{workload}<td class=\"{class}\"><b>{}</b></tr>",
                unbroken(&escape(&line))
            );
        }
    }
    let notes = closing.map_or(String::new(), Closing::notes);
    let _ = writeln!(body, "</table>\n<pre>{}</pre></div>", escape(&notes));
    for report in reports {
        let command = escape(&command(report.plan));
        let _ = writeln!(body, "<h1><code>{command}</code></h1>");
        body += &(results(report) + &run(report) + &section(report));
    }
    page(&title, &body)
}

/// `title` is HTML already.
fn page(title: &str, body: &str) -> String {
    let page = format!(
        "<!DOCTYPE html>\n{MARK}\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\n\
         <style>\n{STYLE}</style></head><body>\n{body}</body></html>\n"
    );
    crate::util::escape::text(&page).into_owned()
}

fn results(report: &Report) -> String {
    let result = |(verdict, line): (_, String)| {
        let (class, line) = (verdict_name(verdict), unbroken(&escape(&line)));
        format!("<p class=\"result {class}\">{line}</p>\n")
    };
    report.headlines().map(result).collect()
}

/// What was run.
fn run(report: &Report) -> String {
    let warnings = match report.warnings.len() {
        0 => String::new(),
        n => format!("<br>{} below", warnings_text(n)),
    };
    format!(
        "<p><small>{}<br>{}{warnings}</small></p>\n",
        escape(&summary(report)),
        escape(&taken(report.plan))
    )
}

fn warnings_text(n: usize) -> String {
    format!("{n} warning{}", if n == 1 { "" } else { "s" })
}

fn section(report: &Report) -> String {
    let mut page = String::new();
    for metric in &report.metrics {
        let title = title(&metric.metric, metric.unit, metric.better);
        let _ = writeln!(page, "<h2>{}</h2>", escape(&title));
        page += &effects(metric);
        page += &table(metric, report.blocks);
        page += &runs(metric, &report.plan.variants);
    }
    let warnings = report
        .warnings
        .iter()
        .map(|w| format!("<p>{}</p>\n", escape(w)));
    let shown = report.warnings.len() <= FEW;
    page += &details(
        &warnings_text(report.warnings.len()),
        shown,
        &warnings.collect::<String>(),
    );
    for (title, rows) in report.besides() {
        page += &details(title, false, &medians(&report.plan.variants, rows));
    }
    page
}

/// Folded unless `open`. Empty if `inside`, which is HTML already, is.
fn details(summary: &str, open: bool, inside: &str) -> String {
    let open = if open { " open" } else { "" };
    match inside {
        "" => String::new(),
        _ => format!("<details{open}><summary>{summary}</summary>\n{inside}</details>\n"),
    }
}

/// What the marks of a picture are: each with its color or none.
fn legend(marks: &[(&str, &str, &str)]) -> String {
    let mark = |(class, sign, text): &(&str, &str, &str)| {
        format!(
            "<span><b class=\"{class}\">{sign}</b> {}</span> ",
            escape(text)
        )
    };
    let marks: String = marks.iter().map(mark).collect();
    format!("<p class=\"legend\">{marks}</p>\n")
}

/// Empty if there is no picture. `legend` is HTML already.
fn figure(heading: &str, legend: &str, picture: &str) -> String {
    match picture {
        "" => String::new(),
        _ => format!(
            "<figure><h3>{}</h3>\n{legend}{picture}</figure>\n",
            escape(heading)
        ),
    }
}

fn effects(metric: &MetricReport) -> String {
    let base = &metric.variants[0].variant;
    let legend = legend(&[
        (
            "",
            "\u{2501}\u{25cf}\u{2501}",
            "the change and its interval, which tells the verdict",
        ),
        ("", "\u{2503}", "no change"),
        (
            "grid",
            "\u{2592}",
            "the margin: a change in it does not matter",
        ),
    ]);
    let figure = |scale, what: String| figure(&what, &legend, &plots::effects(metric, scale));
    let ratios = figure(Scale::Ratio, format!("Change from {base} in percent"));
    ratios + &figure(Scale::Difference, format!("Difference from {base}"))
}

fn runs(metric: &MetricReport, variants: &[String]) -> String {
    let marks = legend(&[
        ("", "\u{25cf}", "a run"),
        ("", "\u{25cb}", "a run far from the rest; it counts"),
        ("", "\u{25b6}", "such a run beyond the axis"),
        ("", "\u{2503}", "median"),
        ("", "\u{25c7}", "mean"),
    ]);
    let mut all = figure("Distribution", &marks, &plots::distribution(metric));
    for (part, some) in variants.chunks(plots::COLORS.len()).enumerate() {
        let first = part * plots::COLORS.len();
        let name = |(at, name)| (plots::color(at), "\u{25cf}", name);
        let names = some.iter().map(String::as_str).enumerate();
        let picture = plots::in_order(metric, first..first + some.len());
        let legend = legend(&names.map(name).collect::<Vec<_>>());
        all += &figure("Runs in order", &legend, &picture);
    }
    let outliers: Vec<String> = metric.outliers().map(|text| escape(&text)).collect();
    let _ = writeln!(all, "<p><small>{}</small></p>", outliers.join("<br>"));
    all
}

/// A table in a box that scrolls sideways if it is too wide. Headings with `n` are of numbers.
fn boxed(headings: &[(&str, String)], rows: &str) -> String {
    let heading =
        |(class, text): &(&str, String)| format!("<th class=\"{class}\">{}", escape(text));
    let headings: String = headings.iter().map(heading).collect();
    format!("<div class=\"box\"><table>\n<tr>{headings}</tr>\n{rows}</table></div>\n")
}

fn table(metric: &MetricReport, blocks: usize) -> String {
    let in_unit = |name: &str| match metric.unit {
        "" => name.to_string(),
        unit => format!("{name},\u{a0}{unit}"),
    };
    let headings = [
        ("", "variant".to_string()),
        ("n", in_unit("median")),
        ("n", in_unit("mean")),
        ("n", "CV".to_string()),
        ("n", in_unit("least")),
        ("n", in_unit("most")),
        ("", "change".to_string()),
        ("n", "at".to_string()),
        ("n", "p".to_string()),
        ("n", "least effect".to_string()),
        ("", "verdict".to_string()),
    ];
    let mut rows = String::new();
    for variant in &metric.variants {
        let _ = write!(rows, "<tr><td>{}", escape(&variant.variant));
        for value in numbers(variant) {
            let _ = write!(rows, "<td class=\"n\">{value}");
        }
        rows += &comparison(variant, metric.unit, blocks);
        rows += "</tr>\n";
    }
    boxed(&headings, &rows)
}

/// Cells of the comparison with the first variant. Empty for that.
fn comparison(variant: &VariantReport, unit: &str, blocks: usize) -> String {
    let Some(judged) = &variant.judged else {
        return "<td colspan=\"5\">".to_string();
    };
    let class = format!("verdict {}", verdict_name(judged.verdict));
    let cells = [
        ("", effect(judged, unit)),
        ("n", level(judged, blocks)),
        ("n", format!("{:.4}", judged.p_adjusted)),
        ("n", least_effect(judged, unit)),
        (class.as_str(), verdict(judged, unit)),
    ];
    let cell = |(class, text): (&str, String)| {
        format!("<td class=\"{class}\">{}", unbroken(&escape(&text)))
    };
    cells.into_iter().map(cell).collect()
}

fn numbers(variant: &VariantReport) -> [String; 5] {
    [
        number(variant.median),
        number(variant.mean),
        unbroken(&cv_text(variant.cv)),
        number(variant.min),
        number(variant.max),
    ]
}

/// A line may break between a value and its interval, but not within the interval.
fn unbroken(text: &str) -> String {
    text.replace(" to ", "&nbsp;to&nbsp;")
        .replace(" %", "&nbsp;%")
}

/// Where a counter is in the scheduler's table, by group. Others come last.
fn row(name: &str) -> (usize, Option<&'static Row>) {
    let at = ROWS.iter().position(|row| row.name == name);
    (at.unwrap_or(ROWS.len()), at.map(|at| &ROWS[at]))
}

/// Medians by variant, with their changes from the first one that has a median. Counters are in
/// groups, with what they count.
fn medians(variants: &[String], all: &Medians) -> String {
    let mut headings = vec![("", String::new())];
    for (at, variant) in variants.iter().enumerate() {
        headings.push(("n", variant.clone()));
        headings.extend((at > 0).then(|| ("n", "change".to_string())));
    }
    headings.push(("help", String::new()));
    let mut sorted: Vec<_> = all
        .iter()
        .map(|(name, values)| (row(name), name, values))
        .collect();
    sorted.sort_by_key(|((at, _), _, _)| *at);
    let mut rows = String::new();
    let group = |row: Option<&'static Row>| row.map_or("", |row| row.group);
    let mut last = "";
    for ((_, row), name, values) in sorted {
        if group(row) != last {
            last = group(row);
            let _ = writeln!(
                rows,
                "<tr><th colspan=\"{}\">{}</tr>",
                headings.len(),
                escape(last)
            );
        }
        let name = escape(&named(name));
        let _ = write!(rows, "<tr><td class=\"name\">{name}");
        let mut base = None;
        for (at, value) in values.iter().enumerate() {
            let _ = write!(rows, "<td class=\"n\">{}", median_text(*value));
            let change = base.zip(*value).filter(|(base, _)| *base > 0.0);
            let change = change.map(|(base, value)| unbroken(&ratio_text(value / base)));
            if at > 0 {
                let _ = write!(rows, "<td class=\"n\">{}", change.unwrap_or_default());
            }
            base = base.or(*value);
        }
        let help = row.map_or("", |row| row.help);
        let _ = writeln!(rows, "<td class=\"help\">{}</tr>", escape(help));
    }
    boxed(&headings, &rows)
}

pub fn escape(text: &str) -> String {
    let sign = |c: char| match c {
        '&' => "&amp;".to_string(),
        '<' => "&lt;".to_string(),
        '>' => "&gt;".to_string(),
        '"' => "&quot;".to_string(),
        c => c.to_string(),
    };
    text.chars().map(sign).collect()
}
