// SPDX-License-Identifier: GPL-2.0-only
//! The events of a text: what precedes each body, and the body. Anybody may give a thread a name
//! with a newline, so an event may have several lines.
//!
//! Method: a name has at most 15 bytes, too few for what precedes a body. So each line that begins
//! like an event is one. Lines between two of these belong to the body before them, or to the name
//! before the next one, which all programs print 16 bytes wide. The body decides: the kernel ends
//! it in a way for which a name is too short as well.

use crate::bpf::intf::MAX_CPUS;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, Read};

/// A path of 4096 bytes fits, which sched_process_exec has.
const LONGEST: u64 = 8192;
/// Three names and the path of a program may have as many newlines.
const MOST_LINES: usize = 64;
/// 2 million events have half of it.
const MOST_BYTES: u64 = 1 << 30;
/// How wide names are printed, bytes.
const NAME_WIDTH: usize = 16;
/// What the data of other programs begin with, and how their text is made.
const BINARY: [(&[u8], &str); 2] = [
    (
        b"PERFILE2",
        "the data of perf: print it with 'perf script --show-lost-events \
         -F comm,pid,tid,cpu,time,event,trace --ns -i DATA >TEXT', and replay the text",
    ),
    (
        b"\x17\x08\x44tracing",
        "the data of trace-cmd: print it with 'trace-cmd report -i DATA >TEXT', and replay the text",
    ),
];

/// What reads the parts of a text.
pub trait Reader {
    /// A line before the first event that begins with '#'.
    fn comment(&mut self, line: &str) -> Result<()>;
    /// False: the body is not what the kernel prints for this event.
    fn event(&mut self, head: &Head, body: &str) -> bool;
    fn is_full(&self) -> Result<()>;
}

/// What precedes the body of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub cpu: u16,
    /// ns
    pub at: u64,
    /// The task that ran, unless an interrupt came between.
    pub by: Option<u32>,
    pub event: String,
}

/// An event whose lines are read.
struct Open {
    number: u64,
    head: Head,
    body: String,
}

struct Lines<'a, R> {
    reader: &'a mut R,
    open: Option<Open>,
    /// Lines since then that do not begin like an event, with the number of the first.
    more: Vec<Vec<u8>>,
    since: u64,
}

/// Reads the text. Errors name the line.
pub fn read(mut from: impl BufRead, reader: &mut impl Reader) -> Result<()> {
    let mut lines = Lines {
        reader,
        open: None,
        more: Vec::new(),
        since: 0,
    };
    let mut line = Vec::new();
    let mut bytes = 0;
    for number in 1.. {
        line.clear();
        let length = from.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        bytes += length as u64;
        for (begin, told) in BINARY {
            ensure!(number > 1 || !line.starts_with(begin), "it is {told}");
        }
        ensure!(
            (length as u64) < LONGEST,
            "line {number} is longer than {LONGEST} bytes: the text of ftrace was expected"
        );
        ensure!(
            bytes <= MOST_BYTES,
            "line {number}: the text is longer than {} MB: record for a shorter time",
            MOST_BYTES >> 20
        );
        lines.line(number, line.strip_suffix(b"\n").unwrap_or(&line))?;
        let full = lines.reader.is_full();
        full.with_context(|| format!("line {number}"))?;
    }
    lines.ends_before(None)
}

