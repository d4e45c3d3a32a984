// SPDX-License-Identifier: GPL-2.0-only
//! The BPF half in the kernel, once: open, fill in the machine and the tunables, load, attach,
//! unload.
//!
//! The link is never pinned. When this process ends, for whatever reason, the kernel's own
//! scheduler takes over.

use crate::bpf::exit::{self, Exit};
use crate::bpf::intf::{policy_image, tunables};
use crate::bpf::skel::{BpfSkel, BpfSkelBuilder};
use crate::bpf::{ToLog, copy_rows, fill_rodata};
use crate::daemon::bpf_memory::Loaded;
use crate::daemon::counters::{self, CpuCounters};
use crate::daemon::process;
use crate::daemon::task_maps;
use crate::machine::cpufreq::CpuFreq;
use crate::machine::host::Host;
use crate::machine::own_group::RootPays;
use crate::machine::{Facts, read_machine};
use crate::policy::config::Config;
use crate::publish;
use anyhow::{Context, Result};
use libbpf_rs::{Link, OpenObject};
use log::debug;
use scx_utils::{compat, scx_ops_attach, scx_ops_load, scx_ops_open};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::slice::{from_mut, from_ref};
use std::time::{Duration, Instant};

/// A loaded scheduler, and its link once it is attached.
pub struct Instance<'obj> {
    skel: BpfSkel<'obj>,
    link: Option<Link>,
}

/// Loads the programs for the machine of `facts`, which need not be this one, and attaches nothing.
pub fn load_object<'obj>(
    config: &Config,
    facts: &Facts,
    tun: &tunables,
    policy: &policy_image,
    hotplug_seq: u64,
    members: Option<BorrowedFd>,
    object: &'obj mut MaybeUninit<OpenObject>,
) -> Result<BpfSkel<'obj>> {
    let begin = Instant::now();
    let _quiet = ToLog::begin();
    let builder = BpfSkelBuilder::default();
    let mut skel = scx_ops_open!(builder, object, roost_ops, config.open_opts())?;
    let rodata = skel.maps.rodata_data.as_mut();
    let rodata = rodata.context("the BPF object has no .rodata")?;
    #[cfg(feature = "faults")]
    {
        rodata.fault_old_paths = config.faults.old_paths.into();
        rodata.fault_spin = config.faults.spin.into();
    }
    let host = Host::new(Path::new("/sys"));
    let keeps_task_storage = host.keeps_task_storage() && !config.old_paths();
    rodata.keeps_task_storage = keeps_task_storage.into();
    fill_rodata!(rodata, facts, tun);
    let bss = skel.maps.bss_data.as_mut();
    let first = &mut bss.context("the BPF object has no .bss")?.policy.slot[0];
    copy_rows(from_mut(first), from_ref(policy))?;
    counters::make_room(&mut skel.maps.bss_stats, facts)?;
    task_maps::make_room(
        &mut skel.maps,
        &host,
        keeps_task_storage,
        tun.limits != 0,
        members,
    )?;
    // Attached only while rules about names exist.
    skel.progs.roost_rename.set_autoattach(false);
    // Run when a process is put on an arm.
    skel.progs.roost_assign.set_autoattach(false);
    let ops = skel.struct_ops.roost_ops_mut();
    // The macro above sets it too, but only after the machine was read.
    ops.hotplug_seq = hotplug_seq;
    ops.exit_dump_len = config.exit_dump_len;
    ops.flags &= known_flags();
    // New in Linux 6.19; without this the macro below would warn at every start.
    if !compat::struct_has_field("sched_ext_ops", "cgroup_set_idle").unwrap_or(false) {
        debug!("this kernel does not report changes of cpu.idle");
        ops.cgroup_set_idle = std::ptr::null_mut();
    }
    // New in Linux 6.17.
    if tun.limits == 0 {
        ops.cgroup_set_bandwidth = std::ptr::null_mut();
        skel.progs.roost_cgroup_set_bandwidth.set_autoload(false);
    }
    // The kernel warns about ops.cpu_release() where it is not needed (release.bpf.h).
    let reenqueues = compat::ksym_exists("scx_bpf_reenqueue_local___v2").unwrap_or(false);
    if reenqueues && !config.old_paths() {
        ops.cpu_release = std::ptr::null_mut();
        skel.progs.roost_switch.set_autoload(true);
    }
    let loaded = scx_ops_load!(skel, roost_ops, uei).context(
        "the kernel rejects the scheduler (-v shows its messages; 'scx_roost doctor' may know the reason)",
    )?;
    debug!(
        "BPF programs loaded after {} ms",
        begin.elapsed().as_millis()
    );
    Ok(loaded)
}

