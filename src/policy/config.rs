// SPDX-License-Identifier: GPL-2.0-only
//! The resolved configuration, as opposed to the command line in `cli`: presets are features, and
//! each tunable has one value.

use crate::bpf::intf::tunables;
use crate::machine::FreqSource;
use crate::machine::cpufreq::{CpuFreq, CpuPerf};
use crate::machine::host::Host;
use crate::policy::fair;
use crate::policy::plan::{Plan, RuleOf};
use crate::policy::settings::Settings;
use libbpf_rs::libbpf_sys::bpf_object_open_opts;
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// kernel: sd->imbalance_pct between cores.
const IMBALANCE_PCT: u32 = 117;

/// Where the configuration of a machine is.
pub const FOLDER: &str = "/etc/scx_roost";
/// Where scx_stats clients look.
pub const STATS_PATH: &str = "/var/run/scx/root/stats";
/// The name of the control socket, in the folder of the statistics socket.
const CTL_NAME: &str = "ctl";

/// The control socket of the scheduler that serves its statistics at `stats`.
pub fn ctl_path_beside(stats: &Path) -> PathBuf {
    stats.with_file_name(CTL_NAME)
}

/// How the scheduler runs: what the options of the command line say, with their defaults.
///
/// [`Default`] gives the scheduler as `scx_roost` without options runs it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Features and tunables of the arm `default`, on which all tasks start.
    pub settings: Settings,
    /// Arms beside it, by name.
    pub arms: BTreeMap<String, Settings>,
    #[doc(hidden)]
    pub rules: Vec<RuleOf>,
    /// The settings are fixed at load, and there is no other arm. The features become a constant of
    /// the programs; tunables are read as usual.
    pub freeze: bool,
    /// Every decision is made in this process, by scx_rustland_core. [`run`](crate::Scheduler::run)
    /// must then be called by the first thread of the process, and the builder's callbacks are not
    /// called.
    #[cfg(feature = "rustland")]
    pub rust: bool,
    /// Start even if groups have CPU limits (cpu.max), and enforce none.
    pub ignore_cpu_max: bool,
    /// Requests to the cpufreq governor.
    pub cpuperf: CpuPerf,
    /// Where frequencies of CPUs are read.
    pub freq_source: FreqSource,
    /// The time between two readings of frequencies and idle periods. The command line allows 5 ms
    /// to 1 s.
    pub freq_period: Duration,
    /// The root of sysfs, from which the machine is read: `/sys`.
    pub sysfs: PathBuf,
    /// The socket that serves the statistics, in scx_stats' format.
    pub stats_path: PathBuf,
    /// Number of the group that may read the statistics, besides the owner of the socket.
    pub stats_group: Option<u32>,
    /// The socket that controls the scheduler. Must differ from `stats_path`.
    pub ctl_path: PathBuf,
    /// Number of the group that may control the scheduler, besides its owner.
    pub ctl_group: Option<u32>,
    /// The time between two prints of the statistics to stdout; None: never.
    pub stats_interval: Option<Duration>,
    /// Statistics are printed as JSON.
    pub stats_json: bool,
    /// Bytes of the debug dump after an error; 0 is the kernel's default.
    pub exit_dump_len: u32,
    /// Options of libbpf for opening the BPF object.
    pub libbpf: LibbpfOpts,
    /// Faults for tests in the guest.
    #[cfg(feature = "faults")]
    pub faults: Faults,
}

/// Faults of a build for tests in the guest.
#[cfg(feature = "faults")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The features that kernels before 6.19 and 7.1 lack stay unused.
    pub old_paths: bool,
    /// A wakeup spins between the look at an idle CPU and the insertion there. Delay timers are
    /// lost.
    pub spin: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            settings: Settings::default(),
            arms: BTreeMap::new(),
            rules: Vec::new(),
            freeze: false,
            #[cfg(feature = "rustland")]
            rust: false,
            ignore_cpu_max: false,
            cpuperf: CpuPerf::Auto,
            freq_source: FreqSource::Auto,
            freq_period: Duration::from_millis(20),
            sysfs: PathBuf::from("/sys"),
            stats_path: PathBuf::from(STATS_PATH),
            stats_group: None,
            ctl_path: ctl_path_beside(Path::new(STATS_PATH)),
            ctl_group: None,
            stats_interval: None,
            stats_json: false,
            exit_dump_len: 0,
            libbpf: LibbpfOpts::default(),
            #[cfg(feature = "faults")]
            faults: Faults::default(),
        }
    }
}

