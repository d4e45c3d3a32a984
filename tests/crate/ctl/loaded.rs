// SPDX-License-Identifier: GPL-2.0-only
//! What is published to the loaded scheduler, and what the next one gets.

use super::*;
use scx_roost::policy::features::bits;

#[test]
fn a_failed_publication_is_reported() {
    let served = serve();
    served.told.0.lock().unwrap().fails = true;
    assert!(
        served
            .roost(&["ctl", "set", "--disable", "sync_local"])
            .status
            .code()
            == Some(1)
    );
    served.told.0.lock().unwrap().fails = false;
    served.control.refresh().unwrap();
    assert_eq!(served.publications(), 0, "rules are another thing");
    served.control.publish().unwrap();
    assert_eq!(served.features(0) & bits::sync_local.0, 0);
    assert_eq!(served.publications(), 1);
    served.done(&["ctl", "set", "--disable", "wide_idle"]);
    assert_eq!(served.features(0) & bits::sync_local.0, 0);
}

#[test]
fn a_change_between_two_loads_reaches_the_next_scheduler() {
    let mut served = serve();
    served.done(&["ctl", "rules", "add", "--comm", "a*", "--arm", "default"]);
    drop(served.attached.take());
    let image = served.control.image(8, vec![1024; 8]);
    let generation = |served: &Served| {
        let shown = served.done(&["ctl", "show", "--json"]);
        serde_json::from_str::<Value>(&shown).unwrap()["generation"].clone()
    };
    served.done(&["ctl", "set", "--disable", "sync_local"]);
    assert_eq!((served.publications(), generation(&served)), (0, 1.into()));
    let next = Remembers::default();
    let _attached = served
        .control
        .attach(Box::new(next.clone()), &image)
        .unwrap();
    assert_eq!(generation(&served), 2);
    let told = next.0.lock().unwrap();
    assert_eq!(
        told.image.unwrap().arm[0].task.features & bits::sync_local.0,
        0
    );
    assert_eq!(told.table.comms.len(), 1);
}

#[test]
fn capacity_is_published_once_and_the_arms_stay() {
    let served = serve();
    let (whole, less) = (vec![1024; 8], vec![512; 8]);
    assert!(!served.control.set_capacity(whole).unwrap());
    served.done(&["ctl", "set", "--disable", "sync_local"]);
    assert!(served.control.set_capacity(less.clone()).unwrap());
    assert!(!served.control.set_capacity(less).unwrap());
    assert_eq!(served.publications(), 2);
    assert_eq!(served.features(0) & bits::sync_local.0, 0);
    let image = served.told.0.lock().unwrap().image.unwrap();
    assert_eq!((image.capacity[7], image.capacity[8]), (512, 0));
}
