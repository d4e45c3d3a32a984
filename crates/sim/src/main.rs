// SPDX-License-Identifier: GPL-2.0-only
//! The program: prints an error as one line. Its status then is 2 if the command line is wrong,
//! else 1.

use log::Level;
use scx_roost::util::refusal::BadUsage;
use scx_roost::util::stderr;
use std::process::ExitCode;

fn main() -> ExitCode {
    let asked = roost_sim::parse(std::env::args_os());
    match asked.and_then(|asked| roost_sim::perform(&asked)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            stderr::line(Level::Error, &format!("roost-sim: {e:#}"));
            ExitCode::from(if e.is::<BadUsage>() { 2 } else { 1 })
        }
    }
}
