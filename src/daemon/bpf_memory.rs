// SPDX-License-Identifier: GPL-2.0-only
//! The parts of a loaded scheduler that userspace keeps writing. The policy and the rules are in
//! memory shared with the BPF half; members and cgroups are in maps.

use crate::bpf::intf::{
    CAPACITY_SCALE, MAX_COMM_RULES, MAX_CPUS, MAX_TICKETS, arm_assignment, arm_rules, audit,
    policy_image, policy_store, ticket,
};
use crate::bpf::skel::{BpfSkel, types};
use crate::daemon::control::{Audit, Limit, Live, Refused, Ticket};
use crate::policy::rules::Table;
use crate::publish::{MapUpdate, Publisher};
use anyhow::{Context, Result, bail};
use libbpf_rs::{MapCore, MapFlags, MapHandle, libbpf_sys};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The lowest value of `seq` (struct arm_rules).
const FIRST_SEQ: u32 = 2;

const NO_TICKET: ticket = ticket { id: 0, arm: 0 };

pub struct Loaded {
    publisher: Publisher<MapUpdate>,
    rules: NonNull<arm_rules>,
    cpus: NonNull<[types::cpu_state]>,
    freqs: NonNull<[u64]>,
    scans: NonNull<[u64]>,
    assignment: NonNull<arm_assignment>,
    /// Why the kernel ended the scheduler; 0: it has not.
    exit_kind: NonNull<i32>,
    /// One value per CPU.
    drifts: NonNull<[i64; MAX_CPUS as usize]>,
    limits: NonNull<[types::bandwidth]>,
    refused: NonNull<types::cgroups_refused>,
    cgroups: MapHandle,
    /// What is in that map.
    written: BTreeMap<u64, u32>,
    /// Programs.
    assign: OwnedFd,
    audit: OwnedFd,
    rename: OwnedFd,
    /// The attached `rename` program, while rules about names exist.
    renames: Option<OwnedFd>,
}

// SAFETY: what is pointed to is mapped until the scheduler is unloaded. Only this process writes
// rules, frequencies, budgets of scans and `assignment`; `drifts` is written only while it is
// waited for.
unsafe impl Send for Loaded {}

