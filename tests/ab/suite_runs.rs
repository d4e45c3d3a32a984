// SPDX-License-Identifier: GPL-2.0-only
//! A suite continues after a workload that fails, and reports it; and the progress messages.

use crate::played::{Played, header, lines, played};
use clap::Parser;
use scx_roost::ab::args::AbArgs;
use scx_roost::ab::child::Failure;
use scx_roost::ab::progress::{Among, Shown, outlook, time};
use scx_roost::ab::report::html::html_of_suite;
use scx_roost::ab::result::Recorded;
use scx_roost::ab::run::Progress;
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::suite_runs::{Outcome, Whole, left, run_all};
use scx_roost::ab::tasks::Task;
use scx_roost::ab::tune::rounds;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: AbArgs,
}

fn tasks() -> Vec<Task> {
    let words = "ab --suite placement -n 6 --variant mainline --variant mainline+slice-us=1000";
    let typed = Typed::parse_from(words.split(' '));
    typed.args.tasks("roost".into(), BTreeMap::new()).unwrap()
}

/// Runs the suite. `change` prepares the machine of the third workload.
fn outcome(change: &dyn Fn(&mut Played)) -> (Outcome, Vec<String>) {
    let mut ran = Vec::new();
    let compare = &mut |at: usize, task: &Task| {
        ran.push(task.item.as_ref().unwrap().name.clone());
        let mut machine = Played::new(at as u64);
        if at == 2 {
            change(&mut machine);
        }
        played(&task.header, &mut machine)
    };
    let outcome = run_all(&tasks(), compare, &|_| ());
    (outcome, ran)
}

/// Pages contain what the terminal has shown, also if a workload failed.
#[test]
fn pages_have_all_workloads_and_the_table() {
    let words = "ab --suite placement -n 6 --html h --variant mainline --variant roost";
    let typed = Typed::parse_from(words.split(' '));
    let tasks = typed.args.tasks("roost".into(), BTreeMap::new()).unwrap();
    assert_eq!(tasks[0].page.0, Some("h".into()));
    let (outcome, ran) =
        outcome(&|m| m.fails = Some((3, || Failure::TimedOut(Duration::from_secs(7)))));
    let reports = outcome.reports().unwrap();
    let html = html_of_suite(&reports, outcome.closing(&reports).as_ref());
    for (at, workload) in ran.iter().enumerate() {
        let count = html.matches(&format!("<h1><code>{workload}: ")).count();
        assert_eq!(count, usize::from(at != 2), "{workload} in {html}");
    }
    let title = html.matches("The suite: 6 comparisons").count();
    assert_eq!(title, 1, "{html}");
    assert!(html.contains(&format!("  {} failed: ", ran[2])), "{html}");
    assert_eq!(html.matches("</html>").count(), 1);
    // All results come before the first picture, and the mean with them.
    let (top, _) = html.split_once("<figure>").unwrap();
    for workload in ran.iter().filter(|w| **w != ran[2]) {
        assert!(
            top.contains(&format!("<th>{workload}<td class=\"")),
            "{top}"
        );
    }
    assert!(top.contains(" %  6 workloads\n"), "{top}");
    // A suite that was stopped has no table.
    assert!(!html_of_suite(&reports, None).contains("The suite"));
}

