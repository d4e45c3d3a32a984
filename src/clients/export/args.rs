// SPDX-License-Identifier: GPL-2.0-only
//! The options of `export`, and what they mean.

use super::source::Series;
use anyhow::{Result, bail};
use clap::Args;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10849);

pub const EXAMPLES: &str = "Without --listen and --textfile, export listens at 127.0.0.1:10849.

Examples:
  scx_roost export                                        serve http://127.0.0.1:10849/metrics
  scx_roost export --textfile /var/lib/prometheus/node-exporter/scx_roost.prom
                                                          write a file that node_exporter reads
  scx_roost export --once | promtool check metrics        print the metrics once and exit

docs/guides/monitoring.md describes the metrics, alerts and a dashboard.";

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Serve HTTP at this loopback address
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

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
    #[arg(long, conflicts_with_all = ["listen", "interval"])]
    once: bool,
}

/// Where the metrics go.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// Once, to stdout.
    Printed,
    /// Once, to this file.
    Written(PathBuf),
    Served {
        tcp: Option<SocketAddr>,
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
            return Ok(self.textfile.map_or(Output::Printed, Output::Written));
        }
        let tcp = self.listen.or(self.textfile.is_none().then_some(LISTEN));
        if let Some(address) = tcp
            && !address.ip().to_canonical().is_loopback()
        {
            bail!(
                "--listen {address}: other machines could read this address without \
                 authentication: give a loopback address, and put a proxy before it"
            );
        }
        Ok(Output::Served {
            tcp,
            textfile: self.textfile.map(|path| (path, self.interval)),
        })
    }
}
