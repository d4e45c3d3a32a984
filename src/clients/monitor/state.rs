// SPDX-License-Identifier: GPL-2.0-only
//! What is shown, and what a key does to it. Pure: time comes in with the samples, and requests to
//! the outside go out as an `Effect`.

use super::choose::{ALL, Chosen, Drawn, List, PAGE};
use super::history::History;
use super::rates::Rates;
use super::sample::Sample;
use super::topology::{Node, tree};
use crate::policy::arms::DEFAULT_ARM;
use crate::policy::change::Change;
use crate::policy::features::{FEATURES, Feature};
use crate::util::text::tidy;
use crate::wire::protocol::Op;
use std::time::Duration;

/// Steps of '+' and '-', in ms.
const INTERVALS: &[u64] = &[100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];
/// How long a message is shown.
const SAID_FOR: Duration = Duration::from_secs(15);
/// An answer is missed when it is later than the interval by this much.
const LATE: Duration = Duration::from_millis(1500);
const SAID_MAX: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Overview,
    Machine,
    Rates,
    Arms,
    Latency,
    Features,
    Conditions,
}

impl View {
    pub const ALL: &[View] = &[
        View::Overview,
        View::Machine,
        View::Rates,
        View::Arms,
        View::Latency,
        View::Features,
        View::Conditions,
    ];

    pub fn name(self) -> &'static str {
        match self {
            View::Overview => "Overview",
            View::Machine => "Machine",
            View::Rates => "Rates",
            View::Arms => "Arms",
            View::Latency => "Latency",
            View::Features => "Features",
            View::Conditions => "Conditions",
        }
    }

    pub fn index(self) -> usize {
        View::ALL.iter().position(|v| *v == self).unwrap_or(0)
    }
}

/// A key that edits the filter of view Rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    Begin,
    Char(char),
    Erase,
    Done,
    Clear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Quit,
    /// Closes the help; quits if it is closed.
    Leave,
    /// Closes the help; without it, ends the filter.
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
    Toggle,
    /// Shows counters that have not counted, or hides them.
    Zeros,
    /// Sorts counters by their rates, or by groups.
    Sort,
    Filter(Typed),
    /// Column and line.
    Click(u16, u16),
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
    /// Send it to the control socket.
    Change(Op),
}

/// State of the connection to the statistics socket.
#[derive(Clone, Debug, PartialEq)]
pub enum Link {
    /// Not connected yet or no longer; the text says why.
    Waiting(String),
    Connected,
}

/// The last message about a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    pub text: String,
    pub bad: bool,
    at: Duration,
}

#[derive(Clone, Debug)]
pub struct State {
    pub view: View,
    pub help: bool,
    pub paused: bool,
    pub interval: Duration,
    pub link: Link,
    pub said: Option<Said>,
    pub chosen: Chosen,
    pub list: List,
    /// The sample that is shown. None before the first answer.
    pub sample: Option<Sample>,
    /// None before the second answer.
    pub rates: Option<Rates>,
    pub nodes: Vec<Node>,
    /// The last picture.
    pub(super) drawn: Drawn,
    pub history: History,
    /// The latest sample, which is not shown while paused. None until the first one after each
    /// connect.
    last: Option<Sample>,
    /// Times of the last message from the feed, and now.
    heard: Duration,
    now: Duration,
}

impl State {
    pub fn new(interval: Duration) -> State {
        State {
            view: View::Overview,
            help: false,
            paused: false,
            interval,
            link: Link::Waiting("connecting".to_string()),
            said: None,
            chosen: Chosen::default(),
            list: List::default(),
            sample: None,
            rates: None,
            nodes: Vec::new(),
            drawn: Drawn::default(),
            history: History::default(),
            last: None,
            heard: Duration::ZERO,
            now: Duration::ZERO,
        }
    }

