// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost completions` and `man`: what a package installs beside the program, made from the
//! options themselves.

use super::args::Cli;
use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::path::Path;

/// The completions for a shell.
pub fn completions(shell: Shell) -> Result<String> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut for_people(), "scx_roost", &mut text);
    String::from_utf8(text).context("completions are text")
}

/// Writes a manual page for the program and for each command into the folder.
pub fn man(folder: &Path) -> Result<()> {
    let failed = || format!("cannot write manual pages to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    clap_mangen::generate_to(for_people(), folder).with_context(failed)
}

/// The command without the helpers that the program itself starts.
fn for_people() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|sub| !sub.is_hide_set());
    let shown: Vec<Command> = shown.cloned().collect();
    let bare = Command::new("scx_roost").version(env!("CARGO_PKG_VERSION"));
    let bare = bare.disable_version_flag(true);
    let about = all.get_long_about().or(all.get_about()).cloned();
    bare.about(about.unwrap_or_default())
        .args(all.get_arguments().cloned())
        .subcommands(shown)
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
            assert!(!text.contains("ab-guardian"), "{shell}");
            assert!(
                text.contains("stats-group") && text.contains("presets"),
                "{shell}"
            );
            assert!(text.contains("help"), "{shell}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error() {
        let error = man(Path::new("/dev/null/x")).unwrap_err().to_string();
        assert_eq!(error, "cannot write manual pages to /dev/null/x");
    }
}
