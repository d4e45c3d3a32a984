// SPDX-License-Identifier: GPL-2.0-only
//! A comparison from its first run to its last, on a simulated machine.

use crate::played::{Played, asked, header, lines, played, played_runs};
use anyhow::Result;
use scx_roost::ab::analysis;
use scx_roost::ab::child::Failure;
use scx_roost::ab::report::Report;
use scx_roost::ab::report::text::{Shown, text};
use scx_roost::ab::result::{FailedRun, Header, Recorded, Repetition, ResultFile};
use scx_roost::ab::run::{End, run};
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::{Against, Direction, Verdict};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const TWO: [&str; 2] = ["mainline", "roost"];

struct Folder {
    _folder: TempDir,
    path: PathBuf,
}

fn place() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    Folder {
        path: folder.path().join("result.jsonl"),
        _folder: folder,
    }
}

/// Runs from the beginning, or from where the file ends.
fn go(header: &Header, path: &Path, machine: &mut Played) -> (Result<End>, Vec<Repetition>) {
    let (mut file, mut recorded) = match path.exists() {
        true => ResultFile::resume(path, header).unwrap(),
        false => {
            let file = ResultFile::create(path, header).unwrap();
            (file, Recorded::new(header.clone()))
        }
    };
    let ended = run(&mut recorded, machine, &mut file, &|| false, &mut |_| ());
    assert_eq!(Recorded::read(path).unwrap(), recorded);
    (ended, recorded.runs)
}

fn verdicts(header: &Header, runs: Vec<Repetition>) -> Vec<Verdict> {
    let recorded = Recorded {
        runs,
        ..Recorded::new(header.clone())
    };
    let judged = analysis::judged(&recorded).unwrap();
    judged.iter().map(|j| j.verdict).collect()
}

#[test]
fn a_slow_variant_is_worse_and_one_that_is_the_same_is_not() {
    let header = header(&["mainline", "roost", "roy-v7"], Plan::Fixed(30));
    let mut machine = Played::new(1).slower("roy-v7", 1.05);
    machine.counter.insert("roost".into(), "wide_node");
    machine.counter.insert("roy-v7".into(), "prev_core");
    let (ended, runs) = go(&header, &place().path, &mut machine);
    assert_eq!((ended.unwrap(), runs.len()), (End::Done, 3 * (1 + 31)));
    assert_eq!((machine.times("begin"), machine.times("restore")), (1, 1));
    assert_eq!(machine.asked.last().unwrap(), "restore");
    let order: Vec<&String> = runs.iter().map(|r| &r.variant).collect();
    assert_eq!(order, machine.asked[1..97].iter().collect::<Vec<_>>());
    let found = verdicts(&header, runs);
    assert_eq!(found, [Verdict::Equivalent, Verdict::Worse]);
}

#[test]
fn what_is_different_and_never_acts_is_not_exercised() {
    let header = header(&["mainline", "mainline+prev_core=on"], Plan::Fixed(30));
    for (counter, verdict) in [
        (None, Verdict::NotExercised),
        (Some("sis_prev"), Verdict::NotExercised),
        (Some("prev_core"), Verdict::Equivalent),
    ] {
        let mut machine = Played::new(2);
        let named = counter.map(|c| ("mainline+prev_core=on".to_string(), c));
        machine.counter.extend(named);
        let (_, runs) = go(&header, &place().path, &mut machine);
        assert_eq!(verdicts(&header, runs), [verdict], "{counter:?}");
    }
}

/// A counter that moves in half of the runs may be due to other load on the machine.
#[test]
fn what_acts_now_and_then_is_not_exercised() {
    let header = header(&["mainline", "mainline+prev_core=on"], Plan::Fixed(30));
    let runs = played_runs(&header, 1);
    let own = |r: &Repetition| r.turn.is_some() && r.variant.contains("prev_core");
    let half = runs.iter().filter(|r| own(r)).count() / 2;
    let verdict_of = |moves: usize| {
        let mut runs = runs.clone();
        for run in runs.iter_mut().filter(|r| own(r)).take(moves) {
            run.counters.insert("prev_core".into(), 3);
        }
        verdicts(&header, runs)[0]
    };
    assert_eq!(verdict_of(1), Verdict::NotExercised);
    assert_eq!(verdict_of(half), Verdict::NotExercised);
    assert_eq!(verdict_of(half + 1), Verdict::Equivalent);
}

