// SPDX-License-Identifier: GPL-2.0-only
//! The thread that looks at the machine while a scheduler is loaded. It is separate so that the
//! scheduler can be unloaded even while a read of a file hangs.

use crate::daemon::control::Control;
use crate::daemon::sampler::Samplers;
use crate::daemon::watch::{LOOK_SLOW, Looked, Past, Watch};
use crate::machine::Clocks;
use crate::model::Pace;
use crate::util::stop::{Stop, Stopper, Woken, stopper};
use crate::wire::stats::host::Condition;
use crate::wire::stats::source::CounterSource;
use anyhow::{Context, Result};
use crossbeam_channel::select;
use crossbeam_channel::{Receiver, bounded};
use log::warn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How long a look may go on after it was asked to stop, before it is left behind.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often `wait` checks whether a look hangs. Each check wakes an idle machine.
const WATCHED: Duration = Duration::from_secs(5);
/// The same while a look is under way: the looks thread may hang, so `wait` must notice that the
/// scheduler ended.
const WATCHED_CLOSELY: Duration = Duration::from_millis(500);

/// The looks go on until this is dropped, the scheduler has ended, or the machine has changed.
pub struct Looks {
    stopper: Option<Stopper>,
    over: Receiver<Over>,
    control: Control,
    source: CounterSource,
    progress: Progress,
    left_behind: Arc<AtomicBool>,
}

/// Why the looks ended.
pub struct Over {
    /// The machine is no longer the one that was loaded.
    pub machine_changed: bool,
    /// The last look hangs; nothing waits for it.
    pub left_behind: bool,
    pub past: Past,
}

/// The progress of the looks, shared with the thread that waits for them.
#[derive(Clone)]
struct Progress(Arc<Mutex<LookState>>);

struct LookState {
    /// When the current look began; None: no look is under way.
    since: Option<Instant>,
    /// As it was before that look.
    past: Past,
}

impl Looks {
    /// Starts the thread. Frequencies and idle periods are sampled every `period`.
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
            // Fails if this look was left behind: nothing receives any more.
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

    /// Waits until the looks are over, or `stop`, or until the scheduler has ended while a look
    /// hangs.
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
            "a look at the machine hangs: reading a file in /sys or /proc does not return. The daemon goes on without it"
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
        Progress(Arc::new(Mutex::new(LookState { since: None, past })))
    }

    fn begin(&self, at: Instant, past: Past) {
        *self.lock() = LookState {
            since: Some(at),
            past,
        };
    }

    fn end(&self) {
        self.lock().since = None;
    }

    /// Whether a look is under way. Reports one that takes too long, because a hung look cannot
    /// report itself.
    fn judge(&self, source: &CounterSource) -> bool {
        // Locked until the report is made, so that a later report by the look itself wins.
        let state = self.lock();
        let Some(since) = state.since else {
            return false;
        };
        if since.elapsed() > LOOK_SLOW {
            let text = format!(
                "a look at the machine has taken {} s so far: reading a file does not return",
                since.elapsed().as_secs()
            );
            source.set_condition(Condition::PeriodIsSlow, Some(text));
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, LookState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at the machine until `stop`, the end of the scheduler, or another machine.
fn look_on(
    mut watch: Watch,
    control: &Control,
    period: Duration,
    progress: &Progress,
    stop: &Stop,
) -> Over {
    let bell = control.bell();
    let (mut pace, mut samplers) = (Pace::new(), Samplers::new(stop.clone()));
    let mut next = Instant::now();
    let mut machine_changed = false;
    while !stop.stopped() && !control.ended() {
        samplers.follow(control, period, pace.idle());
        match stop.sleep_or(&bell, next - Instant::now()) {
            Woken::Stopped => break,
            // Something changed or ended: the next look comes soon.
            Woken::Rung => next = next.min(Instant::now() + pace.hurry()),
            Woken::InTime if control.ended() => break,
            Woken::InTime => match look_once(&mut watch, &mut pace, progress, next) {
                Next::LookAt(at) => next = at,
                Next::LeftBehind => break,
                Next::MachineChanged => {
                    machine_changed = true;
                    break;
                }
            },
        }
    }
    Over {
        machine_changed,
        left_behind: false,
        past: watch.past(),
    }
}

/// What follows a look.
enum Next {
    LookAt(Instant),
    /// The look took so long that nothing waits for it any more.
    LeftBehind,
    MachineChanged,
}

/// `due`: when this look was to begin.
fn look_once(watch: &mut Watch, pace: &mut Pace, progress: &Progress, due: Instant) -> Next {
    let begin = Instant::now();
    let now = Clocks::now();
    watch.begun(pace.lateness(begin - due), &now);
    progress.begin(begin, watch.past());
    let looked = watch.look(now, pace.idle());
    progress.end();
    if watch.left_behind().load(Ordering::Acquire) {
        return Next::LeftBehind;
    }
    watch.ended(begin.elapsed(), &Clocks::now());
    let Looked::Seen(seen) = looked else {
        return Next::MachineChanged;
    };
    let nap = pace.after(seen);
    watch.set_gauges(nap);
    Next::LookAt(Instant::now() + nap)
}
