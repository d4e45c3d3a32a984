// SPDX-License-Identifier: GPL-2.0-only
//! The statistics socket as a client sees it, with the test's own counters.

use scx_roost::wire::socket::{Server, kept_out};
use scx_roost::wire::stats::host::{EVENTS, GAUGES};
use scx_roost::wire::stats::server;
use scx_roost::wire::stats::snapshot::ArmShown;
use scx_roost::wire::stats::source::{Counted, CounterSource, Counting, Running};
use scx_roost::wire::stats::{ArmCounts, Counters, Metrics, NR_STATS, ROWS};
use scx_stats::StatsClient;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Longer than a snapshot is reused.
const FRESH: Duration = Duration::from_millis(60);

struct Fake(Arc<AtomicU64>);

impl Counted for Fake {
    fn read(&self, _slot: usize) -> ArmCounts {
        ArmCounts {
            counters: [self.0.load(Ordering::Relaxed); NR_STATS],
            ..ArmCounts::default()
        }
    }

    fn read_cpu(&self, _cpu: usize) -> Counters {
        [self.0.load(Ordering::Relaxed); NR_STATS]
    }
}

struct Served {
    server: Server,
    counter: Arc<AtomicU64>,
    _counting: Counting,
    dir: TempDir,
}

fn serve() -> Served {
    let dir = tempfile::tempdir().unwrap();
    let (source, counter) = (CounterSource::default(), Arc::new(AtomicU64::new(0)));
    source.set_arms(vec![ArmShown {
        slot: 0,
        name: "default".into(),
        profile: String::new(),
        preset: "roost".into(),
        features: "prev_idle".into(),
    }]);
    let counting = source.attach(Box::new(Fake(counter.clone())), Running::default());
    let server = server::launch(&path(&dir), None, source).unwrap();
    Served {
        server,
        counter,
        _counting: counting,
        dir,
    }
}

fn path(dir: &TempDir) -> PathBuf {
    dir.path().join("scx/root/stats")
}

fn connect(path: &Path) -> StatsClient {
    StatsClient::new()
        .set_path(path)
        .connect(Some(5000))
        .unwrap()
}

fn ask(client: &mut StatsClient, target: &str) -> Metrics {
    std::thread::sleep(FRESH);
    client
        .request("stats", vec![("target".into(), target.into())])
        .unwrap()
}

