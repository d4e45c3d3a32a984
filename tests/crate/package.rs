// SPDX-License-Identifier: GPL-2.0-only
//! What `cargo package` would publish: what the build needs and a packager installs, no test.

use crate::top;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Folders that are in it as a whole.
const WHOLE: [&str; 4] = ["src", "build", "contrib", "docs"];
const SINGLE: [&str; 8] = [
    ".cargo/config.toml",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "build.rs",
    "scripts/clang",
];
/// Cargo adds these; the last only in a git repository.
const OF_CARGO: [&str; 4] = [
    "Cargo.lock",
    "Cargo.toml",
    "Cargo.toml.orig",
    ".cargo_vcs_info.json",
];

/// The package's files. It is not built: the same files were built for this test.
fn package() -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "package",
            "--list",
            "--locked",
            "--offline",
            "--allow-dirty",
        ])
        .current_dir(top())
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("names are text");
    text.lines().map(str::to_string).collect()
}

fn files(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files(&path, found),
            false => drop(found.insert(path.strip_prefix(top()).unwrap().display().to_string())),
        }
    }
}

#[test]
fn the_package_has_what_it_needs_and_no_test() {
    let listed = package();
    let mut needed: BTreeSet<String> = SINGLE.map(str::to_string).into();
    for folder in WHOLE {
        files(&top().join(folder), &mut needed);
    }
    assert!(needed.contains("src/bpf/main.bpf.c"));
    let missing: Vec<_> = needed.difference(&listed).collect();
    assert!(missing.is_empty(), "not in the package: {missing:?}");
    let is_extra = |name: &&String| !OF_CARGO.contains(&name.as_str());
    let extra: Vec<_> = listed.difference(&needed).filter(is_extra).collect();
    assert!(extra.is_empty(), "in the package without need: {extra:?}");
}

/// Paths that the sources include at compile time, relative to the top.
fn included(file: &str) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(top().join(file)).unwrap();
    let marks = ["include_str!(\"", "include_bytes!(\"", "#[path = \""];
    let begins = marks.iter().flat_map(|mark| text.split(mark).skip(1));
    let paths = begins.filter_map(|rest| rest.split('"').next());
    let paths = paths.filter(|path| *path != ".");
    paths
        .map(|path| plain(&Path::new(file).with_file_name(path)))
        .collect()
}

/// Without `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut all, part| {
        match part {
            Component::ParentDir => drop(all.pop()),
            part => all.push(part),
        }
        all
    })
}

#[test]
fn what_sources_include_is_in_the_package() {
    let listed = package();
    let sources = listed.iter().filter(|name| name.ends_with(".rs"));
    let mut count = 0;
    for (file, path) in sources.flat_map(|f| included(f).into_iter().map(move |path| (f, path))) {
        count += 1;
        let path = path.display().to_string();
        assert!(listed.contains(&path), "{file} includes {path}");
    }
    assert!(count > 5, "only {count} were found");
}

/// scripts/freshdeps --oldest builds with `rust-version`, everything else with the pinned one.
#[test]
fn the_pinned_rust_is_a_supported_one() {
    let value = |file: &str, key: &str| {
        let text = std::fs::read_to_string(top().join(file)).unwrap();
        let begins = format!("{key} = \"1.");
        let line = text.lines().find_map(|line| line.strip_prefix(&begins));
        let minor = line.and_then(|line| line.split(['.', '"']).next()?.parse::<u32>().ok());
        minor.unwrap_or_else(|| panic!("{file} has no {key} of Rust 1"))
    };
    let oldest = value("Cargo.toml", "rust-version");
    assert!(value("rust-toolchain.toml", "channel") >= oldest);
}

/// The command line would outrank every file of the user.
#[test]
fn a_package_gives_its_settings_in_a_file() {
    for file in [
        "scripts/deb",
        "contrib/arch/PKGBUILD",
        "contrib/rpm/scx_roost.spec",
    ] {
        let text = std::fs::read_to_string(top().join(file)).unwrap();
        assert!(!text.contains("--stats-group"), "{file}");
        assert!(text.contains("config.d/10-package.toml"), "{file}");
    }
}
