// SPDX-License-Identifier: GPL-2.0-only
//! What the loop finds on a described machine that changes, and what it tells: to the scheduler, and to people.

use crate::ctl::Remembers;
use crate::support::{SMALL_SMT, Tree};
use scx_roost::Config;
use scx_roost::arms::{Change, Settings};
use scx_roost::control::{Attached, Control};
use scx_roost::host::Host;
use scx_roost::machine::{Clocks, FreqFiles, Machine};
use scx_roost::model::{Lateness, Seen};
use scx_roost::stats::host::ConditionMetrics;
use scx_roost::stats::source::CounterSource;
use scx_roost::watch::{Looked, Past, Watch};
use std::cell::RefCell;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn stat(busy: u64, idle: u64) -> String {
    let line = |cpu: usize| format!("cpu{cpu} {busy} 0 0 {idle} 0 0 0 0 0 0");
    let lines: Vec<String> = (0..8).map(line).collect();
    format!("cpu  0 0 0 0 0 0 0 0 0 0\n{}\nintr 0", lines.join("\n"))
}

fn freqs(tree: &Tree) {
    for cpu in 0..8 {
        let files = [
            ("scaling_driver", "acpi-cpufreq"),
            ("scaling_governor", "ondemand"),
            ("cpuinfo_min_freq", "1000000"),
            ("cpuinfo_max_freq", "4000000"),
            ("scaling_max_freq", "4000000"),
            ("scaling_cur_freq", "2500000"),
        ];
        tree.cpufreq(&[cpu], &files);
    }
}

/// A machine and the daemon on it, whose clock stands still until it is moved.
struct Bench {
    tree: Tree,
    host: Host,
    config: Config,
    machine: Machine,
    control: Control,
    source: CounterSource,
    told: Remembers,
    attached: RefCell<Option<Attached>>,
    now: Clocks,
}

fn bench(preset: &str) -> Bench {
    let tree = SMALL_SMT.tree();
    freqs(&tree);
    tree.write("proc/stat", &stat(0, 0));
    let host = Host::in_folder(tree.root());
    let machine = Machine::read(&host.sys).unwrap();
    let change = Change {
        preset: Some(preset.to_string()),
        ..Change::default()
    };
    let settings = Settings::default().changed(&change).unwrap();
    let (source, told) = (CounterSource::default(), Remembers::default());
    let control = Control::new(settings.clone(), false, source.clone());
    let at = |seconds| Duration::from_secs(seconds);
    Bench {
        tree,
        host,
        config: Config {
            settings,
            ..Config::default()
        },
        machine,
        control,
        source,
        told,
        attached: RefCell::default(),
        now: Clocks {
            monotonic: at(100),
            boot: at(150),
            real: at(1_700_000_000),
        },
    }
}

impl Bench {
    /// A scheduler is loaded.
    fn watch(&self) -> Watch<'_> {
        self.watch_after(Past::default())
    }

    fn watch_after(&self, past: Past) -> Watch<'_> {
        let (control, source) = (&self.control, &self.source);
        let (host, machine) = (&self.host, &self.machine);
        let watch = Watch::new(&self.config, host, control, source, machine, true, past);
        let image = control.image(8, watch.worth());
        let attached = control.attach(Box::new(self.told.clone()), &image);
        self.attached.replace(Some(attached.unwrap()));
        watch
    }

    /// `awake` later, after so much of suspend and with the date set by so many seconds.
    fn later(&self, watch: &mut Watch, awake: u64, asleep: u64, set: u64) -> Looked {
        let add = |time: Duration, seconds| time + Duration::from_secs(seconds);
        let now = Clocks {
            monotonic: add(self.now.monotonic, awake),
            boot: add(self.now.boot, awake + asleep),
            real: add(self.now.real, awake + asleep + set),
        };
        watch.look(now)
    }

    fn condition(&self, name: &str) -> ConditionMetrics {
        self.source.totals().conditions[name].clone()
    }

    /// (active, how often it began)
    fn state(&self, name: &str) -> (u64, u64) {
        let condition = self.condition(name);
        assert_eq!(condition.active == 1, !condition.text.is_empty(), "{name}");
        (condition.active, condition.count)
    }

    fn samples(&self, times: usize) {
        (0..times).for_each(|_| self.control.sample(FreqFiles::read).unwrap());
    }

    fn rewrite(&self, cpus: std::ops::Range<usize>, name: &str, text: &str) {
        let path = |cpu| format!("devices/system/cpu/cpu{cpu}/cpufreq/{name}");
        cpus.for_each(|cpu| self.tree.write(&path(cpu), text));
    }
}

fn seen(looked: Looked) -> Seen {
    match looked {
        Looked::Seen(seen) => seen,
        Looked::MachineChanged => panic!("the machine is the same"),
    }
}

