// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler that checks what is published to it, and keeps nothing.

use anyhow::Result;
use scx_roost::bpf::intf::{
    CAPACITY_SCALE, MAX_ARMS, MAX_CGROUP_RULES, MAX_COMM_RULES, MAX_TICKETS, policy_image,
};
use scx_roost::daemon::control::{Audit, Limit, Live, Refused, Ticket};
use scx_roost::native::sys::ROOST_NR_FEATURES;
use scx_roost::policy::features::{FEATURES, FeatureSet, orphans};
use scx_roost::policy::rules::Table;
use std::os::fd::BorrowedFd;
use std::time::Duration;

#[derive(Clone, Default)]
pub struct Forgets;

impl Forgets {
    /// What the policy relies on: only known features, no sub-switch without its parent, and times
    /// within the range of its arithmetic.
    pub fn check(&self, image: &policy_image) {
        assert!((1..=MAX_ARMS).contains(&image.nr_arms));
        for (slot, arm) in image.arm.iter().enumerate() {
            let task = &arm.task;
            assert_eq!(task.features >> ROOST_NR_FEATURES, 0);
            assert_eq!(orphans(FeatureSet(task.features)).count(), 0);
            assert!(task.arm as usize == slot || task.arm == 0);
            let second = 1_000_000_000;
            assert!((1..=second).contains(&task.slice_ns), "{}", task.slice_ns);
            assert!(task.min_slice_ns <= second);
            assert!(task.claim_ttl_ns <= second);
            assert!(u64::from(task.delay_ns) <= second);
            assert!(task.fits_scale >= CAPACITY_SCALE && task.fits_rt <= 1);
        }
        assert!(FEATURES.len() as u32 == ROOST_NR_FEATURES);
    }
}

impl Live for Forgets {
    fn publish(&mut self, image: &policy_image) -> Result<u32> {
        self.check(image);
        Ok(image.generation + 1)
    }

    fn set_rules(&mut self, table: &Table) -> Result<()> {
        assert!(table.cgroups.len() <= MAX_CGROUP_RULES as usize);
        assert!(table.comms.len() <= MAX_COMM_RULES as usize);
        assert!(table.tickets.len() <= MAX_TICKETS as usize);
        assert!(table.tickets.iter().all(|t| t.id != 0 && t.arm < MAX_ARMS));
        assert!(
            table
                .comms
                .iter()
                .all(|c| c.glob.contains(&0) && c.arm < MAX_ARMS)
        );
        Ok(())
    }

    fn speeds(&self, nr_cpus: usize) -> Vec<u32> {
        vec![CAPACITY_SCALE; nr_cpus]
    }

    fn set_frequencies(&mut self, _khz: &[Option<u32>], _age: Duration) {}

    fn idle_means(&self, nr_cpus: usize, _every: bool) -> Vec<u64> {
        vec![0; nr_cpus]
    }

    fn set_scans(&mut self, _worth: &[u32], _counts_ms: u32) {}

    fn assign(&mut self, _process: BorrowedFd, _ticket: Ticket) -> Result<()> {
        Ok(())
    }

    fn ended(&self) -> bool {
        false
    }

    fn audit(&mut self) -> Result<Audit> {
        Ok(Audit::default())
    }

    fn limits(&self) -> Vec<Limit> {
        Vec::new()
    }

    fn refused(&self) -> Refused {
        Refused::default()
    }
}
