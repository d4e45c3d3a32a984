// SPDX-License-Identifier: GPL-2.0-only
//! What the loop finds on a described machine that changes, what it publishes to the scheduler, and
//! what it reports.

mod cpufreq;
mod looks;

use crate::ctl::Remembers;
use crate::support::{SMALL_SMT, Tree};
use scx_roost::Config;
use scx_roost::daemon::control::{Attached, Control, Refused};
use scx_roost::daemon::watch::{Looked, Past, Watch};
use scx_roost::machine::host::Host;
use scx_roost::machine::{Clocks, FreqFiles, FreqSource, Machine};
use scx_roost::model::{Lateness, Seen};
use scx_roost::policy::change::Change;
use scx_roost::policy::settings::Settings;
use scx_roost::util::stop::{Woken, stopper};
use scx_roost::wire::stats::host::ConditionMetrics;
use scx_roost::wire::stats::source::CounterSource;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn stat(busy: u64, idle: u64) -> String {
    let line = |cpu: usize| format!("cpu{cpu} {busy} 0 0 {idle} 0 0 0 0 0 0");
    let lines: Vec<String> = (0..8).map(line).collect();
    format!("cpu  0 0 0 0 0 0 0 0 0 0\n{}\nintr 0", lines.join("\n"))
}

fn freqs(tree: &Tree) {
    (0..8).for_each(|cpu| freqs_of(tree, cpu));
}