#[test]
fn nothing_happens_to_a_machine_at_rest() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    for second in 0..5 {
        bench.tree.write("proc/stat", &stat(0, 100 * second));
        let looked = seen(bench.later(&mut watch, second, 0, 0));
        let busy = (second > 0).then_some(0);
        assert_eq!(
            looked,
            Seen {
                changed: false,
                busy
            }
        );
    }
    let totals = bench.source.totals();
    assert_eq!(totals.events.periods, 5);
    let quiet = totals.conditions.values().all(|c| c.count == 0);
    assert!(quiet, "{:?}", totals.conditions);
    assert_eq!(bench.told.0.lock().unwrap().publications, 0);
}

#[test]
fn the_clocks_tell_of_suspend_and_of_a_date_that_was_set() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    assert!(seen(bench.later(&mut watch, 1, 3600, 0)).changed);
    let events = || bench.source.totals().events;
    assert_eq!((events().suspends, events().clock_jumps), (1, 0));
    assert!(!seen(bench.later(&mut watch, 2, 3600, 0)).changed);
    assert!(seen(bench.later(&mut watch, 3, 3600, 86_400)).changed);
    assert_eq!((events().suspends, events().clock_jumps), (1, 1));
    let jump = bench.condition("clock_jump").text;
    assert!(jump.starts_with("the date was set by +86400 s"), "{jump}");
    bench.later(&mut watch, 62, 3600, 86_400);
    assert_eq!(bench.state("clock_jump"), (1, 1));
    bench.later(&mut watch, 63, 3600, 86_400);
    assert_eq!(bench.state("clock_jump"), (0, 1));
}

#[test]
fn what_is_told_for_a_time_is_over_in_time_after_another_load() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    bench.later(&mut watch, 1, 0, 3600);
    assert_eq!(bench.state("clock_jump"), (1, 1));
    // The kernel ends the scheduler, the machine sleeps and wakes, and it is loaded anew.
    let mut watch = bench.watch_after(watch.past());
    bench.later(&mut watch, 3, 50, 3600);
    let events = bench.source.totals().events;
    assert_eq!((events.suspends, events.clock_jumps), (1, 1));
    assert_eq!(bench.state("clock_jump"), (1, 1));
    bench.later(&mut watch, 12, 50, 3600);
    assert_eq!(bench.state("clock_jump"), (0, 1));
}

#[test]
fn a_cpu_that_goes_is_another_machine_and_garbage_is_none() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    seen(bench.later(&mut watch, 0, 0, 0));
    for garbage in ["", "all"] {
        bench.tree.write("devices/system/cpu/online", garbage);
        seen(bench.later(&mut watch, 1, 0, 0));
        assert_eq!(bench.state("machine_unreadable"), (1, 1), "{garbage:?}");
    }
    bench.tree.online(&[0, 1, 2, 3, 4, 5, 6, 7]);
    seen(bench.later(&mut watch, 2, 0, 0));
    assert_eq!(bench.state("machine_unreadable"), (0, 1));
    bench.tree.online(&[0, 1, 2, 3, 4, 5, 6]);
    let looked = bench.later(&mut watch, 3, 0, 0);
    assert_eq!(looked, Looked::MachineChanged);
}

#[test]
fn times_of_cpus_are_garbage() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    bench.tree.write("proc/stat", &stat(10, 10));
    bench.later(&mut watch, 0, 0, 0);
    bench.tree.write("proc/stat", &stat(40, 80));
    // Of one CPU: eight.
    assert_eq!(seen(bench.later(&mut watch, 1, 0, 0)).busy, Some(2400));
    watch.tell(SECOND);
    let cpus = bench.source.cpus().cpus;
    assert_eq!(
        (cpus[&7].gauges.busy_permille, cpus[&7].gauges.core),
        (300, 3)
    );
    assert_eq!(bench.source.totals().gauges.busy_permille, 300);
    bench.tree.write("proc/stat", "cpu\ncpu0 x");
    assert_eq!(seen(bench.later(&mut watch, 2, 0, 0)).busy, None);
    bench.later(&mut watch, 3, 0, 0);
    assert_eq!(bench.state("machine_unreadable"), (1, 1));
    bench.tree.write("proc/stat", &stat(40, 180));
    bench.later(&mut watch, 4, 0, 0);
    bench.later(&mut watch, 5, 0, 0);
    assert_eq!(bench.state("machine_unreadable"), (0, 1));
}

#[test]
fn limits_are_followed_and_told() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    bench.rewrite(2..4, "scaling_max_freq", "1000000");
    assert!(seen(bench.later(&mut watch, 1, 0, 0)).changed);
    let capacity = || bench.told.0.lock().unwrap().image.unwrap().capacity;
    assert_eq!(capacity()[1..5], [1024, 256, 256, 1024]);
    assert_eq!(bench.source.cpus().cpus[&3].gauges.capacity_now, 256);
    let text = bench.condition("capacity_limited").text;
    assert!(
        text.contains("holds 2 CPUs") && text.contains("CPU 2 to 256"),
        "{text}"
    );
    assert!(!seen(bench.later(&mut watch, 2, 0, 0)).changed);
    bench.rewrite(2..4, "scaling_max_freq", "4000000");
    assert!(seen(bench.later(&mut watch, 3, 0, 0)).changed);
    assert_eq!(capacity()[1..5], [1024; 4]);
    assert_eq!(bench.state("capacity_limited"), (0, 1));
    let events = bench.source.totals().events;
    assert_eq!(
        (events.capacities_changed, events.policies_published),
        (2, 2)
    );
}

