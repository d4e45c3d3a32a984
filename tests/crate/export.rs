// SPDX-License-Identifier: GPL-2.0-only
//! The exporter as scrapers see it, with statistics of the test's own. scripts/monitoring.py checks
//! it with Prometheus and its parsers.

use crate::fake::FakeDaemon;
use scx_roost::clients::export::{self, Answer, Format, Listener, Output, Pages, Series, Source};
use scx_roost::policy::features::FEATURES;
use scx_roost::stopper;
use scx_roost::wire::note::{Cause, Note};
use scx_roost::wire::stats::host::{Condition, CpuGauges, EVENTS};
use scx_roost::wire::stats::{HISTS, ROWS};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const OPEN: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n";
const CLASSIC: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

struct Exported {
    daemon: Option<FakeDaemon>,
    counter: Arc<AtomicU64>,
    _listener: Listener,
    at: SocketAddr,
    dir: TempDir,
}

impl Exported {
    fn new() -> Exported {
        let dir = tempfile::tempdir().unwrap();
        let counter = Arc::new(AtomicU64::new(8));
        let pages = Pages::new(Source::start(&stats(&dir), Series::All).unwrap());
        let (listener, at) = Listener::new("127.0.0.1:0".parse().unwrap(), pages).unwrap();
        let mut exported = Exported {
            daemon: None,
            counter,
            _listener: listener,
            at,
            dir,
        };
        exported.begin();
        exported
    }

    fn begin(&mut self) {
        let counter = self.counter.clone();
        let daemon = FakeDaemon::serve(&stats(&self.dir), move || counter.load(Ordering::Relaxed));
        self.daemon = Some(daemon);
    }

    fn ask(&self, request: &str) -> String {
        // Longer than the exporter reuses its statistics.
        sleep(Duration::from_millis(550));
        asked(TcpStream::connect(self.at).unwrap(), request)
    }
}

fn stats(dir: &TempDir) -> PathBuf {
    dir.path().join("stats")
}

fn asked(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The value of a sample. `sample` is all of its line before the value.
fn value(text: &str, sample: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(sample)?.strip_prefix(' '))?;
    Some(line.parse().unwrap())
}

fn families(text: &str) -> Vec<&str> {
    let types = text.lines().filter_map(|l| l.strip_prefix("# TYPE "));
    types.map(|t| t.split(' ').next().unwrap()).collect()
}

#[test]
fn every_row_of_every_table_is_a_family_of_its_own() {
    let text = Exported::new().ask(OPEN);
    let names = families(&text);
    let set: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(set.len(), names.len(), "a name twice: {names:?}");
    for row in ROWS {
        let has = |name: String| set.contains(name.as_str());
        assert!(has(format!("roost_all_{}", row.name)), "{}", row.name);
        let by_arm = has(format!("roost_{}", row.name));
        assert_eq!(by_arm, !row.machine, "{}", row.name);
    }
    for row in EVENTS {
        assert!(
            set.contains(format!("roost_{}", row.name).as_str()),
            "{}",
            row.name
        );
    }
    for hist in HISTS {
        assert!(
            set.contains(format!("roost_{hist}_seconds").as_str()),
            "{hist}"
        );
    }
    for feature in FEATURES {
        let on = f64::from(u8::from(feature.name == "prev_idle"));
        let sample = format!(
            "roost_feature{{arm=\"games\",feature=\"{}\"}}",
            feature.name
        );
        assert_eq!(value(&text, &sample), Some(on), "{sample}");
    }
    for condition in Condition::ALL {
        let active = f64::from(u8::from(*condition == Condition::CapacityLimited));
        for family in ["roost_condition_active", "roost_condition_begun_total"] {
            let sample = format!("{family}{{condition=\"{}\"}}", condition.name());
            assert_eq!(value(&text, &sample), Some(active), "{sample}");
        }
    }
}

