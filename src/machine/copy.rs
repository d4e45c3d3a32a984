// SPDX-License-Identifier: GPL-2.0-only
//! Copies the files of a /sys that describe the machine, so that it can be read elsewhere.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Below devices/system. A name that ends with N stands for folders with a number.
const FILES: [&str; 10] = [
    "cpu/possible online nohz_full",
    "cpu/cpuN/cpu_capacity",
    "cpu/cpuN/topology/core_cpus_list thread_siblings_list",
    "cpu/cpuN/topology/cluster_cpus_list package_cpus_list core_siblings_list",
    "cpu/cpuN/cache/indexN/level type size shared_cpu_list",
    "cpu/cpuN/cpufreq/related_cpus freqdomain_cpus scaling_driver scaling_governor",
    "cpu/cpuN/cpufreq/cpuinfo_min_freq cpuinfo_max_freq base_frequency",
    "cpu/cpuN/cpuidle/stateN/name latency residency disable",
    "node/online",
    "node/nodeN/cpulist distance",
];

/// Copies the machine's files below `from` to the same places below `to`. Missing files are left
/// out. Errors: `to` cannot be written.
pub fn copy_machine(from: &Path, to: &Path) -> Result<()> {
    let (from, to) = (from.join("devices/system"), to.join("devices/system"));
    FILES.iter().try_for_each(|files| copy(&from, &to, files))
}

fn copy(from: &Path, to: &Path, files: &str) -> Result<()> {
    let Some((folder, rest)) = files.split_once('/') else {
        let mut names = files.split(' ');
        return names.try_for_each(|name| copy_file(&from.join(name), to, name));
    };
    let Some(name) = folder.strip_suffix('N') else {
        return copy(&from.join(folder), &to.join(folder), rest);
    };
    // A CPU that just went away has no folder.
    for number in super::files::numbered(from, name).unwrap_or_default() {
        let folder = format!("{name}{number}");
        copy(&from.join(&folder), &to.join(folder), rest)?;
    }
    Ok(())
}

fn copy_file(from: &Path, folder: &Path, name: &str) -> Result<()> {
    // Drivers refuse some of these files.
    let Ok(bytes) = fs::read(from) else {
        return Ok(());
    };
    let told = || format!("cannot write {}", folder.join(name).display());
    fs::create_dir_all(folder).with_context(told)?;
    fs::write(folder.join(name), bytes).with_context(told)
}
