// SPDX-License-Identifier: GPL-2.0-only
//! The text of ftrace, as the kernel's `trace` file, perf script and trace-cmd print it. Only the
//! events of the scheduler count that say what tasks did; other events are skipped.

use crate::bpf::intf::MAX_CPUS;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, Read};

/// The most events of a recording. A replay of that many takes half a gigabyte, and seconds.
pub const MOST_EVENTS: usize = 2_000_000;
/// Longer lines are none of ftrace's, bytes.
const LONGEST: u64 = 4096;
/// `scx_roost record` writes these words at the start of a line, then what it knows.
const SCHEDULER: &str = "# scheduler: ";
const AFFINITY: &str = "# cpus of ";

/// What a task does when it stops running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stops {
    /// It could go on.
    Runnable,
    Sleeps,
    Ends,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A CPU switches between tasks. 0: the idle task.
    Switch {
        prev: u32,
        stops: Stops,
        next: u32,
    },
    /// A wakeup begins; `by`: the task that runs where it happens. None: an interrupt or the idle
    /// task.
    Waking {
        task: u32,
        by: Option<u32>,
    },
    /// A task, or a new one, is on a run queue.
    Woken {
        task: u32,
        by: Option<u32>,
    },
    Fork {
        parent: u32,
        child: u32,
    },
    Exec {
        task: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// ns, by the recording's clock.
    pub at: u64,
    pub cpu: u16,
    pub what: What,
}

/// What a text says.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// In the order of their times.
    pub events: Vec<Event>,
    /// The last name of each task.
    pub names: BTreeMap<u32, String>,
    /// The priority of each task (kernel: p->prio).
    pub prios: BTreeMap<u32, i32>,
    /// The CPUs that tasks may use, where the text says so.
    pub cpus: BTreeMap<u32, Vec<u16>>,
    /// The scheduler that ran, where the text says so.
    pub scheduler: Option<String>,
}

/// Reads the text. Errors name the line: it is not ftrace's; events were lost; there are too many.
pub fn parse(mut from: impl BufRead) -> Result<Text> {
    let mut text = Text::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let length = from.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        ensure!(
            (length as u64) < LONGEST,
            "line {number} is longer than {LONGEST} bytes: the text of ftrace was expected"
        );
        let line = String::from_utf8_lossy(&line);
        text.line(line.trim_end())
            .with_context(|| format!("line {number}"))?;
        ensure!(
            text.events.len() <= MOST_EVENTS,
            "line {number}: these are more than {MOST_EVENTS} events; record for a shorter time"
        );
    }
    // Texts of several buffers may overlap by a little.
    text.events.sort_by_key(|event| event.at);
    Ok(text)
}

impl Text {
    fn line(&mut self, line: &str) -> Result<()> {
        if let Some(name) = line.strip_prefix(SCHEDULER) {
            self.scheduler = Some(name.chars().take(100).collect());
        } else if let Some((task, cpus)) = line
            .strip_prefix(AFFINITY)
            .and_then(|rest| rest.split_once(": "))
        {
            let cpus = crate::machine::parse_cpulist(cpus)?;
            let task = digits(task).with_context(|| format!("{task:?} is not a number"))?;
            self.cpus.insert(task, cpus);
        } else if !line.is_empty() && !line.starts_with('#') {
            self.event(line)?;
        }
        Ok(())
    }

