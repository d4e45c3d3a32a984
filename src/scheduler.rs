// SPDX-License-Identifier: GPL-2.0-only
//! One scheduler in the kernel: open, fill in the machine and the tunables, load, attach, watch, unload; and the loop
//! that does it again after hotplug or suspend. The link is never pinned: when this process ends, however it ends,
//! the kernel's own scheduler takes over.

use crate::bpf::copy_rows;
use crate::bpf::intf::{MAX_ARMS, policy_image, tunables};
use crate::bpf::skel::{BpfSkel, BpfSkelBuilder, types};
use crate::config::Config;
use crate::control::Control;
use crate::cpufreq::{self, CpuFreq};
use crate::doctor;
use crate::fill_rodata;
use crate::host::Host;
use crate::live::Loaded;
use crate::looks::Looks;
use crate::machine::{Facts, Machine};
use crate::publish::Scans;
use crate::stats::host::Event;
use crate::stats::source::{Counted, CounterSource, Running};
use crate::stats::{ArmCounts, Counters, NR_STATS, add, monitor, server};
use crate::stop::{Stop, Stopper, stopper};
use crate::topology_view;
use crate::uevents::Uevents;
use crate::watch::{Past, Watch};
use anyhow::{Context, Result, bail};
use libbpf_rs::{Link, OpenObject};
use log::{debug, info, warn};
use scx_utils::{UserExitInfo, compat, scx_ops_attach, scx_ops_load, scx_ops_open, uei_report};
use std::io::Error;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::slice::{from_mut, from_ref};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// How long a CPU that comes or goes may take until /sys agrees with itself.
const SETTLE_TIME: Duration = Duration::from_secs(2);
const SETTLE_NAP: Duration = Duration::from_millis(20);
/// Runs until it is stopped or the kernel ends it, over restarts. Errors of the scheduler are errors here; so is
/// SysRq-S, as in scx_utils: somebody had to save the machine from us.
pub fn run(config: &Config, stop: Stop) -> Result<UserExitInfo> {
    let host = Host::new(&config.sysfs);
    let source = CounterSource::default();
    doctor::check_start(&host, &source)?;
    scx_utils::try_set_rlimit_infinity();
    one_heap();
    if config.lock_memory {
        lock_memory()?;
    }
    let _server = server::launch(&config.stats_path, config.stats_group, source.clone())?;
    let _printer = Printer::start(config, &source)?;
    let control = Control::new(config.settings.clone(), config.freeze, source.clone());
    let _ctl = control.launch(&config.ctl_path, config.ctl_group)?;
    let _uevents = Uevents::listen(control.bell())
        .inspect_err(|e| warn!("{e:#}: its end is noticed within a second"));
    let mut runner = Runner {
        config,
        host,
        source,
        control,
        members: None,
        stop,
        restarts: 0,
        past: Past::default(),
    };
    loop {
        match runner.run_once()? {
            Ended::Exit(info) if runner.stop.stopped() || !info.should_restart() => {
                return Ok(info);
            }
            Ended::Exit(_) => info!("the kernel asks for a restart (hotplug or suspend)"),
            Ended::MachineChanged => {
                info!("the machine is not the one this scheduler was loaded for: restarting")
            }
        }
        runner.restarts += 1;
        runner.source.event(Event::MachineChanged);
    }
}

/// Each client of a socket has a thread of its own, and glibc would give each new one a heap of its own, kept for good: the process
/// would grow with clients that come and go (tests/guest/observe.sh has a bound of it; docs/userspace.md).
fn one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: a number alone. Where it is refused, the process only grows.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// What is in memory, and what will be: pages are locked as they come, so that stacks of threads are not filled for it.
fn lock_memory() -> Result<()> {
    // SAFETY: a plain call.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) } < 0 {
        return Err(Error::last_os_error()).context(
            "--lock-memory is refused: root, CAP_IPC_LOCK or a higher limit of locked memory (ulimit -l) is needed",
        );
    }
    Ok(())
}

/// Prints statistics beside the scheduler, until dropped.
struct Printer {
    stopper: Option<Stopper>,
    thread: Option<JoinHandle<()>>,
}

