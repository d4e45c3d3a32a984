// SPDX-License-Identifier: GPL-2.0-only
//! Control requests that turn an arm of scx_roost into a variant.

use crate::ab::variant::{Kind, Variant};
use crate::policy::features::DEFAULT_PRESET;
use crate::wire::protocol::Op;

/// Adds an arm. It has none of the tunables of arm default; a reset returns to this state.
pub fn made(arm: &str) -> Op {
    Op::ArmAdd {
        arm: arm.to_string(),
        preset: Some(DEFAULT_PRESET.to_string()),
        profile: None,
    }
}

/// Makes the arm equal to the variant, whatever it was before. None: the variant is no arm.
pub fn becomes(arm: &str, variant: &Variant) -> Option<[Op; 2]> {
    let Kind::Roost(roost) = &variant.kind else {
        return None;
    };
    let (arm, change) = (arm.to_string(), roost.0.clone());
    Some([Op::Reset { arm: arm.clone() }, Op::Set { arm, change }])
}
