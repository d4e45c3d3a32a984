// SPDX-License-Identifier: GPL-2.0-only
//! The order of runs.

use crate::noise::{self, Noise};
use scx_roost::ab::design::{Design, Settle};
use std::collections::BTreeMap;

fn design(seed: u64, variants: usize) -> Design {
    Design {
        seed,
        variants,
        warmups: 1,
        settle: Settle::Nowhere,
        boots: None,
    }
}

#[test]
fn the_order_is_a_function_of_seed_and_block() {
    let all = |d: Design| (0..50).map(|b| d.block(b)).collect::<Vec<_>>();
    assert_eq!(all(design(7, 4)), all(design(7, 4)));
    assert_ne!(all(design(7, 4)), all(design(8, 4)));
}

#[test]
fn each_block_has_each_variant_once_and_warm_ups_come_first() {
    let design = design(3, 3);
    let turns = design.order(20);
    let (warm, rest) = turns.split_at(3);
    assert!(warm.iter().all(|t| t.block.is_none()));
    for (block, turns) in rest.chunks(3).enumerate() {
        assert!(turns.iter().all(|t| t.block == Some(block)));
        let mut variants: Vec<usize> = turns.iter().map(|t| t.variant).collect();
        variants.sort_unstable();
        assert_eq!(variants, [0, 1, 2]);
    }
}

/// All runs of a block follow the same variant; of all blocks, if runs settle.
#[test]
fn a_settled_run_follows_what_the_others_follow() {
    for (variants, settle) in [(2, Settle::Blocks), (2, Settle::Runs), (3, Settle::Runs)] {
        let design = Design {
            settle,
            ..design(3, variants)
        };
        let order = design.order(40);
        let mut followed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for two in order.windows(2) {
            let Some(block) = two[1].block else {
                continue;
            };
            followed.entry(block).or_default().push(two[0].variant);
        }
        assert_eq!(followed.len(), 40);
        let same = |before: &Vec<usize>| before.iter().all(|v| *v == before[0]);
        assert!(followed.values().all(same), "{settle:?}");
        let first = |before: &Vec<usize>| before[0] == 0;
        assert!(settle == Settle::Blocks || followed.values().all(first));
        let counted = order.iter().filter(|turn| turn.block.is_some()).count();
        assert_eq!(counted, 40 * design.block_runs());
        let spent = order.len() as f64 / counted as f64;
        println!("{settle:?}, {variants} variants: {spent:.2} runs per counted one");
        assert!(
            spent < if settle == Settle::Blocks { 1.4 } else { 2.1 },
            "{spent}"
        );
    }
}

#[test]
fn all_orders_are_as_frequent() {
    let design = design(11, 3);
    let mut orders: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for block in 0..6000 {
        *orders.entry(design.block(block)).or_default() += 1;
    }
    // 1000 each, with a standard deviation of 29.
    assert_eq!(orders.len(), 6);
    assert!(
        orders.values().all(|n| (900..1100).contains(n)),
        "{orders:?}"
    );
}

#[test]
fn what_drifts_meets_all_variants_alike() {
    let values = noise::compared(Noise::Drifting, &[1.0; 3], 2000, 1);
    let mean = |v: &Vec<f64>| v.iter().sum::<f64>() / v.len() as f64;
    let means: Vec<f64> = values.iter().map(mean).collect();
    let most = means.iter().copied().fold(f64::MIN, f64::max);
    let least = means.iter().copied().fold(f64::MAX, f64::min);
    assert!(most / least < 1.003, "{means:?}");
}
