// SPDX-License-Identifier: GPL-2.0-only
//! Drivers, governors, limits and frequencies that change.

use super::*;
use scx_roost::policy::features::{FeatureSet, bits};

#[test]
fn limits_are_followed_and_reported() {
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
        text.contains("keeps 2 CPUs") && text.contains("CPU 2 at 256"),
        "{text}"
    );
    assert!(!seen(bench.later(&mut watch, 2, 0, 0)).changed);
    bench.rewrite(2..4, "scaling_max_freq", "4000000");
    for second in 3..7 {
        assert!(!seen(bench.later(&mut watch, second, 0, 0)).changed);
        assert_eq!(bench.state("capacity_limited"), (1, 1), "for a while");
    }
    assert!(seen(bench.later(&mut watch, 7, 0, 0)).changed);
    assert_eq!(capacity()[1..5], [1024; 4]);
    assert_eq!(bench.state("capacity_limited"), (0, 1));
    let events = bench.source.totals().events;
    assert_eq!(
        (events.capacities_changed, events.policies_published),
        (2, 2)
    );
}

#[test]
fn limits_that_flap_are_published_once() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    for second in 0..60 {
        let khz = ["4000000", "3000000", "3900000"][second % 3];
        bench.rewrite(0..8, "scaling_max_freq", khz);
        let looked = seen(bench.later(&mut watch, second as u64, 0, 0));
        assert_eq!(looked.changed, second == 1, "{second}");
    }
    let events = bench.source.totals().events;
    let published = (events.capacities_changed, events.policies_published);
    assert_eq!(published, (1, 1));
    assert_eq!(bench.state("capacity_limited"), (1, 1));
    let image = bench.told.0.lock().unwrap().image.unwrap();
    assert_eq!(image.capacity[..8], [768; 8]);
}

#[test]
fn governor_and_boost_are_followed() {
    let bench = bench("smove");
    let mut watch = bench.watch();
    let changed = |watch: &mut Watch, second| seen(bench.later(watch, second, 0, 0)).changed;
    for second in 0..3 {
        assert!(!changed(&mut watch, second));
    }
    bench.samples(60);
    bench.rewrite(0..8, "scaling_governor", "schedutil");
    assert!(!changed(&mut watch, 4), "not yet");
    assert!(changed(&mut watch, 10));
    assert_eq!(bench.source.totals().governor, "schedutil");
    assert!(!changed(&mut watch, 11), "it is as it was read");
    let max = |bench: &Bench| bench.source.cpus().cpus[&5].gauges.max_khz;
    assert_eq!(max(&bench), 4_000_000);
    bench.rewrite(0..8, "cpuinfo_max_freq", "5000000");
    bench.tree.write("devices/system/cpu/cpufreq/boost", "1");
    assert!(changed(&mut watch, 20));
    assert!(changed(&mut watch, 21), "4 of 5 GHz are left");
    assert_eq!(max(&bench), 5_000_000);
    assert_eq!(bench.state("capacity_limited"), (1, 1));
    assert!(!changed(&mut watch, 22) && !changed(&mut watch, 31));
}

/// Only the first CPU has files when the driver is first seen. Those of the others must be read
/// too.
#[test]
fn a_driver_that_comes_cpu_by_cpu_is_read_whole() {
    let bench = bench("smove");
    for cpu in 0..8 {
        bench
            .tree
            .remove(&format!("devices/system/cpu/cpu{cpu}/cpufreq"));
    }
    let mut watch = bench.watch();
    assert!(!seen(bench.later(&mut watch, 0, 0, 0)).changed);
    let known = || {
        let cpus = bench.source.cpus().cpus;
        cpus.values().filter(|c| c.gauges.max_khz > 0).count()
    };
    for cpu in 0..8 {
        freqs_of(&bench.tree, cpu);
        let looked = seen(bench.later(&mut watch, 1 + cpu as u64, 0, 0));
        assert!(looked.changed);
        assert_eq!(known(), cpu + 1);
    }
    assert!(!seen(bench.later(&mut watch, 9, 0, 0)).changed);
}

