// SPDX-License-Identifier: GPL-2.0-only
//! Kernel against kernel: each boot is a run of the program, continued with --resume.

use crate::played::{Played, asked, header};
use clap::Parser;
use scx_roost::ab::analysis::judged;
use scx_roost::ab::args::AbArgs;
use scx_roost::ab::boot::{Asked, Boot, Booted};
use scx_roost::ab::boots::{came_up, made};
use scx_roost::ab::child::Failure;
use scx_roost::ab::design::Turn;
use scx_roost::ab::report::Report;
use scx_roost::ab::report::lkml::as_mail;
use scx_roost::ab::report::text::{Shown, text};
use scx_roost::ab::result::{Header, Recorded, Repetition, ResultFile};
use scx_roost::ab::run::{End, run};
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::{Against, Direction, Verdict};
use std::collections::BTreeMap;
use std::path::Path;

const KERNELS: [&str; 2] = ["eevdf@kernel=7.0.12-mine", "eevdf@kernel=7.2.13"];

fn across(rounds: usize) -> Header {
    Header {
        boots: Some(3),
        ..header(&KERNELS, Plan::Fixed(rounds))
    }
}

/// One boot: the program is started, and ends when another boot is due.
fn start(header: &Header, path: &Path, machine: &mut Played) -> (Recorded, End) {
    let (mut file, mut recorded) = match path.exists() {
        true => ResultFile::resume(path, header).unwrap(),
        false => {
            let file = ResultFile::create(path, header).unwrap();
            (file, Recorded::new(header.clone()))
        }
    };
    let end = run(&mut recorded, machine, &mut file, &|| false, &mut |_| ()).unwrap();
    (recorded, end)
}

fn boot(kernel: &str, id: usize) -> Boot {
    Boot {
        kernel: kernel.to_string(),
        now: Booted {
            id: id.to_string(),
            facts: BTreeMap::from([("cmdline".to_string(), format!("root of {kernel}"))]),
        },
    }
}

/// The other kernel is slower by 10 %. `begun` is on another host's kernel each time.
#[test]
fn a_turn_is_a_boot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let mut header = across(6);
    let mut machine = Played::new(1).slower(KERNELS[1], 1.1);
    let mut kernels = vec!["6.12.1".to_string()];
    let recorded = loop {
        let kernel = kernels.last().unwrap();
        machine.boot = boot(kernel, kernels.len());
        header.host.insert("kernel".to_string(), kernel.clone());
        let runs_before = machine.asked.len();
        let (recorded, end) = start(&header, &path, &mut machine);
        match end {
            End::Done => break recorded,
            End::Boot(next) => kernels.push(next),
            End::Stopped => panic!("nobody stopped it"),
        }
        // The first boot was of a kernel that nobody asked for.
        assert_eq!(machine.asked.len() > runs_before, kernels.len() > 2);
        // Started again in the same boot it runs nothing.
        let (again, end) = start(&header, &path, &mut machine);
        assert_eq!(again.runs.len(), recorded.runs.len());
        assert!(matches!(end, End::Boot(_)));
    };
    // A boot of each kernel, and two for each of six rounds, after the first one.
    assert_eq!(kernels.len(), 1 + 14);
    assert_eq!(made(&recorded), Some((14, 14)));
    assert_eq!(recorded.runs.len(), 14 * (1 + 3));
    for (turn, (runs, kernel)) in recorded.runs.chunks(4).zip(&kernels[1..]).enumerate() {
        assert!(
            runs.iter()
                .all(|run| run.variant.ends_with(kernel.as_str()))
        );
        assert!(runs.iter().all(|run| run.boot == runs[0].boot));
        let turns: Vec<Option<usize>> = runs.iter().map(|run| run.turn).collect();
        assert_eq!(turns, [None, Some(turn), Some(turn), Some(turn)]);
    }
    let report = Report::new(&recorded).unwrap();
    let judged = report.metrics[0].variants[1].judged.as_ref().unwrap();
    assert_eq!((judged.verdict, judged.rounds), (Verdict::Worse, 6));
    let text = text(&report, Shown::default());
    let told = "-n 6, each a boot with 3 runs that count, 1 warm-up of each variant";
    assert!(
        text.contains(told) && !text.contains("interrupted"),
        "{text}"
    );
    let mail = as_mail(&recorded).unwrap();
    for kernel in ["7.0.12-mine", "7.2.13"] {
        let line = format!("root of {kernel}");
        assert!(mail.contains(&line), "{mail}");
    }
}

