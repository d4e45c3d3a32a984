// SPDX-License-Identifier: GPL-2.0-only
//! Any statistics, any keys and any size of the terminal give a picture.

use super::*;
use crate::rng::Rng;
use ratatui::layout::Rect;
use scx_roost::clients::monitor::draw::places;
use scx_roost::clients::monitor::state::{Action, View};
use scx_roost::wire::stats::ArmSums;
use scx_roost::wire::stats::host::ConditionMetrics;

const ACTIONS: &[Action] = &[
    Action::NextView,
    Action::PreviousView,
    Action::Up,
    Action::Down,
    Action::Left,
    Action::Right,
    Action::PageUp,
    Action::PageDown,
    Action::Home,
    Action::End,
    Action::Zeros,
    Action::Pause,
    Action::Longer,
    Action::Shorter,
    Action::Help,
    Action::Close,
    Action::Leave,
    Action::Quit,
];

fn number(rng: &mut Rng) -> u64 {
    match rng.below(6) {
        0 => 0,
        1 => u64::MAX,
        2 => rng.next(),
        _ => rng.scale(5_000_000) as u64,
    }
}

fn text(rng: &mut Rng) -> String {
    const PIECES: &[&str] = &[
        "a", "roost", " ", "\x1b[2J", "\n", "\0", "日本", "e\u{301}", "🦀", "none", "\t",
    ];
    (0..rng.scale(200)).map(|_| *rng.pick(PIECES)).collect()
}

fn hostile_arm(rng: &mut Rng) -> ArmMetrics {
    let counters = std::array::from_fn(|_| number(rng));
    let mut arm = ArmMetrics {
        preset: text(rng),
        features: text(rng),
        counters: CounterFields::new(&counters),
        histogram_sums_us: ArmSums::default(),
        ..ArmMetrics::default()
    };
    let length = if rng.chance(70) {
        NR_BUCKETS
    } else {
        rng.below(2 * NR_BUCKETS)
    };
    arm.histograms.wakeup_latency = (0..length).map(|_| number(rng)).collect();
    arm
}

fn hostile(rng: &mut Rng, seconds: u64) -> Sample {
    let mut totals = metrics(seconds);
    let counters = std::array::from_fn(|_| number(rng));
    totals.set_counters(&counters);
    (totals.preset, totals.governor) = (text(rng), text(rng));
    (totals.running, totals.restarts) = (number(rng), number(rng));
    totals.gauges.busy_permille = number(rng);
    totals.gauges.psi_cpu_some_permille = number(rng);
    for _ in 0..rng.below(20) {
        totals.arms.insert(text(rng), hostile_arm(rng));
    }
    for condition in totals.conditions.values_mut() {
        *condition = ConditionMetrics {
            active: number(rng),
            count: number(rng),
            text: text(rng),
        };
    }
    let mut cpus = CpusMetrics::default();
    let spread = rng.scale(64);
    for _ in 0..rng.below(200) {
        let mut id = || {
            if rng.chance(95) {
                rng.below(spread) as u64
            } else {
                rng.next()
            }
        };
        let (core, llc, node) = (id(), id(), id());
        let gauges = CpuGauges {
            core,
            llc,
            node,
            capacity: number(rng),
            capacity_now: number(rng),
            khz: number(rng),
            min_khz: number(rng),
            max_khz: number(rng),
            threshold_khz: number(rng),
            busy_permille: number(rng),
            idle_mean_us: number(rng),
        };
        let counters = CounterFields::new(&std::array::from_fn(|_| number(rng)));
        cpus.cpus
            .insert(rng.scale(1100) as u64 - 1, CpuMetrics { gauges, counters });
    }
    let at = if rng.chance(80) {
        seconds
    } else {
        rng.below(5) as u64
    };
    Sample::new(Duration::from_secs(at), totals, cpus)
}

#[test]
fn there_is_a_picture_of_everything() {
    let shapes = [ONE, EIGHT, THREADRIPPER, LARGE];
    for seed in 0..40 {
        let rng = &mut Rng::new(seed);
        let mut state = MonitorState::new(Duration::from_millis(number(rng)));
        let theme = Theme {
            color: rng.chance(50),
            utf8: rng.chance(50),
        };
        for step in 0..60 {
            match rng.below(10) {
                0 => state.connected(),
                1 => state.disconnected(&text(rng)),
                2..=4 => state.sampled(hostile(rng, step)),
                5 => state.sampled(rng.pick(&shapes).sample(step)),
                6 => drop(state.act(Action::Go(*rng.pick(View::ALL)))),
                _ => drop(state.act(*rng.pick(ACTIONS))),
            }
            let (width, height) = (rng.scale(200) as u16 - 1, rng.scale(70) as u16 - 1);
            let lines = picture_in(&state, width, height, theme);
            let area = Rect::new(0, 0, width, height);
            state.drawn(places(&state, theme, area));
            let clean = |line: &String| !line.chars().any(char::is_control);
            assert!(
                lines.iter().all(clean),
                "seed {seed}, step {step}: {lines:?}"
            );
        }
    }
}

/// A terminal that was resized shows the same as a new one of that size.
#[test]
fn a_resize_leaves_no_remains() {
    let state = state_of(THREADRIPPER);
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    for (width, height) in [(120, 40), (20, 5), (80, 24), (1, 1), (200, 60), (33, 9)] {
        terminal.backend_mut().resize(width, height);
        terminal.draw(|f| frame(f, &state, THEME)).unwrap();
        let mut fresh = Terminal::new(TestBackend::new(width, height)).unwrap();
        fresh.draw(|f| frame(f, &state, THEME)).unwrap();
        assert_eq!(terminal.backend().buffer(), fresh.backend().buffer());
    }
}
