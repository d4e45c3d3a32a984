// SPDX-License-Identifier: GPL-2.0-only
//! Finds the clang that builds BPF. scripts/clang does the same for the build script of scx_utils,
//! which runs first.

use std::process::Command;

const OLDEST: u32 = 18;
const NAMES: [&str; 6] = [
    "clang", "clang-22", "clang-21", "clang-20", "clang-19", "clang-18",
];

/// Sets BPF_CLANG, which scx_cargo reads. If it is set already, it is only checked.
pub fn choose() -> Result<(), String> {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    if let Ok(set) = std::env::var("BPF_CLANG") {
        return check(&set);
    }
    let found = NAMES
        .into_iter()
        .find(|name| major(name) >= Some(OLDEST))
        .ok_or_else(none_found)?;
    // SAFETY: a build script has one thread.
    unsafe { std::env::set_var("BPF_CLANG", found) };
    Ok(())
}

fn check(clang: &str) -> Result<(), String> {
    match major(clang) {
        Some(v) if v >= OLDEST => Ok(()),
        Some(v) => Err(format!(
            "BPF_CLANG={clang} is clang {v}, {OLDEST} or later is needed: {INSTALL}"
        )),
        None => Err(format!("BPF_CLANG={clang} does not run: {INSTALL}")),
    }
}

const INSTALL: &str = "install one, for example 'apt-get install clang-19', or set BPF_CLANG";

fn none_found() -> String {
    format!(
        "no clang of version {OLDEST} or later was found (looked for {}): {INSTALL}",
        NAMES.join(", ")
    )
}

fn major(clang: &str) -> Option<u32> {
    let out = Command::new(clang).arg("-dumpversion").output().ok()?;
    String::from_utf8(out.stdout)
        .ok()?
        .trim()
        .split('.')
        .next()?
        .parse()
        .ok()
}
