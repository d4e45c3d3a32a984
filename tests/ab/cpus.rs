// SPDX-License-Identifier: GPL-2.0-only
//! Where a command may run: lists of CPUs, machines, and the command itself.

use crate::child::{alone, lives, runs, workload};
use crate::played::{header, played_runs};
use scx_roost::ab::analysis::judged;
use scx_roost::ab::child::{Workload, become_subreaper, run};
use scx_roost::ab::cpus::{Cpus, check, cores};
use scx_roost::ab::report::{Report, summary};
use scx_roost::ab::result::Recorded;
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::Verdict;
use scx_roost::ab::tune::candidates;
use scx_roost::ab::variant::{Kind, Scope, Variant, parse_all};
use scx_roost::machine::{Cpu, Llc, LlcKind, Machine};
use std::time::Duration;

/// A machine with LLCs of these numbers of cores. `smt`: two threads per core, numbered after all
/// cores (true, as on the 3970X) or next to each other (false).
pub fn machine(llcs: &[u16], smt: Option<bool>) -> Machine {
    let all: u16 = llcs.iter().sum();
    let mut machine = Machine {
        nr_cpu_ids: all * if smt.is_some() { 2 } else { 1 },
        cpus: Vec::new(),
        offline: Vec::new(),
        llcs: Vec::new(),
        nodes: Vec::new(),
        nr_cores: all,
        nohz_full: Vec::new(),
        doubts: Vec::new(),
    };
    let mut core = 0;
    for (llc, cores) in llcs.iter().enumerate() {
        let mut cpus = Vec::new();
        for _ in 0..*cores {
            let threads = match smt {
                None => vec![core],
                Some(true) => vec![core, core + all],
                Some(false) => vec![2 * core, 2 * core + 1],
            };
            for id in &threads {
                machine.cpus.push(Cpu {
                    id: *id,
                    core,
                    llc: llc as u16,
                    node: 0,
                    pos: 0,
                    capacity: 1024,
                    siblings: threads.iter().copied().filter(|t| t != id).collect(),
                });
            }
            cpus.extend(threads);
            core += 1;
        }
        cpus.sort_unstable();
        machine.llcs.push(Llc {
            kind: LlcKind::L3,
            size_kb: Some(16384),
            node: 0,
            cpus,
        });
    }
    machine.cpus.sort_by_key(|c| c.id);
    machine
}

fn cpus(name: &str) -> Cpus {
    Variant::parse(name).unwrap().cpus
}

#[test]
fn a_variant_says_where_the_command_may_run() {
    assert_eq!(cpus("roost"), Cpus::All);
    assert_eq!(
        cpus("roost+claim=off@cpus=0-2,5"),
        Cpus::List(vec![0, 1, 2, 5])
    );
    assert_eq!(cpus("eevdf@cpus=cores"), Cpus::Cores);
    let pinned = Variant::parse("pinned").unwrap();
    assert_eq!((pinned.kind, pinned.cpus), (Kind::Eevdf, Cpus::Cores));
    let scx = Variant::parse("scx:/usr/bin/scx_lavd --performance@cpus=3").unwrap();
    assert_eq!(scx.cpus, Cpus::List(vec![3]));
    assert_eq!(
        scx.kind,
        Kind::Scx(vec!["/usr/bin/scx_lavd".into(), "--performance".into()])
    );
    let error = |name: &str| format!("{:#}", Variant::parse(name).unwrap_err());
    assert!(
        error("roost@cpus=a")
            .starts_with("variant roost@cpus=a: @cpus=a: expected 'cores' or a list")
    );
    assert!(error("roost@cpus=").contains("needs CPUs after it"));
    assert!(error("roost@cpus=3-1").contains("runs backwards"));
    assert!(error("rust@cpus=3").contains("unknown preset 'rust'"));
}