    fn event(&mut self, line: &str) -> Result<()> {
        let Some(head) = Head::parse(line) else {
            // ftrace: "CPU:1 [LOST 12 EVENTS]"; perf script: "... LOST 12 events!".
            ensure!(
                !line.contains("LOST"),
                "events were lost here, so what the tasks did is not known; record with larger buffers"
            );
            bail!(
                "{:?} where an event was expected, such as \
                 'bash-12 [001] d..2. 1.000002: sched_waking: comm=ls pid=34 prio=120 target_cpu=000'",
                line.chars().take(80).collect::<String>()
            );
        };
        let what = match head.event {
            "sched_switch" => self.switch(head.body),
            "sched_waking" => self
                .task(head.body)
                .map(|task| What::Waking { task, by: head.by }),
            "sched_wakeup" | "sched_wakeup_new" => self
                .task(head.body)
                .map(|task| What::Woken { task, by: head.by }),
            "sched_process_fork" => fork(head.body),
            "sched_process_exec" => after(head.body, " pid=").map(|task| What::Exec { task }),
            _ => return Ok(()),
        };
        let what = what.with_context(|| {
            let (event, body): (&str, String) = (head.event, head.body.chars().take(120).collect());
            format!("{event}: {body:?} is not what the kernel prints for this event")
        })?;
        self.events.push(Event {
            at: head.at,
            cpu: head.cpu,
            what,
        });
        Ok(())
    }

    fn switch(&mut self, body: &str) -> Option<What> {
        // The arrow may be a part of a name, so its neighbour counts, where there is one.
        let arrow = body
            .rfind(" ==> next_comm=")
            .or_else(|| body.rfind(" ==> "))?;
        let (prev, next) = (&body[..arrow], &body[arrow + " ==> ".len()..]);
        let (prev, state) = match prev.rsplit_once(" prev_state=") {
            Some((prev, state)) => (named(prev, "prev_")?, state),
            None => {
                let (prev, state) = prev.rsplit_once(' ')?;
                (short(prev)?, state)
            }
        };
        let next = named(next, "next_").or_else(|| short(next))?;
        let stops = match state.as_bytes().first()? {
            b'R' => Stops::Runnable,
            b'X' | b'Z' | b'x' => Stops::Ends,
            _ => Stops::Sleeps,
        };
        self.knows(prev);
        self.knows(next);
        Some(What::Switch {
            prev: prev.1,
            stops,
            next: next.1,
        })
    }

    fn knows(&mut self, (name, task, prio): (&str, u32, i32)) {
        self.prios.insert(task, prio);
        if self.names.get(&task).is_none_or(|known| known != name) {
            self.names.insert(task, name.to_string());
        }
    }

    /// The task of a wakeup.
    fn task(&mut self, body: &str) -> Option<u32> {
        if body.starts_with("comm=") {
            return after(body, " pid=");
        }
        let (task, _) = body.rsplit_once(']')?;
        Some(short(&format!("{task}]"))?.1)
    }
}

/// What each line begins with.
struct Head<'a> {
    cpu: u16,
    at: u64,
    /// The task that ran, unless an interrupt came between.
    by: Option<u32>,
    event: &'a str,
    body: &'a str,
}

impl Head<'_> {
    /// A name may contain brackets, so the first ones that fit count.
    fn parse(line: &str) -> Option<Head<'_>> {
        let mut opens = line.match_indices('[');
        opens.find_map(|(at, _)| Head::at(line, at))
    }

    /// `NAME-PID [CPU] FLAGS TIME: EVENT: BODY`, or without the flags.
    fn at(line: &str, opens: usize) -> Option<Head<'_>> {
        let (cpu, rest) = line[opens + 1..].split_once(']')?;
        let cpu = digits(cpu).filter(|&cpu| cpu < MAX_CPUS)?;
        let (first, rest) = word(rest)?;
        let (flags, time, rest) = match ns(first) {
            Some(time) => ("", time, rest),
            None => {
                let (second, rest) = word(rest)?;
                (first, ns(second)?, rest)
            }
        };
        let (event, body) = word(rest)?;
        let event = event.strip_suffix(':')?;
        // The third flag says what was interrupted. A softirq may be the task's own work, such as
        // sending to a socket of this machine.
        let interrupt = flags.as_bytes().get(2).is_some_and(|f| b"hHzZ".contains(f));
        Some(Head {
            cpu: cpu as u16,
            at: time,
            by: runs(&line[..opens]).filter(|&task| task > 0 && !interrupt),
            event: event.strip_prefix("sched:").unwrap_or(event),
            body: body.trim_start(),
        })
    }
}