#[test]
fn a_driver_goes_and_another_comes() {
    let bench = bench("smove");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    bench.samples(60);
    assert_eq!(bench.source.totals().freq_source, "scaling_cur_freq");
    assert_eq!(bench.source.cpus().cpus[&0].gauges.khz, 0, "not told yet");
    bench.later(&mut watch, 1, 0, 0);
    assert_eq!(bench.source.cpus().cpus[&0].gauges.khz, 2_500_000);
    for cpu in 0..8 {
        bench
            .tree
            .remove(&format!("devices/system/cpu/cpu{cpu}/cpufreq"));
    }
    assert!(seen(bench.later(&mut watch, 2, 0, 0)).changed);
    let threshold = || bench.told.0.lock().unwrap().image.unwrap().threshold[0][0];
    assert_eq!(threshold(), 0);
    bench.samples(49);
    assert_eq!(
        bench.state("no_freq_source"),
        (0, 0),
        "ticks may tell still"
    );
    bench.samples(2);
    assert_eq!(bench.state("no_freq_source"), (1, 1));
    assert_eq!(bench.source.totals().freq_source, "none");
    freqs(&bench.tree);
    bench.rewrite(0..8, "scaling_driver", "amd-pstate");
    assert!(seen(bench.later(&mut watch, 3, 0, 0)).changed);
    bench.samples(1);
    assert_eq!(bench.state("no_freq_source"), (0, 1));
    assert_eq!(threshold(), 1_000_000);
    bench.rewrite(0..8, "scaling_cur_freq", "fast");
    bench.samples(1);
    assert_eq!(bench.state("freq_unreadable"), (1, 1));
}

#[test]
fn frequencies_that_are_garbage_are_counted_once() {
    let bench = bench("smove");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    bench.samples(2);
    bench.rewrite(3..6, "scaling_cur_freq", "<unknown>");
    bench.samples(3);
    let text = bench.condition("freq_unreadable").text;
    assert!(text.contains("3 online CPUs, CPU 3 first"), "{text}");
    assert_eq!(bench.source.totals().events.reads_failed, 3);
    bench.rewrite(3..6, "scaling_cur_freq", "1000000");
    bench.samples(1);
    assert_eq!(bench.state("freq_unreadable"), (0, 1));
}

#[test]
fn files_of_cpufreq_that_are_garbage_are_counted() {
    let bench = bench("roost");
    bench.rewrite(0..2, "cpuinfo_max_freq", "very fast");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    assert_eq!(bench.source.totals().events.reads_failed, 2);
    let cpus = bench.source.cpus().cpus;
    assert_eq!(
        (cpus[&0].gauges.max_khz, cpus[&2].gauges.max_khz),
        (0, 4_000_000)
    );
}

#[test]
fn one_frequency_for_a_cache_matters_to_who_delays() {
    for (preset, active) in [("roost", 0), ("smove", 1)] {
        let bench = bench(preset);
        for llc in [[0, 1, 2, 3], [4, 5, 6, 7]] {
            bench.tree.cpufreq(&llc, &[]);
        }
        let mut watch = bench.watch();
        bench.later(&mut watch, 0, 0, 0);
        assert_eq!(bench.state("freq_shared"), (active, active), "{preset}");
    }
}

#[test]
fn of_a_late_look_it_is_told_for_a_minute() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    let late = Lateness {
        by: 3 * SECOND,
        skipped: 30,
    };
    let after = |seconds| Clocks {
        boot: bench.now.boot + seconds * SECOND,
        ..bench.now
    };
    watch.begun(Some(late), &after(0));
    assert_eq!(bench.state("period_late"), (1, 1));
    watch.begun(Some(late), &after(5));
    watch.begun(None, &after(64));
    assert_eq!(bench.state("period_late"), (1, 1));
    watch.begun(None, &after(65));
    assert_eq!(bench.state("period_late"), (0, 1));
    let events = bench.source.totals().events;
    assert_eq!((events.periods_late, events.periods_skipped), (2, 60));
}

#[test]
fn cpus_that_are_there_and_offline() {
    let bench = bench("roost");
    bench.watch();
    assert_eq!(bench.state("cpus_offline"), (0, 0));
    bench.tree.write("devices/system/cpu/present", "0-9");
    bench.watch();
    let text = bench.condition("cpus_offline").text;
    assert!(
        text.starts_with("of 10 CPUs 2 are offline (the first is 8)"),
        "{text}"
    );
}
