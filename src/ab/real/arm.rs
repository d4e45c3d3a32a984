// SPDX-License-Identifier: GPL-2.0-only
//! What a scheduler of ours is told so that an arm of it becomes a variant.

use crate::ab::variant::{Kind, Variant};
use crate::control::Op;
use crate::features::DEFAULT_PRESET;

/// A new arm, with no tunable of the arm of all others: a reset leads back here.
pub fn made(arm: &str) -> Op {
    Op::ArmAdd {
        arm: arm.to_string(),
        preset: Some(DEFAULT_PRESET.to_string()),
    }
}

/// The arm is this and nothing of what it was before. None: the variant is no arm.
pub fn becomes(arm: &str, variant: &Variant) -> Option<[Op; 2]> {
    let Kind::Roost(roost) = &variant.kind else {
        return None;
    };
    let (arm, change) = (arm.to_string(), roost.0.clone());
    Some([Op::Reset { arm: arm.clone() }, Op::Set { arm, change }])
}
