// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's object passes the verifier on every machine. Facts are constants there, so
//! another machine is another program.

use crate::topology::Tables;
use libbpf_rs::PrintLevel;
use scx_roost::daemon::load::load_object;
use scx_roost::machine::cpufreq::CpuFreq;
use scx_roost::native::sys::ROOST_NR_FEATURES;
use scx_roost::placement::topology::Topology;
use scx_roost::policy::config::Config;
use scx_roost::publish::image;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::time::Instant;

/// LLCs, cores of each, threads of each, LLCs of a node.
const MACHINES: [(usize, usize, usize, usize); 7] = [
    (1, 1, 1, 1),
    (1, 3, 1, 1),
    (2, 3, 2, 2),
    (3, 11, 2, 1),
    (128, 8, 1, 2),
    (1, 511, 2, 1),
    (127, 4, 2, 8),
];

#[test]
#[ignore = "needs a kernel with sched_ext: tests/guest/policy-bpf.sh runs it"]
fn the_scheduler_loads_for_every_machine() {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut config = Config::default();
    libbpf_rs::set_print(Some((PrintLevel::Info, |_, text| {
        SAID.lock().unwrap().push(text);
    })));
    let presets = [config.settings.features.0, (1 << ROOST_NR_FEATURES) - 1];
    for (llcs, cores, threads, llcs_per_node) in MACHINES {
        let topology = Topology::regular(llcs, cores, threads, llcs_per_node, true);
        for features in presets {
            config.settings.features.0 = features;
            let tun = config.tunables(&CpuFreq::default(), None, true, true);
            let facts = topology.facts();
            let arms = [config.settings.arm(topology.nr_cpu_ids() as u32)];
            let policy = image(&arms, &facts.capacities());
            let mut object = MaybeUninit::uninit();
            let begin = Instant::now();
            let loaded = load_object(&config, &facts, &tun, &policy, 0, None, &mut object);
            if let Err(e) = loaded {
                panic!("{llcs} LLCs x {cores} cores x {threads}, features {features:#x}: {e:#}");
            }
            let s = begin.elapsed().as_secs_f64();
            println!("{llcs} LLCs x {cores} cores x {threads}, features {features:#x}: {s:.1} s");
        }
    }
    let said = SAID.lock().unwrap();
    assert!(said.is_empty(), "libbpf said besides the log: {said:?}");
}
