// SPDX-License-Identifier: GPL-2.0-only
//! Anybody may give a thread any name of 15 bytes. Whatever the names, a text says the same.

use super::parse::{Event, Stops, Text, What, parse};
use crate::sim::Rng;

/// Parts of names that look like parts of a text.
const PARTS: [&[u8]; 32] = [
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b"a",
    b"1",
    b"-",
    b":",
    b"[",
    b"]",
    b"\"",
    b"'",
    b"<&>",
    b"\x1b[7m",
    b"\x01",
    b"\x7f",
    b"\xff",
    "\u{e9}".as_bytes(),
    "\u{ffff}".as_bytes(),
    b" ==> ",
    b"# ",
    b"\n# cpus of 1: 0",
    b"# scheduler: x",
    b" child_pid=5\n",
    b" next_pid=7",
    b" prev_state=",
    b" ==> next_comm=",
    b"CPU:1 [LOST 2",
    b"-1 [000] 1.0: ",
    b"LOST 1 events!",
    b" child_comm=",
    b"a:1 [1] S ==> b",
];

#[derive(Clone, Copy, Debug)]
enum Form {
    Ftrace,
    Groups,
    Perf,
    PerfThreads,
    Plugins,
}

const FORMS: [Form; 5] = [
    Form::Ftrace,
    Form::Groups,
    Form::Perf,
    Form::PerfThreads,
    Form::Plugins,
];

/// A text that grows, and what it says.
struct Told {
    form: Form,
    text: Vec<u8>,
    events: Vec<Event>,
}

fn name(rng: &mut Rng) -> Vec<u8> {
    let mut name = Vec::new();
    for _ in 0..=rng.below(4) {
        name.extend(PARTS[rng.below(PARTS.len() as u64) as usize]);
    }
    name.truncate(15);
    name
}

/// A task's name and number.
type Named<'a> = (&'a [u8], u32);

impl Told {
    fn line(&mut self, (by, task): Named, event: &str, body: &[&[u8]], what: Option<What>) {
        let n = self.text.iter().filter(|&&b| b == b'\n').count() as u64;
        let (cpu, at) = (n % 8, 1_000_000_000 + n * 1000);
        let time = format!("{}.{:06}", at / 1_000_000_000, at % 1_000_000_000 / 1000);
        let pad = " ".repeat(16usize.saturating_sub(by.len()));
        self.text.extend(pad.as_bytes());
        self.text.extend(by);
        let head = match self.form {
            Form::Ftrace => format!("-{task:<7} [{cpu:03}] d..2. {time:>12}: {event}: "),
            Form::Groups => {
                format!("-{task:<7} ({task:>7}) [{cpu:03}] d..2. {time:>12}: {event}: ")
            }
            Form::Perf => format!(
                " {task:>5} [{cpu:03}] {time:>12}: {:>25}: ",
                format!("sched:{event}")
            ),
            Form::PerfThreads => {
                let thread = format!("{task:>5}/{task:<5}");
                format!(
                    " {thread} [{cpu:03}] {time}123: {:>25}: ",
                    format!("sched:{event}")
                )
            }
            Form::Plugins => format!("-{task:<7} [{cpu:03}] {time:>12}: {event:<20} "),
        };
        let head = match self.form {
            Form::Plugins => head.replace(event, &format!("{event}:")),
            _ => head,
        };
        self.text.extend(head.as_bytes());
        self.text.extend(body.concat());
        self.text.push(b'\n');
        let fine = matches!(self.form, Form::PerfThreads);
        self.events.extend(what.map(|what| Event {
            at: at / 1000 * 1000 + if fine { 123 } else { 0 },
            cpu: cpu as u16,
            what,
        }));
    }

    fn random(&mut self, rng: &mut Rng, names: &[Vec<u8>]) {
        let mut any = || {
            let task = rng.below(names.len() as u64) as usize;
            (&names[task][..], task as u32 + 1)
        };
        let (by, a, b) = (any(), any(), any());
        match rng.below(5) {
            0 => self.switch(a, b),
            1 | 2 => self.waking(by, a),
            3 => self.fork(a, b),
            _ => self.line(
                by,
                "sched_stat_runtime",
                &[b"comm=", a.0, b" pid=1 [ns]"],
                None,
            ),
        }
    }

