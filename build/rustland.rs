// SPDX-License-Identifier: GPL-2.0-only
//! The parts of scx_rustland_core that it generates into the program that uses it. It writes them
//! below the current directory, and tells cargo to watch files there by names that are wrong from
//! here. So a process of its own does it, in a folder of the build; what that prints is dropped.

use scx_rustland_core::RustLandBuilder;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Set for the process that generates.
const STEP: &str = "ROOST_RUSTLAND_STEP";
/// The code expects to be at the root of a program of its own, which catches signals with it. Also,
/// it would forbid its thread mmap() for good, which a second load needs. Its report of the end
/// panics if stderr has no reader: `bpf::exit` reports instead.
const CHANGES: [(&str, &str); 6] = [
    ("crate::bpf_intf", "super::bpf_intf"),
    ("crate::bpf_skel", "super::bpf_skel"),
    (
        "set_ctrlc_handler(shutdown.clone()).context(\"Error setting Ctrl-C handler\")?;",
        "",
    ),
    (
        "ALLOCATOR.disable_mmap().expect(\"Failed to disable mmap\");",
        "",
    ),
    (
        "shutdown_and_report(&mut self) -> Result<UserExitInfo> {",
        "detach(&mut self) {",
    ),
    ("uei_report!(&self.skel, uei)", ""),
];

/// Makes `rustland/` in the folder of this build: `bpf_intf.rs`, `bpf_skel.rs` and `core.rs`.
pub fn build(out: &Path) -> Result<(), String> {
    let folder = out.join("rustland");
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", folder.display());
    fs::create_dir_all(folder.join("src")).map_err(|e| failed(&e))?;
    let program = env::current_exe().map_err(|e| failed(&e))?;
    let mut step = Command::new(program);
    step.env(STEP, "1")
        .env("OUT_DIR", &folder)
        .current_dir(&folder);
    let done = step.output().map_err(|e| failed(&e))?;
    if !done.status.success() {
        return Err(failed(&String::from_utf8_lossy(&done.stderr)));
    }
    let text = fs::read_to_string(folder.join("src/bpf.rs")).map_err(|e| failed(&e))?;
    fs::write(folder.join("core.rs"), changed(text)?).map_err(|e| failed(&e))
}

/// What the process that generates does; None: this is not that process.
pub fn step() -> Option<Result<(), String>> {
    env::var_os(STEP)?;
    let built = RustLandBuilder::new().and_then(|mut builder| builder.build());
    Some(built.map_err(|e| format!("scx_rustland_core: {e:#}")))
}

fn changed(mut text: String) -> Result<String, String> {
    for (from, to) in CHANGES {
        if !text.contains(from) {
            return Err(format!(
                "scx_rustland_core no longer has '{from}' in its bpf.rs: change CHANGES in \
                 build/rustland.rs to what it has"
            ));
        }
        text = text.replace(from, to);
    }
    Ok(text)
}
