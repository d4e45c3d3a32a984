// SPDX-License-Identifier: GPL-2.0-only
//! Where clients find the scheduler: where their options say, else where its configuration does.

use super::args::{CtlPath, MonitorArgs, StatsPath};
use super::files::Place;
use super::levels::Levels;
use crate::policy::config::{STATS_PATH, ctl_path_beside};
use std::path::{Path, PathBuf};

/// The sockets of a scheduler that was started with these files and without options.
pub struct Sockets {
    pub stats: PathBuf,
    pub ctl: PathBuf,
}

impl Sockets {
    /// A wrong file is skipped: the scheduler that runs was started before it became so.
    pub fn of(place: &Place) -> Sockets {
        let possible = |file: &_| Levels::new(vec![Clone::clone(file)], None).is_ok();
        let files = place.readable().into_iter().filter(possible).collect();
        let run = Levels::new(files, None).and_then(|levels| levels.run_args());
        let (stats, ctl) = run.map_or((STATS_PATH.into(), None), |r| (r.stats_path, r.ctl_path));
        Sockets {
            ctl: ctl.unwrap_or_else(|| ctl_path_beside(&stats)),
            stats,
        }
    }
}

impl StatsPath {
    /// `folder`: where the configuration is.
    pub fn at(self, folder: &Path) -> PathBuf {
        let configured = || Sockets::of(&Place::of(None, folder)).stats;
        self.stats_path.unwrap_or_else(configured)
    }
}

impl CtlPath {
    pub fn at(self, folder: &Path) -> PathBuf {
        let configured = || Sockets::of(&Place::of(None, folder)).ctl;
        self.ctl_path.unwrap_or_else(configured)
    }
}

impl MonitorArgs {
    /// The statistics socket and the control socket, which is beside one that was typed.
    pub fn at(&self, folder: &Path) -> (PathBuf, PathBuf) {
        let Sockets { stats, ctl } = match &self.of.stats_path {
            Some(stats) => Sockets {
                ctl: ctl_path_beside(stats),
                stats: stats.clone(),
            },
            None => Sockets::of(&Place::of(None, folder)),
        };
        (stats, self.ctl_path.clone().unwrap_or(ctl))
    }
}