impl<R: Reader> Lines<'_, R> {
    fn line(&mut self, number: u64, line: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(line);
        if let Some((head, brackets, body)) = Head::parse(&text) {
            self.ends_before(name_ends(line, brackets))?;
            self.open = Some(Open {
                number,
                head,
                body: body.to_string(),
            });
            return Ok(());
        }
        ensure!(
            !tells_of_losses(&text),
            "line {number}: events were lost here, so what the tasks did is not known; \
             record with larger buffers"
        );
        let before_all = self.open.is_none() && self.more.is_empty();
        if announces_buffer(&text) || before_all && is_preface(&text) {
            return Ok(());
        }
        if before_all && text.starts_with('#') {
            let read = self.reader.comment(text.trim_end());
            return read.with_context(|| format!("line {number}"));
        }
        if self.more.is_empty() {
            self.since = number;
        }
        self.more.push(line.to_vec());
        let bytes: usize = self.more.iter().map(Vec::len).sum();
        match self.more.len() <= MOST_LINES && bytes as u64 <= LONGEST {
            true => Ok(()),
            false => self.strange(),
        }
    }

    /// The lines so far are complete. `name`: bytes of the name on the next line; None: there is no
    /// next line, or no name.
    fn ends_before(&mut self, name: Option<usize>) -> Result<()> {
        let is_name = |lines: &[Vec<u8>]| {
            let blank = lines.iter().all(|line| line.trim_ascii().is_empty());
            let width: usize = lines.iter().map(|line| line.len() + 1).sum();
            blank || name.is_some_and(|name| width + name == NAME_WIDTH)
        };
        let mut fits = self.open.is_none() && is_name(&self.more);
        if let Some(Open { head, body, .. }) = &mut self.open {
            let length = body.len();
            for part in 0..=self.more.len() {
                if part > 0 {
                    body.push('\n');
                    body.push_str(&String::from_utf8_lossy(&self.more[part - 1]));
                }
                fits = is_name(&self.more[part..]) && self.reader.event(head, body.trim_end());
                if fits {
                    break;
                }
            }
            body.truncate(length);
        }
        if !fits {
            return self.strange();
        }
        self.open = None;
        self.more.clear();
        Ok(())
    }

    /// The error of lines that are no event.
    fn strange(&mut self) -> Result<()> {
        if let Some(Open { number, head, body }) = &self.open
            && !self.reader.event(head, body.trim_end())
        {
            let body: String = body.chars().take(120).collect();
            bail!(
                "line {number}: {}: {body:?} is not what the kernel prints for this event",
                head.event
            );
        }
        let first = self.more.first().map(|line| String::from_utf8_lossy(line));
        bail!(
            "line {}: {:?} where an event was expected, such as \
             'bash-12 [001] d..2. 1.000002: sched_waking: comm=ls pid=34 prio=120 target_cpu=000'",
            self.since,
            first
                .unwrap_or_default()
                .chars()
                .take(80)
                .collect::<String>()
        );
    }
}

/// ftrace: 'CPU:1 [LOST 12 EVENTS]'; trace-cmd: 'CPU:1 [12 EVENTS DROPPED]'; perf:
/// 'PERF_RECORD_LOST lost 12'. No name is that long.
fn tells_of_losses(line: &str) -> bool {
    let line = line.trim();
    let of_cpu = line
        .strip_prefix("CPU:")
        .and_then(|rest| rest.split_once(" ["))
        .filter(|(cpu, _)| digits(cpu).is_some());
    let lost = |rest: &str| rest.ends_with(" EVENTS]") || rest.ends_with("EVENTS DROPPED]");
    let of_perf = line.contains("PERF_RECORD_LOST");
    of_cpu.is_some_and(|(_, rest)| rest == "LOST EVENTS]" || lost(rest)) || of_perf
}

/// ftrace, where older events were overwritten.
fn announces_buffer(line: &str) -> bool {
    let cpu = line.strip_prefix("##### CPU ");
    cpu.is_some_and(|rest| rest.trim_end().ends_with(" buffer started ####"))
}

/// Lines that precede the first event: empty ones, and trace-cmd's. A name is padded, so a line of
/// spaces may be the first of one.
fn is_preface(line: &str) -> bool {
    let line = line.trim_end_matches('\r');
    let numbered = |begin: &str| {
        line.strip_prefix(begin)
            .is_some_and(|n| digits(n).is_some())
    };
    let empty = line
        .strip_prefix("CPU ")
        .and_then(|rest| rest.strip_suffix(" is empty"));
    line.is_empty()
        || numbered("version = ")
        || numbered("cpus=")
        || empty.is_some_and(|cpu| digits(cpu).is_some())
}

