// SPDX-License-Identifier: GPL-2.0-only
//! Frequencies of CPUs are read beside the control socket, and never hold it up.

use super::*;
use scx_roost::host::Host;
use scx_roost::machine::FreqSource;
use scx_roost::publish::Frequencies;

#[test]
fn frequencies_are_read_while_an_arm_wants_them() {
    let served = serve();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cpu1"), "1300000\n").unwrap();
    let host = Host::in_folder(folder.path());
    let source = FreqSource::Folder(folder.path().into());
    let period = std::time::Duration::from_millis(20);
    let frequencies = Frequencies::new(&host, &source, 8, period);
    served.control.set_frequencies(frequencies);
    let khz = || {
        served.control.sample().unwrap();
        served.told.0.lock().unwrap().khz.clone()
    };
    assert_eq!(khz(), [None; 0], "nobody asks");
    served.done(&["ctl", "arms", "add", "x", "--preset", "smove"]);
    served.done(&[
        "ctl",
        "set",
        "--arm",
        "x",
        "--set",
        "freq-threshold=1400000",
    ]);
    assert_eq!(khz()[..3], [None, Some(1_300_000), None]);
    let image = served.told.0.lock().unwrap().image.unwrap();
    assert_eq!(
        (image.threshold[0][1], image.threshold[1][1]),
        (0, 1_400_000)
    );
    assert_eq!(
        (image.freq_stale_ms, image.arm[1].task.delay_ns),
        (60, 50_000)
    );
    let shown = served.done(&["ctl", "show", "--arm", "x"]);
    assert!(shown.contains("freq-threshold 1400000"), "{shown}");
    served.done(&["ctl", "reset", "--arm", "x"]);
    let shown = served.done(&["ctl", "show", "--arm", "x"]);
    assert!(shown.contains("freq-threshold auto"), "{shown}");
    assert_eq!(
        served.source.totals().freq_source,
        folder.path().to_str().unwrap()
    );
}
