// SPDX-License-Identifier: GPL-2.0-only
//! The native policy, from arbitrary memory. An input is a machine and a sequence of steps: memory
//! is overwritten (`state`), the kernel's view and userspace's values change (`around`), callbacks
//! run (`play`). Facts, features and tunables are valid, because userspace writes them. Whatever a
//! callback asks for must be something that the kernel accepts.

mod around;
mod play;
mod state;

use super::bytes::Bytes;
use super::topology::{Tables, kernel_arm, kernel_tunables};
use play::Play;
use scx_roost::bpf::intf::tunables;
use scx_roost::native::sys::CAPACITY_SCALE;
use scx_roost::native::{Kernel, World};
use scx_roost::placement::topology::{Cpu, Topology};

const TASKS: usize = 6;
const CGROUPS: usize = 5;
/// Steps of one input.
const STEPS: usize = 400;
/// The time at which an input begins, ns.
const NOW: u64 = 1 << 40;

pub fn policy(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let mut play = Play::new(kernel(&mut bytes), NOW);
    for _ in 0..STEPS {
        if bytes.is_empty() {
            break;
        }
        step(&mut play, &mut bytes);
    }
}

fn step(play: &mut Play, bytes: &mut Bytes) {
    match bytes.below(16) {
        0..=3 => state::poke(play, bytes),
        4 => state::scramble(play, bytes),
        5 => around::userspace(play, bytes),
        6 => around::view(play, bytes),
        7 => around::time(play, bytes),
        _ => play.callback(bytes),
    }
    play.holds();
}

fn kernel(bytes: &mut Bytes) -> Kernel {
    let topology = machine(bytes.below(10));
    let bits = bytes.byte();
    let frozen = bits & 4 != 0;
    let tunables = tunables {
        cpuperf: u32::from(bits & 1 != 0),
        timers: u32::from(bits & 2 == 0),
        frozen: frozen.into(),
        features: if frozen { around::features(bytes) } else { 0 },
        ..kernel_tunables()
    };
    let mut arm = kernel_arm();
    arm.task.features = match frozen {
        true => tunables.features,
        false => around::features(bytes),
    };
    let world = World::new(topology.facts(), arm, tunables, CGROUPS);
    let mut kernel = Kernel::new(world, TASKS);
    if bits & 8 != 0 {
        kernel.without_immed();
    }
    kernel
}

/// From one CPU up to machines with more LLCs, or more CPUs in an LLC, than a word has bits.
fn machine(which: usize) -> Topology {
    match which {
        0 => Topology::regular(1, 1, 1, 1, false),
        1 => Topology::regular(1, 2, 1, 1, false),
        2 => Topology::regular(1, 4, 2, 1, false),
        3 => Topology::regular(2, 2, 2, 2, false),
        4 => Topology::regular(4, 1, 2, 2, true),
        5 => Topology::regular(3, 2, 1, 1, false),
        6 => Topology::regular(66, 1, 1, 33, false),
        7 => Topology::regular(1, 70, 1, 1, false),
        8 => Topology::regular(2, 33, 2, 1, true),
        _ => hybrid(),
    }
}

/// Two big cores of two threads, four little cores of one thread. A thread and a core are offline.
fn hybrid() -> Topology {
    let cpu = |number: usize| Cpu {
        core: if number < 4 { number / 2 } else { number - 2 },
        llc: usize::from(number >= 6),
        node: 0,
        capacity: if number < 4 { CAPACITY_SCALE } else { 400 },
        online: number != 1 && number != 5,
    };
    Topology::new((0..8).map(cpu).collect())
}
