// SPDX-License-Identifier: GPL-2.0-only
//! The kept inputs of a target: a JSON object of names and inputs, in which each character of a
//! string is a byte (Latin-1). scripts/fuzz packs and unpacks them.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::path::Path;

/// Runs all inputs of the file, each on its own, so that a failing one hides no other.
pub fn run_all(corpus: &Path, run: fn(&[u8])) {
    let text = std::fs::read_to_string(corpus).expect("each target has kept inputs");
    let inputs: BTreeMap<String, String> = serde_json::from_str(&text).expect("names and inputs");
    assert!(!inputs.is_empty(), "{} has no input", corpus.display());
    let bytes = |input: &str| -> Vec<u8> {
        let byte = |c| u8::try_from(c).expect("each character is a byte");
        input.chars().map(byte).collect()
    };
    let is_bad = |input: &str| catch_unwind(|| run(&bytes(input))).is_err();
    let bad: Vec<&String> = inputs
        .iter()
        .filter_map(|(name, input)| is_bad(input).then_some(name))
        .collect();
    assert!(bad.is_empty(), "{}: {bad:#?}", corpus.display());
}