#[test]
fn a_suite_goes_on_behind_a_command_that_fails() {
    for failure in [
        || Failure::TimedOut(Duration::from_secs(7)),
        || Failure::NotStarted("x".into(), std::io::Error::other("there is none")),
        || Failure::NoValue(anyhow::anyhow!("the command printed nothing")),
    ] as [fn() -> Failure; 3]
    {
        let fails = failure().to_string();
        let (outcome, ran) = outcome(&|m| m.fails = Some((3, failure)));
        assert_eq!(ran.len(), 7);
        let reports = outcome.reports().unwrap();
        let closing = outcome.closing(&reports);
        let text = closing.as_ref().unwrap().text();
        assert!(text.contains("The suite: 6 comparisons"), "{text}");
        assert!(
            text.contains("\n  messages failed: run 3 under variant "),
            "{text}"
        );
        assert!(text.contains(&fails), "{fails} in {text}");
        let whole = Whole {
            workloads: &reports,
            suite: &closing,
        };
        let json = serde_json::to_value(whole).unwrap();
        let workloads = json["workloads"].as_array().unwrap();
        assert_eq!(workloads.len(), 6);
        assert_eq!(workloads[2]["plan"]["workload"], "fork-wait");
        assert_eq!(workloads[2]["blocks"], 6);
        assert_eq!(json["suite"]["rows"].as_array().unwrap().len(), 6);
        assert_eq!(json["suite"]["failed"][0]["workload"], "messages");
        let told = outcome.end("stopped").unwrap_err().to_string();
        assert_eq!(
            told,
            "1 of 7 workloads failed: messages; --resume runs them again"
        );
    }
}

#[test]
fn it_ends_when_it_is_stopped_or_the_machine_is_not_as_it_was() {
    let (stopped, ran) = outcome(&|m| m.fails = Some((3, || Failure::Stopped)));
    assert_eq!((ran.len(), stopped.stopped), (3, true));
    assert!(stopped.closing(&[]).is_none());
    assert_eq!(stopped.end("stopped").unwrap_err().to_string(), "stopped");
    let stuck = outcome(&|m| {
        m.stuck = true;
        m.fails = Some((3, || Failure::TimedOut(Duration::from_secs(7))));
    });
    let broken =
        outcome(&|m| m.does_not_load = Some((1, || Failure::TimedOut(Duration::from_secs(7)))));
    for ((outcome, ran), told) in [
        (
            stuck,
            "the machine was not restored: scx_lavd.service does not start: run 3 under",
        ),
        (broken, "run 1 under variant"),
    ] {
        // What is done is shown, without a table of the suite.
        let reports = outcome.reports().unwrap();
        assert_eq!(reports.len(), 2);
        assert!(outcome.closing(&reports).is_none());
        let error = format!("{:#}", outcome.end("stopped").unwrap_err());
        assert_eq!(ran.len(), 3, "{error}");
        let begin = format!("{}: ", ran[2]);
        assert!(
            error.starts_with(&begin) && error.contains(told),
            "{told} in {error}"
        );
    }
    let (fine, ran) = outcome(&|_| ());
    assert_eq!(ran.len(), 7);
    fine.end("stopped").unwrap();
}

fn progress(number: usize, block: Option<usize>) -> Progress<'static> {
    Progress {
        number,
        all: 26,
        variant: "eevdf",
        block,
    }
}

#[test]
fn the_workload_and_the_remaining_time_are_shown() {
    let ago = |secs: u64| Instant::now() - Duration::from_secs(secs);
    let among = Among {
        whole: "suite",
        name: "x265".into(),
        number: 2,
        of: 9,
        behind: 182,
        begin: ago(3600),
    };
    let mut shown = Shown::new(0, Some(among));
    assert_eq!(
        shown.run(&progress(0, None)),
        "x265 (2 of 9): [--------------------] run 1 of at most 26: eevdf (does not count)"
    );
    let left = shown.left(&progress(6, Some(2)), Duration::from_secs(360));
    assert_eq!(
        left,
        ", at most 20 min left, the suite 1:00 h so far and about 3:22 h more"
    );
    // Into a file: a line for the first run of each block, and of all.
    let lines = [
        (0, None),
        (1, None),
        (2, Some(0)),
        (3, Some(0)),
        (4, Some(1)),
        (5, None),
    ];
    let lines = lines.map(|(number, block)| shown.block(&progress(number, block)));
    let numbers =
        lines.map(|line| line.map(|line| line.contains("run 1 of") || line.contains("left, ")));
    let first = Some(true);
    assert_eq!(numbers, [first, None, first, None, first, None]);
    let alone = Shown::new(4, None);
    assert_eq!(
        alone.run(&progress(4, Some(1))),
        "[###-----------------] run 5 of at most 26: eevdf"
    );
    let times = [0.0, 119.4, 120.0, 3569.0, 3571.0, 86_399.0].map(time);
    assert_eq!(
        times,
        ["0 s", "119 s", "2 min", "59 min", "1:00 h", "24:00 h"]
    );
}