#[test]
fn values_are_in_base_units_and_unknown_ones_are_left_out() {
    let text = Exported::new().ask(OPEN);
    let cpu = |name: &str, cpu: u64| {
        let places = format!(
            "cpu=\"{cpu}\",core=\"{cpu}\",llc=\"{}\",node=\"0\"",
            cpu / 2
        );
        value(&text, &format!("roost_cpu{name}{{{places}}}"))
    };
    assert_eq!((cpu("_hertz", 2), cpu("_hertz", 3)), (Some(1e9), None));
    assert_eq!(
        (cpu("_busy_ratio", 0), cpu("_busy_ratio", 3)),
        (Some(0.0), Some(0.75))
    );
    assert_eq!(
        (cpu("_idle_mean_seconds", 1), cpu("_capacity_now", 1)),
        (Some(0.00015), Some(924.0))
    );
    assert_eq!(value(&text, "roost_period_seconds"), Some(0.1));
    assert!(text.contains("\nroost_busy_ratio 0.7\n"));
    assert_eq!(value(&text, "roost_resident_bytes"), Some(16384.0));
    assert!(text.contains("\n# UNIT roost_period_seconds seconds\n"));
    // A CPU's place is a label, not a metric.
    assert!(!text.contains("# TYPE roost_cpu_llc "));
}

#[test]
fn buckets_are_cumulative_and_end_at_infinity() {
    let text = Exported::new().ask(OPEN);
    let bucket = |le: &str| {
        let sample = format!("roost_wakeup_latency_seconds_bucket{{le=\"{le}\",arm=\"default\"}}");
        value(&text, &sample)
    };
    // Half of 8, a quarter, an eighth; the last one is in no bucket.
    assert_eq!(
        (
            bucket("0.000002048"),
            bucket("0.000004096"),
            bucket("0.000008192")
        ),
        (Some(4.0), Some(6.0), Some(7.0))
    );
    assert_eq!(bucket("+Inf"), Some(7.0));
    assert_eq!(
        value(&text, "roost_wakeup_latency_seconds_count{arm=\"default\"}"),
        Some(7.0)
    );
    assert_eq!(
        value(&text, "roost_wakeup_latency_seconds_sum{arm=\"default\"}"),
        Some(18e-6)
    );
}

#[test]
fn what_an_arm_counted_that_is_gone_stays_in_all() {
    let exported = Exported::new();
    let counts = || {
        let text = exported.ask(OPEN);
        let of = |sample: &str| value(&text, sample);
        (
            of("roost_sis_prev_total{arm=\"default\"}"),
            of("roost_sis_prev_total{arm=\"games\"}"),
            of("roost_all_sis_prev_total"),
        )
    };
    let (default, games, all) = counts();
    assert_eq!((default, all), (Some(8.0), Some(24.0)));
    // The second arm existed before anything was counted.
    assert_eq!(games, Some(16.0));
    FakeDaemon::set_arms(&exported.daemon.as_ref().unwrap().source, &["default"]);
    assert_eq!(counts(), (Some(8.0), None, Some(24.0)));
    exported.counter.store(9, Ordering::Relaxed);
    assert_eq!(counts(), (Some(9.0), None, Some(27.0)));
}

