// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost completions` and `man`: what a package installs beside the program, made from the
//! options themselves.

use super::args::Cli;
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// The completions for a shell.
pub fn completions(shell: Shell) -> Result<String> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "scx_roost", &mut text);
    String::from_utf8(text).context("completions are text")
}

/// Writes a manual page for the program and for each command into the folder.
pub fn man(folder: &Path) -> Result<()> {
    let failed = || format!("cannot write manual pages to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_for_each_command_and_options_in_completions() {
        let folder = tempfile::tempdir().unwrap();
        man(folder.path()).unwrap();
        let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(page("scx_roost.1").contains("stats\\-group"));
        assert!(page("scx_roost-ctl-set.1").contains("disable"));
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = completions(shell).unwrap();
            assert!(
                text.contains("stats-group") && text.contains("presets"),
                "{shell}"
            );
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told() {
        let error = man(Path::new("/dev/null/x")).unwrap_err().to_string();
        assert_eq!(error, "cannot write manual pages to /dev/null/x");
    }
}