fn freqs_of(tree: &Tree, cpu: usize) {
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

/// A machine and the daemon on it. The clock moves only when a test moves it.
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
    let mut config = Config::default();
    config.settings = Settings::default().changed(&change).unwrap();
    // Samples are valid for three periods, so that they do not expire on a slow host.
    config.freq_period = Duration::from_secs(1);
    let (source, told) = (CounterSource::default(), Remembers::default());
    let control = Control::new(config.settings.clone(), false, source.clone());
    let at = |seconds| Duration::from_secs(seconds);
    Bench {
        tree,
        host,
        config,
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
    /// Loads a scheduler.
    fn watch(&self) -> Watch {
        self.watch_after(Past::default())
    }

    fn watch_after(&self, past: Past) -> Watch {
        let (control, source) = (&self.control, &self.source);
        let (host, machine) = (&self.host, &self.machine);
        let watch = Watch::new(&self.config, host, control, source, machine, true, past);
        let image = control.image(8, watch.capacities());
        let attached = control.attach(Box::new(self.told.clone()), &image);
        self.attached.replace(Some(attached.unwrap()));
        watch
    }

    /// A look `awake` seconds later, after `asleep` seconds of suspend, with the date set forward
    /// by `set` seconds.
    fn later(&self, watch: &mut Watch, awake: u64, asleep: u64, set: u64) -> Looked {
        watch.look(self.after(awake, asleep, set), false)
    }

    fn after(&self, awake: u64, asleep: u64, set: u64) -> Clocks {
        let add = |time: Duration, seconds| time + Duration::from_secs(seconds);
        Clocks {
            monotonic: add(self.now.monotonic, awake),
            boot: add(self.now.boot, awake + asleep),
            real: add(self.now.real, awake + asleep + set),
        }
    }

    /// As `later`, on an idle machine.
    fn later_idle(&self, watch: &mut Watch, awake: u64) -> Looked {
        watch.look(self.after(awake, 0, 0), true)
    }

    /// Sends a request to the control socket, which must succeed.
    fn ask(&self, args: &str) {
        let answer = self.answer(args);
        assert!(answer.contains("generation"), "{answer}");
    }

    fn answer(&self, args: &str) -> String {
        let path = self.tree.root().join("ctl");
        let _server = self.control.launch(&path, None).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        let line = format!(r#"{{"req":"ctl","args":{args}}}"#) + "\n";
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        answer
    }

    fn condition(&self, name: &str) -> ConditionMetrics {
        self.source.totals().conditions[name].clone()
    }

    /// (active, how often it has begun)
    fn state(&self, name: &str) -> (u64, u64) {
        let condition = self.condition(name);
        assert_eq!(condition.active == 1, !condition.text.is_empty(), "{name}");
        (condition.active, condition.count)
    }

    fn samples(&self, times: usize) {
        (0..times).for_each(|_| self.control.sample(FreqFiles::read).unwrap());
    }

    /// What two looks at the machine say of the last samples.
    fn judged(&self) {
        (0..2).for_each(|_| self.control.judge_unread());
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
    assert!(
        jump.starts_with("the wall clock was set by +86400 s"),
        "{jump}"
    );
    bench.later(&mut watch, 62, 3600, 86_400);
    assert_eq!(bench.state("clock_jump"), (1, 1));
    bench.later(&mut watch, 63, 3600, 86_400);
    assert_eq!(bench.state("clock_jump"), (0, 1));
}

#[test]
fn a_timed_condition_ends_in_time_after_a_reload() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    bench.later(&mut watch, 1, 0, 3600);
    assert_eq!(bench.state("clock_jump"), (1, 1));
    // The kernel ends the scheduler, the machine suspends and wakes up, and the scheduler is loaded
    // again.
    let mut watch = bench.watch_after(watch.past());
    bench.later(&mut watch, 3, 50, 3600);
    let events = bench.source.totals().events;
    assert_eq!((events.suspends, events.clock_jumps), (1, 1));
    assert_eq!(bench.state("clock_jump"), (1, 1));
    bench.later(&mut watch, 12, 50, 3600);
    assert_eq!(bench.state("clock_jump"), (0, 1));
}

#[test]
fn a_removed_cpu_is_reported_and_a_new_one_is_another_machine() {
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
    bench.tree.write("devices/system/cpu/present", "0-7");
    bench.tree.online(&[0, 1, 2, 3, 4, 5, 6]);
    seen(bench.later(&mut watch, 3, 0, 0));
    watch.set_gauges(SECOND);
    assert_eq!(bench.source.totals().gauges.cpus_online, 7);
    assert!(!bench.source.cpu_gauges().contains_key(&7));
    assert_eq!(bench.state("cpus_offline"), (1, 1));
    bench.tree.online(&[0, 1, 2, 3, 4, 5, 6, 7]);
    seen(bench.later(&mut watch, 4, 0, 0));
    watch.set_gauges(SECOND);
    assert_eq!(bench.source.totals().gauges.cpus_online, 8);
    assert_eq!(bench.state("cpus_offline"), (0, 1));
    bench.tree.online(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let looked = bench.later(&mut watch, 5, 0, 0);
    assert_eq!(looked, Looked::MachineChanged);
}

#[test]
fn times_of_cpus_are_garbage() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    bench.tree.write("proc/stat", &stat(10, 10));
    bench.later(&mut watch, 0, 0, 0);
    bench.tree.write("proc/stat", &stat(40, 80));
    // In thousandths of one CPU, summed over eight CPUs.
    assert_eq!(seen(bench.later(&mut watch, 1, 0, 0)).busy, Some(2400));
    watch.set_gauges(SECOND);
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
fn a_late_look_is_reported_for_a_minute() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    // After weeks of being stopped. No work may be repeated for each skipped look.
    let late = Lateness {
        by: 3 * SECOND,
        skipped: 1 << 60,
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
    assert_eq!((events.periods_late, events.periods_skipped), (2, 2 << 60));
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
        text.starts_with("2 of 10 CPUs are offline (the first is 8)"),
        "{text}"
    );
}

#[test]
fn cpus_that_smt_keeps_offline() {
    for (control, advice) in [
        ("off", "write 'on' to /sys/devices/system/cpu/smt/control"),
        ("forceoff", "booted without 'nosmt=force'"),
        ("notsupported", "1 is written to its file 'online'"),
    ] {
        let bench = bench("roost");
        bench.tree.write("devices/system/cpu/present", "0-15");
        bench.tree.write("devices/system/cpu/smt/control", control);
        bench.watch();
        let text = bench.condition("cpus_offline").text;
        assert!(text.contains(advice), "{control}: {text}");
    }
}

#[test]
fn throttling_is_reported_for_a_minute() {
    let bench = bench("roost");
    let count = |cpu: usize, count: &str| {
        let folder = format!("devices/system/cpu/cpu{cpu}/thermal_throttle");
        let path = format!("{folder}/core_throttle_count");
        bench.tree.write(&path, count);
    };
    (0..8).for_each(|cpu| count(cpu, "3"));
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    assert_eq!(bench.state("throttled"), (0, 0), "that was before us");
    count(6, "4");
    count(7, "9");
    bench.later(&mut watch, 10, 0, 0);
    let text = bench.condition("throttled").text;
    assert!(
        text.contains("throttled 2 CPUs because of heat, CPU 6"),
        "{text}"
    );
    for (second, active) in [(20, 1), (69, 1), (80, 0)] {
        bench.later(&mut watch, second, 0, 0);
        assert_eq!(bench.state("throttled"), (active, 1), "{second}");
    }
}

#[test]
fn heat_is_not_lost_when_counts_cannot_be_read() {
    let bench = bench("roost");
    let folder = "devices/system/cpu/cpu6/thermal_throttle";
    let count = |count| {
        let path = format!("{folder}/core_throttle_count");
        bench.tree.write(&path, count);
    };
    count("3");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    count("4");
    bench.later(&mut watch, 10, 0, 0);
    bench.tree.remove(folder);
    bench.later(&mut watch, 20, 0, 0);
    assert_eq!(bench.state("throttled"), (1, 1));
    bench.later(&mut watch, 80, 0, 0);
    assert_eq!(bench.state("throttled"), (0, 1));
    count("5");
    bench.later(&mut watch, 90, 0, 0);
    assert_eq!(bench.state("throttled"), (1, 2));
    bench.tree.remove(folder);
    let mut watch = bench.watch_after(watch.past());
    bench.later(&mut watch, 100, 0, 0);
    assert_eq!(bench.state("throttled"), (1, 2));
    bench.later(&mut watch, 160, 0, 0);
    assert_eq!(bench.state("throttled"), (0, 2));
}

/// `tell` reads no file: a read that hangs there would go unnoticed.
#[test]
fn reported_values_were_read_in_the_same_look() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    bench.tree.write("proc/self/status", "VmRSS:\t77 kB");
    let text = "some avg10=2.50 avg60=0.00 avg300=0.00 total=1";
    bench.tree.write("proc/pressure/cpu", text);
    let told = |watch: &Watch| {
        watch.set_gauges(SECOND);
        let gauges = bench.source.totals().gauges;
        (gauges.resident_kb, gauges.psi_cpu_some_permille)
    };
    assert_eq!(told(&watch), (0, 0));
    bench.later(&mut watch, 1, 0, 0);
    assert_eq!(told(&watch), (77, 25));
}

#[test]
fn a_cpu_limit_that_is_set_later_is_reported() {
    let mut bench = bench("roost");
    bench.tree.write("fs/cgroup/cpu.weight", "100");
    bench.host = Host::in_folder(bench.tree.root());
    let mut watch = bench.watch();
    bench.tree.write("fs/cgroup/box/cpu.max", "50000 100000");
    bench.later(&mut watch, 0, 0, 0);
    assert_eq!(bench.state("quota_ignored"), (0, 0), "the start has looked");
    bench.later(&mut watch, 599, 0, 0);
    assert_eq!(bench.state("quota_ignored"), (0, 0), "not yet");
    bench.later(&mut watch, 600, 0, 0);
    let text = bench.condition("quota_ignored").text;
    assert!(text.contains("/box (50 % of a CPU)"), "{text}");
    bench.tree.remove("fs/cgroup/box");
    bench.later(&mut watch, 1200, 0, 0);
    assert_eq!(bench.state("quota_ignored"), (0, 1));
}

#[test]
fn of_very_many_cgroups_a_look_sees_some() {
    let mut bench = bench("roost");
    bench.tree.write("fs/cgroup/cpu.max", "50000 100000");
    let folder = |group| bench.tree.root().join(format!("fs/cgroup/{group}"));
    (0..4500).for_each(|group| std::fs::create_dir(folder(group)).unwrap());
    bench.host = Host::in_folder(bench.tree.root());
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    for (second, active) in [(600, 0), (601, 0), (602, 1)] {
        bench.later(&mut watch, second, 0, 0);
        assert_eq!(bench.state("quota_ignored"), (active, active), "{second}");
    }
}

#[test]
fn groups_without_a_place_are_reported() {
    let mut bench = bench("roost");
    bench.tree.write("fs/cgroup/a/b/cpu.weight", "1");
    bench.host = Host::in_folder(bench.tree.root());
    let mut watch = bench.watch();
    let folder = bench.tree.root().join("fs/cgroup/a/b");
    let last = std::fs::metadata(&folder).unwrap().ino();
    for (second, count, active) in [(0, 0, 0), (20, 2, 1), (40, 2, 1), (60, 0, 0)] {
        bench.told.0.lock().unwrap().refused = Refused { count, last };
        bench.later(&mut watch, second, 0, 0);
        assert_eq!(bench.state("groups_refused").0, active, "{second}");
        if active == 1 {
            let text = bench.condition("groups_refused").text;
            assert!(
                text.starts_with("2 control groups without a place"),
                "{text}"
            );
            // Its name is looked for once, since that takes a walk through all groups.
            assert!(text.ends_with("the last is /a/b"), "{text}");
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

#[test]
fn a_full_machine_is_shown() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    let mut after = |second: u64, busy: u64| {
        bench
            .tree
            .write("proc/stat", &stat(busy, 100 * second - busy));
        bench.later(&mut watch, second, 0, 0);
        watch.set_gauges(SECOND);
        bench.source.totals().gauges.saturated
    };
    let all = [(1, 0), (2, 100), (3, 198), (4, 297), (5, 390), (6, 470)];
    let all = all.map(|(second, busy)| after(second, busy));
    assert_eq!(all, [0, 0, 0, 1, 1, 0]);
}

#[test]
fn a_slow_look_is_reported_for_a_minute() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    let after = |seconds| Clocks {
        boot: bench.now.boot + seconds * SECOND,
        ..bench.now
    };
    watch.ended(SECOND, &after(0));
    assert_eq!(bench.state("period_slow"), (0, 0));
    watch.ended(3 * SECOND, &after(1));
    let text = bench.condition("period_slow").text;
    assert!(
        text.starts_with("a look at the machine took 3000 ms"),
        "{text}"
    );
    watch.ended(Duration::ZERO, &after(60));
    assert_eq!(bench.state("period_slow"), (1, 1));
    watch.ended(Duration::ZERO, &after(61));
    assert_eq!(bench.state("period_slow"), (0, 1));
    assert_eq!(bench.source.totals().events.periods_slow, 1);
}

/// It does not count as a change, which would make the looks more frequent.
#[test]
fn rules_that_cannot_be_written_are_no_change() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    bench.told.0.lock().unwrap().rules_fail = true;
    let rule = r#"{"op":"rule_add","subject":{"comm":"x"},"arm":"default"}"#;
    let answer = bench.answer(rule);
    assert!(answer.contains("no room"), "{answer}");
    assert!(!seen(bench.later(&mut watch, 0, 0, 0)).changed);
    bench.told.0.lock().unwrap().rules_fail = false;
    let tables = || bench.told.0.lock().unwrap().tables;
    let before = tables();
    bench.later(&mut watch, 1, 0, 0);
    assert_eq!(tables(), before + 1, "at last");
}

/// The process of a rule, on an idle machine.
#[test]
fn a_rule_about_a_process_causes_no_wakeups() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = child.id();
    bench.ask(&format!(
        r#"{{"op":"rule_add","subject":{{"pid":{pid}}},"arm":"default"}}"#
    ));
    let ((_stopper, stop), bell) = (stopper(), bench.control.bell());
    let wait = |time| stop.sleep_or(&bell, time);
    assert_eq!(wait(SECOND), Woken::Rung, "for the rule");
    assert!(!seen(bench.later(&mut watch, 0, 0, 0)).changed);
    assert_eq!(wait(SECOND / 5), Woken::InTime, "it lives");
    assert!(!seen(bench.later(&mut watch, 1, 0, 0)).changed);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(wait(20 * SECOND), Woken::Rung);
    assert!(seen(bench.later(&mut watch, 2, 0, 0)).changed);
    assert!(!seen(bench.later(&mut watch, 3, 0, 0)).changed);
}
