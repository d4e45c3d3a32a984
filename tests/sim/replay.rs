// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost sim --replay`, `--params` and `calibrate`, from their command lines.

use crate::support::SMALL_SMT;
use scx_roost::cli::{Command, parse};
use scx_roost::machine::{Machine, Policies, copy_machine, host::Host};
use scx_roost::sim::{self, Wanted};
use std::fs;
use std::path::Path;
use std::process::Command as Process;

fn wanted(args: &str) -> anyhow::Result<Wanted> {
    let words = format!("scx_roost sim {args}");
    match parse(words.split_whitespace())? {
        Command::Sim { wanted, .. } => Ok(*wanted),
        other => panic!("{other:?}"),
    }
}

fn report(args: &str) -> sim::Report {
    match wanted(args).unwrap() {
        Wanted::Compare(plan) => sim::run(&plan).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Two tasks on the threads of a core, 10 ms each, and one that wakes another each ms.
fn recording() -> String {
    let switch = |at: u32, cpu: u32, prev: &str, state: &str, next: &str| {
        let number = |name: &str| match name {
            "idle" => 0,
            name => u32::from(name.as_bytes()[0]),
        };
        let (p, n) = (number(prev), number(next));
        format!(
            "{prev}-{p} [{cpu:03}] d..2. 5.{at:06}: sched_switch: prev_comm={prev} prev_pid={p} prev_prio=120 \
             prev_state={state} ==> next_comm={next} next_pid={n} next_prio=120\n"
        )
    };
    let mut text = "# scheduler: the test's\n".to_string();
    for (cpu, name) in [(0, "a"), (1, "b"), (2, "w")] {
        text += &switch(1000, cpu, "idle", "R", name);
    }
    for ms in 2..10u32 {
        let at = ms * 1000;
        text += &format!(
            "w-119 [002] d..2. 5.{at:06}: sched_waking: comm=s pid=115 prio=120 target_cpu=004\n"
        );
        text += &switch(at + 7, 4, "idle", "R", "s");
        text += &switch(at + 107, 4, "s", "S", "idle");
    }
    for (cpu, name) in [(0, "a"), (1, "b"), (2, "w")] {
        text += &switch(11_000, cpu, name, "S", "idle");
    }
    text
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("sched.txt"), recording()).unwrap();
    copy_machine(SMALL_SMT.tree().root(), &dir.path().join("sys")).unwrap();
    dir
}

#[test]
fn the_first_row_is_the_recording() {
    let dir = folder();
    let report = report(&format!("--replay {}", dir.path().display()));
    let recorded = report.recorded.as_ref().unwrap();
    assert_eq!((recorded.mean, recorded.wakeup_p50_us), (10e6, 7.0));
    // a and b share a core for 10 ms each; w and s do not.
    assert!((recorded.shared_percent - 20.0 / 30.8 * 100.0).abs() < 0.1);
    let rows: Vec<&str> = report.rows.iter().map(|r| r.variant.as_str()).collect();
    assert_eq!(rows, ["eevdf", "roost"]);
    for row in &report.rows {
        // Alone on their cores a and b need 6 ms; w still needs its 10.
        assert!((row.mean / 10e6 - 1.0).abs() < 0.03, "{}", row.mean);
        assert!(row.shared_percent < 1.0, "{}", row.shared_percent);
    }
    let text = report.text();
    assert!(text.contains("\nrecorded "), "{text}");
    assert!(
        text.contains("The scheduler of the recording: the test's."),
        "{text}"
    );
}

#[test]
fn its_pictures_begin_with_the_recording() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    let (svg, json) = (at("a.svg"), at("a.json"));
    let text = dir.path().join("sched.txt");
    report(&format!(
        "--replay {} --sysfs {} --variant eevdf --svg {} --trace {}",
        text.display(),
        dir.path().join("sys").display(),
        svg.display(),
        json.display()
    ));
    let svg = fs::read_to_string(svg).unwrap();
    let panels = [svg.find("recorded: "), svg.find("eevdf: ")];
    assert!(panels[0].is_some() && panels[0] < panels[1]);
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |pid: u64, name: &str| {
        let runs = events.iter().filter(|e| e["pid"] == pid && e["ph"] == "X");
        runs.filter(|e| e["name"] == name).count()
    };
    assert_eq!((of(1, "s-115"), of(2, "s-115")), (8, 8));
    assert_eq!(of(1, "a-97"), 1);
}