impl Printer {
    fn start(config: &Config, source: &CounterSource) -> Result<Printer> {
        let (stopper, stop) = stopper();
        let start = |interval| monitor::start(source.clone(), interval, config.stats_json, stop);
        let thread = config.stats_interval.map(start).transpose()?;
        Ok(Printer {
            stopper: Some(stopper),
            thread,
        })
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        drop(self.stopper.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

enum Ended {
    Exit(UserExitInfo),
    MachineChanged,
}

struct Runner<'a> {
    config: &'a Config,
    host: Host,
    source: CounterSource,
    control: Control,
    /// The map of those who were put on an arm, which outlives a load.
    members: Option<OwnedFd>,
    stop: Stop,
    restarts: u64,
    past: Past,
}

impl Runner<'_> {
    /// Load, watch, unload.
    fn run_once(&mut self) -> Result<Ended> {
        let begin = Instant::now();
        let (machine, hotplug_seq) = read_machine(&self.host, self.restarts > 0)?;
        let cpufreq = CpuFreq::read(&self.host);
        let tun = self.config.tunables(&cpufreq, !self.host.preempt_rt());
        let facts = machine.facts()?;
        let timers = tun.timers != 0;
        let (host, control, source) = (&self.host, &self.control, &self.source);
        let past = self.past;
        let watch = Watch::new(self.config, host, control, source, &machine, timers, past);
        let scans = Scans::new(&facts.llcs, &facts.llc_cpus, self.config.freq_period);
        self.control.set_scans(scans);
        let policy = self.control.image(machine.cpus.len() as u32, watch.worth());
        let mut object = MaybeUninit::<OpenObject>::uninit();
        let mut scheduler = Scheduler::load(
            self.config,
            &facts,
            &tun,
            &policy,
            hotplug_seq,
            self.members.as_ref().map(OwnedFd::as_fd),
            &mut object,
        )?;
        self.members = Some(scheduler.members()?);
        let told = self.control.attach(Box::new(scheduler.live()?), &policy)?;
        scheduler.attach()?;
        let counters = scheduler.counters(machine.nr_cpu_ids.into())?;
        let counting = self.source.attach(Box::new(counters), self.describe(&tun));
        let everybody = self.control.everybody();
        info!(
            "scx_roost runs: preset {} ({}), slice {} us, cpuperf {}; {}; loaded in {} ms",
            everybody.preset,
            everybody.features,
            policy.arm[0].task.slice_ns / 1000,
            cpufreq::mode_name(tun.cpuperf),
            topology_view::summary(&machine),
            begin.elapsed().as_millis()
        );
        let looks = Looks::start(watch, control, source, self.config.freq_period)?;
        let over = looks.wait(&self.stop)?;
        drop(counting);
        drop(told);
        let info = scheduler.unload()?;
        self.past = over.past;
        if over.left_behind && info.should_restart() && !self.stop.stopped() {
            // To read the machine again would be to wait for the same file, and nobody could stop that.
            bail!(
                "the machine has changed, and cannot be read anew, because a file in /sys or /proc does not answer: find it, and start scx_roost again"
            );
        }
        Ok(if over.machine_changed && !info.should_restart() {
            Ended::MachineChanged
        } else {
            Ended::Exit(info)
        })
    }

    fn describe(&self, tun: &tunables) -> Running {
        Running {
            cpuperf: cpufreq::mode_name(tun.cpuperf).to_string(),
            restarts: self.restarts,
        }
    }
}

/// The machine, and the count of hotplug events at which it was read. After a restart /sys may still be changing:
/// then what does not fit together is read again.
fn read_machine(host: &Host, restarted: bool) -> Result<(Machine, u64)> {
    let end = Instant::now() + SETTLE_TIME;
    loop {
        let seq = host.hotplug_seq()?;
        let machine = Machine::read(&host.sys);
        let moved = host.hotplug_seq()? != seq;
        let patient = (restarted || moved) && Instant::now() < end;
        match machine {
            Ok(machine) if !moved => {
                check_described(host, &machine)?;
                return Ok((machine, seq));
            }
            Err(e) if !patient => return Err(e),
            Ok(_) if !patient => {
                bail!("CPUs keep coming and going: cannot read the machine, try again later")
            }
            _ => sleep(SETTLE_NAP),
        }
    }
}

/// A machine described elsewhere (--sysfs) can be run only where the CPUs are the same.
fn check_described(host: &Host, machine: &Machine) -> Result<()> {
    if host.own_machine() || !host.own_kernel() {
        return Ok(());
    }
    let real = Machine::read(Path::new("/sys"))?;
    if real.online() != machine.online() || real.nr_cpu_ids > machine.nr_cpu_ids {
        bail!(
            "--sysfs {} describes a machine with other CPUs than this one: to run, the same CPUs are expected online",
            host.sys.display()
        );
    }
    Ok(())
}

/// A loaded and attached scheduler.
struct Scheduler<'obj> {
    skel: BpfSkel<'obj>,
    link: Option<Link>,
}

