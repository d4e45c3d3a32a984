// SPDX-License-Identifier: GPL-2.0-only
//! The binary. All of it is in the library, because the library shows no more than it must.

fn main() -> std::process::ExitCode {
    scx_roost::program(std::env::args_os())
}
