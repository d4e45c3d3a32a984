// SPDX-License-Identifier: GPL-2.0-only
//! Two copies at once: which options allow it, on which CPUs, in which order. A faster side cancels
//! out. And two real commands.

use crate::child::{alone, lives};
use crate::cpus::machine;
use crate::noise::{CV, Noise};
use crate::played::{Played, header};
use clap::Parser;
use scx_roost::ab::analysis;
use scx_roost::ab::args::AbArgs;
use scx_roost::ab::child::{Failure, Workload, become_subreaper, run_at_once};
use scx_roost::ab::concurrent::{Sides, check};
use scx_roost::ab::metric::Measured;
use scx_roost::ab::report::Report;
use scx_roost::ab::report::html::html;
use scx_roost::ab::report::markdown::markdown;
use scx_roost::ab::report::text::text;
use scx_roost::ab::result::{Header, Recorded, Repetition, ResultFile};
use scx_roost::ab::run::{End, run};
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::power::blocks_needed;
use scx_roost::ab::stats::verdict::{Judged, Verdict};
use scx_roost::ab::variant::{Scope, parse_all};
use scx_roost::util::rng::Rng;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const TWO: [&str; 2] = ["mainline", "mainline+slice-us=1000"];

fn beside(plan: Plan) -> Header {
    Header {
        sides: Some(Sides(["0-3".to_string(), "4-7".to_string()])),
        scope: Scope::Workload,
        ..header(&TWO, plan)
    }
}

#[test]
fn sides_are_whole_caches() {
    let sides = |llcs: &[u16], smt| {
        Sides::of(&machine(llcs, smt))
            .map(|s| s.0)
            .map_err(|e| e.to_string())
    };
    let both = |one: &str, other: &str| Ok([one.to_string(), other.to_string()]);
    assert_eq!(
        sides(&[4; 8], Some(true)),
        both("0-15,32-47", "16-31,48-63")
    );
    assert_eq!(sides(&[8, 8], Some(false)), both("0-15", "16-31"));
    assert_eq!(sides(&[2, 2, 2], None), both("0-1", "2-3"));
    // The small LLC is on no side.
    assert_eq!(sides(&[2, 4, 4], None), both("2-5", "6-9"));
    let one = sides(&[8], None).unwrap_err();
    assert_eq!(
        one,
        "--concurrent puts each copy on its own last-level caches, and this machine has only one"
    );
    let odd = sides(&[6, 2], None).unwrap_err();
    assert!(
        odd.ends_with("with equally many CPUs, and this machine has no two such caches"),
        "{odd}"
    );
}

#[test]
fn variants_that_cannot_run_side_by_side_are_refused() {
    let refused = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        check(&parse_all(&names).unwrap()).map_err(|e| e.to_string())
    };
    assert_eq!(refused(&TWO), Ok(()));
    for (names, told) in [
        (
            &["mainline", "eevdf"][..],
            "eevdf is the kernel's own scheduler, which schedules the whole machine: variants that run at once are arms of scx_roost",
        ),
        (
            &["scx:a", "mainline"][..],
            "scx:a is another scheduler, which schedules the whole machine: variants that run at once are arms of scx_roost",
        ),
        (
            &["mainline", "roost", "roy-v7"][..],
            "--concurrent compares two variants, but 3 are given",
        ),
        (
            &["mainline", "roost@cpus=0"][..],
            "roost@cpus=0 sets its own CPUs, but --concurrent assigns it those of a side",
        ),
    ] {
        assert_eq!(refused(names).unwrap_err(), told);
    }
}

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: AbArgs,
}