/// Sends one line, and returns the answer.
fn raw(stream: &UnixStream, line: &str) -> Value {
    let mut stream = stream;
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn scx_stats_clients_get_their_own_deltas() {
    let served = serve();
    let (mut a, mut b) = (connect(&path(&served.dir)), connect(&path(&served.dir)));
    ask(&mut a, "top");
    served.counter.store(5, Ordering::Relaxed);
    let metrics = ask(&mut a, "top");
    assert_eq!(
        (metrics.sis_prev, metrics.preset.as_str(), metrics.running),
        (5, "roost", 1)
    );
    assert_eq!(ask(&mut b, "top").sis_prev, 0);
    served.counter.store(7, Ordering::Relaxed);
    assert_eq!(ask(&mut a, "top").sis_prev, 2);
    assert_eq!(ask(&mut b, "top").sis_prev, 2);
    assert_eq!(ask(&mut b, "totals").sis_prev, 7);
    assert_eq!(ask(&mut b, "totals").arms["default"].counters.sis_prev, 7);
}

/// As scxtop does: the client of the crate scx_stats, no target, any JSON accepted, and the
/// metadata over the same connection.
#[test]
fn scxtop_gets_deltas_and_metadata() {
    let served = serve();
    let mut client = connect(&path(&served.dir));
    let mut stats = || -> Value {
        std::thread::sleep(FRESH);
        client.request("stats", vec![]).unwrap()
    };
    assert_eq!(stats()["sis_prev"], 0);
    served.counter.store(5, Ordering::Relaxed);
    let stats = stats();
    assert_eq!(
        (&stats["sis_prev"], &stats["preset"]),
        (&5.into(), &"roost".into())
    );
    let meta: Value = client.request("stats_meta", vec![]).unwrap();
    // A viewer finds each field described in the structure that is the top.
    let structures = meta.as_object().unwrap();
    let tops: Vec<_> = structures
        .iter()
        .filter(|(_, s)| s.get("top").is_some())
        .collect();
    let [(name, top)] = tops[..] else {
        panic!("one top is expected: {:?}", structures.keys())
    };
    assert_eq!(name, "Metrics");
    for field in stats.as_object().unwrap().keys() {
        assert!(top["fields"][field]["desc"].is_string(), "{field}");
    }
    // For a map by name, the structure of its values has the name of the label.
    for (structure, label) in [("ConditionMetrics", "condition"), ("CpuMetrics", "cpu")] {
        assert_eq!(
            meta[structure]["user"]["_om_label"], label,
            "{}",
            meta[structure]
        );
    }
    // Without a prefix their metrics would be called "active" and "count".
    let prefix = &meta["ConditionMetrics"]["user"]["_om_prefix"];
    assert_eq!(prefix, "roost_condition_");
}

/// scxstats_to_openmetrics.py of the scx repository goes down into each object of `top`. It takes
/// it for a map by name, and the values for structures without further objects.
#[test]
fn no_structure_is_in_another_but_in_maps_by_name() {
    let served = serve();
    let mut client = connect(&path(&served.dir));
    let top: Value = client.request("stats", vec![]).unwrap();
    let meta: Value = client.request("stats_meta", vec![]).unwrap();
    let mut maps = Vec::new();
    for (name, value) in top.as_object().unwrap() {
        let data = &meta["Metrics"]["fields"][name];
        assert!(
            data["datum"].is_string() || data["dict"].is_object(),
            "{name}: {data}"
        );
        let Some(map) = value.as_object() else {
            continue;
        };
        maps.push(name.as_str());
        for structure in map.values() {
            let fields = structure.as_object().unwrap();
            assert!(
                !fields.values().any(Value::is_object),
                "{name}: {structure}"
            );
            let of = &meta[data["dict"]["datum"]["struct"].as_str().unwrap()];
            let described = of["fields"].as_object().unwrap();
            assert!(
                fields.keys().eq(described.keys()),
                "{name}: {fields:?}, {described:?}"
            );
        }
    }
    assert_eq!(maps, ["arms", "conditions"]);
    for row in EVENTS.iter().chain(GAUGES) {
        assert!(top[row.name].is_u64(), "{}", row.name);
    }
}

#[test]
fn without_a_target_it_is_top() {
    let served = serve();
    let stream = UnixStream::connect(path(&served.dir)).unwrap();
    let answer = raw(&stream, "{\"req\":\"stats\",\"args\":{}}\n");
    assert_eq!(answer["errno"], 0);
    assert_eq!(answer["args"]["resp"]["features"], "prev_idle");
}

#[test]
fn the_metadata_describes_every_counter() {
    let served = serve();
    let stream = UnixStream::connect(path(&served.dir)).unwrap();
    let answer = raw(&stream, "{\"req\":\"stats_meta\"}\n");
    let fields = &answer["args"]["resp"]["Metrics"]["fields"];
    let of_arms = &answer["args"]["resp"]["ArmMetrics"]["fields"];
    for row in ROWS {
        assert_eq!(fields[row.name]["desc"], row.help, "{}", row.name);
        assert_eq!(of_arms[row.name]["desc"], row.help, "{}", row.name);
    }
}

#[test]
fn a_bad_request_is_answered_and_the_connection_lives_on() {
    let served = serve();
    let stream = UnixStream::connect(path(&served.dir)).unwrap();
    for (line, expected) in [
        ("nonsense\n", "expected a request, a line of JSON"),
        ("{\"req\":\"reboot\"}\n", "unknown request 'reboot'"),
        (
            "{\"req\":\"stats\",\"args\":{\"target\":\"all\"}}\n",
            "unknown target 'all'",
        ),
    ] {
        let answer = raw(&stream, line);
        assert_eq!(answer["errno"], libc::EINVAL);
        assert!(
            answer["args"]["resp"].as_str().unwrap().contains(expected),
            "{answer}"
        );
    }
    assert_eq!(raw(&stream, "{\"req\":\"stats\"}\n")["errno"], 0);
}

#[test]
fn a_line_without_end_is_cut_off() {
    let served = serve();
    let mut stream = UnixStream::connect(path(&served.dir)).unwrap();
    // The server may hang up while we write.
    let _ = stream.write_all(&[b' '; 100_000]);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty());
    assert_eq!(ask(&mut connect(&path(&served.dir)), "totals").sis_prev, 0);
}

#[test]
fn clients_beyond_the_limit_get_an_error() {
    let served = serve();
    let clients: Vec<StatsClient> = (0..32).map(|_| connect(&path(&served.dir))).collect();
    let extra = UnixStream::connect(path(&served.dir)).unwrap();
    let mut answer = String::new();
    BufReader::new(&extra).read_line(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["errno"], libc::EBUSY);
    drop(clients);
    std::thread::sleep(Duration::from_millis(300));
    ask(&mut connect(&path(&served.dir)), "top");
}

