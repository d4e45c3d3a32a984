// SPDX-License-Identifier: GPL-2.0-only
//! What is measured, by threads that are pinned to CPUs. Each function measures once, for some
//! milliseconds; times are ns. It pins the calling thread too.

use super::{Ask, Bench, SHORT};
use crate::util::affinity::Affinity;
use anyhow::{Context, Result, ensure};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a speed or a transfer is measured.
const WINDOW: Duration = Duration::from_millis(40);
/// Bytes of a cache line; neighbours are often fetched in pairs.
const LINE: usize = 64;
/// Words of the buffer on which threads compute: half of a small L1.
const WORDS: usize = 2048;
/// The end of a ping-pong.
const OVER: u64 = u64::MAX;

/// How long a thread waits for another one, which other work may keep from its CPU.
const PATIENCE: Duration = Duration::from_secs(1);
/// Rounds of a ping-pong within the window; with fewer, other work had a CPU meanwhile.
const ROUNDS: u64 = 1000;
/// The part of a window that a busy thread has its CPU, at least.
const OWN: f64 = 0.95;
const DISTURBED: &str = "other work had a CPU meanwhile";
/// Walks over data, of which the median counts.
const WALKS: usize = 7;

#[repr(align(128))]
#[derive(Default)]
struct Own(AtomicU64);

/// This machine.
pub struct Here(Instant);

impl Here {
    pub fn begin() -> Here {
        Here(Instant::now())
    }
}

impl Bench for Here {
    fn measure(&mut self, ask: &Ask) -> Result<f64> {
        match *ask {
            Ask::Smt(a, b) => Ok(speed(&[a, b])? / speed(&[a])?),
            Ask::Transfer(a, b) => transfer(a, b),
            Ask::Exit(a, b, idle) => exit(a, b, idle),
            Ask::Refill(a, b, bytes) => refilled(a, b, bytes),
        }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Pins the calling thread.
fn pin(cpu: u16) -> Result<()> {
    let pinned = Affinity::new(&[cpu]).take();
    pinned.with_context(|| format!("this process may not use CPU {cpu}"))
}

/// Spins until `done`. Errors: that takes too long.
fn spin_until(done: impl Fn() -> bool) -> Result<()> {
    let begin = Instant::now();
    loop {
        for _ in 0..1 << 14 {
            if done() {
                return Ok(());
            }
        }
        ensure!(
            begin.elapsed() < PATIENCE,
            "other work kept a thread from its CPU for {} s",
            PATIENCE.as_secs()
        );
    }
}

/// A thread that runs at the other tasks' leave (kernel: SCHED_IDLE).
fn give_way() -> Result<()> {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the struct is alive; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()).context("cannot set SCHED_IDLE"),
    }
}

/// CPU time of the calling thread.
fn cpu_time() -> Duration {
    // SAFETY: all zeroes is a valid value, and it is alive.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Some work of four independent chains of loads, multiplications and shifts.
fn compute(buffer: &mut [u64; WORDS], chains: &mut [u64; 4]) {
    for words in buffer.chunks_exact_mut(4) {
        for (chain, word) in chains.iter_mut().zip(words) {
            *chain = (*chain ^ *word)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29);
            *word = word.wrapping_add(*chain);
        }
    }
}

/// Work per ns of threads that are pinned to these CPUs and run at once.
fn speed(cpus: &[u16]) -> Result<f64> {
    let (ready, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let run = |cpu: u16| -> Result<f64> {
        pin(cpu)?;
        let (mut buffer, mut chains) = ([1; WORDS], [1, 2, 3, 4]);
        ready.fetch_add(1, Ordering::Relaxed);
        spin_until(|| {
            spin_loop();
            ready.load(Ordering::Relaxed) as usize >= cpus.len() || stop.load(Ordering::Relaxed)
        })?;
        let (begin, used, mut done) = (Instant::now(), cpu_time(), 0);
        while begin.elapsed() < WINDOW {
            compute(black_box(&mut buffer), &mut chains);
            done += 1;
        }
        black_box(chains);
        let own = cpu_time() - used;
        ensure!(
            own.as_secs_f64() > OWN * begin.elapsed().as_secs_f64(),
            DISTURBED
        );
        Ok(f64::from(done) / begin.elapsed().as_nanos() as f64)
    };
    let speeds: Result<Vec<f64>> = thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .map(|&cpu| {
                let (run, stop) = (&run, &stop);
                scope.spawn(move || run(cpu).inspect_err(|_| stop.store(true, Ordering::Relaxed)))
            })
            .collect();
        let joined = threads
            .into_iter()
            .map(|t| t.join().expect("it does not panic"));
        joined.collect()
    });
    let speeds = speeds?;
    Ok(speeds.iter().sum::<f64>() / speeds.len() as f64)
}

/// Until a CPU has a line that the other one wrote.
fn transfer(a: u16, b: u16) -> Result<f64> {
    let (line, gone) = (Own::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let pinned = pin(b);
            if pinned.is_ok() {
                pongs(&line);
            }
            gone.store(true, Ordering::Release);
            pinned
        });
        let measured = pin(a).and_then(|()| pings(&line, &gone));
        line.0.store(OVER, Ordering::Release);
        other.join().expect("it does not panic")?;
        measured
    })
}

