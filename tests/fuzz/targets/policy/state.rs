// SPDX-License-Identifier: GPL-2.0-only
//! Overwrites the policy's memory. A field may get every value of its type, except:
//! - An index is in range. A task that waits for its move has a CPU to move to.
//! - A task's weight is in its range. A CPU's weight is at least the sum of what its tasks have
//!   added.
//! - A lag is within the limit of `clamped_lag`.
//! - What a task copies from its arm is what some arm has.

use super::around::{arm_number, task_policy};
use super::play::Play;
use super::{CGROUPS, TASKS};
use crate::targets::bytes::Bytes;
use scx_roost::native::sys;

const MAX_WEIGHT: u32 = 1 << 22;
/// The highest total weight of a queue.
const QUEUE_WEIGHT: u64 = 1 << 40;
/// The longest slice that the kernel accepts (sched_setattr()), ns.
const SLICE: u64 = 100_000_000;

/// Overwrites one field.
pub fn poke(play: &mut Play, bytes: &mut Bytes) {
    let now = play.now();
    match bytes.below(4) {
        0 => {
            let cpu = play.cpu(bytes);
            overwrite(play.kernel.world_mut().cpu_mut(cpu), bytes, now);
        }
        1 => {
            let llcs = play.kernel.facts().llcs.len();
            let llc = bytes.below(llcs);
            overwrite(play.kernel.world_mut().llc_mut(llc), bytes, now);
        }
        2 => {
            let group = bytes.below(CGROUPS);
            overwrite(play.kernel.world_mut().cgroup_mut(group), bytes, now);
        }
        _ => {
            let task = bytes.below(TASKS);
            overwrite(play.kernel.state_mut(task), bytes, now);
        }
    }
    bound(play);
}

/// Overwrites many fields with random values from a seed.
pub fn scramble(play: &mut Play, bytes: &mut Bytes) {
    let seed = u64::from(bytes.byte()) << 8 | u64::from(bytes.byte());
    let mut rng = scx_roost::util::rng::Rng::new(seed);
    let chance: Vec<u8> = (0..1 << 14).map(|_| rng.below(256) as u8).collect();
    let mut chance = Bytes::new(&chance);
    let now = play.now();
    let (cpu, task) = (play.cpu(bytes), bytes.below(TASKS));
    let llc = usize::from(play.kernel.facts().cpus[cpu].llc);
    let world = play.kernel.world_mut();
    for _ in 0..64 {
        overwrite(world.cpu_mut(cpu), &mut chance, now);
        overwrite(world.llc_mut(llc), &mut chance, now);
        overwrite(world.cgroup_mut(1 + task % (CGROUPS - 1)), &mut chance, now);
    }
    for _ in 0..64 {
        overwrite(play.kernel.state_mut(task), &mut chance, now);
    }
    bound(play);
}

/// Types that contain only numbers.
trait Numbers {}
impl Numbers for sys::cpu_state {}
impl Numbers for sys::llc_state {}
impl Numbers for sys::cgroup_state {}
impl Numbers for sys::task_state {}

/// Overwrites four or eight bytes.
fn overwrite<T: Numbers>(of: &mut T, bytes: &mut Bytes, now: u64) {
    let words = size_of::<T>() / size_of::<u32>();
    let at = bytes.below(words);
    let value = bytes.number(now);
    let wide = at.is_multiple_of(2) && at + 1 < words && bytes.flag();
    let word = (&raw mut *of).cast::<u32>();
    // SAFETY: the words are inside of `of`, and its numbers and padding may have every value.
    unsafe {
        word.add(at).write(value as u32);
        if wide {
            word.add(at + 1).write((value >> 32) as u32);
        }
    }
}

