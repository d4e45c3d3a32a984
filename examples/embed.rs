// SPDX-License-Identifier: GPL-2.0-only
//! A bundle: two schedulers in one program, which switches from one to the other and back. Needs
//! root, as `scx_roost` does. Nothing here is hidden from other crates.
//!
//! Both are scx_roost, with different presets; another one would be another variant of `Choice`.

use scx_roost::{Change, Handle, Op, Scheduler, Settings};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// Loading can take this long on a slow machine.
const LOAD_TIME: Duration = Duration::from_secs(120);
/// How long each runs here.
const TURN: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
enum Choice {
    Mainline,
    Roost,
}

/// A scheduler that runs in a thread of its own. Dropping it unloads the scheduler.
struct Running {
    handle: Handle,
    attached: Receiver<u64>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), scx_roost::Error>>>,
}

impl Running {
    fn start(choice: Choice) -> Result<Running, Box<dyn Error>> {
        let preset = match choice {
            Choice::Mainline => "mainline",
            Choice::Roost => "roost",
        };
        let (tell, attached) = channel();
        let scheduler = Scheduler::builder()
            .settings(Settings::of_preset(preset)?)
            .without_sockets()
            .on_attached(move |restarts| {
                // Fails once nobody waits for it any more.
                let _ = tell.send(restarts);
            })
            .on_ended(move |ended| match &ended.error {
                Some(error) => println!("{choice:?} ended: {error}"),
                None => println!("{choice:?} is no longer loaded"),
            })
            .build()?;
        let over = Arc::new(AtomicBool::new(false));
        let flag = over.clone();
        Ok(Running {
            handle: scheduler.handle(),
            attached,
            over,
            thread: Some(spawn(move || scheduler.run_until(&flag))),
        })
    }

    /// Waits until it is attached. An error of the scheduler is an error here.
    fn ready(&mut self) -> Result<(), Box<dyn Error>> {
        if self.attached.recv_timeout(LOAD_TIME).is_ok() {
            return Ok(());
        }
        self.stop()?;
        Err("the scheduler was not attached in time".into())
    }

    fn stop(&mut self) -> Result<(), scx_roost::Error> {
        self.over.store(true, Ordering::Release);
        match self.thread.take() {
            Some(thread) => thread.join().expect("the thread of a run does not panic"),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(e) = self.stop() {
            eprintln!("{e}");
        }
    }
}

/// Runs one for a turn, and changes it halfway.
fn turn(choice: Choice) -> Result<(), Box<dyn Error>> {
    let mut running = Running::start(choice)?;
    running.ready()?;
    sleep(TURN / 2);
    running.handle.request(Op::Set {
        arm: "default".to_string(),
        change: Change {
            disable: vec!["avg_idle".to_string()],
            ..Change::default()
        },
    })?;
    sleep(TURN / 2);
    let stats = running.handle.stats();
    println!(
        "{choice:?}: preset {}, features {}, {} wakeups placed on an idle core",
        stats["preset"], stats["features"], stats["placed_idle_core"]
    );
    Ok(running.stop()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    for choice in [Choice::Mainline, Choice::Roost, Choice::Mainline] {
        turn(choice)?;
    }
    println!("the kernel's own scheduler is back");
    Ok(())
}
