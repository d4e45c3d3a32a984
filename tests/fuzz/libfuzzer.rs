// SPDX-License-Identifier: GPL-2.0-only
//! Runs one of some targets under libFuzzer.

use std::ffi::{CString, c_char, c_int};
use std::process::exit;
use std::ptr::null_mut;
use std::sync::OnceLock;

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

/// A name, and a function of some bytes.
pub type Target = (&'static str, fn(&[u8]));

/// The whole of main(): `--list`, or the name of a target and arguments of libFuzzer.
pub fn drive(targets: &[Target]) {
    let mut args: Vec<String> = std::env::args().collect();
    let name = match std::env::var(TARGET) {
        Ok(name) => name,
        Err(_) if args.len() == 1 => "--list".to_string(),
        Err(_) => args.remove(1),
    };
    if name == "--list" {
        targets.iter().for_each(|(name, _)| println!("{name}"));
        return;
    }
    let Some(&(name, run)) = targets.iter().find(|(known, _)| *known == name) else {
        eprintln!("fuzz: no target '{name}': --list shows them");
        exit(1);
    };
    RUN.set(run).expect("it is set once");
    // SAFETY: there is one thread.
    unsafe { std::env::set_var(TARGET, name) };
    let text = |arg: String| CString::new(arg).expect("no NUL in an argument").into_raw();
    let mut argv: Vec<*mut c_char> = args.into_iter().map(text).collect();
    let mut argc = argv.len() as c_int;
    argv.push(null_mut());
    let mut argv = argv.as_mut_ptr();
    // SAFETY: `argv` has `argc` strings and a null pointer, which are never freed.
    exit(unsafe { LLVMFuzzerRunDriver(&mut argc, &mut argv, one) });
}
