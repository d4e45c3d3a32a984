// SPDX-License-Identifier: GPL-2.0-only
//! The workloads of Roy v7 (prefer the previous CPU, v7; source 003) with their commands, if they
//! are installed. Where Roy v7 uses a part of its 64 CPUs or 32 cores, this uses the same part of
//! this machine's. All other numbers are unchanged.
//!
//! Nothing is downloaded or built. For what is missing, messages say how to get it and give the
//! addresses from Roy v7.

use super::cpus::cores;
use super::programs::program;
use super::suite::{Five, Item, part_31};
use super::variant::PINNED;
use crate::machine::Machine;
use crate::util::text::quoted;
use crate::util::user::User;
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The arguments of scx_cosmos in Roy v7.
const COSMOS: &str = "-m all -s 1250 -l 50000 -c 0 -p 0 -d";
/// The patch of Roy v7, as a preset.
const PATCH: &str = "roy-v7";

/// What must be present.
enum Need {
    /// In PATH.
    Program(&'static str),
    /// In the current folder.
    File(&'static str),
    /// In the folder for temporary files.
    Temporary(&'static str),
    /// A Perl module.
    Module(&'static str),
}

struct Row {
    name: &'static str,
    /// Words. `{cores}`, `{half}`, `{part}` and `{temp}` are replaced.
    command: &'static str,
    /// The command is a script for bash.
    script: bool,
    needs: &'static [(Need, &'static str)],
    metric: &'static str,
    five: Five,
}

const VIDEO: (Need, &str) = (
    Need::File("Bosphorus_1920x1080_120fps_420_8bit_YUV.y4m"),
    "sequence Bosphorus of the Ultra Video Group, 1080p, 8 bit, Y4M; 7z e unpacks http://ultravideo.cs.tut.fi/video/Bosphorus_1920x1080_120fps_420_8bit_YUV_Y4M.7z",
);
const SIEVE: &[(Need, &str)] = &[
    (Need::Program("perl"), "package perl"),
    (
        Need::Program("cc"),
        "package gcc: it compiles at its first run",
    ),
    (
        Need::File("mce-sandbox/bin/algorithm3.pl"),
        "project marioroy/mce-sandbox, https://github.com/marioroy/mce-sandbox",
    ),
];

/// In the order of Roy v7.
const ROWS: [Row; 9] = [
    Row {
        name: "pogocache",
        command: "cd pogocache-1.2.0
./pogocache -t {cores} &
POGOCACHE_PID=$!
sleep 3
cd ../memtier_benchmark-2.2.0
./memtier_benchmark --hide-histogram -t {cores} -P memcache_text -c 1 -p 9401 --pipeline=16 --test-time=15 --ratio=1:1
sleep 1
kill $POGOCACHE_PID
sleep 1",
        script: true,
        needs: &[
            (Need::File("pogocache-1.2.0/pogocache"), "project tidwall/pogocache, version 1.2.0, built by make, https://github.com/tidwall/pogocache/archive/refs/tags/1.2.0.tar.gz"),
            (
                Need::File("memtier_benchmark-2.2.0/memtier_benchmark"),
                "project RedisLabs/memtier_benchmark, version 2.2.0, built by autoreconf, configure and make, https://github.com/RedisLabs/memtier_benchmark/archive/refs/tags/2.2.0.tar.gz",
            ),
        ],
        metric: r"higher:regex:(?m)^Totals\s+([0-9.]+)",
        five: Five::Mean,
    },
    Row {
        name: "x265",
        command: "x265 -p slow -b 6 -o /dev/null --no-progress --log-level none --input Bosphorus_1920x1080_120fps_420_8bit_YUV.y4m",
        script: false,
        needs: &[(Need::Program("x265"), "package x265"), VIDEO],
        metric: "wall",
        five: Five::Sum,
    },
    Row {
        name: "aom",
        command: "FILE=Bosphorus_1920x1080_120fps_420_8bit_YUV.y4m
rm -f test.av1
aomenc --threads=16 --cpu-used=6 -o test.av1 $FILE",
        script: true,
        needs: &[(Need::Program("aomenc"), "package aom-tools"), VIDEO],
        metric: "wall",
        five: Five::Sum,
    },
    Row {
        name: "dav1d",
        command: "FILE1=Stream2_AV1_4K_22.7mbps.webm
FILE2=summer_nature_4k.ivf
rm -f $FILE2
ffmpeg -hide_banner -i $FILE1 -vcodec copy -an -f ivf $FILE2
dav1d -i $FILE2 --muxer null --threads 16 --filmgrain 0",
        script: true,
        needs: &[
            (Need::Program("ffmpeg"), "package ffmpeg"),
            (Need::Program("dav1d"), "package dav1d"),
            (Need::File("Stream2_AV1_4K_22.7mbps.webm"), "of the Phoronix Test Suite, http://www.phoronix-test-suite.com/benchmark-files/Stream2_AV1_4K_22.7mbps.webm"),
        ],
        metric: "wall",
        five: Five::Sum,
    },
    Row {
        name: "sqlite",
        // The time is printed to stderr.
        command: "cd {temp}/sampledb && ./query1.pl 2>&1 | tail",
        script: true,
        needs: &[
            (Need::Program("perl"), "package perl"),
            (Need::Module("MCE"), "package libmce-perl"),
            (Need::Module("DBD::SQLite"), "package libdbd-sqlite3-perl"),
            (Need::Temporary("sampledb/query1.pl"), "folder sampledb of project marioroy/mce-examples, copied there, https://github.com/marioroy/mce-examples/tree/main/sampledb"),
            (Need::Temporary("sampledb/SAMPLE.DB"), "made by ./create.pl 1000000 in it"),
        ],
        metric: r"regex:Compute time: ([0-9.]+)",
        five: Five::Sum,
    },
    Row {
        name: "chameneos",
        command: "python3 mce-examples/chameneos/pipe2.py 600000",
        script: false,
        needs: &[
            (Need::Program("python3"), "package python3"),
            (Need::File("mce-examples/chameneos/pipe2.py"), "project marioroy/mce-examples, https://github.com/marioroy/mce-examples/tree/main/chameneos"),
        ],
        metric: r"regex:duration: ([0-9.]+) seconds",
        five: Five::Sum,
    },
    Row {
        name: "algorithm3-50",
        command: "cd mce-sandbox/bin && ./algorithm3.pl 1e12 --threads={half} 2>&1",
        script: true,
        needs: SIEVE,
        metric: r"regex:Seconds: ([0-9.]+)",
        five: Five::Sum,
    },
    Row {
        name: "algorithm3-31",
        command: "cd mce-sandbox/bin && ./algorithm3.pl 1e12 --threads={part} 2>&1",
        script: true,
        needs: SIEVE,
        metric: r"regex:Seconds: ([0-9.]+)",
        five: Five::Sum,
    },
    Row {
        name: "primesieve",
        command: "primesieve 2e12 --threads={part}",
        script: false,
        needs: &[(Need::Program("primesieve"), "package primesieve or primesieve-bin, or https://github.com/kimwalisch/primesieve")],
        metric: r"regex:Seconds: ([0-9.]+)",
        five: Five::Sum,
    },
];

/// The properties of the machine that the workloads depend on.
#[derive(Clone, Debug)]
pub struct Place {
    pub path: OsString,
    /// Where commands are run.
    pub folder: PathBuf,
    pub temp: PathBuf,
    pub cpus: usize,
    pub cores: usize,
    /// The needed Perl modules that are installed.
    pub modules: Vec<String>,
}

impl Place {
    pub fn here() -> Result<Place> {
        let machine = Machine::read(Path::new("/sys"))?;
        Ok(Place {
            path: std::env::var_os("PATH").unwrap_or_default(),
            folder: std::env::current_dir().context("cannot find the current folder")?,
            temp: std::env::temp_dir(),
            cpus: machine.cpus.len(),
            cores: cores(&machine).len(),
            modules: Vec::new(),
        })
    }

    /// Adds the Perl modules that this user can load; None: ours.
    pub fn with_modules(self, user: Option<&User>) -> Place {
        let perl = self.program("perl");
        Place {
            modules: perl.map_or_else(Vec::new, |perl| modules(&perl, user)),
            ..self
        }
    }

    /// Looks in PATH.
    fn program(&self, name: &str) -> Option<PathBuf> {
        program(Path::new(name), &self.path)
    }

    fn has(&self, need: &Need) -> bool {
        match need {
            Need::Program(name) => self.program(name).is_some(),
            Need::File(name) => self.folder.join(name).is_file(),
            Need::Temporary(name) => self.temp.join(name).is_file(),
            Need::Module(name) => self.modules.iter().any(|m| m == name),
        }
    }

    fn named(&self, need: &Need) -> String {
        match need {
            Need::Program(name) => format!("program {name}"),
            Need::File(name) => format!("file {name} in this folder"),
            Need::Temporary(name) => format!("file {}", self.temp.join(name).display()),
            Need::Module(name) => format!("perl's {name}"),
        }
    }
}

/// Prints the names among its arguments that can be loaded, one per line.
const LOADED: &str = r#"for my $name (@ARGV) { print "\n$name\n" if eval "require $name; 1" }"#;

fn modules(perl: &Path, user: Option<&User>) -> Vec<String> {
    let mut command = Command::new(perl);
    command.args(["-e", LOADED]);
    let needs = ROWS.iter().flat_map(|row| row.needs);
    command.args(needs.filter_map(|(need, _)| match need {
        Need::Module(name) => Some(*name),
        _ => None,
    }));
    user.iter().for_each(|user| user.takes(&mut command));
    let output = command.stdin(Stdio::null()).output();
    let printed = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    let printed = String::from_utf8_lossy(&printed);
    printed.lines().map(str::to_string).collect()
}

impl Row {
    fn missing(&self, place: &Place) -> Vec<String> {
        let missing = self.needs.iter().filter(|(need, _)| !place.has(need));
        missing
            .map(|(need, from)| format!("{} ({from})", place.named(need)))
            .collect()
    }

    fn item(&self, place: &Place) -> Item {
        let part = |whole: &str| match whole {
            "cores" => place.cores,
            "half" => place.cpus.div_ceil(2),
            _ => part_31(place.cpus),
        };
        let mut command = self
            .command
            .replace("{temp}", &quoted(&place.temp.to_string_lossy()));
        for name in ["cores", "half", "part"] {
            command = command.replace(&format!("{{{name}}}"), &part(name).to_string());
        }
        let words: Vec<&str> = match self.script {
            true => vec!["bash", "-c", &command],
            false => command.split(' ').collect(),
        };
        Item {
            name: self.name.to_string(),
            command: words.into_iter().map(OsString::from).collect(),
            metric: Some(self.metric.to_string()),
            five: Some(self.five),
            set: Vec::new(),
        }
    }
}

/// Whether there is such a workload, installed or not.
pub fn has(name: &str) -> bool {
    ROWS.iter().any(|row| row.name == name)
}

/// The workloads that can be run. Fails if there are none.
pub fn items(place: &Place) -> Result<Vec<Item>> {
    let there = ROWS.iter().filter(|row| row.missing(place).is_empty());
    let items: Vec<Item> = there.map(|row| row.item(place)).collect();
    ensure!(
        !items.is_empty(),
        "none of the {} workloads of threadripper-003 can run in {}: install what is named above, or run this in the folder that has it",
        ROWS.len(),
        place.folder.display()
    );
    Ok(items)
}

/// The variants of Roy v7 that are available here, eevdf first.
pub fn variants(place: &Place) -> Vec<String> {
    let mut variants = vec!["eevdf".to_string(), PATCH.to_string()];
    if place.cores < place.cpus {
        variants.push(PINNED.to_string());
    }
    if let Some(cosmos) = place.program("scx_cosmos") {
        let cosmos = quoted(&cosmos.to_string_lossy());
        variants.push(format!("scx:{cosmos} {COSMOS}"));
    }
    variants
}

/// A sentence for each workload of Roy v7 that lacks something, with how to get it.
pub fn missing(place: &Place) -> Vec<String> {
    ROWS.iter()
        .map(|row| (row.name, row.missing(place)))
        .filter(|(_, missing)| !missing.is_empty())
        .map(|(name, missing)| format!("{name} is left out: missing {}", missing.join(", ")))
        .collect()
}

/// Variants of Roy v7 that are left out, if no variants were typed.
pub fn variants_left_out(place: &Place) -> Vec<String> {
    let mut reported = Vec::new();
    if place.program("scx_cosmos").is_none() {
        reported.push(
            "scx_cosmos is left out: it is not in PATH (project sched-ext/scx, crate scx_cosmos, https://github.com/sched-ext/scx)"
                .to_string(),
        );
    }
    if place.cores == place.cpus {
        reported.push(format!(
            "{PINNED} is left out: no core has two threads here, so it would equal eevdf"
        ));
    }
    reported.push("bmq is left out: it needs another kernel".to_string());
    reported
}