    pub fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
        let old = |said: &mut Said| now.saturating_sub(said.at) >= SAID_FOR;
        self.said.take_if(old);
    }

    /// Forgets the latest sample: its counters may be those of another scheduler.
    pub fn connected(&mut self) {
        self.link = Link::Connected;
        self.last = None;
        self.heard = self.now;
    }

    pub fn disconnected(&mut self, why: &str) {
        self.link = Link::Waiting(tidy(why, SAID_MAX));
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

    pub fn say(&mut self, text: &str, bad: bool) {
        self.said = Some(Said {
            text: tidy(text, SAID_MAX),
            bad,
            at: self.now,
        });
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
            Action::Close if self.help => self.help = false,
            Action::Close => self.list.filter.clear(),
            Action::Zeros => self.list.zeros = !self.list.zeros,
            Action::Sort => self.list.sorted = !self.list.sorted,
            Action::Filter(typed) => self.filter(typed),
            Action::Click(column, line) => self.click(column.into(), line.into()),
            Action::Leave if self.help => self.help = false,
            Action::Leave | Action::Quit => return Effect::Quit,
            Action::Help => self.help = !self.help,
            Action::NextView => self.turn(1),
            Action::PreviousView => self.turn(-1),
            Action::Go(view) => self.go(view),
            Action::Pause => self.paused = !self.paused,
            Action::Longer => return self.pace(1),
            Action::Shorter => return self.pace(-1),
            Action::Toggle => return self.toggle(),
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

    pub(super) fn go(&mut self, view: View) {
        (self.view, self.help, self.list.typing) = (view, false, false);
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

    pub fn feature(&self) -> &'static Feature {
        &FEATURES[self.chosen.feature.min(FEATURES.len() - 1)]
    }

    /// Requests to switch the chosen feature from its latest known state.
    fn toggle(&mut self) -> Effect {
        if self.view != View::Features || self.help {
            return Effect::None;
        }
        let (feature, arm) = (self.feature(), self.one_arm().to_string());
        let Some(sample) = self.last.as_ref().or(self.sample.as_ref()) else {
            return Effect::None;
        };
        if !sample.totals.arms.contains_key(&arm) {
            return Effect::None;
        }
        let on = sample.features_of(&arm)[self.chosen.feature];
        let name = vec![feature.name.to_string()];
        let (enable, disable) = if on { (vec![], name) } else { (name, vec![]) };
        let change = Change {
            enable,
            disable,
            ..Change::default()
        };
        self.say(
            &format!(
                "asked to switch {} {} on arm {arm} ...",
                feature.name,
                if on { "off" } else { "on" }
            ),
            false,
        );
        Effect::Change(Op::Set { arm, change })
    }

    /// Shows the scheduler's answer to a change.
    pub fn answered(&mut self, op: &Op, answer: Result<u64, String>) {
        let what = describe(op);
        match answer {
            Ok(generation) => self.say(
                &format!("{what}: generation {generation} is in force"),
                false,
            ),
            Err(why) => self.say(&format!("{what}: {why}"), true),
        }
    }
}

/// A change in words.
pub fn describe(op: &Op) -> String {
    match op {
        Op::Set { arm, change } => {
            let on = change.enable.iter().map(|name| format!("{name} on"));
            let off = change.disable.iter().map(|name| format!("{name} off"));
            let what: Vec<String> = on.chain(off).collect();
            format!("{}, arm {arm}", what.join(", "))
        }
        _ => "the change".to_string(),
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
            let metrics = ArmMetrics {
                features: "prev_idle".into(),
                ..ArmMetrics::default()
            };
            sample.totals.arms.insert(arm.to_string(), metrics);
        }
        sample.totals.sis_prev = at * at;
        sample
    }

    fn running() -> State {
        let mut state = State::new(Duration::from_secs(1));
        state.connected();
        state.sampled(sample(1, &["default", "x"]));
        state.sampled(sample(2, &["default", "x"]));
        state
    }

    fn sis_prev(state: &State) -> f64 {
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
    fn the_space_bar_asks_for_the_opposite() {
        let mut state = running();
        assert!(matches!(state.act(Action::Toggle), Effect::None));
        state.act(Action::Go(View::Features));
        state.act(Action::Right);
        for (on, enable, disable) in [(true, 0, 1), (false, 1, 0)] {
            let name = state.feature().name;
            let mut sample = sample(5, &["default", "x"]);
            let arm = sample.totals.arms.get_mut("x").unwrap();
            arm.features = if on { name.into() } else { "none".into() };
            state.sampled(sample);
            let Effect::Change(Op::Set { arm, change }) = state.act(Action::Toggle) else {
                panic!("a change is expected")
            };
            assert_eq!(arm, "x");
            assert_eq!(
                (change.enable.len(), change.disable.len()),
                (enable, disable)
            );
            assert_eq!([change.enable, change.disable].concat(), [name]);
        }
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
    fn what_was_said_is_forgotten_in_time() {
        let mut state = running();
        state.say("no", true);
        state.tick(Duration::from_secs(16));
        assert!(state.said.is_some());
        state.tick(Duration::from_secs(17));
        assert!(state.said.is_none());
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
        let mut state = State::new(Duration::from_millis(700));
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