/// The task of `bash-12`, `bash 12`, `bash 12/12` or `bash-12 (12)`.
fn runs(text: &str) -> Option<u32> {
    let text = text.trim_end();
    let text = match text.strip_suffix(')') {
        Some(_) => text.rsplit_once('(')?.0.trim_end(),
        None => text,
    };
    let start = text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    digits(&text[start..])
}

fn word(text: &str) -> Option<(&str, &str)> {
    text.trim_start().split_once(' ')
}

fn digits(text: &str) -> Option<u32> {
    let all = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    all.then(|| text.parse().ok())?
}

/// The number that begins behind `key`.
fn after(text: &str, key: &str) -> Option<u32> {
    let (_, rest) = text.rsplit_once(key)?;
    digits(rest.split(' ').next()?)
}

/// ns of `12.000345:`, with up to nine decimals.
fn ns(text: &str) -> Option<u64> {
    let (s, part) = text.strip_suffix(':')?.split_once('.')?;
    let scale = 9u32.checked_sub(u32::try_from(part.len()).ok()?)?;
    let part = u64::from(digits(part)?) * 10u64.pow(scale);
    u64::from(digits(s)?)
        .checked_mul(1_000_000_000)?
        .checked_add(part)
}

/// Name, number and priority of `prev_comm=NAME prev_pid=12 prev_prio=120`.
fn named<'a>(text: &'a str, of: &str) -> Option<(&'a str, u32, i32)> {
    let (rest, prio) = text.rsplit_once(&format!(" {of}prio="))?;
    let (name, task) = rest.rsplit_once(&format!(" {of}pid="))?;
    let name = name.strip_prefix(&format!("{of}comm="))?;
    Some((name, digits(task)?, prio.split(' ').next()?.parse().ok()?))
}

/// The same of `NAME:12 [120]`, as the plugins of libtraceevent print it.
fn short(text: &str) -> Option<(&str, u32, i32)> {
    let (rest, prio) = text.strip_suffix(']')?.rsplit_once(" [")?;
    let (name, task) = rest.rsplit_once(':')?;
    Some((name, digits(task)?, prio.parse().ok()?))
}