#[test]
fn a_driver_goes_and_another_comes() {
    let bench = bench("smove");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    bench.samples(60);
    assert_eq!(bench.source.totals().freq_source, "scaling_cur_freq");
    assert_eq!(bench.source.cpus().cpus[&0].gauges.khz, 2_500_000);
    bench.later(&mut watch, 1, 0, 0);
    assert_eq!(bench.source.cpus().cpus[&0].gauges.khz, 2_500_000);
    for cpu in 0..8 {
        bench
            .tree
            .remove(&format!("devices/system/cpu/cpu{cpu}/cpufreq"));
    }
    assert_eq!(bench.source.totals().governor, "ondemand");
    assert!(seen(bench.later(&mut watch, 2, 0, 0)).changed);
    assert_eq!(bench.source.totals().governor, "none");
    assert_eq!(bench.source.cpus().cpus[&0].gauges.khz, 0);
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
    bench.rewrite(0..8, "scaling_governor", "powersave");
    assert!(seen(bench.later(&mut watch, 3, 0, 0)).changed);
    assert_eq!(bench.source.totals().governor, "powersave");
    bench.samples(1);
    assert_eq!(bench.state("no_freq_source"), (0, 1));
    assert_eq!(threshold(), 1_000_000);
    bench.rewrite(0..8, "scaling_cur_freq", "fast");
    bench.samples(1);
    bench.judged();
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
    bench.judged();
    let text = bench.condition("freq_unreadable").text;
    assert!(text.contains("3 online CPUs, CPU 3 first"), "{text}");
    assert_eq!(bench.source.totals().events.reads_failed, 3);
    bench.rewrite(3..6, "scaling_cur_freq", "1000000");
    bench.samples(1);
    bench.judged();
    assert_eq!(bench.state("freq_unreadable"), (0, 1));
}