    fn switch(&mut self, a: Named, b: Named) {
        let (first, second) = (a.1.to_string(), b.1.to_string());
        let [first, second] = [&first, &second].map(String::as_bytes);
        let what = What::Switch {
            prev: a.1,
            stops: Stops::Sleeps,
            next: b.1,
        };
        let (long, short): ([&[u8]; 8], [&[u8]; 7]) = (
            [
                b"prev_comm=",
                a.0,
                b" prev_pid=",
                first,
                b" prev_prio=120 prev_state=S ==> next_comm=",
                b.0,
                b" next_pid=",
                second,
            ],
            [a.0, b":", first, b" [120] S ==> ", b.0, b":", second],
        );
        let (body, end): (&[&[u8]], &[u8]) = match self.form {
            Form::Plugins => (&short, b" [120]"),
            _ => (&long, b" next_prio=120"),
        };
        self.line(a, "sched_switch", &[&body.concat(), end], Some(what));
    }

    fn waking(&mut self, by: Named, a: Named) {
        let number = a.1.to_string();
        let number = number.as_bytes();
        let body: &[&[u8]] = match self.form {
            Form::Plugins => &[a.0, b":", number, b" [120] CPU:003"],
            _ => &[b"comm=", a.0, b" pid=", number, b" prio=120 target_cpu=003"],
        };
        let (task, who) = (a.1, Some(by.1));
        self.line(
            by,
            "sched_waking",
            body,
            Some(What::Waking { task, by: who }),
        );
    }

    fn fork(&mut self, a: Named, b: Named) {
        let (first, second) = (a.1.to_string(), b.1.to_string());
        let [first, second] = [&first, &second].map(String::as_bytes);
        let body: [&[u8]; 8] = [
            b"comm=",
            a.0,
            b" pid=",
            first,
            b" child_comm=",
            b.0,
            b" child_pid=",
            second,
        ];
        let (parent, child) = (a.1, b.1);
        self.line(
            a,
            "sched_process_fork",
            &body,
            Some(What::Fork { parent, child }),
        );
    }
}

fn shown(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let odd = |c: char| c.is_control() || c == '\u{ffff}';
    name.replace(odd, "\u{fffd}")
}

#[test]
fn no_name_changes_what_a_text_says() {
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let form = FORMS[seed as usize % FORMS.len()];
        let names: Vec<Vec<u8>> = (0..6).map(|_| name(&mut rng)).collect();
        let (text, events) = (b"# tracer: nop\n#\n".to_vec(), Vec::new());
        let mut told = Told { form, text, events };
        for _ in 0..20 {
            told.random(&mut rng, &names);
        }
        let what = || {
            format!(
                "seed {seed}, {form:?}:\n{}",
                told.text.escape_ascii().to_string().replace("\\n", "\n")
            )
        };
        let read: Text = parse(&told.text[..]).unwrap_or_else(|e| panic!("{e:#}: {}", what()));
        assert_eq!(read.events, told.events, "{}", what());
        assert_eq!((read.scheduler, read.cpus.len()), (None, 0), "{}", what());
        for (task, name) in &read.names {
            let own = shown(&names[*task as usize - 1]);
            // Plugins pad a body, so the spaces at the start of a name are not known.
            let known = |name: &str| match form {
                Form::Plugins => name.trim_start_matches(' ').to_string(),
                _ => name.to_string(),
            };
            assert_eq!(known(name), known(&own), "{}", what());
        }
    }
}

/// As ftrace printed it for a thread that gave itself a name of two lines, which looks like a line
/// of `record`.
#[test]
fn a_name_of_two_lines() {
    let text = "# tracer: nop\n\
            a-1       [000] d..2. 1.000000: sched_waking: comm=x\n# cpus of 1: 0 pid=7 prio=120 target_cpu=000\n\
        \x20             \n# cpus of 1: 0-7       [001] d..2. 1.000001: sched_waking: comm=b pid=2 prio=120 target_cpu=000\n";
    let text = parse(text.as_bytes()).unwrap();
    let waking = |task, by| What::Waking { task, by: Some(by) };
    let what: Vec<What> = text.events.iter().map(|event| event.what).collect();
    assert_eq!(what, [waking(7, 1), waking(2, 7)]);
    assert!(text.cpus.is_empty());
}
