// SPDX-License-Identifier: GPL-2.0-only
//! Takes over the terminal and restores it, also after a panic and after the signals
//! that the program catches.

use anyhow::{Context, Result};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{Stdout, stdout};
use std::sync::Once;

pub struct Screen {
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    pub fn open() -> Result<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(restore_on_panic);
        let result = take().context(
            "cannot set up the terminal: try --json, or print lines with 'scx_roost --monitor 1'",
        );
        // Also restores a terminal that was taken over only in part.
        result.inspect_err(|_| give_back())
    }
}

fn take() -> Result<Screen> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Hide)?;
    let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
    Ok(Screen { terminal })
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Undoes each part even if another fails. Errors are ignored, since the terminal may be gone.
fn give_back() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// Restores the terminal before a panic of any thread is printed, so that the message is readable.
fn restore_on_panic() {
    let printer = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        printer(panic);
    }));
}