/// Five workloads follow the second of seven, each with its warm-ups.
#[test]
fn what_is_behind_a_workload_is_counted() {
    let tasks = tasks();
    let all: Vec<usize> = tasks.iter().map(|task| left(task).unwrap()).collect();
    let among = Among::new(&tasks, 1, &all, Instant::now());
    assert_eq!(
        (among.name.as_str(), among.number, among.of),
        ("pairs", 2, 7)
    );
    let runs = |task: &Task| task.header.design().runs(6);
    assert_eq!(among.behind, tasks[2..].iter().map(runs).sum::<usize>());
    assert!((70..100).contains(&among.behind), "{}", among.behind);
    assert_eq!(Among::new(&tasks, 6, &all, Instant::now()).behind, 0);
}

/// A resumed workload lacks the runs that its file does not have.
#[test]
fn what_a_resumed_workload_lacks_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut task = tasks().remove(2);
    task.result = folder.path().join("r");
    let most = left(&task).unwrap();
    let runs = played(&task.header, &mut Played::new(1)).unwrap().0.runs;
    assert_eq!(runs.len(), most);
    task.resume = true;
    for made in [0, 5, most] {
        let mut recorded = Recorded::new(task.header.clone());
        recorded.runs.extend_from_slice(&runs[..made]);
        std::fs::write(&task.result, lines(&recorded)).unwrap();
        assert_eq!(left(&task).unwrap(), most - made);
    }
}

/// A search reports its length before the first run, and then the length of the rounds to come.
#[test]
fn the_cost_of_a_search_is_shown() {
    let plan = Plan::Fixed(12);
    let rounds = rounds(&header(&["roost"], plan), 8);
    let of = |name: &str, runs| (name.to_string(), runs);
    let all = [
        of("round-1", 7 * 9),
        of("round-2", 7 * 5),
        of("round-3", 7 * 4),
        of("confirm", 33),
    ];
    assert_eq!(rounds, all);
    assert_eq!(
        outlook(8, &rounds, 0),
        "8 changes, 4 rounds and at most 159 runs: 3 min per second that a run takes, and the time for switching"
    );
    assert!(outlook(8, &rounds, 62).contains("runs, 62 of them done: 97 s per"));
    let mut among = Among::round(&rounds, "round-2", Instant::now()).unwrap();
    assert_eq!((among.number, among.of, among.behind), (2, 4, 28 + 33));
    among.begin -= Duration::from_secs(60);
    let shown = Shown::new(0, Some(among));
    assert!(
        shown
            .run(&progress(0, None))
            .starts_with("round-2 (2 of 4): [--------------------] run 1 of")
    );
    let left = shown.left(&progress(6, Some(2)), Duration::from_secs(60));
    assert_eq!(
        left,
        ", at most 3 min left, the search 60 s so far and about 14 min more"
    );
}

/// Runs from an earlier session do not count for the estimate of the time left.
#[test]
fn the_time_that_is_left_is_of_runs_that_were_made_here() {
    let shown = Shown::new(4, None);
    let left = |number| shown.left(&progress(number, Some(2)), Duration::from_secs(10));
    assert_eq!(left(4), "");
    assert_eq!(left(6), ", at most 100 s left");
    assert_eq!(left(26), ", at most 0 s left");
}

#[test]
fn a_result_has_the_name_of_its_workload() {
    let named = |t: &Task| t.header.workload == t.item.as_ref().map(|i| i.name.clone());
    assert!(tasks().iter().all(named));
}
