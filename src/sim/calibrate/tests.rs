// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use crate::sim::model;
use anyhow::bail;

/// Measures what a function says for the number of the measurement; each takes a second.
struct Played<F>(usize, F);

impl<F: Fn(usize) -> Result<f64>> Bench for Played<F> {
    fn measure(&mut self, _: &Ask) -> Result<f64> {
        self.0 += 1;
        (self.1)(self.0 - 1)
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }
}

fn played(name: &'static str, asks: Vec<Ask>, say: impl Fn(usize) -> Result<f64>) -> Line {
    let lacks = NO_NODE.to_string();
    line(&Wanted { name, asks, lacks }, &mut Played(0, say))
}

fn transfer(say: impl Fn(usize) -> Result<f64>) -> Line {
    played("transfer_llc", vec![Ask::Transfer(0, 1)], say)
}

#[test]
fn pairs_of_each_distance() {
    let machine = model("epyc-12-nodes").unwrap().machine;
    let pairs = Pairs::of(&machine, &|_| true);
    assert_eq!(pairs.smt, [(0, 96), (1, 97), (2, 98)]);
    assert_eq!(pairs.llc, [(0, 1), (2, 3), (4, 5)]);
    assert_eq!(pairs.other_llc, []);
    assert_eq!(pairs.node[0], (0, 8));
    let pairs = Pairs::of(&model("odd-17").unwrap().machine, &|_| true);
    assert_eq!(
        (pairs.smt.len(), pairs.other_llc.len(), pairs.node.len()),
        (0, 0, 0)
    );
}

#[test]
fn only_cpus_that_may_be_used_are_measured() {
    let machine = model("epyc-12-nodes").unwrap().machine;
    let pairs = Pairs::of(&machine, &|cpu| [1, 3, 97, 98].contains(&cpu));
    assert_eq!(
        (&pairs.smt[..], &pairs.llc[..]),
        (&[(1, 97)][..], &[(1, 3), (97, 98)][..])
    );
    assert_eq!(pairs.node, []);
    let lines = wanted(&pairs, 1, false);
    let node = lines
        .iter()
        .find(|want| want.name == "transfer_node")
        .unwrap();
    let line = line(node, &mut Played(0, |_| Ok(1.0)));
    let why = "there is one node (only CPUs that this process may use count)";
    assert_eq!(line.why.as_deref(), Some(why));
    let left_out = vec![0, 2, 4, 5];
    let (load, lines) = (0.0, vec![line]);
    let text = Calibrated {
        load,
        left_out,
        lines,
    }
    .text();
    assert!(
        text.contains("\nCPUs 0,2,4-5 are left out: this process may not"),
        "{text}"
    );
}

#[test]
fn a_bad_repetition_changes_nothing() {
    let bad = |at, value: Result<f64>| {
        move |n| match n == at {
            true => value.as_ref().map_or_else(|e| bail!("{e}"), |v| Ok(*v)),
            false => Ok(100.0 + n as f64),
        }
    };
    let good = transfer(bad(99, Ok(0.0)));
    assert_eq!((good.value, good.dropped), (Some([103.0, 100.0, 106.0]), 0));
    for value in [
        Ok(90_000.0),
        Ok(f64::NAN),
        Ok(f64::INFINITY),
        Err(anyhow!("no luck")),
    ] {
        let line = transfer(bad(6, value));
        assert_eq!((line.value, line.dropped), (Some([103.0, 100.0, 105.0]), 1));
        assert!(line.why.is_none());
    }
}

#[test]
fn without_half_of_the_repetitions_there_is_no_value() {
    let some = |good: usize| {
        move |n| match n < good {
            true => Ok(5.0),
            false => bail!("no luck"),
        }
    };
    assert_eq!(transfer(some(4)).value, Some([5.0; 3]));
    let line = transfer(some(3));
    assert_eq!((line.value, line.why.as_deref()), (None, Some("no luck")));
    let exit = vec![Ask::Exit(0, 1, SHORT)];
    let line = played("idle_c1_exit", exit.clone(), |n| {
        Ok(n as f64 * 100.0 - 500.0)
    });
    let why = "a wakeup of an idle CPU is no later than one of a busy CPU";
    assert_eq!((line.value, line.why.as_deref()), (None, Some(why)));
    // In us; noise below 0 is no end of a range.
    let line = played("idle_c1_exit", exit, |n| Ok(n as f64 * 1000.0 - 500.0));
    assert_eq!(line.value, Some([2.5, 0.5, 5.5]));
}

