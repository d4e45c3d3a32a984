// SPDX-License-Identifier: GPL-2.0-only
//! What tasks share: channels, locks and barriers.

use super::{Object, Parser};
use crate::load::Channel;
use crate::load::expr::Unit;
use crate::load::text::{Line, until};
use anyhow::{Context, Result, bail, ensure};

/// The most messages of a channel without `capacity`.
const CAPACITY: u64 = 1 << 16;

impl<'a> Parser<'a> {
    pub(super) fn object(&mut self, line: &Line<'a>) -> Result<()> {
        let kind = line.words[0];
        if !matches!(kind, "pipe" | "socket" | "lock" | "barrier") {
            return Ok(());
        }
        let name = *line.words.get(1).context("a name was expected")?;
        let rest = &line.words[2..];
        let object = match kind {
            "barrier" => self.barrier(rest)?,
            _ => {
                let (count, rest) = match rest {
                    ["[", ..] => {
                        let (count, rest) = until(&rest[1..], &["]"]);
                        (
                            self.several(count)?,
                            rest.get(1..).context("] was expected")?,
                        )
                    }
                    _ => (1, rest),
                };
                let count = count as usize;
                match kind {
                    "lock" => {
                        self.locks += count;
                        Object::Lock(self.locks - count, count)
                    }
                    _ => self.channel(rest, count)?,
                }
            }
        };
        ensure!(
            self.objects.insert(name, object).is_none(),
            "{name} is there already"
        );
        Ok(())
    }

    fn channel(&mut self, rest: &[&str], count: usize) -> Result<Object> {
        let channel = self.queue(rest)?;
        self.channels.extend(vec![channel; count]);
        Ok(Object::Channel(self.channels.len() - count, count))
    }

    fn queue(&self, rest: &[&str]) -> Result<Channel> {
        let (rest, futex) = match rest {
            [rest @ .., "futex"] => (rest, true),
            _ => (rest, false),
        };
        let capacity = match rest {
            [] => CAPACITY,
            ["capacity", value @ ..] => self.known(value, Unit::None)?,
            _ => bail!(
                "{:?} where 'capacity N' or 'futex' was expected",
                rest.join(" ")
            ),
        };
        ensure!(capacity > 0, "capacity {capacity} is not above 0");
        Ok(Channel {
            capacity,
            sync: !futex,
        })
    }

    fn barrier(&mut self, rest: &[&str]) -> Result<Object> {
        self.barriers.push(self.several(rest)?);
        Ok(Object::Barrier(self.barriers.len() - 1))
    }
}
