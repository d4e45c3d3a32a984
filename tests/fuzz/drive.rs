// SPDX-License-Identifier: GPL-2.0-only
//! The targets under libFuzzer, for scripts/fuzz.
//!   fuzz --list
//!   fuzz TARGET [what libFuzzer takes: -max_total_time=60, folders of inputs, an input to run alone ...]

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

/// libFuzzer starts itself again, with the same arguments but the first, to merge inputs: the
/// target's name is here then.
const TARGET: &str = "ROOST_FUZZ_TARGET";

static RUN: OnceLock<fn(&[u8])> = OnceLock::new();

/// A panic cannot leave it, and aborts: libFuzzer writes the input down then.
extern "C" fn one(data: *const u8, len: usize) -> c_int {
    // SAFETY: libFuzzer gives so many bytes, which live through the call; of none it may give no
    // address.
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
    // SAFETY: `argv` has `argc` strings and an end, which stay for good.
    exit(unsafe { LLVMFuzzerRunDriver(&mut argc, &mut argv, one) });
}