#[test]
fn the_socket_goes_with_the_server_and_clients_see_the_end() {
    let served = serve();
    let mut stream = UnixStream::connect(path(&served.dir)).unwrap();
    raw(&stream, "{\"req\":\"stats\"}\n");
    drop(served.server);
    assert!(!path(&served.dir).exists());
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_live_socket_is_not_taken() {
    let served = serve();
    let Err(error) = server::launch(&path(&served.dir), None, CounterSource::default()) else {
        panic!("it was taken")
    };
    assert!(
        error
            .to_string()
            .contains("another scheduler serves its statistics"),
        "{error}"
    );
    assert_eq!(ask(&mut connect(&path(&served.dir)), "top").running, 1);
}

#[test]
fn a_group_may_read() {
    let dir = tempfile::tempdir().unwrap();
    let gid = unsafe { libc::getegid() };
    let _server = server::launch(&path(&dir), Some(gid), CounterSource::default()).unwrap();
    let meta = std::fs::metadata(path(&dir)).unwrap();
    assert_eq!((meta.gid(), meta.mode() & 0o777), (gid, 0o660));
}

/// A folder that the group cannot pass is reported, with the command that helps. The folder's own
/// group needs the group bits, any other group the bits of others.
#[test]
fn a_folder_closed_to_the_group_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a");
    std::fs::create_dir_all(folder.join("b")).unwrap();
    let (own, other) = (std::fs::metadata(&folder).unwrap().gid(), 54_321);
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(dir.path(), 0o711);
    let socket = folder.join("b/stats");
    let real = std::fs::canonicalize(&folder).unwrap();
    let advice = |bits: u32, subject: char| {
        Some(format!(
            "group {} cannot reach it, because the folder {1} has mode {bits:04o}: let the group pass with \
             'chmod {subject}+x {1}', or give a path elsewhere",
            if subject == 'g' { own } else { other },
            real.display()
        ))
    };
    for (bits, of_own, of_other) in [
        (0o755, None, None),
        (0o711, None, None),
        (0o700, advice(0o700, 'g'), advice(0o700, 'o')),
        (0o750, None, advice(0o750, 'o')),
        (0o701, advice(0o701, 'g'), None),
    ] {
        mode(&folder, bits);
        assert_eq!(kept_out(&socket, own), of_own, "{bits:o}");
        assert_eq!(kept_out(&socket, other), of_other, "{bits:o}");
    }
    mode(&folder, 0o755);
}

#[test]
fn a_dead_socket_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(path(&dir).parent().unwrap()).unwrap();
    drop(UnixListener::bind(path(&dir)).unwrap());
    assert!(path(&dir).exists());
    let _server = server::launch(&path(&dir), None, CounterSource::default()).unwrap();
    assert_eq!(ask(&mut connect(&path(&dir)), "top").running, 0);
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("precious");
    std::fs::write(&file, "text").unwrap();
    let Err(error) = server::launch(&file, None, CounterSource::default()) else {
        panic!("it was taken")
    };
    assert!(error.to_string().contains("is not a socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text");
}

#[test]
fn an_unwritable_path_is_reported_with_advice() {
    for (place, what) in [
        ("/proc/roost", "the"),
        ("/proc/roost/stats", "the folder of the"),
    ] {
        let Err(error) = server::launch(Path::new(place), None, CounterSource::default()) else {
            panic!("{place} was taken")
        };
        let error = error.to_string();
        let begin = format!("cannot create {what} statistics socket {place}: ");
        assert!(error.starts_with(&begin), "{error}");
        assert!(
            error.ends_with(": give --stats-path a path that you may write to"),
            "{error}"
        );
    }
}

#[test]
fn a_socket_that_took_our_place_is_not_removed() {
    let served = serve();
    std::fs::remove_file(path(&served.dir)).unwrap();
    let _other = UnixListener::bind(path(&served.dir)).unwrap();
    drop(served.server);
    assert!(path(&served.dir).exists());
}

/// The BPF half calls count() for rows that the table marks as the machine's, and count_for() or
/// count_wakeup() for others.
#[test]
fn what_is_counted_of_no_arm_is_so_in_the_table() {
    fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    sources(Path::new("src/bpf"), &mut found);
    let mut seen = 0;
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().map(str::trim) {
            let machine = line.starts_with("count(");
            let arms = ["count_for(", "count_wakeup("];
            if !machine && !arms.iter().any(|call| line.starts_with(call)) {
                continue;
            }
            for rest in line.split("STAT_").skip(1) {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                let name = &rest[..end.unwrap_or(rest.len())];
                let row = ROWS.iter().find(|row| row.name == name).unwrap();
                assert_eq!(row.machine, machine, "{}: {line}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 70, "{seen} calls");
}

/// Another user who may read the statistics takes all the places that it gets.
#[test]
fn root_finds_a_place_among_the_clients_of_others() {
    if !scx_roost::util::user::is_root() {
        println!("skip: only root can become another user");
        return;
    }
    let served = serve();
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(served.dir.path(), 0o755);
    open(&path(&served.dir), 0o666);
    let theirs = || {
        // SAFETY: plain numbers. The raw system call changes this thread alone.
        unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        let connect = |_| UnixStream::connect(path(&served.dir)).unwrap();
        (0..40).map(connect).collect::<Vec<_>>()
    };
    let theirs = std::thread::scope(|scope| scope.spawn(theirs).join().unwrap());
    let answered = |mut stream: &UnixStream| {
        let _ = stream.write_all(b"{\"req\": \"stats\", \"args\": {\"target\": \"totals\"}}\n");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        !line.contains("all connections are in use")
    };
    assert_eq!(theirs.iter().filter(|stream| answered(stream)).count(), 28);
    let ours: Vec<_> = (0..4)
        .map(|_| UnixStream::connect(path(&served.dir)).unwrap())
        .collect();
    assert!(ours.iter().all(answered));
}
