// SPDX-License-Identifier: GPL-2.0-only
//! The rules of kernel/sched/fair.c of Linux 7.2, in numbers.

use super::*;
use crate::fair::queue::NICE0;

const MS: i64 = 1_000_000;
const SLICE: i64 = 3 * MS;
const TICK: u64 = 4_000_000;

/// Tasks of nice 0 at these virtual times, ms, a slice before their deadlines. The first runs.
fn queue(at: &[i64]) -> (Queue, Vec<Entity>) {
    let entity = |&at: &i64| Entity {
        vruntime: at * MS,
        deadline: at * MS + SLICE,
        new: false,
        ..Entity::new(SLICE as u64)
    };
    let q = Queue {
        current: Some(0),
        waiting: (1..at.len()).collect(),
        ..Queue::default()
    };
    (q, at.iter().map(entity).collect())
}

/// A task that slept, and is owed `lag` ms.
fn owed(lag: i64) -> Entity {
    Entity {
        lag: lag * MS,
        new: false,
        ..Entity::new(SLICE as u64)
    }
}

/// place_entity(): the lag is inflated by what the task itself moves the mean, so that the task
/// still has it once it is queued.
#[test]
fn what_is_owed_is_owed_after_placement_too() {
    for lag in [1, 0, -2] {
        let (mut q, mut es) = queue(&[10, 10]);
        es.push(owed(lag));
        place(&q, &mut es, 2);
        // Times (2 x 1024 + 1024) / (2 x 1024).
        assert_eq!(es[2].vruntime, 10 * MS - lag * MS * 3 / 2);
        assert_eq!(es[2].deadline, es[2].vruntime + SLICE);
        q.waiting.push(2);
        assert_eq!(q.mean(&es) - es[2].vruntime, lag * MS);
    }
}

/// A heavier task moves the mean more: (1024 + 3 x 1024) / 1024. Its slice is a third as long in
/// virtual time.
#[test]
fn a_heavy_task_is_placed_by_its_weight() {
    let (q, mut es) = queue(&[10]);
    let heavy = Entity {
        weight: 3 * NICE0,
        ..owed(1)
    };
    es.push(heavy);
    place(&q, &mut es, 1);
    assert_eq!(es[1].vruntime, 10 * MS - 4 * MS);
    assert_eq!(es[1].deadline, es[1].vruntime + SLICE / 3);
}

#[test]
fn an_empty_queue_owes_nothing() {
    let mut es = vec![owed(5)];
    let q = Queue {
        base: 7 * MS,
        ..Queue::default()
    };
    place(&q, &mut es, 0);
    assert_eq!((es[0].vruntime, es[0].deadline), (7 * MS, 7 * MS + SLICE));
}

/// PLACE_DEADLINE_INITIAL, once; PLACE_REL_DEADLINE.
#[test]
fn a_new_task_begins_with_half_a_slice_and_a_moved_one_keeps_its_deadline() {
    let (q, mut es) = queue(&[10, 10]);
    es.push(Entity::new(SLICE as u64));
    place(&q, &mut es, 2);
    assert_eq!(es[2].vruntime, 10 * MS);
    assert_eq!(es[2].deadline, 10 * MS + SLICE / 2);
    place(&q, &mut es, 2);
    assert_eq!(es[2].deadline, 10 * MS + SLICE);
    (es[2].deadline, es[2].relative) = (MS, true);
    place(&q, &mut es, 2);
    assert_eq!((es[2].deadline, es[2].relative), (11 * MS, false));
}

/// update_entity_lag(): the longest slice of the queue and a tick, in the task's virtual time.
#[test]
fn lag_is_no_more_than_the_longest_slice_and_a_tick() {
    for (weight, most) in [(NICE0, 12), (NICE0 / 2, 24)] {
        for sign in [1, -1] {
            let (mut q, mut es) = queue(&[0, 0, sign * 1000]);
            (es[0].slice, es[1].weight) = (8 * MS, weight);
            es[1].deadline = 0;
            leave(&mut q, &mut es, 1, TICK);
            assert_eq!(es[1].lag, sign * most * MS);
        }
    }
    let (mut q, mut es) = queue(&[4, 2]);
    leave(&mut q, &mut es, 1, TICK);
    assert_eq!((es[1].lag, q.base), (MS, 3 * MS));
}

/// A delayed task gains nothing by it, and owes no more than when it fell asleep (DELAY_ZERO).
#[test]
fn a_delayed_task_owes_no_more_and_is_owed_nothing() {
    for (slept_at, now_at, kept) in [(-2, -1, -1), (-2, -3, -2), (-2, 1, 0)] {
        let (q, mut es) = queue(&[0, -now_at * 2]);
        (es[1].delayed, es[1].lag) = (true, slept_at * MS);
        let moves = keep_lag(&q, &mut es, 1, TICK);
        assert_eq!((es[1].lag, moves), (kept * MS, kept != now_at));
    }
}

/// entity_eligible(): at the mean or before it.
#[test]
fn a_task_that_used_its_share_is_eligible() {
    let (q, es) = queue(&[0, 10, 5]);
    let able: Vec<bool> = (0..3).map(|t| eligible(&q, &es, t)).collect();
    assert_eq!(able, [true, false, true]);
    let (q, mut es) = queue(&[0, 10, 5]);
    es[0].weight = 2 * NICE0;
    assert!(!eligible(&q, &es, 2));
}