#[test]
fn as_it_is_typed() {
    let typed = |words: &str| {
        let line = format!("ab --concurrent --variant mainline {words} -- true");
        let typed = Typed::try_parse_from(line.split_whitespace())?;
        typed.args.tasks("roost".into(), BTreeMap::new())
    };
    let eevdf = typed("--variant eevdf").unwrap_err().to_string();
    assert!(
        eevdf.starts_with("eevdf is the kernel's own scheduler"),
        "{eevdf}"
    );
    let here = Sides::of(&scx_roost::machine::Machine::read("/sys".as_ref()).unwrap());
    match (typed("--variant roost"), here) {
        (Err(e), Err(why)) => assert_eq!(e.to_string(), why.to_string()),
        (Ok(tasks), Ok(sides)) => {
            let header = &tasks[0].header;
            assert_eq!(
                (header.sides.as_ref(), header.scope),
                (Some(&sides), Scope::Workload)
            );
        }
        (typed, _) => panic!("{typed:?}"),
    }
}

fn go(header: &Header, path: &Path, machine: &mut Played) -> Vec<Repetition> {
    let (mut file, mut recorded) = match path.exists() {
        true => ResultFile::resume(path, header).unwrap(),
        false => {
            let file = ResultFile::create(path, header).unwrap();
            (file, Recorded::new(header.clone()))
        }
    };
    let never = || false;
    let ended = run(&mut recorded, machine, &mut file, &never, &mut |_| ());
    assert_eq!(ended.unwrap(), End::Done);
    recorded.runs
}

#[test]
fn sides_are_swapped_in_each_block_and_a_faster_side_cancels() {
    let folder = tempfile::tempdir().unwrap();
    let header = beside(Plan::Fixed(30));
    for (slow, verdict) in [(1.0, Verdict::Equivalent), (1.05, Verdict::Worse)] {
        let path = folder.path().join(format!("{slow}"));
        let mut machine = Played::new(1).slower(TWO[1], slow);
        machine.sides = [1.0, 1.3];
        let runs = go(&header, &path, &mut machine);
        assert_eq!(runs.len(), 2 + 30 * 4);
        for block in runs[2..].chunks(4) {
            let names: Vec<&str> = block.iter().map(|r| r.variant.as_str()).collect();
            assert_ne!(names[0], names[1]);
            assert_eq!([names[0], names[1]], [names[3], names[2]]);
        }
        let firsts = runs[2..]
            .chunks(4)
            .filter(|b| b[0].variant == TWO[0])
            .count();
        assert!((1..30).contains(&firsts), "{firsts}");
        let judged = analysis::judged(&header, &runs, &[]).unwrap();
        assert_eq!(judged[0].verdict, verdict, "{slow}");
        assert_eq!(Recorded::read(&path).unwrap().runs, runs);
    }
}

/// The machine went down between the two lines of a pair.
#[test]
fn a_copy_that_ran_alone_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let header = beside(Plan::Fixed(6));
    let whole = go(&header, &path, &mut Played::new(1));
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&path, lines[..1 + 7].join("\n") + "\n").unwrap();
    assert_eq!(Recorded::read(&path).unwrap().runs.len(), 6);
    let runs = go(&header, &path, &mut Played::new(2));
    assert_eq!((runs.len(), &runs[..6]), (whole.len(), &whole[..6]));
    assert_eq!(Recorded::read(&path).unwrap().runs, runs);
}

#[test]
fn every_report_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let header = beside(Plan::Fixed(6));
    let runs = go(&header, &folder.path().join("r"), &mut Played::new(1));
    let recorded = Recorded {
        header,
        runs,
        failed: Vec::new(),
        asked: None,
    };
    let report = Report::new(&recorded).unwrap();
    let label = "6 blocks of 2 variants, two copies at once, on CPUs 0-3 and 4-7, sides swapped in each block; seed";
    for said in [text(&report), markdown(&report), html(&report)] {
        assert!(said.contains(label), "{said}");
    }
    assert_eq!(
        serde_json::to_value(&report).unwrap()["plan"]["sides"][1],
        "4-7"
    );
    let mut broken = recorded.header.clone();
    broken.sides = Some(Sides(["0-4".to_string(), "4-7".to_string()]));
    let told = ResultFile::create(&folder.path().join("b"), &broken)
        .map(|_| ())
        .unwrap_err();
    assert!(told.to_string().contains("have CPUs in common"), "{told}");
}

