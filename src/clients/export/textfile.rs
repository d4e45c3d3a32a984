// SPDX-License-Identifier: GPL-2.0-only
//! A file for the textfile collector of Prometheus' node_exporter. The collector reads files that
//! end in .prom at any time, so the file is replaced atomically.

use crate::util::whole_file;
use anyhow::{Result, anyhow, bail};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// node_exporter runs as another user.
const MODE: u32 = 0o644;

/// Removed on drop: metrics of an exporter that has ended would look current.
pub struct TextFile {
    path: PathBuf,
    written: bool,
    keep: bool,
}

impl TextFile {
    /// `keep`: do not remove the file on drop, because the exporter will be called again.
    pub fn new(path: &Path, keep: bool) -> Result<TextFile> {
        if path.extension().is_none_or(|e| e != "prom") || path.file_stem().is_none() {
            bail!(
                "--textfile {}: node_exporter reads only names that end in .prom: give such a name",
                path.display()
            );
        }
        Ok(TextFile {
            path: path.to_path_buf(),
            written: false,
            keep,
        })
    }

    /// Fails if the path cannot be written, and waiting does not help. Does not change an existing
    /// file.
    pub fn probe(&self) -> Result<()> {
        self.with_advice(whole_file::probe(&self.path))
    }

    pub fn write(&mut self, text: &str) -> Result<()> {
        let mode = Permissions::from_mode(MODE);
        self.with_advice(whole_file::replace(&self.path, text, |file| {
            file.set_permissions(mode)
        }))?;
        self.written = true;
        Ok(())
    }

    fn with_advice(&self, result: std::io::Result<()>) -> Result<()> {
        result.map_err(|e| {
            anyhow!(
                "cannot write {}: {e}: give --textfile a path in a folder that you may write to",
                self.path.display()
            )
        })
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        if self.written && !self.keep {
            let _ = whole_file::remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::fs::File;

    #[test]
    fn only_names_that_node_exporter_reads() {
        for wrong in ["/x/roost", "/x/roost.txt", "/x/.prom", ""] {
            let Err(e) = TextFile::new(Path::new(wrong), false) else {
                panic!("{wrong} was taken")
            };
            assert!(e.to_string().contains("end in .prom"), "{e}");
        }
    }

    #[test]
    fn it_is_complete_at_any_time_and_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("roost.prom");
        let mut file = TextFile::new(&path, false).unwrap();
        file.write("a 1\n").unwrap();
        let first = File::open(&path).unwrap();
        file.write("b 2\n").unwrap();
        // A reader that opened the first file reads all of it, and nothing else.
        assert_eq!(std::io::read_to_string(first).unwrap(), "a 1\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "b 2\n");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            MODE
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        drop(file);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_failed_write_is_reported_and_cleaned_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("roost.prom");
        // A folder cannot be replaced by a file.
        fs::create_dir(&path).unwrap();
        let mut file = TextFile::new(&path, false).unwrap();
        for error in [file.probe(), file.write("a 1\n")].map(Result::unwrap_err) {
            let error = error.to_string();
            assert!(
                error.starts_with("cannot write /") && error.contains("--textfile"),
                "{error}"
            );
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