fn pongs(line: &Own) {
    let mut last = 0;
    loop {
        match line.0.load(Ordering::Acquire) {
            OVER => return,
            now if now > last => {
                last = now + 1;
                line.0.store(last, Ordering::Release);
            }
            // A pause would count as a part of the way.
            _ => {}
        }
    }
}

/// ns of a way, over rounds there and back.
fn pings(line: &Own, gone: &AtomicBool) -> Result<f64> {
    let (start, mut begin, mut rounds) = (Instant::now(), Instant::now(), 0u64);
    loop {
        let sent = 2 * rounds + 1;
        line.0.store(sent, Ordering::Release);
        spin_until(|| line.0.load(Ordering::Acquire) != sent || gone.load(Ordering::Acquire))?;
        if gone.load(Ordering::Acquire) {
            return Ok(f64::NAN);
        }
        rounds += 1;
        // The other thread is there from now on.
        if rounds == 1 {
            begin = Instant::now();
        } else if (rounds < 128 || rounds.is_multiple_of(128)) && start.elapsed() > WINDOW {
            ensure!(rounds >= ROUNDS, DISTURBED);
            return Ok(begin.elapsed().as_nanos() as f64 / (2 * (rounds - 1)) as f64);
        }
    }
}

/// What the wakeup of CPU `b` takes longer after it was idle for so long.
fn exit(a: u16, b: u16, idle: Duration) -> Result<f64> {
    let times = if idle > SHORT { 20 } else { 200 };
    let awake = wakeup(a, b, SHORT, 200, true)?;
    Ok(wakeup(a, b, idle, times, false)? - awake)
}

/// From the wakeup of a thread on CPU `b`, by one on CPU `a`, until it runs: the median of `times`.
/// It has slept for `idle` before. `awake`: its CPU does not idle meanwhile.
fn wakeup(a: u16, b: u16, idle: Duration, times: usize, awake: bool) -> Result<f64> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let spinner = awake.then(|| {
            scope.spawn(|| -> Result<()> {
                pin(b)?;
                give_way()?;
                while !stop.load(Ordering::Relaxed) {
                    spin_loop();
                }
                Ok(())
            })
        });
        let measured = pin(a).and_then(|()| wakeups(b, idle, times));
        stop.store(true, Ordering::Relaxed);
        if let Some(spinner) = spinner {
            spinner.join().expect("it does not panic")?;
        }
        measured
    })
}

fn wakeups(b: u16, idle: Duration, times: usize) -> Result<f64> {
    // Odd: it goes to sleep; even: it woke. `sent`: ns since the start at which it was woken.
    let (turn, sent, took) = (Own::default(), Own::default(), Own::default());
    let over = AtomicBool::new(false);
    let begin = Instant::now();
    let now = || begin.elapsed().as_nanos() as u64;
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| -> Result<()> {
            pin(b)?;
            for round in 0..times as u64 {
                turn.0.store(2 * round + 1, Ordering::Release);
                while sent.0.load(Ordering::Acquire) == 0 {
                    if over.load(Ordering::Acquire) {
                        return Ok(());
                    }
                    thread::park();
                }
                let at = now();
                took.0.store(
                    at.saturating_sub(sent.0.load(Ordering::Acquire)),
                    Ordering::Release,
                );
                sent.0.store(0, Ordering::Release);
                turn.0.store(2 * round + 2, Ordering::Release);
            }
            Ok(())
        });
        let waits = |until: u64| {
            spin_until(|| {
                spin_loop();
                turn.0.load(Ordering::Acquire) >= until || sleeper.is_finished()
            })
        };
        let round = |round: u64| -> Result<f64> {
            waits(2 * round + 1)?;
            let wait = Instant::now();
            while wait.elapsed() < idle {
                spin_loop();
            }
            sent.0.store(now().max(1), Ordering::Release);
            sleeper.thread().unpark();
            waits(2 * round + 2)?;
            Ok(took.0.load(Ordering::Acquire) as f64)
        };
        let all: Result<Vec<f64>> = (0..times as u64).map(round).collect();
        over.store(true, Ordering::Release);
        sleeper.thread().unpark();
        sleeper.join().expect("it does not panic")?;
        Ok(super::median(&mut all?))
    })
}

/// What the first walk over `bytes` takes longer on CPU `b` than later ones, after the thread used
/// them on CPU `a`.
fn refill(a: u16, b: u16, bytes: usize) -> Result<f64> {
    thread::scope(|scope| {
        let walker = scope.spawn(|| {
            let mut data = vec![0u8; bytes];
            let mut walk = || {
                let begin = Instant::now();
                for line in data.chunks_mut(LINE) {
                    line[0] = line[0].wrapping_add(1);
                }
                black_box(&mut data);
                begin.elapsed().as_nanos() as f64
            };
            pin(a)?;
            for _ in 0..4 {
                walk();
            }
            pin(b)?;
            let first = walk();
            let mut later: Vec<f64> = (0..5).map(|_| walk()).collect();
            Ok(first - super::median(&mut later))
        });
        walker.join().expect("it does not panic")
    })
}

/// The same for a MB, of several walks.
fn refilled(a: u16, b: u16, bytes: usize) -> Result<f64> {
    let walks: Result<Vec<f64>> = (0..WALKS).map(|_| refill(a, b, bytes)).collect();
    Ok(super::median(&mut walks?) * 1e6 / bytes as f64)
}
