// SPDX-License-Identifier: GPL-2.0-only
//! The text of ftrace, as the kernel's `trace` file, perf script and trace-cmd print it. Only the
//! events of the scheduler count that say what tasks did; other events are skipped.

use super::lines::{self, Head, Reader, digits};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::io::BufRead;

/// The most events of a recording. A replay of that many takes half a gigabyte, and seconds.
pub const MOST_EVENTS: usize = 2_000_000;
/// `scx_roost record` writes these words at the start of a line, then what it knows.
const SCHEDULER: &str = "# scheduler: ";
const AFFINITY: &str = "# cpus of ";
/// Characters of a task's name at most (kernel: TASK_COMM_LEN - 1).
const NAME_MAX: usize = 15;

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
pub fn parse(from: impl BufRead) -> Result<Text> {
    let mut text = Text::default();
    lines::read(from, &mut text)?;
    // Texts of several buffers may overlap by a little.
    text.events.sort_by_key(|event| event.at);
    Ok(text)
}

impl Reader for Text {
    fn comment(&mut self, line: &str) -> Result<()> {
        if let Some(name) = line.strip_prefix(SCHEDULER) {
            self.scheduler = Some(printable(name).chars().take(100).collect());
        } else if let Some((task, cpus)) = line
            .strip_prefix(AFFINITY)
            .and_then(|rest| rest.split_once(": "))
        {
            let cpus = crate::machine::parse_cpulist(cpus)?;
            let task = digits(task).with_context(|| format!("{task:?} is not a number"))?;
            self.cpus.insert(task, cpus);
        }
        Ok(())
    }

    fn event(&mut self, head: &Head, body: &str) -> bool {
        let by = head.by;
        let what = match head.event.as_str() {
            "sched_switch" => self.switch(body),
            "sched_waking" => woken(body).map(|task| What::Waking { task, by }),
            "sched_wakeup" | "sched_wakeup_new" => woken(body).map(|task| What::Woken { task, by }),
            "sched_process_fork" => fork(body),
            "sched_process_exec" => exec(body),
            _ => return true,
        };
        let (at, cpu) = (head.at, head.cpu);
        self.events.extend(what.map(|what| Event { at, cpu, what }));
        what.is_some()
    }

    fn is_full(&self) -> Result<()> {
        ensure!(
            self.events.len() <= MOST_EVENTS,
            "these are more than {MOST_EVENTS} events; record for a shorter time"
        );
        Ok(())
    }
}

impl Text {
    fn switch(&mut self, body: &str) -> Option<What> {
        let (prev, state, next) = switched(body)?;
        let stops = match state.as_bytes().first()? {
            b'R' => Stops::Runnable,
            b'X' | b'Z' | b'x' => Stops::Ends,
            _ => Stops::Sleeps,
        };
        self.knows(prev);
        self.knows(next);
        Some(What::Switch {
            prev: prev.number,
            stops,
            next: next.number,
        })
    }

    fn knows(&mut self, task: Task) {
        self.prios.insert(task.number, task.prio);
        let known = self.names.get(&task.number);
        if known.is_none_or(|known| known != task.name) {
            self.names.insert(task.number, printable(task.name));
        }
    }
}

/// What control characters do in terminals and pictures is not wanted there.
fn printable(name: &str) -> String {
    let stays = |c: &char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let shown = |c: char| Some(c).filter(stays).unwrap_or(char::REPLACEMENT_CHARACTER);
    name.chars().map(shown).collect()
}

#[derive(Clone, Copy)]
struct Task<'a> {
    name: &'a str,
    number: u32,
    prio: i32,
}

/// The tasks of a switch, and the state of the first.
type Switched<'a> = (Task<'a>, &'a str, Task<'a>);

