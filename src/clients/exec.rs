// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost exec`: this process asks to be put on an arm, and then becomes the command. So
//! environment, files, signals and exit status need no forwarding.

use crate::clients::ctl::ask_when_loaded;
use crate::util::stderr::say;
use crate::util::user::User;
use crate::wire::protocol::Op;
use anyhow::{Context, Result};
use clap::Args;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Long enough for a restart after hotplug.
const LOAD_TIME: Duration = Duration::from_secs(10);

/// The exit statuses of a shell.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

#[derive(Debug, Args)]
pub struct ExecArgs {
    /// Arm for the command and everything it starts
    #[arg(long, value_name = "NAME")]
    arm: String,

    /// Run the command as root, not as the user who called sudo, doas or pkexec
    #[arg(long)]
    as_root: bool,

    /// Run the command as this user, with the user's groups and home; only root can [default: the
    /// user who called sudo, doas or pkexec]
    #[arg(long, value_name = "NAME", conflicts_with = "as_root")]
    user: Option<String>,

    /// Command to run, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub const EXAMPLES: &str = "Examples:
  scx_roost ctl arms add quiet --preset mainline
  scx_roost exec --arm quiet -- make -j8        make and its compilers run on arm quiet
  sudo scx_roost exec --arm quiet -- ./game     the game runs as the user who called sudo

Exit status: that of the command; 126 if it cannot be run, 127 if it does not exist;
1 if the arm is refused.";

/// Returns only if the command cannot be run.
pub fn run(path: &Path, args: ExecArgs) -> Result<ExitCode> {
    let user = match args.as_root {
        true => None,
        false => User::of(args.user.as_deref())?,
    };
    join(path, &args.arm)?;
    let (program, rest) = args.command.split_first().context("expected a command")?;
    let mut command = Command::new(program);
    command.args(rest);
    user.iter().for_each(|user| user.takes(&mut command));
    let e = command.exec();
    say!("scx_roost: cannot run {}: {e}", program.display());
    Ok(ExitCode::from(if e.kind() == ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_RUN
    }))
}

fn join(path: &Path, arm: &str) -> Result<()> {
    let op = Op::Exec {
        arm: arm.to_string(),
    };
    ask_when_loaded(path, &op, LOAD_TIME).map(|_| ())
}