fn bound(play: &mut Play) {
    let facts = play.kernel.facts().clone();
    let (cpus, llcs) = (facts.cpus.len() as u32, facts.llcs.len() as u32);
    let image = *play.kernel.world().policy();
    let world = play.kernel.world_mut();
    for cpu in 0..facts.cpus.len() {
        let core_mask = play.core_masks[cpu];
        bound_cpu(world.cpu_mut(cpu), core_mask, cpus, llcs);
    }
    for (at, llc) in facts.llcs.iter().enumerate() {
        bound_llc(world.llc_mut(at), llc.nr_cpus);
    }
    (0..CGROUPS).for_each(|at| bound_cgroup(world.cgroup_mut(at), at));
    for task in 0..TASKS {
        let state = play.kernel.state_mut(task);
        bound_task(state, cpus);
        let arm = image.arm[state.pol.arm as usize].task;
        state.pol = task_policy(&arm);
    }
    bound_sums(play);
}

/// A CPU's weight is at least the sum of what its tasks have added, also those that sleep.
fn bound_sums(play: &mut Play) {
    let mut least = vec![0; play.core_masks.len()];
    for task in 0..TASKS {
        let state = play.kernel.state(task);
        if state.on_rq > 0 && state.delayed_in == 0 {
            least[state.on_rq as usize - 1] += u64::from(state.on_rq_weight);
        }
    }
    for (cpu, least) in least.into_iter().enumerate() {
        let state = play.kernel.world_mut().cpu_mut(cpu);
        let delayed: u64 = state.delayed.iter().map(|d| d.weight).sum();
        state.weight = state.weight.max(least + delayed);
    }
}

fn bound_cpu(cpu: &mut sys::cpu_state, core_mask: u64, cpus: u32, llcs: u32) {
    cpu.core_mask = core_mask;
    cpu.weight %= QUEUE_WEIGHT;
    cpu.curr_weight = weight(cpu.curr_weight);
    cpu.help_for %= cpus + 1;
    cpu.assigned_cpu %= cpus + 1;
    for delayed in &mut cpu.delayed {
        delayed.weight = u64::from(weight(delayed.weight as u32));
    }
    cpu.rescue_llc %= llcs;
    cpu.balance_llc %= llcs;
}

fn bound_llc(llc: &mut sys::llc_state, nr_cpus: u16) {
    for set in &mut llc.set {
        for (at, word) in set.iter_mut().enumerate() {
            let left = usize::from(nr_cpus).saturating_sub(at * 64);
            *word &= if left < 64 { (1 << left) - 1 } else { u64::MAX };
        }
    }
}

fn bound_cgroup(group: &mut sys::cgroup_state, at: usize) {
    group.parent = if at == 0 {
        0
    } else {
        group.parent % CGROUPS as u32
    };
    group.cpu_weight = weight(group.cpu_weight);
    group.weight = weight(group.weight);
}

fn bound_task(task: &mut sys::task_state, cpus: u32) {
    task.arm = arm_number(task.arm);
    task.pol.arm = arm_number(task.pol.arm);
    for number in [
        &mut task.on_rq,
        &mut task.load_cpu,
        &mut task.idle_cpu,
        &mut task.recent_cpu,
        &mut task.delay_cpu,
    ] {
        *number = (*number as u32 % (cpus + 1)) as i32;
    }
    task.delayed_in %= sys::NR_DELAYED as u32 + 1;
    if task.on_rq == 0 {
        task.delayed_in = 0;
    }
    if task.delay_at > 0 {
        task.delay_cpu = task.delay_cpu.max(1);
    }
    for number in [
        &mut task.weight,
        &mut task.nice_weight,
        &mut task.on_rq_weight,
        &mut task.counted_weight,
    ] {
        *number = weight(*number);
    }
    task.custom_slice %= SLICE + 1;
    task.lag %= 2 * SLICE as i64 * i64::from(sys::NICE0_WEIGHT) / i64::from(task.weight);
    task.cgroup %= CGROUPS as u32;
    task.counted_in %= CGROUPS as u32;
    task.budget_of %= CGROUPS as u32;
    task.parked_in %= CGROUPS as u64;
}

fn weight(any: u32) -> u32 {
    1 + any % MAX_WEIGHT
}
