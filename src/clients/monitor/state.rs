// SPDX-License-Identifier: GPL-2.0-only
//! What is shown, and what a key does to it. Pure: time comes in with the samples, and what a key
//! means for others goes out as an `Effect`.

use super::history::History;
use super::rates::Rates;
use super::sample::Sample;
use super::topology::{Node, tree};
use crate::policy::arms::DEFAULT_ARM;
use crate::util::text::tidy;
use std::time::Duration;

/// Steps of '+' and '-', in ms.
const INTERVALS: &[u64] = &[100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];
/// An answer is missed when it is later than the interval by this much.
const LATE: Duration = Duration::from_millis(1500);
const WHY_MAX: usize = 500;
/// Lines that PgUp and PgDn move by.
const PAGE: isize = 10;
/// More lines than any list has.
const ALL: isize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Overview,
    Machine,
    Rates,
    Arms,
}

impl View {
    pub const ALL: &[View] = &[View::Overview, View::Machine, View::Rates, View::Arms];

    pub fn name(self) -> &'static str {
        match self {
            View::Overview => "Overview",
            View::Machine => "Machine",
            View::Rates => "Rates",
            View::Arms => "Arms",
        }
    }

    pub fn index(self) -> usize {
        View::ALL.iter().position(|v| *v == self).unwrap_or(0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Quit,
    /// Closes the help; quits if it is closed.
    Leave,
    /// Closes the help.
    Close,
    NextView,
    PreviousView,
    Go(View),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Shows counters that have not counted, or hides them.
    Zeros,
    Pause,
    Longer,
    Shorter,
    Help,
}

/// What the caller must do after an action.
#[derive(Debug)]
pub enum Effect {
    None,
    Quit,
    Interval(Duration),
}

/// MonitorState of the connection to the statistics socket.
#[derive(Clone, Debug, PartialEq)]
pub enum Link {
    /// Not connected yet or no longer; the text says why.
    Waiting(String),
    Connected,
}

/// The selection of each view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chosen {
    /// None: all arms together.
    pub arm: Option<String>,
    pub cpu: Option<u64>,
    /// Index into `ROWS`.
    pub counter: usize,
}

/// Position of a CPU in the picture of the machine. In a picture of LLCs or nodes, one CPU
/// represents its LLC or node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPosition {
    pub line: usize,
    pub column: usize,
    pub cpu: u64,
}

#[derive(Clone, Debug)]
pub struct MonitorState {
    pub view: View,
    pub help: bool,
    pub paused: bool,
    pub interval: Duration,
    pub link: Link,
    pub chosen: Chosen,
    /// View Rates also shows counters that have not counted yet.
    pub zeros: bool,
    /// The sample that is shown. None before the first answer.
    pub sample: Option<Sample>,
    /// None before the second answer.
    pub rates: Option<Rates>,
    pub nodes: Vec<Node>,
    /// The CPUs in the last picture of view Machine, by line and then by column.
    pub(super) places: Vec<CpuPosition>,
    pub history: History,
    /// The latest sample, which is not shown while paused. None until the first one after each
    /// connect.
    last: Option<Sample>,
    /// Times of the last message from the feed, and now.
    heard: Duration,
    now: Duration,
}

impl MonitorState {
    pub fn new(interval: Duration) -> MonitorState {
        MonitorState {
            view: View::Overview,
            help: false,
            paused: false,
            interval,
            link: Link::Waiting("connecting".to_string()),
            chosen: Chosen::default(),
            zeros: false,
            sample: None,
            rates: None,
            nodes: Vec::new(),
            places: Vec::new(),
            history: History::default(),
            last: None,
            heard: Duration::ZERO,
            now: Duration::ZERO,
        }
    }

    pub fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Forgets the latest sample: its counters may be those of another scheduler.
    pub fn connected(&mut self) {
        self.link = Link::Connected;
        self.last = None;
        self.heard = self.now;
    }

    pub fn disconnected(&mut self, why: &str) {
        self.link = Link::Waiting(tidy(why, WHY_MAX));
    }

    pub fn sampled(&mut self, sample: Sample) {
        self.tick(sample.at);
        self.heard = sample.at;
        let rates = self.last.as_ref().map(|old| Rates::between(old, &sample));
        self.last = Some(sample.clone());
        if self.paused {
            return;
        }
        if let Some(rates) = rates {
            self.history.add(&rates, sample.totals.gauges.busy_permille);
            self.rates = Some(rates);
        }
        self.nodes = tree(&sample);
        self.sample = Some(sample);
        self.keep_choice();
    }

    /// How long nothing was heard, if that is too long.
    pub fn silent(&self) -> Option<Duration> {
        let silent = self.now.saturating_sub(self.heard);
        (self.link == Link::Connected && silent > self.interval + LATE).then_some(silent)
    }

    pub fn arms(&self) -> Vec<&str> {
        let arms = self.sample.iter().flat_map(|s| s.totals.arms.keys());
        arms.map(String::as_str).collect()
    }

    /// The chosen arm, or arm default.
    pub fn one_arm(&self) -> &str {
        self.chosen.arm.as_deref().unwrap_or(DEFAULT_ARM)
    }

