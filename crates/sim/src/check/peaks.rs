// SPDX-License-Identifier: GPL-2.0-only
//! The maximum of a value since a given time.

use std::collections::VecDeque;

/// Times with the value at that time. Values decrease, so each is the maximum since the time before
/// it.
#[derive(Debug, Default)]
pub struct Peaks(VecDeque<(u64, u64)>);

impl Peaks {
    /// Sets the value as it is now. Called at each event.
    pub fn is(&mut self, now: u64, much: u64) {
        while self.0.back().is_some_and(|&(_, before)| before <= much) {
            self.0.pop_back();
        }
        self.0.push_back((now, much));
    }

    /// The maximum since `then`.
    pub fn since(&self, then: u64) -> u64 {
        let at = self.0.partition_point(|&(last, _)| last < then);
        self.0.get(at).map_or(0, |&(_, much)| much)
    }

    /// Drops times before `before`, which are not asked for any more.
    pub fn forget(&mut self, before: u64) {
        while self.0.front().is_some_and(|&(last, _)| last < before) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_that_of_the_time_since() {
        let mut peaks = Peaks::default();
        for (now, much) in [(1, 5), (2, 9), (3, 9), (4, 2), (5, 7), (6, 3)] {
            peaks.is(now, much);
        }
        let most = |peaks: &Peaks| [0, 2, 3, 4, 5, 6, 7].map(|then| peaks.since(then));
        assert_eq!(most(&peaks), [9, 9, 9, 7, 7, 3, 0]);
        peaks.forget(4);
        assert_eq!(most(&peaks), [7, 7, 7, 7, 7, 3, 0]);
    }
}
