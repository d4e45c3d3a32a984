// SPDX-License-Identifier: GPL-2.0-only
//! Affinity keeps a command to the CPUs of its variant, and a program may change its affinity. This
//! finds threads that leave these CPUs.

use super::Failure;
use crate::ab::cgroup::Cgroup;
use crate::machine::cpulist_text;
use crate::util::affinity::Affinity;

/// Fails if a thread in the cgroup may run elsewhere. `cpus`: empty if it may run anywhere.
pub fn check(cgroup: &Cgroup, cpus: &[u16]) -> Result<(), Failure> {
    if cpus.is_empty() {
        return Ok(());
    }
    let own = Affinity::new(cpus);
    // A thread that has ended has no mask.
    let strays = |thread: &i32| Affinity::of(*thread).is_ok_and(|now| !now.within(&own));
    match cgroup.threads().into_iter().find(strays) {
        None => Ok(()),
        Some(thread) => {
            let name = std::fs::read(format!("/proc/{thread}/comm")).unwrap_or_default();
            let name = String::from_utf8_lossy(&name);
            Err(Failure::Strayed {
                name: name.trim().to_string(),
                cpus: cpulist_text(cpus),
            })
        }
    }
}