/// An environment variable of scx_utils: the watchdog's timeout in ms, instead of `WATCHDOG_MS`.
const TIMEOUT_ENV: &str = "SCX_TIMEOUT_MS";
/// timeout_ms of main.bpf.c.
const WATCHDOG_MS: u64 = 10_000;

/// The longest wait of a runnable task: a quarter of the watchdog's timeout (aging.h). `timeout` is
/// the environment's, in ms.
fn wait_bound_ns(timeout: Option<&str>) -> u64 {
    let ms = timeout.and_then(|ms| ms.parse::<u32>().ok());
    ms.map_or(WATCHDOG_MS, u64::from) * 1_000_000 / 4
}

impl Config {
    /// The arms and rules at the start.
    pub(crate) fn plan(&self) -> Plan {
        Plan {
            everybody: self.settings.clone(),
            arms: self.arms.clone(),
            rules: self.rules.clone(),
        }
    }

    /// Whether a test wants the paths of older kernels.
    pub(crate) fn old_paths(&self) -> bool {
        #[cfg(feature = "faults")]
        return self.faults.old_paths;
        #[cfg(not(feature = "faults"))]
        false
    }

    /// What is fixed at load. `timers`: bpf_timer may be used. `limits`: the kernel reports
    /// cpu.max.
    #[doc(hidden)]
    pub fn tunables(
        &self,
        cpufreq: &CpuFreq,
        release: Option<[u32; 3]>,
        timers: bool,
        limits: bool,
    ) -> tunables {
        tunables {
            cpuperf: cpufreq.mode(self.cpuperf),
            timers: timers.into(),
            wait_bound_ns: wait_bound_ns(std::env::var(TIMEOUT_ENV).ok().as_deref()),
            imbalance_pct: IMBALANCE_PCT,
            frozen: self.freeze.into(),
            features: self.settings.features.0,
            // Ending slices with a budget and releasing parked tasks need timers.
            limits: (limits && timers && !self.ignore_cpu_max).into(),
            kernel_rules: fair::of_release(release).bits,
        }
    }

    /// As above, with what the host says.
    pub(crate) fn tunables_on(&self, host: &Host, cpufreq: &CpuFreq) -> tunables {
        let release = host.release().map(|(release, _)| release);
        self.tunables(cpufreq, release, !host.preempt_rt(), host.reports_limits)
    }

    pub(crate) fn open_opts(&self) -> Option<bpf_object_open_opts> {
        self.libbpf.clone().into_bpf_open_opts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_used_where_they_may() {
        let timers = |may| {
            Config::default()
                .tunables(&CpuFreq::default(), None, may, true)
                .timers
        };
        assert_eq!((timers(true), timers(false)), (1, 0));
    }

    #[test]
    fn two_waits_and_the_watchdogs_interval_fit_into_its_time() {
        let source = include_str!("../bpf/main.bpf.c");
        let set = source.split_once(".timeout_ms").unwrap().1;
        let ms = set.trim_start_matches(['\t', ' ', '=']).split(',').next();
        assert_eq!(ms, Some("10000"), "as WATCHDOG_MS has it");
        assert_eq!(wait_bound_ns(None), 2_500_000_000);
        assert_eq!(wait_bound_ns(Some("20000")), 5_000_000_000);
        // scx_watchdog_workfn() runs every half of its time.
        let time = WATCHDOG_MS * 1_000_000;
        assert!(2 * wait_bound_ns(None) + time / 2 <= time);
        assert_eq!(wait_bound_ns(Some("long")), 2_500_000_000);
    }

    #[test]
    fn what_is_frozen_is_what_was_asked_for() {
        let frozen = Config {
            freeze: true,
            ..Config::default()
        };
        let tun = |config: &Config| config.tunables(&CpuFreq::default(), None, true, true);
        let features = Settings::default().features.0;
        assert_eq!((tun(&frozen).frozen, tun(&frozen).features), (1, features));
        assert_eq!(tun(&Config::default()).frozen, 0);
    }

    #[test]
    fn the_control_socket_is_beside_the_statistics() {
        let path = |stats| ctl_path_beside(Path::new(stats));
        assert_eq!(path(STATS_PATH), Path::new("/var/run/scx/root/ctl"));
        assert_eq!(path("/tmp/x"), Path::new("/tmp/ctl"));
    }
}
