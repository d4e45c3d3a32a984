// SPDX-License-Identifier: GPL-2.0-only
//! The loop that looks at the machine while a scheduler is loaded, on a thread of its own: when a file does not answer, the
//! scheduler can be unloaded all the same.

use crate::control::Control;
use crate::machine::Clocks;
use crate::model::Pace;
use crate::sampler::Samplers;
use crate::stats::host::Condition;
use crate::stats::source::CounterSource;
use crate::stop::{Stop, Stopper, Woken, stopper};
use crate::watch::{LOOK_SLOW, Looked, Past, Watch};
use anyhow::{Context, Result};
use crossbeam::channel::{Receiver, bounded};
use crossbeam::select;
use log::warn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How long a look that has begun may take when it is to stop.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is seen whether a look hangs; each time is a wakeup of an idle machine.
const WATCHED: Duration = Duration::from_secs(5);
/// And while one is under way then, so that somebody else has to see the scheduler's end.
const WATCHED_CLOSELY: Duration = Duration::from_millis(500);

/// They go on until dropped, or until the scheduler has ended, or the machine is another one.
pub struct Looks {
    stopper: Option<Stopper>,
    over: Receiver<Over>,
    control: Control,
    source: CounterSource,
    progress: Progress,
    left_behind: Arc<AtomicBool>,
}

/// Why there are no more of them.
pub struct Over {
    /// The machine is no longer the one that was loaded.
    pub machine_changed: bool,
    /// The last one hangs, and is not waited for.
    pub left_behind: bool,
    pub past: Past,
}

/// What is known of the looks from beside them.
#[derive(Clone)]
struct Progress(Arc<Mutex<State>>);

struct State {
    /// When the look that is under way began; None: none is.
    since: Option<Instant>,
    /// Before that one.
    past: Past,
}

impl Looks {
    /// Frequencies and idle periods are sampled every `period`.
    pub fn start(
        watch: Watch,
        control: &Control,
        source: &CounterSource,
        period: Duration,
    ) -> Result<Looks> {
        let (stopper, stop) = stopper();
        let (tell, over) = bounded(1);
        let progress = Progress::new(watch.past());
        let left_behind = watch.left_behind();
        let (told, of_thread) = (control.clone(), progress.clone());
        let run = move || {
            // Nobody is there any more if this comes too late.
            let _ = tell.send(look_on(watch, &told, period, &of_thread, &stop));
        };
        let thread = Builder::new().name("looks".to_string()).spawn(run);
        thread.context("cannot start the thread that looks at the machine")?;
        Ok(Looks {
            stopper: Some(stopper),
            over,
            control: control.clone(),
            source: source.clone(),
            progress,
            left_behind,
        })
    }

    /// Until they are over, or `stop` says so, or the scheduler has ended and one of them hangs.
    pub fn wait(mut self, stop: &Stop) -> Result<Over> {
        let mut nap = WATCHED;
        loop {
            select! {
                recv(self.over) -> over => return over.context(
                    "the thread that looks at the machine has died: report this with the log",
                ),
                recv(stop.channel()) -> _ => break,
                default(nap) => (),
            }
            let looking = self.progress.judge(&self.source);
            if looking && self.control.ended() {
                break;
            }
            nap = if looking { WATCHED_CLOSELY } else { WATCHED };
        }
        drop(self.stopper.take());
        Ok(match self.over.recv_timeout(PATIENCE) {
            Ok(over) => over,
            Err(_) => self.leave_behind(),
        })
    }

    fn leave_behind(&self) -> Over {
        self.left_behind.store(true, Ordering::Release);
        warn!(
            "a look at the machine hangs: a file in /sys or /proc does not answer. It is not waited for"
        );
        Over {
            machine_changed: false,
            left_behind: true,
            past: self.progress.lock().past.left_behind(&Clocks::now()),
        }
    }
}

impl Progress {
    fn new(past: Past) -> Progress {
        Progress(Arc::new(Mutex::new(State { since: None, past })))
    }

    fn begin(&self, at: Instant, past: Past) {
        *self.lock() = State {
            since: Some(at),
            past,
        };
    }

    fn end(&self) {
        self.lock().since = None;
    }

    /// True: a look is under way. Of one that takes too long it is told: it cannot do that itself.
    fn judge(&self, source: &CounterSource) -> bool {
        // Held until it is told: what the look itself tells afterwards counts.
        let state = self.lock();
        let Some(since) = state.since else {
            return false;
        };
        if since.elapsed() > LOOK_SLOW {
            let text = format!(
                "a look at the machine has taken {} s and goes on: a file does not answer",
                since.elapsed().as_secs()
            );
            source.set_condition(Condition::PeriodIsSlow, Some(text));
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn look_on(
    mut watch: Watch,
    control: &Control,
    period: Duration,
    progress: &Progress,
    stop: &Stop,
) -> Over {
    let bell = control.bell();
    let (mut pace, mut samplers) = (Pace::new(), Samplers::new(stop.clone()));
    let left_behind = watch.left_behind();
    let mut next = Instant::now();
    let mut machine_changed = false;
    while !stop.stopped() && !control.ended() {
        samplers.follow(control, period, pace.idle());
        match stop.sleep_or(&bell, next - Instant::now()) {
            Woken::Stopped => break,
            // Something has changed or ended: whatever it is, the next look is not far.
            Woken::Rung => next = next.min(Instant::now() + pace.hurry()),
            Woken::InTime => {
                let begin = Instant::now();
                if control.ended() {
                    break;
                }
                let now = Clocks::now();
                watch.begun(pace.lateness(begin - next), &now);
                progress.begin(begin, watch.past());
                let looked = watch.look(now, pace.idle());
                progress.end();
                if left_behind.load(Ordering::Acquire) {
                    break;
                }
                watch.ended(begin.elapsed(), &Clocks::now());
                let Looked::Seen(seen) = looked else {
                    machine_changed = true;
                    break;
                };
                let nap = pace.after(seen);
                watch.tell(nap);
                next = Instant::now() + nap;
            }
        }
    }
    Over {
        machine_changed,
        left_behind: false,
        past: watch.past(),
    }
}
