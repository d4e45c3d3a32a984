// SPDX-License-Identifier: GPL-2.0-only
//! The counters that the BPF half keeps for each arm on each CPU. They are in a map as long as the
//! machine needs, which this process maps into its memory.

use crate::bpf::intf::{MAX_ARMS, MAX_CPUS};
use crate::bpf::skel::types::cpu_stats;
use crate::machine::{Facts, possible_cpus};
use crate::wire::stats::source::Counted;
use crate::wire::stats::{ArmCounts, Counters, NR_STATS, add};
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, OpenMapMut};
use std::io::Error;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;

const ROWS_OF_CPU: usize = MAX_ARMS as usize;

/// Makes the map long enough before it is loaded. It is the only table with an index whose length
/// depends on the machine. Other tables have rows for MAX_CPUS, MAX_LLCS or MAX_NODES, and mask
/// their index by that; hash maps of tasks are sized by threads (`task_maps.rs`).
pub fn make_room(map: &mut OpenMapMut<'_>, facts: &Facts) -> Result<()> {
    let own = possible_cpus(Path::new("/sys")).unwrap_or(MAX_CPUS as usize);
    map.set_value_size(bytes_for(own, facts.cpus.len()))
        .context("cannot allocate memory for the counters")
}

/// For `known` CPUs of the facts, and for every possible CPU of this kernel. The verifier demands
/// the latter, because it knows no other bound of the current CPU's number (src/bpf/port.bpf.h:
/// `stats_of_cpu`).
fn bytes_for(possible: usize, known: usize) -> u32 {
    let rows = possible.max(known) * ROWS_OF_CPU;
    (rows * size_of::<cpu_stats>()) as u32
}

/// The mapped memory of a loaded map, unmapped on drop.
pub struct CpuCounters {
    first: NonNull<cpu_stats>,
    nr_rows: usize,
}

// SAFETY: the mapping is ours until it is dropped; it is only read, with volatile reads.
unsafe impl Send for CpuCounters {}

impl CpuCounters {
    pub fn map(map: &impl MapCore) -> Result<CpuCounters> {
        let nr_rows = map.value_size() as usize / size_of::<cpu_stats>();
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let first = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                nr_rows * size_of::<cpu_stats>(),
                libc::PROT_READ,
                libc::MAP_SHARED,
                map.as_fd().as_raw_fd(),
                0,
            )
        };
        if first == libc::MAP_FAILED {
            return Err(Error::last_os_error()).context("cannot read the counters");
        }
        let first = NonNull::new(first.cast()).context("the counters have no address")?;
        Ok(CpuCounters { first, nr_rows })
    }
}

impl Drop for CpuCounters {
    fn drop(&mut self) {
        let len = self.nr_rows * size_of::<cpu_stats>();
        // SAFETY: what `map` mapped; nothing else refers to it.
        unsafe { libc::munmap(self.first.as_ptr().cast(), len) };
    }
}

impl Counted for CpuCounters {
    fn read(&self, slot: usize) -> ArmCounts {
        // SAFETY: the row is in the mapping; volatile because the BPF half goes on counting.
        let row = |i| unsafe { self.first.add(i).read_volatile() };
        (slot..self.nr_rows)
            .step_by(ROWS_OF_CPU)
            .map(|i| {
                let row = row(i);
                ArmCounts {
                    counters: row.wakeup.counts,
                    hists: row.hist,
                    sums: row.hist_sum,
                }
            })
            .fold(ArmCounts::default(), |sum, cpu| sum.plus(&cpu))
    }

    fn read_cpu(&self, cpu: usize) -> Counters {
        let first = cpu * ROWS_OF_CPU;
        let rows = first.min(self.nr_rows)..(first + ROWS_OF_CPU).min(self.nr_rows);
        // SAFETY: as above.
        rows.map(|i| unsafe {
            (&raw const (*self.first.as_ptr().add(i)).wakeup.counts).read_volatile()
        })
        .fold([0; NR_STATS], |sum, arm| add(&sum, &arm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A verifier computes the end of an access by `stats_of()` from the bounds of its terms: the
    /// kernel's last CPU, and the largest arm that the mask lets through. That sum is exact,
    /// because no index is an OR (tests/crate/indexes.rs).
    #[test]
    fn the_rows_cover_each_index_for_any_count_of_cpus() {
        let row = size_of::<cpu_stats>() as u64;
        for possible in 1..=u64::from(MAX_CPUS) {
            let first = (possible - 1) * u64::from(MAX_ARMS) * row;
            let end = first + u64::from(MAX_ARMS - 1) * row + row;
            for known in [1, possible, u64::from(MAX_CPUS)] {
                let bytes = u64::from(bytes_for(possible as usize, known as usize));
                assert!(
                    end <= bytes,
                    "{possible} CPUs, {known} known: {end} of {bytes}"
                );
            }
            let bytes = u64::from(bytes_for(possible as usize, 1));
            assert_eq!(bytes, end, "{possible} CPUs: no row is for none");
        }
    }
}
