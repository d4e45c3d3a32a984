// SPDX-License-Identifier: GPL-2.0-only
//! The workloads of Roy v7 (source 003), with fake programs: which are found, what is run, and what
//! is read from their output.

use crate::child::{alone, runs};
use clap::Parser;
use scx_roost::ab::args::AbArgs;
use scx_roost::ab::child::Workload;
use scx_roost::ab::metric::{Measured, Metric, Source};
use scx_roost::ab::stats::verdict::Direction;
use scx_roost::ab::suite::Item;
use scx_roost::ab::tasks::Task;
use scx_roost::ab::threadripper::{Place, items, missing, variants, variants_left_out};
use scx_roost::ab::variant::{Kind, Variant};
use scx_roost::util::user::User;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// The output of memtier_benchmark 2.2.
const MEMTIER: &str = "
ALL STATS
==================================================================================================
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency
--------------------------------------------------------------------------------------------------
Sets      4835012.31          ---          ---         0.05231         0.04700         0.11900
Gets      4834981.10      1034.11   4833946.99         0.05198         0.04700         0.11900
Waits           0.00          ---          ---             ---             ---             ---
Totals    9669993.41      1034.11   4833946.99         0.05215         0.04700         0.11900
";

/// A program: its path, the arguments that it must get, and what it then does.
const PROGRAMS: [(&str, &str, &str); 11] = [
    ("bin/sleep", "", ""),
    (
        "bin/x265",
        "-p slow -b 6 -o /dev/null --no-progress --log-level none --input Bosphorus_1920x1080_120fps_420_8bit_YUV.y4m",
        "",
    ),
    (
        "bin/aomenc",
        "--threads=16 --cpu-used=6 -o test.av1 Bosphorus_1920x1080_120fps_420_8bit_YUV.y4m",
        "",
    ),
    (
        "bin/ffmpeg",
        "-hide_banner -i Stream2_AV1_4K_22.7mbps.webm -vcodec copy -an -f ivf summer_nature_4k.ivf",
        "echo >summer_nature_4k.ivf",
    ),
    (
        "bin/dav1d",
        "-i summer_nature_4k.ivf --muxer null --threads 16 --filmgrain 0",
        "[ -e summer_nature_4k.ivf ]",
    ),
    (
        "bin/python3",
        "mce-examples/chameneos/pipe2.py 600000",
        "echo 'duration: 7.004 seconds'",
    ),
    (
        "bin/primesieve",
        "2e12 --threads=20",
        "echo 'Seconds: 18.570'; echo 'Primes: 73301896139'",
    ),
    ("pogocache-1.2.0/pogocache", "-t 32", "exec /bin/sleep 30"),
    (
        "memtier_benchmark-2.2.0/memtier_benchmark",
        "--hide-histogram -t 32 -P memcache_text -c 1 -p 9401 --pipeline=16 --test-time=15 --ratio=1:1",
        "cat ../memtier.txt",
    ),
    (
        "temp/sampledb/query1.pl",
        "",
        "seq 1000; printf '\\n## Compute time: 9.632\\n\\n' >&2",
    ),
    ("bin/cc", "", ""),
];
/// Its thread counts are 50 % and 31.25 % of 64 CPUs.
const SIEVE: &str = "[ $1 = 1e12 ] || exit 7
case $2 in --threads=32) s=20.010;; --threads=20) s=29.704;; *) exit 8;; esac
printf '  0%%\\rPrimes found: 37607912018\\nSeconds: %s\\n' $s >&2";
const FILES: [&str; 3] = [
    "Bosphorus_1920x1080_120fps_420_8bit_YUV.y4m",
    "Stream2_AV1_4K_22.7mbps.webm",
    "mce-examples/chameneos/pipe2.py",
];

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn program(path: &Path, script: &str) {
    write(path, &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The source's machine, without any program.
fn bare(folder: &TempDir) -> Place {
    Place {
        path: folder.path().join("bin").into(),
        folder: folder.path().into(),
        temp: folder.path().join("temp"),
        cpus: 64,
        cores: 32,
        modules: Vec::new(),
    }
}

/// The same with all programs and files.
fn whole() -> (TempDir, Place) {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| folder.path().join(file);
    for (file, words, does) in PROGRAMS {
        let check = match words {
            "" => String::new(),
            words => {
                format!("[ \"$*\" = '{words}' ] || {{ echo \"called with $*\" >&2; exit 9; }}\n")
            }
        };
        program(&at(file), &(check + does));
    }
    program(&at("mce-sandbox/bin/algorithm3.pl"), SIEVE);
    // It claims to have every module that it is asked for.
    program(&at("bin/perl"), "shift 2; printf '%s\\n' \"$@\"");
    program(&at("bin/scx_cosmos"), "");
    for file in FILES {
        write(&at(file), "");
    }
    write(&at("memtier.txt"), MEMTIER);
    write(&at("temp/sampledb/SAMPLE.DB"), "");
    let place = bare(&folder).with_modules(None);
    (folder, place)
}

/// What a workload prints, run in that folder with these programs first in PATH.
fn output(item: &Item, place: &Place) -> String {
    let mut command: Vec<OsString> = vec!["env".into(), "-C".into(), place.folder.clone().into()];
    command.push(format!("PATH={}:/usr/bin:/bin", place.path.display()).into());
    command.extend(item.command.clone());
    let sample = runs(&Workload {
        command,
        timeout: Duration::from_secs(20),
        cpus: Vec::new(),
        powercap: "/nowhere".into(),
        events: Vec::new(),
        user: None,
    });
    sample
        .unwrap_or_else(|e| panic!("{}: {e}", item.name))
        .output
}

#[test]
fn each_is_run_as_the_source_runs_it_and_its_number_is_read() {
    let (_folder, place) = whole();
    let all = items(&place).unwrap();
    let read = |item: &Item| {
        let metric = Metric::parse(item.metric.as_ref().unwrap(), Direction::Lower).unwrap();
        let output = output(item, &place);
        let number = metric.printed(&output, "").map(Result::unwrap);
        assert_eq!(
            number.is_none(),
            matches!(metric.source, Source::Measured(Measured::Wall))
        );
        (item.name.clone(), number, metric.better)
    };
    let read: Vec<_> = all.iter().map(read).collect();
    let expected = [
        ("pogocache", Some(9669993.41), Direction::Higher),
        ("x265", None, Direction::Lower),
        ("aom", None, Direction::Lower),
        ("dav1d", None, Direction::Lower),
        ("sqlite", Some(9.632), Direction::Lower),
        ("chameneos", Some(7.004), Direction::Lower),
        ("algorithm3-50", Some(20.010), Direction::Lower),
        ("algorithm3-31", Some(29.704), Direction::Lower),
        ("primesieve", Some(18.570), Direction::Lower),
    ];
    assert_eq!(
        read,
        expected.map(|(name, number, better)| (name.to_string(), number, better))
    );
}

/// All addresses that the source gives, and no others.
const ADDRESSES: [&str; 9] = [
    "http://ultravideo.cs.tut.fi/video/Bosphorus_1920x1080_120fps_420_8bit_YUV_Y4M.7z",
    "http://www.phoronix-test-suite.com/benchmark-files/Stream2_AV1_4K_22.7mbps.webm",
    "https://github.com/RedisLabs/memtier_benchmark/archive/refs/tags/2.2.0.tar.gz",
    "https://github.com/kimwalisch/primesieve",
    "https://github.com/marioroy/mce-examples/tree/main/chameneos",
    "https://github.com/marioroy/mce-examples/tree/main/sampledb",
    "https://github.com/marioroy/mce-sandbox",
    "https://github.com/sched-ext/scx",
    "https://github.com/tidwall/pogocache/archive/refs/tags/1.2.0.tar.gz",
];

#[test]
fn what_is_missing_is_named_with_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = bare(&folder);
    let told = [missing(&place), variants_left_out(&place)].concat();
    let has = |part: &str| assert!(told.iter().any(|t| t.contains(part)), "{part} in {told:#?}");
    has(
        "x265 is left out: missing program x265 (package x265), file Bosphorus_1920x1080_120fps_420_8bit_YUV.y4m in this folder (sequence Bosphorus",
    );
    has(
        "pogocache is left out: missing file pogocache-1.2.0/pogocache in this folder (project tidwall/pogocache, version 1.2.0",
    );
    has("perl's DBD::SQLite (package libdbd-sqlite3-perl)");
    has("SAMPLE.DB (made by ./create.pl 1000000 in it)");
    has(
        "file mce-sandbox/bin/algorithm3.pl in this folder (project marioroy/mce-sandbox, https://github.com/marioroy/mce-sandbox)",
    );
    has("scx_cosmos is left out: it is not in PATH");
    has("bmq is left out");
    assert_eq!(told.len(), 11);
    assert!(!told.iter().any(|t| t.contains("pinned")), "{told:#?}");
    let mut addresses: Vec<&str> = told
        .iter()
        .flat_map(|t| t.split([' ', '(', ')', ',']))
        .filter(|w| w.contains("http"))
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses, ADDRESSES);
    let none = items(&place).unwrap_err().to_string();
    assert!(
        none.starts_with("none of the 9 workloads of threadripper-003 can run in "),
        "{none}"
    );
    assert!(!none.contains('\n'), "{none}");
}

