// SPDX-License-Identifier: GPL-2.0-only
//! AMD's ranking of preferred cores: which ones boost highest. It orders cores, and says nothing
//! about their capacity.

use super::ask::Asker;
use super::policy::cpufreq_file;
use crate::machine::host::Host;

/// By CPU number; a higher rank is preferred. The firmware may change ranks at runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rankings(pub Vec<Option<u32>>);

impl Rankings {
    pub fn read(host: &Host, nr_cpu_ids: usize) -> Rankings {
        let mut ask = Asker::new(host);
        let file = |cpu| cpufreq_file(cpu, "amd_pstate_prefcore_ranking");
        let rank = |cpu| ask.number(&file(cpu));
        Rankings((0..nr_cpu_ids).map(rank).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_ranking_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir
            .path()
            .join(cpufreq_file(1, "amd_pstate_prefcore_ranking"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let host = Host::in_folder(dir.path());
        assert_eq!(Rankings::read(&host, 2).0, [None, None]);
        fs::write(&path, "231\n").unwrap();
        assert_eq!(Rankings::read(&host, 2).0, [None, Some(231)]);
        fs::write(&path, "196\n").unwrap();
        assert_eq!(Rankings::read(&host, 2).0, [None, Some(196)]);
    }
}