#[test]
fn a_request_for_openmetrics_gets_it() {
    let exported = Exported::new();
    let open = exported.ask(OPEN);
    assert!(
        open.contains(
            "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"
        )
    );
    assert!(open.contains("# TYPE roost_sis_prev counter\n") && open.ends_with("\n# EOF\n"));
    let classic = exported.ask(CLASSIC);
    assert!(classic.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert!(
        classic.contains("# TYPE roost_sis_prev_total counter\n") && !classic.contains("# EOF")
    );
    assert!(classic.contains("# TYPE roost_scheduler_info gauge\n"));
    let samples = |text: &str| text.lines().filter(|l| l.starts_with("roost_")).count();
    assert_eq!(samples(&open), samples(&classic));
    assert!(
        exported
            .ask("GET / HTTP/1.1\r\n\r\n")
            .contains("href=\"/metrics\"")
    );
}

#[test]
fn a_daemon_may_go_and_come_back() {
    let mut exported = Exported::new();
    let up = |text: &str| value(text, "roost_up");
    assert_eq!(up(&exported.ask(OPEN)), Some(1.0));
    exported.daemon = None;
    let text = exported.ask(OPEN);
    assert_eq!(up(&text), Some(0.0));
    assert_eq!(families(&text), ["roost_up", "roost_failed"]);
    exported.begin();
    assert_eq!(up(&exported.ask(OPEN)), Some(1.0));
    // Another daemon starts between two scrapes.
    exported.daemon = None;
    exported.begin();
    assert_eq!(up(&exported.ask(OPEN)), Some(1.0));
}

/// An alert must not wake anybody because of a planned stop.
#[test]
fn only_a_daemon_that_did_not_end_on_request_has_failed() {
    let mut exported = Exported::new();
    let failed = |exported: &Exported| value(&exported.ask(OPEN), "roost_failed");
    assert_eq!(failed(&exported), Some(0.0));
    exported.daemon = None;
    assert_eq!(
        failed(&exported),
        Some(0.0),
        "an orderly end removes the socket"
    );
    let ended = |exported: &Exported, cause| {
        Note::begin(&stats(&exported.dir)).end(cause, "");
        failed(exported)
    };
    assert_eq!(ended(&exported, Cause::Signal), Some(0.0), "a signal");
    assert_eq!(ended(&exported, Cause::Error), Some(1.0), "an error");
    exported.begin();
    assert_eq!(failed(&exported), Some(0.0), "another one runs");
    exported.daemon = None;
    assert_eq!(
        ended(&exported, Cause::Replaced),
        Some(0.0),
        "another scheduler"
    );
    drop(UnixListener::bind(stats(&exported.dir)).unwrap());
    assert_eq!(
        failed(&exported),
        Some(1.0),
        "it was killed and left its socket"
    );
}

#[test]
fn series_of_cpus_can_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = FakeDaemon::serve(&stats(&dir), || 1);
    let many = (0..1024).map(|cpu| (cpu, CpuGauges::default()));
    daemon.source.set_cpus(many.collect(), None);
    let page = |series| {
        let source = Source::start(&stats(&dir), series).unwrap();
        Pages::new(source).page(Format::OpenMetrics).unwrap()
    };
    let of_cpus = |page: &str| page.lines().filter(|l| l.starts_with("roost_cpu_")).count();
    let (all, few) = (page(Series::All), page(Series::NoCpus));
    assert!(of_cpus(&all) >= 4 * 1024, "{}", of_cpus(&all));
    assert_eq!(of_cpus(&few), 0);
    let samples = |page: &str| page.lines().filter(|l| l.starts_with("roost_")).count();
    assert_eq!(samples(&few), samples(&all) - of_cpus(&all));
    assert!(few.ends_with("\n# EOF\n") && !few.contains("roost_cpu_"));
}

#[test]
fn a_daemon_that_is_stopped_keeps_no_scraper() {
    let dir = tempfile::tempdir().unwrap();
    let _silent = UnixListener::bind(stats(&dir)).unwrap();
    let source = Source::start(&stats(&dir), Series::All).unwrap();
    let begin = Instant::now();
    let asking: Vec<_> = (0..100)
        .map(|_| source.clone())
        .map(|source| std::thread::spawn(move || source.ask()))
        .collect();
    let answers: Vec<_> = asking.into_iter().map(|t| t.join().unwrap()).collect();
    // Requests beyond the limit get no answer. The others learn that the daemon does not answer.
    let is_up = |answer: &Answer| matches!(answer, Answer::Up(_));
    assert!(!answers.iter().flatten().any(is_up));
    assert!(answers.iter().flatten().count() >= 60);
    assert!(
        begin.elapsed() < Duration::from_secs(15),
        "{:?}",
        begin.elapsed()
    );
}

