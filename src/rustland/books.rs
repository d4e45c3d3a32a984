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
    /// The time that it has run since it was woken, ns. `stamps` lack what it ran before a
    /// real-time thread interrupted it.
    pub ran: u64,
    /// The position in the queue that it was sent with, which the kernel keeps; 0: it joins.
    pub vtime: u64,
    /// As sched_ext has it: 100 is nice 0.
    pub weight: u64,
    /// It slept. Otherwise its slice ended, or it is new.
    pub woken: bool,
    /// It was forked, and runs for the first time.
    pub forked: bool,
}

impl Queued {
    /// What it ran in the last run, ns. `before`: what it had run before that since it was woken.
    /// That is counted anew after a wakeup, and after a change of affinity.
    fn ran_since(&self, before: u64) -> u64 {
        let last = self.stamps.stop.saturating_sub(self.stamps.start);
        last.max(self.ran.saturating_sub(before))
    }
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
    /// When it stopped, if it looked at the last settle as if it had left. If a real-time thread
    /// interrupted it, it runs again.
    pub stopped: Option<u64>,
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
    /// What it had run by then since it was woken, ns.
    charged_ran: u64,
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
    /// The longest run of a task beside others that wait, ns: the tick after its slice ends it.
    longest: u64,
    /// Where the queue is, ns of a task of nice 0.
    least_vtime: u64,
    /// The CPU of the thread that decides, which is not idle.
    here: Option<usize>,
}