/// A boot's mean has sixteen digits, and the numbers that it is of may have one.
#[test]
fn a_boot_is_as_coarse_as_its_runs() {
    let mut header = across(30);
    header.metrics = vec![asked("regex:([0-9]+)", Direction::Lower)];
    let order = header.order().into_iter().enumerate();
    let run = |(number, turn): (usize, Turn)| Repetition {
        number,
        turn: turn.turn,
        variant: header.variants[turn.variant].clone(),
        drawn: turn.drawn,
        values: BTreeMap::from([("regex:([0-9]+)".to_string(), 5.0)]),
        ..Repetition::default()
    };
    let runs = order.map(run).collect();
    let recorded = Recorded {
        runs,
        ..Recorded::new(header.clone())
    };
    let judged = judged(&recorded).unwrap().remove(0);
    assert_eq!(judged.against, Some(Against::Steps), "{judged:?}");
}

/// A boot loader that does not obey --next-boot must not boot the machine for ever.
#[test]
fn a_kernel_that_did_not_come_up_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (path, header) = (folder.path().join("r"), across(1));
    let mut file = ResultFile::create(&path, &header).unwrap();
    file.append(&Asked {
        asked_kernel: "7.2.13".to_string(),
        in_boot: "1".to_string(),
    })
    .unwrap();
    drop(file);
    let recorded = Recorded::read(&path).unwrap();
    came_up(&recorded, &boot("7.2.13", 2)).unwrap();
    // Not booted yet.
    came_up(&recorded, &boot("6.12.1", 1)).unwrap();
    let told = came_up(&recorded, &boot("6.12.1", 2))
        .unwrap_err()
        .to_string();
    assert!(
        told.starts_with("kernel 7.2.13 was to be booted, and 6.12.1 came up"),
        "{told}"
    );
    let mut machine = Played::new(1);
    machine.boot = boot("6.12.1", 2);
    let (mut file, mut recorded) = ResultFile::resume(&path, &header).unwrap();
    let ended = run(
        &mut recorded,
        &mut machine,
        &mut file,
        &|| false,
        &mut |_| (),
    );
    assert!(ended.is_err() && machine.asked.is_empty());
}

/// Stopped within a boot, it makes the warm-ups again, without recording them. A value of several
/// boots is reported.
#[test]
fn an_interrupted_boot_begins_with_its_warm_ups_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (path, header) = (folder.path().join("r"), across(1));
    let mut machine = Played::new(1);
    machine.boot = boot("6.12.1", 0);
    let (_, end) = start(&header, &path, &mut machine);
    let End::Boot(first) = end else {
        panic!("another kernel is due");
    };
    machine.boot = boot(&first, 1);
    machine.fails = Some((3, || Failure::Stopped));
    let (recorded, end) = start(&header, &path, &mut machine);
    assert_eq!((end, recorded.runs.len()), (End::Stopped, 2));
    machine.fails = None;
    machine.asked.clear();
    let (mut recorded, end) = start(&header, &path, &mut machine);
    assert!(matches!(end, End::Boot(_)));
    // A warm-up, which is not recorded, and the two runs that were left.
    assert_eq!(recorded.runs.len(), 4);
    assert_eq!(machine.asked.len(), 1 + 3 + 1);
    let warned = |recorded: &Recorded| Report::new(recorded).unwrap().warnings.concat();
    assert!(!warned(&recorded).contains("interrupted"));
    // A warm-up in another boot does not count.
    assert_eq!(recorded.runs[0].turn, None);
    recorded.runs[0].boot.as_mut().unwrap().id = "0".to_string();
    assert!(!warned(&recorded).contains("interrupted"));
    recorded.runs[3].boot.as_mut().unwrap().id = "2".to_string();
    assert!(warned(&recorded).contains("1 boot was interrupted"));
}

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: AbArgs,
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let told = |words: &str| {
        let typed = Typed::try_parse_from(format!("ab {words} -- true").split(' '));
        let typed = typed.map_err(|e| e.to_string())?;
        let task = typed.args.task(BTreeMap::new());
        task.map(|_| ()).map_err(|e| format!("{e:#}"))
    };
    let two = "--variant eevdf@kernel=7.0.12 --variant roost@kernel=7.2.13";
    assert_eq!(told(&format!("--across-boots 2 {two}")), Ok(()));
    for (words, why) in [
        (
            two.to_string(),
            "eevdf@kernel=7.0.12: another kernel is another boot, which needs --across-boots",
        ),
        (
            "--across-boots 2 --variant eevdf --variant roost@kernel=7.2.13".to_string(),
            "eevdf names no kernel: with --across-boots each variant does, as in eevdf@kernel=7.2.13",
        ),
        (
            format!("--across-boots 0 {two}"),
            "--across-boots 0: each boot has 1 to 10000 runs",
        ),
        (
            "--across-boots 2 --variant eevdf@kernel= --variant roost@kernel=7".to_string(),
            "variant eevdf@kernel=: @kernel= needs a release after it, as 'uname -r' prints it",
        ),
    ] {
        assert_eq!(told(&words).unwrap_err(), why);
    }
    let told = told(&format!("--across-boots 2 --scope workload {two}")).unwrap_err();
    assert!(told.contains("schedules the whole machine"), "{told}");
}
