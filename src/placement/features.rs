// SPDX-License-Identifier: GPL-2.0-only
//! The switches of placement, under their names in features.tbl.h.

#[cfg(feature = "internals")]
use crate::policy::features::bits;

macro_rules! features {
    ($($name:ident)*) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Features {
            $(pub $name: bool,)*
        }

        impl Features {
            pub const NONE: Features = Features { $($name: false,)* };
            #[cfg(feature = "internals")]
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            #[cfg(feature = "internals")]
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

            #[cfg(feature = "internals")]
            /// The switches that are on in either.
            pub fn or(self, other: Features) -> Features {
                Features { $($name: self.$name || other.$name,)* }
            }

            #[cfg(feature = "internals")]
            /// The bits that the C uses.
            pub fn bits(&self) -> u32 {
                0 $(| if self.$name { bits::$name.0 } else { 0 })*
            }
        }
    };
}

/// Takes the rows that build.rs makes of features.tbl.h, without the features of queueing: those
/// change no placement, so the model does not know them.
macro_rules! feature_table {
    (@ [$($kept:ident)*] burst_slice $(, $column:tt)*; $($rows:tt)*) => {
        feature_table! { @ [$($kept)*] $($rows)* }
    };
    (@ [$($kept:ident)*] avg_idle_every $(, $column:tt)*; $($rows:tt)*) => {
        feature_table! { @ [$($kept)*] $($rows)* }
    };
    (@ [$($kept:ident)*] $name:ident $(, $column:tt)*; $($rows:tt)*) => {
        feature_table! { @ [$($kept)* $name] $($rows)* }
    };
    (@ [$($kept:ident)*]) => {
        features! { $($kept)* }
    };
    ($($rows:tt)*) => {
        feature_table! { @ [] $($rows)* }
    };
}

include!(concat!(env!("OUT_DIR"), "/features_tbl.rs"));

#[cfg(feature = "internals")]
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
fn a_switch_has_the_bit_of_its_feature() {
    for (i, name) in Features::NAMES.iter().enumerate() {
        let mut features = Features::of_mask(1 << i);
        assert!(*features.switch(name).unwrap(), "{name}");
        let bit = crate::policy::features::feature(name).unwrap().bit;
        assert_eq!(features.bits(), bit.0, "{name}");
    }
}
