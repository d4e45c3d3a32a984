// SPDX-License-Identifier: GPL-2.0-only
//! The order of runs.

use scx_roost::ab::design::{Design, Turn};

fn design(seed: u64, variants: usize) -> Design {
    Design {
        seed,
        variants,
        warmups: 1,
        boots: None,
        even: false,
    }
}

fn variants(turns: &[Turn]) -> Vec<usize> {
    turns.iter().map(|t| t.variant).collect()
}

#[test]
fn the_order_is_a_function_of_the_seed_and_more_rounds_continue_it() {
    let order = |seed: u64, rounds: usize| design(seed, 4).order(rounds);
    assert_eq!(order(7, 50), order(7, 50));
    assert_ne!(order(7, 50), order(8, 50));
    assert_eq!(order(7, 50)[..], order(7, 60)[..order(7, 50).len()]);
}

#[test]
fn warm_ups_then_one_of_each_then_what_the_die_says() {
    let design = design(3, 3);
    let order = design.order(20);
    assert!(order[..3].iter().all(|t| t.turn.is_none() && !t.drawn));
    let mut first = variants(&order[3..6]);
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2]);
    assert!(order[3..6].iter().all(|t| !t.drawn));
    assert!(order[6..].iter().all(|t| t.drawn));
    let numbers: Vec<Option<usize>> = order[3..].iter().map(|t| t.turn).collect();
    assert_eq!(numbers, (0..63).map(Some).collect::<Vec<_>>());
}

/// So many runs are so many rounds, of boots too.
#[test]
fn runs_and_rounds_agree() {
    for boots in [None, Some(3)] {
        let design = Design {
            boots,
            ..design(1, 2)
        };
        for rounds in [1, 5, 40] {
            let runs = design.order(rounds).len();
            assert_eq!((design.runs(rounds), design.rounds(runs)), (runs, rounds));
            assert_eq!(design.rounds(runs - 1), rounds - 1);
        }
        assert_eq!(design.rounds(0), 0);
    }
}

/// For a search, which gives no verdict on them.
#[test]
fn an_even_order_has_each_variant_once_in_each_round() {
    let even = Design {
        even: true,
        ..design(3, 5)
    };
    let order = variants(&even.order(40)[5..]);
    let rounds: Vec<&[usize]> = order.chunks(5).collect();
    assert_eq!(rounds.len(), 41);
    assert!(rounds.windows(2).any(|two| two[0] != two[1]));
    for round in rounds {
        let mut sorted = round.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4]);
    }
}

/// Neither by how often it comes nor by what came up to three runs before it.
#[test]
fn the_die_is_fair_and_has_no_memory() {
    for seed in [1, 2, 3] {
        let order = design(seed, 2).order(5000);
        let drawn = variants(&order[4..]);
        // 5,000 in 10,000, with a standard deviation of 50.
        let often = |count: usize| (4800..5200).contains(&count);
        assert!(often(drawn.iter().sum()));
        for back in 1..=3 {
            let same = drawn.iter().zip(&drawn[back..]).filter(|(a, b)| a == b);
            assert!(often(same.count()), "{back} back");
        }
        let three = variants(&design(seed, 3).order(3000)[6..]);
        let count = |v: usize| three.iter().filter(|t| **t == v).count();
        assert!((0..3).all(|v| (2800..3200).contains(&count(v))));
    }
}