impl Books {
    /// `slice` and the time between two ticks in ns.
    pub fn new(machine: Topology, features: Features, slice: u64, tick: u64) -> Books {
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
            longest: slice + tick,
            least_vtime: 0,
            here: None,
            machine,
        }
    }

    /// Asks `stamps` what became of each task that was sent, and forgets those that have left.
    /// `here`: the CPU of this thread. `now`: by the kernel's clock; None: not known yet.
    pub fn settle(
        &mut self,
        here: Option<usize>,
        now: Option<u64>,
        mut stamps: impl FnMut(i32) -> Option<Stamps>,
    ) {
        self.here = here;
        for (id, cpu) in self.cpus.iter_mut().enumerate() {
            for place in &mut cpu.sent {
                let Some(sent) = place else { continue };
                let waited = now
                    .zip(sent.at)
                    .map_or(0, |(now, at)| now.saturating_sub(at));
                match sent.settled(stamps(sent.pid)) {
                    // This thread may have interrupted it.
                    Settled::Left(at)
                        if at > 0 && (here == Some(id) || sent.stopped != Some(at)) =>
                    {
                        sent.stopped = Some(at);
                    }
                    Settled::Left(at) => {
                        cpu.idle_since = cpu.idle_since.max(at);
                        *place = None;
                    }
                    Settled::Waits if waited > WAIT_MAX => *place = None,
                    Settled::Waits | Settled::Runs => sent.stopped = None,
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
                stopped: None,
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
            true => task.ran_since(slot.charged_ran),
            false => 0,
        };
        slot.vtime = slot.vtime.max(task.vtime);
        slot.charged_ran = task.ran;
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
        // A task that slept is not owed more than a slice. A longer run took nothing from others:
        // a task that nothing waits for gets a new slice without stopping.
        let least = self.least_vtime.saturating_sub(self.slice);
        let charge = ran.min(self.longest) * USUAL_WEIGHT / task.weight.max(LEAST_WEIGHT);
        slot.vtime = slot.vtime.max(least) + charge;
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
            let runs = |sent: &&Sent| sent.stopped.is_none();
            let sent = || cpu.sent.iter().flatten().filter(runs);
            let stopped = cpu.sent.iter().flatten().filter_map(|sent| sent.stopped);
            let idle_since = stopped.fold(cpu.idle_since, u64::max);
            let nr_running = sent().count();
            let since = now.filter(|_| idle_since > 0);
            self.cpus_now[id] = CpuNow {
                idle: place.online && nr_running == 0 && self.here != Some(id),
                nr_running: nr_running as u32,
                load: sent().map(|sent| sent.load).sum(),
                idle_for: since.map(|now| now.saturating_sub(idle_since)),
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
            fork: task.forked,
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
        Books::new(
            Topology::regular(1, 2, 1, 1, false),
            Features::NONE,
            SLICE,
            SLICE,
        )
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
            ran: 0,
            vtime: 0,
            weight,
            woken: true,
            forked: false,
        }
    }

    /// Tasks that never sleep, on one CPU: pid, weight, and how long each has run alone before. The
    /// longest wait of each, in slices. As with the core, the next task is taken from the queue
    /// before the one whose slice ended is back in it.
    fn longest_waits(hogs: &[(i32, u64, u64)], slices: u64) -> Vec<u64> {
        let mut books = books();
        let hog = |&(pid, weight, ran): &(i32, u64, u64)| task(pid, weight, 1, ran);
        let mut tasks: Vec<Queued> = hogs.iter().map(hog).collect();
        let mut queue: Vec<usize> = (0..tasks.len()).collect();
        let (mut since, mut waits) = (vec![0; tasks.len()], vec![0; tasks.len()]);
        for task in &mut tasks {
            task.woken = false;
            task.vtime = books.back(task, None).vtime;
        }
        let mut running = None;
        for turn in 1..=slices {
            let first = (0..queue.len()).min_by_key(|&at| tasks[queue[at]].vtime);
            let next = queue.remove(first.unwrap());
            waits[next] = waits[next].max(turn - since[next]);
            let start = (10 * slices + turn) * SLICE;
            let ended = running.replace(next);
            tasks[next].stamps = Stamps {
                start,
                stop: start + SLICE,
            };
            if let Some(ended) = ended {
                tasks[ended].vtime = books.back(&tasks[ended], None).vtime;
                since[ended] = turn;
                queue.push(ended);
            }
        }
        for waiting in queue {
            waits[waiting] = waits[waiting].max(slices - since[waiting]);
        }
        waits
    }

    #[test]
    fn a_task_that_ran_alone_does_not_wait_for_that_time() {
        let waits = longest_waits(
            &[(1, 1, 1000 * SLICE), (2, 100, SLICE), (3, 100, SLICE)],
            500,
        );
        assert!(waits[0] < 50, "it waited for {} slices", waits[0]);
        let waits = longest_waits(
            &[(1, 100, 3000 * SLICE), (2, 100, SLICE), (3, 100, SLICE)],
            500,
        );
        assert!(waits[0] < 10, "it waited for {} slices", waits[0]);
    }

    #[test]
    fn tasks_of_one_slot_starve_no_other() {
        let slots = TASKS_MAX as i32;
        let waits = longest_waits(&[(1, 100, 0), (1 + slots, 100, 0), (2, 100, 0)], 500);
        assert!(waits.iter().all(|wait| *wait < 10), "{waits:?}");
    }

    #[test]
    fn the_time_before_an_interruption_is_charged() {
        let mut books = books();
        let slice_ended = |start, ran, total| Queued {
            woken: false,
            ran: total,
            ..task(1, 100, start, ran)
        };
        assert_eq!(books.back(&slice_ended(1000, 600, 900), None).vtime, 900);
        assert_eq!(books.back(&slice_ended(2000, 100, 1300), None).vtime, 1300);
        // A change of affinity: it is counted anew.
        assert_eq!(books.back(&slice_ended(3000, 500, 0), None).vtime, 1800);
    }

    #[test]
    fn an_interrupted_task_still_has_its_cpu() {
        let stopped = Stamps {
            start: 2000,
            stop: 3000,
        };
        let other = task(2, 100, 1000, 10);
        let rung = |books: &mut Books| books.decide(&other, &[true, false], Some(4000)).0.how;
        // By this thread.
        let mut books = books();
        books.sent(0, &task(1, 100, 1000, 10), Some(1500));
        books.settle(Some(0), Some(4000), |_| Some(stopped));
        assert_eq!(rung(&mut books), How::Busy);
        // It goes on as soon as this thread sleeps.
        let resumed = Stamps {
            start: 3500,
            ..stopped
        };
        books.settle(Some(1), Some(4000), |_| Some(resumed));
        assert_eq!(rung(&mut books), How::Busy);
        // By another, which it is taken for idle until the next look.
        books.settle(Some(1), Some(4000), |_| Some(stopped));
        assert_eq!(rung(&mut books), How::Idle);
        books.settle(Some(1), Some(4000), |_| Some(resumed));
        assert_eq!(rung(&mut books), How::Busy);
        // It sleeps.
        books.settle(Some(1), Some(4000), |_| Some(stopped));
        books.settle(Some(1), Some(4000), |_| Some(stopped));
        books.settle(Some(1), Some(4000), |_| Some(resumed));
        assert_eq!(rung(&mut books), How::Idle);
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
            books.settle(None, Some(now), |_| Some(sent.stamps));
            books.decide(&other, &[true, false], Some(now)).0.how
        };
        books.sent(0, &sent, Some(2000));
        assert_eq!(places(&mut books, 2000 + WAIT_MAX), How::Busy);
        assert_eq!(places(&mut books, 2001 + WAIT_MAX), How::Idle);
        // While it runs it is there, however long that lasts.
        books.sent(0, &sent, Some(2000));
        books.settle(None, Some(2 * WAIT_MAX), |_| {
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
