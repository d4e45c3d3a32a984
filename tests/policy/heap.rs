// SPDX-License-Identifier: GPL-2.0-only
//! With --backend rust the thread that schedules must allocate nothing: another thread could hold
//! the allocator's lock, and would wait for this one to be scheduled.

use scx_roost::placement::Features;
use scx_roost::placement::topology::Topology;
use scx_roost::rustland::{Books, Counts, Queued, Stamps};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

const SLICE_NS: u64 = 1_000_000;
const TICK_NS: u64 = 4_000_000;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts for each thread.
struct Counting;

// SAFETY: it does what the system's allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn what_allocates_is_counted() {
    assert_eq!(allocations(|| drop(Box::new(1))), 1);
}

/// All features, new tasks and old ones, few CPUs idle and many, on machines of several shapes.
#[test]
fn a_placement_allocates_nothing() {
    let all = Features {
        // Its test of a margin needs one of the patch's two.
        util_fits: false,
        ..Features::each(|| true)
    };
    for features in [Features::NONE, all] {
        for (llcs, cores, threads) in [(1, 4, 1), (2, 4, 2), (8, 2, 2)] {
            let machine = Topology::regular(llcs, cores, threads, llcs.min(4), false);
            let nr_cpus = machine.nr_cpu_ids();
            let (mut books, counts) = (
                Books::new(machine, features, SLICE_NS, TICK_NS),
                Counts::new(nr_cpus),
            );
            let some: Vec<bool> = (0..nr_cpus).map(|cpu| cpu % 3 != 1).collect();
            let all = vec![true; nr_cpus];
            let made = allocations(|| place_many(&mut books, &counts, &some, &all));
            assert_eq!(made, 0, "{llcs} x {cores} x {threads}");
        }
    }
}

fn place_many(books: &mut Books, counts: &Counts, some: &[bool], all: &[bool]) {
    for i in 0..2000u64 {
        let task = Queued {
            pid: 1 + (i % 37) as i32,
            prev: (i * 7) as usize % some.len(),
            stamps: Stamps {
                start: if i % 11 == 0 { 0 } else { i * 1000 },
                stop: i * 1000 + 600,
            },
            ran: 0,
            vtime: 0,
            weight: 100,
            woken: i % 11 != 0,
            forked: i % 11 == 0,
        };
        books.back(&task, Some(i * 1000 + 900));
        // Every fifth time all tasks have left.
        books.settle(Some(0), Some(i * 1000 + 900), |_| {
            (i % 5 != 0).then(Stamps::default)
        });
        let allowed = if i % 2 == 0 { some } else { all };
        let (decision, now) = books.decide(&task, allowed, Some(i * 1000 + 900));
        counts.placed(&now, &decision, Some(decision.cpu), task.prev);
        books.sent(decision.cpu, &task, Some(i * 1000 + 900));
    }
}