/// Values of such runs: `side` is how many times as long one side takes, `slow` is how many times
/// as long the second variant takes.
fn made_up(header: &Header, side: f64, slow: f64, seed: u64) -> Vec<Repetition> {
    let order = header.order();
    let noise = Noise::Normal.runs(order.len(), &mut Rng::stream(seed, 1));
    let value = |(number, noise): (usize, f64)| {
        let turn = order[number];
        let side = if number % 2 == 1 { side } else { 1.0 };
        let own = if turn.variant == 1 { slow } else { 1.0 };
        Repetition {
            number,
            block: turn.block,
            variant: header.variants[turn.variant].clone(),
            values: BTreeMap::from([("wall".to_string(), noise * side * own)]),
            ..Repetition::default()
        }
    };
    noise.into_iter().enumerate().map(value).collect()
}

const TIMES: u64 = 1000;

/// `swapped`: false if only the first run of each block counts.
fn judged(swapped: bool, blocks: usize, side: f64, slow: f64, seed: u64) -> Judged {
    let mut header = beside(Plan::Fixed(blocks));
    header.seed = seed;
    header.rule.margin = 0.001;
    let mut runs = made_up(&header, side, slow, seed);
    if !swapped {
        // As if the second run of a block had been like the first.
        for block in runs[2..].chunks_mut(4) {
            let values = [block[1].values.clone(), block[0].values.clone()];
            [block[2].values, block[3].values] = values;
        }
    }
    analysis::judged(&header, &runs, &[]).unwrap().remove(0)
}

fn count(swapped: bool, blocks: usize, side: f64, slow: f64, these: &[Verdict]) -> u64 {
    let told = |seed: &u64| these.contains(&judged(swapped, blocks, side, slow, *seed).verdict);
    (0..TIMES).filter(told).count() as u64
}

/// One side takes a fifth longer. The error rate and the power of a thousand comparisons are still
/// as promised.
#[test]
fn a_side_that_is_slower_costs_neither_error_nor_power() {
    let (better, worse) = (Verdict::Better, Verdict::Worse);
    for blocks in [6, 12] {
        let found = count(true, blocks, 1.2, 1.0, &[better, worse]);
        println!("nothing, {blocks} blocks: {found} of {TIMES}");
        // 5 % and three standard deviations of the count.
        assert!(found <= 70, "{blocks}: {found}");
    }
    // The mean of two runs scatters 0.71 times as much as one run.
    let blocks = blocks_needed(CV / 2f64.sqrt(), 0.03, 0.05, 0.8);
    let swapped = count(true, blocks, 1.2, 1.03, &[worse]);
    let once = count(false, blocks, 1.2, 1.03, &[worse]);
    println!(
        "3 %, {blocks} blocks: {swapped} of {TIMES}; where no block has both ways round {once}"
    );
    // 80 % less three standard deviations of the count.
    assert!(swapped >= 762, "{swapped}");
    assert!(once < 200, "{once}");
}

fn copy(script: &str) -> Workload {
    Workload {
        command: ["sh", "-c", script].map(Into::into).to_vec(),
        timeout: Duration::from_secs(20),
        cpus: Vec::new(),
        powercap: "/nowhere".into(),
        events: Vec::new(),
        user: None,
    }
}

fn at_once(one: &str, other: &str) -> Result<Vec<scx_roost::ab::child::Sample>, Failure> {
    let _alone = alone();
    become_subreaper().unwrap();
    run_at_once(
        &[copy(one), copy(other)],
        None,
        &|| None,
        &|| false,
        &mut |_| (),
    )
}

