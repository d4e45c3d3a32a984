// SPDX-License-Identifier: GPL-2.0-only
//! The loop: it waits for a key, a sample, a second or the end, updates the state, and draws.

use super::Options;
use super::draw::{frame, places, theme::Theme};
use super::feed::{self, News};
use super::keys::action;
use super::screen::Screen;
use super::state::{Action, Effect, MonitorState};
use crate::util::stop::Stop;
use crate::wire::socket::spawn;
use anyhow::{Context, Result, anyhow};
use crossbeam_channel::{Receiver, RecvError, Sender, bounded, select};
use ratatui::crossterm::event::{self, Event};
use std::time::{Duration, Instant};

/// Longest time between two pictures. They show times, so they change even if nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// Keys handled before the next picture. Pasted text would otherwise draw one picture per
/// character.
const KEYS_MAX: usize = 256;

pub fn run(options: &Options, stop: &Stop) -> Result<()> {
    let begin = Instant::now();
    // Start the feed before taking over the terminal, so that an error is a plain line.
    let (news, pace) = feed::start(&options.stats_path, options.interval, begin, stop.clone())?;
    let theme = Theme::of_environment();
    let mut screen = Screen::open()?;
    let keys = keys()?;
    let mut monitor = Monitor {
        state: MonitorState::new(options.interval),
        begin,
        pace,
        going_on: true,
    };
    while monitor.going_on {
        let draw = |f: &mut ratatui::Frame| frame(f, &monitor.state, theme);
        match screen.terminal.draw(draw) {
            Ok(picture) => {
                let places = places(&monitor.state, theme, picture.area);
                monitor.state.drawn(places);
            }
            // The terminal is gone, and SIGHUP will probably stop us.
            Err(_) if stop.sleep(TICK) => return Err(anyhow!("cannot draw on the terminal")),
            Err(_) => return Ok(()),
        }
        monitor.wait(&keys, &news, stop)?;
        monitor.state.tick(begin.elapsed());
    }
    Ok(())
}

struct Monitor {
    state: MonitorState,
    begin: Instant,
    pace: Sender<Duration>,
    going_on: bool,
}

impl Monitor {
    /// Waits for the first of all events, and handles it.
    fn wait(
        &mut self,
        keys: &Receiver<std::io::Result<Event>>,
        news: &Receiver<News>,
        stop: &Stop,
    ) -> Result<()> {
        select! {
            recv(stop.channel()) -> _ => self.going_on = false,
            recv(keys) -> key => {
                self.event(key)?;
                for key in keys.try_iter().take(KEYS_MAX) {
                    self.event(Ok(key))?;
                }
            }
            recv(news) -> news => self.hear(news.context("the thread that asks the scheduler ended")?)?,
            default(TICK) => (),
        }
        Ok(())
    }

    fn hear(&mut self, news: News) -> Result<()> {
        self.state.tick(self.begin.elapsed());
        match news {
            News::Connected => self.state.connected(),
            News::Disconnected(why) => self.state.disconnected(&why),
            News::Sample(sample) => self.state.sampled(*sample),
            News::Over(e) => return Err(e),
        }
        Ok(())
    }

    fn event(&mut self, event: Result<std::io::Result<Event>, RecvError>) -> Result<()> {
        let event = event.context("the thread that reads keys ended")?;
        // A resize needs no handling: the next picture takes the new size.
        let action = match event.context("cannot read keys from the terminal")? {
            Event::Key(key) => action(&key),
            _ => None,
        };
        action.into_iter().for_each(|a| self.act(a));
        Ok(())
    }

    fn act(&mut self, action: Action) {
        match self.state.act(action) {
            Effect::None => (),
            Effect::Quit => self.going_on = false,
            Effect::Interval(interval) => {
                let _ = self.pace.send(interval);
            }
        }
    }
}

/// Reads keys and resizes in a thread. A read from the terminal cannot be cancelled, so the thread
/// ends with the process.
fn keys() -> Result<Receiver<std::io::Result<Event>>> {
    let (sender, receiver) = bounded(KEYS_MAX);
    spawn("monitor-keys", move || {
        loop {
            let event = event::read();
            let over = event.is_err();
            if sender.send(event).is_err() || over {
                break;
            }
        }
    })?;
    Ok(receiver)
}
