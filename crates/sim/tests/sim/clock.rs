// SPDX-License-Identifier: GPL-2.0-only
//! Compares the clock with a list that is searched.

use roost_sim::{Clock, Rng};

/// For each slot that is set: its time, and how many were set before it.
type Model = Vec<Option<(u64, u64)>>;

fn first(model: &Model) -> Option<usize> {
    let set = model
        .iter()
        .enumerate()
        .filter_map(|(slot, at)| Some((at.as_ref()?, slot)));
    set.min().map(|(_, slot)| slot)
}

#[test]
fn what_is_due_first_comes_first() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let slots = 1 + rng.below(40) as usize;
        let (mut clock, mut model) = (Clock::new(slots), vec![None; slots]);
        for n in 0..2_000 {
            let slot = rng.below(slots as u64) as usize;
            match rng.below(4) {
                0 => {
                    let expected = first(&model);
                    let due = expected.map(|slot| model[slot].unwrap().0);
                    assert_eq!(clock.next(), due);
                    assert_eq!(clock.pop(), expected, "seed {seed}");
                    if let Some(slot) = expected {
                        assert_eq!(clock.now(), due.unwrap());
                        model[slot] = None;
                    }
                }
                1 => {
                    clock.clear(slot);
                    model[slot] = None;
                }
                _ => {
                    let at = clock.now() + rng.below(50);
                    clock.set(slot, at);
                    model[slot] = Some((at, n));
                }
            }
            assert_eq!(clock.due(slot), model[slot].map(|(at, _)| at));
        }
    }
}
