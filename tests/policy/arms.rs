// SPDX-License-Identifier: GPL-2.0-only
//! A new policy in the running kernel: a reader sees one image or the other, and a task keeps the
//! policy that it took.

use crate::jit::Jit;
use crate::topology::{Tables, kernel_arm};
use scx_roost::bpf::intf::{arm, policy_image, task_policy};
use scx_roost::native::Task;
use scx_roost::placement::topology::Topology;
use scx_roost::publish::{MapUpdate, Publisher, image};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

fn of(features: u32) -> policy_image {
    let arms = [arm {
        task: task_policy {
            features,
            ..kernel_arm().task
        },
        migration_cost_ns: features.into(),
        ..kernel_arm()
    }];
    image(&arms, &[])
}

/// The runner of BPF programs, which one thread at a time uses.
struct Handed<T>(T);

// SAFETY: one thread at a time uses it, as said above.
unsafe impl<T> Send for Handed<T> {}

#[test]
#[ignore = "needs a kernel that lets it load BPF: tests/guest/policy-bpf.sh runs it"]
fn no_reader_in_the_kernel_sees_parts_of_two() {
    const FLIPS: u32 = 200;
    let mut world = Topology::regular(1, 2, 1, 1, false).world();
    *world.policy_mut() = of(0);
    let mut jit = Handed(Jit::load_reader(&world).expect("this kernel loads BPF"));
    let grace = MapUpdate::new().expect("this kernel makes maps");
    // SAFETY: the store lives until the scope below has ended.
    let mut publisher = unsafe { Publisher::new(jit.0.store(), grace) };
    let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let (reads, torn) = thread::scope(|s| {
        let reader = s.spawn(|| {
            let jit = &mut jit;
            let mut seen = (0, 0);
            while !done.load(Ordering::Relaxed) {
                seen = jit.0.read_arms(100).expect("BPF_PROG_RUN works");
                begun.store(true, Ordering::Relaxed);
            }
            seen
        });
        while !begun.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        let begin = Instant::now();
        for features in 1..=FLIPS {
            publisher.publish(&of(features)).expect("the kernel waits");
        }
        let us = begin.elapsed().as_micros() / u128::from(FLIPS);
        println!("{FLIPS} flips, {us} us each");
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(reads > 0, "no read happened");
    assert_eq!(torn, 0, "of {reads} reads");
    assert_eq!(publisher.live().generation, FLIPS);
}

/// A task keeps the policy that it took until it takes again. Unused arm numbers mean arm 0.
#[test]
fn a_task_takes_the_policy_of_its_arm() {
    let mut world = Topology::regular(1, 1, 1, 1, false).world();
    let arms = [1, 2].map(|n| arm {
        task: task_policy {
            features: n,
            arm: 0,
            slice_ns: u64::from(n) * 1_000_000,
            min_slice_ns: u64::from(n) * 1000,
            claim_ttl_ns: 0,
            fits_scale: 1024 + n,
            fits_rt: n,
            delay_ns: n,
            rules: n,
        },
        ..kernel_arm()
    });
    *world.policy_mut() = image(&arms, &[1024]);
    let mut task = Task::new(1, &world);
    for (arm, is, expected) in [(0, 0, 1), (1, 1, 2), (2, 0, 1), (15, 0, 1)] {
        task.state.arm = arm;
        world.policy_follow(&mut task);
        let pol = task.state.pol;
        assert_eq!((pol.features, pol.arm), (expected, is));
        assert_eq!(pol.slice_ns, u64::from(expected) * 1_000_000);
        assert_eq!(pol.min_slice_ns, u64::from(expected) * 1000);
    }
    task.state.custom_slice = 0;
    *world.policy_mut() = policy_image {
        generation: 1,
        ..image(&arms[1..], &[1024])
    };
    world.new_request(&mut task, 0);
    assert_eq!(
        task.state.deadline, 1_000_000,
        "it has not taken the new one"
    );
    world.policy_follow(&mut task);
    world.new_request(&mut task, 0);
    assert_eq!(task.state.deadline, 2_000_000);
}