/// 55 lines that `perf script` 6.1 printed of `perf sched record`, of two tasks and a pipe on a
/// busy machine; the names of the others were changed.
const PERF_SCHED: &str = include_str!("perf-sched.txt");

#[test]
fn perf_sched_is_replayed_and_drawn() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("perf.txt"), PERF_SCHED).unwrap();
    let args = format!(
        "--replay {} --sysfs {} --variant eevdf --check --svg {} --trace {}",
        at("perf.txt"),
        at("sys"),
        at("a.svg"),
        at("a.json")
    );
    let Wanted::Compare(plan) = wanted(&args).unwrap() else {
        panic!("{args}");
    };
    let of = |name: &str| plan.load.groups.iter().find(|g| g.name == name).unwrap();
    assert!(!of("python3-6133").forked && of("python3-6176").forked);
    let report = sim::run(&plan).unwrap();
    let recorded = report.recorded.unwrap();
    // From its first line at 32335.307768368 to its last one that is read at 32335.319236910.
    assert_eq!(recorded.mean, 11_467_700.0);
    let drawn = fs::read_to_string(at("a.svg")).unwrap();
    assert!(drawn.contains("python3-6176") && drawn.ends_with("</svg>\n"));
    let trace: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(at("a.json")).unwrap()).unwrap();
    let runs = trace["traceEvents"].as_array().unwrap().iter();
    let runs = runs.filter(|e| e["ph"] == "X" && e["pid"] == 1 && e["name"] == "python3-6176");
    // The last one begins with the last event.
    assert_eq!(runs.count(), 5);
}

/// What perf prints of this machine, where it may record.
#[test]
fn perf_sched_of_this_machine_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let perf = |args: &str| {
        let done = Process::new("perf").args(args.split(' ')).output();
        done.ok()
            .filter(|done| done.status.success())
            .map(|done| done.stdout)
    };
    let made = perf(&format!("sched record -o {} -- sleep 0.05", at("data")))
        .and_then(|_| perf(&format!("script {PERF_FIELDS} -i {}", at("data"))));
    let Some(text) = made.filter(|text| !text.is_empty()) else {
        eprintln!("skipped: perf is not installed, or may not record the scheduler's events");
        return;
    };
    fs::write(at("text"), text).unwrap();
    let told = |file: &str| wanted(&format!("--replay {} --sysfs /sys", at(file)));
    match told("text") {
        Ok(Wanted::Compare(plan)) => assert!(plan.recording.unwrap().ns > 10_000_000),
        Ok(other) => panic!("{other:?}"),
        // As it says itself.
        Err(e) => assert!(format!("{e:#}").contains("events were lost"), "{e:#}"),
    }
    let error = format!("{:#}", told("data").unwrap_err());
    let advice =
        format!("it is the data of perf: print it with 'perf script {PERF_FIELDS} -i DATA");
    assert!(error.contains(&advice), "{error}");
}

/// As docs/simulator.md says, and the error about perf's own data.
const PERF_FIELDS: &str = "--show-lost-events -F comm,pid,tid,cpu,time,event,trace --ns";

#[test]
fn names_of_threads_spoil_no_picture() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let odd = "\u{1}<\u{1b}\n]]>&\"";
    let text = recording().replace("comm=s ", &format!("comm={odd} "));
    fs::write(at("odd.txt"), text).unwrap();
    report(&format!(
        "--replay {} --sysfs {} --variant eevdf --svg {} --trace {}",
        at("odd.txt"),
        at("sys"),
        at("a.svg"),
        at("a.json")
    ));
    let svg = fs::read_to_string(at("a.svg")).unwrap();
    assert!(svg.contains("&lt;") && !svg.contains(odd));
    assert!(!svg.contains(|c: char| c.is_control() && c != '\n'));
    let json = fs::read_to_string(at("a.json")).unwrap();
    serde_json::from_str::<serde_json::Value>(&json).unwrap();
}

