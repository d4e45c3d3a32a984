// SPDX-License-Identifier: GPL-2.0-only
//! What of a loaded scheduler userspace goes on writing: the policy and the rules, which are memory that it shares with the
//! BPF half, and the maps of members and cgroups.

use crate::bpf::intf::{
    MAX_COMM_RULES, MAX_TICKETS, arm_member, arm_rules, policy_image, policy_store, ticket,
};
use crate::bpf::skel::{BpfSkel, types};
use crate::control::{Live, Ticket};
use crate::publish::{MapUpdate, Publisher};
use crate::rules::Table;
use anyhow::{Context, Result, bail};
use libbpf_rs::{MapCore, MapFlags, MapHandle, libbpf_sys};
use std::collections::BTreeMap;
use std::io::Error;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The least number of rules that a task may have seen (struct arm_rules).
const FIRST_SEQ: u32 = 2;

const NO_TICKET: ticket = ticket { id: 0, arm: 0 };

pub struct Loaded {
    publisher: Publisher<MapUpdate>,
    rules: NonNull<arm_rules>,
    members: MapHandle,
    cgroups: MapHandle,
    /// What is in that map.
    written: BTreeMap<u64, u32>,
    rename: OwnedFd,
    /// While there are rules about names.
    renames: Option<OwnedFd>,
}

// SAFETY: `rules` is memory that only we write, mapped until the scheduler is unloaded.
unsafe impl Send for Loaded {}

impl Loaded {
    /// To be dropped before the skeleton.
    pub fn new(skel: &mut BpfSkel) -> Result<Loaded> {
        const { assert!(size_of::<policy_store>() == size_of::<types::policy_store>()) };
        const { assert!(size_of::<arm_rules>() == size_of::<types::arm_rules>()) };
        let bss = skel.maps.bss_data.as_mut();
        let bss = bss.context("the BPF object has no .bss")?;
        let store = NonNull::from(&mut bss.policy).cast::<policy_store>();
        let rules = NonNull::from(&mut bss.rules).cast::<arm_rules>();
        let rename = skel.progs.roost_rename.as_fd().try_clone_to_owned()?;
        Ok(Loaded {
            // SAFETY: mapped until the scheduler is unloaded, and nobody else writes it.
            publisher: unsafe { Publisher::new(store, MapUpdate::new()?) },
            rules,
            members: MapHandle::try_from(&skel.maps.arm_members)?,
            cgroups: MapHandle::try_from(&skel.maps.cgroup_rules)?,
            written: BTreeMap::new(),
            rename,
            renames: None,
        })
    }

    fn write_cgroups(&mut self, wanted: &BTreeMap<u64, u32>) -> Result<()> {
        let tell = "cannot write a rule about a cgroup";
        let gone = self.written.keys().filter(|id| !wanted.contains_key(id));
        for id in gone.copied().collect::<Vec<u64>>() {
            self.cgroups.delete(&id.to_ne_bytes()).context(tell)?;
            self.written.remove(&id);
        }
        for (&id, &arm) in wanted {
            let (key, value) = (id.to_ne_bytes(), arm.to_ne_bytes());
            self.cgroups
                .update(&key, &value, MapFlags::ANY)
                .context(tell)?;
            self.written.insert(id, arm);
        }
        Ok(())
    }

    fn follow_renames(&mut self, wanted: bool) -> Result<()> {
        if !wanted {
            self.renames = None;
        } else if self.renames.is_none() {
            // SAFETY: a plain call; what it returns is ours.
            unsafe {
                let prog = self.rename.as_raw_fd();
                let fd = libbpf_sys::bpf_raw_tracepoint_open(std::ptr::null(), prog);
                if fd < 0 {
                    return Err(Error::from_raw_os_error(-fd))
                        .context("cannot follow changes of tasks' names");
                }
                self.renames = Some(OwnedFd::from_raw_fd(fd));
            }
        }
        Ok(())
    }
}

impl Live for Loaded {
    fn publish(&mut self, image: &policy_image) -> Result<u32> {
        self.publisher.publish(image)
    }

    /// Tasks read while this writes; each asks once more when the number of the rules has changed, which is last.
    fn set_rules(&mut self, table: &Table) -> Result<()> {
        self.follow_renames(!table.comms.is_empty())?;
        self.write_cgroups(&table.cgroups)?;
        let rules = self.rules.as_ptr();
        if table.comms.len() > MAX_COMM_RULES as usize {
            bail!("{} rules about names", table.comms.len());
        }
        // SAFETY: within the structure, which we alone write; volatile and atomic because the BPF half reads it.
        unsafe {
            for (i, rule) in table.comms.iter().enumerate() {
                (&raw mut (*rules).comms[i]).write_volatile(*rule);
            }
            for place in 0..MAX_TICKETS as usize {
                let good = table.tickets.iter();
                let ticket = good
                    .copied()
                    .find(|t| (t.id % MAX_TICKETS) as usize == place);
                let ticket = ticket.unwrap_or(NO_TICKET);
                (&raw mut (*rules).tickets[place]).write_volatile(ticket);
            }
            (&raw mut (*rules).nr_comms).write_volatile(table.comms.len() as u32);
            (&raw mut (*rules).nr_cgroups).write_volatile(table.cgroups.len() as u32);
            let seq = AtomicU32::from_ptr(&raw mut (*rules).seq);
            let next = seq.load(Ordering::Relaxed).wrapping_add(1).max(FIRST_SEQ);
            seq.store(next, Ordering::Release);
        }
        Ok(())
    }

    fn tell(&mut self, process: BorrowedFd, told: Ticket) -> Result<()> {
        let key = process.as_raw_fd().to_ne_bytes();
        let known = self.members.lookup(&key, MapFlags::ANY).ok().flatten();
        let mut member = arm_member { exec: 0, pid: 0 };
        if let Some(bytes) = known.filter(|b| b.len() == size_of::<arm_member>()) {
            // SAFETY: plain numbers of this size.
            member = unsafe { bytes.as_ptr().cast::<arm_member>().read_unaligned() };
        }
        match told {
            Ticket::Exec(id) => member.exec = id,
            Ticket::Pid(id) => member.pid = id,
        }
        let value = [member.exec.to_ne_bytes(), member.pid.to_ne_bytes()].concat();
        self.members
            .update(&key, &value, MapFlags::ANY)
            .context("cannot put the process on the arm: has it ended?")
    }
}
