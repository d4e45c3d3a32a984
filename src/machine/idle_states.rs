// SPDX-License-Identifier: GPL-2.0-only
//! The idle states of a CPU and how long it takes to leave them.

use super::ask::Asker;
use crate::machine::host::Host;
use serde::Serialize;

/// More idle states than any CPU has.
const MOST: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdleState {
    pub name: String,
    pub exit_latency_us: u32,
    /// A shorter stay costs more energy than it saves.
    pub residency_us: u32,
    pub disabled: bool,
}

/// The shallowest first. Empty where the kernel has no cpuidle, as in most virtual machines.
pub fn idle_states(host: &Host, cpu: u16) -> Vec<IdleState> {
    let mut ask = Asker::new(host);
    let mut state = |index| {
        let file = |name| format!("devices/system/cpu/cpu{cpu}/cpuidle/state{index}/{name}");
        let mut time = |name| ask.text(&file(name))?.parse().ok();
        let (latency, residency) = (time("latency"), time("residency"));
        Some(IdleState {
            name: ask.text(&file("name"))?,
            exit_latency_us: latency.unwrap_or(0),
            residency_us: residency.unwrap_or(0),
            disabled: ask.text(&file("disable")).is_some_and(|t| t != "0"),
        })
    };
    (0..MOST).map_while(&mut state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn states_are_read_until_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::in_folder(dir.path());
        assert_eq!(idle_states(&host, 0), []);
        for (index, rows) in [["POLL", "0", "0", "0"], ["C2", "18", "36", "1"]]
            .iter()
            .enumerate()
        {
            let folder = format!("devices/system/cpu/cpu0/cpuidle/state{index}");
            let folder = dir.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in ["name", "latency", "residency", "disable"].iter().zip(rows) {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        let states = idle_states(&host, 0);
        let c2 = IdleState {
            name: "C2".into(),
            exit_latency_us: 18,
            residency_us: 36,
            disabled: true,
        };
        assert_eq!((states.len(), &states[1]), (2, &c2));
        assert!(!states[0].disabled);
    }
}
