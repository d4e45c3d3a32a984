// SPDX-License-Identifier: GPL-2.0-only
//! Queues, signals and stealing: what the policy calls on a task's way through a CPU's queue.

use super::{Task, World, sys};
use std::ffi::c_void;
use std::ptr;

/// The queues of waiting tasks from which a thief takes, by number (aging.h): the CPU's number is
/// that of its first queue.
pub trait Queues {
    /// Makes the first task of the queue that may run on the thief's CPU run there next. False:
    /// there is none.
    fn take(&mut self, queue: usize) -> bool;
    fn length(&self, queue: usize) -> usize;
    /// The task after `at` in the queue; moves `at` on to it. None, too, for queues that only have
    /// lengths.
    fn next(
        &mut self,
        _queue: usize,
        _at: &mut sys::cursor,
    ) -> Option<ptr::NonNull<sys::port_task>> {
        None
    }
    /// Moves the task from its queue to `cpu`, where it runs next; None: here. False: it may not
    /// run there, or is no longer queued.
    fn move_to(&mut self, _task: ptr::NonNull<sys::port_task>, _cpu: Option<usize>) -> bool {
        false
    }
}

unsafe extern "C" fn take(queues: *mut c_void, queue: u32) -> bool {
    // SAFETY: `with_queues` made the pointer and has not returned yet.
    let queues = unsafe { &mut *queues.cast::<&mut dyn Queues>() };
    queues.take(queue as usize)
}

unsafe extern "C" fn next(
    queues: *mut c_void,
    queue: u32,
    at: *mut sys::cursor,
) -> *mut sys::port_task {
    // SAFETY: as in `take`; C passes a cursor of its own.
    let (queues, at) = unsafe { (&mut *queues.cast::<&mut dyn Queues>(), &mut *at) };
    let task = queues.next(queue as usize, at);
    task.map_or(ptr::null_mut(), ptr::NonNull::as_ptr)
}

unsafe extern "C" fn move_to(queues: *mut c_void, task: *mut sys::port_task, cpu: i32) -> bool {
    // SAFETY: as in `take`.
    let queues = unsafe { &mut *queues.cast::<&mut dyn Queues>() };
    let task = ptr::NonNull::new(task).expect("C moves what `next` gave");
    queues.move_to(task, usize::try_from(cpu).ok())
}

unsafe extern "C" fn length(queues: *mut c_void, queue: u32) -> u32 {
    // SAFETY: as in `take`.
    let queues = unsafe { &*queues.cast::<&mut dyn Queues>() };
    queues.length(queue as usize) as u32
}

impl World {
    // ---- stealing ----

    /// True if a CPU is in the set of CPUs with waiters.
    pub fn anybody_waits(&mut self) -> bool {
        // SAFETY: only what the world owns is touched.
        self.run(|w| unsafe { sys::roost_anybody_waits(w) })
    }

    /// Gives `cpu` a waiting task of another CPU, if there is one. `asked`: the search ignores the
    /// mean idle period of `cpu`.
    pub fn steal(&mut self, cpu: usize, queues: &mut dyn Queues, now: u64, asked: bool) -> bool {
        // SAFETY: C checks the CPU.
        self.with_queues(queues, |w| unsafe {
            sys::roost_steal(w, cpu as i32, now, asked)
        })
    }

    /// The CPU from whose queue `cpu`, which runs a task, should fetch one.
    pub fn queue_to_relieve(
        &mut self,
        cpu: usize,
        queues: &mut dyn Queues,
        now: u64,
    ) -> Option<usize> {
        // SAFETY: C checks the CPU.
        self.cpu_with_queues(queues, |w| unsafe {
            sys::roost_queue_to_relieve(w, cpu as i32, now)
        })
    }

    /// The CPU that `f` answers, if any. It checks the CPUs that it gets.
    fn cpu_with_queues(
        &mut self,
        queues: &mut dyn Queues,
        f: impl FnOnce(*mut sys::world) -> i32,
    ) -> Option<usize> {
        usize::try_from(self.with_queues(queues, f)).ok()
    }

    fn with_queues<T>(
        &mut self,
        mut queues: &mut dyn Queues,
        f: impl FnOnce(*mut sys::world) -> T,
    ) -> T {
        let queues: *mut &mut dyn Queues = &mut queues;
        self.run(|w| {
            // SAFETY: the world and the queues live through the call.
            unsafe {
                (*w).queues = queues.cast();
                (*w).queue_take = Some(take);
                (*w).queue_next = Some(next);
                (*w).queued_move = Some(move_to);
                (*w).queue_length = Some(length);
            }
            f(w)
        })
    }

