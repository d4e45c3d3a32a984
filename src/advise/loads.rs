// SPDX-License-Identifier: GPL-2.0-only
//! Kinds of load, as people call them, and the simulator's workloads for them, as large as the
//! machine.

use crate::sim::WORKLOADS;
use crate::util::names::instead;
use crate::util::refusal::BadUsage;
use anyhow::{Result, anyhow};
use std::collections::BTreeSet;
use std::path::Path;

/// A kind of load.
struct Kind {
    name: &'static str,
    workload: &'static str,
    /// The profile that is meant for it.
    profile: &'static str,
    /// The params of the workload on a machine of so many CPUs.
    params: fn(u64) -> Vec<String>,
}

/// In the order of the answer. The sizes follow the machine, as those of data/matrix.tsv do.
const KINDS: [Kind; 6] = [
    Kind {
        name: "build",
        workload: "kbuild",
        profile: "server",
        params: |cpus| vec![format!("jobs={cpus}")],
    },
    Kind {
        name: "desktop",
        workload: "desktop",
        profile: "auto",
        params: |cpus| vec![format!("jobs={cpus}")],
    },
    Kind {
        name: "game",
        workload: "game",
        profile: "gaming",
        params: |_| Vec::new(),
    },
    Kind {
        name: "server",
        workload: "requests",
        profile: "server",
        params: |cpus| {
            let threads = (cpus * 3 / 4).max(2);
            vec![format!("users={}", cpus * 4), format!("threads={threads}")]
        },
    },
    Kind {
        name: "workers",
        workload: "algorithm3",
        profile: "server",
        params: |cpus| vec![format!("workers={}", (cpus / 3).max(2))],
    },
    Kind {
        name: "messages",
        workload: "hackbench",
        profile: "server",
        params: |cpus| {
            let (groups, fds) = if cpus > 8 { (2, 20) } else { (1, 10) };
            let [groups, fds] = [format!("groups={groups}"), format!("fds={fds}")];
            vec![groups, fds, "duration=200ms".into()]
        },
    },
];
/// How many of them are simulated if none is named.
const MIX: usize = 5;

/// A load to simulate.
#[derive(Debug)]
pub struct Load {
    pub name: String,
    /// The profile that is meant for it. None: nobody has said.
    pub profile: Option<&'static str>,
    workload: String,
    params: Vec<String>,
}

/// Errors: a name that is neither a kind, nor a workload, nor a path.
pub fn asked(names: &[String], cpus: u64) -> Result<Vec<Load>> {
    let of_kind = |kind: &Kind| Load {
        name: kind.name.to_string(),
        workload: kind.workload.to_string(),
        profile: Some(kind.profile),
        params: (kind.params)(cpus),
    };
    if names.is_empty() {
        return Ok(KINDS.iter().take(MIX).map(of_kind).collect());
    }
    let again = |at: usize| names[..at].contains(&names[at]);
    if let Some(twice) = (0..names.len()).find(|at| again(*at)) {
        let what = anyhow!("the load '{}' is named twice: once is enough", names[twice]);
        return Err(BadUsage(what).into());
    }
    let named = |name: &String| {
        if let Some(kind) = KINDS.iter().find(|kind| kind.name == name) {
            return Ok(of_kind(kind));
        }
        let known = WORKLOADS.iter().any(|(known, _)| known == name);
        if !known && !name.contains(['.', '/']) {
            let all = KINDS.iter().map(|kind| kind.name);
            let all: BTreeSet<&str> = all.chain(WORKLOADS.map(|(known, _)| known)).collect();
            let all: Vec<&str> = all.into_iter().collect();
            let what = anyhow!("there is no load '{name}': {}", instead(name, &all));
            return Err(BadUsage(what).into());
        }
        Ok(Load {
            name: name.clone(),
            workload: name.clone(),
            profile: None,
            params: Vec::new(),
        })
    };
    names.iter().map(named).collect()
}

impl Load {
    /// The command line of `sim` that runs it.
    pub fn words(
        &self,
        sysfs: &Path,
        params: Option<&Path>,
        variants: &[&str],
        seeds: u64,
    ) -> Vec<std::ffi::OsString> {
        let mut words = vec!["sim".into(), self.workload.clone().into()];
        let mut option = |name: &str, value: std::ffi::OsString| {
            words.extend([name.into(), value]);
        };
        option("--sysfs", sysfs.into());
        option("--seeds", seeds.to_string().into());
        if let Some(params) = params {
            option("--params", params.into());
        }
        self.params.iter().for_each(|p| option("--set", p.into()));
        variants.iter().for_each(|v| option("--variant", v.into()));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_follow_the_machine() {
        let params = |cpus| -> Vec<String> {
            let loads = asked(&[], cpus).unwrap();
            loads.into_iter().flat_map(|load| load.params).collect()
        };
        assert_eq!(
            params(64),
            [
                "jobs=64",
                "jobs=64",
                "users=256",
                "threads=48",
                "workers=21"
            ]
        );
        assert!(params(2).contains(&"threads=2".to_string()));
    }

    #[test]
    fn each_kind_has_a_profile_that_exists() {
        let known = |kind: &Kind| crate::policy::profiles::profile(kind.profile).is_some();
        assert!(KINDS.iter().all(known));
    }

    #[test]
    fn what_is_neither_a_kind_nor_a_workload_is_refused() {
        let said = |name: &str| asked(&[name.to_string()], 8).unwrap_err().to_string();
        assert_eq!(
            said("biuld"),
            "there is no load 'biuld': did you mean 'build'?"
        );
        assert!(
            said("magic").contains("expected one of algorithm3, build, chameneos, desktop, game")
        );
        let twice = asked(&["game".into(), "game".into()], 8).unwrap_err();
        assert_eq!(
            twice.to_string(),
            "the load 'game' is named twice: once is enough"
        );
        assert_eq!(asked(&["tbench".into()], 8).unwrap()[0].workload, "tbench");
        assert_eq!(asked(&["./x.load".into()], 8).unwrap()[0].name, "./x.load");
    }
}