/// Loads the programs as a start without options would, and drops them. Returns how long it took,
/// or what the kernel said.
/// Errors: it did not come to a load, because of a limit or of the machine's files.
pub fn try_load(host: &Host) -> Result<Result<Duration>> {
    let begin = Instant::now();
    process::open_files()?;
    let _root_pays = RootPays::begin(host)?;
    let config = Config::default();
    let (machine, hotplug_seq) = read_machine(host, false)?;
    let cpufreq = CpuFreq::read(host);
    let tun = config.tunables_on(host, &cpufreq);
    let facts = machine.facts()?;
    let arms = [config.settings.arm(machine.cpus.len() as u32)];
    let policy = publish::image(&arms, &facts.capacities());
    let mut object = MaybeUninit::uninit();
    let loaded = load_object(
        &config,
        &facts,
        &tun,
        &policy,
        hotplug_seq,
        None,
        &mut object,
    );
    Ok(loaded.map(|_| begin.elapsed()))
}

impl<'obj> Instance<'obj> {
    /// What `load_object` has loaded, not attached yet.
    pub fn new(skel: BpfSkel<'obj>) -> Instance<'obj> {
        Instance { skel, link: None }
    }

    pub fn attach(&mut self) -> Result<()> {
        let begin = Instant::now();
        let _quiet = ToLog::begin();
        self.link = Some(scx_ops_attach!(self.skel, roost_ops)?);
        debug!(
            "scheduler attached after {} ms",
            begin.elapsed().as_millis()
        );
        Ok(())
    }

    /// The parts that userspace keeps writing. Must not be used after the scheduler is unloaded.
    pub fn live(&mut self) -> Result<Loaded> {
        Loaded::new(&mut self.skel)
    }

    pub fn members(&self) -> Result<OwnedFd> {
        Ok(self.skel.maps.arm_members.as_fd().try_clone_to_owned()?)
    }

    pub fn counters(&self) -> Result<CpuCounters> {
        CpuCounters::map(&self.skel.maps.bss_stats)
    }

    /// Detaches, and reports why the scheduler ended. After an error exit the reason is the error.
    pub fn unload(mut self) -> Result<Exit> {
        drop(self.link.take());
        let data = self.skel.maps.data_data.as_ref();
        exit::report(&data.context("the BPF object has no .data")?.uei)
    }
}

/// Flags of sched_ext_ops that this kernel knows. It refuses a scheduler with others.
fn known_flags() -> u64 {
    let flags = [
        *compat::SCX_OPS_KEEP_BUILTIN_IDLE,
        *compat::SCX_OPS_ENQ_LAST,
        *compat::SCX_OPS_ENQ_EXITING,
        *compat::SCX_OPS_SWITCH_PARTIAL,
        *compat::SCX_OPS_ENQ_MIGRATION_DISABLED,
        *compat::SCX_OPS_ALLOW_QUEUED_WAKEUP,
        *compat::SCX_OPS_BUILTIN_IDLE_PER_NODE,
        *compat::SCX_OPS_TID_TO_TASK,
    ];
    let known = flags.iter().fold(0, |all, f| all | f);
    debug!("sched_ext_ops flags of this kernel: {known:#x}");
    known
}
