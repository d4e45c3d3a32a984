// SPDX-License-Identifier: GPL-2.0-only
//! The loop: a task comes, the model places it, the core carries that out.
//!
//! The thread is of the class SCHED_FIFO and sleeps until the core queues a task. In the core's own
//! scheme a wakeup whose CPU is busy waits until some CPU's slice ends, because only a CPU without
//! work runs the scheduler; here it interrupts what runs.
//!
//! A task that gets an idle CPU is sent there. All others wait in the core's one queue for all
//! CPUs, by virtual time.

use super::core::{
    BpfScheduler, DispatchedTask, QueuedTask, RL_CPU_ANY, TaskStates, make_room, unload,
};
use super::own_limit::OwnLimit;
use super::{Books, Clock, Counts, Queued, Stamps};
use crate::bpf::exit::Exit;
use crate::machine::host::Host;
use crate::machine::own_group::RootPays;
use crate::machine::{Machine, read_machine, tick_period};
use crate::placement::topology::{Cpu, Topology};
use crate::placement::{Features, How};
use crate::policy::config::Config;
use crate::policy::features::{FEATURES, SLICE};
use crate::util::stop::Stop;
use crate::wire::stats::host::{Event, Gauges};
use crate::wire::stats::source::{CounterSource, Running};
use anyhow::{Context, Result, ensure};
use libbpf_rs::OpenObject;
use log::{info, warn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::CapabilitySet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use std::{fs, io};

/// For the thread's class, and for the limit of locked memory, which the core lifts.
pub const NEEDED: CapabilitySet = CapabilitySet::SYS_NICE
    .union(CapabilitySet::SYS_RESOURCE)
    .union(CapabilitySet::IPC_LOCK);

/// kernel: ENQUEUE_WAKEUP, which is SCX_ENQ_WAKEUP
const WAKEUP: u64 = 1;
/// How often the thread looks whether it is to stop.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// Tasks that are sent before the thread sleeps for a moment. A CPU takes as many at once, and the
/// core's queue of them has room for eight times as many.
const BATCH: usize = 512;
const MOMENT: Duration = Duration::from_micros(50);
/// Tasks that are sent between two looks at what became of those that were sent.
const SETTLE_EVERY: usize = 16;
/// How long a task waits for room in the core's queue. A CPU empties it at the end of each slice.
const FULL_MAX: Duration = Duration::from_secs(1);
/// The core takes memory for each task without sleeping, which may fail while other CPUs do so too:
/// the load is tried so often.
const LOADS_MAX: u32 = 5;
/// Words of 64 CPUs in a set for sched_getaffinity(2): the core's MAX_CPUS is 1024.
const MASK_WORDS: usize = 16;

/// Runs until `stop`, or until the kernel ends it. Loads again when a CPU goes or comes.
pub fn run(config: &Config, host: &Host, source: &CounterSource, stop: &Stop) -> Result<()> {
    // SAFETY: a plain call.
    let thread = unsafe { libc::gettid() };
    ensure!(
        thread as u32 == std::process::id(),
        "--backend rust must run in the first thread of its process, which scx_rustland_core \
         schedules by itself"
    );
    let (mut restarts, mut failed) = (0, 0);
    loop {
        let shown = Running {
            cpuperf: "off".to_string(),
            restarts,
        };
        let ended = match once(config, host, source, stop, shown) {
            Err(e) if failed + 1 < LOADS_MAX && lacked_memory(&e) => {
                failed += 1;
                warn!("{e:#}: trying again");
                continue;
            }
            ended => ended?,
        };
        failed = 0;
        if stop.stopped() || !ended.is_none_or(|exit| exit.restarts) {
            return Ok(());
        }
        info!("restarting: a CPU went offline or came online");
        source.event(Event::MachineChanged);
        restarts += 1;
    }
}

/// The kernel could not give the core memory for a task while it loaded.
fn lacked_memory(why: &anyhow::Error) -> bool {
    why.to_string().contains("init_task() failed (-12)")
}

/// None: a CPU went or came after the machine was read, and before the kernel follows that.
fn once(
    config: &Config,
    host: &Host,
    source: &CounterSource,
    stop: &Stop,
    shown: Running,
) -> Result<Option<Exit>> {
    let (machine, hotplug_seq) = read_machine(host, shown.restarts > 0)?;
    let counts = Counts::new(machine.nr_cpu_ids.into());
    let slice = u64::from(config.settings.value(&SLICE, machine.cpus.len() as u32)) * 1000;
    source.set_gauges(Gauges {
        cpus_online: machine.cpus.len() as u64,
        ..Gauges::default()
    });
    make_room()?;
    let settings = &config.settings;
    // Once it is attached, this thread must not wait for the reader of the log.
    info!(
        "scx_roost decides in userspace: {} ({}), slice {} us",
        settings.shown_as(machine.cpus.len() as u32),
        settings.features,
        slice / 1000
    );
    let tick = tick_period()
        .context("the kernel does not tell its tick")?
        .as_nanos() as u64;
    let root_pays = RootPays::begin(host)?;
    let own_limit = (!root_pays.for_good)
        .then(|| OwnLimit::follow(host, source))
        .transpose()?;
    let real_time = RealTime::new()?;
    let mut object = MaybeUninit::<OpenObject>::uninit();
    let mut bpf = BpfScheduler::init(
        &mut object,
        config.open_opts(),
        config.exit_dump_len,
        false,
        false,
        false,
        false,
        slice,
        "roost_rust",
    )?;
    drop(root_pays);
    let counting = source.attach(Box::new(counts.clone()), shown);
    let moved = bpf.skel.struct_ops().rustland().hotplug_seq != hotplug_seq;
    let mut scheduler = InRust {
        states: TaskStates::new(&bpf)?,
        books: Books::new(topology(&machine), switches(config), slice, tick),
        waited_for_load: *bpf.nr_queued_mut(),
        bpf,
        counts,
        slice,
        clock: Clock::default(),
        allowed: vec![false; machine.nr_cpu_ids.into()],
        kernel_dispatches: 0,
    };
    let ended = match moved {
        true => Ok(()),
        false => scheduler.until(stop),
    };
    // First of all the kernel's own scheduler takes over: another thread may hold a lock.
    let exit = unload(&mut scheduler.bpf);
    drop(real_time);
    drop(own_limit);
    drop(counting);
    ended?;
    Ok((!moved).then_some(exit?))
}

fn topology(machine: &Machine) -> Topology {
    let offline = Cpu {
        core: 0,
        llc: 0,
        node: 0,
        capacity: 0,
        online: false,
    };
    let mut cpus = vec![offline; machine.nr_cpu_ids.into()];
    for cpu in &machine.cpus {
        cpus[usize::from(cpu.id)] = Cpu {
            core: cpu.core.into(),
            llc: cpu.llc.into(),
            node: cpu.node.into(),
            capacity: cpu.capacity.into(),
            online: true,
        };
    }
    Topology::new(cpus)
}

fn switches(config: &Config) -> Features {
    let mut features = Features::NONE;
    let on = FEATURES
        .iter()
        .filter(|row| config.settings.features.has(row.bit));
    for row in on {
        if let Some(switch) = features.switch(row.name) {
            *switch = true;
        }
    }
    features
}

/// While it lives, all threads of this process are real-time ones, this one above the others. So
/// none waits to be scheduled by this one: what it holds is given back, and a process that was
/// killed ends.
struct RealTime;

impl RealTime {
    fn new() -> Result<RealTime> {
        let real_time = RealTime;
        set_classes(libc::SCHED_FIFO, 1)
            .and_then(|()| set_class(0, libc::SCHED_FIFO, 2))
            .context(
                "--backend rust needs a real-time priority: root or CAP_SYS_NICE, and a cgroup \
                 that allows it",
            )?;
        Ok(real_time)
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        // A thread may always lower itself and others of its user.
        let _ = set_classes(libc::SCHED_OTHER, 0);
    }
}

/// Of all threads; those that they start inherit it. One that a thread starts just before its own
/// turn is found by another pass.
fn set_classes(class: i32, level: i32) -> io::Result<()> {
    loop {
        let mut all = true;
        for task in fs::read_dir("/proc/self/task")? {
            let name = task?.file_name();
            let tid = name.to_str().and_then(|name| name.parse().ok());
            let tid = tid.unwrap_or(0);
            // SAFETY: a plain call.
            let now = unsafe { libc::sched_getscheduler(tid) };
            if now < 0 || now & !libc::SCHED_RESET_ON_FORK == class {
                // A negative one: it has ended.
                continue;
            }
            all = false;
            match set_class(tid, class, level) {
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => (),
                set => set?,
            }
        }
        if all {
            return Ok(());
        }
    }
}

/// `tid` 0: this thread.
fn set_class(tid: i32, class: i32, level: i32) -> io::Result<()> {
    let param = libc::sched_param {
        sched_priority: level,
    };
    // SAFETY: the parameter is alive.
    match unsafe { libc::sched_setscheduler(tid, class, &param) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

struct InRust<'a> {
    bpf: BpfScheduler<'a>,
    states: TaskStates,
    books: Books,
    counts: Counts,
    /// ns
    slice: u64,
    clock: Clock,
    /// CPUs of the task that is being placed.
    allowed: Vec<bool>,
    /// Of these, those that are counted.
    kernel_dispatches: u64,
    /// Tasks that waited when the core was loaded, and are not received yet.
    waited_for_load: u64,
}

impl InRust<'_> {
    fn until(&mut self, stop: &Stop) -> Result<()> {
        while !self.bpf.exited() && !stop.stopped() {
            let mut sent = 0;
            while sent < BATCH
                && let Ok(Some(task)) = self.bpf.dequeue_task()
            {
                if sent % SETTLE_EVERY == 0 {
                    self.settle();
                }
                self.place(&task, stop)?;
                sent += 1;
            }
            self.count_kthreads();
            match sent < BATCH {
                true => self.sleep()?,
                false => std::thread::sleep(MOMENT),
            }
        }
        Ok(())
    }

    /// Sleeps until a task is queued. A CPU that has no task in its own queue then carries out what
    /// was sent: this one, unless this thread interrupted a task.
    fn sleep(&self) -> Result<()> {
        let queued: BorrowedFd = self.bpf.skel.maps.queued.as_fd();
        let mut fds = [PollFd::from_borrowed_fd(queued, PollFlags::IN)];
        match poll(&mut fds, Some(&LOOK)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e).context("cannot wait for tasks"),
        }
    }

    /// What became of the tasks that were sent.
    fn settle(&mut self) {
        // SAFETY: a plain call.
        let here = usize::try_from(unsafe { libc::sched_getcpu() }).ok();
        let states = &mut self.states;
        self.books
            .settle(here, self.clock.now(), |pid| states.stamps(pid));
    }

    fn place(&mut self, task: &QueuedTask, stop: &Stop) -> Result<()> {
        let queued = self.queued(task);
        self.clock.saw(task.stop_ts);
        let back = self.books.back(&queued, self.clock.now());
        if let Some(ns) = back.waited {
            self.counts.waited(ns);
        }
        let pinned = task.nr_cpus_allowed == 1;
        allowed_cpus(task.pid, &mut self.allowed);
        if pinned {
            // It may have migration disabled, which its set of CPUs does not show.
            keep_only(&mut self.allowed, queued.prev);
        }
        let (decision, now) = self.books.decide(&queued, &self.allowed, self.clock.now());
        let mut got = None;
        if decision.how == How::Idle {
            // Whether the kernel agrees; it then expects the task there.
            let cpu = self
                .bpf
                .select_cpu(task.pid, decision.cpu as i32, task.flags);
            if cpu != decision.cpu as i32 {
                self.counts.count(decision.cpu, "claim_release");
            }
            got = usize::try_from(cpu).ok();
        }
        // In the queue of a CPU that goes offline it would wait until the CPU has gone, and that
        // may wait for this task. The set may also have changed since.
        if let Some(cpu) = got
            && self.allowed.get(cpu) != Some(&true)
        {
            allowed_cpus(task.pid, &mut self.allowed);
            got = got.filter(|cpu| self.allowed.get(*cpu) == Some(&true));
        }
        self.counts.placed(&now, &decision, got, queued.prev);
        let mut sent = DispatchedTask::new(task);
        sent.slice_ns = self.slice;
        sent.vtime = back.vtime;
        sent.cpu = RL_CPU_ANY;
        if let Some(cpu) = got {
            sent.cpu = cpu as i32;
            self.books.sent(cpu, &queued, self.clock.now());
            self.counts.count(cpu, "enq_idle");
        } else {
            self.counts.count(queued.prev, "enq_queued");
            if pinned {
                self.counts.count(queued.prev, "enq_pinned");
            }
        }
        self.send(&sent, stop)
    }

    fn queued(&mut self, task: &QueuedTask) -> Queued {
        let woken = task.flags & WAKEUP != 0;
        let waited_for_load = self.waited_for_load > 0;
        self.waited_for_load = self.waited_for_load.saturating_sub(1);
        Queued {
            pid: task.pid,
            prev: usize::try_from(task.cpu).unwrap_or(0),
            stamps: Stamps {
                start: task.start_ts,
                stop: task.stop_ts,
            },
            ran: task.exec_runtime,
            vtime: task.vtime,
            weight: task.weight.max(1),
            woken,
            forked: !woken && task.start_ts == 0 && !waited_for_load,
        }
    }

    fn send(&mut self, task: &DispatchedTask, stop: &Stop) -> Result<()> {
        let since = Instant::now();
        loop {
            match self.bpf.dispatch_task(task) {
                Ok(()) => return Ok(()),
                Err(_) if stop.stopped() || self.bpf.exited() => return Ok(()),
                Err(e) if since.elapsed() > FULL_MAX => {
                    return Err(e).context("the core's queue of placed tasks stays full");
                }
                // The CPU of this thread is then free, and empties the queue.
                Err(_) => std::thread::sleep(MOMENT),
            }
        }
    }

    fn count_kthreads(&mut self) {
        let all = *self.bpf.nr_kernel_dispatches_mut();
        // A CPU counts a task here first, then there.
        let now = all.saturating_sub(*self.bpf.nr_sched_congested_mut());
        for _ in self.kernel_dispatches..now {
            self.counts.count(0, "enq_kthread");
        }
        self.kernel_dispatches = self.kernel_dispatches.max(now);
    }
}

/// The CPUs that the task may use and that are not about to go offline; none, if it has ended.
fn allowed_cpus(pid: i32, allowed: &mut [bool]) {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the set is as long as it is said to be.
    unsafe {
        libc::sched_getaffinity(pid, size_of_val(&mask), mask.as_mut_ptr().cast());
    }
    for (cpu, may) in allowed.iter_mut().enumerate() {
        *may = mask
            .get(cpu / 64)
            .is_some_and(|word| word >> (cpu % 64) & 1 != 0);
    }
}

fn keep_only(allowed: &mut [bool], cpu: usize) {
    for (other, may) in allowed.iter_mut().enumerate() {
        *may &= other == cpu;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_tried_again_if_memory_lacked_alone() {
        let ended = |how: &str| lacked_memory(&anyhow::anyhow!("EXIT: runtime error ({how})"));
        assert!(ended("ops.init_task() failed (-12) for forks[123]"));
        assert!(!ended("ops.init_task() failed (-22) for forks[123]"));
    }
}
