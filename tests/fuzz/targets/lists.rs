// SPDX-License-Identifier: GPL-2.0-only
//! Lists of CPUs in the kernel's format.

use scx_roost::bpf::intf::MAX_CPUS;
use scx_roost::machine::{cpulist_text, parse_cpulist};

/// An accepted list is sorted, within the machine, and the same after writing and reading it.
pub fn lists(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(cpus) = parse_cpulist(&text) else {
        return;
    };
    assert!(cpus.is_sorted_by(|a, b| a < b));
    assert!(cpus.iter().all(|&cpu| u32::from(cpu) < MAX_CPUS));
    let again = parse_cpulist(&cpulist_text(&cpus));
    assert_eq!(again.expect("what we write we read"), cpus);
}
