// SPDX-License-Identifier: GPL-2.0-only
//! Runs the targets under libFuzzer, for scripts/fuzz.
//!
//!     fuzz --list
//!     fuzz TARGET [arguments of libFuzzer: -max_total_time=60, folders of inputs, an input ...]

mod targets;

use std::ffi::{CString, c_char, c_int};
use std::process::exit;
use std::ptr::null_mut;
use std::sync::OnceLock;
use targets::TARGETS;

type One = extern "C" fn(*const u8, usize) -> c_int;

unsafe extern "C" {
    fn LLVMFuzzerRunDriver(argc: *mut c_int, argv: *mut *mut *mut c_char, one: One) -> c_int;
}

/// libFuzzer restarts itself to merge inputs, with the same arguments except the first. This
/// variable then holds the target's name.
const TARGET: &str = "ROOST_FUZZ_TARGET";

static RUN: OnceLock<fn(&[u8])> = OnceLock::new();

/// A panic cannot unwind out of it and aborts; libFuzzer then saves the input.
extern "C" fn one(data: *const u8, len: usize) -> c_int {
    // SAFETY: libFuzzer gives `len` bytes, valid during the call. For 0 bytes the address may be
    // null.
    let input = match len {
        0 => &[],
        _ => unsafe { std::slice::from_raw_parts(data, len) },
    };
    RUN.get().expect("a target")(input);
    0
}

fn main() {
    let mut args: Vec<String> = std::env::args().collect();
    let name = match std::env::var(TARGET) {
        Ok(name) => name,
        Err(_) if args.len() == 1 => "--list".to_string(),
        Err(_) => args.remove(1),
    };
    if name == "--list" {
        TARGETS.iter().for_each(|t| println!("{}", t.name));
        return;
    }
    let Some(target) = TARGETS.iter().find(|t| t.name == name) else {
        eprintln!("fuzz: no target '{name}': --list shows them");
        exit(1);
    };
    RUN.set(target.run).expect("it is set once");
    // SAFETY: there is one thread.
    unsafe { std::env::set_var(TARGET, target.name) };
    let text = |arg: String| CString::new(arg).expect("no NUL in an argument").into_raw();
    let mut argv: Vec<*mut c_char> = args.into_iter().map(text).collect();
    let mut argc = argv.len() as c_int;
    argv.push(null_mut());
    let mut argv = argv.as_mut_ptr();
    // SAFETY: `argv` has `argc` strings and a null pointer, which are never freed.
    exit(unsafe { LLVMFuzzerRunDriver(&mut argc, &mut argv, one) });
}