#[test]
fn the_time_is_over() {
    let asks = vec![Ask::Transfer(0, 1); 3];
    let want = |name| Wanted {
        name,
        asks: asks.clone(),
        lacks: String::new(),
    };
    let mut bench = Played(0, |_| Ok(5.0));
    let names = [
        "transfer_smt",
        "transfer_llc",
        "transfer_other_llc",
        "transfer_node",
    ];
    let lines = names.map(|name| line(&want(name), &mut bench));
    let told = |line: &Line| (line.value.is_some(), line.dropped, line.why.clone());
    assert_eq!(told(&lines[1]), (true, 0, None));
    // 60 of 63: enough.
    assert_eq!(told(&lines[2]), (true, 3, None));
    let why = "60 s were over after 0 of 21 repetitions".to_string();
    assert_eq!(told(&lines[3]), (false, 0, Some(why)));
    assert_eq!(bench.0, 60);
}

/// A thread that gets no CPU sends no line.
#[test]
fn nobody_waits_for_a_stuck_thread() {
    let want = |name| Wanted {
        name,
        asks: Vec::new(),
        lacks: "none".to_string(),
    };
    let wanted = ["transfer_smt", "transfer_llc"].map(want);
    let (done, lines) = channel();
    done.send(line(&wanted[0], &mut Played(0, |_| Ok(1.0))))
        .unwrap();
    let found = collected(&wanted, &lines, &|| Duration::from_millis(1));
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].name, "transfer_llc");
    let why = found[1].why.as_deref().unwrap();
    assert!(why.starts_with("its threads got no CPU"), "{why}");
}

#[test]
fn what_is_measured_is_read_again() {
    let two = || vec![Ask::Transfer(0, 1)];
    let lines = vec![
        played("transfer_llc", two(), |_| Ok(123.456)),
        played("refill_llc", two(), |_| Ok(54_321.0)),
        played("transfer_node", Vec::new(), |_| Ok(1.0)),
        played("idle_c1_exit", two(), |_| bail!("no luck")),
    ];
    let (load, left_out) = (2.5, Vec::new());
    let calibrated = Calibrated {
        load,
        left_out,
        lines,
    };
    let mut read = Params::of("tr-3970x");
    read.read(&calibrated.file()).unwrap();
    assert_eq!(read.ns("transfer_llc"), 123);
    assert_eq!(read.get("refill_llc").unwrap().value, 54.3);
    // Defaults of any machine do not replace what is known of this one.
    assert_eq!(read.ns("idle_c1_exit"), 1000);
    let text = calibrated.text();
    assert!(text.contains("not measured: there is one node"), "{text}");
    assert!(text.contains("not measured: no luck"), "{text}");
    assert!(text.contains("The load average is 2.5"), "{text}");
}

#[test]
fn three_digits() {
    for (value, told) in [
        (0.61234, 0.612),
        (1234.5, 1230.0),
        (9.996, 10.0),
        (0.0, 0.0),
    ] {
        assert_eq!(rounded(value), told);
    }
}

/// On this machine: a line travels in 1 ns to 20 us, a thread has about the speed that it has
/// alone, and wakes within a second. What other work prevents is said.
#[test]
fn figures_of_this_machine_are_plausible() {
    let own = Affinity::of(0).unwrap();
    let cpus: Vec<u16> = (0..1024).filter(|cpu| own.has(*cpu)).take(2).collect();
    let measured = thread::spawn(move || {
        let mut here = Here::begin();
        let &[a, b] = &cpus[..] else {
            eprintln!("not measured: there is one CPU");
            return;
        };
        let mut plausible = |ask, least: f64, most: f64| match here.measure(&ask) {
            Ok(value) => assert!((least..most).contains(&value), "{ask:?}: {value}"),
            Err(e) => {
                assert!(e.to_string().starts_with("other work"), "{ask:?}: {e:#}");
                eprintln!("{ask:?} is not measured: {e:#}");
            }
        };
        for _ in 0..3 {
            plausible(Ask::Transfer(a, b), 1.0, 20_000.0);
            plausible(Ask::Smt(a, b), 0.2, 2.0);
            plausible(Ask::Exit(a, b, SHORT), -1e9, 1e9);
            plausible(Ask::Refill(a, b, FAR_SET), -1e9, 1e9);
        }
    });
    measured.join().unwrap();
    assert_eq!(Affinity::of(0).unwrap(), own);
}

/// With one CPU there is nothing to measure, and the caller keeps its CPUs.
#[test]
fn the_callers_cpus_stay() {
    let own = Affinity::of(0).unwrap();
    let first = (0..1024).find(|cpu| own.has(*cpu)).unwrap();
    let one = Affinity::new(&[first]);
    let alone = move || {
        one.take().unwrap();
        let calibrated = calibrate().unwrap();
        assert_eq!(Affinity::of(0).unwrap(), one);
        assert!(!calibrated.left_out.contains(&first));
        calibrated
            .lines
            .iter()
            .for_each(|line| assert!(line.value.is_none(), "{line:?}"));
    };
    thread::spawn(alone).join().unwrap();
}