#[test]
fn the_earliest_deadline_of_eligible_tasks_runs() {
    let (mut q, mut es) = queue(&[0, 4, 9]);
    q.current = None;
    q.waiting = vec![0, 1, 2];
    for (task, deadline) in [30, 20, 10].into_iter().enumerate() {
        es[task].deadline = deadline * MS;
    }
    assert_eq!(pick(&q, &es, true), Some(1));
    // All are at the mean.
    es.iter_mut().for_each(|e| e.vruntime = 0);
    assert_eq!(pick(&q, &es, true), Some(2));
}

/// RUN_TO_PARITY: to the end of the slice, if it stays eligible.
#[test]
fn a_running_task_continues_while_it_is_protected() {
    let (q, mut es) = queue(&[2, 2]);
    es[1].deadline = 4 * MS;
    protect(&q, &mut es, 0);
    assert_eq!(es[0].protected, 5 * MS);
    assert_eq!(pick(&q, &es, true), Some(0));
    assert_eq!(pick(&q, &es, false), Some(1));
    es[0].vruntime += 1;
    // It has used more than its share.
    assert_eq!(pick(&q, &es, true), Some(1));
}

/// set_protect_slice(): beside a shorter slice, until it is not eligible: a ns beyond the mean of
/// the others.
#[test]
fn beside_shorter_slices_parity_ends_where_others_are_owed_more() {
    let (q, mut es) = queue(&[0, 1, 3]);
    es[1].slice = MS;
    protect(&q, &mut es, 0);
    assert_eq!(es[0].protected, 2 * MS + 1);
    // Not beyond its own deadline.
    let (q, mut es) = queue(&[0, 9]);
    es[1].slice = MS;
    protect(&q, &mut es, 0);
    assert_eq!(es[0].protected, SLICE);
}

fn comes(q: &mut Queue, es: &mut [Entity], task: TaskId) -> bool {
    preempts(q, es, 0, task, false)
}

/// wakeup_preempt_fair(): PREEMPT_SHORT.
#[test]
fn a_shorter_slice_that_is_eligible_goes_first() {
    let woken = |slice: i64, at: i64| {
        let (mut q, mut es) = queue(&[2, 2]);
        protect(&q, &mut es, 0);
        es.push(Entity {
            vruntime: at * MS,
            deadline: at * MS + slice,
            ..Entity::new(slice as u64)
        });
        q.waiting.push(2);
        let first = comes(&mut q, &mut es, 2);
        (first, q.next)
    };
    // Its slice is as long as the others', so it waits for parity.
    assert_eq!(woken(SLICE, 2), (false, None));
    assert_eq!(woken(MS, 2), (true, Some(2)));
    assert_eq!(woken(MS, 3), (false, None));
}

/// set_short_buddy(): a longer slice does not replace the next buddy.
#[test]
fn the_shortest_that_came_is_the_next() {
    let (mut q, mut es) = queue(&[2, 1, 1]);
    (es[1].slice, es[2].slice) = (MS, 2 * MS);
    assert!(comes(&mut q, &mut es, 1));
    comes(&mut q, &mut es, 2);
    assert_eq!(q.next, Some(1));
    assert_eq!(pick(&q, &es, true), Some(1));
}

#[test]
fn a_fork_preempts_no_task_by_its_place() {
    for fork in [false, true] {
        let (mut q, mut es) = queue(&[5, 1]);
        assert_eq!(preempts(&mut q, &mut es, 0, 1, fork), !fork);
    }
}

/// cancel_protect_slice(), update_protect_slice().
#[test]
fn a_new_waiter_shortens_the_protection() {
    let (q, mut es) = queue(&[1, 5]);
    es[1].slice = MS;
    es[0].protected = 9 * MS;
    protects_less(&q, &mut es, 0, false);
    // From its virtual time, which is before the mean.
    assert_eq!(es[0].protected, 2 * MS);
    es[0].vruntime = 5 * MS;
    protects_less(&q, &mut es, 0, false);
    assert_eq!(es[0].protected, 2 * MS);
    let (q, mut es) = queue(&[1, 5]);
    es[0].protected = 9 * MS;
    protects_less(&q, &mut es, 0, true);
    assert_eq!(es[0].protected, MS);
}

/// update_deadline().
#[test]
fn a_slice_that_is_over_is_followed_by_the_next() {
    let (_, mut es) = queue(&[0]);
    es[0].vruntime = SLICE - 1;
    assert!(!charged(&mut es[0]));
    es[0].vruntime = SLICE + 5;
    assert!(charged(&mut es[0]));
    assert_eq!(es[0].deadline, 2 * SLICE + 5);
}

/// yield_task_fair().
#[test]
fn a_yield_gives_up_the_rest_of_the_slice() {
    let after = |at: &[i64]| {
        let (q, mut es) = queue(at);
        yields(&q, &mut es, 0);
        (es[0].vruntime / MS, es[0].deadline / MS)
    };
    assert_eq!(after(&[1, 5]), (4, 7));
    // The task owes time; the task is alone.
    assert_eq!(after(&[5, 1]), (5, 8));
    assert_eq!(after(&[1]), (1, 4));
}