#[test]
fn a_cpu_that_is_offline_need_not_tell_its_frequency() {
    let bench = bench("smove");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    bench.samples(2);
    // The file goes first; the list of online CPUs changes later.
    bench.rewrite(3..4, "scaling_cur_freq", "");
    bench.samples(2);
    bench.later(&mut watch, 1, 0, 0);
    bench.tree.online(&[0, 1, 2, 4, 5, 6, 7]);
    for second in 2..5 {
        bench.samples(2);
        bench.later(&mut watch, second, 0, 0);
        assert_eq!(bench.state("freq_unreadable"), (0, 0));
    }
    bench.tree.online(&[0, 1, 2, 3, 4, 5, 6, 7]);
    bench.samples(2);
    bench.later(&mut watch, 5, 0, 0);
    assert_eq!(bench.state("freq_unreadable"), (1, 1), "online and silent");
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
fn a_shared_frequency_matters_to_delay_migration() {
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
fn frequencies_are_read_on_request() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    let khz = || bench.source.cpu_gauges()[&3].khz;
    assert_eq!(khz(), 2_500_000);
    bench.rewrite(0..8, "scaling_cur_freq", "1700000");
    assert_eq!(khz(), 2_500_000, "of this second");
    bench.later(&mut watch, 1, 0, 0);
    assert_eq!(khz(), 2_500_000, "the loop reads none and forgets none");
    std::thread::sleep(SECOND);
    assert_eq!(khz(), 1_700_000);
}

const NOT_DELAYED: &str =
    r#"{"op":"set","arm":"default","change":{"disable":["delay_migration"]}}"#;

#[test]
fn what_was_read_last_is_shown_not_an_old_sample() {
    let bench = bench("smove");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    let khz = || bench.source.cpu_gauges()[&3].khz;
    bench.samples(1);
    bench.later(&mut watch, 1, 0, 0);
    assert_eq!(khz(), 2_500_000);
    bench.ask(NOT_DELAYED);
    bench.rewrite(0..8, "scaling_cur_freq", "1700000");
    bench.later(&mut watch, 2, 0, 0);
    std::thread::sleep(SECOND);
    assert_eq!(khz(), 1_700_000);
    bench.later(&mut watch, 3, 0, 0);
    assert_eq!(khz(), 1_700_000);
}

#[test]
fn a_sample_is_newer_than_what_was_read_before() {
    let mut bench = bench("smove");
    bench.config.freq_period = SECOND;
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    let khz = || bench.source.cpu_gauges()[&3].khz;
    assert_eq!(khz(), 2_500_000);
    bench.rewrite(0..8, "scaling_cur_freq", "1700000");
    bench.samples(1);
    bench.later(&mut watch, 1, 0, 0);
    assert_eq!(khz(), 1_700_000);
}

/// A request never reads the folder, because that may hang: it gets the last sample.
#[test]
fn a_sample_of_a_folder_is_shown_while_it_is_fresh() {
    type End = fn(&Bench);
    let ends: [(&str, End); 3] = [
        ("switched off", |bench| bench.ask(NOT_DELAYED)),
        ("at rest", |bench| bench.control.forget_frequencies()),
        ("old", |_| std::thread::sleep(4 * SECOND)),
    ];
    for (why, end) in ends {
        let mut bench = bench("smove");
        bench.config.freq_source = FreqSource::Folder(bench.tree.root().into());
        bench.config.freq_period = SECOND;
        bench.tree.write("cpu3", "900000");
        let mut watch = bench.watch();
        let khz = || bench.source.cpu_gauges()[&3].khz;
        bench.samples(1);
        bench.later(&mut watch, 0, 0, 0);
        assert_eq!(khz(), 900_000);
        end(&bench);
        bench.later(&mut watch, 1, 0, 0);
        assert_eq!(khz(), 0, "{why}");
        bench.ask(r#"{"op":"reset","arm":"default"}"#);
        bench.samples(1);
        bench.later(&mut watch, 2, 0, 0);
        assert_eq!(khz(), 900_000, "again, after {why}");
    }
}

#[test]
fn a_governor_changes_no_limit() {
    let bench = bench("roost");
    let epp = "energy_performance_preference";
    bench.rewrite(0..8, epp, "balance_performance");
    let mut watch = bench.watch();
    bench.rewrite(0..8, "scaling_max_freq", "1000000");
    bench.later(&mut watch, 0, 0, 0);
    let capacity = || bench.told.0.lock().unwrap().image.unwrap().capacity[3];
    assert_eq!(capacity(), 256);
    bench.rewrite(0..8, epp, "power");
    bench.rewrite(0..8, "scaling_max_freq", "4000000");
    for second in 10..14 {
        let changed = seen(bench.later(&mut watch, second, 0, 0)).changed;
        assert_eq!((changed, capacity()), (second == 10, 256), "{second}");
    }
    assert!(seen(bench.later(&mut watch, 14, 0, 0)).changed);
    assert_eq!(capacity(), 1024);
}

#[test]
fn on_an_idle_machine_epp_is_left_for_later() {
    let bench = bench("roost");
    let epp = "energy_performance_preference";
    bench.rewrite(0..8, epp, "balance_performance");
    let mut watch = bench.watch();
    bench.later_idle(&mut watch, 0);
    bench.rewrite(0..8, epp, "power");
    assert!(!seen(bench.later_idle(&mut watch, 10)).changed);
    assert!(seen(bench.later(&mut watch, 20, 0, 0)).changed);
    assert!(!seen(bench.later(&mut watch, 30, 0, 0)).changed);
    bench.rewrite(0..8, "scaling_governor", "powersave");
    assert!(seen(bench.later_idle(&mut watch, 40)).changed);
    assert!(!seen(bench.later(&mut watch, 50, 0, 0)).changed);
}

#[test]
fn limits_that_cannot_be_published_are_tried_again() {
    let bench = bench("roost");
    let mut watch = bench.watch();
    bench.later(&mut watch, 0, 0, 0);
    let counted = || bench.source.totals().events.capacities_changed;
    let fails = |fails| bench.told.0.lock().unwrap().fails = fails;
    fails(true);
    bench.rewrite(0..8, "scaling_max_freq", "1000000");
    for second in 1..3 {
        assert!(seen(bench.later(&mut watch, second, 0, 0)).changed);
        assert_eq!(counted(), 0);
    }
    fails(false);
    assert!(seen(bench.later(&mut watch, 3, 0, 0)).changed);
    assert_eq!(counted(), 1);
    let image = bench.told.0.lock().unwrap().image.unwrap();
    assert_eq!(image.capacity[3], 256);
    assert!(!seen(bench.later(&mut watch, 4, 0, 0)).changed);
    assert_eq!(counted(), 1);
}

/// Arms with the profile auto follow the power setting within seconds; what ctl has set stays.
#[test]
fn auto_follows_the_power_setting() {
    let bench = bench("mainline");
    let mut watch = bench.watch();
    let has = |bit: FeatureSet| {
        let image = bench.told.0.lock().unwrap().image.unwrap();
        image.arm[0].task.features & bit.0 != 0
    };
    let profile = || bench.control.everybody().profile();
    let platform = |text: &str| bench.tree.write("firmware/acpi/platform_profile", text);
    platform("low-power\n");
    bench.later(&mut watch, 4, 0, 0);
    assert_eq!(profile(), "");
    bench.ask(r#"{"op":"set","arm":"default","change":{"profile":"auto","disable":["claim"]}}"#);
    assert_eq!(profile(), "auto");
    bench.later(&mut watch, 8, 0, 0);
    assert_eq!(profile(), "auto: powersave");
    assert!(has(bits::pack));
    platform("balanced\n");
    bench.later(&mut watch, 9, 0, 0);
    assert_eq!(profile(), "auto: powersave", "it is not read at each look");
    bench.later(&mut watch, 12, 0, 0);
    assert_eq!(profile(), "auto");
    assert!(has(bits::wide_idle) && !has(bits::pack));
    assert!(!has(bits::claim), "as ctl has set it");
}
