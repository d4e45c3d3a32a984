// SPDX-License-Identifier: GPL-2.0-only
//! Concurrent copies are kept to their CPUs by affinity, which a program may change. This finds
//! threads that leave their side.

use super::Failure;
use crate::ab::cgroup::Cgroup;
use crate::machine::cpulist_text;
use crate::util::affinity::Affinity;
use anyhow::Result;

/// A copy's own cgroup, and its CPUs.
pub struct Side {
    pub cgroup: Cgroup,
    cpus: Vec<u16>,
}

impl Side {
    /// A cgroup for the copy with this number, below the common one. None: the copy has no CPUs of
    /// its own.
    pub fn new(cgroup: &Cgroup, number: usize, cpus: &[u16]) -> Result<Option<Side>> {
        if cpus.is_empty() {
            return Ok(None);
        }
        Ok(Some(Side {
            cgroup: cgroup.child(&format!("copy-{number}"))?,
            cpus: cpus.to_vec(),
        }))
    }

    /// Fails if a thread of the copy may run elsewhere.
    pub fn check(&self) -> Result<(), Failure> {
        let own = Affinity::new(&self.cpus);
        // A thread that has ended has no mask.
        let strays = |thread: &i32| Affinity::of(*thread).is_ok_and(|now| !now.within(&own));
        match self.cgroup.threads().into_iter().find(strays) {
            None => Ok(()),
            Some(thread) => {
                let name = std::fs::read_to_string(format!("/proc/{thread}/comm"));
                Err(Failure::Strayed {
                    name: name.unwrap_or_default().trim().to_string(),
                    cpus: cpulist_text(&self.cpus),
                })
            }
        }
    }
}
