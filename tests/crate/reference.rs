// SPDX-License-Identifier: GPL-2.0-only
//! The pages of docs/reference/ that are generated: `commands.md` from the help of the program,
//! `features.md` and `statistics.md` from the tables that C and Rust share. So are the lines of
//! book/SUMMARY.md for the pages of features, and the dashboard's queries for rungs and events.
//! After an intended change, `ROOST_DRAW=1 cargo test --release --test crate reference` rewrites
//! them: review the diff.

use crate::documents::whole_program;
use scx_roost::policy::features::{FEATURES, PRESETS, TUNABLES, Tunable};
use scx_roost::policy::profiles::PROFILES;
use scx_roost::wire::stats::host::{CPU_GAUGES, Condition, EVENTS, GAUGES, HostRow};
use scx_roost::wire::stats::{HIST_HELPS, HISTS, NR_BUCKETS, ROWS, metas};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first line of every generated page.
const MARK: &str = "<!-- Generated; see the head of tests/crate/reference.rs. Do not edit. -->\n";

fn docs(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("docs/{name}"))
}

fn page(name: &str) -> PathBuf {
    docs(&format!("reference/{name}"))
}

/// Compares the generated page with `text`, or rewrites it.
fn compare(name: &str, text: &str) {
    let text = format!("{MARK}{}\n", text.trim_end());
    compare_file(&page(name), &text);
}

pub fn compare_file(path: &Path, text: &str) {
    if std::env::var_os("ROOST_DRAW").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().zip(written.lines());
    let first = lines.enumerate().find(|(_, (now, old))| now != old);
    assert!(
        text == written,
        "{} is out of date, first at {first:?}; rewrite it with\n\
         ROOST_DRAW=1 cargo test --release --test crate reference",
        path.display()
    );
}

/// A table of Markdown.
fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head = line(&head.map(str::to_string)) + &format!("|{}\n", "---|".repeat(N));
    let rows = rows
        .into_iter()
        .map(|row| line(&row.map(|cell| cell.replace('|', "\\|"))));
    rows.fold(head, |all, row| all + &row)
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

// ---- commands.md ----

/// What `scx_roost WORDS --help-all` prints. The width is that of a program without a terminal.
fn help(words: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args(words)
        .arg("--help-all")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{words:?}");
    let text = String::from_utf8(output.stdout).expect("help is text");
    text.lines()
        .map(|l| l.trim_end().to_string() + "\n")
        .collect()
}

/// The names in a help's lists of commands, which stand before the options.
fn commands(help: &str) -> Vec<String> {
    let list = help
        .lines()
        .skip_while(|l| !l.starts_with("Usage:"))
        .skip(1);
    list.take_while(|l| !l.starts_with("Options:") && !l.starts_with("Arguments:"))
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_string)
        .collect()
}

fn describe(words: &[String], into: &mut String) {
    let help = help(words);
    let level = "#".repeat(2 + words.len().saturating_sub(1));
    let name = words
        .iter()
        .fold("scx_roost".to_string(), |n, w| n + " " + w);
    write!(into, "{level} {name}\n\n```text\n{help}```\n\n").unwrap();
    for command in commands(&help) {
        describe(&[words, &[command]].concat(), into);
    }
}

#[test]
fn the_page_of_commands_is_what_help_prints() {
    if !whole_program() {
        return;
    }
    let mut text = "# All commands and options\n\n\
        This is what `--help-all` prints after each command. [cli.md](cli.md) introduces the commands, \
        with\nexamples. The [glossary](../glossary.md) defines the terms.\n\n"
        .to_string();
    describe(&[], &mut text);
    let described = text.matches("\n```text\n").count();
    assert!(described > 15, "only {described} commands were found");
    compare("commands.md", &text);
}

// ---- features.md ----

fn linked(name: &str, parent: &str) -> String {
    let own = page(&format!("features/{name}.md")).exists();
    match own {
        true => format!("[{name}](features/{name}.md)"),
        false => format!("[{name}](features/{parent}.md)"),
    }
}

