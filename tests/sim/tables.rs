// SPDX-License-Identifier: GPL-2.0-only
//! The published rows, as they are recorded.

use scx_roost::sim::table::{self, Demand, Effort, Figure, Frozen, Table, TablePlan, Verdict};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const TABLES: &str = include_str!("../../src/sim/data/tables.tsv");

/// The uses of a row.
const USES: [&str; 9] = [
    "calibrates",
    "effect",
    "control",
    "tail",
    "summary",
    "bound",
    "foreign",
    "context",
    "sealed",
];

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let columns = text.lines().next().unwrap().split('\t').count();
    text.lines().skip(1).map(move |line| {
        let row: Vec<&str> = line.split('\t').collect();
        assert_eq!(row.len(), columns, "{line}");
        row
    })
}

fn number(text: &str) -> Option<f64> {
    (!text.is_empty()).then(|| {
        text.parse()
            .unwrap_or_else(|_| panic!("{text:?} is no number"))
    })
}

/// The effect and the gain follow from the two values.
#[test]
fn published_rows_agree_with_themselves() {
    let mut names = BTreeSet::new();
    for row in rows(TABLES) {
        let (source, name, better) = (row[0], row[1], row[6]);
        assert!(
            names.insert((source, name, row[8])),
            "{source} {name} is there twice"
        );
        assert!(
            ["lower", "higher", "none"].contains(&better),
            "{source} {name}: {better}"
        );
        assert!(USES.contains(&row[14]), "{name}: {}", row[14]);
        assert!(!row[15].is_empty(), "{source} {name}: which message?");
        let values = (
            number(row[9]),
            number(row[10]),
            number(row[11]),
            number(row[12]),
        );
        let (Some(base), Some(variant), Some(effect), Some(gain)) = values else {
            continue;
        };
        let computed = (variant / base - 1.0) * 100.0;
        assert!(
            (computed - effect).abs() < 0.06,
            "{source} {name}: {effect} %, computed {computed:.2}"
        );
        let sign = if better == "lower" { -1.0 } else { 1.0 };
        assert!(
            (gain - sign * effect).abs() < 0.01,
            "{source} {name}: gain {gain}, effect {effect}"
        );
    }
    assert!(names.len() > 100);
}

/// A row is run, or the reason is given. Only rows of these uses may be left out.
#[test]
fn every_row_is_run_or_says_why_not() {
    let whys = table::not_modelled().unwrap();
    for (source, row, why) in whys {
        let used = rows(TABLES)
            .find(|r| r[0] == source && r[1] == row)
            .map(|r| r[14])
            .unwrap();
        assert!(
            ["tail", "summary", "foreign", "context"].contains(&used),
            "{source} {row}: {why}"
        );
        assert!(!why.is_empty());
    }
}

fn like(effect: f64, near: f64) -> Demand {
    Demand::Like { effect, near }
}

/// A value of a single run, whose error is unknown.
fn one(value: f64) -> Figure {
    Figure { value, error: None }
}

#[test]
fn a_verdict_is_about_sign_and_size() {
    for (effect, near, simulated, verdict) in [
        (-10.0, 8.0, -10.0, Verdict::Ok),
        (-10.0, 8.0, -2.0, Verdict::Ok),
        (-10.0, 8.0, -1.9, Verdict::Size),
        (-10.0, 8.0, -18.1, Verdict::Size),
        (-10.0, 8.0, 0.1, Verdict::Sign),
        (-10.0, 8.0, 0.0, Verdict::Sign),
        // Near the published value, but with the other sign.
        (-3.0, 8.0, 1.0, Verdict::Sign),
        (5.7, 8.0, 0.5, Verdict::Ok),
        (5.7, 8.0, -0.5, Verdict::Sign),
        (5.7, 5.0, 0.5, Verdict::Size),
    ] {
        assert_eq!(
            like(effect, near).judge(one(simulated), 1),
            verdict,
            "{effect}: {simulated}"
        );
    }
    for (simulated, verdict) in [
        (0.0, Verdict::Ok),
        (-2.0, Verdict::Ok),
        (2.1, Verdict::Effect),
    ] {
        let judged = Demand::None.judge(one(simulated), 1);
        assert_eq!(judged, verdict, "{simulated}");
    }
}

#[test]
fn an_effect_near_a_limit_is_undecided() {
    let of = |runs, value, error| like(-10.0, 8.0).undecided(Figure { value, error }, runs);
    assert_eq!(of(100, -10.0, Some(1.0)), None);
    // 1 point from a limit while two standard errors are 2: four times the runs are needed.
    assert_eq!(of(100, -3.0, Some(1.0)), Some(400));
    assert_eq!(of(100, -1.0, Some(1.0)), Some(400));
    assert_eq!(of(100, -3.0, Some(0.4)), None);
    assert_eq!(of(100, -3.0, None), None);
}

/// Student's t is 3.2 for four runs and 12.7 for two; for many runs it is two.
#[test]
fn of_few_runs_little_is_known() {
    let of = |runs, value, error| like(-10.0, 8.0).undecided(Figure { value, error }, runs);
    assert_eq!(of(4, -10.0, Some(2.5)), None);
    assert_eq!(of(2, -10.0, Some(0.6)), None);
    // For 18 runs with the same scatter t is 2.11 and the error 2 / sqrt(18).
    assert_eq!(of(4, -3.0, Some(1.0)), Some(18));
    assert_eq!(of(4, -3.0, Some(0.4)), Some(5));
    assert_eq!(of(2, -10.0, Some(1.0)), Some(3));
}

