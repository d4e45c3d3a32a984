// SPDX-License-Identifier: GPL-2.0-only
//! The daemon's cost: thousands of periods on a described machine of 64 CPUs, with a scheduler that
//! only records what is published.

use crate::ctl::Remembers;
use crate::support::{Numbering, Shape};
use scx_roost::Config;
use scx_roost::daemon::control::Control;
use scx_roost::daemon::watch::{Past, Watch};
use scx_roost::machine::host::Host;
use scx_roost::machine::{Clocks, FreqFiles, Machine, resident_kb};
use scx_roost::policy::change::Change;
use scx_roost::policy::settings::Settings;
use scx_roost::publish::Scans;
use scx_roost::wire::stats::source::CounterSource;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SHAPE: Shape = Shape {
    nodes: 1,
    llcs: 8,
    cores: 4,
    threads: 2,
    numbering: Numbering::Halves,
};
const PERIOD: Duration = Duration::from_millis(100);
/// By then all memory is there that is allocated once, such as the samples that a threshold is
/// learnt from.
const WARM_UP: u32 = 600;
const PERIODS: u32 = 3_000;
/// Periods that are timed together. Each part includes some of the work that is not done every
/// period.
const PART: u32 = 500;
/// The limits: thousandths of a CPU, and resident memory.
const MOST_PERMILLE: f64 = 3.0;
const MOST_KB: u64 = 40_000;
const MOST_GROWTH_KB: u64 = 500;

fn cpu_time() -> Duration {
    let mut used = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut used) };
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

fn own_kb(own: &Host) -> u64 {
    resident_kb(own).unwrap()
}

/// Each period has a look, a sample of frequencies and one of idle periods. In each the CPUs' load
/// and frequencies differ from the one before.
#[test]
#[ignore = "run by the test below, in a process of its own"]
#[expect(
    clippy::too_many_lines,
    reason = "one measurement from its preparation to its verdict"
)]
fn alone() {
    let tree = SHAPE.tree();
    for cpu in 0..64 {
        let files = [
            ("scaling_driver", "acpi-cpufreq"),
            ("scaling_governor", "schedutil"),
            ("cpuinfo_min_freq", "2200000"),
            ("cpuinfo_max_freq", "3700000"),
            ("scaling_max_freq", "3700000"),
            ("scaling_cur_freq", "2200000"),
        ];
        tree.cpufreq(&[cpu], &files);
    }
    let change = Change {
        preset: Some("smove".to_string()),
        enable: vec!["avg_idle_scan".to_string()],
        ..Change::default()
    };
    let mut config = Config::default();
    config.settings = Settings::default().changed(&change).unwrap();
    config.freq_period = PERIOD;
    let host = Host::in_folder(tree.root());
    let machine = Machine::read(&host.sys).unwrap();
    let facts = machine.facts().unwrap();
    let source = CounterSource::default();
    let control = Control::new(config.settings.clone(), false, source.clone());
    control.set_scans(Scans::new(&facts.llcs, &facts.llc_cpus, PERIOD));
    let mut watch = Watch::new(
        &config,
        &host,
        &control,
        &source,
        &machine,
        true,
        Past::default(),
    );
    // It reads the kernel's BTF, which leaves the heap larger.
    let own = Host::new(Path::new("/sys"));
    let image = control.image(64, watch.capacities());
    let _attached = control
        .attach(Box::new(Remembers::default()), &image)
        .unwrap();
    let (mut used, mut kb) = ([Duration::ZERO; (PERIODS / PART) as usize], 0);
    for period in 0..WARM_UP + PERIODS {
        change_machine(tree.root(), period);
        let time = Duration::from_secs(1000) + period * PERIOD;
        let now = Clocks {
            monotonic: time,
            boot: time,
            real: time,
        };
        if period == WARM_UP {
            kb = own_kb(&own);
        }
        let begin = cpu_time();
        watch.look(now, false);
        watch.set_gauges(PERIOD);
        control.sample(FreqFiles::read).unwrap();
        control.sample_idle();
        if let Some(period) = period.checked_sub(WARM_UP) {
            used[(period / PART) as usize] += cpu_time() - begin;
        }
    }
    // Other load on the host slows some parts down, so the fastest one counts.
    let one = used.into_iter().min().unwrap() / PART;
    let permille = one.as_secs_f64() / PERIOD.as_secs_f64() * 1000.0;
    let (after, events) = (own_kb(&own), source.totals().events);
    println!(
        "a period of 64 CPUs takes {} us: {permille:.2} permille of a CPU; {after} kB, {} kB more than before {PERIODS} of them; \
         {} policies published",
        one.as_micros(),
        after.saturating_sub(kb),
        events.policies_published
    );
    assert_eq!(events.periods, u64::from(WARM_UP + PERIODS));
    assert!(permille < MOST_PERMILLE);
    assert!(after < MOST_KB && after.saturating_sub(kb) < MOST_GROWTH_KB);
}

fn change_machine(root: &Path, period: u32) {
    let busy = |cpu: u32| (period * (cpu % 10 + 1), period * (10 - cpu % 10));
    let line = |cpu: u32| {
        let (busy, idle) = busy(cpu);
        format!("cpu{cpu} {busy} 0 0 {idle} 0 0 0 0 0 0\n")
    };
    let lines: String = (0..64).map(line).collect();
    fs::create_dir_all(root.join("proc")).unwrap();
    fs::write(root.join("proc/stat"), format!("cpu\n{lines}intr 0\n")).unwrap();
    // Written in place, as files of the kernel are.
    let cpu = period % 64;
    let path = root.join(format!(
        "devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"
    ));
    fs::write(path, (2_200_000 + period % 100 * 15_000).to_string()).unwrap();
}

#[test]
fn a_period_is_cheap_and_thousands_hold_no_more_memory_than_one() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "soak::alone", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let said = text.lines().find(|l| l.contains("a period of 64 CPUs"));
    println!("{}", said.unwrap_or(&text));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_some(), "{text}{stderr}");
}
