// SPDX-License-Identifier: GPL-2.0-only
//! The decision tables of tests/cases/*.txt, run by the C, natively and as BPF, and by the model.
//! tests/cases/README.md explains the format.

use crate::setup::{
    By, Case, Machine, NOW, PLACEMENT_STATS, Runner, STALE_MS, WAKEE, WAKER, moved,
};
use crate::topology::{CLAIM_LOST, CLAIM_TTL, Tables};
use scx_roost::native::{World, stat_name, stat_of};
use scx_roost::placement::topology::NICE0;
use scx_roost::placement::topology::{Cpu, Topology};
use scx_roost::placement::{CpuNow, Decision, How, LlcNow, Waker};
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, String>;

/// `0/4 1/5 | 2/6 3/7`: cores, with "/" between their threads, "|" between LLCs and "||" between
/// nodes. `~3` is offline, `2@512` has capacity 512.
fn parse_machine(text: &str) -> Result<Topology> {
    let mut cpus: Vec<(usize, Cpu)> = vec![];
    let (mut core, mut llc, mut node) = (0, 0, 0);
    for word in text.split_whitespace() {
        match word {
            "|" => llc += 1,
            "||" => (llc, node) = (llc + 1, node + 1),
            _ => {
                for thread in word.split('/') {
                    let online = !thread.starts_with('~');
                    let thread = thread.trim_start_matches('~');
                    let (cpu, capacity) = thread.split_once('@').unwrap_or((thread, "1024"));
                    let capacity = number(capacity)? as u32;
                    let about = Cpu {
                        core,
                        llc,
                        node,
                        capacity,
                        online,
                    };
                    cpus.push((number(cpu)?, about));
                }
                core += 1;
            }
        }
    }
    cpus.sort_by_key(|c| c.0);
    if cpus.iter().enumerate().any(|(i, c)| c.0 != i) {
        return Err(format!(
            "machine {text}: its CPUs are not 0 to {}",
            cpus.len() - 1
        ));
    }
    Ok(Topology::new(cpus.into_iter().map(|c| c.1).collect()))
}

fn number(text: &str) -> Result<usize> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number"))
}

/// `1 2 5-7`
fn list(words: &[&str]) -> Result<Vec<usize>> {
    let mut all = vec![];
    for word in words {
        let (from, to) = word.split_once('-').unwrap_or((word, word));
        all.extend(number(from)?..=number(to)?);
    }
    Ok(all)
}

/// `4=200%`: percent of the load of a nice 0 task that always runs.
fn percent(word: &str) -> Result<(usize, u64)> {
    let (cpu, load) = word
        .split_once('=')
        .ok_or_else(|| format!("{word:?} is not CPU=percent"))?;
    let load = load
        .strip_suffix('%')
        .ok_or_else(|| format!("{word:?} lacks the %"))?;
    Ok((number(cpu)?, number(load)? as u64 * u64::from(NICE0) / 100))
}

/// One line of a table: the situation, and what is expected.
struct Row {
    machine: Machine,
    case: Case,
    cpu: usize,
    expected: Vec<String>,
}

