// SPDX-License-Identifier: GPL-2.0-only
//! One scheduler in the kernel: open, fill in the machine and the tunables, load, attach, watch,
//! unload. A loop does this again when a CPU comes online that was offline at the load.
//!
//! The link is never pinned. When this process ends, for whatever reason, the kernel's own
//! scheduler takes over.

use crate::bpf::intf::{policy_image, tunables};
use crate::bpf::skel::{BpfSkel, BpfSkelBuilder};
use crate::bpf::{ToLog, copy_rows, fill_rodata};
use crate::daemon::bpf_memory::Loaded;
use crate::daemon::control::{self, Control, Origin};
use crate::daemon::counters::{self, CpuCounters};
use crate::daemon::looks::Looks;
use crate::daemon::reload::Reloads;
use crate::daemon::task_maps;
use crate::daemon::uevents::Uevents;
use crate::daemon::urgent::Urgent;
use crate::daemon::watch::{Past, Watch};
use crate::doctor;
use crate::machine::cpufreq::{self, CpuFreq};
use crate::machine::host::Host;
use crate::machine::picture;
use crate::machine::{Facts, Machine};
use crate::policy::config::Config;
use crate::publish::Scans;
use crate::util::privileges::{self, Access, Capabilities, Wanted};
use crate::util::stop::{Bell, Stop, Stopper, stopper};
use crate::wire::socket::Bound;
use crate::wire::stats::host::Event;
use crate::wire::stats::source::{CounterSource, Running};
use crate::wire::stats::{monitor, server};
use anyhow::{Context, Result, bail};
use libbpf_rs::{Link, OpenObject};
use log::{debug, info, warn};
use scx_utils::{UserExitInfo, compat, scx_ops_attach, scx_ops_load, scx_ops_open, uei_report};
use std::error::Error;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::slice::{from_mut, from_ref};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long /sys may stay inconsistent after a CPU came or went.
const SETTLE_TIME: Duration = Duration::from_secs(2);
const SETTLE_NAP: Duration = Duration::from_millis(20);

/// Why [`run`] failed. `Display` prints what failed; the sources have the causes.
#[derive(Debug)]
pub enum RunError {
    /// Nothing was loaded: this machine or this configuration cannot run the scheduler, a socket is
    /// in use, or a scheduler runs in this process.
    NotStarted(anyhow::Error),
    /// The scheduler did not load, or it ended with an error. The kernel's own scheduler runs.
    Ended(anyhow::Error),
}

impl RunError {
    fn inner(&self) -> &anyhow::Error {
        match self {
            RunError::NotStarted(e) | RunError::Ended(e) => e,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.inner().fmt(f)
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.inner().source()
    }
}

/// Runs until `stop` or until the kernel ends the scheduler; restarts are handled inside. Errors of
/// the scheduler are errors here. SysRq-S is an error too, as in scx_utils: somebody had to rescue
/// the machine from the scheduler.
///
/// Needs root, and a kernel with sched_ext; `scx_roost doctor` says what is missing.
///
/// A process can run one scheduler at a time; a second call meanwhile is an error. No limit, signal
/// handler or logger of the process is changed. During a load libbpf's messages go to the log at
/// debug level; afterwards they go where they went before. The calling thread has nice level -20
/// during a load, if RLIMIT_NICE permits it.
pub fn run(config: &Config, stop: Stop) -> Result<(), RunError> {
    let prepared = Prepared::new(config).map_err(RunError::NotStarted)?;
    let never = Bell::default();
    let run = prepared.run(stop, Origin::default(), &never);
    run.map_err(RunError::Ended)?;
    Ok(())
}

/// A run whose checks have passed and whose sockets exist, and which has no thread yet. This is the
/// moment at which a program gives up privileges.
pub struct Prepared<'a> {
    config: &'a Config,
    host: Host,
    source: CounterSource,
    stats: Bound,
    ctl: Bound,
    alone: Alone,
}

