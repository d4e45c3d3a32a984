// SPDX-License-Identifier: GPL-2.0-only
//! Builds the image of a set of arms (struct policy_image) from numbers.

use crate::bpf::intf::{MAX_ARMS, MAX_CPUS, arm, policy_image, task_policy};

/// `arms[0]` is that of tasks on no other arm. `capacity` is that of each CPU by number, for the
/// CPUs that exist.
pub fn image(arms: &[arm], capacity: &[u16]) -> policy_image {
    let rows: Vec<Option<arm>> = arms.iter().copied().map(Some).collect();
    image_of_rows(&rows, capacity)
}

/// As `image`, with rows that may be unused. Those are copies of the first: a task on a deleted arm
/// has the policy of arm `default` until it checks its arm again.
pub fn image_of_rows(rows: &[Option<arm>], capacity: &[u16]) -> policy_image {
    let everybody = rows.first().copied().flatten();
    let everybody = everybody.expect("arm default always exists");
    assert!(rows.len() <= MAX_ARMS as usize, "{} arms", rows.len());
    policy_image {
        generation: 0,
        nr_arms: rows.iter().flatten().count() as u32,
        arm: std::array::from_fn(|i| match rows.get(i) {
            Some(Some(arm)) => numbered(arm, i as u32),
            _ => numbered(&everybody, 0),
        }),
        capacity: table(capacity),
        threshold: [[0; MAX_CPUS as usize]; MAX_ARMS as usize],
        freq_stale_ms: 0,
    }
}

/// CPUs that do not exist have capacity 0.
fn table(capacity: &[u16]) -> [u16; MAX_CPUS as usize] {
    std::array::from_fn(|cpu| capacity.get(cpu).copied().unwrap_or(0))
}

fn numbered(arm: &arm, number: u32) -> arm {
    let task = task_policy {
        arm: number,
        ..arm.task
    };
    self::arm { task, ..*arm }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(features: u32) -> arm {
        self::arm {
            task: task_policy {
                features,
                arm: 99,
                slice_ns: u64::from(features) * 1000,
                min_slice_ns: 7,
                claim_ttl_ns: 8,
                fits_scale: 1024,
                fits_rt: 0,
                delay_ns: 0,
                rules: 0,
            },
            rescue_ns: 8,
            migration_cost_ns: 9,
        }
    }

    #[test]
    fn unused_rows_are_everybodys() {
        let image = image(&[arm(1), arm(2)], &[1024, 512]);
        let row = |i: usize| {
            let task = image.arm[i].task;
            (task.arm, task.features, task.slice_ns)
        };
        assert_eq!(image.nr_arms, 2);
        assert_eq!(row(0), (0, 1, 1000));
        assert_eq!(row(1), (1, 2, 2000));
        for i in 2..MAX_ARMS as usize {
            assert_eq!(row(i), (0, 1, 1000), "arm {i}");
        }
        assert_eq!(image.capacity[..4], [1024, 512, 0, 0]);
    }

    #[test]
    fn a_row_between_others_may_be_unused() {
        let image = image_of_rows(&[Some(arm(1)), None, Some(arm(3))], &[]);
        let numbers = image.arm.map(|a| (a.task.arm, a.task.features));
        assert_eq!(numbers[..4], [(0, 1), (0, 1), (2, 3), (0, 1)]);
        assert_eq!(image.nr_arms, 2);
    }

    #[test]
    fn all_rows_may_be_used() {
        let arms: Vec<arm> = (0..MAX_ARMS).map(arm).collect();
        for (i, arm) in image(&arms, &[]).arm.iter().enumerate() {
            assert_eq!((arm.task.arm, arm.task.features), (i as u32, i as u32));
        }
    }
}
