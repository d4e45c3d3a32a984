// SPDX-License-Identifier: GPL-2.0-only
//! What the policy's C calls: queues of waiting tasks, and the actions of the kernel, which are
//! recorded here.

use super::affinity::allowed;
use super::{Act, Insert, TaskId, To};
use crate::native::sys;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;

/// A task in a queue, ordered by key and then by arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    key: u64,
    seq: u64,
    pub(super) task: TaskId,
}

/// What C reads and writes during a callback, only through raw pointers.
#[derive(Default)]
pub(super) struct Side {
    /// The first queue of each CPU, then the second of each, then those of parked tasks.
    pub(super) queues: Vec<Vec<Waiter>>,
    pub(super) local: Vec<VecDeque<TaskId>>,
    came: u64,
    pub(super) insert: Option<Insert>,
    pub(super) acts: Vec<Act>,
    pub(super) here: usize,
    /// The table of tasks, which does not move.
    ports: *mut sys::port_task,
}

/// Lets C reach the queues of a `Side`, whose pointer is in `raw.queues`.
pub(super) fn add_queues(raw: &mut sys::world) {
    raw.queue_take = Some(take);
    raw.queue_length = Some(length);
    raw.queue_next = Some(next);
    raw.queued_move = Some(queued_move);
    raw.queued_requeue = Some(queued_requeue);
}

/// Virtual times wrap; those in one queue are close together.
fn before(a: &Waiter, b: &Waiter) -> bool {
    match a.key.wrapping_sub(b.key) as i64 {
        0 => a.seq < b.seq,
        ahead => ahead < 0,
    }
}

pub(super) fn table() -> sys::kernel {
    sys::kernel {
        insert_local: Some(insert_local),
        insert_queued: Some(insert_queued),
        kick: Some(kick),
        ask_speed: Some(ask_speed),
        start_timer: Some(start_timer),
    }
}

impl Side {
    /// `ports`: the table of tasks.
    pub(super) fn new(cpus: usize, ports: *mut sys::port_task) -> Side {
        Side {
            queues: vec![Vec::new(); 2 * cpus + sys::PARK_QUEUES as usize],
            local: vec![VecDeque::new(); cpus],
            ports,
            ..Side::default()
        }
    }

    /// A task of the table, which lives as long as `Kernel`. C holds no reference to it meanwhile.
    pub(super) fn port(&self, task: TaskId) -> *mut sys::port_task {
        // SAFETY: every queued task is in the table.
        unsafe { self.ports.add(task) }
    }

    /// The index in `queues` of the queue with that number (aging.h). Those of parked tasks come
    /// after the CPUs' (parking.h).
    fn place(&self, queue: usize) -> usize {
        let max = sys::MAX_CPUS as usize;
        queue % max + queue / max * self.local.len()
    }

    fn queue_mut(&mut self, queue: usize) -> &mut Vec<Waiter> {
        let place = self.place(queue);
        &mut self.queues[place]
    }

    /// The queues of the CPU.
    pub(super) fn of(&self, cpu: usize) -> impl Iterator<Item = &Vec<Waiter>> {
        [cpu, cpu + self.local.len()]
            .into_iter()
            .map(|at| &self.queues[at])
    }

    pub(super) fn put(&mut self, task: TaskId, queue: usize, key: u64) {
        self.came += 1;
        let waiter = Waiter {
            key,
            seq: self.came,
            task,
        };
        let queue = self.queue_mut(queue);
        let at = queue.partition_point(|w| before(w, &waiter));
        queue.insert(at, waiter);
    }

    /// The index of the task's queue in `queues`, and its index in that queue.
    pub(super) fn find(&self, task: TaskId) -> Option<(usize, usize)> {
        self.queues.iter().enumerate().find_map(|(from, queue)| {
            let at = queue.iter().position(|w| w.task == task)?;
            Some((from, at))
        })
    }

    /// Makes the `at`-th task of `queues[from]` run next on `cpu`.
    fn take(&mut self, from: usize, at: usize, cpu: usize) {
        let task = self.queues[from].remove(at).task;
        // SAFETY: see `port`.
        let was = unsafe { std::mem::replace(&mut (*self.port(task)).cpu, cpu as i32) };
        self.local[cpu].push_back(task);
        self.acts.push(Act::Moved {
            task,
            from: was as usize,
            cpu,
        });
    }
}

