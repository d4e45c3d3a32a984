// SPDX-License-Identifier: GPL-2.0-only
//! Pictures: their contents, and that the same seed gives the same bytes.

use roost_sim::load::Load;
use roost_sim::{Asked, Plan, Wanted, parse, run};
use std::fs;
use std::path::Path;
use std::thread;

const RUNS: &str = "x265 --seeds 2 --window 3ms --variant mainline --variant roost";

fn plan(words: &str) -> Box<Plan> {
    let asked = parse(words.split_whitespace().map(String::from)).unwrap();
    let Asked::Run { wanted, .. } = asked else {
        panic!("{words}");
    };
    let Wanted::Compare(plan) = *wanted else {
        panic!("{words}");
    };
    plan
}

/// Writes a picture. Returns the table and the picture.
fn written(folder: &Path, name: &str) -> [Vec<u8>; 2] {
    let svg = folder.join(format!("{name}.svg"));
    let plan = plan(&format!("roost-sim {RUNS} --svg {}", svg.display()));
    let report = run(&plan).unwrap();
    [report.text().into_bytes(), fs::read(&svg).unwrap()]
}

/// Once alone, and once with two runs in parallel that were started in the other order.
#[test]
fn the_same_seed_is_the_same_picture() {
    let folder = tempfile::tempdir().unwrap();
    let alone = written(folder.path(), "alone");
    let side_by_side: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = ["b", "a"]
            .map(|name| scope.spawn(|| written(folder.path(), name)))
            .into();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for other in side_by_side {
        assert!(alone == other, "two runs of one seed differ");
    }
}

#[test]
fn a_picture_has_labels_and_titles() {
    let folder = tempfile::tempdir().unwrap();
    let [_, svg] = written(folder.path(), "x");
    let svg = String::from_utf8(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    for label in [
        "mainline:",
        "roost:",
        "LLC 7",
        "CPU 31, 63",
        "2 ms",
        ">frame 0 to 3<",
        ">pool 0 to 7, ...<",
    ] {
        assert!(svg.contains(label), "{label}");
    }
    // The counts are those of the window, not of the run.
    assert_eq!(svg.matches("in these 3 ms, ").count(), 2);
    assert!(!svg.contains("a second"));
    // The title names the task of a bar.
    assert!(svg.contains("<title>frame 0, CPU "));
    assert!(svg.matches("<title>").count() > 20);
}

/// The panels of all variants end where the run ends.
#[test]
fn panels_are_as_wide_as_the_window() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.svg");
    let plan = plan(&format!(
        "roost-sim algorithm3 --seeds 1 --window 3ms --variant eevdf --variant roost --svg {}",
        path.display()
    ));
    let plan = Box::new(Plan {
        load: Load {
            duration: Some(10_000_000),
            ..plan.load.clone()
        },
        ..*plan
    });
    run(&plan).unwrap();
    let svg = fs::read_to_string(path).unwrap();
    // Rows of CPUs, idle where nothing covers them.
    let idle = svg.matches("width=\"1180.00\" height=\"8.00\" fill=\"#f1f1f1\"");
    assert_eq!(idle.count(), 2 * 64);
    assert!(svg.contains("<title>manager 0, CPU "));
}

/// Where rows are too low for text, CPUs are labelled by cache.
#[test]
fn a_large_machine_has_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.svg");
    let plan = plan(&format!(
        "roost-sim primesieve --set threads=3 --seeds 1 --window 1ms --machine epyc-9654-2s --svg {}",
        path.display()
    ));
    run(&plan).unwrap();
    let svg = fs::read_to_string(path).unwrap();
    for label in [">0-7<", ">192-199<", ">376-383<"] {
        assert!(svg.contains(label), "{label}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_reported() {
    let plan = plan("roost-sim x265 --seeds 1 --window 1ms --svg /nowhere/x.svg");
    let error = format!("{:#}", run(&plan).unwrap_err());
    assert!(error.contains("cannot write /nowhere/x.svg"), "{error}");
}
