// SPDX-License-Identifier: GPL-2.0-only
//! The order of runs.

use crate::noise::{self, Noise};
use scx_roost::ab::design::{Design, Settle};
use scx_roost::ab::stats::rank::SignedRank;
use scx_roost::util::rng::Rng;
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
    assert_eq!(Settle::Blocks.among(3), Settle::Nowhere);
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

/// How many of a thousand tests without a real difference report one, if each run resembles the run
/// before it. `order`: which run of a pair comes first. `pairs` pairs are one block.
fn errors(pairs: usize, order: impl Fn(u64, usize) -> bool) -> f64 {
    let (blocks, times) = (20, 20_000);
    let mut errors = 0;
    for seed in 0..times {
        let runs = Noise::Following.runs(2 * blocks, &mut Rng::stream(seed, 5));
        let difference = |(block, pair): (usize, &[f64])| match order(seed, block) {
            true => pair[1] - pair[0],
            false => pair[0] - pair[1],
        };
        let of_pairs: Vec<f64> = runs.chunks(2).enumerate().map(difference).collect();
        let differences: Vec<f64> = of_pairs.chunks(pairs).map(|p| p.iter().sum()).collect();
        errors += usize::from(SignedRank::new(&differences).p().two_sided() <= 0.05);
    }
    1000.0 * errors as f64 / times as f64
}

/// Why a mirrored block, ABBA or BAAB, is one block and not two: if runs resemble the run before,
/// its halves are not independent.
#[test]
fn halves_of_a_mirrored_block_are_no_blocks() {
    let own = errors(1, |seed, block| {
        Rng::stream(seed, block as u64).below(2) == 0
    });
    let mirrored = |seed, pair| {
        let first = Rng::stream(seed, pair as u64 / 2).below(2) == 0;
        first == (pair % 2 == 0)
    };
    let (halves, whole) = (errors(1, mirrored), errors(2, mirrored));
    println!("own {own}, halves {halves}, whole {whole} of 1000");
    assert!(own < 52.0, "{own}");
    assert!(halves > 58.0, "{halves}");
    assert!(whole < 52.0, "{whole}");
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
