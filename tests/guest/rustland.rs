// SPDX-License-Identifier: GPL-2.0-only
//! scx_roost with the cargo feature `rustland`, for the guest (rustland.sh). An example, because
//! cargo would build the binary anew for the other tests.

fn main() -> std::process::ExitCode {
    scx_roost::program(std::env::args_os())
}
