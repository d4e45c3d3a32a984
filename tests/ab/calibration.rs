// SPDX-License-Identifier: GPL-2.0-only
//! How often a verdict is wrong, and how often an effect is found: docs/explanation/calibration.md,
//! which `ROOST_DRAW=1 cargo test --release --test ab -- calibration` writes.

use crate::candidates::{blocks, shuffled};
use crate::noise::{self, Heat, Noise, Workload};
use scx_roost::ab::stats::plan::{MAX_AUTO, Plan};
use scx_roost::ab::stats::verdict::{
    Compared, Direction, Judged, Rule, Step, Verdict, judge, settled,
};
use std::fmt::Write;
use std::thread;

const TIMES: u64 = 500;
/// 5 % of that, and three standard deviations of the count.
const ALLOWED: u64 = 39;
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/docs/explanation/calibration.md"
);

const NORMAL: Noise = Noise::Normal(0.03);
const NONE: Heat = Heat {
    most: 0.0,
    decay: 0.0,
};

/// As a real comparison: it ends at the first look at which it is settled.
fn run(workload: Workload, rule: &Rule, seed: u64) -> Vec<Judged> {
    let points = noise::points(workload, rule.plan.max(), seed);
    let compared: Vec<Compared> = points
        .iter()
        .map(|points| Compared {
            points,
            numbers: &[],
            better: Direction::Lower,
            exercised: true,
            step: Step::Part(0.0),
        })
        .collect();
    let times = rule.plan.times().into_iter();
    let mut judged = times.map(|rounds| judge(&compared, rounds, workload.factors.len(), rule));
    let mut last = judged.next().unwrap();
    while !settled(&last)
        && let Some(next) = judged.next()
    {
        last = next;
    }
    last
}

fn fixed(rounds: usize) -> Rule {
    Rule::new(Plan::Fixed(rounds))
}

/// How many comparisons have one of these verdicts.
fn count(workload: Workload, rule: &Rule, these: &[Verdict]) -> u64 {
    let has = |seed: &u64| {
        let judged = run(workload, rule, *seed);
        judged.iter().any(|j| these.contains(&j.verdict))
    };
    (0..TIMES).filter(has).count() as u64
}

const DIFFERENT: [Verdict; 2] = [Verdict::Better, Verdict::Worse];

#[derive(Clone, Copy)]
enum Design {
    Ours,
    /// Settled or not.
    Blocks(bool),
    Shuffled,
}

impl Design {
    /// How many comparisons are told a difference.
    fn told(self, workload: Workload, rounds: usize) -> u64 {
        let p = |seed: u64| match self {
            Design::Ours => unreachable!(),
            Design::Blocks(settled) => blocks(workload, rounds, settled, seed),
            Design::Shuffled => shuffled(workload, rounds, seed),
        };
        match self {
            Design::Ours => count(workload, &fixed(rounds), &DIFFERENT),
            _ => (0..TIMES).filter(|seed| p(*seed) <= 0.05).count() as u64,
        }
    }
}

/// A row: its name, and what is compared.
type Row = (String, Workload<'static>);

/// The counts of each design in each row; rows are worked out side by side.
fn table(rows: &[Row], columns: &[(Design, usize)]) -> Vec<Vec<u64>> {
    let cells = |(_, workload): &Row| -> Vec<u64> {
        let cell = |(design, rounds): &(Design, usize)| design.told(*workload, *rounds);
        columns.iter().map(cell).collect()
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let parts = rows.chunks(rows.len().div_ceil(cores));
        let parts: Vec<_> = parts
            .map(|rows| scope.spawn(move || rows.iter().map(cells).collect::<Vec<_>>()))
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    })
}

