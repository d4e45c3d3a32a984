// SPDX-License-Identifier: GPL-2.0-only
//! Requests to the control socket: a line of JSON each, and a line of JSON as the answer.

use crate::policy::change::Change;
use crate::policy::rules::Subject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is asked of the running scheduler. On the wire it is the "args" of a request, whose "req"
/// is "ctl".
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// Describes an arm, or all arms.
    Show {
        /// None: all.
        arm: Option<String>,
    },
    /// Changes features and tunables of an arm.
    Set {
        /// Its name; arm `default` has all tasks that are on no other.
        arm: String,
        /// What changes.
        change: Change,
    },
    /// The arm gets the settings that it began with.
    Reset {
        /// Its name.
        arm: String,
    },
    /// Adds an arm: features and tunables of its own, for the tasks that rules put there.
    ArmAdd {
        /// Its name: up to 15 letters, digits, '-' and '_'.
        arm: String,
        /// None: as arm `default` is now, unless there is a profile.
        preset: Option<String>,
        /// In place of a preset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
    },
    /// Deletes an arm that has no rules. Its tasks are on arm `default` then.
    ArmDel {
        /// Its name.
        arm: String,
    },
    /// Compares the scheduler's sums with what its tasks added to them.
    Audit {},
    /// Groups with a CPU limit, and their accounts.
    Limits {},
    /// Lists the rules.
    Rules {},
    /// Puts tasks on an arm.
    RuleAdd {
        /// The tasks.
        subject: Subject,
        /// The arm's name.
        arm: String,
    },
    /// Deletes a rule.
    RuleDel {
        /// The tasks that it is about.
        subject: Subject,
    },
    /// Reads the configuration files again.
    Reload {},
    /// The file with which the next start has what is in force now: what was changed since the
    /// configuration was read. It is checked together with the other files, and not written.
    Save {},
    /// Puts the process that asks, and the processes that it starts, on an arm.
    Exec {
        /// The arm's name.
        arm: String,
    },
}

impl Op {
    /// It changes nothing, and its answer may be long.
    pub fn lists(&self) -> bool {
        matches!(
            self,
            Op::Show { .. } | Op::Audit {} | Op::Limits {} | Op::Rules {} | Op::Save {}
        )
    }
}

#[derive(Serialize, Deserialize)]
pub struct Request {
    pub req: String,
    #[serde(default)]
    pub args: Value,
}