/// Each command waits for the other, so neither would end if they ran one after the other.
#[test]
fn two_commands_run_at_once_and_each_has_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let meets = |own: &str, other: &str| {
        format!("touch {path}/{own}; until [ -e {path}/{other} ]; do sleep 0.02; done; echo {own};")
    };
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let (one, two) = (meets("one", "two"), meets("two", "one"));
    let both = at_once(&(one + "sleep 0.3"), &(two + busy)).unwrap();
    let outputs = [both[0].output.as_str(), both[1].output.as_str()];
    assert_eq!(outputs, ["one\n", "two\n"]);
    let value = |at: usize, which| both[at].values[&which];
    assert!(value(0, Measured::Wall) >= 0.3, "{both:?}");
    assert!(
        value(1, Measured::User) > 2.0 * value(0, Measured::User),
        "{both:?}"
    );
    assert!(!both[0].values.contains_key(&Measured::Energy));
}

/// The commands are kept to their CPUs by affinity, which they can change.
#[test]
fn a_process_on_the_other_side_is_found() {
    let Some(cgroup) = crate::real::own_cgroup() else {
        return;
    };
    if std::thread::available_parallelism().unwrap().get() < 2 {
        println!("skip: one CPU");
        return;
    }
    let _alone = alone();
    become_subreaper().unwrap();
    let both = |script: &str| {
        let side = |cpu: u16, script: &str| Workload {
            cpus: vec![cpu],
            ..copy(script)
        };
        let copies = [side(0, "sleep 0.8"), side(1, script)];
        run_at_once(&copies, Some(&cgroup), &|| None, &|| false, &mut |_| ())
    };
    // So with one command: a variant with @cpus.
    let alone = |script: &str| {
        let one = Workload {
            cpus: vec![1],
            ..copy(script)
        };
        run_at_once(&[one], Some(&cgroup), &|| None, &|| false, &mut |_| ())
    };
    assert!(alone("taskset -c 1 sleep 0.1").is_ok());
    let told = alone("exec taskset -c 0-1 sleep 0.1")
        .unwrap_err()
        .to_string();
    assert!(
        told.starts_with("sleep is restricted to CPUs 1 and may"),
        "{told}"
    );
    let stays = both("taskset -c 1 sleep 0.8");
    let strays = both("exec taskset -c 0-1 sleep 7673");
    cgroup.remove();
    assert_eq!(stays.unwrap().len(), 2);
    let told = strays.unwrap_err().to_string();
    assert!(
        told.starts_with("sleep is restricted to CPUs 1 and may run on others"),
        "{told}"
    );
    assert!(!lives("7673"));
}

#[test]
fn migrations_are_counted_per_copy() {
    let moves = "for i in 1 2 3 4 5 6; do taskset -cp 0 $$ >&2; taskset -cp 1 $$ >&2; done";
    if std::thread::available_parallelism().unwrap().get() < 2 {
        println!("skip: one CPU");
        return;
    }
    for (one, other, mover) in [(moves, "sleep 0.1", 0), ("sleep 0.1", moves, 1)] {
        let both = at_once(one, other).unwrap();
        let count = |at: usize| both[at].values.get(&Measured::Migrations);
        match (count(mover), count(1 - mover)) {
            (Some(moved), Some(rests)) => {
                assert!(moved >= &6.0 && rests + 3.0 < *moved, "{both:?}");
            }
            _ => println!("skip: perf_event_open is not allowed here"),
        }
    }
}

#[test]
fn where_one_fails_the_other_is_ended() {
    let begin = Instant::now();
    let told = at_once("sleep 7671", "echo no luck >&2; exit 3")
        .unwrap_err()
        .to_string();
    assert_eq!(
        told,
        "the command failed (exit status: 3); its last output: no luck"
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(!lives("7671"));
    let left = at_once("setsid sleep 7672 & exit 0", "sleep 0.1")
        .unwrap_err()
        .to_string();
    assert!(left.contains("left processes running"), "{left}");
    assert!(!lives("7672"));
}
