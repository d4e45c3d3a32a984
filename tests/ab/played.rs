// SPDX-License-Identifier: GPL-2.0-only
//! A simulated machine: variants take their time by a rule, and things fail on request.

use anyhow::{Result, bail};
use scx_roost::ab::boot::{Boot, Booted};
use scx_roost::ab::child::{Failure, Sample};
use scx_roost::ab::condition::Seen;
use scx_roost::ab::hooks::Hooks;
use scx_roost::ab::machine::{Machine, Taken};
use scx_roost::ab::metric::Measured;
use scx_roost::ab::result::{Asked, FORMAT, Header, Recorded, Repetition, ResultFile};
use scx_roost::ab::run::{End, Progress, run};
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::{Direction, Rule};
use scx_roost::ab::variant::{Scope, Variant};
use scx_roost::util::rng::Rng;
use std::collections::BTreeMap;

pub struct Played {
    rng: Rng,
    /// How many times as long a variant takes as the first one, by name.
    pub slow: BTreeMap<String, f64>,
    /// By variant, the counter that moves.
    pub counter: BTreeMap<String, &'static str>,
    /// The number of a run that fails, and how.
    pub fails: Option<(usize, fn() -> Failure)>,
    /// The number of a switch to a variant that fails, and how.
    pub does_not_load: Option<(usize, fn() -> Failure)>,
    pub refuses: bool,
    pub stuck: bool,
    pub seen: Seen,
    pub now: String,
    pub boot: Boot,
    /// All calls that it got.
    pub asked: Vec<String>,
    runs: usize,
}

impl Played {
    pub fn new(seed: u64) -> Played {
        Played {
            rng: Rng::new(seed),
            slow: BTreeMap::new(),
            counter: BTreeMap::new(),
            fails: None,
            does_not_load: None,
            refuses: false,
            stuck: false,
            seen: Seen::default(),
            now: "eevdf".to_string(),
            boot: Boot {
                kernel: "7.2.13".to_string(),
                now: Booted {
                    id: "1".to_string(),
                    ..Booted::default()
                },
            },
            asked: Vec::new(),
            runs: 0,
        }
    }

    pub fn slower(mut self, variant: &str, times: f64) -> Played {
        self.slow.insert(variant.to_string(), times);
        self
    }

    pub fn times(&self, what: &str) -> usize {
        self.asked.iter().filter(|a| *a == what).count()
    }
}

impl Machine for Played {
    fn begin(&mut self, _: &[Variant]) -> Result<()> {
        self.asked.push("begin".to_string());
        if self.refuses {
            bail!("another scheduler is attached");
        }
        Ok(())
    }

    fn boot(&self) -> Result<Boot> {
        Ok(self.boot.clone())
    }

    fn switch(&mut self, variant: &Variant) -> Result<(), Failure> {
        self.asked.push(variant.name.clone());
        if let Some((_, failure)) = self
            .does_not_load
            .filter(|(at, _)| *at == self.times(&variant.name))
        {
            return Err(failure());
        }
        self.now = variant.name.clone();
        Ok(())
    }

    fn run(&mut self) -> Result<Taken, Failure> {
        self.runs += 1;
        if let Some((_, failure)) = self.fails.filter(|(at, _)| *at == self.runs) {
            return Err(failure());
        }
        let noise = 1.0 + 0.01 * (self.rng.part() + self.rng.part() - 1.0);
        let wall = 10.0 * noise * self.slow.get(&self.now).unwrap_or(&1.0);
        let values = BTreeMap::from([(Measured::Wall, wall), (Measured::User, 8.0 * noise)]);
        let output = format!("{{\"ops\": {:.6}}}\n", 1000.0 / wall);
        let own = self.counter.get(&self.now);
        let grown = |counter: &&str| {
            (
                counter.to_string(),
                if own == Some(counter) { 5 } else { 0 },
            )
        };
        Ok(Taken {
            sample: Sample {
                values,
                output,
                errors: String::new(),
            },
            counters: self.counter.values().map(grown).collect(),
            seen: self.seen.clone(),
        })
    }

    fn restore(&mut self) -> Result<()> {
        self.asked.push("restore".to_string());
        if self.stuck {
            bail!("scx_lavd does not end");
        }
        self.now = "eevdf".to_string();
        Ok(())
    }
}

pub fn header(variants: &[&str], plan: Plan) -> Header {
    Header {
        format: FORMAT.to_string(),
        version: "0".to_string(),
        began: 1_000_000,
        command: ["make", "-j16", "/home/me/secret"]
            .map(str::to_string)
            .to_vec(),
        user: Some("me".to_string()),
        timeout_s: 3600.0,
        variants: variants.iter().map(ToString::to_string).collect(),
        metrics: vec![asked("wall", Direction::Lower)],
        rule: Rule::new(plan),
        seed: 5,
        warmups: 1,
        boots: None,
        even: false,
        hooks: Hooks::default(),
        scope: Scope::Machine,
        host: BTreeMap::from([
            ("kernel".to_string(), "7.2.13".to_string()),
            ("name".to_string(), "my-desk".to_string()),
        ]),
    }
}

pub fn asked(metric: &str, better: Direction) -> Asked {
    Asked {
        metric: metric.to_string(),
        better,
    }
}

/// The result of a comparison on a simulated machine.
pub fn played(header: &Header, machine: &mut Played) -> Result<(Recorded, End)> {
    // Each run is synced to the file. On a disk that takes longer than all the rest.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let mut file = ResultFile::create(&folder.path().join("r"), header)?;
    let mut recorded = Recorded::new(header.clone());
    let (never, nobody) = (|| false, &mut |_: &Progress| ());
    let end = run(&mut recorded, machine, &mut file, &never, nobody)?;
    Ok((recorded, end))
}

/// The lines of its file.
pub fn lines(recorded: &Recorded) -> String {
    let mut lines = vec![serde_json::to_string(&recorded.header)];
    for at in 0..=recorded.runs.len() {
        let failed = recorded.failed.iter().filter(|run| run.failed == at);
        lines.extend(failed.map(serde_json::to_string));
        lines.extend(recorded.runs.get(at).map(serde_json::to_string));
    }
    lines.into_iter().map(|line| line.unwrap() + "\n").collect()
}

/// Two variants with all their runs.
pub fn complete() -> Recorded {
    let header = header(&["mainline", "roost"], Plan::Fixed(6));
    let runs = played_runs(&header, 1);
    Recorded {
        runs,
        ..Recorded::new(header)
    }
}

/// All runs of such a comparison.
pub fn played_runs(header: &Header, seed: u64) -> Vec<Repetition> {
    played(header, &mut Played::new(seed)).unwrap().0.runs
}
