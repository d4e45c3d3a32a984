// SPDX-License-Identifier: GPL-2.0-only
//! What a command prints: its end. It goes into a pipe that is so large that nobody has to read it
//! while the command runs, except now and then: a command waits that prints more between two looks
//! than the pipe holds. A file in memory would not do: a command that opens its output again
//! (`>/dev/stdout`, `tee /dev/stderr`) would cut it off.

use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags, fchmod, fcntl_setfl};
use rustix::pipe::fcntl_setpipe_size;
use std::fs::File;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, pipe};
use std::os::fd::OwnedFd;

/// Bytes that are kept, from the end.
pub const KEPT: usize = 1 << 20;
/// Sizes of the pipe, in bytes. Only root may have the first one.
const SIZES: [usize; 2] = [16 << 20, 1 << 20];
/// Every user may open it again: the command may run as another one.
const FOR_ALL: u32 = 0o622;

pub struct Output {
    from: PipeReader,
    to: PipeWriter,
    /// Bytes that the pipe holds.
    size: usize,
    /// Not less than `KEPT` of what was read, if there was so much.
    read: Vec<u8>,
}

impl Output {
    pub fn new() -> Result<Output> {
        let (from, to) = pipe().context("no pipe for the output of the command")?;
        fchmod(&to, Mode::from_raw_mode(FOR_ALL)).context("cannot open the pipe for all users")?;
        fcntl_setfl(&from, OFlags::NONBLOCK).context("cannot read a pipe without waiting")?;
        let set = |size| fcntl_setpipe_size(&from, size).ok();
        let size = SIZES.into_iter().find_map(set);
        Ok(Output {
            // 64 KiB where neither is allowed.
            size: size.unwrap_or(1 << 16),
            read: Vec::new(),
            from,
            to,
        })
    }

    /// For the command.
    pub fn door(&self) -> Result<File> {
        let door = self.to.try_clone().context("no descriptor is left")?;
        Ok(OwnedFd::from(door).into())
    }

    /// Empties the pipe. True: it was so full that it should be emptied again soon.
    pub fn take(&mut self) -> Result<bool> {
        let mut taken = 0;
        loop {
            let begin = self.read.len();
            let mut part = self.from.by_ref().take(KEPT as u64);
            match part.read_to_end(&mut self.read) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => (),
                read => {
                    read.context("cannot read what the command printed")?;
                }
            }
            let more = self.read.len() - begin;
            taken += more;
            if self.read.len() > 2 * KEPT {
                self.read.drain(..self.read.len() - KEPT);
            }
            if more < KEPT || taken >= 4 * self.size {
                return Ok(taken > self.size / 4);
            }
        }
    }

    /// The end.
    pub fn tail(&mut self) -> Result<String> {
        self.take()?;
        let end = &self.read[self.read.len().saturating_sub(KEPT)..];
        Ok(String::from_utf8_lossy(end).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_printed_without_end_takes_little_memory() {
        let mut output = Output::new().unwrap();
        let mut door = output.door().unwrap();
        for part in 0..40 {
            door.write_all(&[b'a' + part % 26; 1 << 19]).unwrap();
            // As full as it gets, now and then.
            if part % 2 == 1 || output.size < 2 << 19 {
                output.take().unwrap();
            }
            assert!(
                output.read.capacity() < 8 * KEPT,
                "{}",
                output.read.capacity()
            );
        }
        let end = output.tail().unwrap();
        assert_eq!(end.len(), KEPT);
        assert!(end.starts_with('m') && end.ends_with('n'), "{}", &end[..1]);
    }
}
