// SPDX-License-Identifier: GPL-2.0-only
//! The commit that this is built from, for `scx_roost --version`.

use std::path::Path;
use std::process::Command;

/// What cargo puts into a package.
const OF_PACKAGE: &str = ".cargo_vcs_info.json";
/// In a version of 40 digits, so that it is the same in every clone.
const DIGITS: usize = 12;

/// Sets ROOST_COMMIT for the crate, which is empty if the commit is not known. If the variable is
/// set already, that counts: for a source without git, or, as an empty one, for builds that do not
/// change with each commit.
pub fn find() {
    println!("cargo:rerun-if-env-changed=ROOST_COMMIT");
    let told = std::env::var("ROOST_COMMIT").ok();
    let packaged = || of_package(&std::fs::read_to_string(OF_PACKAGE).ok()?);
    let commit = told
        .or_else(packaged)
        .or_else(|| of_clone(Path::new(".")))
        .unwrap_or_default();
    let short: String = commit.trim().chars().take(DIGITS).collect();
    println!("cargo:rustc-env=ROOST_COMMIT={short}");
}

/// The commit that the text of the package's file names.
pub fn of_package(text: &str) -> Option<String> {
    let words = text.split('"').skip_while(|word| *word != "sha1");
    words.skip(2).map(str::to_string).next()
}

/// The commit of the clone whose top folder this is.
pub fn of_clone(top: &Path) -> Option<String> {
    // Without it git would find the clone that a source is unpacked in.
    top.join(".git").exists().then_some(())?;
    // The second grows with each commit and checkout, also where refs are packed.
    for file in ["HEAD", "logs/HEAD"] {
        let path = top.join(git(top, &["rev-parse", "--git-path", file])?);
        // A file that does not exist would run this script each time.
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(top, &["rev-parse", "HEAD"])
}

/// None: there is no git, or it refuses another user's clone.
fn git(top: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(top).args(args).output();
    let output = output.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}