/// Where a sign is required, the effect must have it, and not by chance.
#[test]
fn an_effect_of_nothing_has_no_sign() {
    let of = |value, error| {
        let simulated = Figure {
            value,
            error: Some(error),
        };
        let demand = like(5.71, 8.0);
        (
            demand.judge(simulated, 100),
            demand.undecided(simulated, 100),
        )
    };
    assert_eq!(of(4.0, 0.5), (Verdict::Ok, None));
    // It is known that there is no effect.
    assert_eq!(of(0.02, 0.17), (Verdict::Sign, None));
    assert_eq!(of(0.0, 0.0), (Verdict::Sign, None));
    // Nothing is known.
    assert_eq!(of(2.0, 2.0), (Verdict::Sign, Some(400)));
    assert_eq!(of(1.0, 0.4), (Verdict::Ok, None));
}

/// One short run of each variant.
fn short(source: &str) -> Table {
    let plan = TablePlan {
        source: source.to_string(),
        effort: Effort {
            seeds: 1..2,
            most_seeds: None,
            short: true,
            params: Vec::new(),
        },
        beside: true,
        changes: false,
        predicted: false,
    };
    table::tables(&plan).unwrap().remove(0)
}

/// Rows to which a parameter was fitted are marked, and also counted separately.
#[test]
fn calibrating_rows_are_marked() {
    let table = short("003");
    let text = table.text();
    let marked = text.lines().filter(|l| l.contains(" (calibrates)"));
    assert_eq!(marked.count(), 4);
    // The source pinned its threads itself.
    assert!(table.beside.iter().all(|c| c.pinned.is_some()));
}

/// Short runs are start-up transients: no verdict, no score.
#[test]
fn short_runs_are_no_results() {
    let table = short("001");
    assert!(table.score.is_none());
    let text = table.text();
    assert!(!text.contains("miss") && !text.contains(" ok"), "{text}");
    assert!(text.contains("no result"), "{text}");
}

/// Every source is also run with pinned threads, if there is a core for each thread.
#[test]
fn a_pinned_task_has_a_core() {
    let table = short("000");
    for c in &table.beside {
        assert_eq!(c.crowded, c.pinned.is_none(), "{c:?}");
    }
    assert!(table.beside.iter().any(|c| c.crowded));
    assert!(table.text().contains("\nPinned -: the base keeps"));
}

/// What `scripts/freeze` prints.
fn freeze(args: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("scripts/freeze");
    let output = Command::new(script).args(args).output().unwrap();
    assert!(output.status.success(), "freeze {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

/// A change of a parameter, a workload or a row's substitute after the freeze must be recorded in
/// data/changes.tsv: `scripts/freeze --change` does that.
#[test]
fn parameters_are_frozen() {
    let frozen = Frozen::read().unwrap();
    assert!(
        !frozen.unlogged,
        "parameters are {}, and changes.tsv does not tell of that",
        frozen.hash
    );
}

/// So must a change of a rule without a parameter that moves rows of tests/sim/shown.
#[test]
fn moved_rows_are_reported() {
    let frozen = Frozen::read().unwrap();
    let last = frozen.changes.last().unwrap();
    let told = "rows of tests/sim/shown have moved, and changes.tsv does not tell of that";
    assert_eq!(freeze(&["--shown"]), last.shown, "{told}");
}

/// A row moves only if its simulated value changes: not with its verdict, its note or its place,
/// and not if it is not modelled.
#[test]
fn a_row_moves_with_its_value() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("moved");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let before = "\
rows        published    se  simulated  se     off  verdict
x265/roy-v7    -8.01%  0.25    -13.74%   -   -5.73  ok [2]
tiles/bmq      -1.00%  0.10          -   -       -  not modelled: bmq
tiles          -1.00%  0.10     +0.00%   -   +1.00  ok
";
    let after = "\
rows      published  se  simulated  se   off  verdict
x265/roy-v7  -8.01%  0.25  -13.74%  -  -5.73  miss (size) [1]
tiles/bmq  -1.00%  0.10  -  -  -  not modelled: bmq
tiles  -1.00%  0.10  +0.01%  -  +1.01  ok
new  -1.00%  0.10  +0.01%  -  +1.01  ok
";
    for source in ["000", "003"] {
        write(&format!("before/{source}.txt"), before);
    }
    write("after/000.txt", before);
    write("after/003.txt", after);
    let path = |name| folder.join(name).to_str().unwrap().to_string();
    let (before, after) = (path("before"), path("after"));
    assert_eq!(freeze(&["--moved", &before, &after]), "003:new\n003:tiles");
    let shown = |folder: &str| freeze(&["--shown", folder]);
    assert_ne!(shown(&before), shown(&after));
}

/// In the generated documents at full length, each row that counts and misses has a note.
#[test]
fn a_miss_is_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/simulator");
    let mut misses = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| line.contains("| miss (")) {
            assert!(line.ends_with("] |"), "{}: {line}", path.display());
            misses += 1;
        }
    }
    assert!(misses > 0);
}

/// SHA256 of docs/simulator/predictions names each prediction and each signature as it was.
#[test]
fn predictions_are_as_they_were_made() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/simulator/predictions");
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", "SHA256"]);
    let output = check.current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(folder.join("SHA256")).unwrap();
    for file in fs::read_dir(&folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let made = name.ends_with(".tsv") || name.ends_with(".sig");
        assert!(!made || text.contains(&format!("  {name}\n")), "{name}");
    }
}