/// More connections of each kind than are served at once.
#[test]
fn hostile_scrapers_delay_no_other_client() {
    let exported = Exported::new();
    let begin = Instant::now();
    let connect = |request: &[u8]| {
        let mut stream = TcpStream::connect(exported.at).unwrap();
        let _ = stream.write_all(request);
        stream
    };
    let mut held = Vec::new();
    for _ in 0..30 {
        held.push(connect(b""));
        held.push(connect(b"GET /metrics HTTP/1.1\r\nx: "));
        // It never reads the answer.
        held.push(connect(OPEN.as_bytes()));
        held.push(connect(&[0xff; 100_000]));
    }
    assert_eq!(value(&exported.ask(OPEN), "roost_up"), Some(1.0));
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
    let is_served = |stream: &&TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let mut rest = [0; 1 << 16];
        let mut stream = *stream;
        loop {
            match stream.read(&mut rest) {
                Ok(0) => return false,
                Ok(_) => (),
                Err(e) => return e.kind() == ErrorKind::WouldBlock,
            }
        }
    };
    let served = held.iter().filter(is_served).count();
    // It may be none, if all this took longer than a connection may last.
    assert!(served <= 32, "{served} are served at once");
}

#[test]
fn a_waiting_client_stays_connected_in_a_flood() {
    let dir = tempfile::tempdir().unwrap();
    let silent = UnixListener::bind(stats(&dir)).unwrap();
    let pages = Pages::new(Source::start(&stats(&dir), Series::All).unwrap());
    let (_listener, at) = Listener::new("127.0.0.1:0".parse().unwrap(), pages).unwrap();
    let mut honest = TcpStream::connect(at).unwrap();
    honest.write_all(OPEN.as_bytes()).unwrap();
    // Its request is complete, so the scheduler is asked.
    let _asked = silent.accept().unwrap();
    let _flood: Vec<_> = (0..60).map(|_| TcpStream::connect(at).unwrap()).collect();
    assert_eq!(value(&asked(honest, ""), "roost_up"), Some(0.0));
}

/// A statistics socket that refuses every client.
fn refuse(path: &Path) {
    let refusing = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in refusing.incoming() {
            let text = "{\"errno\":16,\"args\":{\"resp\":\"all connections are in use\"}}\n";
            let mut stream = stream.unwrap();
            let _ = stream.write_all(text.as_bytes());
            let _ = stream.read(&mut [0; 1024]);
        }
    });
}

#[test]
fn what_the_exporter_cannot_know_it_does_not_tell() {
    let dir = tempfile::tempdir().unwrap();
    refuse(&stats(&dir));
    let pages = Pages::new(Source::start(&stats(&dir), Series::All).unwrap());
    let (_listener, at) = Listener::new("127.0.0.1:0".parse().unwrap(), pages).unwrap();
    let answer = asked(TcpStream::connect(at).unwrap(), OPEN);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("all connections are in use\n"), "{answer}");
}

/// connect() blocks without limit when the backlog is full.
#[test]
fn a_daemon_that_accepts_no_client_is_reported_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let full = UnixListener::bind(stats(&dir)).unwrap();
    // SAFETY: a plain call. The backlog has room for one.
    assert_eq!(unsafe { libc::listen(full.as_raw_fd(), 0) }, 0);
    let _first = UnixStream::connect(stats(&dir)).unwrap();
    let source = Source::start(&stats(&dir), Series::All).unwrap();
    assert!(matches!(
        source.ask().unwrap(),
        Answer::Down { failed: true }
    ));
}

#[test]
fn a_silent_client_is_dropped() {
    let exported = Exported::new();
    let mut silent = TcpStream::connect(exported.at).unwrap();
    let mut slow = TcpStream::connect(exported.at).unwrap();
    let begin = Instant::now();
    // Two bytes a second do not complete a request in time.
    while slow.write_all(b"G").is_ok() && begin.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(500));
    }
    assert!(begin.elapsed() < Duration::from_secs(20));
    silent
        .set_read_timeout(Some(Duration::from_secs(15)))
        .unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
}

fn exporter(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_roost"));
    command.arg("export").args(args).stdin(Stdio::null());
    command
}

