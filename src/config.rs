// SPDX-License-Identifier: GPL-2.0-only
//! What is meant, after `cli` took what was typed: presets resolved to features, one value per tunable.

use crate::bpf::intf::{CAPACITY_SCALE, arm, task_policy, tunables};
use crate::cpufreq::{CpuFreq, CpuPerf};
use crate::features::{
    self, CLAIM_TTL, FITS_MARGIN, FITS_RT, FeatureSet, MIGRATION_COST, MIN_SLICE, RESCUE, SLICE,
    Tunable,
};
use anyhow::{Context, Result, bail};
use libbpf_rs::libbpf_sys::bpf_object_open_opts;
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use std::path::PathBuf;
use std::time::Duration;

/// kernel: sd->imbalance_pct between cores.
const IMBALANCE_PCT: u32 = 117;

/// Where scx_stats clients look.
pub const STATS_PATH: &str = "/var/run/scx/root/stats";

/// How the scheduler is to run.
#[derive(Clone, Debug)]
pub struct Config {
    pub preset: String,
    pub features: FeatureSet,
    pub slice_us: Option<u32>,
    pub min_slice_us: Option<u32>,
    pub claim_ttl_us: Option<u32>,
    pub rescue_us: Option<u32>,
    pub migration_cost_us: Option<u32>,
    /// Percent.
    pub fits_margin: Option<u32>,
    pub fits_rt: Option<u32>,
    pub cpuperf: CpuPerf,
    pub sysfs: PathBuf,
    pub stats_path: PathBuf,
    /// Print statistics this often.
    pub stats_interval: Option<Duration>,
    /// Print them as JSON.
    pub stats_json: bool,
    /// Bytes of the debug dump after an error; 0 is the kernel's default.
    pub exit_dump_len: u32,
    pub libbpf: LibbpfOpts,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            preset: features::DEFAULT_PRESET.to_string(),
            features: features::preset(features::DEFAULT_PRESET)
                .map_or_else(FeatureSet::default, |p| p.features),
            slice_us: None,
            min_slice_us: None,
            claim_ttl_us: None,
            rescue_us: None,
            migration_cost_us: None,
            fits_margin: None,
            fits_rt: None,
            cpuperf: CpuPerf::Auto,
            sysfs: PathBuf::from("/sys"),
            stats_path: PathBuf::from(STATS_PATH),
            stats_interval: None,
            stats_json: false,
            exit_dump_len: 0,
            libbpf: LibbpfOpts::default(),
        }
    }
}

impl Config {
    /// What is settled at load. `timers`: bpf_timer may be used.
    pub fn tunables(&self, cpufreq: &CpuFreq, timers: bool) -> tunables {
        tunables {
            cpuperf: cpufreq.mode(self.cpuperf),
            timers: timers.into(),
            imbalance_pct: IMBALANCE_PCT,
        }
    }

    /// The policy of all tasks, on a machine of so many CPUs.
    pub fn arm(&self, nr_cpus: u32) -> arm {
        let value =
            |set: Option<u32>, row: &Tunable| set.unwrap_or_else(|| row.default.value(nr_cpus));
        let ns = |set, row| u64::from(value(set, row)) * 1000;
        let margin = value(self.fits_margin, &FITS_MARGIN);
        let (mut slice_ns, mut min_slice_ns) =
            (ns(self.slice_us, &SLICE), ns(self.min_slice_us, &MIN_SLICE));
        // A default gives way to what was asked for.
        if self.slice_us.is_none() {
            slice_ns = slice_ns.max(min_slice_ns);
        } else if self.min_slice_us.is_none() {
            min_slice_ns = min_slice_ns.min(slice_ns);
        }
        arm {
            task: task_policy {
                features: self.features.0,
                arm: 0,
                slice_ns,
                min_slice_ns,
                claim_ttl_ns: ns(self.claim_ttl_us, &CLAIM_TTL),
                fits_scale: CAPACITY_SCALE * 100 / (100 - margin),
                fits_rt: value(self.fits_rt, &FITS_RT),
            },
            rescue_ns: ns(self.rescue_us, &RESCUE),
            migration_cost_ns: ns(self.migration_cost_us, &MIGRATION_COST),
        }
    }

    /// No slice may be shorter than the least one.
    pub fn check_slices(&self) -> Result<()> {
        match (self.slice_us, self.min_slice_us) {
            (Some(slice), Some(min)) if slice < min => bail!(
                "--slice-us {slice} is below --min-slice-us {min}: give a longer slice or a smaller minimum"
            ),
            _ => Ok(()),
        }
    }

    pub fn open_opts(&self) -> Option<bpf_object_open_opts> {
        self.libbpf.clone().into_bpf_open_opts()
    }
}

