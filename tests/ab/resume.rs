// SPDX-License-Identifier: GPL-2.0-only
//! What --resume takes over from the files: the seed, and the user.

use crate::child::output;
use crate::played::{Played, played_runs};
use clap::Parser;
use scx_roost::ab::args::{AbArgs, TuneArgs};
use scx_roost::ab::result::{Recorded, ResultFile};
use scx_roost::ab::run::{End, run};
use scx_roost::ab::tasks::Task;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const VARIANTS: &str = "--variant mainline --variant roost";

#[derive(Parser)]
struct Typed<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

fn task(folder: &Path, words: &str) -> anyhow::Result<Task> {
    let result = folder.join("r.jsonl");
    let line = format!("ab {VARIANTS} --result {} {words}", result.display());
    let typed = Typed::<AbArgs>::try_parse_from(line.split(' '))?;
    typed.args.task(BTreeMap::new())
}

fn seed(folder: &Path, words: &str) -> u64 {
    task(folder, words).unwrap().header.seed
}

fn error<T>(result: anyhow::Result<T>) -> String {
    format!("{:#}", result.map(|_| ()).unwrap_err())
}

#[test]
fn the_file_has_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let missing = error(task(folder.path(), "--resume -- true"));
    assert!(missing.starts_with("cannot read "), "{missing}");
    let first = task(folder.path(), "--seed 77 -- true").unwrap();
    drop(ResultFile::create(&first.result, &first.header).unwrap());
    assert_eq!(seed(folder.path(), "--resume -- true"), 77);
    assert_eq!(seed(folder.path(), "--resume --seed 78 -- true"), 78);
    let later = task(folder.path(), "--resume --timeout 5 -- true").unwrap();
    assert!(later.resume && later.timeout.as_secs() == 5);
    ResultFile::resume(&later.result, &later.header).unwrap();
}

/// The outcome of a command depends on its user. A file without a user is not checked.
#[test]
fn another_user_does_not_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let task = task(folder.path(), "-- true").unwrap();
    let (file, own) = (&task.result, task.header.user.clone().unwrap());
    assert_eq!(own, scx_roost::util::user::name_of(None));
    let by = |user: Option<&str>| {
        let mut header = task.header.clone();
        header.user = user.map(str::to_string);
        header
    };
    drop(ResultFile::create(file, &by(Some("alice"))).unwrap());
    let told = error(ResultFile::resume(file, &task.header));
    let why = format!(
        "its command was run as alice, and now would be as {own}: continue as alice, or with --user alice"
    );
    assert!(
        told.starts_with("cannot continue ") && told.ends_with(&why),
        "{told}"
    );
    drop(ResultFile::resume(file, &by(Some("alice"))).unwrap());
    fs::remove_file(file).unwrap();
    drop(ResultFile::create(file, &by(None)).unwrap());
    drop(ResultFile::resume(file, &task.header).unwrap());
}

#[test]
fn a_file_without_its_first_line_says_no_seed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.jsonl"), "").unwrap();
    assert_eq!(seed(folder.path(), "--resume --seed 78 -- true"), 78);
}

#[test]
fn the_first_step_has_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let task = |words: &str| {
        let line = format!("tune --result {} {words} -- true", folder.path().display());
        let typed = Typed::<TuneArgs>::parse_from(line.split(' '));
        typed.args.task(BTreeMap::new()).unwrap()
    };
    let mut header = task("--seed 77").header;
    // There is no file yet: the search begins.
    task("--resume");
    header.variants.push("mainline".into());
    let file = folder.path().join("pass.jsonl");
    drop(ResultFile::create(&file, &header).unwrap());
    assert_eq!(task("--resume").header.seed, 77);
}

/// Its last comparison is of two variants.
#[test]
fn a_search_that_can_find_nothing_is_refused() {
    let task = |n: &str| {
        let typed = Typed::<TuneArgs>::parse_from(["tune", "-n", n, "--", "true"]);
        typed.args.task(BTreeMap::new())
    };
    for few in ["1", "2"] {
        let told = error(task(few));
        assert!(told.ends_with(": give -n 3 or more"), "{told}");
    }
    for enough in ["3", "12", "auto", "auto:24"] {
        task(enough).unwrap();
    }
}

/// A complete comparison is only shown: no scheduler is loaded.
#[test]
fn what_is_done_leaves_the_machine_alone() {
    let folder = tempfile::tempdir().unwrap();
    let task = task(folder.path(), "-n 6 -- true").unwrap();
    let runs = played_runs(&task.header, 1);
    let lines = crate::played::lines(&Recorded {
        runs,
        ..Recorded::new(task.header.clone())
    });
    fs::write(&task.result, lines).unwrap();
    let (mut file, mut recorded) = ResultFile::resume(&task.result, &task.header).unwrap();
    let mut machine = Played::new(1);
    let ended = run(
        &mut recorded,
        &mut machine,
        &mut file,
        &|| false,
        &mut |_| (),
    );
    assert_eq!(ended.unwrap(), End::Done);
    assert_eq!(machine.asked, [""; 0]);
}

/// The command fails in its first run: its file says so, a repeat counts that, and until a round is
/// complete there is no verdict. A command that cannot be run leaves no file. Without --result, the
/// first file that is free is begun, and the last one is continued.
#[test]
fn a_first_run_that_fails_is_not_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ab.jsonl"), "").unwrap();
    let file = folder.path().join("ab-2.jsonl");
    let called = |words: &[&str], command: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_scx_roost"));
        program.current_dir(&folder).arg("ab");
        let output = output(program.args(words).args(command));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), told)
    };
    let two = ["--variant", "eevdf", "--variant", "pinned", "-n", "3"];
    let again = [&two[..], &["--resume"]].concat();
    let (status, told) = called(&two, &["--", "no-such-program"]);
    assert_eq!(status, Some(1));
    assert!(
        told.contains("'no-such-program' cannot be run") && !file.exists(),
        "{told}"
    );
    let fails_once = [
        "--",
        "sh",
        "-c",
        "test -e again || { touch again; exit 7; }",
    ];
    let (_, told) = called(&two, &fails_once);
    assert!(
        told.contains("ab-2.jsonl notes that: repeat it with --resume"),
        "{told}"
    );
    let begun = Recorded::read(&file).unwrap();
    assert_eq!((begun.runs.len(), begun.failed.len()), (0, 1));
    let show = |file: &str| called(&["show", file], &[]);
    let (status, told) = show("ab-2.jsonl");
    assert_eq!(status, Some(1));
    assert!(
        told.contains("there is no verdict: not one round of runs is complete"),
        "{told}"
    );
    assert_eq!(called(&again, &fails_once).0, Some(0));
    let whole = Recorded::read(&file).unwrap();
    assert_eq!(whole.runs.len(), whole.header.order().len());
    assert_eq!(whole.failed, begun.failed);
    assert_eq!(show("ab-2.jsonl").0, Some(0));
    assert!(!folder.path().join("ab-3.jsonl").exists());
}
