// SPDX-License-Identifier: GPL-2.0-only
//! The floors of src/: each imports only floors below it. ARCHITECTURE.md shows them.

use regex::Regex;
use std::collections::BTreeSet;
use std::path::Path;

/// From the bottom up. Floors of one line do not import each other.
const FLOORS: [&[&str]; 11] = [
    &["util"],
    &["bpf"],
    &["machine"],
    &["model"],
    &["publish"],
    &["policy"],
    &["native", "placement", "wire"],
    &["doctor", "rustland"],
    &["daemon", "clients"],
    &["ab"],
    &["cli"],
];
/// Files at the root of src/, at most.
const ROOT_FILES: usize = 4;

fn floor(name: &str) -> usize {
    let found = FLOORS.iter().position(|floor| floor.contains(&name));
    found.unwrap_or_else(|| panic!("src/{name} is on no floor: add it to FLOORS"))
}

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path.display().to_string());
        }
    }
}

/// Imports that do not name their floor: groups, what lib.rs exports, and `super` of a mod.rs.
const HIDDEN: &str = r"\bcrate::(\{|[A-Z]|stopper\b|program\b)";

/// Pairs of (importing, imported) directories of src/, without tests inside the files.
fn imports(top: &Path) -> BTreeSet<(String, String, String)> {
    let import = Regex::new(r"\bcrate::([a-z]+)\b").unwrap();
    let hidden = Regex::new(HIDDEN).unwrap();
    let known: Vec<&str> = FLOORS.iter().flat_map(|f| f.iter().copied()).collect();
    let mut all = Vec::new();
    sources(top, &mut all);
    let mut found = BTreeSet::new();
    for file in all {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let name = Path::new(&file).strip_prefix(top).unwrap();
        let mut parts = name.iter().map(|part| part.to_str().unwrap());
        let (Some(from), Some(_)) = (parts.next(), parts.next()) else {
            continue;
        };
        for line in code.lines().filter(|l| !l.trim_start().starts_with("//")) {
            let climbs = name.ends_with("mod.rs") && name.iter().count() == 2;
            let above = known
                .iter()
                .any(|f| line.contains(&format!("super::{f}::")));
            let unnamed = hidden.is_match(line) || climbs && above;
            assert!(!unnamed, "{file}: name the floor in '{line}'");
            for to in import.captures_iter(line).map(|c| c[1].to_string()) {
                if to != from && known.contains(&to.as_str()) {
                    found.insert((from.to_string(), to, name.display().to_string()));
                }
            }
        }
    }
    found
}

#[test]
fn each_floor_imports_only_those_below_it() {
    let top = crate::top().join("src");
    let found = imports(&top);
    assert!(found.len() > 100, "only {} imports", found.len());
    let upward = |(from, to, _): &&(String, String, String)| floor(from) <= floor(to);
    let wrong: Vec<_> = found.iter().filter(upward).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Packages of crates/ use the scheduler; it uses none of them, not even for its tests.
#[test]
fn the_scheduler_uses_no_package_of_crates() {
    let text = std::fs::read_to_string(crate::top().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let of = |name: &str| manifest.get(name).and_then(toml::Value::as_table);
    let tables = ["dependencies", "build-dependencies", "dev-dependencies"];
    let used: Vec<&String> = tables
        .iter()
        .filter_map(|t| of(t))
        .flat_map(|t| t.keys())
        .collect();
    assert!(used.len() > 20, "only {used:?} were found");
    let mut packages = 0;
    for entry in std::fs::read_dir(crate::top().join("crates")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let text = std::fs::read_to_string(manifest).unwrap();
        let package: toml::Table = text.parse().unwrap();
        let name = package["package"]["name"].as_str().unwrap();
        assert!(used.iter().all(|used| used.as_str() != name), "{name}");
        packages += 1;
    }
    assert!(packages > 0);
}

#[test]
fn few_files_are_at_the_root() {
    let top = crate::top().join("src");
    let entries = std::fs::read_dir(top).unwrap().flatten();
    let files: Vec<_> = entries.filter(|e| e.path().is_file()).collect();
    assert!(files.len() <= ROOT_FILES, "{files:?}");
}
