// SPDX-License-Identifier: GPL-2.0-only
//! What a command prints, in memory: its end. So no process has to read it meanwhile, and a command
//! that prints without end takes no more memory than it fills between two looks.

use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Bytes that are kept, from the end.
pub const KEPT: u64 = 1 << 20;

pub struct Output(File);

impl Output {
    pub fn new(name: &std::ffi::CStr) -> Result<Output> {
        let made = memfd_create(name, MemfdFlags::CLOEXEC);
        let made = made.context("no memory for the output of the command")?;
        Ok(Output(made.into()))
    }

    /// For the command.
    pub fn door(&self) -> Result<File> {
        self.0.try_clone().context("no descriptor is left")
    }

    /// Frees the memory of all but the end.
    pub fn forget(&self) -> Result<()> {
        let old = self.0.metadata()?.len().saturating_sub(KEPT);
        if old > KEPT {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.0, hole, 0, old).context("cannot free what the command printed")?;
        }
        Ok(())
    }

    /// The end.
    pub fn tail(&self) -> Result<String> {
        let mut bytes = Vec::new();
        let mut file = &self.0;
        let begin = file.metadata()?.len().saturating_sub(KEPT);
        file.seek(SeekFrom::Start(begin))?;
        file.take(KEPT).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn what_is_printed_without_end_takes_little_memory() {
        let output = Output::new(c"output").unwrap();
        let mut door = output.door().unwrap();
        for part in 0..40 {
            door.write_all(&[b'a' + part % 26; 1 << 19]).unwrap();
            output.forget().unwrap();
        }
        let file = output.0.metadata().unwrap();
        assert_eq!(file.len(), 20 << 20);
        assert!(file.blocks() * 512 < 3 << 20, "{}", file.blocks());
        let end = output.tail().unwrap();
        assert_eq!(end.len() as u64, KEPT);
        assert!(end.starts_with('m') && end.ends_with('n'), "{}", &end[..1]);
    }
}