/// The programs in the kernel, made for the machine of `facts`, which need not be this one; nothing is attached.
pub fn load_object<'obj>(
    config: &Config,
    facts: &Facts,
    tun: &tunables,
    policy: &policy_image,
    hotplug_seq: u64,
    members: Option<BorrowedFd>,
    object: &'obj mut MaybeUninit<OpenObject>,
) -> Result<BpfSkel<'obj>> {
    let builder = BpfSkelBuilder::default();
    let mut skel = scx_ops_open!(builder, object, roost_ops, config.open_opts())?;
    let rodata = skel.maps.rodata_data.as_mut();
    fill_rodata!(rodata.context("the BPF object has no .rodata")?, facts, tun);
    let bss = skel.maps.bss_data.as_mut();
    let first = &mut bss.context("the BPF object has no .bss")?.policy.slot[0];
    copy_rows(from_mut(first), from_ref(policy))?;
    if let Some(members) = members {
        skel.maps.arm_members.reuse_fd(members)?;
    }
    // Attached when there are rules about names.
    skel.progs.roost_rename.set_autoattach(false);
    // Run when a process is told.
    skel.progs.roost_tell.set_autoattach(false);
    let ops = skel.struct_ops.roost_ops_mut();
    // The macro above reads it too, but later than the machine was read.
    ops.hotplug_seq = hotplug_seq;
    ops.exit_dump_len = config.exit_dump_len;
    ops.flags &= known_flags();
    // Since Linux 6.19; the macro below would warn of it at every start.
    if !compat::struct_has_field("sched_ext_ops", "cgroup_set_idle").unwrap_or(false) {
        debug!("this kernel does not tell of changes to cpu.idle");
        ops.cgroup_set_idle = std::ptr::null_mut();
    }
    // The kernel warns of ops.cpu_release() where it can do without (release.bpf.h).
    if compat::ksym_exists("scx_bpf_reenqueue_local___v2").unwrap_or(false) {
        ops.cpu_release = std::ptr::null_mut();
        skel.progs.roost_switch.set_autoload(true);
    }
    scx_ops_load!(skel, roost_ops, uei).context(
        "the kernel refuses the scheduler (-v shows what it says; 'scx_roost doctor' may know why)",
    )
}

