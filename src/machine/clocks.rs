// SPDX-License-Identifier: GPL-2.0-only
//! Three clocks of the kernel, read at one instant; and the period of its tick.

use rustix::time::{ClockId, clock_getres, clock_gettime};
use std::time::Duration;

/// Reads within this time count as one instant. It is far below the shortest suspend and the
/// smallest jump that are reported.
const AT_ONCE: Duration = Duration::from_millis(1);
/// After this many attempts the fastest one is taken.
const TRIES: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Does not advance while the machine is suspended.
    pub monotonic: Duration,
    /// Advances while the machine is suspended.
    pub boot: Duration,
    /// The date, which users may set.
    pub real: Duration,
}

impl Clocks {
    pub fn now() -> Clocks {
        between(clock)
    }
}

/// The time between two ticks: the step of the kernel's coarse clocks. None: it is not told.
pub fn tick_period() -> Option<Duration> {
    let step = clock_getres(ClockId::MonotonicCoarse);
    let ns = u64::try_from(step.tv_nsec).ok()?;
    (step.tv_sec == 0 && ns > 0).then_some(Duration::from_nanos(ns))
}

/// The clocks are read one after another. If the thread has to wait for a CPU or is suspended in
/// between, they are read again: the difference would look like a date that was set.
fn between(mut clock: impl FnMut(ClockId) -> Duration) -> Clocks {
    let mut read = || {
        // CLOCK_BOOTTIME, which a suspend does not stop, is read first and last.
        let clocks = Clocks {
            boot: clock(ClockId::Boottime),
            monotonic: clock(ClockId::Monotonic),
            real: clock(ClockId::Realtime),
        };
        let took = clock(ClockId::Boottime).saturating_sub(clocks.boot);
        (took, clocks)
    };
    let mut best = read();
    for _ in 1..TRIES {
        if best.0 <= AT_ONCE {
            break;
        }
        let next = read();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

fn clock(id: ClockId) -> Duration {
    let now = clock_gettime(id);
    // With a date before 1970 the seconds are negative.
    Duration::new(now.tv_sec.max(0) as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A suspend of an hour, or a wait of a second, before one of the reads: all clocks agree.
    #[test]
    fn a_pause_between_two_clocks_is_no_jump() {
        for (monotonic, boot) in [(0, 3600), (1, 1)] {
            for at in 0..5 {
                let mut reads = 0;
                let clocks = between(|clock| {
                    let paused = reads >= at;
                    reads += 1;
                    let after = |time| Duration::from_secs(100 + if paused { time } else { 0 });
                    match clock {
                        ClockId::Monotonic => after(monotonic),
                        _ => after(boot),
                    }
                });
                let since = Duration::from_secs(100);
                let passed = [clocks.monotonic, clocks.boot, clocks.real].map(|c| c - since);
                let all = [monotonic, boot, boot].map(Duration::from_secs);
                assert!(passed == all || passed == [Duration::ZERO; 3], "{at}");
            }
        }
    }

    #[test]
    fn if_all_reads_are_late_the_best_is_taken() {
        let mut time = Duration::ZERO;
        let mut reads = 0;
        let clocks = between(|_| {
            reads += 1;
            time += Duration::from_millis(if (9..12).contains(&reads) { 2 } else { 20 });
            time
        });
        assert_eq!(reads, 4 * TRIES);
        assert!(clocks.real - clocks.boot == Duration::from_millis(4));
    }

    #[test]
    fn clocks_go_forward_and_boot_is_the_longer() {
        let (first, second) = (Clocks::now(), Clocks::now());
        assert!(second.monotonic >= first.monotonic && second.boot >= first.boot);
        assert!(first.boot + Duration::from_secs(1) > first.monotonic);
    }
}