fn tunable(t: &&Tunable) -> [String; 6] {
    [
        code(t.name),
        match t.parent {
            "" => String::new(),
            parent => code(parent),
        },
        t.possible() + &t.unit_after(" "),
        t.default.to_string(),
        match t.machine_wide {
            true => "machine".to_string(),
            false => "arm".to_string(),
        },
        t.help.to_string(),
    ]
}

/// Which features are on in which preset. A feature that is on nowhere has no row.
fn matrix() -> String {
    let names = PRESETS.iter().map(|p| code(p.name));
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = std::iter::once(String::new()).chain(names).collect();
    let mut text = line(&head) + &format!("|{}\n", "---|".repeat(head.len()));
    for f in FEATURES {
        let on = PRESETS.iter().map(|p| p.features.has(f.bit));
        if on.clone().any(|on| on) {
            let marks = on.map(|on| if on { "on" } else { "" }.to_string());
            let cells = std::iter::once(code(f.name)).chain(marks);
            text += &line(&cells.collect::<Vec<_>>());
        }
    }
    text
}

#[test]
fn the_page_of_features_is_the_table() {
    let mut text = "# Features, tunables, presets, profiles\n\n\
        Every switch and every number that can be set, at the start and at run time \
        ([control.md](control.md)).\n[presets.md](presets.md) says why a preset has its \
        features. The [glossary](../glossary.md) defines the\nterms.\n\n"
        .to_string();
    let features = FEATURES.iter().filter(|f| f.parent.is_empty());
    let rows = features.map(|f| [linked(f.name, f.name), f.source.into(), f.help.into()]);
    text += "## Features\n\n";
    text += &table(["feature", "source", "what it does"], rows);
    text += "\n## Sub-switches\n\nA sub-switch is refused without its feature.\n\n";
    let subs = FEATURES.iter().filter(|f| !f.parent.is_empty());
    let rows = subs.map(|f| {
        let name = linked(f.name, f.parent);
        [name, code(f.parent), f.source.into(), f.help.into()]
    });
    text += &table(["sub-switch", "of", "source", "what it does"], rows);
    text += "\n## Tunables\n\n\
        Each is an option of the command line, and a name for `ctl set --set NAME=VALUE`. A \
        tunable of the\nmachine is set on arm default only.\n\n";
    let head = [
        "tunable",
        "with",
        "values",
        "default",
        "for each",
        "what it does",
    ];
    text += &table(head, TUNABLES.iter().map(tunable));
    text += "\n## Presets\n\n";
    let rows = PRESETS.iter().map(|p| [code(p.name), p.help.into()]);
    text += &table(["preset", "what it is"], rows);
    text += "\n";
    text += &matrix();
    text += "\n## Profiles\n\n\
        A profile is a preset with changes, under the name of its purpose. \
        [presets.md](presets.md#profiles)\nhas what the simulator says of each.\n\n";
    let rows = PROFILES.iter().map(|p| {
        let (help, cost) = (p.help.into(), p.cost.into());
        [code(p.name), code(p.variant), help, cost]
    });
    text += &table(
        ["profile", "variant", "what it is for", "what it costs"],
        rows,
    );
    compare("features.md", &text);
}

// ---- statistics.md ----

/// `text` with a capital, unless its first word is a name of the code.
fn headline(text: &str) -> String {
    let code = text
        .split(' ')
        .next()
        .is_some_and(|word| word.contains('_'));
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !code => first.to_uppercase().collect::<String>() + chars.as_str(),
        _ => text.to_string(),
    }
}

fn host_rows(rows: &[HostRow]) -> String {
    let row = |r: &HostRow| [code(r.name), r.unit.into(), r.help.into()];
    table(["field", "unit", "meaning"], rows.iter().map(row))
}

