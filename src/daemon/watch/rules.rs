// SPDX-License-Identifier: GPL-2.0-only
//! The part of a look that concerns the subjects of rules: cgroups and processes that come and go.

use super::Watch;
use crate::daemon::rule_events::RuleEvents;
use crate::model::{LogLimiter, suppressed_suffix};
use anyhow::{Error, Result};
use log::warn;
use nix::errno::Errno;
use std::time::Duration;

/// The listener for events of rules, and which of its failures were reported.
#[derive(Default)]
pub(super) struct RuleListener {
    /// None: no rule needs events, or listening is not possible.
    events: Option<RuleEvents>,
    deaf_reported: bool,
    failed_log: LogLimiter,
}

impl RuleListener {
    /// Takes a listener or its failure; returns what is to be reported. A folder that vanishes
    /// while the listener is set up is no failure: the next look starts again.
    fn heard(&mut self, result: Result<RuleEvents>) -> Option<String> {
        let (events, failure) = match result {
            Ok(events) => (Some(events), None),
            Err(e) if e.downcast_ref() == Some(&Errno::ENOENT) => (None, None),
            Err(e) => (None, Some(e)),
        };
        if events.is_some() {
            self.deaf_reported = false;
        }
        self.events = events;
        let failure = failure.filter(|_| !self.deaf_reported)?;
        self.deaf_reported = true;
        Some(format!(
            "{failure:#}: changes are found by the looks instead, once a second"
        ))
    }

    /// The rules could not be brought up to date. Every look retries.
    fn failed(&mut self, e: &Error, now: Duration) -> Option<String> {
        let left_out = self.failed_log.admit(now)?;
        Some(format!(
            "cannot update the rules: {e:#}{}",
            suppressed_suffix(left_out)
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
            Err(e) => self.listener.failed(&e, now),
        };
        if let Some(text) = failed {
            warn!("{text}");
        }
        false
    }

    fn listen(&mut self) {
        let subjects = self.control.subjects();
        let listening = |events: &RuleEvents| events.is_listening_to(&subjects);
        if subjects.is_empty() {
            self.listener.events = None;
        } else if !self.listener.events.as_ref().is_some_and(listening)
            && let Some(text) = self.listener.heard(self.control.listen())
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
    fn a_failure_to_listen_is_reported_once_until_it_is_over() {
        let mut listener = RuleListener::default();
        assert_eq!(
            listener.heard(fails(Errno::ENOENT)),
            None,
            "the cgroup is gone"
        );
        let text = listener.heard(fails(Errno::EMFILE)).unwrap();
        assert!(text.starts_with("cannot listen: EMFILE"), "{text}");
        assert_eq!(listener.heard(fails(Errno::EMFILE)), None);
        let events = RuleEvents::listen(Subjects::default(), Vec::new(), Bell::default());
        assert_eq!(listener.heard(events), None);
        assert!(listener.heard(fails(Errno::EMFILE)).is_some());
    }

    #[test]
    fn a_recurring_failure_is_reported_once_a_minute() {
        let mut listener = RuleListener::default();
        let e = Error::msg("no grace");
        let mut reported = |seconds| listener.failed(&e, Duration::from_secs(seconds)).is_some();
        assert_eq!(
            [0, 1, 59, 60, 61].map(&mut reported),
            [true, false, false, true, false]
        );
    }
}