/// They touched their data before the recording began, or in the work that was recorded.
#[test]
fn a_working_set_costs_nothing_at_the_start() {
    let dir = folder();
    let mean = |set: &str| {
        let args = format!("--replay {} --variant eevdf {set}", dir.path().display());
        report(&args).rows[0].mean
    };
    // 100 MB are 25,600 page faults for each task, which take longer than the recording.
    let (with, without) = (mean("--set set=100MB"), mean(""));
    assert!((with / without - 1.0).abs() < 0.1, "{with} {without}");
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let dir = folder();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("bad.txt"), "a-1 [000] hello\n").unwrap();
    fs::write(path("p.tsv"), "smt_speed\tx\t2\t1-2\tus\twhat\twho\n").unwrap();
    fs::write(path("q.tsv"), "# nothing\nsmt_speed 2\n").unwrap();
    for (args, told) in [
        (
            format!("--replay {}", path("sched.txt")),
            "give the machine that was recorded with --sysfs",
        ),
        (
            format!("--replay {} --sysfs {}", path("bad.txt"), path("sys")),
            "line 1: \"a-1 [000] hello\" where",
        ),
        (
            format!("--replay {} --sysfs {}", path("none"), path("sys")),
            "none: No such file",
        ),
        (
            format!("--replay {} --set x=1", path("")),
            "a recording has one param: --set set=SIZE",
        ),
        (format!("nas --replay {}", path("")), "cannot be used with"),
        (
            format!("--replay {} --seeds 2", path("")),
            "nothing is random in a replay, so each variant has one run",
        ),
        (
            format!("--replay {} --seed 2", path("")),
            "leave out --seed and --seeds",
        ),
        (
            format!("nas --params {}", path("p.tsv")),
            "line 1: smt_speed is in part, not us",
        ),
        (
            format!("nas --params {}", path("q.tsv")),
            "line 2: \"smt_speed 2\" where a row",
        ),
        (
            format!("nas --params {}", path("none")),
            "none: No such file",
        ),
    ] {
        let error = format!("{:#}", wanted(&args).unwrap_err());
        assert!(error.contains(told), "{args}: {error}");
    }
}

#[test]
fn a_file_of_parameters_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("here.tsv");
    let row = "name\tmachine\tdefault\trange\tunit\twhat\tsource\n# transfer_smt: not measured: no\n\
               smt_speed\tmeasured\t0.9\t0.88-0.93\tpart\tx\ty\n";
    fs::write(&file, row).unwrap();
    let args = format!("nas --params {} --param smt_speed=0.89", file.display());
    let Wanted::Compare(plan) = wanted(&args).unwrap() else {
        panic!("{args}");
    };
    // The file's range counts, and --param comes last.
    assert_eq!(plan.model.params.get("smt_speed").unwrap().value, 0.89);
    assert!(wanted(&args.replace("0.89", "0.6")).is_err());
}

/// The copy is all that is read of a machine, whatever else /sys holds.
#[test]
fn a_copied_machine_is_the_same() {
    let tree = SMALL_SMT.tree();
    tree.capacity(7, "512");
    tree.cpufreq(
        &[0, 1],
        &[
            ("scaling_driver", "acpi-cpufreq"),
            ("cpuinfo_max_freq", "3000000"),
        ],
    );
    tree.write("devices/system/cpu/nohz_full", "2-3");
    tree.write("devices/system/cpu/cpu0/crash_notes", "x");
    for root in [tree.root(), Path::new("/sys")] {
        let copy = tempfile::tempdir().unwrap();
        copy_machine(root, copy.path()).unwrap();
        assert_eq!(
            Machine::read(copy.path()).unwrap(),
            Machine::read(root).unwrap()
        );
        let policies = |root: &Path| Policies::read(&Host::new(root), 8);
        assert_eq!(policies(copy.path()).cpus, policies(root).cpus);
        assert!(
            !copy
                .path()
                .join("devices/system/cpu/cpu0/crash_notes")
                .exists()
        );
    }
}

#[test]
fn calibrate_is_a_command_of_its_own() {
    assert!(matches!(
        wanted("calibrate").unwrap(),
        Wanted::Calibrate(None)
    ));
    let wanted = wanted("calibrate --output x.tsv").unwrap();
    assert!(matches!(wanted, Wanted::Calibrate(Some(_))));
}
