// SPDX-License-Identifier: GPL-2.0-only
//! Kernel pipes as of 5.5 to 6.13 (fs/pipe.c): pages that small messages share, and a mutex around
//! every read and write. A task spins for the mutex while its holder runs and nobody else wants its
//! CPU, and else sleeps (kernel/locking/mutex.c). A read of a full pipe wakes a writer even if no
//! page came free; that writer looks and sleeps again.

use super::cost::Costs;
use super::lines::Shared;
use super::load::Paged;
use super::speed::FULL;
use super::task::{Task, Then};
use super::wait::{Came, Message, Wait};
use crate::native::TaskId;
use std::collections::VecDeque;

/// Pages of a pipe (kernel: PIPE_DEF_BUFFERS).
const PAGES: usize = 16;
/// A task that spins looks after this long whether the holder still runs, ns.
const LOOK: u64 = 2_000;

/// What a task is about to do with a pipe.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// The tag of the message.
    Write(usize),
    Read,
}

/// How far a task has come with a read or a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    #[default]
    Outside,
    /// It spins for the mutex.
    Spins,
    /// It had to give way to another task while it spun, so it will sleep for the mutex (kernel:
    /// need_resched() in mutex_optimistic_spin()).
    GaveWay,
    /// It sleeps for the mutex, or has been woken for it.
    Queued,
    /// The mutex was handed to it.
    Given,
    Holds,
    /// It sleeps until there is room or something to read, or has been woken for that.
    Waits,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct AtPipe {
    stage: Stage,
    /// It has slept for this pipe, so it wakes the next sleeper of its kind (kernel:
    /// wake_next_reader, wake_next_writer).
    slept: bool,
    /// It was the first to sleep for the mutex and has been woken, so it goes before others.
    first: bool,
}

impl AtPipe {
    /// True from its asking for the mutex on, but for spinning, which ends if another task wants
    /// the CPU.
    pub fn inside(&self) -> bool {
        use Stage::{GaveWay, Outside, Spins};
        !matches!(self.stage, Outside | Spins | GaveWay)
    }

    /// True if it spun for a mutex.
    pub fn stops_spinning(&mut self) -> bool {
        let spins = self.stage == Stage::Spins;
        if spins {
            self.stage = Stage::GaveWay;
        }
        spins
    }
}

#[derive(Default)]
pub(super) struct Pipe {
    /// Unread messages of each page, the oldest page first; and the messages ever written to the
    /// newest page.
    pages: VecDeque<u64>,
    written: u64,
    holder: Option<TaskId>,
    spinners: VecDeque<TaskId>,
    sleepers: VecDeque<TaskId>,
    /// The first sleeper has been woken and has not had the mutex yet, so no other is woken
    /// (kernel: it still is the first of wait_list).
    woken: bool,
    /// The first sleeper was woken in vain, so it gets the mutex next (kernel: MUTEX_FLAG_HANDOFF).
    handoff: bool,
}

impl Pipe {
    fn full(&self) -> bool {
        self.pages.len() >= PAGES
    }

    /// True if a task that waits for the pipe to change must go on waiting.
    fn in_vain(&self, way: Way) -> bool {
        match way {
            Way::Write(_) => self.full(),
            Way::Read => self.pages.is_empty(),
        }
    }

    /// Adds a message to the newest page, or to a new page. False: there is no room.
    fn write(&mut self, of_page: u64) -> bool {
        let full = self.full();
        match self.pages.back_mut() {
            Some(page) if self.written < of_page => {
                *page += 1;
                self.written += 1;
                true
            }
            _ if full => false,
            _ => {
                self.pages.push_back(1);
                self.written = 1;
                true
            }
        }
    }

    /// Takes a message out of the oldest page. False: there is none.
    fn read(&mut self) -> bool {
        let Some(page) = self.pages.front_mut() else {
            return false;
        };
        *page -= 1;
        if *page == 0 {
            self.pages.pop_front();
        }
        true
    }
}

/// True if the task spins for a mutex, and runs.
fn spins(tasks: &[Task], &task: &TaskId) -> bool {
    tasks[task].on_cpu && tasks[task].pipe.stage == Stage::Spins
}

impl Wait {
    /// Goes on with the read or write from where it was. None: it is done.
    pub(super) fn pipes(
        &mut self,
        at: usize,
        way: Way,
        tasks: &mut [Task],
        id: TaskId,
        costs: &Costs,
    ) -> Option<Came> {
        let paged = self.load.channels[at].paged.expect("a pipe has pages");
        let came = match tasks[id].pipe.stage {
            Stage::Holds => self.finish(at, paged, way, tasks, id),
            Stage::Given => Some(self.enters(at, paged, &mut tasks[id], costs)),
            Stage::Waits if self.pipes[at].in_vain(way) => Some(self.waits(at, way, id)),
            _ => Some(self.locks(at, paged, tasks, id, costs)),
        };
        // The step is repeated until it is done.
        tasks[id].pc -= usize::from(came.is_some());
        came
    }

    /// Takes the mutex, and does the work under it.
    fn enters(&mut self, at: usize, paged: Paged, task: &mut Task, costs: &Costs) -> Came {
        let cpu = task.cpu.expect("it runs");
        let lines = self.lines.come(Shared::Pipe(at), cpu, costs);
        task.pipe.stage = Stage::Holds;
        if std::mem::take(&mut task.pipe.first) {
            self.pipes[at].woken = false;
        }
        task.left += (paged.hold + lines) * FULL;
        Came::Works
    }

