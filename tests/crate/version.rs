// SPDX-License-Identifier: GPL-2.0-only
//! Which commit a build names.

#[path = "../../build/commit.rs"]
#[allow(dead_code)]
mod commit;

use crate::top;
use std::path::Path;
use std::process::Command;

fn run(name: &str, at: &Path, args: &[&str]) -> String {
    let output = Command::new(name).current_dir(at).args(args).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{name} {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

#[test]
fn the_version_has_the_commit_of_the_build() {
    let printed = run(env!("CARGO_BIN_EXE_scx_roost"), top(), &["--version"]);
    let version = concat!("scx_roost ", env!("CARGO_PKG_VERSION"));
    match env!("ROOST_COMMIT") {
        "" => assert!(printed.starts_with(&format!("{version} ")), "{printed}"),
        commit => {
            assert!(
                printed.starts_with(&format!("{version}-g{commit} ")),
                "{printed}"
            );
            assert_eq!(commit.len(), 12, "{printed}");
        }
    }
}

#[test]
fn a_clone_has_the_commit_of_its_head() {
    let dir = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| run("git", dir.path(), args);
    let commit = |what: &str| {
        let who = ["-c", "user.name=x", "-c", "user.email=x@x"];
        let what = ["commit", "--quiet", "--allow-empty", "-m", what];
        git(&[&who[..], &what].concat());
        git(&["rev-parse", "HEAD"])
    };
    git(&["init", "--quiet"]);
    assert_eq!(commit::of_clone(dir.path()), None);
    for what in ["one", "two"] {
        let head = commit(what);
        assert_eq!(commit::of_clone(dir.path()), Some(head));
    }
    git(&["pack-refs", "--all"]);
    let head = commit("three");
    assert_eq!(commit::of_clone(dir.path()), Some(head));
    // A source in another project's clone.
    let inner = dir.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    assert_eq!(commit::of_clone(&inner), None);
}

#[test]
fn a_package_has_the_commit_that_cargo_wrote() {
    let text = "{\n  \"git\": {\n    \"sha1\": \"0123abcd\"\n  },\n  \"path_in_vcs\": \"\"\n}";
    assert_eq!(commit::of_package(text), Some("0123abcd".to_string()));
    assert_eq!(commit::of_package("{\"path_in_vcs\": \"\"}"), None);
}
