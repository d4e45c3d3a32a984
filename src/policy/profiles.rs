// SPDX-License-Identifier: GPL-2.0-only
//! Profiles: what a machine is for, as a variant. `auto` follows the machine's power setting.

use crate::machine::Power;

/// A preset with changes of features and tunables, under the name of its purpose.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    pub name: &'static str,
    /// As `roost-sim` and `ab` read it. For `auto`: without a power setting.
    pub variant: &'static str,
    /// What it is for.
    pub help: &'static str,
    /// What it costs.
    pub cost: &'static str,
}

pub const AUTO: &str = "auto";

pub const PROFILES: &[Profile] = &[
    Profile {
        name: AUTO,
        variant: "roost",
        help: "follows the machine's power setting, live: powersave where it saves power, server \
               where it is set to performance, else the default preset",
        cost: "as the profile that it follows",
    },
    Profile {
        name: "gaming",
        variant: "roost+slice-us=5000",
        help: "the work for a frame gets a slice that is long enough, beside other work on a full \
               machine",
        cost: "on a full machine a task that wakes may wait longer",
    },
    Profile {
        name: "lowlatency",
        variant: "roost+slice-us=700+min-slice-us=100",
        help: "tasks that wake wait as little as possible on a full machine, for sound and control",
        cost: "work that is longer than a slice is interrupted more often, and ends later",
    },
    Profile {
        name: "powersave",
        variant: "mainline+pack+sync_local+slice-us=8000+min-slice-us=3000+fair-rules=roost",
        help: "tasks fill the first cores of one cache, both threads of a core before the next one, \
               so that the other cores sleep deeply",
        cost: "tasks share cores while others are idle, and are slower there",
    },
    Profile {
        name: "server",
        variant: "roost+slice-us=8000+min-slice-us=3000",
        help: "as much work as possible in a time: tasks are interrupted seldom",
        cost: "on a full machine a task that wakes may wait for some slices of 8 ms",
    },
];

/// The profile of this name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|p| p.name == name)
}

impl Profile {
    /// The profile that this one stands for on a machine with this power setting.
    pub fn on(&'static self, power: Power) -> &'static Profile {
        let follows = match power {
            _ if self.name != AUTO => None,
            Power::Save => profile("powersave"),
            Power::Balanced => None,
            Power::Performance => profile("server"),
        };
        follows.unwrap_or(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::settings::Settings;

    #[test]
    fn each_profile_is_a_variant_and_says_its_cost() {
        for p in PROFILES {
            Settings::of_variant(p.variant).expect(p.name);
            assert!(!p.help.is_empty() && !p.cost.is_empty(), "{}", p.name);
        }
    }

    #[test]
    fn auto_alone_follows_the_power_setting() {
        let on = |name, power| profile(name).unwrap().on(power).name;
        assert_eq!(on(AUTO, Power::Save), "powersave");
        assert_eq!(on(AUTO, Power::Balanced), AUTO);
        assert_eq!(on(AUTO, Power::Performance), "server");
        assert_eq!(on("gaming", Power::Save), "gaming");
    }
}
