// SPDX-License-Identifier: GPL-2.0-only
//! How often the hardware slowed a CPU down by itself because it was too hot (x86:
//! thermal_throttle). cpufreq's limits do not show this.

use crate::machine::host::Host;
use std::collections::BTreeMap;

const FILES: [&str; 2] = ["core_throttle_count", "package_throttle_count"];

/// By number of each CPU that has such files, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throttles(Vec<(u16, u64)>);

/// The CPUs that were slowed down meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    pub first: u16,
    pub cpus: usize,
}

impl Throttles {
    pub fn read(host: &Host, cpus: &[u16]) -> Throttles {
        let count = |cpu: u16, file: &str| {
            let path = format!("devices/system/cpu/cpu{cpu}/thermal_throttle/{file}");
            host.sys_text(&path)?.parse::<u64>().ok()
        };
        let of = |&cpu: &u16| {
            let counts = FILES.iter().filter_map(|file| count(cpu, file));
            let sum = counts.reduce(u64::saturating_add)?;
            Some((cpu, sum))
        };
        Throttles(cpus.iter().filter_map(of).collect())
    }

    /// Takes over later counts. CPUs that could not be read keep theirs.
    pub fn follow(&mut self, now: Throttles) {
        let all = self.0.drain(..).chain(now.0);
        let all = all.collect::<BTreeMap<_, _>>();
        self.0 = all.into_iter().collect();
    }

    /// There are such files.
    pub fn known(&self) -> bool {
        !self.0.is_empty()
    }

    /// CPUs whose counts grew since `then`. A CPU without an earlier count is not reported.
    pub fn since(&self, then: &Throttles) -> Option<Throttled> {
        let before = |cpu: u16| {
            let at = then.0.binary_search_by_key(&cpu, |(cpu, _)| *cpu);
            at.ok().map(|at| then.0[at].1)
        };
        let grown = |(cpu, now): &&(u16, u64)| before(*cpu).is_some_and(|then| *now > then);
        let mut grown = self.0.iter().filter(grown);
        let first = grown.next()?.0;
        Some(Throttled {
            first,
            cpus: grown.count() + 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn growing_counts_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let write = |cpu: u16, file: &str, text: &str| {
            let folder = dir
                .path()
                .join(format!("devices/system/cpu/cpu{cpu}/thermal_throttle"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(file), text).unwrap();
        };
        let host = Host::in_folder(dir.path());
        let read = || Throttles::read(&host, &[0, 1, 2, 7]);
        let none = read();
        assert!(!none.known());
        write(1, "core_throttle_count", "5\n");
        write(2, "core_throttle_count", "0\n");
        write(7, "package_throttle_count", "many\n");
        let first = read();
        assert!(first.known());
        assert_eq!((first.since(&none), first.since(&first)), (None, None));
        write(1, "package_throttle_count", "1\n");
        write(2, "core_throttle_count", "9\n");
        let reported = Throttled { first: 1, cpus: 2 };
        assert_eq!(read().since(&first), Some(reported));
        write(1, "core_throttle_count", "0\n");
        write(2, "core_throttle_count", "0\n");
        assert_eq!(read().since(&first), None, "it was reset");
        let mut known = first.clone();
        known.follow(none);
        assert_eq!(known, first);
        known.follow(Throttles(vec![(2, 4)]));
        assert_eq!(known, Throttles(vec![(1, 5), (2, 4)]));
    }
}