/// A name may contain an arrow, so the last one counts that both sides fit.
fn switched(body: &str) -> Option<Switched<'_>> {
    let arrows = body.rmatch_indices(" ==> ");
    let sides = arrows.map(|(at, arrow)| (&body[..at], &body[at + arrow.len()..]));
    let word = |(_, state, _): &Switched| !state.contains(char::is_whitespace);
    let mut long = sides.clone().filter_map(|(prev, next)| {
        let (prev, state) = prev.rsplit_once(" prev_state=")?;
        Some((named(prev, "prev_")?, state, named(next, "next_")?))
    });
    let mut short = sides.filter_map(|(prev, next)| {
        let (prev, state) = prev.rsplit_once(' ')?;
        let (prev, next) = (short(prev)?, short(next)?);
        let fit = |task: Task| task.name.chars().count() <= NAME_MAX;
        (fit(prev) && fit(next)).then_some((prev, state, next))
    });
    long.find(word).or_else(|| short.find(word))
}

/// `prev_comm=NAME prev_pid=12 prev_prio=120`.
fn named<'a>(text: &'a str, of: &str) -> Option<Task<'a>> {
    let (rest, prio) = text.rsplit_once(&format!(" {of}prio="))?;
    let (name, task) = rest.rsplit_once(&format!(" {of}pid="))?;
    Some(Task {
        name: name.strip_prefix(&format!("{of}comm="))?,
        number: digits(task)?,
        prio: prio.split(' ').next()?.parse().ok()?,
    })
}

/// The same as `NAME:12 [120]`, as the plugins of libtraceevent print it.
fn short(text: &str) -> Option<Task<'_>> {
    let (rest, prio) = text.strip_suffix(']')?.rsplit_once(" [")?;
    let (name, task) = rest.rsplit_once(':')?;
    Some(Task {
        name,
        number: digits(task)?,
        prio: prio.parse().ok()?,
    })
}

/// The task of `comm=NAME pid=12 prio=120 target_cpu=000` or `NAME:12 [120] CPU:000`. Both may have
/// `success=1` before the CPU, which plugins miss where there is none.
fn woken(body: &str) -> Option<u32> {
    let ends = [" success=1", "<CANT FIND FIELD success>"];
    let without = |text: &str| {
        let end = ends.iter().find(|end| text.ends_with(**end));
        text.len() - end.map_or(0, |end| end.len())
    };
    if let Some((rest, cpu)) = body.rsplit_once(" target_cpu=") {
        digits(cpu)?;
        let (rest, prio) = rest[..without(rest)].rsplit_once(" prio=")?;
        prio.parse::<i32>().ok()?;
        return last(rest.strip_prefix("comm=")?, " pid=");
    }
    let (rest, cpu) = body.rsplit_once(" CPU:")?;
    digits(cpu)?;
    short(&rest[..without(rest)]).map(|task| task.number)
}

/// The number that ends the text, after the last `key`.
fn last(text: &str, key: &str) -> Option<u32> {
    digits(text.rsplit_once(key)?.1)
}

/// `filename=PATH pid=12 old_pid=12`.
fn exec(body: &str) -> Option<What> {
    let (rest, old) = body.rsplit_once(" old_pid=")?;
    digits(old)?;
    let task = last(rest, " pid=")?;
    Some(What::Exec { task })
}

