// SPDX-License-Identifier: GPL-2.0-only
//! The results of a suite: all of its comparisons are corrected together.

use crate::noise::{Noise, compared};
use crate::played::{Played, asked, header, played};
use clap::Parser;
use scx_roost::ab::analysis::{self, judged};
use scx_roost::ab::args::AbArgs;
use scx_roost::ab::report::Report;
use scx_roost::ab::report::closing::Closing;
use scx_roost::ab::result::{Header, Recorded, Repetition};
use scx_roost::ab::stats::plan::{MAX_AUTO, Plan};
use scx_roost::ab::stats::verdict::{Direction, Verdict, settled};
use scx_roost::ab::tasks::{no_equivalence, too_few};
use std::collections::BTreeMap;

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: AbArgs,
}

const TWO: [&str; 2] = ["mainline", "mainline+slice-us=1000"];

fn recorded_as(header: &Header, slow: f64, seed: u64) -> Recorded {
    let mut machine = Played::new(seed).slower(TWO[1], slow);
    played(header, &mut machine).unwrap().0
}

/// A workload of a suite with so many comparisons.
fn of_suite(suite: usize, blocks: usize, slow: f64, seed: u64) -> Recorded {
    let mut header = header(&TWO, Plan::Fixed(blocks));
    header.rule.suite = suite;
    recorded_as(&header, slow, seed)
}

fn closing(all: &[Recorded]) -> Closing {
    let reports = all.iter().map(Report::new).collect::<Result<Vec<_>, _>>();
    Closing::new(&reports.unwrap(), Vec::new())
}

#[test]
fn one_workload_says_less_among_several() {
    // If all of six blocks agree, p is 1 in 32.
    let all = [(1.1, 1), (1.1, 2), (1.0, 3)].map(|(slow, seed)| of_suite(3, 6, slow, seed));
    let closing = closing(&all);
    for row in &closing.rows[..2] {
        assert_eq!(row.judged.verdict, Verdict::Inconclusive);
        assert!((row.judged.p_adjusted - 3.0 / 32.0).abs() < 1e-9, "{row:?}");
    }
    // Its own report says the same.
    let alone = judged(&all[0].header, &all[0].runs, &[]).unwrap();
    assert_eq!(alone[0], closing.rows[0].judged);
    let text = closing.text();
    assert!(
        text.starts_with(
            "\nThe suite: 3 comparisons, corrected together (over workloads, variants and metrics)"
        ),
        "{text}"
    );
    assert!(text.contains("inconclusive  wall"), "{text}");
}

/// Each workload counts once, by its first metric, and a metric that is better when higher is
/// turned: 1.1 times the time and 1 / 1.1 of the operations are the same.
#[test]
fn the_geometric_mean_is_of_ratios_below_one_where_it_is_better() {
    let mut all = [(1.21, 1), (1.0, 2), (1.21, 3)].map(|(slow, seed)| of_suite(3, 30, slow, seed));
    let ops = asked("json:/ops", Direction::Higher);
    all[2].header.metrics.insert(0, ops);
    for run in &mut all[2].runs {
        let ops = 1000.0 / run.values["wall"];
        run.values.insert("json:/ops".to_string(), ops);
    }
    let closing_of_all = closing(&all);
    let [mean] = closing_of_all.means.as_slice() else {
        panic!("one variant is compared");
    };
    assert_eq!((mean.variant.as_str(), mean.workloads), (TWO[1], 3));
    let right = 1.21_f64.powf(2.0 / 3.0);
    assert!((mean.ratio / right - 1.0).abs() < 0.003, "{mean:?}");
    let json = serde_json::to_value(&closing_of_all).unwrap();
    assert_eq!(json["means"][0]["workloads"], 3);
    let text = closing_of_all.text();
    let (_, line) = text.split_once("less is better; not tested\n").unwrap();
    assert!(line.starts_with(&format!("  {}   +13.", TWO[1])), "{text}");
    assert!(line.contains(" %  3 workloads\n"), "{text}");
    // A difference has no ratio, and one workload is no mean.
    for run in &mut all[1].runs {
        run.values.insert("wall".to_string(), 0.0);
    }
    assert_eq!(closing(&all).means[0].workloads, 2);
    assert!(closing(&all[..2]).means.is_empty());
}

#[test]
fn what_is_clear_stays_so() {
    let all = [of_suite(2, 30, 1.1, 1), of_suite(2, 30, 1.0, 2)];
    let rows = closing(&all).rows;
    let verdicts: Vec<Verdict> = rows.iter().map(|r| r.judged.verdict).collect();
    assert_eq!(verdicts, [Verdict::Worse, Verdict::Equivalent]);
}

/// Seven workloads without a difference: a suite reports one no more often than a single comparison
/// does.
#[test]
fn a_suite_errs_as_seldom_as_a_comparison() {
    const SUITES: u64 = 1000;
    let mut plan = header(&TWO, Plan::Fixed(12));
    (plan.rule.suite, plan.rule.margin, plan.warmups) = (7, 0.0001, 0);
    let one = |seed: u64| {
        let header = scx_roost::ab::result::Header {
            seed,
            ..plan.clone()
        };
        let values = compared(Noise::Skewed, &[1.0; 2], 12, seed);
        let run = |number: usize| {
            let turn = header.order()[number];
            let value = values[turn.variant][turn.block.unwrap()];
            Repetition {
                number,
                block: turn.block,
                variant: TWO[turn.variant].to_string(),
                values: BTreeMap::from([("wall".to_string(), value)]),
                ..Repetition::default()
            }
        };
        let runs = (0..24).map(run).collect();
        Recorded {
            header,
            runs,
            failed: Vec::new(),
            asked: None,
        }
    };
    let differs = |v: Verdict| matches!(v, Verdict::Better | Verdict::Worse);
    let mut suites = 0;
    for suite in 0..SUITES {
        let all: Vec<Recorded> = (0..7).map(|at| one(suite * 7 + at)).collect();
        let rows = closing(&all).rows;
        suites += u64::from(rows.iter().any(|r| differs(r.judged.verdict)));
    }
    println!("{suites} of {SUITES}");
    // 5 % and three standard deviations of the count. Seven tests at 5 % each would give 30 %.
    assert!((10..=70).contains(&suites), "{suites}");
}