/// A clause of one or more words: the first word, and a function that takes the others.
type Clause = (&'static str, fn(&mut Row, &[&str]) -> Result<()>);

/// Clauses of one feature stand together.
const CLAUSES: &[Clause] = &[
    // the tasks
    ("sync", |r, w| flag(&mut r.case.sync, w)),
    ("fork", |r, w| flag(&mut r.case.fork, w)),
    ("kthread", |r, w| flag(&mut r.case.waker_pcpu_kthread, w)),
    ("wakee-sched-idle", |r, w| {
        flag(&mut r.case.wakee_sched_idle, w)
    }),
    ("may", |r, w| {
        r.case.allowed.fill(false);
        list(w)?.into_iter().for_each(|c| r.case.allowed[c] = true);
        Ok(())
    }),
    // the machine
    ("idle", |r, w| {
        list(w)?.into_iter().for_each(|c| r.idle(c));
        Ok(())
    }),
    ("sched-idle", |r, w| {
        for cpu in list(w)? {
            r.machine.set(cpu, r.machine.busy());
            r.change_cpu(cpu, |now| now.sched_idle = true);
        }
        Ok(())
    }),
    ("load", |r, w| r.cpus(w, |now, load| now.load = load)),
    ("used", |r, w| {
        r.cpus(w, |now, part| {
            now.util = part * 1024 / u64::from(NICE0);
            now.est = now.util;
        })
    }),
    ("llc-load", |r, w| r.llcs(w, |now, load| now.load = load)),
    ("llc-used", |r, w| {
        r.llcs(w, |now, part| now.util = part * 1024 / u64::from(NICE0))
    }),
    ("llc-running", |r, w| {
        for word in w {
            let (llc, tasks) = word.split_once('=').ok_or("llc-running LLC=TASKS")?;
            let mut now = r.machine.llcs[number(llc)?];
            now.nr_running = number(tasks)?;
            r.machine.set_llc(number(llc)?, now);
        }
        Ok(())
    }),
    ("idle-for", |r, w| {
        r.numbers(w, |now, us| now.idle_for = Some(us as u64 * 1000))
    }),
    // claim
    ("claimed", |r, w| {
        r.each(w, |now| now.claim_age = Some(1000))
    }),
    ("claimed-old", |r, w| {
        r.each(w, |now| now.claim_age = Some(CLAIM_TTL + 1))
    }),
    ("claimed-lost", |r, w| {
        r.each(w, |now| now.claim_age = Some(CLAIM_LOST + 1))
    }),
    ("core-claimed", |r, w| {
        r.each(w, |now| now.core_claim_age = Some(1000))
    }),
    ("core-claimed-old", |r, w| {
        r.each(w, |now| now.core_claim_age = Some(CLAIM_TTL + 1))
    }),
    // util_fits
    ("est", |r, w| r.numbers(w, |now, est| now.est = est as u64)),
    ("pressure", |r, w| {
        r.numbers(w, |now, part| now.pressure = part as u32)
    }),
    ("rt", |r, w| r.numbers(w, |now, util| now.rt = util as u32)),
    ("fits-rt", |r, w| flag(&mut r.case.fits_rt, w)),
    // delay_migration
    ("freq", |r, w| r.numbers(w, |now, khz| now.khz = khz as u32)),
    ("freq-old", |r, w| {
        r.numbers(w, |now, khz| {
            (now.khz, now.khz_age_ms) = (khz as u32, STALE_MS + 1);
        })
    }),
    // sync_local
    ("partners", |r, _| {
        let case = &mut r.case;
        case.waker.last_wakee = WAKEE;
        case.wakee.last_wakee = WAKER;
        case.waker_burst = 20_000;
        case.wakee_burst = 20_000;
        Ok(())
    }),
];

/// `key=value`
type Setting = (&'static str, fn(&mut Row, &str) -> Result<()>);

const SETTINGS: &[Setting] = &[
    ("waker", |r, v| set(&mut r.case.this, number(v)?)),
    ("prev", |r, v| set(&mut r.case.prev, number(v)?)),
    // smt_spread
    ("burst", |r, v| {
        set(&mut r.case.wakee_burst, number(v)? as u64 * 1000)
    }),
    ("slept", |r, v| {
        set(&mut r.case.wakee_slept, number(v)? as u64 * 1000)
    }),
    ("recent", |r, v| set(&mut r.case.recent, Some(number(v)?))),
    ("util", |r, v| {
        set(&mut r.case.wakee_util, number(v)? as u32)
    }),
    ("running", |r, v| {
        let nr_running = number(v)? as u32;
        r.change_cpu(r.case.this, |now| now.nr_running = nr_running);
        Ok(())
    }),
    // flips=WAKER,WAKEE
    ("flips", |r, v| {
        let (waker, wakee) = v.split_once(',').ok_or("flips=WAKER,WAKEE")?;
        let flips = |text: &str| -> Result<Waker> {
            Ok(Waker {
                flips: number(text)? as u32,
                decay_at: NOW,
                last_wakee: 0,
            })
        };
        r.case.waker = flips(waker)?;
        r.case.waker.last_wakee = WAKEE;
        r.case.wakee = flips(wakee)?;
        Ok(())
    }),
    // util_fits
    ("margin", |r, v| {
        set(&mut r.case.fits_margin, number(v)? as u32)
    }),
    // delay_migration
    ("threshold", |r, v| {
        set(&mut r.case.threshold, number(v)? as u32)
    }),
    // sis_util
    ("budget", |r, v| r.budget(v, 0)),
    ("stale-budget", |r, v| r.budget(v, 21_000_000)),
    // avg_idle_scan
    ("worth", |r, v| r.worth(v, 60_000)),
    ("stale-worth", |r, v| r.worth(v, -1)),
];

fn set<T>(field: &mut T, value: T) -> Result<()> {
    *field = value;
    Ok(())
}

fn flag(field: &mut bool, rest: &[&str]) -> Result<()> {
    if !rest.is_empty() {
        return Err(format!("{rest:?} not known"));
    }
    set(field, true)
}

impl Row {
    fn parse(topology: &Topology, line: &str) -> Result<Row> {
        let (situation, answer) = line.split_once("->").ok_or("no ->")?;
        let mut words = answer.split_whitespace();
        let mut row = Row {
            machine: Machine::new(topology.clone()),
            case: Case::new(topology.nr_cpu_ids(), usize::MAX, usize::MAX),
            cpu: number(words.next().ok_or("no CPU after ->")?)?,
            expected: words.map(str::to_string).collect(),
        };
        row.case.waker_ours = true;
        for clause in situation.split('|').skip(1) {
            let words: Vec<&str> = clause.split_whitespace().collect();
            row.clause(&words).map_err(|e| format!("{clause:?}: {e}"))?;
        }
        if row.case.this == usize::MAX || row.case.prev == usize::MAX {
            return Err("waker= and prev= are needed".into());
        }
        Ok(row)
    }

    fn idle(&mut self, cpu: usize) {
        let load = self.machine.cpus[cpu].load;
        let load = if load == u64::from(NICE0) { 0 } else { load };
        self.machine.set(cpu, self.machine.idle(load));
    }

    fn clause(&mut self, words: &[&str]) -> Result<()> {
        let head = *words.first().ok_or("empty")?;
        if let Some((key, value)) = head.split_once('=') {
            self.setting(key, value)?;
            return self.at(value, key == "waker", &words[1..]);
        }
        match CLAUSES.iter().find(|c| c.0 == head) {
            Some((_, apply)) => apply(self, &words[1..]),
            None => self.feature(head),
        }
    }

    /// `+wide_idle` or `-prev_idle`
    fn feature(&mut self, word: &str) -> Result<()> {
        let on = word.starts_with('+');
        let name = word.strip_prefix(['+', '-']).ok_or("not known")?;
        let switch = self.case.features.switch(name).ok_or("not known")?;
        if *switch == on {
            return Err("says what mainline has anyway".into());
        }
        *switch = on;
        Ok(())
    }

    /// `prev=4`, `flips=8,80`
    fn setting(&mut self, key: &str, value: &str) -> Result<()> {
        let (_, apply) = SETTINGS.iter().find(|s| s.0 == key).ok_or("not known")?;
        apply(self, value)
    }

    /// `rest` is what follows a setting: nothing, `idle` or `idle core`, which make that CPU or its
    /// core idle.
    fn at(&mut self, cpu: &str, waker: bool, rest: &[&str]) -> Result<()> {
        match rest {
            [] => return Ok(()),
            ["idle"] => self.idle(number(cpu)?),
            ["idle", "core"] => {
                let cpu = number(cpu)?;
                for c in std::iter::once(cpu).chain(self.machine.topology.siblings(cpu).to_vec()) {
                    self.idle(c);
                }
            }
            _ => return Err(format!("{rest:?} not known")),
        }
        // An idle waker is an interrupt on the idle task.
        self.case.waker_ours &= !waker;
        Ok(())
    }

    fn each(&mut self, cpus: &[&str], change: fn(&mut CpuNow)) -> Result<()> {
        for cpu in list(cpus)? {
            self.change_cpu(cpu, change);
        }
        Ok(())
    }

    fn change_cpu(&mut self, cpu: usize, change: impl Fn(&mut CpuNow)) {
        let mut now = self.machine.cpus[cpu];
        change(&mut now);
        self.machine.set(cpu, now);
    }

    /// `4=200% 5=0%`: a percentage for each CPU.
    fn cpus(&mut self, words: &[&str], change: fn(&mut CpuNow, u64)) -> Result<()> {
        for word in words {
            let (cpu, part) = percent(word)?;
            self.change_cpu(cpu, |now| change(now, part));
        }
        Ok(())
    }

    /// `4=300 5=100`: a number for each CPU.
    fn numbers(&mut self, words: &[&str], change: fn(&mut CpuNow, usize)) -> Result<()> {
        for word in words {
            let (cpu, n) = word.split_once('=').ok_or("CPU=number is expected")?;
            let n = number(n)?;
            self.change_cpu(number(cpu)?, |now| change(now, n));
        }
        Ok(())
    }

    /// As `cpus`, for LLCs.
    fn llcs(&mut self, words: &[&str], change: fn(&mut LlcNow, u64)) -> Result<()> {
        for word in words {
            let (llc, part) = percent(word)?;
            let mut now = self.machine.llcs[llc];
            change(&mut now, part);
            self.machine.set_llc(llc, now);
        }
        Ok(())
    }

    fn budget(&mut self, value: &str, age: u64) -> Result<()> {
        let budget = number(value)?;
        self.each_llc(|llc| LlcNow { budget, age, ..llc });
        Ok(())
    }

    fn worth(&mut self, value: &str, worth_left_ms: i32) -> Result<()> {
        let worth = number(value)?;
        self.each_llc(|llc| LlcNow {
            worth,
            worth_left_ms,
            ..llc
        });
        Ok(())
    }

    fn each_llc(&mut self, change: impl Fn(LlcNow) -> LlcNow) {
        for llc in 0..self.machine.llcs.len() {
            self.machine.set_llc(llc, change(self.machine.llcs[llc]));
        }
    }

    fn check(&mut self, by: &mut By, covered: &mut BTreeSet<&'static str>) -> Result<()> {
        let mut runner = Runner::new(&self.machine);
        let model = runner.model(&mut self.machine, &self.case);
        let got = runner.run(by, &mut self.machine, &self.case);
        let counters = moved(&self.machine.world);
        covered.extend(&counters);
        if got != model {
            return Err(format!("the C says {got:?}, the model {model:?}"));
        }
        let missing = |e: &&String| !expectation_holds(e, &got, self.case.recent, &counters);
        match self.expected.iter().find(missing) {
            Some(e) => Err(format!("{e} does not hold: {got:?}, counted {counters:?}")),
            None if got.cpu != self.cpu => Err(format!("got {got:?}, counted {counters:?}")),
            None if !self.expected.iter().any(|e| e == got.rung) => {
                Err(format!("the row does not name the rung, {}", got.rung))
            }
            None => Ok(()),
        }
    }
}

/// `word` is a counter that moved, `!` and one that did not, `busy`, `idle`, `next`, `recent=1`,
/// `recent-kept` or `delayed=1`.
fn expectation_holds(word: &str, got: &Decision, recent: Option<usize>, counters: &[&str]) -> bool {
    if let Some(cpu) = word.strip_prefix("delayed=") {
        return got.delayed.map(|c| c.to_string()).as_deref() == Some(cpu);
    }
    match (word, word.strip_prefix("recent=")) {
        ("idle", _) => got.how == How::Idle,
        ("busy", _) => got.how == How::Busy,
        ("next", _) => got.how == How::Next,
        ("recent-kept", _) => got.recent == recent,
        _ if word.starts_with('!') => {
            stat_of(&word[1..]).is_some() && !counters.contains(&&word[1..])
        }
        (_, Some(cpu)) => got.recent.map(|c| c.to_string()).as_deref() == Some(cpu),
        _ => counters.contains(&word),
    }
}

/// Prepares to run the C for a machine.
type Start = fn(&World) -> By;

/// Runs one table. Returns the counters that its rows moved, and the number of rows.
fn run_table(
    start: Start,
    name: &str,
    text: &str,
    failures: &mut Vec<String>,
) -> (BTreeSet<&'static str>, usize) {
    let mut covered = BTreeSet::new();
    let mut rows = 0;
    let (mut topology, mut by) = (None, By::Native);
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap().trim();
        let outcome = if line.is_empty() {
            Ok(())
        } else if let Some(machine) = line.strip_prefix("machine ") {
            parse_machine(machine).map(|t| {
                by = start(&t.world());
                topology = Some(t);
            })
        } else if let Some(topology) = &topology {
            rows += 1;
            Row::parse(topology, line).and_then(|mut row| row.check(&mut by, &mut covered))
        } else {
            Err("a row before any machine".into())
        };
        if let Err(e) = outcome {
            failures.push(format!("{name}:{}: {line}\n    {e}", i + 1));
        }
    }
    (covered, rows)
}

fn tables() -> Vec<(String, String)> {
    // In the guest there is no source tree.
    let dir = std::env::var("ROOST_TABLES");
    let dir = dir.unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases").into());
    let mut tables: Vec<(String, String)> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|x| x == "txt"))
        .map(|p| {
            (
                p.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read_to_string(&p).unwrap(),
            )
        })
        .collect();
    tables.sort();
    tables
}

