// SPDX-License-Identifier: GPL-2.0-only
//! What is measured, by threads that are pinned to CPUs. Each function measures once, for some
//! milliseconds; times are ns.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_setaffinity};
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

#[repr(align(128))]
#[derive(Default)]
struct Own(AtomicU64);

/// Pins the calling thread.
pub fn pin(cpu: u16) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu.into());
    sched_setaffinity(None, &set).with_context(|| format!("this process may not use CPU {cpu}"))
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
pub fn speed(cpus: &[u16]) -> Result<f64> {
    let (ready, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let run = |cpu: u16| -> Result<f64> {
        pin(cpu)?;
        let (mut buffer, mut chains) = ([1; WORDS], [1, 2, 3, 4]);
        ready.fetch_add(1, Ordering::Relaxed);
        while (ready.load(Ordering::Relaxed) as usize) < cpus.len() && !stop.load(Ordering::Relaxed)
        {
            spin_loop();
        }
        let (begin, mut done) = (Instant::now(), 0);
        while begin.elapsed() < WINDOW {
            compute(black_box(&mut buffer), &mut chains);
            done += 1;
        }
        black_box(chains);
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
pub fn transfer(a: u16, b: u16) -> Result<f64> {
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
        let measured = pin(a).map(|()| pings(&line, &gone));
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
fn pings(line: &Own, gone: &AtomicBool) -> f64 {
    let (start, mut begin, mut rounds) = (Instant::now(), Instant::now(), 0u64);
    loop {
        let sent = 2 * rounds + 1;
        line.0.store(sent, Ordering::Release);
        while line.0.load(Ordering::Acquire) == sent {
            if gone.load(Ordering::Acquire) {
                return f64::NAN;
            }
        }
        rounds += 1;
        // The other thread is there from now on.
        if rounds == 1 {
            begin = Instant::now();
        } else if (rounds < 128 || rounds.is_multiple_of(128)) && start.elapsed() > WINDOW {
            return begin.elapsed().as_nanos() as f64 / (2 * (rounds - 1)) as f64;
        }
    }
}

/// From the wakeup of a thread on CPU `b`, by one on CPU `a`, until it runs: the median of `times`.
/// It has slept for `idle` before. `awake`: its CPU does not idle meanwhile.
pub fn wakeup(a: u16, b: u16, idle: Duration, times: usize, awake: bool) -> Result<f64> {
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
    let begin = Instant::now();
    let now = || begin.elapsed().as_nanos() as u64;
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| -> Result<()> {
            pin(b)?;
            for round in 0..times as u64 {
                turn.0.store(2 * round + 1, Ordering::Release);
                while sent.0.load(Ordering::Acquire) == 0 {
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
        let mut all = Vec::new();
        for round in 0..times as u64 {
            while turn.0.load(Ordering::Acquire) < 2 * round + 1 && !sleeper.is_finished() {
                spin_loop();
            }
            let wait = Instant::now();
            while wait.elapsed() < idle {
                spin_loop();
            }
            sent.0.store(now().max(1), Ordering::Release);
            sleeper.thread().unpark();
            while turn.0.load(Ordering::Acquire) < 2 * round + 2 && !sleeper.is_finished() {
                spin_loop();
            }
            all.push(took.0.load(Ordering::Acquire) as f64);
        }
        sleeper.join().expect("it does not panic")?;
        Ok(super::median(&mut all))
    })
}

/// What the first walk over `bytes` takes longer on CPU `b` than later ones, after the thread used
/// them on CPU `a`.
pub fn refill(a: u16, b: u16, bytes: usize) -> Result<f64> {
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
