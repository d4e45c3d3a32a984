// SPDX-License-Identifier: GPL-2.0-only
//! Requests to the control socket: a line of JSON each, and a line of JSON as the answer.

use crate::policy::rules::Whom;
use crate::policy::settings::Change;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The "args" of a request; its "req" is "ctl".
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// Describes the named arm, or all arms.
    Show {
        arm: Option<String>,
    },
    Set {
        arm: String,
        change: Change,
    },
    Reset {
        arm: String,
    },
    ArmAdd {
        arm: String,
        preset: Option<String>,
    },
    ArmDel {
        arm: String,
    },
    /// Compares the scheduler's sums with what its tasks added to them.
    Audit {},
    /// Groups with a CPU limit, and their accounts.
    Limits {},
    Rules {},
    RuleAdd {
        whom: Whom,
        arm: String,
    },
    RuleDel {
        whom: Whom,
    },
    /// Reads the configuration files again.
    Reload {},
    /// What was changed since the configuration was read.
    Changes {},
    /// Puts the requesting process, and the processes that it starts, on this arm.
    Exec {
        arm: String,
    },
}

#[derive(Serialize, Deserialize)]
pub struct Request {
    pub req: String,
    #[serde(default)]
    pub args: Value,
}