/// A preset and what was switched on and off on top of it. The order on the command line does not matter, so a
/// feature cannot be in both lists.
pub fn resolve_features(preset: &str, enable: &[String], disable: &[String]) -> Result<FeatureSet> {
    let mut set = features::preset(preset)
        .with_context(|| unknown_preset(preset))?
        .features;
    if let Some(name) = enable.iter().find(|n| disable.contains(n)) {
        bail!("feature '{name}' is given to both --enable and --disable: give it to one");
    }
    for name in enable {
        set = set.with(known_feature(name)?);
    }
    for name in disable {
        set = set.without(known_feature(name)?);
    }
    // One that a preset brought, and whose feature was disabled, does nothing and says nothing.
    match features::orphans(set).find(|f| enable.iter().any(|e| e == f.name)) {
        Some(f) => bail!(
            "feature '{}' needs '{}': enable that too, or not this",
            f.name,
            f.parent
        ),
        None => Ok(set),
    }
}

fn known_feature(name: &str) -> Result<FeatureSet> {
    let feature = features::feature(name).with_context(|| {
        let names: Vec<&str> = features::FEATURES.iter().map(|f| f.name).collect();
        format!(
            "unknown feature '{name}': expected one of {}",
            names.join(", ")
        )
    })?;
    Ok(feature.bit)
}

fn unknown_preset(name: &str) -> String {
    let names: Vec<&str> = features::PRESETS.iter().map(|p| p.name).collect();
    format!(
        "unknown preset '{name}': expected one of {}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::bits;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| s.to_string()).collect()
    }

    #[test]
    fn switches_go_on_top_of_the_preset() {
        let set =
            resolve_features("mainline", &names(&["wide_idle"]), &names(&["sis_util"])).unwrap();
        let mainline = features::preset("mainline").unwrap().features;
        assert_eq!(set, mainline.without(bits::sis_util).with(bits::wide_idle));
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let preset = resolve_features("fast", &[], &[]).unwrap_err().to_string();
        assert_eq!(
            preset,
            "unknown preset 'fast': expected one of roost, mainline, mainline-no-prev-idle, lawall, patra, roy-v7, desnoyers"
        );
        let feature = resolve_features("roost", &names(&["claims"]), &[])
            .unwrap_err()
            .to_string();
        assert!(
            feature.starts_with("unknown feature 'claims': expected one of prev_idle, sis_util")
        );
    }

    #[test]
    fn a_sub_switch_alone_is_refused() {
        let error = resolve_features("mainline", &names(&["prev_core_fits"]), &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "feature 'prev_core_fits' needs 'prev_core': enable that too, or not this"
        );
        let both =
            resolve_features("mainline", &names(&["prev_core_fits", "prev_core"]), &[]).unwrap();
        assert!(both.has(bits::prev_core.with(bits::prev_core_fits)));
    }

    #[test]
    fn on_and_off_at_once_is_refused() {
        let error =
            resolve_features("roost", &names(&["sis_util"]), &names(&["sis_util"])).unwrap_err();
        assert!(error.to_string().contains("both --enable and --disable"));
    }

    #[test]
    fn a_slice_is_never_below_the_least_one() {
        let arm = |slice_us, min_slice_us| {
            let config = Config {
                slice_us,
                min_slice_us,
                ..Config::default()
            };
            config.check_slices().map(|()| {
                let arm = config.arm(64).task;
                (arm.slice_ns / 1000, arm.min_slice_ns / 1000)
            })
        };
        assert_eq!(arm(Some(500), None).unwrap(), (500, 500));
        assert_eq!(arm(None, Some(5000)).unwrap(), (5000, 5000));
        assert_eq!(arm(Some(900), Some(900)).unwrap(), (900, 900));
        assert_eq!(
            arm(Some(900), Some(901)).unwrap_err().to_string(),
            "--slice-us 900 is below --min-slice-us 901: give a longer slice or a smaller minimum"
        );
    }

    #[test]
    fn tunables_are_nanoseconds_and_defaults_follow_the_machine() {
        let mut config = Config::default();
        let arm = config.arm(64).task;
        assert_eq!(
            (arm.slice_ns, arm.min_slice_ns),
            (2_800_000, u64::from(MIN_SLICE.default.value(64)) * 1000)
        );
        config.slice_us = Some(1500);
        assert_eq!(config.arm(64).task.slice_ns, 1_500_000);
        assert_eq!((arm.fits_scale, arm.fits_rt), (1024, 0));
        // fits_capacity() of the kernel
        (config.fits_margin, config.fits_rt) = (Some(20), Some(1));
        let arm = config.arm(64).task;
        assert_eq!((arm.fits_scale, arm.fits_rt), (1280, 1));
        let timers = |may| config.tunables(&CpuFreq::default(), may).timers;
        assert_eq!((timers(true), timers(false)), (1, 0));
    }
}