/// Structures whose fields are rows of the tables above.
const TABLED: [&str; 2] = ["CounterFields", "CpuGauges"];

/// The other structures, without the fields that are rows.
fn structures(into: &mut String) {
    let rows: BTreeSet<&str> = ROWS
        .iter()
        .map(|row| row.name)
        .chain(EVENTS.iter().chain(GAUGES).map(|row| row.name))
        .chain(HISTS.iter().copied())
        .collect();
    for (name, meta) in metas() {
        if TABLED.contains(&&*name) {
            continue;
        }
        let fields = meta.fields.iter();
        let fields = fields.filter(|(field, _)| !rows.contains(&***field));
        let rows = fields.map(|(field, f)| {
            let help = f.attrs.desc.clone().unwrap_or_default();
            [code(field), code(&f.data.to_string()), help]
        });
        write!(into, "\n### {name}\n\n").unwrap();
        *into += &table(["field", "type", "meaning"], rows);
    }
}

#[test]
fn the_page_of_statistics_is_the_tables() {
    let mut text = "# Statistics\n\n\
        Every field of the statistics. [cli.md](cli.md#statistics) says how to ask for them, and\n\
        [monitoring.md](../guides/monitoring.md#metrics) how the exporter names them. `scx_roost \
        --help-stats`\nprints the same. All counters begin with the first load and include \
        restarts.\n\n## Counters\n\nA counter of the machine belongs to no \
        [arm](../glossary.md#arm).\n"
        .to_string();
    let mut group = "";
    for (i, row) in ROWS.iter().enumerate() {
        if row.group != group {
            group = row.group;
            let of_group = ROWS[i..].iter().take_while(|r| r.group == group);
            let rows = of_group.map(|r| {
                let whose = if r.machine { "machine" } else { "arm" };
                [code(r.name), whose.into(), r.help.into()]
            });
            write!(text, "\n### {}\n\n", headline(group)).unwrap();
            text += &table(["counter", "for each", "counts"], rows);
        }
    }
    write!(
        text,
        "\n## Histograms\n\n\
         Each arm has these. Each has {NR_BUCKETS} buckets: bucket i counts times from 2^i to \
         2^(i+1) times 1.024 us.\n\n"
    )
    .unwrap();
    let rows = HISTS.iter().zip(HIST_HELPS);
    text += &table(
        ["histogram", "time"],
        rows.map(|(n, h)| [code(n), h.to_string()]),
    );
    text += "\n## Events\n\nThe daemon counts these.\n\n";
    text += &host_rows(EVENTS).replace(" |  | ", " | count | ");
    text += "\n## Gauges\n\nThe machine and the daemon as they are now.\n\n";
    text += &host_rows(GAUGES);
    text += "\n## Gauges of a CPU\n\nTargets `cpus` and `cpu_gauges` have these for each CPU.\n\n";
    text += &host_rows(CPU_GAUGES);
    text += "\n## Conditions\n\n\
        States that may need action (`conditions`).\n\
        [troubleshooting.md](../troubleshooting.md#conditions) says what to do.\n\n";
    let rows = Condition::ALL
        .iter()
        .map(|c| [code(c.name()), c.help().into()]);
    text += &table(["condition", "meaning"], rows);
    text += "\n## JSON\n\n\
        Targets `top` and `totals` answer with `Metrics`, `cpus` and `cpu_gauges` with \
        `CpusMetrics`. A\n`Metrics` also has each counter, event and gauge as a field of its own; an \
        `ArmMetrics` has each\ncounter, and each histogram as a list of buckets. `CounterFields` and \
        `CpuGauges` have the fields of\ntheir tables above. A line of `monitor --json` also has `time_s`, in seconds since 1970, and \
        `host`.\n";
    structures(&mut text);
    compare("statistics.md", &text);
}