impl<'a> Prepared<'a> {
    /// Errors: this process runs a scheduler already; a check fails; a socket cannot be bound.
    pub fn new(config: &'a Config) -> Result<Prepared<'a>> {
        let alone = Alone::take()?;
        let host = Host::new(&config.sysfs);
        let source = CounterSource::default();
        doctor::check_start(&host, &source, config.ignore_cpu_max)?;
        Ok(Prepared {
            stats: server::bind(&config.stats_path, config.stats_group)?,
            ctl: control::bind(&config.ctl_path, config.ctl_group)?,
            config,
            host,
            source,
            alone,
        })
    }

    /// The calling thread keeps `needed` and what this run still needs, and gives up the rest for
    /// good. The same thread must call `run`.
    pub fn shed_privileges(&self, needed: Capabilities) -> Result<Capabilities> {
        let folder = |path: &'a Path| path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let removed = [&self.config.stats_path, &self.config.ctl_path].map(|path| Wanted {
            path: folder(path).unwrap_or(Path::new(".")),
            access: Access::Remove,
        });
        let read = [Some(&self.config.sysfs), self.config.freq_source.folder()];
        let read = read.into_iter().flatten().map(|path| Wanted {
            path,
            access: Access::Read,
        });
        let wanted: Vec<Wanted> = removed.into_iter().chain(read).collect();
        privileges::shed(needed, &wanted)
    }

    /// `reload`: rung to read the configuration again from its `origin`.
    pub fn run(self, stop: Stop, origin: Origin, reload: &Bell) -> Result<UserExitInfo> {
        let Prepared {
            config,
            host,
            source,
            stats,
            ctl,
            alone: _alone,
        } = self;
        let _server = server::serve(stats, source.clone())?;
        let _printer = Printer::start(config, &source)?;
        let control = Control::new(config.settings.clone(), config.freeze, source.clone());
        control.begin(config.plan(), origin)?;
        let _reloads = Reloads::start(&control, reload)?;
        let _ctl = control.serve(ctl)?;
        let _uevents = Uevents::listen(control.bell())
            .inspect_err(|e| warn!("{e:#}: the next look notices its end, within a second"));
        Runner {
            config,
            host,
            source,
            control,
            members: None,
            stop,
            start: SystemTime::now(),
            restarts: 0,
            past: Past::default(),
        }
        .run()
    }
}

/// Held while a scheduler runs in this process. scx_utils keeps the address of the kernel's dump in
/// one global: with two schedulers, one would read the other's memory after that is freed.
struct Alone;

static RUNNING: AtomicBool = AtomicBool::new(false);

impl Alone {
    fn take() -> Result<Alone> {
        if RUNNING.swap(true, Ordering::AcqRel) {
            bail!("this process already runs a scheduler: it can run one at a time");
        }
        Ok(Alone)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        RUNNING.store(false, Ordering::Release);
    }
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
    /// The map of tasks that were put on an arm. It outlives a load.
    members: Option<OwnedFd>,
    stop: Stop,
    start: SystemTime,
    restarts: u64,
    past: Past,
}

impl Runner<'_> {
    fn run(mut self) -> Result<UserExitInfo> {
        loop {
            match self.run_once()? {
                Ended::Exit(info) if self.stop.stopped() || !info.should_restart() => {
                    return Ok(info);
                }
                Ended::Exit(_) => {
                    info!("restarting: a CPU came online that was offline at the load");
                }
                Ended::MachineChanged => {
                    info!("the machine has changed since this scheduler was loaded: restarting");
                }
            }
            self.restarts += 1;
            self.source.event(Event::MachineChanged);
        }
    }

    fn announce(&self, policy: &policy_image, tun: &tunables, machine: &Machine, begin: Instant) {
        let everybody = self.control.everybody();
        let profile = match everybody.profile() {
            none if none.is_empty() => none,
            some => format!("profile {some}, "),
        };
        info!(
            "scx_roost runs: {profile}preset {} ({}), slice {} us, cpuperf {}; {}; loaded in {} ms",
            everybody.preset,
            everybody.features,
            policy.arm[0].task.slice_ns / 1000,
            cpufreq::mode_name(tun.cpuperf),
            picture::summary(machine),
            begin.elapsed().as_millis()
        );
        if self.restarts == 0 {
            info!(
                "watch it: scx_roost monitor; change it: scx_roost ctl; stop it: scx_roost stop, or \
                 Ctrl-C here"
            );
        }
    }

    /// Loads, watches and unloads the scheduler once.
    fn run_once(&mut self) -> Result<Ended> {
        let begin = Instant::now();
        let urgent = Urgent::begin();
        let (machine, hotplug_seq) = read_machine(&self.host, self.restarts > 0)?;
        let cpufreq = CpuFreq::read(&self.host);
        let tun =
            self.config
                .tunables(&cpufreq, !self.host.preempt_rt(), self.host.tells_of_limits);
        let facts = machine.facts()?;
        let timers = tun.timers != 0;
        let (host, control, source) = (&self.host, &self.control, &self.source);
        let past = self.past;
        let watch = Watch::new(self.config, host, control, source, &machine, timers, past);
        let scans = Scans::new(&facts.llcs, &facts.llc_cpus, self.config.freq_period);
        self.control.set_scans(scans);
        let policy = self
            .control
            .image(machine.cpus.len() as u32, watch.capacities());
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
        drop(urgent);
        let counters = scheduler.counters()?;
        let counting = self.source.attach(Box::new(counters), self.describe(&tun));
        self.announce(&policy, &tun, &machine, begin);
        let looks = Looks::start(watch, control, source, self.config.freq_period)?;
        let over = looks.wait(&self.stop)?;
        drop(counting);
        drop(told);
        let info = scheduler.unload()?;
        self.past = over.past;
        if over.left_behind && info.should_restart() && !self.stop.stopped() {
            // Reading the machine again would wait for the same file, and nothing could interrupt
            // that.
            bail!(
                "the machine has changed and cannot be read again, because reading a file in /sys or /proc does not return: find that file, then start scx_roost again"
            );
        }
        Ok(if over.machine_changed && !info.should_restart() {
            Ended::MachineChanged
        } else {
            Ended::Exit(info)
        })
    }

    fn describe(&self, tun: &tunables) -> Running {
        let start = self.start.duration_since(UNIX_EPOCH);
        Running {
            cpuperf: cpufreq::mode_name(tun.cpuperf).to_string(),
            start_time_s: start.map_or(0, |since| since.as_secs()),
            restarts: self.restarts,
        }
    }
}

