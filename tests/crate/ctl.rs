// SPDX-License-Identifier: GPL-2.0-only
//! The control socket, with a scheduler that only remembers what it was told, and the commands that ask it.

use anyhow::{Result, bail};
use scx_roost::arms::Settings;
use scx_roost::bpf::intf::{llc_facts, policy_image};
use scx_roost::control::{Attached, Audit, Control, Live, Ticket};
use scx_roost::features::bits;
use scx_roost::host::Host;
use scx_roost::machine::FreqSource;
use scx_roost::publish::{Frequencies, Scans};
use scx_roost::rules::Table;
use scx_roost::socket::Server;
use scx_roost::stats::source::CounterSource;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

#[derive(Default)]
struct Told {
    image: Option<policy_image>,
    publications: u32,
    table: Table,
    tables: u32,
    tickets: Vec<Ticket>,
    khz: Vec<Option<u32>>,
    /// And for how long they count.
    scans: Vec<(u32, u32)>,
    fails: bool,
    audits: u32,
    /// What the next audits say, the next one last.
    drifts: Vec<u64>,
}

#[derive(Clone, Default)]
struct Remembers(Arc<Mutex<Told>>);

impl Live for Remembers {
    fn publish(&mut self, image: &policy_image) -> Result<u32> {
        let mut told = self.0.lock().unwrap();
        if told.fails {
            bail!("no grace");
        }
        told.publications += 1;
        told.image = Some(*image);
        Ok(image.generation + 1)
    }

    fn set_rules(&mut self, table: &Table) -> Result<()> {
        let mut told = self.0.lock().unwrap();
        told.table = table.clone();
        told.tables += 1;
        Ok(())
    }

    fn speeds(&self, nr_cpus: usize) -> Vec<u32> {
        vec![1024; nr_cpus]
    }

    fn set_frequencies(&mut self, khz: &[Option<u32>]) {
        self.0.lock().unwrap().khz = khz.to_vec();
    }

    fn idle_means(&self, nr_cpus: usize, every: bool) -> Vec<u64> {
        let mean = if every { 0 } else { 6 * 25_600 };
        vec![mean; nr_cpus]
    }

    fn set_scans(&mut self, worth: &[u32], counts_ms: u32) {
        let mut told = self.0.lock().unwrap();
        told.scans = worth.iter().map(|worth| (*worth, counts_ms)).collect();
    }

    fn tell(&mut self, _process: BorrowedFd, ticket: Ticket) -> Result<()> {
        self.0.lock().unwrap().tickets.push(ticket);
        Ok(())
    }

    fn audit(&mut self) -> Result<Audit> {
        let mut told = self.0.lock().unwrap();
        told.audits += 1;
        let util_drift = told.drifts.pop().unwrap_or(0);
        let of_cpu = (util_drift > 0).then_some((3, -(util_drift as i64)));
        Ok(Audit {
            tasks: 70,
            joined: 2,
            util_est: 300,
            util_drift,
            drift_of_cpu: of_cpu.into_iter().collect(),
        })
    }
}

struct Served {
    control: Control,
    source: CounterSource,
    told: Remembers,
    attached: Option<Attached>,
    _server: Server,
    dir: TempDir,
}

fn serve() -> Served {
    serve_with(false)
}

fn serve_with(frozen: bool) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let (source, told) = (CounterSource::default(), Remembers::default());
    let control = Control::new(Settings::default(), frozen, source.clone());
    let server = control.launch(&dir.path().join("ctl"), None).unwrap();
    let image = control.image(8, vec![1024; 8]);
    let attached = control.attach(Box::new(told.clone()), &image).unwrap();
    Served {
        control,
        source,
        told,
        attached: Some(attached),
        _server: server,
        dir,
    }
}

impl Served {
    fn path(&self) -> PathBuf {
        self.dir.path().join("ctl")
    }

    fn publications(&self) -> u32 {
        self.told.0.lock().unwrap().publications
    }