#[test]
fn each_feature_has_a_page() {
    for f in FEATURES.iter().filter(|f| f.parent.is_empty()) {
        let name = format!("features/{}.md", f.name);
        let text = std::fs::read_to_string(page(&name)).unwrap_or_default();
        assert!(
            text.starts_with(&format!("# {}\n", f.name)),
            "docs/reference/{name}"
        );
    }
}

// ---- SUMMARY.md ----

#[test]
fn the_summary_has_a_line_for_each_features_page() {
    let mut names: Vec<String> = std::fs::read_dir(page("features"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let line = |name: &String| format!("    - [{name}](docs/reference/features/{name}.md)\n");
    let lines: String = names.iter().map(line).collect();
    let path = docs("../book/SUMMARY.md");
    let summary = std::fs::read_to_string(&path).unwrap();
    let mut text = String::new();
    for old in summary
        .lines()
        .filter(|l| !l.contains("(docs/reference/features/"))
    {
        text += &format!("{old}\n");
        if old.contains("(docs/reference/features.md)") {
            text += &lines;
        }
    }
    assert!(names.len() > 10 && text.contains(&lines));
    compare_file(&path, &text);
}

// ---- the dashboard ----

/// The queries of a panel, as the dashboard's file writes them: one for each counter.
fn queries(counters: &[String], function: &str, labels: &str) -> String {
    let query = |(i, counter): (usize, &String)| {
        let id = char::from(b'A' + u8::try_from(i).unwrap());
        assert!(id.is_ascii_uppercase(), "Grafana names a query by a letter");
        format!(
            r#"    {{
     "refId": "{id}",
     "datasource": {{
      "type": "prometheus",
      "uid": "${{datasource}}"
     }},
     "expr": "sum({function}(roost_{counter}_total{{{labels}}}[$__rate_interval]))",
     "legendFormat": "{counter}"
    }}"#
        )
    };
    let all: Vec<String> = counters.iter().enumerate().map(query).collect();
    all.join(",\n") + "\n"
}

/// `dashboard`, whose panel of this title has these queries.
fn with_queries(dashboard: &str, title: &str, queries: &str) -> String {
    let (head, rest) = dashboard
        .split_once(&format!("   \"title\": \"{title}\",\n"))
        .unwrap_or_else(|| panic!("the dashboard has a panel {title}"));
    let (before, rest) = rest.split_once("   \"targets\": [\n").unwrap();
    assert!(!before.contains("\"title\""), "{title} has queries");
    let (_, after) = rest.split_once("   ],\n").unwrap();
    format!("{head}   \"title\": \"{title}\",\n{before}   \"targets\": [\n{queries}   ],\n{after}")
}

#[test]
fn the_dashboard_has_all_rungs_and_events() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = std::fs::read_to_string(root.join("src/bpf/stats.tbl.h")).unwrap();
    let row = regex::Regex::new(r"(?m)^(?:EARLY_)?RUNG\((\w+),").unwrap();
    let rungs = row.captures_iter(&rows).map(|row| row[1].to_string());
    // What places forks is no rung of a wakeup.
    let forks = ["fork_idle", "fork_busy"].map(str::to_string);
    let rungs: Vec<String> = rungs.chain(forks).collect();
    // The first would hide all others; the second has a panel of its own.
    let events = EVENTS.iter().map(|event| event.name.to_string());
    let events: Vec<String> = events
        .filter(|event| event != "periods" && event != "restarts")
        .collect();
    assert!(rungs.len() > 15 && events.len() > 5);
    let path = root.join("contrib/grafana-dashboard.json");
    let dashboard = std::fs::read_to_string(&path).unwrap();
    let instance = r#"instance=~\"$instance\""#;
    let with_rungs = with_queries(
        &dashboard,
        "Rungs: what gave the CPU",
        &queries(&rungs, "rate", &format!(r#"{instance},arm=~\"$arm\""#)),
    );
    let whole = with_queries(
        &with_rungs,
        "Events",
        &queries(&events, "increase", instance),
    );
    compare_file(&path, &whole);
}