/// As with `-n auto`: a workload ends at the look that settles it.
fn until_settled(header: &Header, values: &[Vec<f64>]) -> Recorded {
    let run = |number: usize| {
        let turn = header.order()[number];
        let value = values[turn.variant][turn.block.unwrap()];
        Repetition {
            number,
            block: turn.block,
            variant: header.variants[turn.variant].clone(),
            values: BTreeMap::from([("wall".to_string(), value)]),
            ..Repetition::default()
        }
    };
    let mut runs: Vec<Repetition> = Vec::new();
    for blocks in header.rule.plan.times() {
        runs.extend((runs.len()..header.design().runs(blocks)).map(run));
        if settled(&judged(header, &runs, &[]).unwrap()) {
            break;
        }
    }
    let header = header.clone();
    Recorded {
        header,
        runs,
        failed: Vec::new(),
        asked: None,
    }
}

/// Runs suites of seven workloads. `times`: how many times as slow the second variant is. Returns
/// the number of suites whose table has a difference, and the number of such rows.
fn suites_of_auto(suites: u64, suite: usize, times: f64) -> (u64, usize) {
    let mut plan = header(&TWO, Plan::Auto(MAX_AUTO));
    (plan.rule.margin, plan.warmups) = (0.0001, 0);
    plan.rule.suite = suite;
    let differs = |v: Verdict| matches!(v, Verdict::Better | Verdict::Worse);
    let (mut told, mut rows) = (0, 0);
    for at in 0..suites {
        let one = |workload: u64| {
            let seed = at * 7 + workload;
            let header = Header {
                seed,
                ..plan.clone()
            };
            until_settled(
                &header,
                &compared(Noise::Skewed, &[1.0, times], MAX_AUTO, seed),
            )
        };
        let all: Vec<Recorded> = (0..7).map(one).collect();
        let closing = closing(&all).rows;
        let differ = closing.iter().filter(|r| differs(r.judged.verdict));
        let differ = differ.count();
        told += u64::from(differ > 0);
        rows += differ;
    }
    (told, rows)
}

#[test]
fn a_suite_that_looks_early_errs_as_seldom_as_a_comparison() {
    const SUITES: u64 = 1000;
    let (told, _) = suites_of_auto(SUITES, 7, 1.0);
    println!("{told} of {SUITES}");
    assert!(told <= 70, "{told}");
}

#[test]
fn a_suite_that_looks_early_finds_what_is_there() {
    const SUITES: u64 = 20;
    let (_, rows) = suites_of_auto(SUITES, 7, 1.05);
    println!("{rows} of {}", SUITES * 7);
    assert!(rows >= 137, "{rows}");
}

#[test]
fn a_workload_of_a_suite_is_run_until_the_suite_can_tell() {
    let mut plan = header(&TWO, Plan::Auto(MAX_AUTO));
    let blocks = |plan: &Header| {
        let all = recorded_as(plan, 1.1, 1);
        analysis::blocks(&all.header, &all.runs)
    };
    assert_eq!(blocks(&plan), 10);
    plan.rule.suite = 7;
    assert_eq!(blocks(&plan), 15);
}

#[test]
fn too_few_blocks_are_reported_before_and_after() {
    let typed = |n: &str, variants: &str| {
        let words = format!("ab --suite placement -n {n} --variant mainline {variants}");
        let typed = Typed::parse_from(words.split(' '));
        typed.args.tasks("roost".into(), BTreeMap::new()).unwrap()
    };
    let told = too_few(&typed("8", "--variant roost"));
    assert_eq!(
        told.as_deref(),
        Some(
            "8 blocks are too few to find a difference in 7 comparisons, whatever is measured: give -n 9 or more"
        )
    );
    for (n, enough) in [("9", true), ("auto", true), ("auto:24", true), ("6", false)] {
        assert_eq!(
            too_few(&typed(n, "--variant roost")).is_none(),
            enough,
            "{n}"
        );
    }
    let note = no_equivalence(&typed("28", "--variant roost")).unwrap();
    assert!(
        note.ends_with("'equivalent' needs 29 (-n 29 or -n auto)"),
        "{note}"
    );
    for n in ["29", "auto"] {
        assert_eq!(no_equivalence(&typed(n, "--variant roost")), None);
    }
    let three = typed("auto", "--variant roost --variant roy-v7");
    assert!(three.iter().all(|task| task.header.rule.suite == 14));
    assert!(
        typed("12", "--variant roost")
            .iter()
            .all(|task| task.header.rule.suite == 7)
    );
    // Six blocks are too few for two workloads, though enough for one.
    let two = |blocks: usize| [1, 2].map(|seed| of_suite(2, blocks, 1.1, seed));
    let text = closing(&two(6)).text();
    assert_eq!(
        text.matches("inconclusive  wall: 6 blocks are too few")
            .count(),
        2,
        "{text}"
    );
    let text = closing(&two(7)).text();
    assert!(
        text.contains("worse") && !text.contains("too few"),
        "{text}"
    );
}