    /// Features of the arm in this slot, as they were told last.
    fn features(&self, slot: usize) -> u32 {
        let told = self.told.0.lock().unwrap();
        told.image.unwrap().arm[slot].task.features
    }

    fn roost(&self, args: &[&str]) -> Output {
        let (verb, rest) = args.split_first().unwrap();
        Command::new(env!("CARGO_BIN_EXE_scx_roost"))
            .args([verb, "--ctl-path"])
            .arg(self.path())
            .args(rest)
            .output()
            .expect("the binary runs")
    }

    fn done(&self, args: &[&str]) -> String {
        let output = self.roost(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, args: &[&str]) -> String {
        let before = (self.done(&["ctl", "show"]), self.done(&["ctl", "rules"]));
        let output = self.roost(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        let after = (self.done(&["ctl", "show"]), self.done(&["ctl", "rules"]));
        assert_eq!(before, after, "{args:?}");
        stderr
    }
}

/// These lines there at once, as many back.
fn raw(stream: &UnixStream, lines: &[&str]) -> Vec<Value> {
    let mut writer = stream;
    writer
        .write_all((lines.join("\n") + "\n").as_bytes())
        .unwrap();
    let mut reader = BufReader::new(stream);
    let mut answer = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    lines.iter().map(|_| answer()).collect()
}

fn request(args: &str) -> String {
    format!("{{\"req\":\"ctl\",\"args\":{{{args}}}}}")
}

fn set(arm: &str, change: &str) -> String {
    request(&format!(
        "\"op\":\"set\",\"arm\":\"{arm}\",\"change\":{{{change}}}"
    ))
}

#[test]
fn only_the_owner_may_connect() {
    let served = serve();
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(served.path()), 0o600);
    let gid = unsafe { libc::getegid() };
    let at = served.dir.path().join("shared");
    let _server = served.control.launch(&at, Some(gid)).unwrap();
    assert_eq!(std::fs::metadata(&at).unwrap().gid(), gid);
    assert_eq!(mode(at), 0o660);
}

#[test]
fn a_change_is_live_when_it_is_answered() {
    let served = serve();
    let stream = UnixStream::connect(served.path()).unwrap();
    let answers = raw(&stream, &[&set("default", r#""disable":["sync_local"]"#)]);
    assert_eq!(answers[0]["errno"], 0);
    assert_eq!(answers[0]["args"]["resp"]["generation"], 1);
    assert_eq!(served.features(0) & bits::sync_local.0, 0);
    assert!(
        !served.source.totals().arms["default"]
            .features
            .contains("sync_local")
    );
}

#[test]
fn what_is_frozen_can_be_seen_and_not_changed() {
    let served = serve_with(true);
    assert!(
        served
            .done(&["ctl", "show"])
            .starts_with("generation 0, frozen\n")
    );
    for change in [
        &["ctl", "set", "--enable", "claim"][..],
        &["ctl", "reset"],
        &["ctl", "arms", "add", "x"],
        &["ctl", "rules", "add", "--comm", "x", "--arm", "default"],
        &["exec", "--arm", "default", "--", "true"],
    ] {
        let said = served.refused(change);
        assert!(said.contains("--freeze"), "{change:?}: {said}");
    }
    let stream = UnixStream::connect(served.path()).unwrap();
    let answers = raw(&stream, &[&set("default", "")]);
    assert_eq!(answers[0]["errno"], libc::EROFS);
    assert_eq!(served.publications(), 0);
}

#[test]
fn requests_that_arrive_together_are_published_together_and_refused_apart() {
    let served = serve();
    let stream = UnixStream::connect(served.path()).unwrap();
    let off = set("default", r#""disable":["sync_local"]"#);
    let bad = set("default", r#""disable":["sis_util"],"set":{"slice-us":5}"#);
    let less = set("default", r#""disable":["wide_idle"]"#);
    let answers = raw(&stream, &[&off, &bad, &less]);
    let errnos: Vec<i64> = answers
        .iter()
        .map(|a| a["errno"].as_i64().unwrap())
        .collect();
    assert_eq!(errnos, [0, i64::from(libc::EINVAL), 0]);
    assert_eq!(served.publications(), 1);
    let features = served.features(0);
    assert_eq!(features & bits::sync_local.with(bits::wide_idle).0, 0);
    assert_ne!(features & bits::sis_util.0, 0);
}

#[test]
fn what_cannot_be_published_is_told() {
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
    // The next one makes it good.
    served.done(&["ctl", "set", "--disable", "wide_idle"]);
    assert_eq!(served.features(0) & bits::sync_local.0, 0);
}

#[test]
fn a_bad_request_is_answered_and_the_connection_lives_on() {
    let served = serve();
    let stream = UnixStream::connect(served.path()).unwrap();
    for (line, expected) in [
        ("nonsense", "a request is a line of JSON"),
        (
            r#"{"req":"stats"}"#,
            "unknown request 'stats': expected is ctl",
        ),
        (r#"{"req":"ctl"}"#, "do not say what to do"),
        (&request(r#""op":"explode""#), "unknown variant `explode`"),
        (
            &request(r#""op":"set","arm":"default","change":{"enabel":[]}"#),
            "unknown field `enabel`",
        ),
        (
            &request(r#""op":"show","arm":"default","more":1"#),
            "unknown field `more`",
        ),
    ] {
        let answer = &raw(&stream, &[line])[0];
        assert_eq!(answer["errno"], libc::EINVAL, "{answer}");
        let text = answer["args"]["resp"].as_str().unwrap();
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(raw(&stream, &[&request(r#""op":"rules""#)])[0]["errno"], 0);
    assert_eq!(served.publications(), 0);
}

#[test]
fn a_line_without_end_is_cut_off() {
    let served = serve();
    let mut stream = UnixStream::connect(served.path()).unwrap();
    let begin = Instant::now();
    let _ = stream.write_all(&[b' '; 100_000]);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty());
    // For its length, and not because time ran out.
    assert!(begin.elapsed() < Duration::from_secs(3));
    served.done(&["ctl", "show"]);
}

#[test]
fn wrong_names_and_values_are_one_sentence_and_change_nothing() {
    let served = serve();
    served.done(&["ctl", "arms", "add", "x", "--preset", "mainline"]);
    served.done(&["ctl", "rules", "add", "--comm", "a*", "--arm", "x"]);
    for (args, expected) in [
        (
            &["ctl", "set", "--enable", "magic"][..],
            "unknown feature 'magic': expected one of prev_idle",
        ),
        (
            &["ctl", "set", "--preset", "fast", "--enable", "wide_idle"],
            "unknown preset 'fast': expected one of roost",
        ),
        (
            &["ctl", "set", "--set", "slice-us=5"],
            "slice-us 5: 100 to 100000 us are possible",
        ),
        (
            &["ctl", "set", "--set", "slices=5"],
            "unknown tunable 'slices': expected one of slice-us",
        ),
        (
            &["ctl", "set", "--set", "slice-us"],
            "a tunable, = and its value are expected",
        ),
        (&["ctl", "set"], "nothing to change"),
        (
            &["ctl", "set", "--arm", "y", "--enable", "wide_idle"],
            "no arm 'y': there are default, x",
        ),
        (
            &["ctl", "set", "--arm", "x", "--set", "rescue-us=2000"],
            "set it on arm default",
        ),
        (&["ctl", "reset", "--arm", "y"], "no arm 'y'"),
        (&["ctl", "show", "--arm", "y"], "no arm 'y'"),
        (&["ctl", "arms", "add", "x"], "there is an arm 'x' already"),
        (&["ctl", "arms", "add", "X"], "a name has 1 to 15 of a-z"),
        (&["ctl", "arms", "del", "default"], "cannot be deleted"),
        (
            &["ctl", "arms", "del", "x"],
            "arm 'x' has 1 rules: delete them first",
        ),
        (
            &["ctl", "rules", "add", "--comm", "b", "--arm", "y"],
            "no arm 'y'",
        ),
        (
            &["ctl", "rules", "add", "--comm", "a*", "--arm", "x"],
            "there is a rule --comm a* already",
        ),
        (
            &["ctl", "rules", "add", "--pid", "4194304", "--arm", "x"],
            "no process 4194304",
        ),
        (
            &["ctl", "rules", "add", "--cgroup", "/nowhere", "--arm", "x"],
            "no cgroup /nowhere",
        ),
        (&["ctl", "rules", "del", "--pid", "1"], "no rule --pid 1"),
        (
            &[
                "ctl", "rules", "add", "--comm", "a", "--pid", "1", "--arm", "x",
            ],
            "cannot be used with",
        ),
        (&["ctl", "rules", "add", "--arm", "x"], "--cgroup <PATH>"),
        (&["ctl", "explode"], "unrecognized subcommand 'explode'"),
        (
            &["exec", "--arm", "y", "--", "true"],
            "no arm 'y': there are default, x",
        ),
    ] {
        let error = served.refused(args);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}

#[test]
fn nobody_serves() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve();
    let args = ["ctl", "show", "--ctl-path"];
    let output = Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args(args)
        .arg(dir.path().join("ctl"))
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("no scheduler is controlled at"), "{stderr}");
    drop(served);
}

#[test]
fn arms_are_shown_changed_and_reset() {
    let served = serve();
    served.done(&["ctl", "arms", "add", "x", "--preset", "mainline"]);
    served.done(&[
        "ctl",
        "set",
        "--arm",
        "x",
        "--enable",
        "wide_idle",
        "--set",
        "slice-us=900",
    ]);
    assert_eq!(served.features(1) & bits::wide_idle.0, bits::wide_idle.0);
    let text = served.done(&["ctl", "show", "--arm", "x"]);
    assert!(text.contains("arm x: preset mainline, 0 rules"), "{text}");
    let on = text.lines().find(|l| l.starts_with("  on ")).unwrap();
    assert!(on.contains("wide_idle"), "{text}");
    assert!(
        text.contains("slice-us 900") && !text.contains("rescue-us"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&served.done(&["ctl", "show", "--json"])).unwrap();
    assert_eq!(json["generation"], 2);
    assert_eq!(json["arms"][1]["tunables"]["slice-us"], 900);
    assert_eq!(json["arms"][0]["tunables"]["rescue-us"], 20_000);
    served.done(&["ctl", "reset", "--arm", "x"]);
    assert_eq!(served.features(1) & bits::wide_idle.0, 0);
    let list = served.done(&["ctl", "arms"]);
    assert_eq!(list.lines().count(), 2, "{list}");
    served.done(&["ctl", "arms", "del", "x"]);
    assert_eq!(served.done(&["ctl", "arms", "list"]).lines().count(), 1);
}

#[test]
fn an_audit_is_the_best_of_a_few() {
    let served = serve();
    let with = |drifts: &[u64]| {
        let mut told = served.told.0.lock().unwrap();
        (told.drifts, told.audits) = (drifts.to_vec(), 0);
    };
    with(&[0, 5]);
    let json = served.done(&["ctl", "show", "--audit", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["util_drift"], &json["tasks"]),
        (&0.into(), &70.into())
    );
    assert_eq!(served.told.0.lock().unwrap().audits, 2);
    with(&[1, 2, 9, 7, 4, 8]);
    let text = served.done(&["ctl", "show", "--audit"]);
    assert_eq!(
        text,
        "70 tasks, 2 of them counted by CPUs with a util_est of 300\ndrift 2\n  CPU 3    off by -2\n"
    );
    assert!(
        served
            .refused(&["ctl", "show", "--audit", "--arm", "default"])
            .contains("cannot be used with")
    );
}

#[test]
fn exec_tells_who_asks_and_becomes_the_command() {
    let served = serve();
    served.done(&["ctl", "arms", "add", "x"]);
    let tables = served.told.0.lock().unwrap().tables;
    let script = "cat; echo $1 $ROOST_TEST; exit 7";
    let mut child = Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args(["exec", "--arm", "x", "--ctl-path"])
        .arg(served.path())
        .args(["--", "sh", "-c", script, "sh", "a  b"])
        .env("ROOST_TEST", "one\ntwo")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"in\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "in\na b one two\n");
    let told = served.told.0.lock().unwrap();
    let [Ticket::Exec(id)] = told.tickets[..] else {
        panic!("told was {:?}", told.tickets)
    };
    assert!(told.table.tickets.iter().any(|t| t.id == id && t.arm == 1));
    // With new rules all tasks would ask.
    assert_eq!(told.tables, tables);
}

#[test]
fn a_command_that_is_not_there_is_127() {
    let served = serve();
    let output = served.roost(&["exec", "--arm", "default", "--", "/no/such/program"]);
    assert_eq!(output.status.code(), Some(127));
    let output = served.roost(&["exec", "--arm", "default", "--", "/proc"]);
    assert_eq!(output.status.code(), Some(126));
}

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

#[test]
fn budgets_of_scans_are_told_while_an_arm_wants_them() {
    let served = serve();
    let llc = |first, nr_cpus| llc_facts {
        first,
        nr_cpus,
        nr_words: 1,
        node: 0,
        capacity: 1024 * u32::from(nr_cpus),
    };
    let period = Duration::from_millis(20);
    let cpus = [0, 1, 2, 3, 4, 5, 6, 7];
    let scans = Scans::new(&[llc(0, 1), llc(1, 7)], &cpus, period);
    served.control.set_scans(scans);
    let told = || {
        served.told.0.lock().unwrap().scans.clear();
        served.control.sample_idle();
        served.told.0.lock().unwrap().scans.clone()
    };
    assert!(!served.control.wants_samples());
    assert_eq!(told(), [], "nobody asks");
    served.done(&["ctl", "arms", "add", "x", "--preset", "mainline"]);
    served.done(&["ctl", "set", "--arm", "x", "--enable", "avg_idle_scan"]);
    assert!(served.control.wants_samples());
    assert_eq!(told(), [(1, 60), (6, 60)]);
    // Which mean is the machine's affair.
    served.done(&["ctl", "set", "--arm", "x", "--enable", "avg_idle_every"]);
    assert_eq!(told(), [(1, 60), (6, 60)]);
    served.done(&["ctl", "set", "--enable", "avg_idle_every"]);
    assert_eq!(told(), [(1, 60), (4, 60)]);
    served.done(&["ctl", "set", "--arm", "x", "--disable", "avg_idle"]);
    assert_eq!(told(), [], "without its feature it does nothing");
}

#[test]
fn what_was_changed_between_two_schedulers_is_told_to_the_next() {
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

#[test]
fn a_rule_about_a_process_tells_it() {
    let served = serve();
    let pid = std::process::id().to_string();
    served.done(&["ctl", "rules", "add", "--pid", &pid, "--arm", "default"]);
    assert!(
        served
            .done(&["ctl", "rules"])
            .contains(&format!("--pid {pid} --arm default"))
    );
    let id = match served.told.0.lock().unwrap().tickets[..] {
        [Ticket::Pid(id)] => id,
        _ => panic!("one ticket is expected"),
    };
    let good = || {
        served
            .told
            .0
            .lock()
            .unwrap()
            .table
            .tickets
            .iter()
            .any(|t| t.id == id)
    };
    assert!(good());
    served.done(&["ctl", "rules", "del", "--pid", &pid]);
    assert!(!good());
}
