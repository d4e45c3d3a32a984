// SPDX-License-Identifier: GPL-2.0-only
//! The program `roost-replay`: is the policy's decision the kernel's?
//!
//! `record` runs on a kernel whose own scheduler runs, and writes what its fair class decided, with
//! the state that it decided on. `play` gives each state to the policy's C, and compares.

mod play;
mod record;
mod intf {
    #![allow(
        non_camel_case_types,
        non_snake_case,
        non_upper_case_globals,
        dead_code,
        reason = "bindgen writes it"
    )]
    include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
}

use anyhow::Result;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compare the policy's decisions with those of the kernel's fair class
#[derive(Debug, Parser)]
#[command(name = "roost-replay", version)]
enum Asked {
    /// Run a command under the kernel's own scheduler, and write what that decided to a file
    Record {
        file: PathBuf,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Let the policy decide on the recorded states, and print how often it agrees
    Play {
        file: PathBuf,
        /// Preset, and changes; the rules of the recorded kernel, as in 'mainline+fair-rules=7.3'
        #[arg(long, default_value = "mainline")]
        variant: String,
        /// Also print this many decisions that differ, as JSON
        #[arg(long, default_value_t = 0)]
        show: usize,
    },
}

fn main() -> ExitCode {
    match perform(Asked::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("roost-replay: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(asked: Asked) -> Result<()> {
    match asked {
        Asked::Record { file, command } => record::record(&file, &command),
        Asked::Play {
            file,
            variant,
            show,
        } => play::play(&file, &variant, show),
    }
}
