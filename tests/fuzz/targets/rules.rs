// SPDX-License-Identifier: GPL-2.0-only
//! Rules are added, deleted and checked again, and compared with a plain list of them.

use super::bytes::Bytes;
use scx_roost::policy::rules::{Found, Rules, Subject, pidfd_of};
use std::path::Path;

const SLOTS: usize = 4;
const COMMS: [&str; 8] = [
    "a",
    "*",
    "?x",
    "",
    "sixteen-bytes-16",
    "fifteen-bytes-5",
    "é*",
    "a\0b",
];

pub fn rules(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let mut rules = Rules::default();
    let mut wanted: Vec<(Subject, usize)> = Vec::new();
    (0..SLOTS).for_each(|slot| rules.arm_added(slot));
    while !bytes.is_empty() {
        let (what, slot) = (bytes.below(8), bytes.below(SLOTS));
        let subject = subject(&mut bytes);
        match what {
            0..=3 => {
                if add(&mut rules, &subject, slot) {
                    wanted.push((subject, slot));
                }
            }
            4 => {
                let known = wanted.iter().position(|(w, _)| *w == subject);
                assert_eq!(rules.delete(&subject).is_ok(), known.is_some());
                known.map(|at| wanted.remove(at));
            }
            5 => {
                let found: Vec<Found> = rules.cgroups().into_iter().map(Found::again).collect();
                rules.refresh(&found);
            }
            6 if rules.of_arm(slot) == 0 => {
                rules.arm_deleted(slot);
                assert!(rules.ticket_of_arm(slot).is_err());
                rules.arm_added(slot);
            }
            _ => {
                let _ = rules.processes().expect("descriptors");
            }
        }
        compare(&rules, &wanted);
    }
}

fn subject(bytes: &mut Bytes) -> Subject {
    match bytes.below(4) {
        0 => Subject::Comm(COMMS[bytes.below(COMMS.len())].into()),
        1 => Subject::Comm(format!("{}", bytes.byte())),
        2 => Subject::Pid(match bytes.below(4) {
            0 => std::process::id(),
            1 => 0,
            2 => u32::MAX,
            _ => 1,
        }),
        _ => Subject::Cgroup(["/sys/fs/cgroup", "/", "", "/nowhere"][bytes.below(4)].into()),
    }
}

fn add(rules: &mut Rules, subject: &Subject, slot: usize) -> bool {
    let added = match subject {
        Subject::Comm(glob) => rules.add_comm(glob, slot),
        Subject::Pid(pid) => pidfd_of(*pid).and_then(|fd| rules.add_pid(*pid, fd, slot).map(drop)),
        Subject::Cgroup(path) => {
            Found::look_up(path).and_then(|f| rules.add_cgroup(Path::new(path), f, slot))
        }
    };
    added.is_ok()
}

fn compare(rules: &Rules, wanted: &[(Subject, usize)]) {
    let there: Vec<(Subject, usize)> = rules.iter().map(|r| (r.subject.clone(), r.slot)).collect();
    assert_eq!(there, wanted);
    let table = rules.table();
    let comms = wanted.iter().filter(|w| matches!(w.0, Subject::Comm(_)));
    assert_eq!(table.comms.len(), comms.count());
    let mut ids: Vec<u32> = table.tickets.iter().map(|t| t.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), table.tickets.len(), "a ticket is one's own");
}