#[test]
fn the_counters_of_each_feature_exist() {
    for feature in scx_roost::policy::features::FEATURES {
        assert!(!feature.counters.is_empty(), "{}", feature.name);
        for counter in feature.counters.split_whitespace() {
            let known = scx_roost::wire::stats::ROWS
                .iter()
                .any(|r| r.name == counter);
            assert!(known, "{counter}");
        }
    }
}

#[test]
fn any_failure_is_reported_and_the_machine_restored() {
    type Case = (fn() -> Failure, &'static str);
    let failures: [Case; 3] = [
        (
            || Failure::TimedOut(Duration::from_secs(3)),
            "did not end within 3 s",
        ),
        (|| Failure::LeftBehind(Vec::new()), "left processes running"),
        (
            || Failure::Other(anyhow::anyhow!("roost does not start")),
            "roost does not start",
        ),
    ];
    for (failure, told) in failures {
        let header = header(&TWO, Plan::Fixed(6));
        let mut machine = Played::new(3);
        machine.fails = Some((5, failure));
        let place = place();
        let (ended, runs) = go(&header, &place.path, &mut machine);
        let error = format!("{:#}", ended.unwrap_err());
        assert!(
            error.starts_with("run 5 under variant ") && error.contains(told),
            "{error}"
        );
        assert!(error.contains("the 4 runs before it are in "), "{error}");
        assert_eq!(
            (runs.len(), machine.asked.last().unwrap().as_str()),
            (4, "restore")
        );
    }
}

/// A command that fails now and then is reported. A failure of the machine does not count as the
/// command's.
#[test]
fn a_repeated_run_is_reported() {
    let header = header(&TWO, Plan::Fixed(6));
    for (failure, times) in [
        (
            (|| Failure::TimedOut(Duration::from_secs(3))) as fn() -> Failure,
            2,
        ),
        (
            || Failure::Other(anyhow::anyhow!("roost does not start")),
            0,
        ),
    ] {
        let place = place();
        // The first run that counts, twice.
        for at in [3, 1] {
            let mut machine = Played::new(3);
            machine.fails = Some((at, failure));
            go(&header, &place.path, &mut machine).0.unwrap_err();
        }
        go(&header, &place.path, &mut Played::new(3)).0.unwrap();
        let recorded = Recorded::read(&place.path).unwrap();
        let again = Recorded::of_lines(&lines(&recorded)).unwrap();
        assert_eq!(again, recorded);
        let report = Report::new(&recorded).unwrap();
        assert_eq!(report.failed.values().sum::<usize>(), times);
        assert_eq!(report.failed.len(), times.min(1));
        let text = text(&report, Shown::default());
        let told = text.contains("of the runs under mainline failed and")
            || text.contains("of the runs under roost failed and");
        assert_eq!(told, times > 0, "{text}");
    }
    let text = "{\"failed\":1,\"variants\":[\"roost\"]}\n";
    let begun = serde_json::to_string(&header).unwrap();
    let error = Recorded::of_lines(&format!("{begun}\n{text}")).unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "line 2: it says that run 1 failed, expected run 0"
    );
}

#[test]
fn where_nothing_was_run_no_file_is_named() {
    let mut machine = Played::new(3);
    machine.fails = Some((1, || Failure::Stopped));
    machine.does_not_load = Some((1, || Failure::Other(anyhow::anyhow!("no luck"))));
    let (ended, _) = go(&header(&TWO, Plan::Fixed(6)), &place().path, &mut machine);
    let error = format!("{:#}", ended.unwrap_err());
    assert!(error.ends_with(" failed: no luck"), "{error}");
}

