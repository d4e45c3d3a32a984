// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's rules of which task runs, by version: what the tunable `fair-rules` names.

use crate::bpf::intf::{
    FAIR_AUTO, FAIR_DELAY, FAIR_FORK, FAIR_HRTICK, FAIR_INELIGIBLE, FAIR_LAG_TICK, FAIR_PARITY,
    FAIR_PUSH, FAIR_SHORTEST,
};

/// A set of rules (`FAIR_*`), under the name that users give.
#[derive(Debug)]
pub struct RuleSet {
    pub name: &'static str,
    pub bits: u32,
}

/// All kernels since 6.12.
const EVERY: u32 = FAIR_PARITY | FAIR_DELAY;

/// By the code that an arm keeps.
const SETS: [RuleSet; 6] = [
    RuleSet {
        name: "auto",
        bits: FAIR_AUTO,
    },
    RuleSet {
        name: "roost",
        bits: 0,
    },
    RuleSet {
        name: "6.16",
        bits: EVERY | FAIR_FORK | FAIR_PUSH,
    },
    RuleSet {
        name: "6.18",
        bits: EVERY | FAIR_FORK | FAIR_SHORTEST,
    },
    RuleSet {
        name: "7.2",
        bits: EVERY | FAIR_SHORTEST | FAIR_LAG_TICK | FAIR_HRTICK,
    },
    RuleSet {
        name: "7.3",
        bits: EVERY | FAIR_INELIGIBLE | FAIR_LAG_TICK | FAIR_HRTICK,
    },
];

/// The code of the running kernel's rules, and of scx_roost's own.
pub const AUTO: u32 = 0;
pub const ROOST: u32 = 1;
pub const LAST: u32 = SETS.len() as u32 - 1;

/// The set with that code; an unknown code is `auto`.
pub fn set(code: u32) -> &'static RuleSet {
    SETS.get(code as usize).unwrap_or(&SETS[0])
}

/// The code of a set's name.
pub fn code(name: &str) -> Option<u32> {
    SETS.iter().position(|s| s.name == name).map(|at| at as u32)
}

/// All names, in words.
pub fn possible() -> String {
    let (last, rest) = (set(LAST).name, &SETS[..LAST as usize]);
    let rest: Vec<&str> = rest.iter().map(|s| s.name).collect();
    format!("{} and {last}", rest.join(", "))
}

/// The rules of a kernel by its release; of an unknown one those of the newest.
///
/// Stable updates change them too: 6.12 got the newer yield, and 6.18.35 the wakeup test of 6.19.
/// Before 7.1 no timer ends slices.
pub fn of_release(release: Option<[u32; 3]>) -> RuleSet {
    let named = |name: &str| set(code(name).unwrap_or(LAST));
    let (set, less) = match release {
        Some([6, ..=12, _]) => (named("6.16"), FAIR_PUSH),
        Some([6, ..=16, _]) => (named("6.16"), 0),
        Some([6, 18, patch]) if patch >= 35 => (named("7.2"), FAIR_HRTICK),
        Some([6, ..=18, _]) => (named("6.18"), 0),
        Some([6, ..] | [7, 0, _]) => (named("7.2"), FAIR_HRTICK),
        Some([7, ..=2, _]) => (named("7.2"), 0),
        _ => (set(LAST), 0),
    };
    RuleSet {
        name: set.name,
        bits: set.bits & !less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_has_the_rules_of_its_version() {
        for (release, name) in [
            ([6, 12, 0], "6.16"),
            ([6, 16, 12], "6.16"),
            ([6, 17, 0], "6.18"),
            ([6, 18, 15], "6.18"),
            ([6, 18, 35], "7.2"),
            ([6, 19, 14], "7.2"),
            ([7, 0, 13], "7.2"),
            ([7, 2, 13], "7.2"),
            ([7, 3, 4], "7.3"),
            ([8, 0, 0], "7.3"),
        ] {
            assert_eq!(of_release(Some(release)).name, name, "{release:?}");
        }
        assert_eq!(of_release(None).name, "7.3");
        assert_eq!(of_release(Some([6, 12, 117])).bits & FAIR_PUSH, 0);
        assert_ne!(of_release(Some([6, 16, 12])).bits & FAIR_PUSH, 0);
    }

    #[test]
    fn a_name_is_a_code() {
        for at in 0..=LAST {
            assert_eq!(code(set(at).name), Some(at));
        }
        assert_eq!((set(AUTO).name, set(ROOST).name), ("auto", "roost"));
        assert_eq!(code("7.1"), None);
        assert_eq!(possible(), "auto, roost, 6.16, 6.18, 7.2 and 7.3");
    }
}
