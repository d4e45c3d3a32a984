// SPDX-License-Identifier: GPL-2.0-only
//! Builds the BPF half, and generates Rust from the C tables, so that a feature or a counter is
//! written once. The steps are in build/: `clang` finds the compiler, `commit` the commit, `tables`
//! reads the rows, `native` compiles the policy for tests, benches and crates/sim, `rustland`
//! generates the part of scx_rustland_core.

#[path = "build/clang.rs"]
mod clang;
#[path = "build/commit.rs"]
mod commit;
#[path = "build/native.rs"]
mod native;
#[cfg(feature = "rustland")]
#[path = "build/rustland.rs"]
mod rustland;
#[path = "build/sanitizers.rs"]
mod sanitizers;
#[path = "build/tables.rs"]
mod tables;

use std::path::{Path, PathBuf};
use std::process::exit;

fn main() {
    if let Err(e) = build() {
        eprintln!("scx_roost: {e}");
        exit(1);
    }
}

fn build() -> Result<(), String> {
    #[cfg(feature = "rustland")]
    if let Some(done) = rustland::step() {
        return done;
    }
    clang::choose()?;
    commit::find();
    let out = PathBuf::from(std::env::var("OUT_DIR").map_err(|e| format!("OUT_DIR: {e}"))?);
    write(
        &out.join("features_tbl.rs"),
        &tables::features("src/bpf/features.tbl.h")?,
    )?;
    write(
        &out.join("stats_tbl.rs"),
        &tables::stats("src/bpf/stats.tbl.h")?,
    )?;
    write(
        &out.join("hist_tbl.rs"),
        &tables::hists("src/bpf/hist.tbl.h")?,
    )?;
    rerun_if_changed(Path::new("src/bpf"))?;
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_INTERNALS").is_some() {
        native::build(&out)?;
    }
    #[cfg(feature = "rustland")]
    rustland::build(&out)?;
    build_bpf().map_err(|e| format!("the BPF half does not build: {}", chain(e.as_ref())))
}

fn build_bpf() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::var_os("CARGO_FEATURE_FAULTS").is_some() {
        define("ROOST_FAULTS");
    }
    scx_cargo::BpfBuilder::new()?
        .enable_intf("src/bpf/intf.h", "bpf_intf.rs")
        .enable_skel("src/bpf/main.bpf.c", "bpf")
        .build()?;
    // For tests and benches; no part of the library or of the program.
    scx_cargo::BpfBuilder::new()?
        .enable_skel("src/bpf/test.bpf.c", "test")
        .build()?;
    Ok(())
}

/// BpfBuilder takes extra flags from the environment only.
fn define(name: &str) {
    const FLAGS: &str = "BPF_EXTRA_CFLAGS_PRE_INCL";
    let flags = std::env::var(FLAGS).unwrap_or_default();
    // SAFETY: a build script has one thread.
    unsafe { std::env::set_var(FLAGS, format!("{flags} -D{name}")) };
}

/// An error with its causes: the last one has the compiler's messages.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", chain(cause)),
        None => error.to_string(),
    }
}

/// BpfBuilder watches only the files beside main.bpf.c; the policy's headers are in a folder below.
fn rerun_if_changed(dir: &Path) -> Result<(), String> {
    println!("cargo:rerun-if-changed={}", dir.display());
    let entries = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    for path in entries.filter_map(|e| Some(e.ok()?.path())) {
        if path.is_dir() {
            rerun_if_changed(&path)?;
        } else {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