/// `comm=NAME pid=12 child_comm=NAME child_pid=13`.
fn fork(body: &str) -> Option<What> {
    let child = after(body, " child_pid=")?;
    let (parent, _) = body.rsplit_once(" child_comm=")?;
    Some(What::Fork {
        parent: after(parent, " pid=")?,
        child,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Text> {
        parse(text.as_bytes())
    }

    const SWITCH: Event = Event {
        at: 1_000_002_000,
        cpu: 1,
        what: What::Switch {
            prev: 12,
            stops: Stops::Sleeps,
            next: 0,
        },
    };

    #[test]
    fn all_forms_of_a_switch() {
        let body = "prev_comm=a b prev_pid=12 prev_prio=120 prev_state=S ==> \
                    next_comm=swapper/1 next_pid=0 next_prio=120";
        for line in [
            format!("    a b-12      [001] d..2.     1.000002: sched_switch: {body}"),
            format!("    a b-12 (   12) [001] d..2     1.000002: sched_switch: {body}"),
            format!("a b    12/12    [001]     1.000002000:       sched:sched_switch: {body}"),
            "a b 12 [001] 1.000002: sched_switch: a b:12 [120] S ==> swapper/1:0 [120]".to_string(),
        ] {
            let text = read(&line).unwrap();
            assert_eq!(text.events, [SWITCH], "{line}");
            assert_eq!((&text.names[&12][..], text.prios[&12]), ("a b", 120));
        }
    }

    #[test]
    fn who_wakes() {
        let by = |head: &str, event: &str| {
            let line = format!("{head} 1.5: {event}: comm=ls pid=34 prio=120 target_cpu=000\n");
            read(&line).unwrap().events[0].what
        };
        let waking = |by| What::Waking { task: 34, by };
        assert_eq!(by("bash-12 [001] d..2.", "sched_waking"), waking(Some(12)));
        assert_eq!(by("bash-12 [001] d.s2.", "sched_waking"), waking(Some(12)));
        assert_eq!(by("bash-12 [001] d.h2.", "sched_waking"), waking(None));
        assert_eq!(by("<idle>-0 [001] dNs2.", "sched_waking"), waking(None));
        assert_eq!(
            by("bash 7/12 [001]", "sched:sched_waking"),
            waking(Some(12))
        );
        let woken = What::Woken {
            task: 34,
            by: Some(12),
        };
        assert_eq!(by("bash 12 [001]", "sched:sched_wakeup"), woken);
        let short = "a:34 12 [001] 1.5: sched:sched_wakeup: ls:34 [120] success=1 CPU:003";
        let woken = What::Woken {
            task: 34,
            by: Some(12),
        };
        assert_eq!(read(short).unwrap().events[0].what, woken);
    }

    #[test]
    fn forks_execs_states_and_what_is_skipped() {
        let text = "# tracer: nop\n#\n# scheduler: roost 1.0\n# cpus of 34: 0-1,5\n\
            sh-12 [000] ..... 1.1: sched_process_fork: comm=sh pid=12 child_comm=sh child_pid=34\n\
            sh-34 [000] ..... 1.2: sched_process_exec: filename=/bin/ls pid=34 old_pid=34\n\
            sh-34 [000] ..... 1.25: sched_stat_runtime: comm=sh pid=34 runtime=1 [ns]\n\n\
            ls-34 [000] d.... 1.3: sched_switch: prev_comm=ls prev_pid=34 prev_prio=120 prev_state=R+ ==> next_comm=x next_pid=5 next_prio=139\n\
            ls-34 [000] d.... 1.29: sched_switch: prev_comm=ls prev_pid=34 prev_prio=120 prev_state=Z ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
        let text = read(text).unwrap();
        let what: Vec<What> = text.events.iter().map(|e| e.what).collect();
        let fork = What::Fork {
            parent: 12,
            child: 34,
        };
        let switch = |stops, next| What::Switch {
            prev: 34,
            stops,
            next,
        };
        let end = switch(Stops::Ends, 0);
        let exec = What::Exec { task: 34 };
        // By time, whatever the order of the lines.
        assert_eq!(what, [fork, exec, end, switch(Stops::Runnable, 5)]);
        assert_eq!(text.scheduler.as_deref(), Some("roost 1.0"));
        assert_eq!((&text.cpus[&34][..], text.prios[&5]), (&[0, 1, 5][..], 139));
    }

    #[test]
    fn what_is_not_ftrace_is_told_with_its_line() {
        let good = "a-1 [000] ..... 1.1: sched_waking: comm=b pid=2 prio=120 target_cpu=000\n";
        for (line, told) in [
            ("hello", "\"hello\" where an event was expected"),
            (
                "a-1 [000] ..... 1.1: sched_waking: pid",
                "sched_waking: \"pid\" is not what",
            ),
            (
                "a-1 [000] ..... 1.1: sched_switch: x ==> y",
                "sched_switch: ",
            ),
            (
                "a-1 [1024] ..... 1.1: sched_waking: x",
                "where an event was expected",
            ),
            (
                "a-1 [000] 99999999999999999999.1: x: y",
                "where an event was expected",
            ),
            ("CPU:1 [LOST 12 EVENTS]", "events were lost here"),
            ("# cpus of x: 0", "not a number"),
            ("# cpus of 1: 0-z", "not a number"),
        ] {
            let error = read(&format!("{good}{line}\n{good}")).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.starts_with("line 2: "), "{error}");
            assert!(error.contains(told), "{error}");
        }
        let long = "x".repeat(5000);
        let error = read(&long).unwrap_err().to_string();
        assert!(error.contains("longer than 4096 bytes"), "{error}");
    }
}
