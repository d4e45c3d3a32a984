// SPDX-License-Identifier: GPL-2.0-only
//! The three clocks of the kernel at one instant.

use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Stands still while the machine is suspended.
    pub monotonic: Duration,
    /// Does not.
    pub boot: Duration,
    /// What people see, and may set.
    pub real: Duration,
}

impl Clocks {
    pub fn now() -> Clocks {
        Clocks {
            monotonic: clock(libc::CLOCK_MONOTONIC),
            boot: clock(libc::CLOCK_BOOTTIME),
            real: clock(libc::CLOCK_REALTIME),
        }
    }
}

fn clock(id: libc::clockid_t) -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec; there are always these clocks.
    unsafe { libc::clock_gettime(id, &mut now) };
    // A machine whose date is before 1970 has a negative one.
    Duration::new(now.tv_sec.max(0) as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward_and_boot_is_the_longer() {
        let (first, second) = (Clocks::now(), Clocks::now());
        assert!(second.monotonic >= first.monotonic && second.boot >= first.boot);
        assert!(first.boot + Duration::from_secs(1) > first.monotonic);
    }
}