/// `comm=NAME pid=12 child_comm=NAME child_pid=13`. A name may contain one of these words, so the
/// last one counts that fits.
fn fork(body: &str) -> Option<What> {
    let (rest, child) = body.rsplit_once(" child_pid=")?;
    let child = digits(child)?;
    let mut ends = rest.rmatch_indices(" child_comm=");
    let parent = ends.find_map(|(at, _)| last(&rest[..at], " pid="))?;
    Some(What::Fork { parent, child })
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
            let line =
                format!("{head} 1.500000: {event}: comm=ls pid=34 prio=120 target_cpu=000\n");
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
        let short = "a:34 12 [001] 1.500000: sched:sched_wakeup: ls:34 [120] success=1 CPU:003";
        let woken = What::Woken {
            task: 34,
            by: Some(12),
        };
        assert_eq!(read(short).unwrap().events[0].what, woken);
        let old = short.replace(" success=1", "<CANT FIND FIELD success>");
        assert_eq!(read(&old).unwrap().events[0].what, woken);
    }

    #[test]
    fn forks_execs_states_and_what_is_skipped() {
        let text = "# tracer: nop\n#\n# scheduler: roost 1.0\n# cpus of 34: 0-1,5\n\
            sh-12 [000] ..... 1.100000: sched_process_fork: comm=sh pid=12 child_comm=sh child_pid=34\n\
            sh-34 [000] ..... 1.200000: sched_process_exec: filename=/bin/ls pid=34 old_pid=34\n\
            sh-34 [000] ..... 1.250000: sched_stat_runtime: comm=sh pid=34 runtime=1 [ns]\n\n\
            ls-34 [000] d.... 1.300000: sched_switch: prev_comm=ls prev_pid=34 prev_prio=120 prev_state=R+ ==> next_comm=x next_pid=5 next_prio=139\n\
            ls-34 [000] d.... 1.290000: sched_switch: prev_comm=ls prev_pid=34 prev_prio=120 prev_state=Z ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
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

    /// As `trace-cmd report` 3.1 printed it.
    #[test]
    fn trace_cmd_begins_with_its_cpus() {
        let text = "cpus=2\n\
            bash-30107 [000] 32625.982550: sched_process_fork:   comm=bash pid=30107 child_comm=bash child_pid=30150\n\
            bash-30107 [000] 32625.982555: sched_wakeup_new:     bash:30150 [120] CPU:000\n\
            bash-30107 [000] 32625.982565: sched_switch:         bash:30107 [120] S ==> bash:30150 [120]\n";
        let text = read(text).unwrap();
        assert_eq!(text.events.len(), 3);
        assert_eq!(text.events[1].at, 32_625_982_555_000);
    }

    #[test]
    fn what_is_not_ftrace_is_an_error_with_its_line() {
        let good = "a-1 [000] ..... 1.100000: sched_waking: comm=b pid=2 prio=120 target_cpu=000\n";
        for (line, told) in [
            ("hello", "\"hello\" where an event was expected"),
            (
                "a-1 [000] ..... 1.100000: sched_waking: pid",
                "sched_waking: \"pid\" is not what",
            ),
            (
                "a-1 [000] ..... 1.100000: sched_switch: x ==> y",
                "sched_switch: ",
            ),
            (
                "a-1 [1024] ..... 1.100000: sched_waking: x",
                "where an event was expected",
            ),
            (
                "a-1 [000] 99999999999999999999.100000: x: y",
                "where an event was expected",
            ),
            ("CPU:1 [LOST 12 EVENTS]", "events were lost here"),
            (
                "# cpus of 1: 0-3",
                "\"# cpus of 1: 0-3\" where an event was expected",
            ),
        ] {
            let error = read(&format!("{good}{line}\n{good}")).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.starts_with("line 2: "), "{error}");
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn another_kind_of_text_is_named() {
        for (text, told) in [
            (
                "cpus=2\nCPU 1 is empty\nCPU:0 [EVENTS DROPPED]\n",
                "line 3: events were lost",
            ),
            ("CPU:0 [12 EVENTS DROPPED]", "events were lost"),
            (
                "perf  0 [000] 0.000000: PERF_RECORD_LOST lost 12",
                "events were lost",
            ),
            ("# cpus of x: 0", "line 1: \"x\" is not a number"),
            ("# cpus of 1: 0-z", "line 1: 'z' is not a number"),
            ("PERFILE2h\0\0", "it is the data of perf: print it with"),
            ("\u{17}\u{8}Dtracing6\0", "it is the data of trace-cmd"),
            (&"x\n".repeat(99), "line 1: \"x\" where"),
            (&"x".repeat(9000), "line 1 is longer than 8192 bytes"),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(told), "{error}");
        }
    }
}
