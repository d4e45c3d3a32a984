// SPDX-License-Identifier: GPL-2.0-only
//! Pipes as the kernel has them from 5.5 to 6.13 (fs/pipe.c): pages that small messages share, and a mutex around every read and write,
//! for which who comes while its holder runs waits on its CPU (kernel/locking/mutex.c). A read of a full pipe wakes a writer, also where no
//! page came free of it; that writer looks, and sleeps again.

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
/// After so long who spins looks whether the holder still runs, ns.
const LOOK: u64 = 2_000;

/// What a task is about to do with a pipe.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// About what the message is.
    Write(usize),
    Read,
}

/// How far a task has come with a read or a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    #[default]
    Outside,
    /// It waits for the mutex, on its CPU.
    Spins,
    /// It sleeps for the mutex, or has been woken for it.
    Queued,
    /// The mutex was handed to it.
    Given,
    Holds,
    /// It sleeps until there is room, or something to read, or has been woken for that.
    Waits,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct AtPipe {
    stage: Stage,
    /// It slept there: it wakes the next one, as it was woken (kernel: wake_next_reader, wake_next_writer).
    slept: bool,
    /// It is the first who slept for the mutex, and has been woken: it goes before others.
    first: bool,
}

#[derive(Default)]
pub(super) struct Pipe {
    /// Messages of each page that have not been read, the oldest page first; and how many were ever written to the newest.
    pages: VecDeque<u64>,
    written: u64,
    holder: Option<TaskId>,
    spinners: VecDeque<TaskId>,
    sleepers: VecDeque<TaskId>,
    /// The first who slept has been woken and has not had the mutex yet: no other is woken (kernel: it still is the first of wait_list).
    woken: bool,
    /// It was woken in vain: the mutex is its own next (kernel: MUTEX_FLAG_HANDOFF).
    handoff: bool,
}

impl Pipe {
    fn full(&self) -> bool {
        self.pages.len() >= PAGES
    }

    /// Who waited for it to change has to go on waiting.
    fn in_vain(&self, way: Way) -> bool {
        match way {
            Way::Write(_) => self.full(),
            Way::Read => self.pages.is_empty(),
        }
    }

    /// A message goes into the newest page, if it has room, or into a new one; false: there is neither.
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

    /// Takes a message out of the oldest page; false: there is none.
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

impl Wait {
    /// The read or write goes on from where it was. None: it is done.
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
            Stage::Holds => self.holds(at, paged, way, tasks, id),
            Stage::Given => Some(self.enters(at, paged, &mut tasks[id], costs)),
            Stage::Waits if self.pipes[at].in_vain(way) => Some(self.waits(at, way, id)),
            _ => Some(self.locks(at, paged, tasks, id, costs)),
        };
        // The step comes again until it is done.
        tasks[id].pc -= usize::from(came.is_some());
        came
    }

    /// It has the mutex, and does what is done under it.
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

    /// It asks for the mutex.
    fn locks(
        &mut self,
        at: usize,
        paged: Paged,
        tasks: &mut [Task],
        id: TaskId,
        costs: &Costs,
    ) -> Came {
        let pipe = &mut self.pipes[at];
        match tasks[id].pipe.stage {
            Stage::Spins => pipe.spinners.retain(|&t| t != id),
            Stage::Queued => tasks[id].pipe.first = true,
            _ => {}
        }
        let first = tasks[id].pipe.first;
        let Some(holder) = pipe.holder else {
            pipe.holder = Some(id);
            return self.enters(at, paged, &mut tasks[id], costs);
        };
        if tasks[holder].on_cpu {
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

    /// It gives the mutex to whom it was promised, or to who spins for it; and wakes the first who sleeps.
    fn unlocks(&mut self, at: usize, tasks: &mut [Task], id: TaskId) {
        let pipe = &mut self.pipes[at];
        let promised = std::mem::take(&mut pipe.handoff);
        let spinner = pipe.spinners.iter().position(|&t| tasks[t].on_cpu);
        let spinner = spinner.filter(|_| !promised);
        pipe.holder = spinner.and_then(|at| pipe.spinners.remove(at));
        if let Some(next) = pipe.holder {
            tasks[next].pipe.stage = Stage::Given;
            tasks[next].left = 0;
            self.freed.push(next);
        }
        if pipe.woken {
            return;
        }
        let Some(next) = pipe.sleepers.pop_front() else {
            return;
        };
        if promised {
            pipe.holder = Some(next);
            tasks[next].pipe.stage = Stage::Given;
        } else {
            pipe.woken = true;
        }
        tasks[id].todo.push_back(Then::Wake(next, false));
    }

    /// It sleeps, behind others who do.
    fn waits(&mut self, at: usize, way: Way, id: TaskId) -> Came {
        let channel = &mut self.channels[at];
        match way {
            Way::Write(_) => channel.writers.push_back(id),
            Way::Read => channel.readers.push_back(id),
        }
        Came::Sleeps(None)
    }

    /// What is done under the mutex is done, and it is given back.
    fn holds(
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
            // Whom the mutex was for is woken first; then it looks again, and sleeps.
            tasks[id].pc -= 1;
            return None;
        }
        tasks[id].pipe = AtPipe::default();
        let channel = &mut self.channels[at];
        let (reader, writer) = match way {
            Way::Write(tag) => {
                channel.messages.push_back(Message::of(&tasks[id], tag));
                (was_empty, next)
            }
            Way::Read => {
                let message = channel.messages.pop_front().expect("as pages have it");
                message.read_by(&mut tasks[id]);
                (next, was_full)
            }
        };
        let sync = self.load.channels[at].sync;
        let readers = reader.then(|| channel.readers.pop_front()).flatten();
        let writers = writer.then(|| channel.writers.pop_front()).flatten();
        // Who writes wakes readers first, who reads writers.
        let wakes = match way {
            Way::Write(_) => [readers, writers],
            Way::Read => [writers, readers],
        };
        let wakes = wakes.into_iter().flatten();
        tasks[id].todo.extend(wakes.map(|t| Then::Wake(t, sync)));
        None
    }
}
