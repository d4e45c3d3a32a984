// SPDX-License-Identifier: GPL-2.0-only
//! A result file that may be given away: of commands only the name of the program is left, and nothing says whose machine it was.

use super::result::Recorded;

/// Of the host, by name.
const KEPT: [&str; 3] = ["kernel", "cpu", "cpus"];

/// All numbers as they are. What was typed that may hold names or paths is left out.
pub fn redacted(recorded: &Recorded) -> Recorded {
    let mut shared = recorded.clone();
    let header = &mut shared.header;
    let program = header.command.first().map(|word| file_name(word));
    let arguments = header.command.len().saturating_sub(1);
    header.command = program.into_iter().collect();
    if arguments > 0 {
        header.command.push(format!("[{arguments} arguments]"));
    }
    header.host.retain(|name, _| KEPT.contains(&name.as_str()));
    header.variants = header.variants.iter().map(|v| variant(v)).collect();
    for run in &mut shared.runs {
        run.variant = variant(&run.variant);
    }
    shared
}

/// Another scheduler without the folder that it lies in.
fn variant(name: &str) -> String {
    let Some(command) = name.strip_prefix("scx:") else {
        return name.to_string();
    };
    let words = command.split(' ').map(file_name).collect::<Vec<_>>();
    format!("scx:{}", words.join(" "))
}

fn file_name(word: &str) -> String {
    word.rsplit('/').next().unwrap_or(word).to_string()
}

/// As a file.
pub fn lines(recorded: &Recorded) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(&recorded.header)? + "\n";
    for run in &recorded.runs {
        text += &(serde_json::to_string(run)? + "\n");
    }
    Ok(text)
}