#[test]
fn a_number_that_is_not_printed_ends_it() {
    let mut header = header(&TWO, Plan::Fixed(6));
    header.metrics = vec![asked("regex:took ([0-9]+)", Direction::Lower)];
    let mut machine = Played::new(3);
    let (ended, runs) = go(&header, &place().path, &mut machine);
    let error = format!("{:#}", ended.unwrap_err());
    assert!(
        error.contains("the command's output has no match for 'took ([0-9]+)'"),
        "{error}"
    );
    assert_eq!((runs.len(), machine.times("restore")), (0, 1));
    header.metrics = vec![asked("migrations", Direction::Lower)];
    let (ended, _) = go(&header, &place().path, &mut Played::new(3));
    let error = format!("{:#}", ended.unwrap_err());
    assert!(
        error.contains("migrations cannot be measured here under variant"),
        "{error}"
    );
}

#[test]
fn numbers_that_are_printed_have_their_direction() {
    let mut header = header(&TWO, Plan::Fixed(8));
    header.metrics = vec![
        asked("json:/ops", Direction::Higher),
        asked("wall", Direction::Lower),
    ];
    let mut machine = Played::new(4).slower("roost", 1.1);
    machine.counter.insert("roost".into(), "wide_node");
    let (_, runs) = go(&header, &place().path, &mut machine);
    assert_eq!(verdicts(&header, runs), [Verdict::Worse, Verdict::Worse]);
}

#[test]
fn a_machine_that_refuses_is_left_alone() {
    let mut machine = Played::new(1);
    machine.refuses = true;
    let (ended, runs) = go(&header(&TWO, Plan::Fixed(6)), &place().path, &mut machine);
    assert_eq!(
        ended.unwrap_err().to_string(),
        "another scheduler is attached"
    );
    assert_eq!((runs.len(), machine.asked), (0, vec!["begin".to_string()]));
}

#[test]
fn a_failed_restore_is_reported() {
    let mut machine = Played::new(1);
    machine.stuck = true;
    let (ended, _) = go(&header(&TWO, Plan::Fixed(6)), &place().path, &mut machine);
    assert_eq!(
        format!("{:#}", ended.unwrap_err()),
        "the machine was not restored: scx_lavd does not end"
    );
    machine = Played::new(1);
    machine.stuck = true;
    machine.fails = Some((1, || Failure::TimedOut(Duration::from_secs(1))));
    let (ended, _) = go(&header(&TWO, Plan::Fixed(6)), &place().path, &mut machine);
    let error = format!("{:#}", ended.unwrap_err());
    assert!(
        error.contains("scx_lavd does not end") && error.contains("did not end within"),
        "{error}"
    );
}

