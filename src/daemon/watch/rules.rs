// SPDX-License-Identifier: GPL-2.0-only
//! The part of a look that concerns the subjects of rules: cgroups and processes that come and go.

use super::Watch;
use crate::daemon::rule_events::RuleEvents;
use crate::model::{Sparing, and_before};
use anyhow::{Error, Result};
use log::warn;
use nix::errno::Errno;
use std::time::Duration;

/// The listener for events of rules, and which of its failures were reported.
#[derive(Default)]
pub(super) struct Ears {
    /// None: no rule needs events, or listening is not possible.
    events: Option<RuleEvents>,
    deaf_told: bool,
    failed_told: Sparing,
}

impl Ears {
    /// Takes a listener or its failure; returns what is to be reported. A folder that vanishes
    /// while the listener is set up is no failure: the next look starts again.
    fn heard(&mut self, result: Result<RuleEvents>) -> Option<String> {
        let (events, failure) = match result {
            Ok(events) => (Some(events), None),
            Err(e) if e.downcast_ref() == Some(&Errno::ENOENT) => (None, None),
            Err(e) => (None, Some(e)),
        };
        if events.is_some() {
            self.deaf_told = false;
        }
        self.events = events;
        let failure = failure.filter(|_| !self.deaf_told)?;
        self.deaf_told = true;
        Some(format!(
            "{failure:#}: it is looked for at each look, within a second"
        ))
    }

    /// The rules could not be brought up to date. Every look retries.
    fn failed(&mut self, e: &Error, now: Duration) -> Option<String> {
        let left_out = self.failed_told.told(now)?;
        Some(format!(
            "rules are not up to date: {e:#}{}",
            and_before(left_out)
        ))
    }
}

impl Watch {
    /// True if a subject of a rule came or went.
    pub(super) fn look_at_rules(&mut self, now: Duration) -> bool {
        // First, so that events during the refresh are noticed.
        self.listen();
        let failed = match self.control.refresh() {
            Ok(changed) => return changed,
            Err(e) => self.ears.failed(&e, now),
        };
        if let Some(text) = failed {
            warn!("{text}");
        }
        false
    }

    fn listen(&mut self) {
        let subjects = self.control.subjects();
        let hears = |events: &RuleEvents| events.hears(&subjects);
        if subjects.is_empty() {
            self.ears.events = None;
        } else if !self.ears.events.as_ref().is_some_and(hears)
            && let Some(text) = self.ears.heard(self.control.listen())
        {
            warn!("{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rules::Subjects;
    use crate::util::stop::Bell;
    use anyhow::Context;

    fn fails(errno: Errno) -> Result<RuleEvents> {
        Err(errno).context("cannot listen")
    }

    #[test]
    fn who_cannot_listen_is_told_once_until_it_can() {
        let mut ears = Ears::default();
        assert_eq!(ears.heard(fails(Errno::ENOENT)), None, "it has gone");
        let told = ears.heard(fails(Errno::EMFILE)).unwrap();
        assert!(told.starts_with("cannot listen: EMFILE"), "{told}");
        assert_eq!(ears.heard(fails(Errno::EMFILE)), None);
        let events = RuleEvents::listen(Subjects::default(), Vec::new(), Bell::default());
        assert_eq!(ears.heard(events), None);
        assert!(ears.heard(fails(Errno::EMFILE)).is_some());
    }

    #[test]
    fn what_fails_again_and_again_is_told_once_a_minute() {
        let mut ears = Ears::default();
        let e = Error::msg("no grace");
        let mut told = |seconds| ears.failed(&e, Duration::from_secs(seconds)).is_some();
        assert_eq!(
            [0, 1, 59, 60, 61].map(&mut told),
            [true, false, false, true, false]
        );
    }
}