pub(super) fn side<'a>(side: *mut c_void) -> &'a mut Side {
    // SAFETY: `Kernel::new` made the pointer, and nothing else holds its target while C runs.
    unsafe { &mut *side.cast::<Side>() }
}

pub(super) fn id(port: *mut sys::port_task) -> TaskId {
    // SAFETY: C passes on a task that it was given.
    unsafe { (*port).pid as usize - 1 }
}

unsafe extern "C" fn take(queues: *mut c_void, queue: u32) -> bool {
    let side = side(queues);
    let (from, here) = (side.place(queue as usize), side.here);
    // SAFETY: see `port`.
    let fits = |w: &Waiter| unsafe { allowed(&*side.port(w.task), here) };
    let Some(at) = side.queues[from].iter().position(fits) else {
        return false;
    };
    side.take(from, at, here);
    true
}

unsafe extern "C" fn length(queues: *mut c_void, queue: u32) -> u32 {
    side(queues).queue_mut(queue as usize).len() as u32
}

unsafe extern "C" fn next(
    queues: *mut c_void,
    queue: u32,
    at: *mut sys::cursor,
) -> *mut sys::port_task {
    let side = side(queues);
    // SAFETY: C passes a cursor of its own.
    let at = unsafe { &mut *at };
    let last = Waiter {
        key: at.key,
        seq: at.seq,
        task: 0,
    };
    let queue = &side.queues[side.place(queue as usize)];
    let behind = |w: &&Waiter| at.seq == 0 || before(&last, w);
    let Some(waiter) = queue.iter().find(behind) else {
        return ptr::null_mut();
    };
    (at.key, at.seq) = (waiter.key, waiter.seq);
    side.port(waiter.task)
}

unsafe extern "C" fn queued_move(queues: *mut c_void, task: *mut sys::port_task, cpu: i32) -> bool {
    let (side, task) = (side(queues), id(task));
    let to = usize::try_from(cpu).unwrap_or(side.here);
    let Some((from, at)) = side.find(task) else {
        return false;
    };
    side.take(from, at, to);
    true
}

unsafe extern "C" fn insert_local(
    this: *mut c_void,
    task: *mut sys::port_task,
    cpu: i32,
    slice: u64,
    flags: u64,
) {
    let to = usize::try_from(cpu).map_or(To::Local, To::LocalOn);
    side(this).insert = Some(Insert {
        task: id(task),
        to,
        slice,
        flags,
    });
}

unsafe extern "C" fn insert_queued(
    this: *mut c_void,
    task: *mut sys::port_task,
    queue: u32,
    slice: u64,
    key: u64,
    flags: u64,
) {
    side(this).insert = Some(Insert {
        task: id(task),
        to: To::Queue(queue as usize, key),
        slice,
        flags,
    });
}

unsafe extern "C" fn kick(this: *mut c_void, cpu: i32, flags: u64) {
    let cpu = cpu as usize;
    side(this).acts.push(Act::Kick { cpu, flags });
}

unsafe extern "C" fn ask_speed(this: *mut c_void, cpu: i32, speed: u32) {
    let cpu = cpu as usize;
    side(this).acts.push(Act::AskSpeed { cpu, speed });
}

unsafe extern "C" fn start_timer(this: *mut c_void, which: sys::timer_kind, cpu: i32, ns: u64) {
    let cpu = cpu as usize;
    side(this).acts.push(Act::Timer { which, cpu, ns });
}

/// Moves the task into that queue.
unsafe extern "C" fn queued_requeue(
    queues: *mut c_void,
    task: *mut sys::port_task,
    queue: u32,
    key: u64,
) -> bool {
    let (side, task) = (side(queues), id(task));
    let Some((from, at)) = side.find(task) else {
        return false;
    };
    side.queues[from].remove(at);
    // SAFETY: see `Side::port`.
    unsafe { (*side.port(task)).key = key };
    side.put(task, queue as usize, key);
    true
}
