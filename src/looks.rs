// SPDX-License-Identifier: GPL-2.0-only
//! The loop that looks at the machine while a scheduler is loaded, on a thread of its own: when a file does not answer, the
//! scheduler can be unloaded all the same.

use crate::control::Control;
use crate::machine::Clocks;
use crate::model::Pace;
use crate::sampler::Samplers;
use crate::stop::{Stop, Stopper, Woken, stopper};
use crate::watch::{Looked, Past, Watch};
use anyhow::{Context, Result, bail};
use crossbeam::channel::{Receiver, bounded};
use crossbeam::select;
use log::warn;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How long a look that has begun may take when it is to stop.
const PATIENCE: Duration = Duration::from_secs(2);

/// They go on until dropped, or until the scheduler has ended, or the machine is another one.
pub struct Looks {
    stopper: Option<Stopper>,
    over: Receiver<Over>,
}

/// Why there are no more of them.
pub struct Over {
    /// The machine is no longer the one that was loaded.
    pub machine_changed: bool,
    pub past: Past,
}

impl Looks {
    /// Frequencies and idle periods are sampled every `period`.
    pub fn start(watch: Watch, control: Control, period: Duration) -> Result<Looks> {
        let (stopper, stop) = stopper();
        let (tell, over) = bounded(1);
        let run = move || {
            // Nobody is there any more if this comes too late.
            let _ = tell.send(look_on(watch, &control, period, &stop));
        };
        let thread = Builder::new().name("looks".to_string()).spawn(run);
        thread.context("cannot start the thread that looks at the machine")?;
        Ok(Looks {
            stopper: Some(stopper),
            over,
        })
    }

    /// Until they are over, or `stop` says so. None: one of them hangs, and is left behind.
    pub fn wait(mut self, stop: &Stop) -> Result<Option<Over>> {
        select! {
            recv(self.over) -> over => match over {
                Ok(over) => return Ok(Some(over)),
                Err(_) => bail!("the thread that looks at the machine has died: report this with the log"),
            },
            recv(stop.channel()) -> _ => (),
        }
        drop(self.stopper.take());
        let over = self.over.recv_timeout(PATIENCE).ok();
        if over.is_none() {
            warn!(
                "a look at the machine hangs: a file in /sys or /proc does not answer. It is not waited for"
            );
        }
        Ok(over)
    }
}

fn look_on(mut watch: Watch, control: &Control, period: Duration, stop: &Stop) -> Over {
    let bell = control.bell();
    let (mut pace, mut samplers) = (Pace::new(), Samplers::default());
    let mut next = Instant::now();
    let mut machine_changed = false;
    while !control.ended() {
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
                let Looked::Seen(seen) = watch.look(now, pace.idle()) else {
                    machine_changed = true;
                    break;
                };
                watch.ended(begin.elapsed(), &Clocks::now());
                let nap = pace.after(seen);
                watch.tell(nap);
                next = Instant::now() + nap;
            }
        }
    }
    let past = watch.past();
    Over {
        machine_changed,
        past,
    }
}
