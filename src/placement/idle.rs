// SPDX-License-Identifier: GPL-2.0-only
//! The mean length of a CPU's idle periods, from update_rq_avg_idle() and sched_balance_newidle()
//! (kernel/sched/core.c, fair.c), and from Huang's patch.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A search that began now found nothing.
    Idle,
    Wakeup,
    Fork,
    Steal,
    Other,
}

/// ns
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    pub began: Option<i128>,
    pub mean: i128,
}

impl Period {
    fn end(&mut self, now: i128, longest: i128) {
        let Some(began) = self.began.take() else {
            return;
        };
        let length = (now - began).max(0);
        // update_avg(): s64 / 8 rounds towards zero.
        self.mean = (self.mean + (length - self.mean) / 8).min(longest);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    pub wakeup: Period,
    pub every: Period,
    pub longest: i128,
}

impl Idle {
    pub fn new(longest: i128) -> Self {
        let period = Period {
            began: None,
            mean: longest,
        };
        Idle {
            wakeup: period,
            every: period,
            longest,
        }
    }

    pub fn happens(&mut self, event: Event, now: i128) {
        if event == Event::Idle {
            if self.every.began.is_none() {
                self.wakeup.began = Some(now);
                self.every.began = Some(now);
            }
            return;
        }
        self.every.end(now, self.longest);
        match event {
            Event::Wakeup => self.wakeup.end(now, self.longest),
            // pulled_task: idle_stamp = 0.
            Event::Steal => self.wakeup.began = None,
            _ => {}
        }
    }
}