impl Loaded {
    /// Must be dropped before the skeleton.
    pub fn new(skel: &mut BpfSkel) -> Result<Loaded> {
        const { assert!(size_of::<policy_store>() == size_of::<types::policy_store>()) };
        const { assert!(size_of::<arm_rules>() == size_of::<types::arm_rules>()) };
        const { assert!(size_of::<arm_assignment>() == size_of::<types::arm_assignment>()) };
        let data = skel.maps.data_data.as_mut();
        let data = data.context("the BPF object has no .data")?;
        let exit_kind = NonNull::from(&mut data.uei.kind);
        let bss = skel.maps.bss_data.as_mut();
        let bss = bss.context("the BPF object has no .bss")?;
        let store = NonNull::from(&mut bss.policy).cast::<policy_store>();
        let rules = NonNull::from(&mut bss.rules).cast::<arm_rules>();
        let cpus = NonNull::from(&mut bss.cpu_states[..]);
        let freqs = NonNull::from(&mut bss.cpu_freqs[..]);
        let scans = NonNull::from(&mut bss.llc_scans[..]);
        let assignment = NonNull::from(&mut bss.assignment).cast::<arm_assignment>();
        let limits = NonNull::from(&mut bss.bandwidths[..]);
        let refused = NonNull::from(&mut bss.cgroups_refused);
        let drifts = NonNull::from(&mut bss.util_drifts);
        Ok(Loaded {
            // SAFETY: mapped until the scheduler is unloaded, and nothing else writes it.
            publisher: unsafe { Publisher::new(store, MapUpdate::new()?) },
            rules,
            cpus,
            freqs,
            scans,
            assignment,
            exit_kind,
            drifts,
            limits,
            refused,
            cgroups: MapHandle::try_from(&skel.maps.cgroup_rules)?,
            written: BTreeMap::new(),
            assign: skel.progs.roost_assign.as_fd().try_clone_to_owned()?,
            audit: skel.progs.roost_audit.as_fd().try_clone_to_owned()?,
            rename: skel.progs.roost_rename.as_fd().try_clone_to_owned()?,
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
                        .context("cannot trace changes of tasks' names");
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

    /// Tasks read while this writes. The number of the rules (`seq`) is written last, and each task
    /// asks again when that has changed.
    fn set_rules(&mut self, table: &Table) -> Result<()> {
        self.follow_renames(!table.comms.is_empty())?;
        self.write_cgroups(&table.cgroups)?;
        let rules = self.rules.as_ptr();
        if table.comms.len() > MAX_COMM_RULES as usize {
            bail!("{} rules about names", table.comms.len());
        }
        // SAFETY: within the structure, which only this process writes; volatile and atomic because
        // the BPF half reads it.
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

    fn speeds(&self, nr_cpus: usize) -> Vec<u32> {
        let speed = |cpu| {
            // SAFETY: within the array; volatile because the BPF half writes it.
            let slow = unsafe {
                let state = self.cpus.cast::<types::cpu_state>().add(cpu).as_ptr();
                (&raw const (*state).slow).read_volatile()
            };
            CAPACITY_SCALE.saturating_sub(slow)
        };
        (0..nr_cpus.min(self.cpus.len())).map(speed).collect()
    }

    /// An unknown frequency leaves the old one, which soon is too old to count.
    fn set_frequencies(&mut self, khz: &[Option<u32>], age: Duration) {
        let at = u64::from(clock_ms().wrapping_sub(age.as_millis() as u32)) << 32;
        for (cpu, khz) in khz.iter().enumerate().take(self.freqs.len()) {
            let Some(khz) = khz else { continue };
            // SAFETY: within the array; an atomic because the BPF half reads it.
            let to = unsafe { AtomicU64::from_ptr(self.freqs.cast::<u64>().add(cpu).as_ptr()) };
            to.store(at | u64::from(*khz), Ordering::Relaxed);
        }
    }

    fn idle_means(&self, nr_cpus: usize, every: bool) -> Vec<u64> {
        let mean = |cpu| {
            // SAFETY: within the array; volatile because the BPF half writes it.
            unsafe {
                let state = self.cpus.cast::<types::cpu_state>().add(cpu).as_ptr();
                if every {
                    (&raw const (*state).idle_every.mean).read_volatile()
                } else {
                    (&raw const (*state).idle_wakeup.mean).read_volatile()
                }
            }
        };
        (0..nr_cpus.min(self.cpus.len())).map(mean).collect()
    }

    fn set_scans(&mut self, worth: &[u32], counts_ms: u32) {
        let until = u64::from(clock_ms().wrapping_add(counts_ms)) << 32;
        for (llc, worth) in worth.iter().enumerate().take(self.scans.len()) {
            // SAFETY: within the array; an atomic because the BPF half reads it.
            let to = unsafe { AtomicU64::from_ptr(self.scans.cast::<u64>().add(llc).as_ptr()) };
            to.store(until | u64::from(*worth), Ordering::Relaxed);
        }
    }

    fn assign(&mut self, process: BorrowedFd, ticket: Ticket) -> Result<()> {
        let (exec, pid) = match ticket {
            Ticket::Exec(id) => (id, 0),
            Ticket::Pid(id) => (0, id),
        };
        let assignment = self.assignment.as_ptr();
        // SAFETY: the structure, which is read and counted in only while the iterator runs.
        let threads = unsafe {
            assignment.write_volatile(arm_assignment {
                exec,
                pid,
                threads: 0,
            });
            for_threads(self.assign.as_fd(), process)
                .context("cannot put the process on the arm: it may have ended")?;
            assignment.read_volatile().threads
        };
        if threads == 0 {
            bail!("cannot put the process on the arm: it has ended");
        }
        Ok(())
    }

    fn ended(&self) -> bool {
        // SAFETY: as above; volatile because the BPF half writes it.
        unsafe { self.exit_kind.as_ptr().read_volatile() != 0 }
    }

    fn audit(&mut self) -> Result<Audit> {
        let mut answer = audit {
            util_drift: 0,
            util_est: 0,
            nr_tasks: 0,
            nr_joined: 0,
        };
        let mut run = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            // The answer is written in place.
            ctx_in: (&raw mut answer).cast(),
            ctx_size_in: size_of::<audit>() as u32,
            ..Default::default()
        };
        // SAFETY: the structures are alive; the drifts are not written again before the next run.
        let drifts = unsafe {
            let rc = libbpf_sys::bpf_prog_test_run_opts(self.audit.as_raw_fd(), &mut run);
            if rc < 0 {
                return Err(Error::from_raw_os_error(-rc)).context("cannot run the audit");
            }
            self.drifts.as_ptr().read_volatile()
        };
        let off = drifts.into_iter().enumerate().filter(|(_, d)| *d != 0);
        Ok(Audit {
            tasks: answer.nr_tasks,
            joined: answer.nr_joined,
            util_est: answer.util_est,
            util_drift: answer.util_drift,
            drift_of_cpu: off.collect(),
        })
    }

    fn limits(&self) -> Vec<Limit> {
        let row = |i| {
            // SAFETY: within the array; volatile because the BPF half writes it.
            unsafe {
                let rows = self.limits.cast::<types::bandwidth>();
                rows.add(i).as_ptr().read_volatile()
            }
        };
        let limited = (0..self.limits.len()).map(row).filter(|b| b.quota != 0);
        limited.map(limit).collect()
    }

    fn refused(&self) -> Refused {
        // SAFETY: as above.
        let refused = unsafe { self.refused.as_ptr().read_volatile() };
        Refused {
            count: refused.count,
            last: refused.last,
        }
    }
}

fn limit(row: types::bandwidth) -> Limit {
    Limit {
        cgroup: row.id,
        quota_us: row.quota / 1000,
        period_us: row.period / 1000,
        burst_us: row.burst / 1000,
        periods: row.periods,
        throttled: row.throttled,
        throttled_us: row.throttled_ns / 1000,
        used_us: row.used_ns / 1000,
        parks: row.parks,
        parked: row.parked,
    }
}

/// Milliseconds of CLOCK_MONOTONIC, which is bpf_ktime_get_ns(), as struct policy_image counts
/// them.
fn clock_ms() -> u32 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec; there is always this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    (now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000) as u32
}

/// Runs an iterator program over the threads of a process, its leader first.
fn for_threads(program: BorrowedFd, process: BorrowedFd) -> Result<()> {
    let mut which = libbpf_sys::bpf_iter_link_info::default();
    which.task.pid_fd = process.as_raw_fd() as u32;
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        iter_info: &mut which,
        iter_info_len: size_of::<libbpf_sys::bpf_iter_link_info>() as u32,
        ..Default::default()
    };
    let owned = |fd: i32| {
        if fd < 0 {
            return Err(Error::from_raw_os_error(-fd));
        }
        // SAFETY: a descriptor that the call before has made for us.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    };
    // SAFETY: plain calls; what they are given is alive.
    unsafe {
        let kind = libbpf_sys::BPF_TRACE_ITER;
        let link = libbpf_sys::bpf_link_create(program.as_raw_fd(), 0, kind, &options);
        let link = owned(link)?;
        let iterator = owned(libbpf_sys::bpf_iter_create(link.as_raw_fd()))?;
        // The iterator prints nothing; reading runs it to its end.
        File::from(iterator).read_to_end(&mut Vec::new())?;
    }
    Ok(())
}