    /// An idle CPU that may run the task, which waits on `cpu`.
    pub fn idle_helper(&mut self, task: &Task, cpu: usize, now: u64) -> Option<usize> {
        let mut port = task.port_on(cpu);
        // SAFETY: C checks the CPU; the task lives through the call.
        let helper = self.run(|w| unsafe { sys::roost_idle_helper(w, &mut port, cpu as i32, now) });
        usize::try_from(helper).ok()
    }

    /// The CPU of an idle core to which the task, which runs on `cpu`, should move.
    pub fn spread_target(&mut self, task: &Task, cpu: usize, now: u64) -> Option<usize> {
        let mut port = task.port_on(cpu);
        // SAFETY: C checks the CPU; the task lives through the call.
        let to = self.run(|w| unsafe {
            sys::roost_spread_target(w, &mut port, &task.state, cpu as i32, now)
        });
        usize::try_from(to).ok()
    }

    /// Assigns `victim`'s queue to `cpu` for balance, to be served next. False: it may not.
    pub fn assign_queue(
        &mut self,
        cpu: usize,
        queues: &mut dyn Queues,
        victim: usize,
        now: u64,
    ) -> bool {
        // SAFETY: C checks the CPUs.
        self.with_queues(queues, |w| unsafe {
            sys::roost_assign_queue(w, cpu as i32, victim as i32, now)
        })
    }

    /// The CPU whose queue `cpu` is to serve now.
    pub fn assigned_queue(
        &mut self,
        cpu: usize,
        queues: &mut dyn Queues,
        now: u64,
    ) -> Option<usize> {
        // SAFETY: C checks the CPU.
        self.cpu_with_queues(queues, |w| unsafe {
            sys::roost_assigned_queue(w, cpu as i32, now)
        })
    }

    // ---- idle periods ----

    /// A search for work that began at `now` found nothing.
    pub fn idle_begins(&mut self, cpu: usize, now: u64) {
        // SAFETY: C checks the CPU.
        self.run(|w| unsafe { sys::roost_idle_begins(w, cpu as i32, now) });
    }

    pub fn idle_ends(&mut self, cpu: usize, now: u64, arrival: sys::arrival) {
        // SAFETY: C checks the CPU.
        self.run(|w| unsafe { sys::roost_idle_ends(w, cpu as i32, now, arrival) });
    }

    /// How long a search for work may take, ns.
    pub fn search_budget(&mut self, cpu: usize) -> u64 {
        // SAFETY: C checks the CPU.
        self.run(|w| unsafe { sys::roost_search_budget(w, cpu as i32) })
    }

    // ---- queues ----

    pub fn join(&mut self, cpu: usize, task: &mut Task, now: u64) {
        // SAFETY: C checks the CPU; the same holds below.
        self.run(|w| unsafe { sys::roost_queue_join(w, cpu as i32, &mut task.state, now) });
    }

    pub fn leave(&mut self, task: &mut Task, now: u64) {
        // SAFETY: the task lives through the call; the same holds below.
        self.run(|w| unsafe { sys::roost_queue_leave(w, &mut task.state, now) });
    }

    pub fn move_to(&mut self, cpu: usize, task: &mut Task, now: u64) {
        // SAFETY: see `join`.
        self.run(|w| unsafe { sys::roost_queue_move(w, cpu as i32, &mut task.state, now) });
    }

    pub fn reweigh(&mut self, task: &mut Task, weight: u32, now: u64) {
        assert!(weight > 0, "a task has weight");
        // SAFETY: see `leave`.
        self.run(|w| unsafe { sys::roost_queue_reweigh(w, &mut task.state, weight, now) });
    }

    /// The task, which runs on `cpu`, has used `ns` more.
    pub fn charge(&mut self, cpu: usize, task: &mut Task, ns: u64) {
        // SAFETY: see `join`.
        self.run(|w| unsafe { sys::roost_queue_charge(w, cpu as i32, &mut task.state, ns) });
    }

    /// At a wakeup or a new request, the task takes over its arm's current policy.
    pub fn policy_follow(&mut self, task: &mut Task) {
        // SAFETY: see `leave`; C checks the arm.
        self.run(|w| unsafe { sys::roost_policy_follow(w, &mut task.state) });
    }

