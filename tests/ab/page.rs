// SPDX-License-Identifier: GPL-2.0-only
//! The page that a report is written to. No other file is overwritten, even if somebody prepared
//! the path for that.

use crate::child::output;
use crate::played::{complete, lines};
use scx_roost::ab::page::Page;
use scx_roost::ab::report::Report;
use scx_roost::ab::report::html::html;
use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::path::Path;
use std::process::Command;

/// A folder with the result file 'r'.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r"), lines(&complete())).unwrap();
    folder
}

fn command(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_roost"));
    command.arg("ab").args(words.split(' ')).current_dir(folder);
    command
}

/// Runs `scx_roost ab` and returns its stderr, which is empty on success.
fn ab(folder: &Path, words: &str) -> String {
    let output = output(&mut command(folder, words));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.success(), told.is_empty(), "{told}");
    told
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = names
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_page_does_not_replace_the_result() {
    let folder = folder();
    let (at, result) = (folder.path(), folder.path().join("r"));
    fs::hard_link(&result, at.join("linked")).unwrap();
    symlink("r", at.join("to-r")).unwrap();
    let before = fs::read(&result).unwrap();
    let absolute = result.display().to_string();
    for words in [
        "show r --html r",
        "show r --html ./r",
        "show to-r --html r",
        "show r --html linked",
        &format!("show r --html {absolute}"),
    ] {
        let told = ab(at, words);
        assert!(told.contains(" are the same file"), "{words}: {told}");
    }
    let two = "--variant mainline --variant roost";
    let told = ab(at, &format!("{two} --result new --html new -- true"));
    assert!(told.contains("new and new are the same file"), "{told}");
    assert_eq!(fs::read(&result).unwrap(), before);
    assert_eq!(files(at), ["linked", "r", "to-r"]);
    assert_eq!(ab(at, "show r --html h"), "");
    assert_eq!(files(at), ["h", "linked", "r", "to-r"]);
}

/// A page of ours is replaced by the next one, and an empty file is, as `mktemp` makes it.
#[test]
fn a_file_that_is_no_page_of_ours_is_kept() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("notes"), "# Notes\nof a year\n").unwrap();
    fs::write(at.join("empty"), "").unwrap();
    let told = ab(at, "show r --html notes");
    assert!(
        told.contains("cannot write notes: it exists and is no page of scx_roost ab"),
        "{told}"
    );
    for _ in 0..2 {
        assert_eq!(ab(at, "show r --html empty"), "");
    }
    let notes = fs::read_to_string(at.join("notes")).unwrap();
    assert_eq!(notes, "# Notes\nof a year\n");
    assert!(fs::metadata(at.join("empty")).unwrap().len() > 100);
}

/// Before the first run, and before a result file is created.
#[test]
fn a_page_that_cannot_be_written_is_reported_at_once() {
    let folder = folder();
    let at = folder.path();
    fs::create_dir(at.join("folder")).unwrap();
    symlink("r", at.join("link")).unwrap();
    for (page, why) in [
        ("none/x.html", "No such file or directory"),
        ("folder", "it exists and is not a plain file"),
        ("link", "it exists and is not a plain file"),
        ("/dev/null", "it exists and is not a plain file"),
    ] {
        let two = "--variant mainline --variant roost";
        let told = ab(at, &format!("{two} --result new --html {page} -- true"));
        let begin = format!("cannot write {page}: ");
        assert!(told.contains(&begin) && told.contains(why), "{told}");
    }
    assert_eq!(files(at), ["folder", "link", "r"]);
}

/// Root does not write through a link that another user made. It does through links of root and of
/// the invoking user.
#[test]
fn a_link_of_another_user_leads_nowhere() {
    // SAFETY: a plain call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skip: root alone could be led");
        return;
    }
    let folder = folder();
    let at = folder.path();
    for name in ["there", "theirs"] {
        fs::create_dir(at.join(name)).unwrap();
    }
    for (link, owner) in [("own", 0), ("of-7", 7), ("of-8", 8)] {
        symlink(at.join("there"), at.join("theirs").join(link)).unwrap();
        lchown(at.join("theirs").join(link), Some(owner), None).unwrap();
    }
    let two = "--variant mainline --variant roost";
    for words in [
        "show r --html theirs/of-7/x".to_string(),
        format!("{two} --result theirs/of-7/x -- true"),
    ] {
        let told = ab(at, &words);
        let why = "the link of-7 on the way there belongs to user 7, and root does not follow it";
        assert!(
            told.contains("cannot write theirs/of-7/x: ") && told.contains(why),
            "{told}"
        );
    }
    assert!(files(&at.join("there")).is_empty());
    // It also does not resume a file there, or a file whose own name is a link.
    fs::copy(at.join("r"), at.join("there/x")).unwrap();
    symlink("../there/x", at.join("theirs/x")).unwrap();
    let before = fs::read(at.join("there/x")).unwrap();
    for (result, why) in [
        (
            "theirs/of-7/x",
            "the link of-7 on the way there belongs to user 7",
        ),
        ("theirs/x", "symbolic link"),
    ] {
        let told = ab(at, &format!("{two} --resume --result {result} -- true"));
        let begin = format!("cannot continue {result}: ");
        assert!(told.contains(&begin) && told.contains(why), "{told}");
    }
    assert_eq!(fs::read(at.join("there/x")).unwrap(), before);
    fs::remove_file(at.join("there/x")).unwrap();
    assert_eq!(ab(at, "show r --html theirs/own/x"), "");
    let said = |link: &str| {
        let words = format!("show r --html theirs/{link}/z-{link}");
        let mut command = command(at, &words);
        command.envs([("SUDO_UID", "8"), ("SUDO_GID", "8")]);
        output(&mut command).status.success()
    };
    assert_eq!(
        [said("of-8"), said("of-7"), said("own")],
        [true, false, true]
    );
    assert_eq!(files(&at.join("there")), ["x", "z-of-8", "z-own"]);
}

/// A link that was made after the check is replaced; its target stays as it is.
#[test]
fn nothing_is_written_through_a_link() {
    let folder = folder();
    let at = folder.path();
    let recorded = complete();
    let report = Report::new(&recorded).unwrap();
    let page = Page(Some(at.join("h")));
    page.check(&at.join("r")).unwrap();
    let before = fs::read(at.join("r")).unwrap();
    symlink("r", at.join("h")).unwrap();
    page.write(|| html(&report)).unwrap();
    assert_eq!(fs::read(at.join("r")).unwrap(), before);
    assert!(fs::symlink_metadata(at.join("h")).unwrap().is_file());
    assert_eq!(files(at), ["h", "r"]);
}