    /// Asks for the mutex.
    fn locks(
        &mut self,
        at: usize,
        paged: Paged,
        tasks: &mut [Task],
        id: TaskId,
        costs: &Costs,
    ) -> Came {
        let pipe = &mut self.pipes[at];
        let stage = tasks[id].pipe.stage;
        match stage {
            Stage::Spins | Stage::GaveWay => pipe.spinners.retain(|&t| t != id),
            Stage::Queued => tasks[id].pipe.first = true,
            _ => {}
        }
        let first = tasks[id].pipe.first;
        let Some(holder) = pipe.holder else {
            pipe.holder = Some(id);
            return self.enters(at, paged, &mut tasks[id], costs);
        };
        if tasks[holder].on_cpu && stage != Stage::GaveWay {
            match first {
                true => pipe.spinners.push_front(id),
                false => pipe.spinners.push_back(id),
            }
            tasks[id].pipe.stage = Stage::Spins;
            tasks[id].left += LOOK * FULL;
            return Came::Works;
        }
        if first {
            pipe.sleepers.push_front(id);
            (pipe.woken, pipe.handoff) = (false, true);
        } else {
            pipe.sleepers.push_back(id);
        }
        (tasks[id].pipe.stage, tasks[id].pipe.first) = (Stage::Queued, false);
        Came::Sleeps(None)
    }

    /// Gives the mutex to the task that it was promised to, or to one that spins for it. Wakes the
    /// first sleeper, unless one has been woken already.
    fn unlocks(&mut self, at: usize, tasks: &mut [Task], id: TaskId) {
        let pipe = &mut self.pipes[at];
        let promised = std::mem::take(&mut pipe.handoff);
        let spinner = pipe.spinners.iter().position(|t| spins(tasks, t));
        let spinner = spinner.filter(|_| !promised);
        pipe.holder = spinner.and_then(|at| pipe.spinners.remove(at));
        if let Some(next) = pipe.holder {
            tasks[next].pipe.stage = Stage::Given;
            self.hears(tasks, next);
        }
        let pipe = &mut self.pipes[at];
        if pipe.woken {
            return;
        }
        let Some(next) = pipe.sleepers.pop_front() else {
            return;
        };
        if promised {
            pipe.holder = Some(next);
            tasks[next].pipe.stage = Stage::Given;
            // Spinners see at once that the new holder does not run (kernel: owner_on_cpu()).
            let spinning = pipe.spinners.iter().filter(|t| spins(tasks, t));
            let spinners: Vec<TaskId> = spinning.copied().collect();
            for spinner in spinners {
                self.hears(tasks, spinner);
            }
        } else {
            pipe.woken = true;
        }
        tasks[id].todo.push_back(Then::Wake(next, false));
    }

    /// A task that spins looks again now.
    fn hears(&mut self, tasks: &mut [Task], spinner: TaskId) {
        tasks[spinner].left = 0;
        self.freed.push(spinner);
    }

    /// Sleeps behind the tasks that sleep already.
    fn waits(&mut self, at: usize, way: Way, id: TaskId) -> Came {
        let channel = &mut self.channels[at];
        match way {
            Way::Write(_) => channel.writers.push_back(id),
            Way::Read => channel.readers.push_back(id),
        }
        Came::Sleeps(None)
    }

    /// The work under the mutex is done, and the mutex is given back.
    fn finish(
        &mut self,
        at: usize,
        paged: Paged,
        way: Way,
        tasks: &mut [Task],
        id: TaskId,
    ) -> Option<Came> {
        let pipe = &mut self.pipes[at];
        let (was_empty, was_full) = (pipe.pages.is_empty(), pipe.full());
        let done = match way {
            Way::Write(_) => pipe.write(paged.of_page),
            Way::Read => pipe.read(),
        };
        let next = std::mem::take(&mut tasks[id].pipe.slept) && !pipe.in_vain(way);
        self.unlocks(at, tasks, id);
        if !done {
            tasks[id].pipe = AtPipe {
                stage: Stage::Waits,
                slept: true,
                ..AtPipe::default()
            };
            // The task that the mutex is for is woken first. Then this one looks again, and sleeps.
            tasks[id].pc -= 1;
            return None;
        }
        tasks[id].pipe = AtPipe::default();
        self.pass_message(at, way, &mut tasks[id]);
        match way {
            Way::Write(_) => {
                self.wake_reader(at, was_empty, &mut tasks[id]);
                self.wake_writer(at, next, &mut tasks[id]);
            }
            Way::Read => {
                self.wake_writer(at, was_full, &mut tasks[id]);
                self.wake_reader(at, next, &mut tasks[id]);
            }
        }
        None
    }

    /// The pages count messages; the channel has them.
    fn pass_message(&mut self, at: usize, way: Way, task: &mut Task) {
        let messages = &mut self.channels[at].messages;
        match way {
            Way::Write(tag) => messages.push_back(Message::of(task, tag)),
            Way::Read => {
                let message = messages.pop_front().expect("as pages have it");
                message.read_by(task);
            }
        }
    }

    fn wake_reader(&mut self, at: usize, wanted: bool, task: &mut Task) {
        let sync = self.load.channels[at].sync;
        let reader = wanted.then(|| self.channels[at].readers.pop_front());
        task.todo
            .extend(reader.flatten().map(|t| Then::Wake(t, sync)));
    }

    fn wake_writer(&mut self, at: usize, wanted: bool, task: &mut Task) {
        let sync = self.load.channels[at].sync;
        let writer = wanted.then(|| self.channels[at].writers.pop_front());
        task.todo
            .extend(writer.flatten().map(|t| Then::Wake(t, sync)));
    }
}