#[test]
fn whatever_is_installed_is_run() {
    // Another test would reap its children.
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let place = bare(&folder);
    let names = || {
        items(&place)
            .unwrap()
            .into_iter()
            .map(|i| i.name)
            .collect::<Vec<_>>()
    };
    let at = |file: &str| folder.path().join(file);
    program(&at("bin/primesieve"), "");
    assert_eq!(names(), ["primesieve"]);
    // A file with the right name that is no program.
    write(&at("bin/x265"), "");
    write(&at(FILES[0]), "");
    assert_eq!(names(), ["primesieve"]);
    program(&at("bin/x265"), "");
    assert_eq!(names(), ["x265", "primesieve"]);
    // A perl that lacks modules.
    program(&at("bin/perl"), "echo x >>$0.runs; echo MCE; exit 2");
    let place = place.with_modules(None);
    write(&at("temp/sampledb/query1.pl"), "");
    write(&at("temp/sampledb/SAMPLE.DB"), "");
    let sqlite = missing(&place)
        .into_iter()
        .find(|t| t.starts_with("sqlite"));
    assert_eq!(
        sqlite.unwrap(),
        "sqlite is left out: missing perl's DBD::SQLite (package libdbd-sqlite3-perl)"
    );
    items(&place).unwrap();
    assert_eq!(fs::read_to_string(at("bin/perl.runs")).unwrap(), "x\n");
}

