// SPDX-License-Identifier: GPL-2.0-only
//! Lines that clients send: some are valid requests, most are not.

use super::served::Socket;
use scx_roost::util::rng::Rng;

/// The longest line that the server accepts (socket.rs).
const LINE_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    Error,
    Right,
    /// A random line, which may be valid.
    Either,
}

const CONTROL: &[&str] = &[
    r#"{"req":"ctl","args":{"op":"show"}}"#,
    r#"{"req":"ctl","args":{"op":"rules"}}"#,
    r#"{"req":"ctl","args":{"op":"audit"}}"#,
    r#"{"req":"ctl","args":{"op":"reset","arm":"default"}}"#,
    r#"{"req":"ctl","args":{"op":"set","arm":"default","change":{"enable":["claim"],"set":{"slice-us":900}}}}"#,
];
const STATISTICS: &[&str] = &[
    r#"{"req":"stats","args":{"target":"top"}}"#,
    r#"{"req":"stats","args":{"target":"totals"}}"#,
    r#"{"req":"stats"}"#,
    r#"{"req":"stats_meta"}"#,
];
const WRONG: &[&str] = &[
    "",
    "null",
    "{}",
    "[1,2",
    r#"{"req":"stats","args":{"target":"nothing"}}"#,
    r#"{"req":"ctl","args":{"op":"arm_del","arm":"default"}}"#,
    r#"{"req":"ctl","args":{"op":"rule_add","subject":{"pid":4294967295},"arm":"default"}}"#,
    r#"{"req":"ctl","args":{"op":"rule_add","subject":{"cgroup":"/nowhere"},"arm":"default"}}"#,
    r#"{"req":"ctl","args":{"op":"set","arm":"default","change":{"set":{"slice-us":1e308}}}}"#,
    r#"{"req":"ctl","args":{"op":"set","arm":"default","change":{"set":{"slice-us":99999999999999999999}}}}"#,
    r#"{"req":"ctl","args":{"op":"set","arm":"\u0000","change":{"preset":"mainline"}}}"#,
];

pub fn right(rng: &mut Rng, socket: Socket) -> &'static str {
    one(rng, requests(socket))
}

fn requests(socket: Socket) -> &'static [&'static str] {
    match socket {
        Socket::Control => CONTROL,
        Socket::Statistics => STATISTICS,
    }
}

/// Makes a line, with its newline.
pub fn message(rng: &mut Rng, socket: Socket, line: &mut Vec<u8>) -> Expected {
    line.clear();
    let expected = match rng.below(16) {
        0 => chance(rng, line),
        1 => deep(rng, line),
        2 => number(rng, socket, line),
        3..=6 => {
            line.extend(one(rng, WRONG).bytes());
            Expected::Error
        }
        7 => {
            line.extend(right(rng, socket).bytes());
            Expected::Right
        }
        8 => half(rng, socket, line),
        _ => broken(rng, socket, line),
    };
    // Newlines inside would end the line early.
    line.iter_mut()
        .filter(|b| **b == b'\n')
        .for_each(|b| *b = b' ');
    line.push(b'\n');
    expected
}

fn one(rng: &mut Rng, of: &[&'static str]) -> &'static str {
    of[rng.below(of.len() as u64) as usize]
}

fn chance(rng: &mut Rng, line: &mut Vec<u8>) -> Expected {
    let most = [8, 64, LINE_MAX as u64 - 1][rng.below(3) as usize];
    let length = rng.below(most);
    line.extend((0..length).map(|_| rng.below(256) as u8));
    Expected::Error
}

fn deep(rng: &mut Rng, line: &mut Vec<u8>) -> Expected {
    let open = ["[", "{\"a\":", "{\"req\":\"ctl\",\"args\":"][rng.below(3) as usize];
    let times = LINE_MAX / open.len() - 1;
    line.extend(open.repeat(times).bytes());
    Expected::Error
}

/// A long number in the place of a name or a number.
fn number(rng: &mut Rng, socket: Socket, line: &mut Vec<u8>) -> Expected {
    let digits = "9".repeat(1 + rng.below(3000) as usize);
    let text = match socket {
        Socket::Control => format!(r#"{{"req":"ctl","args":{{"op":"show","arm":{digits}}}}}"#),
        Socket::Statistics => format!(r#"{{"req":"stats","args":{{"target":{digits}}}}}"#),
    };
    line.extend(text.bytes());
    Expected::Error
}

fn half(rng: &mut Rng, socket: Socket, line: &mut Vec<u8>) -> Expected {
    let whole = right(rng, socket);
    line.extend(whole.bytes().take(rng.below(whole.len() as u64) as usize));
    Expected::Error
}

/// A valid request with some bytes changed.
fn broken(rng: &mut Rng, socket: Socket, line: &mut Vec<u8>) -> Expected {
    line.extend(right(rng, socket).bytes());
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(line.len() as u64) as usize;
        line[at] = match rng.below(3) {
            0 => rng.below(256) as u8,
            1 => b"{}[]\",:0-e\\"[rng.below(11) as usize],
            _ => line[rng.below(line.len() as u64) as usize],
        };
    }
    Expected::Either
}