/// The machine, and the count of hotplug events when it was read. After a restart, or if a CPU came
/// or went meanwhile, /sys may still be changing: what is inconsistent is read again for up to
/// `SETTLE_TIME`.
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

/// A machine described elsewhere (--sysfs) can only be run if it has the same CPUs online.
fn check_described(host: &Host, machine: &Machine) -> Result<()> {
    if host.own_machine() || !host.own_kernel() {
        return Ok(());
    }
    let real = Machine::read(Path::new("/sys"))?;
    if real.online() != machine.online() || real.nr_cpu_ids > machine.nr_cpu_ids {
        bail!(
            "--sysfs {} describes a machine with other CPUs: to run, the same CPUs must be online as here",
            host.sys.display()
        );
    }
    Ok(())
}

/// A loaded scheduler, and its link once it is attached.
struct Scheduler<'obj> {
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
    task_maps::make_room(&mut skel.maps, &host, keeps_task_storage, members)?;
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
    scx_ops_load!(skel, roost_ops, uei).context(
        "the kernel rejects the scheduler (-v shows its messages; 'scx_roost doctor' may know the reason)",
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

    /// The parts that userspace keeps writing. Must not be used after the scheduler is unloaded.
    fn live(&mut self) -> Result<Loaded> {
        Loaded::new(&mut self.skel)
    }

    fn members(&self) -> Result<OwnedFd> {
        Ok(self.skel.maps.arm_members.as_fd().try_clone_to_owned()?)
    }

    fn counters(&self) -> Result<CpuCounters> {
        CpuCounters::map(&self.skel.maps.bss_stats)
    }

    /// Detaches, and reports why the scheduler ended. After an error exit the reason is the error.
    fn unload(mut self) -> Result<UserExitInfo> {
        drop(self.link.take());
        report(&self.skel).map_err(with_remedy)
    }
}

fn report(skel: &BpfSkel) -> Result<UserExitInfo> {
    uei_report!(skel, uei)
}

/// scx_root_enable_workfn() reserves bandwidth for each CPU's ext_server, since 7.2. Nothing else
/// there fails with EBUSY after the scheduler has been created, but a hotplug, which is a restart.
fn with_remedy(exit: anyhow::Error) -> anyhow::Error {
    if !exit.to_string().contains("scx_root_enable() failed (-16)") {
        return exit;
    }
    exit.context(
        "the kernel cannot reserve CPU time for sched_ext: tasks of SCHED_DEADLINE hold it (end \
         those that 'ps -eLo pid,cls,comm' shows as DLN), or its count of them is off ('sysctl -w \
         kernel.sched_rt_runtime_us=N', with the N that it has, makes it count again)",
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_deadline_tasks_prevent_is_explained() {
        let said = |exit: &str| format!("{:#}", with_remedy(anyhow::anyhow!("{exit}")));
        let refused = "EXIT: runtime error (scx_root_enable() failed (-16)) on CPU 0";
        assert!(said(refused).contains("SCHED_DEADLINE") && said(refused).ends_with(refused));
        let other = "EXIT: runtime error (scx_root_enable() failed (-12)) on CPU 0";
        assert_eq!(said(other), other);
    }

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
    fn a_second_run_in_a_process_is_refused_until_the_first_is_over() {
        let config = Config {
            sysfs: "/nowhere".into(),
            ..Config::default()
        };
        let refusal = || run(&config, stopper().1).unwrap_err().to_string();
        let first = Alone::take().unwrap();
        for _ in 0..2 {
            let refused = "this process already runs a scheduler: it can run one at a time";
            assert_eq!(refusal(), refused);
        }
        drop(first);
        for _ in 0..2 {
            assert!(refusal().contains("/nowhere"), "{}", refusal());
        }
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