fn markdown(head: &str, rows: &[Row], counts: &[Vec<u64>]) -> String {
    let columns = head.matches('|').count() - 1;
    let mut text = format!("{head}\n|{}\n", "---|".repeat(columns));
    for ((name, _), counts) in rows.iter().zip(counts) {
        let part = |n: &u64| format!("{:.1}", 100.0 * *n as f64 / TIMES as f64);
        let cells: Vec<String> = counts.iter().map(part).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    text
}

/// Equal variants whose runs vary so.
fn nulls() -> Vec<Row> {
    let kinds = [
        ("normal, CV 3 %", NORMAL),
        ("each like the one before (0.9)", Noise::Following(0.9)),
        ("slower by 20 % at the end", Noise::Drift(0.2)),
        ("throttled from some run on", Noise::Throttled),
        ("every second run slower by 5 %", Noise::Alternating),
        ("one in seven slower by 20 %", Noise::TwoModes),
        ("one in ten five times as long", Noise::Outliers),
        ("lognormal, CV 100 %", Noise::Wild),
        ("counts, Poisson of 2", Noise::Poisson(2.0)),
        ("nine in ten are 0", Noise::Zeros),
        ("a machine that others use", Noise::Shared),
        ("whole numbers near 40", Noise::Coarse),
    ];
    let row = |(name, noise): (&str, Noise)| {
        let workload = Workload {
            noise,
            heat: NONE,
            factors: &[1.0; 2],
        };
        (name.to_string(), workload)
    };
    kinds.map(row).to_vec()
}

/// Equal variants, of which one leaves heat behind; CV 1 %.
fn heats() -> Vec<Row> {
    let row = |next: f64, decay: f64, noise: Noise, with: &str| {
        let heat = Heat {
            most: next / (1.0 - decay),
            decay,
        };
        let workload = Workload {
            noise,
            heat,
            factors: &[1.0; 2],
        };
        let next = 100.0 * next;
        (
            format!("{next:.0} %, of which {decay} stays per run{with}"),
            workload,
        )
    };
    let cv1 = Noise::Normal(0.01);
    let mut rows = Vec::new();
    for next in [0.01, 0.03, 0.05, 0.10] {
        rows.extend([0.3, 0.5, 0.8, 0.9].map(|decay| row(next, decay, cv1, "")));
    }
    let drift = |decay| row(0.03, decay, Noise::Drift(0.2), "; drift of 20 %");
    rows.extend([0.5, 0.8].map(drift));
    // What a run leaves stays nearly for ever: a leak, a journal that grows.
    rows.push(row(0.03, 0.99, cv1, ""));
    rows
}

/// Variants that differ.
fn effects() -> Vec<Row> {
    let row = |name: &str, noise, heat, factors| {
        let workload = Workload {
            noise,
            heat,
            factors,
        };
        (name.to_string(), workload)
    };
    let hot = Heat {
        most: 0.06,
        decay: 0.5,
    };
    vec![
        row("2 %, CV 3 %", NORMAL, NONE, &[1.0, 1.02]),
        row("5 %, CV 3 %", NORMAL, NONE, &[1.0, 1.05]),
        row("10 %, CV 3 %", NORMAL, NONE, &[1.0, 1.10]),
        row("5 %, CV 10 %", Noise::Normal(0.1), NONE, &[1.0, 1.05]),
        row(
            "5 %, CV 3 %, drift of 20 %",
            Noise::Drift(0.2),
            NONE,
            &[1.0, 1.05],
        ),
        row("5 %, CV 3 %, heat of 3 %", NORMAL, hot, &[1.0, 1.05]),
        row(
            "5 %, one in ten five times as long",
            Noise::Outliers,
            NONE,
            &[1.0, 1.05],
        ),
        row(
            "counts, Poisson of 2 and 4",
            Noise::Poisson(2.0),
            NONE,
            &[1.0, 2.0],
        ),
        row(
            "5 % in whole numbers near 40",
            Noise::Coarse,
            NONE,
            &[1.0, 1.05],
        ),
    ]
}

/// The page with other tables, in their order.
fn with_tables(page: &str, tables: [String; 3]) -> String {
    let (mut text, mut tables) = (String::new(), tables.into_iter());
    let is_table = |line: &str| line.starts_with('|');
    let lines: Vec<&str> = page.lines().collect();
    for part in lines.chunk_by(|a, b| is_table(a) == is_table(b)) {
        match is_table(part[0]) {
            true => text += &tables.next().unwrap(),
            false => text.extend(part.iter().flat_map(|line| [line, "\n"])),
        }
    }
    assert!(tables.next().is_none(), "{PAGE} has too few tables");
    text
}

/// The figures of a page, without those that differ by rounding of the last digit between machines.
fn figures(page: &str) -> Vec<f64> {
    let cells = page.split('|').filter_map(|cell| cell.trim().parse().ok());
    cells.collect()
}

#[test]
fn errors_and_finds_are_as_the_page_says() {
    let (ours, settled, shuffled) = (Design::Ours, Design::Blocks(true), Design::Shuffled);
    let errors = [
        (ours, 6),
        (ours, 12),
        (ours, 30),
        (settled, 12),
        (settled, 30),
        (shuffled, 12),
        (shuffled, 30),
    ];
    let power: Vec<(Design, usize)> = [ours, Design::Blocks(false), shuffled]
        .into_iter()
        .flat_map(|design| [6, 12, 30].map(|rounds| (design, rounds)))
        .collect();
    let of_errors = |rows: &[Row]| {
        let counts = table(rows, &errors);
        for ((name, _), counts) in rows.iter().zip(&counts) {
            assert!(
                counts[..3].iter().all(|n| *n <= ALLOWED),
                "{name}: {counts:?}"
            );
        }
        let head = "| | ours 6 | 12 | 30 | settled blocks 12 | 30 | shuffled 12 | 30 |";
        markdown(head, rows, &counts)
    };
    let (nulls, heats, effects) = (of_errors(&nulls()), of_errors(&heats()), effects());
    let found = table(&effects, &power);
    let (plain, drift) = (&found[1], &found[4]);
    assert!(3 * drift[1] >= 2 * plain[1], "{plain:?} {drift:?}");
    let head = "| | ours 6 | 12 | 30 | blocks 6 | 12 | 30 | shuffled 6 | 12 | 30 |";
    let then = std::fs::read_to_string(PAGE).unwrap();
    let page = with_tables(&then, [nulls, heats, markdown(head, &effects, &found)]);
    if std::env::var_os("ROOST_DRAW").is_some() {
        std::fs::write(PAGE, page).unwrap();
        return;
    }
    let (now, then) = (figures(&page), figures(&then));
    assert_eq!(now.len(), then.len());
    let far = now.iter().zip(&then).find(|(a, b)| (*a - *b).abs() > 1.0);
    assert_eq!(far, None, "ROOST_DRAW=1 writes {PAGE} anew");
}

#[test]
fn five_equal_variants_and_five_looks_err_no_more_often() {
    let normal = |factors| Workload {
        noise: NORMAL,
        heat: Heat {
            most: 0.1,
            decay: 0.5,
        },
        factors,
    };
    for (factors, plan) in [
        (&[1.0; 5][..], Plan::Fixed(12)),
        (&[1.0; 3], Plan::Fixed(30)),
        (&[1.0; 2], Plan::Auto(MAX_AUTO)),
        (&[1.0; 4], Plan::Auto(MAX_AUTO)),
    ] {
        let found = count(normal(factors), &Rule::new(plan), &DIFFERENT);
        println!("{} variants, {plan:?}: {found} of {TIMES}", factors.len());
        assert!(found <= ALLOWED, "{plan:?}: {found}");
    }
}

fn of(factor: f64) -> [f64; 2] {
    [1.0, factor]
}

#[test]
fn what_differs_by_the_margin_is_seldom_within_it_and_what_is_equal_often() {
    for plan in [Plan::Fixed(30), Plan::Auto(MAX_AUTO)] {
        let rule = Rule {
            margin: 0.05,
            ..Rule::new(plan)
        };
        let within = |factor: f64| {
            let factors = of(factor);
            let workload = Workload {
                noise: NORMAL,
                heat: NONE,
                factors: &factors,
            };
            let told = |seed: &u64| run(workload, &rule, *seed)[0].within_margin;
            let found = (0..TIMES).filter(told).count() as u64;
            println!("{plan:?}, {factor:.3}: {found} of {TIMES}");
            found
        };
        assert!(within(1.05) <= ALLOWED && within(1.0 / 1.05) <= ALLOWED);
        assert!(within(1.0) >= 450);
    }
}

/// More runs take no difference back: what was "worse" becomes "worse by less than the margin".
#[test]
fn no_difference_becomes_equivalence_with_more_runs() {
    let factors = of(1.01);
    let workload = Workload {
        noise: Noise::Normal(0.01),
        heat: NONE,
        factors: &factors,
    };
    let told = |rounds: usize| {
        let equal = count(workload, &fixed(rounds), &[Verdict::Equivalent]);
        let worse = count(workload, &fixed(rounds), &[Verdict::Worse]);
        println!("{rounds}: {equal} equivalent, {worse} worse");
        (equal, worse)
    };
    let all = [12, 30, 60, 120].map(told);
    assert!(all.is_sorted_by(|a, b| a.1 <= b.1), "{all:?}");
    assert!(all[3].1 > 490 && all[3].0 < 10, "{all:?}");
}

#[test]
fn intervals_cover() {
    let factors = of(1.05);
    for (noise, heat) in [
        (NORMAL, NONE),
        (Noise::TwoModes, NONE),
        (Noise::Drift(0.2), NONE),
        (
            NORMAL,
            Heat {
                most: 0.1,
                decay: 0.8,
            },
        ),
    ] {
        let workload = Workload {
            noise,
            heat,
            factors: &factors,
        };
        let covers = |seed: &u64| {
            let interval = run(workload, &fixed(12), *seed)[0].interval.unwrap();
            interval.contains(1.05)
        };
        let covered = (0..TIMES).filter(covers).count() as u64;
        println!("{noise:?}: {covered} of {TIMES}");
        assert!(covered >= TIMES - ALLOWED, "{noise:?}: {covered}");
    }
}