    pub fn new_request(&mut self, task: &mut Task, features: u32) {
        // SAFETY: see `leave`.
        self.run(|w| unsafe { sys::roost_new_request(w, &mut task.state, features) });
    }

    pub fn first_request(&mut self, task: &mut Task, features: u32) {
        // SAFETY: see `leave`.
        self.run(|w| unsafe { sys::roost_first_request(w, &mut task.state, features) });
    }

    pub fn slice_left(&mut self, task: &Task) -> u64 {
        // SAFETY: see `leave`.
        self.run(|w| unsafe { sys::roost_slice_left(w, &task.state) })
    }

    /// The task, which runs on `cpu` beside others, yields.
    pub fn yields(&mut self, cpu: usize, task: &mut Task, features: u32) {
        // SAFETY: see `join`.
        self.run(|w| unsafe { sys::roost_queue_yield(w, cpu as i32, &mut task.state, features) });
    }

    /// How long a running task is protected from the task when it wakes, ns.
    pub fn protected_ns(&mut self, cpu: usize, task: &Task, features: u32) -> u64 {
        // SAFETY: see `leave`.
        self.run(|w| unsafe { sys::roost_protected_ns(w, cpu as i32, &task.state, features) })
    }

    /// Whether the task, which has just joined `cpu`'s queue, may preempt the one that runs there.
    pub fn preempts(&mut self, cpu: usize, task: &Task, features: u32, now: u64) -> sys::preempt {
        // SAFETY: see `join`.
        self.run(|w| unsafe { sys::roost_preempts(w, cpu as i32, &task.state, features, now) })
    }

    pub fn burst_end(&mut self, task: &mut Task) {
        // SAFETY: see `leave`.
        self.run(|w| unsafe { sys::roost_burst_end(w, &mut task.state) });
    }

    // ---- signals ----

    pub fn cpu_fold(&mut self, cpu: usize, now: u64) {
        // SAFETY: see `join`.
        self.run(|w| unsafe { sys::roost_cpu_fold(w, cpu as i32, now) });
    }

    pub fn cpu_load(&mut self, cpu: usize, now: u64) -> u64 {
        // SAFETY: see `join`.
        self.run(|w| unsafe { sys::roost_cpu_load(w, cpu as i32, now) })
    }

    pub fn cpu_util(&mut self, cpu: usize, now: u64) -> u64 {
        // SAFETY: see `join`.
        self.run(|w| unsafe { sys::roost_cpu_util(w, cpu as i32, now) })
    }

    pub fn llc_sum(&mut self, llc: usize, now: u64) {
        // SAFETY: C checks the LLC.
        self.run(|w| unsafe { sys::roost_llc_sum(w, llc as u32, now) });
    }

    pub fn task_signals_init(&mut self, task: &mut Task, now: u64) {
        // SAFETY: see `leave`.
        self.run(|w| unsafe { sys::roost_task_signals_init(w, &mut task.state, now) });
    }

    pub fn task_fold(&mut self, task: &mut Task, now: u64) {
        assert!(now != task.state.folded_at, "a fold takes time");
        // SAFETY: see `leave`.
        self.run(|w| unsafe { sys::roost_task_fold(w, &mut task.state, now) });
    }

    pub fn task_load(&mut self, task: &mut Task, now: u64) -> u64 {
        // SAFETY: see `leave`.
        self.run(|w| unsafe { sys::roost_task_load(w, &mut task.state, now) })
    }

    pub fn task_util_est(&mut self, task: &Task) -> u64 {
        // SAFETY: see `leave`.
        self.run(|w| unsafe { sys::roost_task_util_est(w, &task.state) })
    }

    /// What the CPU's tasks use or will use, 0..its capacity.
    pub fn cpu_demand(&mut self, cpu: usize) -> u32 {
        self.check(cpu);
        // SAFETY: the CPU exists.
        self.run(|w| unsafe { sys::roost_cpu_demand(w, cpu as i32) })
    }

    /// The task, whose signals were folded, goes to sleep on `cpu`.
    pub fn util_est_sleep(&mut self, cpu: usize, task: &mut Task) {
        // SAFETY: see `join`.
        self.run(|w| unsafe { sys::roost_util_est_sleep(w, &mut task.state, cpu as i32) });
    }

    /// The task becomes runnable on `cpu` and its load follows it there.
    pub fn load_follows(&mut self, cpu: usize, task: &mut Task, now: u64) {
        // SAFETY: see `join`.
        self.run(|w| unsafe { sys::roost_load_follows(w, &mut task.state, cpu as i32, now) });
    }
}