    pub fn act(&mut self, action: Action) -> Effect {
        match action {
            Action::Close => self.help = false,
            Action::Zeros => self.zeros = !self.zeros,
            Action::Leave if self.help => self.help = false,
            Action::Leave | Action::Quit => return Effect::Quit,
            Action::Help => self.help = !self.help,
            Action::NextView => self.turn(1),
            Action::PreviousView => self.turn(-1),
            Action::Go(view) => self.go(view),
            Action::Pause => self.paused = !self.paused,
            Action::Longer => return self.pace(1),
            Action::Shorter => return self.pace(-1),
            Action::Up => self.vertical(-1),
            Action::Down => self.vertical(1),
            Action::PageUp => self.vertical(-PAGE),
            Action::PageDown => self.vertical(PAGE),
            Action::Home => self.vertical(-ALL),
            Action::End => self.vertical(ALL),
            Action::Left => self.horizontal(-1),
            Action::Right => self.horizontal(1),
        }
        Effect::None
    }

    fn go(&mut self, view: View) {
        (self.view, self.help) = (view, false);
    }

    fn turn(&mut self, by: isize) {
        let count = View::ALL.len() as isize;
        let index = (self.view.index() as isize + by).rem_euclid(count);
        self.go(View::ALL[index as usize]);
    }

    fn pace(&mut self, by: isize) -> Effect {
        let now = self.interval.as_millis() as u64;
        let next = match by {
            1 => INTERVALS.iter().find(|ms| **ms > now),
            _ => INTERVALS.iter().rev().find(|ms| **ms < now),
        };
        match next {
            Some(ms) => {
                self.interval = Duration::from_millis(*ms);
                Effect::Interval(self.interval)
            }
            None => Effect::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::stats::{ArmMetrics, ROWS};

    fn sample(at: u64, arms: &[&str]) -> Sample {
        let mut sample = Sample {
            at: Duration::from_secs(at),
            ..Sample::default()
        };
        for arm in arms {
            let metrics = ArmMetrics::default();
            sample.totals.arms.insert(arm.to_string(), metrics);
        }
        sample.totals.sis_prev = at * at;
        sample
    }

    fn running() -> MonitorState {
        let mut state = MonitorState::new(Duration::from_secs(1));
        state.connected();
        state.sampled(sample(1, &["default", "x"]));
        state.sampled(sample(2, &["default", "x"]));
        state
    }

    fn sis_prev(state: &MonitorState) -> f64 {
        let row = ROWS.iter().position(|r| r.name == "sis_prev").unwrap();
        state.rates.as_ref().unwrap().all.counters[row]
    }

    #[test]
    fn a_pause_holds_the_picture_and_nothing_else() {
        let mut state = running();
        assert_eq!(sis_prev(&state), 3.0);
        state.act(Action::Pause);
        state.sampled(sample(3, &["default"]));
        assert_eq!((sis_prev(&state), state.arms().len()), (3.0, 2));
        state.act(Action::Pause);
        state.sampled(sample(4, &["default"]));
        assert_eq!((sis_prev(&state), state.arms().len()), (7.0, 1));
    }

    #[test]
    fn a_new_connection_has_nothing_to_do_with_the_old_one() {
        let mut state = running();
        state.disconnected("it went away");
        assert_eq!(state.link, Link::Waiting("it went away".into()));
        state.connected();
        state.sampled(sample(100, &["default"]));
        assert_eq!(sis_prev(&state), 3.0);
        state.sampled(sample(101, &["default"]));
        assert_eq!(sis_prev(&state), 201.0);
    }

    #[test]
    fn silence_is_noticed() {
        let mut state = running();
        state.tick(Duration::from_millis(4500));
        assert_eq!(state.silent(), None);
        state.tick(Duration::from_millis(4501));
        assert_eq!(state.silent(), Some(Duration::from_millis(2501)));
        state.sampled(sample(5, &["default"]));
        assert_eq!(state.silent(), None);
    }

    #[test]
    fn q_closes_the_help_before_it_ends() {
        let mut state = running();
        state.act(Action::Help);
        assert!(matches!(state.act(Action::Leave), Effect::None));
        assert!(!state.help);
        assert!(matches!(state.act(Action::Leave), Effect::Quit));
        state.act(Action::Help);
        assert!(matches!(state.act(Action::Quit), Effect::Quit));
    }

    #[test]
    fn an_arm_that_is_gone_is_not_chosen() {
        let mut state = running();
        state.act(Action::Go(View::Arms));
        state.act(Action::End);
        assert_eq!(state.chosen.arm.as_deref(), Some("x"));
        state.sampled(sample(3, &["default"]));
        assert_eq!(state.chosen.arm, None);
    }

    #[test]
    fn the_interval_goes_by_steps_and_stays_in_bounds() {
        let mut state = MonitorState::new(Duration::from_millis(700));
        for _ in 0..100 {
            state.act(Action::Longer);
        }
        assert_eq!(state.interval, Duration::from_secs(60));
        let Effect::Interval(next) = state.act(Action::Shorter) else {
            panic!("an interval is expected")
        };
        assert_eq!(next, Duration::from_secs(30));
        for _ in 0..100 {
            state.act(Action::Shorter);
        }
        assert_eq!(state.interval, Duration::from_millis(100));
    }
}