/// The real perl finds a module that is there, and rejects a broken one.
#[test]
fn perl_says_which_modules_it_has() {
    // Another test would reap its children.
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let perl = ["/usr/bin/perl", "/bin/perl"].map(Path::new);
    let Some(perl) = perl.into_iter().find(|p| p.is_file()) else {
        println!("skip: there is no perl");
        return;
    };
    let library = folder.path().join("lib");
    write(&library.join("MCE.pm"), "package MCE; print 'loaded'; 1;");
    write(&library.join("DBD/SQLite.pm"), "die 'it is broken';");
    let called = format!("exec {} -I{} \"$@\"", perl.display(), library.display());
    program(&folder.path().join("bin/perl"), &called);
    let has = |place: &Place, name: &str| place.modules.iter().any(|m| m == name);
    let place = bare(&folder).with_modules(None);
    assert!(
        has(&place, "MCE") && !has(&place, "DBD::SQLite"),
        "{place:?}"
    );
}

/// perl runs as the user of the workload, who may have modules of their own.
#[test]
fn perl_is_asked_as_the_user() {
    // Another test would reap its children.
    let _alone = alone();
    let Ok(Some(nobody)) = User::of(Some("nobody")) else {
        println!("skip: root alone runs a command as another");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    program(&folder.path().join("bin/perl"), "id -un");
    let place = bare(&folder).with_modules(Some(&nobody));
    assert_eq!(place.modules, ["nobody"]);
}

#[test]
fn parts_are_of_this_machine() {
    let (_folder, mut place) = whole();
    (place.cpus, place.cores) = (12, 6);
    let all = items(&place).unwrap();
    let command = |name: &str| {
        let item = all.iter().find(|i| i.name == name).unwrap();
        item.command.last().unwrap().to_str().unwrap().to_string()
    };
    assert!(command("pogocache").contains("./pogocache -t 6 &"));
    assert!(command("algorithm3-50").contains("--threads=6 "));
    assert!(command("algorithm3-31").contains("--threads=4 "));
    assert_eq!(command("primesieve"), "--threads=4");
    assert!(command("aom").contains("--threads=16"));
}

#[test]
fn variants_are_those_of_the_source() {
    let (_folder, mut place) = whole();
    let cosmos = format!(
        "scx:{}/scx_cosmos -m all -s 1250 -l 50000 -c 0 -p 0 -d",
        place.path.display()
    );
    assert_eq!(variants(&place), ["eevdf", "roy-v7", "pinned", &cosmos]);
    let Kind::Scx(words) = Variant::parse(&cosmos).unwrap().kind else {
        panic!("{cosmos}");
    };
    assert_eq!(words.len(), 12);
    place.path = "/nowhere".into();
    place.cores = 64;
    assert_eq!(variants(&place), ["eevdf", "roy-v7"]);
    assert!(
        variants_left_out(&place)
            .iter()
            .any(|t| t.starts_with("pinned is left out: no core has two threads"))
    );
}

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: AbArgs,
}

fn tasks(place: &Place, words: &str) -> anyhow::Result<Vec<Task>> {
    let result = place.folder.join("r.jsonl");
    let line = format!(
        "ab --suite threadripper-003 --result {} {words}",
        result.display()
    );
    let typed = Typed::try_parse_from(line.split_whitespace())?;
    typed
        .args
        .tasks_at("roost".into(), BTreeMap::new(), Some(place))
}

#[test]
fn each_has_its_metric_and_its_file() {
    let (_folder, place) = whole();
    let all = tasks(&place, "").unwrap();
    assert_eq!(all.len(), 9);
    assert_eq!(all[0].header.variants, variants(&place));
    assert_eq!(
        all[0].header.metrics[0].metric,
        r"regex:(?m)^Totals\s+([0-9.]+)"
    );
    assert_eq!(all[0].header.metrics[0].better, Direction::Higher);
    assert_eq!(all[1].header.metrics[0].metric, "wall");
    assert_eq!(all[1].header.command[..3], ["x265", "-p", "slow"]);
    assert!(all[1].result.ends_with("r-x265.jsonl"));
    let seeds: Vec<u64> = all.iter().map(|t| t.header.seed).collect();
    assert!(seeds.iter().all(|s| *s == seeds[0]));
    let own = tasks(&place, "--variant mainline --variant pinned --metric user").unwrap();
    let metrics = |task: &Task| -> Vec<String> {
        task.header
            .metrics
            .iter()
            .map(|m| m.metric.clone())
            .collect()
    };
    assert_eq!(own[0].header.variants, ["mainline", "pinned"]);
    assert_eq!(metrics(&own[1]), ["wall", "user"]);
}