#[test]
fn one_thread_of_each_core_however_they_are_numbered() {
    let source = machine(&[4; 8], Some(true));
    assert_eq!(cores(&source), (0..32).collect::<Vec<u16>>());
    assert_eq!(cores(&machine(&[2, 2], Some(false))), [0, 2, 4, 6]);
    assert_eq!(cores(&machine(&[3], None)), [0, 1, 2]);
    assert_eq!(Cpus::Cores.on(&source).unwrap().len(), 32);
    assert!(Cpus::All.on(&source).unwrap().is_empty());
    let off = Cpus::List(vec![3, 64]).on(&source).unwrap_err().to_string();
    assert_eq!(off, "CPU 64 is not online; the online CPUs are 0-63");
}

#[test]
fn the_command_is_kept_there() {
    let allowed = |cpus: Vec<u16>| {
        let sample = runs(&Workload {
            command: ["sh", "-c", "grep Cpus_allowed_list /proc/self/status"]
                .map(Into::into)
                .to_vec(),
            timeout: Duration::from_secs(20),
            cpus,
            user: None,
        });
        let output = sample.unwrap().output;
        output.split_whitespace().last().unwrap().to_string()
    };
    let all = allowed(Vec::new());
    let one = Machine::read("/sys".as_ref()).unwrap().cpus[0].id;
    assert_eq!(allowed(vec![one]), one.to_string());
    // The affinity of this process is unchanged.
    assert_eq!(allowed(Vec::new()), all);
    check(&[one]).unwrap();
    let beyond = check(&[1023]).unwrap_err();
    assert!(
        format!("{beyond:#}").starts_with("cannot restrict the command to CPUs 1023"),
        "{beyond:#}"
    );
}

/// The command is kept to its CPUs by affinity, which it can change.
#[test]
fn a_process_that_leaves_its_cpus_is_found() {
    let Some(cgroup) = crate::real::own_cgroup() else {
        return;
    };
    if std::thread::available_parallelism().unwrap().get() < 2 {
        println!("skip: one CPU");
        return;
    }
    let _alone = alone();
    become_subreaper().unwrap();
    let on_cpu_1 = |script: &str| {
        let kept = Workload {
            cpus: vec![1],
            ..workload(script)
        };
        run(&kept, Some(&cgroup), &|| None, &|| false, &mut |_| ())
    };
    let stays = on_cpu_1("taskset -c 1 sleep 0.4");
    let strays = on_cpu_1("exec taskset -c 0-1 sleep 7673");
    cgroup.remove();
    assert!(stays.is_ok(), "{stays:?}");
    let told = strays.unwrap_err().to_string();
    assert!(
        told.starts_with("sleep is restricted to CPUs 1 and may run on others"),
        "{told}"
    );
    assert!(!lives("7673"));
}

/// CPUs belong to the workload, not to a feature: they act even where the other feature never acts.
#[test]
fn where_it_runs_is_a_difference_that_acts() {
    let verdict = |other: &str| {
        let header = header(&["mainline", other], Plan::Fixed(30));
        let recorded = Recorded {
            runs: played_runs(&header, 1),
            ..Recorded::new(header)
        };
        judged(&recorded).unwrap()[0].verdict
    };
    let feature = "mainline+prev_core=on";
    assert_eq!(verdict(feature), Verdict::NotExercised);
    assert_eq!(verdict(&format!("{feature}@cpus=0")), Verdict::Equivalent);
    let both = parse_all(&["mainline", "mainline@cpus=0"].map(str::to_string)).unwrap();
    Scope::Workload.check(&both).unwrap();
}

#[test]
fn reports_say_where() {
    let scx = "scx:/home/me/scx_lavd --x@cpus=0-1";
    let mut header = header(&["eevdf", "pinned", scx], Plan::Fixed(6));
    header.host.insert("cores".into(), "0-31".into());
    let recorded = Recorded {
        runs: played_runs(&header, 1),
        ..Recorded::new(header)
    };
    let said = summary(&Report::new(&recorded).unwrap());
    assert!(
        said.contains(&format!(
            "on the whole machine, pinned on CPUs 0-31, {scx} on CPUs 0-1; seed"
        )),
        "{said}"
    );
}

#[test]
fn tune_does_not_search_them() {
    let told = candidates("roost@cpus=0", 4, Scope::Machine)
        .unwrap_err()
        .to_string();
    assert!(told.contains("a preset or a profile on all CPUs"), "{told}");
}