impl<'obj> Scheduler<'obj> {
    fn load(
        config: &Config,
        facts: &Facts,
        tun: &tunables,
        policy: &policy_image,
        hotplug_seq: u64,
        members: Option<BorrowedFd>,
        object: &'obj mut MaybeUninit<OpenObject>,
    ) -> Result<Scheduler<'obj>> {
        let begin = Instant::now();
        let skel = load_object(config, facts, tun, policy, hotplug_seq, members, object)?;
        debug!(
            "BPF programs loaded after {} ms",
            begin.elapsed().as_millis()
        );
        Ok(Scheduler { skel, link: None })
    }

    fn attach(&mut self) -> Result<()> {
        let begin = Instant::now();
        self.link = Some(scx_ops_attach!(self.skel, roost_ops)?);
        debug!(
            "scheduler attached after {} ms",
            begin.elapsed().as_millis()
        );
        Ok(())
    }

    /// What is told of changes. Not to be used after the scheduler is unloaded.
    fn live(&mut self) -> Result<Loaded> {
        Loaded::new(&mut self.skel)
    }

    fn members(&self) -> Result<OwnedFd> {
        Ok(self.skel.maps.arm_members.as_fd().try_clone_to_owned()?)
    }

    /// The counters of the first `nr_cpus` CPUs. Not to be read after the scheduler is unloaded.
    fn counters(&self, nr_cpus: usize) -> Result<CpuCounters> {
        let bss = self.skel.maps.bss_data.as_ref();
        let stats = &bss.context("the BPF object has no .bss")?.stats;
        Ok(CpuCounters {
            first: stats.as_ptr(),
            nr_rows: (nr_cpus * MAX_ARMS as usize).min(stats.len()),
        })
    }

    /// Detaches, and reports why it ended. The reason of an error exit is the error.
    fn unload(mut self) -> Result<UserExitInfo> {
        drop(self.link.take());
        uei_report!(&self.skel, uei)
    }
}

/// The counters that the BPF half keeps for each arm on each CPU, in memory that it shares with us.
struct CpuCounters {
    first: *const types::cpu_stats,
    nr_rows: usize,
}

// SAFETY: the memory is mapped until the scheduler is unloaded, and `Counting` is dropped before that.
unsafe impl Send for CpuCounters {}

impl Counted for CpuCounters {
    fn read(&self, slot: usize) -> ArmCounts {
        // SAFETY: as above; volatile because the BPF half goes on counting.
        let row = |i| unsafe { self.first.add(i).read_volatile() };
        (slot..self.nr_rows)
            .step_by(MAX_ARMS as usize)
            .map(|i| {
                let row = row(i);
                ArmCounts {
                    counters: row.v,
                    hists: row.hist,
                    sums: row.hist_sum,
                }
            })
            .fold(ArmCounts::default(), |sum, cpu| sum.plus(&cpu))
    }

    fn read_cpu(&self, cpu: usize) -> Counters {
        let first = cpu * MAX_ARMS as usize;
        let rows = first.min(self.nr_rows)..(first + MAX_ARMS as usize).min(self.nr_rows);
        // SAFETY: as above.
        rows.map(|i| unsafe { (&raw const (*self.first.add(i)).v).read_volatile() })
            .fold([0; NR_STATS], |sum, arm| add(&sum, &arm))
    }
}

/// Flags of sched_ext_ops that this kernel knows; it refuses a scheduler with others.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn described(online: &str) -> (TempDir, Host) {
        let dir = tempfile::tempdir().unwrap();
        let cpu = dir.path().join("devices/system/cpu");
        fs::create_dir_all(&cpu).unwrap();
        fs::create_dir_all(dir.path().join("kernel/sched_ext")).unwrap();
        fs::write(cpu.join("possible"), "0-3\n").unwrap();
        fs::write(cpu.join("online"), online).unwrap();
        fs::write(dir.path().join("kernel/sched_ext/hotplug_seq"), "7\n").unwrap();
        let host = Host::in_folder(dir.path());
        (dir, host)
    }

    #[test]
    fn the_machine_comes_with_its_hotplug_count() {
        let (_dir, host) = described("0-3\n");
        let (machine, seq) = read_machine(&host, false).unwrap();
        assert_eq!((machine.cpus.len(), seq), (4, 7));
    }

    #[test]
    fn at_the_first_start_garbage_is_an_error_at_once() {
        let (_dir, host) = described("garbage\n");
        let begin = Instant::now();
        assert!(read_machine(&host, false).is_err());
        assert!(begin.elapsed() < SETTLE_TIME / 2);
    }

    #[test]
    fn after_a_restart_the_machine_may_take_a_moment() {
        let (dir, host) = described("garbage\n");
        let settle = std::thread::spawn(move || {
            sleep(Duration::from_millis(150));
            fs::write(dir.path().join("devices/system/cpu/online"), "0-2\n").unwrap();
            dir
        });
        let (machine, _) = read_machine(&host, true).unwrap();
        assert_eq!(machine.online(), [0, 1, 2]);
        settle.join().unwrap();
    }
}