impl Head {
    /// Also the number of brackets that open before the one of the CPU, and the body. A name may
    /// contain brackets, so the first ones that fit count.
    fn parse(line: &str) -> Option<(Head, usize, &str)> {
        let opens = line.match_indices('[').enumerate();
        let mut heads = opens.filter_map(|(brackets, (at, _))| {
            let (head, body) = Head::at(line, at)?;
            Some((head, brackets, body))
        });
        heads.next()
    }

    /// `NAME-PID [CPU] FLAGS TIME: EVENT: BODY`, or without the flags.
    fn at(line: &str, opens: usize) -> Option<(Head, &str)> {
        let (cpu, rest) = line[opens + 1..].split_once(']')?;
        let cpu = digits(cpu).filter(|&n| n < MAX_CPUS && cpu.len() >= 3)?;
        let (first, rest) = word(rest);
        let (flags, time, rest) = match ns(first) {
            Some(time) => ("", time, rest),
            None => {
                let (second, rest) = word(rest);
                (first, ns(second)?, rest)
            }
        };
        let (event, body) = word(rest);
        let event = event.trim_end().strip_suffix(':')?;
        // The third flag says what was interrupted. A softirq may be the task's own work, such as
        // sending to a socket of this machine.
        let interrupt = flags.as_bytes().get(2).is_some_and(|f| b"hHzZ".contains(f));
        let task = task(&line.as_bytes()[..opens]).map(|(task, _)| task);
        let head = Head {
            cpu: cpu as u16,
            at: time,
            by: task.filter(|&task| task > 0 && !interrupt),
            event: event.strip_prefix("sched:").unwrap_or(event).to_string(),
        };
        Some((head, body.trim_start_matches(' ')))
    }
}

/// The task of `bash-12`, `bash 12`, `bash 12/12` or `bash-12 (12)`, and where its name ends if
/// that begins on an earlier line. perf prints numbers 5 digits wide.
fn task(text: &[u8]) -> Option<(u32, usize)> {
    let text = text.trim_ascii_end();
    let text = match text.strip_suffix(b")") {
        Some(rest) => rest[..rest.iter().rposition(|&b| b == b'(')?].trim_ascii_end(),
        None => text,
    };
    let without = |text: &[u8]| text.trim_ascii_end().len() - trailing_digits(text);
    let begins = without(text);
    let number = digits(std::str::from_utf8(&text[begins..]).ok()?)?;
    let (pid, ends) = match text[..begins].split_last() {
        Some((b'/', before)) => (without(before), before.len()),
        _ => (begins, text.len()),
    };
    let name = match text[..pid].last() {
        Some(b'-') => pid - 1,
        _ => ends.saturating_sub((ends - pid).max(5) + 1),
    };
    Some((number, name))
}

fn trailing_digits(text: &[u8]) -> usize {
    text.iter().rev().take_while(|b| b.is_ascii_digit()).count()
}

/// Bytes of the name before the CPU, of a line that begins within that name.
fn name_ends(line: &[u8], brackets: usize) -> Option<usize> {
    let mut opens = line.iter().enumerate().filter(|(_, b)| **b == b'[');
    let (opens, _) = opens.nth(brackets)?;
    task(&line[..opens]).map(|(_, name)| name)
}

/// The first word, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(' ');
    text.split_once(' ').unwrap_or((text, ""))
}

/// A number without a sign.
pub fn digits(text: &str) -> Option<u32> {
    let all = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    all.then(|| text.parse().ok())?
}

/// ns of `12.000345:`, with six to nine decimals.
fn ns(text: &str) -> Option<u64> {
    let (s, part) = text.strip_suffix(':')?.split_once('.')?;
    if part.len() < 6 {
        return None;
    }
    let scale = 9u32.checked_sub(u32::try_from(part.len()).ok()?)?;
    let part = u64::from(digits(part)?) * 10u64.pow(scale);
    u64::from(digits(s)?)
        .checked_mul(1_000_000_000)?
        .checked_add(part)
}
