// SPDX-License-Identifier: GPL-2.0-only
//! Where clients find the scheduler: where their options say, else where its configuration does.

use super::args::{Cli, CtlPath, StatsPath};
use super::files::ConfigSource;
use super::levels::Levels;
use super::typed;
use crate::policy::config::{FOLDER, STATS_PATH, ctl_path_beside};
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A socket of the running scheduler.
#[derive(Debug)]
pub struct Socket {
    pub path: PathBuf,
    /// Errors of files that may name another one.
    skipped: Vec<String>,
}

impl From<PathBuf> for Socket {
    fn from(path: PathBuf) -> Socket {
        let skipped = Vec::new();
        Socket { path, skipped }
    }
}

impl Socket {
    /// What to print before a client fails there.
    pub fn warning(&self) -> Option<String> {
        let path = self.path.display();
        (!self.skipped.is_empty() && !self.path.exists()).then(|| {
            format!(
                "there is no socket {path}; another one may be configured: {}",
                self.skipped.join("; ")
            )
        })
    }
}

/// The sockets of a scheduler that was started with these files and without options.
pub struct Sockets {
    stats: PathBuf,
    ctl: PathBuf,
    skipped: Vec<String>,
}

impl Sockets {
    /// `folder`: where the configuration is. Whatever else is wrong in a file, its sockets count:
    /// the scheduler that runs was started before.
    pub fn configured(folder: &Path) -> Sockets {
        Sockets::of(&ConfigSource::of(None, folder))
    }

    fn of(place: &ConfigSource) -> Sockets {
        let (files, mut skipped) = place.sockets();
        let mut good = Vec::new();
        for file in files {
            match Levels::new(vec![file.clone()], None) {
                Ok(_) => good.push(file),
                Err(e) => skipped.push(format!("{e:#}")),
            }
        }
        let run = Levels::new(good, None).and_then(|levels| levels.run_args());
        let (stats, ctl) = run.map_or((STATS_PATH.into(), None), |r| (r.stats_path, r.ctl_path));
        Sockets {
            ctl: ctl.unwrap_or_else(|| ctl_path_beside(&stats)),
            stats,
            skipped,
        }
    }

    pub fn stats(self) -> Socket {
        Socket {
            path: self.stats,
            skipped: self.skipped,
        }
    }

    fn ctl(self) -> Socket {
        Socket {
            path: self.ctl,
            skipped: self.skipped,
        }
    }
}

/// Where a start with these words has its statistics, whatever is wrong with its files. None: they
/// start nothing.
pub fn stats_of_start(words: &[OsString]) -> Option<PathBuf> {
    let matches = Cli::command().try_get_matches_from(words).ok()?;
    let cli = Cli::from_arg_matches(&matches).ok()?;
    if cli.command.is_some() || cli.once.only_print() {
        return None;
    }
    Some(match typed(&matches, "stats_path") {
        true => cli.run.stats_path,
        false => Sockets::of(&ConfigSource::of(cli.once.config, Path::new(FOLDER))).stats,
    })
}

impl StatsPath {
    /// `folder`: where the configuration is.
    pub fn at(self, folder: &Path) -> Socket {
        let configured = || Sockets::configured(folder).stats();
        self.stats_path.map_or_else(configured, Socket::from)
    }
}

impl CtlPath {
    pub fn at(self, folder: &Path) -> Socket {
        let configured = || Sockets::configured(folder).ctl();
        self.ctl_path.map_or_else(configured, Socket::from)
    }
}
