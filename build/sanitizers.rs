// SPDX-License-Identifier: GPL-2.0-only
//! Links clang's sanitizers, and with the feature `fuzz` libFuzzer's runtime to the examples. Each
//! package that links the native policy does this for its own programs.

use std::path::PathBuf;
use std::process::Command;

pub fn clang() -> String {
    std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".into())
}

/// Links the runtimes that the features ask for.
pub fn link() -> Result<(), String> {
    let clang = clang();
    if std::env::var_os("CARGO_FEATURE_FUZZ").is_some() {
        link_fuzzer(&clang)?;
    }
    link_sanitizers(&clang)
}

/// Links the runtime by name, whole and with its symbols exported, because rustc links with another
/// compiler.
fn link_sanitizers(clang: &str) -> Result<(), String> {
    let runtime = runtime(clang, "asan")?;
    let exported = runtime.with_extension("a.syms");
    for arg in [
        "-Wl,--whole-archive".into(),
        runtime.display().to_string(),
        "-Wl,--no-whole-archive".into(),
        format!("-Wl,--dynamic-list={}", exported.display()),
        "-lpthread".into(),
        "-lrt".into(),
        "-lm".into(),
        "-ldl".into(),
        "-lresolv".into(),
    ] {
        println!("cargo:rustc-link-arg={arg}");
    }
    Ok(())
}

/// libFuzzer's runtime is C++. It is the variant without main(), which tests/fuzz/drive.rs
/// provides.
fn link_fuzzer(clang: &str) -> Result<(), String> {
    let runtime = runtime(clang, "fuzzer_no_main")?;
    for arg in [runtime.display().to_string(), "-lstdc++".into()] {
        println!("cargo:rustc-link-arg-examples={arg}");
    }
    Ok(())
}

fn runtime(clang: &str, name: &str) -> Result<PathBuf, String> {
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").map_err(|e| e.to_string())?;
    let file = format!("libclang_rt.{name}-{arch}.a");
    let out = Command::new(clang)
        .arg(format!("-print-file-name={file}"))
        .output()
        .map_err(|e| format!("feature sanitize: {clang} does not run: {e}"))?;
    let path = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
    if !path.is_absolute() {
        return Err(format!(
            "feature sanitize: {clang} has no {file}: install its runtime, for example \
             'apt-get install libclang-rt-19-dev'"
        ));
    }
    Ok(path)
}
