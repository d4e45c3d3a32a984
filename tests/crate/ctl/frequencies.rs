// SPDX-License-Identifier: GPL-2.0-only
//! Reading CPUs' frequencies never delays an answer of the control socket.

use super::*;
use scx_roost::daemon::sampler::Sampler;
use scx_roost::machine::host::Host;
use scx_roost::machine::{FreqFiles, FreqSource, Policies};
use scx_roost::publish::Frequencies;
use scx_roost::util::stop::stopper;
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Long enough that readings are not too old on a busy host.
const PERIOD: Duration = Duration::from_secs(1);
/// An answer comes at once. After this time it will not come.
const PATIENCE: Duration = Duration::from_secs(5);

fn follow(served: &Served, folder: &Path) {
    let source = FreqSource::Folder(folder.into());
    let host = Host::in_folder(folder);
    let policies = Policies::read(&host, 8);
    let frequencies = Frequencies::new(&host, &source, &policies, PERIOD);
    served.control.set_frequencies(frequencies);
}

/// Another client asks something. Returns whether it gets an answer.
fn answers(served: &Served) -> bool {
    let mut stream = UnixStream::connect(served.path()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let line = request(r#""op":"rules""#) + "\n";
    stream.write_all(line.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    reader.read_line(&mut String::new()).is_ok_and(|n| n > 0)
}

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn frequencies_are_read_while_an_arm_wants_them() {
    let served = serve();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cpu1"), "1300000\n").unwrap();
    follow(&served, folder.path());
    let khz = || {
        served.control.sample(FreqFiles::read).unwrap();
        served.told.0.lock().unwrap().khz.clone()
    };
    assert_eq!(khz(), [None; 0], "no client asks");
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
        (3000, 50_000)
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

#[test]
fn a_fifo_is_not_read_and_blocks_nothing() {
    let served = serve();
    let folder = tempfile::tempdir().unwrap();
    let path = |cpu: usize| folder.path().join(format!("cpu{cpu}"));
    fs::write(path(0), "1300000\n").unwrap();
    fifo(&path(1));
    fs::write(path(2), "2600000\n").unwrap();
    follow(&served, folder.path());
    served.done(&["ctl", "set", "--preset", "smove"]);
    let control = served.control.clone();
    let sampling = thread::spawn(move || control.sample(FreqFiles::read));
    // Time for the sampler to open the pipe.
    thread::sleep(Duration::from_millis(100));
    let answered = answers(&served);
    thread::sleep(Duration::from_millis(100));
    let waited = !sampling.is_finished();
    // A reader that waits for a writer has one now.
    let _both_ends = fs::File::options().read(true).write(true).open(path(1));
    sampling.join().unwrap().unwrap();
    assert!(answered);
    assert!(!waited, "the pipe was opened, or read");
    let khz = &served.told.0.lock().unwrap().khz;
    assert_eq!(khz[..3], [Some(1_300_000), None, Some(2_600_000)]);
}

#[test]
fn control_is_answered_while_files_are_read() {
    let served = serve();
    let folder = tempfile::tempdir().unwrap();
    follow(&served, folder.path());
    served.done(&["ctl", "set", "--preset", "smove"]);
    let mut answered = false;
    let slowly = |_: &FreqFiles| {
        answered = answers(&served);
        vec![Some(1_300_000)]
    };
    served.control.sample(slowly).unwrap();
    assert!(answered);
    assert_eq!(served.told.0.lock().unwrap().khz, [Some(1_300_000)]);
}

#[test]
fn stopping_the_sampler_does_not_wait_for_it() {
    let served = serve();
    let folder = tempfile::tempdir().unwrap();
    follow(&served, folder.path());
    served.done(&["ctl", "set", "--preset", "smove"]);
    // While this is locked, the sampler cannot publish what it has read.
    let told = served.told.0.lock().unwrap();
    let (_stopper, stop) = stopper();
    let sampler =
        Sampler::of_frequencies(served.control.clone(), Duration::from_millis(1), stop).unwrap();
    thread::sleep(Duration::from_millis(100));
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        drop(sampler);
        ended.send(()).unwrap();
    });
    let ended = end.recv_timeout(PATIENCE);
    drop(told);
    assert_eq!(ended, Ok(()));
}