fn native(_: &World) -> By {
    By::Native
}

fn check_tables(start: Start) {
    let mut failures = vec![];
    let mut covered = BTreeSet::new();
    for (name, text) in tables() {
        let (counters, rows) = run_table(start, &name, &text, &mut failures);
        println!("{name}: {rows} rows");
        covered.extend(counters);
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    let uncovered: Vec<&str> = PLACEMENT_STATS
        .map(stat_name)
        .filter(|name| !covered.contains(name))
        .collect();
    assert!(
        uncovered.is_empty(),
        "no row of any table moves {uncovered:?}"
    );
}

#[test]
fn decision_tables() {
    check_tables(native);
}

#[test]
#[ignore = "needs a kernel that lets it load BPF: tests/guest/policy-bpf.sh runs it"]
fn decision_tables_as_bpf() {
    check_tables(By::bpf);
}

#[test]
fn a_wrong_row_is_noticed() {
    let wrong = [
        "X | prev=1 idle | waker=0 -> 0 wa_prev_idle sis_target",
        "X | prev=1 idle | waker=0 -> 1 wa_prev_idle sis_prev",
        "X | prev=1 idle | waker=0 -> 1 wa_prev_idle",
        "X | prev=1 idle | waker=0 -> 1 sis_target !sis_targte",
        "X | prev=1 idle | waker=0 -> 1 sis_target !placed_prev",
        "X | prev=1 idle | waker=0 | +prev_idle -> 1 sis_target",
        "X | prev=1 sleepy | waker=0 -> 1 sis_target",
        "X | waker=0 -> 1 sis_target",
    ];
    for row in wrong {
        let mut failures = vec![];
        run_table(
            native,
            "wrong",
            &format!("machine 0 1\n{row}"),
            &mut failures,
        );
        assert_eq!(failures.len(), 1, "{row}");
    }
}