#[test]
fn what_was_broken_off_goes_on_as_it_would_have() {
    let (header, place) = (header(&TWO, Plan::Fixed(6)), place());
    let (_, whole) = go(&header, &self::place().path, &mut Played::new(9));
    let mut machine = Played::new(9);
    machine.fails = Some((6, || Failure::Stopped));
    let (ended, runs) = go(&header, &place.path, &mut machine);
    assert_eq!((ended.unwrap(), runs.len()), (End::Stopped, 5));
    assert_eq!(
        (machine.times("restore"), machine.now.as_str()),
        (1, "eevdf")
    );
    // The last line is cut off, as after a crash of the machine.
    let text = fs::read_to_string(&place.path).unwrap();
    fs::write(&place.path, &text[..text.len() - 20]).unwrap();
    let mut machine = Played::new(10);
    let (ended, runs) = go(&header, &place.path, &mut machine);
    assert_eq!((ended.unwrap(), runs.len()), (End::Done, 2 * (1 + 7)));
    let order = |runs: &[Repetition]| {
        let of = |r: &Repetition| (r.number, r.turn, r.drawn, r.variant.clone());
        runs.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(order(&runs), order(&whole));
    assert_eq!(runs[..4], whole[..4]);
    // Nothing is made twice.
    assert_eq!(machine.asked.len(), 1 + 12 + 1);
}

/// Ctrl-C while a scheduler is loaded.
#[test]
fn a_stop_during_a_switch_is_obeyed() {
    let mut machine = Played::new(1);
    machine.does_not_load = Some((1, || Failure::Stopped));
    let (ended, runs) = go(&header(&TWO, Plan::Fixed(6)), &place().path, &mut machine);
    assert_eq!((ended.unwrap(), runs.len()), (End::Stopped, 0));
    assert_eq!(machine.asked.last().unwrap(), "restore");
}

#[test]
fn a_stop_between_runs_is_obeyed() {
    let (header, place) = (header(&TWO, Plan::Fixed(6)), place());
    let mut file = ResultFile::create(&place.path, &header).unwrap();
    let (mut machine, mut recorded) = (Played::new(1), Recorded::new(header));
    let ended = run(
        &mut recorded,
        &mut machine,
        &mut file,
        &|| true,
        &mut |_| (),
    );
    assert_eq!((ended.unwrap(), recorded.runs.len()), (End::Stopped, 0));
    assert_eq!(machine.asked, ["begin", "restore"]);
}

#[test]
fn auto_ends_at_the_first_look_that_settles_it() {
    let mut header = header(&TWO, Plan::Auto(40));
    // A margin so small that nothing is equivalent.
    header.rule.margin = 0.0001;
    let runs_of = |times: f64| {
        let mut machine = Played::new(7).slower("roost", times);
        machine.counter.insert("roost".into(), "wide_node");
        go(&header, &place().path, &mut machine).1
    };
    for (times, rounds, verdict) in [(1.2, 10, Verdict::Worse), (1.0, 40, Verdict::Inconclusive)] {
        let runs = runs_of(times);
        assert_eq!(runs.len(), 2 * (1 + 1 + rounds));
        assert_eq!(verdicts(&header, runs), [verdict]);
    }
}

#[test]
fn a_file_is_continued_only_on_request() {
    let (header, place) = (header(&TWO, Plan::Fixed(6)), place());
    let (ended, _) = go(&header, &place.path, &mut Played::new(1));
    assert_eq!(ended.unwrap(), End::Done);
    let later = Header {
        began: 7,
        ..header.clone()
    };
    assert!(ResultFile::resume(&place.path, &later).is_ok());
    let created = ResultFile::create(&place.path, &header).map(|_| ());
    assert!(
        created
            .unwrap_err()
            .to_string()
            .contains("exists: continue it with --resume")
    );
}

/// A turn whose run failed and was repeated counts as the worst. One that fails now and then may be
/// better nevertheless. Warm-ups do not count.
#[test]
fn failures_are_counted_where_they_belong() {
    let header = header(&TWO, Plan::Fixed(12));
    let mut machine = Played::new(1).slower("roost", 0.9);
    machine.counter.insert("roost".into(), "wide_node");
    let mut recorded = played(&header, &mut machine).unwrap().0;
    let own = recorded.runs.iter().filter(|r| r.variant == "roost");
    let numbers: Vec<usize> = own.map(|r| r.number).collect();
    let mut judged = |failed: &[usize]| {
        recorded.failed = failed
            .iter()
            .map(|failed| FailedRun {
                failed: *failed,
                variants: ["roost".to_string()],
            })
            .collect();
        let turns = (0..recorded.runs.len())
            .filter(|turn| recorded.failed_in(*turn) > 0)
            .count();
        let judged = analysis::judged(&recorded).unwrap().remove(0);
        (turns, judged.verdict, judged.against)
    };
    let (warmup, turns) = numbers.split_at(1);
    assert_eq!(judged(warmup), (0, Verdict::Better, None));
    assert_eq!(judged(&turns[3..4]), (1, Verdict::Better, None));
    let withheld = (turns.len(), Verdict::Inconclusive, Some(Against::Failures));
    assert_eq!(judged(turns), withheld);
}
