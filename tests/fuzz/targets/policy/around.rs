// SPDX-License-Identifier: GPL-2.0-only
//! What is outside the policy: values that userspace writes, the kernel's view of a CPU, and time.

use super::play::Play;
use crate::targets::bytes::Bytes;
use scx_roost::bpf::intf::{self, MAX_ARMS};
use scx_roost::native::sys;
use scx_roost::policy::fair;
use scx_roost::policy::features::{FeatureSet, orphans};

/// A set of features that userspace would accept: no sub-switch without its parent.
pub fn features(bytes: &mut Bytes) -> u32 {
    let number = bytes.number(0);
    let any = number ^ number >> 32;
    let mut set = FeatureSet(any as u32 & ((1 << sys::ROOST_NR_FEATURES) - 1));
    while let Some(orphan) = orphans(set).next() {
        set = set.without(orphan.bit);
    }
    set.0
}

pub fn arm_number(any: u32) -> u32 {
    any % MAX_ARMS
}

/// The copy that a task takes of its arm.
pub fn task_policy(arm: &intf::task_policy) -> sys::task_policy {
    sys::task_policy {
        features: arm.features,
        arm: arm.arm,
        slice_ns: arm.slice_ns,
        min_slice_ns: arm.min_slice_ns,
        claim_ttl_ns: arm.claim_ttl_ns,
        fits_scale: arm.fits_scale,
        fits_rt: arm.fits_rt,
        delay_ns: arm.delay_ns,
        rules: arm.rules,
    }
}

/// Changes an arm, a CPU's capacity, its frequency or threshold, or what a scan is worth.
pub fn userspace(play: &mut Play, bytes: &mut Bytes) {
    let cpu = play.cpu(bytes);
    let whole = play.kernel.facts().cpus[cpu].capacity;
    let llc = usize::from(play.kernel.facts().cpus[cpu].llc);
    let world = play.kernel.world_mut();
    match bytes.below(5) {
        0 if world.tunables().frozen == 0 => publish(world.policy_mut(), bytes),
        1 => world.policy_mut().capacity[cpu] = 1 + bytes.below(usize::from(whole)) as u16,
        2 => world.set_freq(cpu, bytes.number(0) as u32, bytes.number(0) as u32),
        3 => {
            let arm = usize::from(bytes.byte()) % MAX_ARMS as usize;
            world.policy_mut().threshold[arm][cpu] = bytes.number(0) as u32;
            world.policy_mut().freq_stale_ms = bytes.number(0) as u32;
        }
        _ => world.set_scan(llc, bytes.number(0) as u32, bytes.number(0) as i32),
    }
}

/// The times have the ranges of the tunables (features.rs).
fn publish(image: &mut intf::policy_image, bytes: &mut Bytes) {
    image.generation = image.generation.wrapping_add(1);
    let slot = bytes.below(MAX_ARMS as usize);
    let within = |bytes: &mut Bytes, least: u64, most: u64| {
        let number = bytes.number(most);
        least + number % (most - least + 1)
    };
    let arm = &mut image.arm[slot];
    arm.task = intf::task_policy {
        features: features(bytes),
        arm: slot as u32,
        slice_ns: within(bytes, 100_000, 100_000_000),
        min_slice_ns: within(bytes, 0, 100_000_000),
        claim_ttl_ns: within(bytes, 50_000, 1_000_000_000),
        fits_scale: within(bytes, 1024, 2048) as u32,
        fits_rt: u32::from(bytes.flag()),
        delay_ns: within(bytes, 1_000, 10_000_000) as u32,
        rules: fair::set(bytes.below(1 + fair::LAST as usize) as u32).bits,
    };
    arm.rescue_ns = within(bytes, 1_000_000, 1_000_000_000);
    arm.migration_cost_ns = within(bytes, 0, 100_000_000);
}

/// The kernel's view of a CPU need not agree with the policy's state.
pub fn view(play: &mut Play, bytes: &mut Bytes) {
    let cpu = play.cpu(bytes);
    let (view, run) = play.kernel.view(cpu);
    let bits = bytes.byte();
    view.idle = u32::from(bits & 1 != 0);
    run.curr_idle = u32::from(bits & 2 != 0);
    run.taken = u32::from(bits & 4 != 0);
    match bits >> 4 & 3 {
        0 => view.nr_running = bytes.number(0) as u32,
        1 => view.rt_util = bytes.number(0) as u32,
        2 => run.speed = bytes.number(0) as u32,
        _ => run.local = bytes.number(0) as u32,
    }
}

/// Time goes on by a little or by much, or to anywhere: the clocks of CPUs differ, and a machine
/// may suspend.
pub fn time(play: &mut Play, bytes: &mut Bytes) {
    let now = play.now();
    play.set_now(match bytes.below(3) {
        0 => now.wrapping_add(bytes.number(1_000_000) % (1 << 32)),
        1 => now.wrapping_add(u64::from(bytes.byte()) << 20),
        _ => bytes.number(now),
    });
}
