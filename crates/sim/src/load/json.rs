// SPDX-License-Identifier: GPL-2.0-only
//! JSON as rt-app's parser (json-c) takes it: members keep their order and may repeat; comments and
//! trailing commas are allowed.

use anyhow::{Context, Result};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// Errors name line and column.
pub fn parse(text: &str) -> Result<Node> {
    serde_json::from_str(&strict(text)).context("this is not JSON")
}

/// Replaces comments and trailing commas by spaces, so that everything else keeps its place.
fn strict(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let (mut at, mut comma) = (0, None);
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'"', ..] => string_end(&bytes, at),
            [b'/', b'/', ..] => blank(&mut bytes, at, b"\n", 0),
            [b'/', b'*', ..] => blank(&mut bytes, at, b"*/", 2),
            _ => at + 1,
        };
        match bytes[at] {
            b',' => comma = Some(at),
            b']' | b'}' => comma.take().into_iter().for_each(|c| bytes[c] = b' '),
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => comma = None,
        }
        at = end;
    }
    String::from_utf8(bytes).expect("whole characters are replaced")
}

/// The end of the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += 1 + usize::from(bytes[end] == b'\\');
    }
    (end + 1).min(bytes.len())
}

/// Blanks from `at` to `until`, and `and` bytes more. Keeps line breaks. Returns the end.
fn blank(bytes: &mut [u8], at: usize, until: &[u8], and: usize) -> usize {
    let inside = &bytes[at + 2..];
    let found = inside.windows(until.len()).position(|w| w == until);
    let end = found.map_or(bytes.len(), |n| at + 2 + n + and);
    for byte in bytes[at..end].iter_mut().filter(|b| **b != b'\n') {
        *byte = b' ';
    }
    end
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Node, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        let fits = i64::try_from(value).map(Node::Int);
        fits.map_err(|_| E::custom(format!("{value} is too large")))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = from.next_element()? {
            list.push(node);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = from.next_entry()? {
            members.push(member);
        }
        Ok(Node::Object(members))
    }
}
