// SPDX-License-Identifier: GPL-2.0-only
//! What userspace knows of the machine: where it sent tasks, and which of them have run. That a
//! task began or ended to run is not reported; the core's stamps of the task say it when asked.
//!
//! Nothing here allocates after `new`.

use crate::placement::topology::{NICE0, Topology};
use crate::placement::{
    CpuNow, Decision, Features, LlcNow, Now, TaskNow, Wake, Waker, WakerNow, decide,
};

/// Tasks of a CPU that are remembered. If there are more, the oldest is forgotten.
const SENT_MAX: usize = 4;
/// kernel: sd->imbalance_pct between cores.
const IMBALANCE_PCT: u64 = 117;
/// A part of a new run in the mean of a task's runs.
const BURST_SHARE: u64 = 4;
/// A task that has not begun so long after it was sent is forgotten, ns. It may have left before,
/// for another class or by SIGSTOP, and its CPU would count as busy for good. A task that merely
/// waits may be forgotten: the kernel is asked whether the CPU is idle.
const WAIT_MAX: u64 = 100_000_000;
/// The weight of nice 0.
const USUAL_WEIGHT: u64 = 100;
/// A lighter task counts as one of nice 10. Otherwise it would wait for seconds beside others.
const LEAST_WEIGHT: u64 = 10;

/// When a task last began and ended to run, ns by the kernel's clock; 0: it never did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    pub start: u64,
    pub stop: u64,
}

/// A task that wants a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    pub pid: i32,
    /// Where it ran last. A new task: its parent's CPU.
    pub prev: usize,
    pub stamps: Stamps,
    /// As sched_ext has it: 100 is nice 0.
    pub weight: u64,
    /// It slept. Otherwise its slice ended, or it is new.
    pub woken: bool,
}

/// A task that was sent to a CPU, and has not left it as far as is known.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub pid: i32,
    /// When it was sent.
    pub before: Stamps,
    /// The same by the kernel's clock; None: not known yet.
    pub at: Option<u64>,
    pub load: u64,
}

/// What became of a task that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It has not begun to run.
    Waits,
    Runs,
    /// It stopped at this time; 0: it has ended.
    Left(u64),
}