fn await_it(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is() {
        assert!(Instant::now() < end, "{what}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_signal_ends_it_and_nothing_is_left() {
    let exported = Exported::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("roost.prom");
    let text = |path: &Path| path.to_str().unwrap().to_string();
    let log = exported.dir.path().join("log");
    let mut child = exporter(&["--stats-path", &text(&stats(&exported.dir))])
        .args(["--listen", "127.0.0.1:0", "--textfile", &text(&file)])
        .args(["--interval", "0.1"])
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let at = || {
        let log = std::fs::read_to_string(&log).unwrap();
        let (_, at) = log.split_once("metrics are at http://")?;
        at.split_once("/metrics\n")?.0.parse::<SocketAddr>().ok()
    };
    await_it("an address", || at().is_some());
    let answer = asked(TcpStream::connect(at().unwrap()).unwrap(), CLASSIC);
    assert_eq!(value(&answer, "roost_up"), Some(1.0));
    let written = |sample: &str| value(&std::fs::read_to_string(&file).unwrap_or_default(), sample);
    await_it("a file", || {
        written("roost_sis_prev_total{arm=\"default\"}") == Some(8.0)
    });
    exported.counter.store(9, Ordering::Relaxed);
    await_it("a newer file", || {
        written("roost_sis_prev_total{arm=\"default\"}") == Some(9.0)
    });
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert!(child.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(TcpStream::connect(at().unwrap()).is_err());
}

#[test]
fn while_nothing_is_known_a_file_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    refuse(&stats(&dir));
    let run = |file: &Path, log: &Path| {
        exporter(&["--interval", "0.1", "--stats-path"])
            .arg(stats(&dir))
            .arg("--textfile")
            .arg(file)
            .stderr(std::fs::File::create(log).unwrap())
            .spawn()
            .unwrap()
    };
    let [file, log] = ["roost.prom", "log"].map(|name| dir.path().join(name));
    let said = || std::fs::read_to_string(&log).unwrap();
    std::fs::write(&file, "old 1\n").unwrap();
    let mut child = run(&file, &log);
    let told = format!("cannot write {}: ", file.display());
    await_it("a word in the log", || said().contains(&told));
    sleep(Duration::from_millis(500));
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert!(child.wait().unwrap().success());
    let said_at_last = said();
    assert_eq!(said_at_last.matches(&told).count(), 1, "{said_at_last}");
    assert!(!said_at_last.contains("metrics are in"), "{said_at_last}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old 1\n");
    // Socket, log and file: failed attempts leave no other files.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    // A path that cannot be written is reported at once, even if the statistics are unknown.
    let mut child = run(Path::new("/proc/nope/x.prom"), &log);
    let end = Instant::now() + Duration::from_secs(10);
    while child.try_wait().unwrap().is_none() && Instant::now() < end {
        sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{}", said());
    let told = "cannot write /proc/nope/x.prom: ";
    assert!(said().contains(told), "{}", said());
}

#[test]
fn once_prints_or_writes_and_is_done() {
    let exported = Exported::new();
    let (at, file) = (stats(&exported.dir), exported.dir.path().join("roost.prom"));
    let run = |more: &[&str]| {
        let mut command = exporter(&["--once", "--stats-path", at.to_str().unwrap()]);
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let stamp = "roost_textfile_timestamp_seconds";
    let printed = run(&[]);
    assert!(!printed.contains("# EOF") && !printed.contains(stamp));
    assert!(
        printed.contains("# TYPE roost_scheduler_info gauge\n"),
        "{printed}"
    );
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let before = now().as_millis() as f64 / 1e3;
    assert_eq!(run(&["--textfile", file.to_str().unwrap()]), "");
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(value(&written, "roost_up"), Some(1.0));
    let at = value(&written, stamp).unwrap();
    assert!(before <= at && at <= now().as_secs_f64(), "{at}");
}

#[test]
fn what_cannot_be_done_is_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let (stopper, stop) = stopper();
    let served = |tcp: Option<SocketAddr>, file: Option<&str>| Output::Served {
        tcp,
        textfile: file.map(|f| (PathBuf::from(f), Duration::from_secs(1))),
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for (output, begin, end) in [
        (
            served(taken.local_addr().ok(), None),
            "cannot listen at 127.0.0.1:",
            "give another --listen",
        ),
        (
            served(None, Some("/proc/x.prom")),
            "cannot write /proc/x.prom: ",
            "that you may write to",
        ),
        (
            Output::Written("/x.txt".into()),
            "--textfile /x.txt: ",
            "give such a name",
        ),
    ] {
        let error = export::run(&stats(&dir), Series::All, &output, &stop)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(begin) && error.ends_with(end), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    drop(stopper);
}
