// SPDX-License-Identifier: GPL-2.0-only
//! The options of `export`, and what they mean.

use super::Format;
use super::source::Series;
use anyhow::{Result, bail};
use clap::Args;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10849);

pub const EXAMPLES: &str =
    "Without --listen, --unix and --textfile, export listens at 127.0.0.1:10849.

Examples:
  scx_roost export                                        serve http://127.0.0.1:10849/metrics
  scx_roost export --unix /run/scx_roost-export/metrics   serve on a Unix socket
  scx_roost export --textfile /var/lib/prometheus/node-exporter/scx_roost.prom
                                                          write a file that node_exporter reads
  scx_roost export --once | promtool check metrics        print the metrics once and exit
  scx_roost export --listen 0.0.0.0:10849 --public        serve other machines too

docs/guides/monitoring.md describes the metrics, alerts and a dashboard.";

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Serve HTTP at this address; only a loopback address unless --public is given
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

    /// Allow a --listen address that other machines can reach; there is no password and no
    /// encryption
    #[arg(long, requires = "listen")]
    public: bool,

    /// Serve HTTP on a Unix socket
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,

    /// Group that may connect to --unix, besides the socket's owner
    #[arg(long, value_name = "NAME", value_parser = crate::util::parse::group, requires = "unix")]
    unix_group: Option<u32>,

    /// Write a file for the textfile collector of node_exporter; its name ends in .prom
    #[arg(long, value_name = "PATH")]
    textfile: Option<PathBuf>,

    /// Seconds between two writes of the file (0.1 to 3600)
    #[arg(long, value_name = "SECS", default_value = "15", value_parser = crate::util::parse::seconds, requires = "textfile")]
    interval: Duration,

    /// Leave out the series of single CPUs, which are most of those of a large machine
    #[arg(long)]
    no_cpus: bool,

    /// Print the metrics once, or write --textfile once, and exit
    #[arg(long, conflicts_with_all = ["listen", "unix", "interval"])]
    once: bool,

    /// Format of what is printed; over HTTP the client chooses it
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "classic",
        requires = "once",
        conflicts_with = "textfile"
    )]
    format: Format,
}

/// Where the metrics go.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// Once, to stdout.
    Printed(Format),
    /// Once, to this file.
    Written(PathBuf),
    Served {
        tcp: Option<SocketAddr>,
        /// Path, and the group that may connect.
        unix: Option<(PathBuf, Option<u32>)>,
        textfile: Option<(PathBuf, Duration)>,
    },
}

impl ExportArgs {
    pub fn series(&self) -> Series {
        match self.no_cpus {
            true => Series::NoCpus,
            false => Series::All,
        }
    }

    pub fn output(self) -> Result<Output> {
        if self.once {
            let printed = Output::Printed(self.format);
            return Ok(self.textfile.map_or(printed, Output::Written));
        }
        let default = (self.unix.is_none() && self.textfile.is_none()).then_some(LISTEN);
        let tcp = self.listen.or(default);
        if let Some(address) = tcp
            && !address.ip().to_canonical().is_loopback()
            && !self.public
        {
            bail!(
                "--listen {address}: other machines can read this address without authentication: give a loopback address, or --public as well"
            );
        }
        Ok(Output::Served {
            tcp,
            unix: self.unix.map(|path| (path, self.unix_group)),
            textfile: self.textfile.map(|path| (path, self.interval)),
        })
    }
}
