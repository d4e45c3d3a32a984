// SPDX-License-Identifier: GPL-2.0-only
//! What a look finds of the subjects of rules: cgroups and processes that come and go.

use super::Watch;
use crate::model::{Sparing, and_before};
use crate::rule_events::RuleEvents;
use anyhow::{Error, Result};
use log::warn;
use nix::errno::Errno;
use std::time::Duration;

/// Who listens for them, and what was told of that.
#[derive(Default)]
pub(super) struct Ears {
    /// None: there are no rules about what comes and goes, or nobody can listen to that.
    events: Option<RuleEvents>,
    deaf_told: bool,
    failed_told: Sparing,
}

impl Ears {
    /// Some: what is to be told of it. A folder that goes while somebody begins to listen there is no failure: the next look
    /// begins anew.
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

    /// The scheduler could not be told what has become of them; it is tried at each look.
    fn failed(&mut self, e: &Error, now: Duration) -> Option<String> {
        let left_out = self.failed_told.told(now)?;
        Some(format!(
            "rules are not up to date: {e:#}{}",
            and_before(left_out)
        ))
    }
}

impl Watch {
    /// True if something has become of what rules are about.
    pub(super) fn look_at_rules(&mut self, now: Duration) -> bool {
        // First: what comes meanwhile is heard.
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
    use crate::rule_events::Subjects;
    use crate::stop::Bell;
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