impl Sent {
    /// `now`: its stamps now; None: the task has ended.
    pub fn settled(&self, now: Option<Stamps>) -> Settled {
        match now {
            None => Settled::Left(0),
            Some(now) if now.start > self.before.start && now.stop > now.start => {
                Settled::Left(now.stop)
            }
            Some(now) if now.start > self.before.start => Settled::Runs,
            Some(_) => Settled::Waits,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Cpu {
    sent: [Option<Sent>; SENT_MAX],
    /// When its last task stopped; 0: not known.
    idle_since: u64,
}

/// What is remembered of a task. The slot of a pid is its remainder: a task whose slot another has
/// taken is new.
#[derive(Clone, Copy, Default)]
struct Task {
    pid: i32,
    recent: Option<usize>,
    /// The mean time of its runs, ns.
    burst: u64,
    /// When the last run began that it was charged for.
    charged: u64,
    /// Where it stood in the queue; 0: nowhere yet.
    vtime: u64,
    /// When it was woken, if it has not run since.
    woken_at: Option<u64>,
}

/// What a task that is queued anew has done since it was queued before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Back {
    /// From its wakeup until it ran, ns.
    pub waited: Option<u64>,
    /// Where it stands in the queue for all CPUs.
    pub vtime: u64,
}

const TASKS_MAX: usize = 4096;

pub struct Books {
    machine: Topology,
    features: Features,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    cpus_now: Vec<CpuNow>,
    llcs_now: Vec<LlcNow>,
    /// ns
    slice: u64,
    /// Where the queue is, ns of a task of nice 0.
    least_vtime: u64,
}

impl Books {
    /// `slice` in ns.
    pub fn new(machine: Topology, features: Features, slice: u64) -> Books {
        let llcs = (0..machine.nr_llcs()).map(|llc| LlcNow {
            budget: machine.llc_cpus(llc).len(),
            ..LlcNow::default()
        });
        Books {
            features,
            cpus: vec![Cpu::default(); machine.nr_cpu_ids()],
            tasks: vec![Task::default(); TASKS_MAX],
            cpus_now: vec![CpuNow::default(); machine.nr_cpu_ids()],
            llcs_now: llcs.collect(),
            slice,
            least_vtime: 0,
            machine,
        }
    }

    pub fn machine(&self) -> &Topology {
        &self.machine
    }

    /// Asks `stamps` what became of each task that was sent, and forgets those that have left.
    /// `now`: by the kernel's clock; None: not known yet.
    pub fn settle(&mut self, now: Option<u64>, mut stamps: impl FnMut(i32) -> Option<Stamps>) {
        for cpu in &mut self.cpus {
            for place in &mut cpu.sent {
                let Some(sent) = place else { continue };
                let waited = now
                    .zip(sent.at)
                    .map_or(0, |(now, at)| now.saturating_sub(at));
                match sent.settled(stamps(sent.pid)) {
                    Settled::Left(at) => {
                        cpu.idle_since = cpu.idle_since.max(at);
                        *place = None;
                    }
                    Settled::Waits if waited > WAIT_MAX => *place = None,
                    Settled::Waits | Settled::Runs => (),
                }
            }
        }
    }

    /// The task was sent to that CPU. `now`: by the kernel's clock; None: not known yet.
    pub fn sent(&mut self, cpu: usize, task: &Queued, now: Option<u64>) {
        let sent = &mut self.cpus[cpu].sent;
        if sent[SENT_MAX - 1].is_some() {
            sent.rotate_left(1);
            sent[SENT_MAX - 1] = None;
        }
        if let Some(place) = sent.iter_mut().find(|place| place.is_none()) {
            *place = Some(Sent {
                pid: task.pid,
                before: task.stamps,
                at: now,
                load: task.weight * u64::from(NICE0) / USUAL_WEIGHT,
            });
        }
    }

    /// The task is no longer where it was sent: it is queued anew. `now`: by the kernel's clock;
    /// None: not known yet.
    pub fn back(&mut self, task: &Queued, now: Option<u64>) -> Back {
        for cpu in &mut self.cpus {
            for place in &mut cpu.sent {
                if place.is_some_and(|sent| sent.pid == task.pid) {
                    *place = None;
                    cpu.idle_since = cpu.idle_since.max(task.stamps.stop);
                }
            }
        }
        let mut slot = *self.slot(task.pid);
        if task.stamps == Stamps::default() && slot.charged != 0 {
            // It never ran: the slot is that of an ended task, whose pid was given away again.
            slot = Task {
                pid: task.pid,
                ..Task::default()
            };
        }
        // A change of affinity or weight queues it anew, too.
        let has_run = task.stamps.start != slot.charged;
        let ran = match has_run {
            true => task.stamps.stop.saturating_sub(task.stamps.start),
            false => 0,
        };
        let mut waited = None;
        if has_run {
            slot.burst = slot.burst - slot.burst / BURST_SHARE + ran / BURST_SHARE;
            slot.charged = task.stamps.start;
            self.least_vtime = self.least_vtime.max(slot.vtime);
            let woken_at = slot.woken_at.take();
            waited = woken_at.map(|at| task.stamps.start.saturating_sub(at));
        }
        if task.woken {
            slot.woken_at = now;
        }
        // A task that slept is not owed more than a slice.
        let least = self.least_vtime.saturating_sub(self.slice);
        slot.vtime = slot.vtime.max(least) + ran * USUAL_WEIGHT / task.weight.max(LEAST_WEIGHT);
        *self.slot(task.pid) = slot;
        let vtime = slot.vtime;
        Back { waited, vtime }
    }

    fn slot(&mut self, pid: i32) -> &mut Task {
        let slot = &mut self.tasks[pid as usize % TASKS_MAX];
        if slot.pid != pid {
            *slot = Task {
                pid,
                ..Task::default()
            };
        }
        slot
    }

    /// `now`: by the kernel's clock; None: not known yet.
    fn look(&mut self, now: Option<u64>) {
        for llc in &mut self.llcs_now {
            (llc.load, llc.util, llc.nr_running) = (0, 0, 0);
        }
        for (id, cpu) in self.cpus.iter().enumerate() {
            let place = &self.machine.cpus[id];
            let sent = || cpu.sent.iter().flatten();
            let nr_running = sent().count();
            let since = now.filter(|_| cpu.idle_since > 0);
            self.cpus_now[id] = CpuNow {
                idle: place.online && nr_running == 0,
                nr_running: nr_running as u32,
                load: sent().map(|sent| sent.load).sum(),
                idle_for: since.map(|now| now.saturating_sub(cpu.idle_since)),
                ..CpuNow::default()
            };
            if place.online {
                let llc = &mut self.llcs_now[place.llc];
                llc.load += self.cpus_now[id].load;
                llc.nr_running += nr_running;
                llc.util += u64::from(place.capacity) * u64::from(nr_running > 0);
            }
        }
    }

    /// The model's choice for the task, among the CPUs that are `allowed`.
    pub fn decide(
        &mut self,
        task: &Queued,
        allowed: &[bool],
        now: Option<u64>,
    ) -> (Decision, Now<'_>) {
        self.look(now);
        let known = *self.slot(task.pid);
        let slept = now.map_or(0, |now| now.saturating_sub(task.stamps.stop));
        let view = Now {
            machine: &self.machine,
            cpus: &self.cpus_now,
            llcs: &self.llcs_now,
            imbalance_pct: IMBALANCE_PCT,
            claim_ttl: 0,
        };
        let wake = Wake {
            task: TaskNow {
                pid: task.pid as u32,
                allowed,
                recent: known.recent,
                load: task.weight * u64::from(NICE0) / USUAL_WEIGHT,
                util: 0,
                sched_idle: false,
                waker: Waker::default(),
                burst: known.burst,
                slept: if task.woken { slept } else { 0 },
            },
            waker: WakerNow {
                pid: 0,
                ours: false,
                waker: Waker::default(),
                load: 0,
                burst: 0,
                pcpu_kthread: false,
            },
            now: 0,
            this: task.prev,
            prev: task.prev,
            fork: !task.woken && task.stamps.start == 0,
            sync: false,
            features: self.features,
            fits_margin: 0,
            fits_rt: false,
            threshold: 0,
        };
        let decision = decide(&view, &wake);
        self.tasks[task.pid as usize % TASKS_MAX].recent = decision.recent;
        (decision, view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::How;

    const SLICE: u64 = 1_000_000;

    fn books() -> Books {
        Books::new(Topology::regular(1, 2, 1, 1, false), Features::NONE, SLICE)
    }

    /// Woken; it has run from `start` for `ran` before.
    fn task(pid: i32, weight: u64, start: u64, ran: u64) -> Queued {
        Queued {
            pid,
            prev: 0,
            stamps: Stamps {
                start,
                stop: start + ran,
            },
            weight,
            woken: true,
        }
    }

    #[test]
    fn a_task_is_charged_for_a_run_once_and_by_its_weight() {
        let mut books = books();
        let vtime = |books: &mut Books, task| books.back(&task, None).vtime;
        assert_eq!(vtime(&mut books, task(1, 200, 1000, 600)), 300);
        assert_eq!(vtime(&mut books, task(1, 200, 1000, 600)), 300);
        assert_eq!(vtime(&mut books, task(1, 50, 2000, 600)), 1500);
        assert_eq!(vtime(&mut books, task(2, 1, 2000, 600)), 6000);
    }

    #[test]
    fn a_task_that_slept_is_owed_a_slice() {
        let mut books = books();
        for run in 1..=5 {
            books.back(&task(1, 100, run * 2 * SLICE, SLICE), None);
        }
        // It ran last from 4 slices on.
        let late = books.back(&task(2, 100, 10 * SLICE, 0), None);
        assert_eq!(late.vtime, 3 * SLICE);
    }

    #[test]
    fn a_wait_lasts_from_the_wakeup_to_the_run() {
        let mut books = books();
        assert_eq!(books.back(&task(1, 100, 0, 0), Some(500)).waited, None);
        let moved = Queued {
            woken: false,
            ..task(1, 100, 0, 0)
        };
        assert_eq!(books.back(&moved, Some(700)).waited, None);
        let ran = task(1, 100, 900, 50);
        assert_eq!(books.back(&ran, Some(1000)).waited, Some(400));
    }

    #[test]
    fn a_task_that_never_begins_is_forgotten() {
        let mut books = books();
        let sent = task(1, 100, 1000, 10);
        let other = task(2, 100, 1000, 10);
        let places = |books: &mut Books, now| {
            books.settle(Some(now), |_| Some(sent.stamps));
            books.decide(&other, &[true, false], Some(now)).0.how
        };
        books.sent(0, &sent, Some(2000));
        assert_eq!(places(&mut books, 2000 + WAIT_MAX), How::Busy);
        assert_eq!(places(&mut books, 2001 + WAIT_MAX), How::Idle);
        // While it runs it is there, however long that lasts.
        books.sent(0, &sent, Some(2000));
        books.settle(Some(2 * WAIT_MAX), |_| {
            Some(Stamps {
                start: 3000,
                ..sent.stamps
            })
        });
        let now = Some(2 * WAIT_MAX);
        assert_eq!(books.decide(&other, &[true, false], now).0.how, How::Busy);
    }

    #[test]
    fn a_pid_that_is_given_away_again_is_a_new_task() {
        let mut books = books();
        books.back(&task(1, 100, 1000, 600), Some(2000));
        let new = Queued {
            stamps: Stamps::default(),
            woken: false,
            ..task(1, 100, 0, 0)
        };
        let fresh = Back {
            waited: None,
            vtime: 0,
        };
        assert_eq!(books.back(&new, Some(3000)), fresh);
    }
}
