// SPDX-License-Identifier: GPL-2.0-only
//! The switches of placement, under their names in features.tbl.h.

use scx_roost::policy::features::bits;

macro_rules! features {
    ($($name:ident)*) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Features {
            $(pub $name: bool,)*
        }

        impl Features {
            pub const NONE: Features = Features { $($name: false,)* };
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// All switches, each set by a call of `on`.
            pub fn each(mut on: impl FnMut() -> bool) -> Features {
                Features { $($name: on(),)* }
            }

            /// The switch of that name; None if placement has no such switch.
            pub fn switch(&mut self, name: &str) -> Option<&mut bool> {
                $(if name == stringify!($name) {
                    return Some(&mut self.$name);
                })*
                None
            }

            /// The switches that are on in either.
            pub fn or(self, other: Features) -> Features {
                Features { $($name: self.$name || other.$name,)* }
            }

            /// The bits that the C uses.
            pub fn bits(&self) -> u32 {
                0 $(| if self.$name { bits::$name.0 } else { 0 })*
            }
        }
    };
}

features! {
    prev_idle sis_util wide_idle sync_local core_first
    prev_core recent_core sync_core prev_core_fits
    claim claim_plain core_claim
    util_fits bias_prev
    delay_migration
    smt_spread
    avg_idle avg_idle_scan
}

impl Features {
    /// Bit i of `mask` is the switch NAMES[i].
    pub fn of_mask(mask: u32) -> Features {
        let mut next = 0;
        Features::each(|| {
            next += 1;
            mask >> (next - 1) & 1 != 0
        })
    }
}

#[test]
fn every_feature_is_a_switch_of_placement_or_of_queueing() {
    const OF_QUEUEING: &[&str] = &["burst_slice", "avg_idle_every"];
    let mut placement = Features::default();
    for feature in scx_roost::policy::features::FEATURES {
        let known = placement.switch(feature.name).is_some();
        assert_ne!(
            known,
            OF_QUEUEING.contains(&feature.name),
            "{}",
            feature.name
        );
    }
    for (i, name) in Features::NAMES.iter().enumerate() {
        let mut features = Features::of_mask(1 << i);
        assert!(*features.switch(name).unwrap(), "{name}");
        let bit = scx_roost::policy::features::feature(name).unwrap().bit;
        assert_eq!(features.bits(), bit.0, "{name}");
    }
}
