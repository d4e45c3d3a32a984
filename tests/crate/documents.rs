// SPDX-License-Identifier: GPL-2.0-only
//! The documents: links and anchors lead somewhere, also within the book, whose table of contents
//! has every page; files that pages name exist, views of the monitor have the numbers that pages
//! say, and the command lines on the pages are ones that the program takes.

use crate::top;
use scx_roost::policy::features::{FEATURES, PRESETS, TUNABLES};
use scx_roost::policy::profiles::PROFILES;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

const OUTSIDE_OF_DOCS: [&str; 4] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

fn pages_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => pages_below(&path, found),
            path if path.extension().is_some_and(|e| e == "md") => found.push(path),
            _ => {}
        }
    }
}

/// All pages with their texts.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut found: Vec<PathBuf> = OUTSIDE_OF_DOCS.map(|name| top().join(name)).into();
    pages_below(&top().join("docs"), &mut found);
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path.strip_prefix(top()).unwrap().to_path_buf(), text)
    };
    let all: BTreeMap<PathBuf, String> = found.into_iter().map(read).collect();
    assert!(all.len() > 40, "only {} pages were found", all.len());
    all
}

/// The lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_block = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_block ^= fence;
        !in_block && !fence
    })
}

/// The anchor of a heading, as forges and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || "-_ ".contains(c);
    let text: String = heading.chars().filter(|c| kept(*c)).collect();
    text.trim().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter(|l| l.starts_with('#'));
    headings
        .map(|l| anchor(l.trim_start_matches('#')))
        .collect()
}

/// The targets of all links of the page.
fn links(text: &str) -> Vec<String> {
    let text: String = prose(text).map(|l| l.to_string() + "\n").collect();
    let behind = text.split("](").skip(1);
    behind
        .filter_map(|rest| rest.split_once(')'))
        .map(|(to, _)| to.to_string())
        .collect()
}

/// `to` as seen from the folder of `page`, without "..".
fn resolved(page: &Path, to: &str) -> PathBuf {
    let mut path = page.parent().unwrap().to_path_buf();
    for part in Path::new(to).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let (mut broken, mut checked) = (Vec::new(), 0);
    for (page, text) in &pages {
        for link in links(text) {
            if link.contains("://") {
                continue;
            }
            checked += 1;
            let (to, at) = link.split_once('#').unwrap_or((&link, ""));
            let file = match to {
                "" => page.clone(),
                to => resolved(page, to),
            };
            let there = top().join(&file).is_file();
            let anchored = at.is_empty()
                || pages
                    .get(&file)
                    .is_some_and(|t| anchors(t).iter().any(|a| a == at));
            if !there || !anchored {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(checked > 300, "only {checked} links were found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn each_alert_leads_to_a_section_of_its_own() {
    let rules = std::fs::read_to_string(top().join("contrib/prometheus-alerts.yml")).unwrap();
    let page = std::fs::read_to_string(top().join("docs/guides/alerts.md")).unwrap();
    let alerts: Vec<&str> = rules
        .lines()
        .filter_map(|l| l.trim().strip_prefix("- alert: "))
        .collect();
    assert!(alerts.len() > 10);
    for alert in &alerts {
        let runbook = format!("runbook: \"docs/guides/alerts.md#{}\"\n", anchor(alert));
        assert!(
            rules.contains(&runbook),
            "{alert} does not lead to {runbook}"
        );
    }
    let mut sections: Vec<&str> = page.lines().filter_map(|l| l.strip_prefix("## ")).collect();
    let mut sorted = alerts;
    sorted.sort_unstable();
    sections.sort_unstable();
    assert_eq!(sections, sorted);
}

/// The pages of the book, in its order. Their paths are those of the tree: book/ has links to it.
fn pages_of_the_book() -> Vec<PathBuf> {
    let summary = std::fs::read_to_string(top().join("book/SUMMARY.md")).unwrap();
    links(&summary).iter().map(PathBuf::from).collect()
}

#[test]
fn the_book_has_every_page_once_and_begins_with_the_readme() {
    let mut listed = pages_of_the_book();
    assert_eq!(listed[0], Path::new("README.md"));
    listed.sort();
    assert_eq!(listed, pages().into_keys().collect::<Vec<_>>());
}

#[test]
fn links_lead_somewhere_within_the_book() {
    let (listed, pages) = (pages_of_the_book(), pages());
    let mut dead = Vec::new();
    for page in &listed {
        let links = links(&pages[page]);
        let inner = links
            .iter()
            .filter(|l| !l.contains("://") && !l.starts_with('#'));
        for link in inner {
            let file = resolved(page, link.split('#').next().unwrap());
            let rendered = file.extension().is_none_or(|e| e != "md") || listed.contains(&file);
            if !rendered || !top().join("book").join(&file).is_file() {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// The number of each view of the monitor, which is its key, and its name.
#[cfg(feature = "monitor")]
fn views() -> Vec<(String, &'static str)> {
    use scx_roost::clients::monitor::state::View;
    let names = View::ALL.iter().map(|view| view.name());
    (1..).map(|n: usize| n.to_string()).zip(names).collect()
}

/// Pages write "view 3 (Rates)", so that a number can be checked.
#[cfg(feature = "monitor")]
#[test]
fn views_of_the_monitor_have_their_numbers() {
    let known: Vec<String> = views()
        .iter()
        .map(|(n, name)| format!("{n} ({name})"))
        .collect();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (page, text) in pages() {
        let text: String = prose(&text).map(|l| l.to_string() + " ").collect();
        let behind = text.split("iew").skip(1);
        let behind = behind.filter_map(|rest| rest.trim_start_matches('s').strip_prefix(' '));
        for rest in behind.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            checked += 1;
            if !known.iter().any(|view| rest.starts_with(view)) {
                let said: String = rest.chars().take(20).collect();
                wrong.push(format!("{}: view {said}", page.display()));
            }
        }
    }
    assert!(checked > 4, "only {checked} views were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The list of keys in the tutorial: "*2 Machine*: ...".
#[cfg(feature = "monitor")]
#[test]
fn the_tutorial_has_the_numbers_of_views() {
    let page = std::fs::read_to_string(top().join("docs/tutorial/first-hour.md")).unwrap();
    let items = page.lines().filter_map(|l| l.strip_prefix("- *"));
    let items = items.filter(|l| l.starts_with(|c: char| c.is_ascii_digit()));
    let said: Vec<&str> = items.filter_map(|l| l.split('*').next()).collect();
    assert!(said.len() > 3, "{said:?}");
    for view in said {
        let known = views()
            .iter()
            .any(|(n, name)| format!("{n} {name}") == view);
        assert!(known, "{view}");
    }
}

#[test]
fn the_first_page_leads_to_every_other() {
    let index = Path::new("docs/README.md");
    let pages = pages();
    let linked: Vec<PathBuf> = links(&pages[index])
        .iter()
        .map(|to| resolved(index, to.split('#').next().unwrap()))
        .collect();
    let part =
        |p: &Path| p.starts_with("docs/reference/features") || p.starts_with("docs/simulator");
    let missing: Vec<_> = pages
        .keys()
        .filter(|p| p.starts_with("docs") && *p != index)
        .filter(|p| !part(p) && !linked.contains(p))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// What a user reads who has no clang: the panics of the build script of scx_utils, run here as
/// cargo has built it.
#[test]
fn a_build_without_clang_says_what_the_page_says() {
    let page = std::fs::read_to_string(top().join("docs/troubleshooting.md")).unwrap();
    let builds = Path::new(env!("OUT_DIR")).ancestors().nth(2).unwrap();
    let is_built = |path: &PathBuf| path.to_string_lossy().contains("/scx_utils-");
    let folders = std::fs::read_dir(builds)
        .unwrap()
        .flatten()
        .map(|e| e.path());
    let mut scripts = folders
        .filter(is_built)
        .map(|path| path.join("build-script-build"));
    let script = scripts
        .find(|path| path.is_file())
        .expect("cargo built scx_utils");
    let dir = tempfile::tempdir().unwrap();
    let old = "#!/bin/sh\necho Debian clang version 14.0.6\necho Target: x86_64-pc-linux-gnu\n";
    for (name, program) in [
        ("none", None),
        ("mute", Some("#!/bin/sh\n")),
        ("old", Some(old)),
    ] {
        let bin = dir.path().join(name);
        std::fs::create_dir(&bin).unwrap();
        if let Some(text) = program {
            std::fs::write(bin.join("clang"), text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(bin.join("clang"), mode).unwrap();
        }
        let mut command = std::process::Command::new(&script);
        command
            .env_clear()
            .env("PATH", &bin)
            .env("OUT_DIR", dir.path());
        let output = command.current_dir(top()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let begin = said.find("called `Result::unwrap()`").expect(&said);
        let panic = said[begin..].split("note: run with").next().unwrap();
        assert!(page.contains(panic), "{name}: {panic}");
    }
}

/// Inline code of the page, a span each.
fn spans(text: &str) -> Vec<String> {
    let plain: String = prose(text)
        .filter(|l| !l.starts_with("    "))
        .map(|l| l.to_string() + "\n")
        .collect();
    let odd = plain.split('`').skip(1).step_by(2);
    odd.map(|s| s.replace('\n', " ").replace("\\|", "|"))
        .collect()
}

#[test]
fn files_that_are_named_exist() {
    const FOLDERS: [&str; 10] = [
        "src/",
        "crates/",
        "tests/",
        "scripts/",
        "docs/",
        "contrib/",
        "benches/",
        "build/",
        "book/",
        "examples/",
    ];
    let mut missing = Vec::new();
    for (page, text) in pages() {
        for span in spans(&text) {
            let word = span.split_whitespace().next().unwrap_or_default();
            let word = word.split(&[',', ';', ':'][..]).next().unwrap_or_default();
            // A pattern, or a name to be filled in.
            let pattern = word.contains(&['*', '{', '<', '['][..])
                || word.split(&['/', '.', '-'][..]).any(|part| {
                    part.len() > 1
                        && part.chars().all(|c| c.is_ascii_uppercase())
                        && !["README", "SUMMARY"].contains(&part)
                });
            // The worked example makes them.
            let example = ["/stay.h", "/stay.md"]
                .iter()
                .any(|end| word.ends_with(end));
            let named = !example && FOLDERS.iter().any(|folder| word.starts_with(folder));
            if named && !pattern && !top().join(word).exists() {
                missing.push(format!("{}: {word}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The words of a command line up to a pipe, a redirection or the comment behind it.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, '#') if word.is_none() => break,
            (None, ' ') => all.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

/// The command lines of the page: lines of blocks, which a backslash continues, and inline code.
/// True for inline code, which may also just name a command.
fn command_lines(text: &str) -> Vec<(String, bool)> {
    let joined = text.replace("\\\n", "");
    let shell = joined.lines().filter(|l| l.starts_with("    "));
    let shell = shell.flat_map(|l| l.trim().split(" && "));
    let shell = shell.map(|line| (line.to_string(), false));
    let begins = |(l, _): &(String, bool)| {
        let line = l.trim_start_matches("sudo ");
        line == "scx_roost" || line.starts_with("scx_roost ")
    };
    let inline = spans(text).into_iter().map(|span| (span, true));
    shell.chain(inline).filter(begins).collect()
}

/// A synopsis has alternatives or parts that may be left out. Two lines are the program's output.
fn no_command(line: &str) -> bool {
    line.contains(&['[', '|'][..])
        || line.contains("...")
        || line.contains("<COMMAND>")
        || line.starts_with("scx_roost cannot run")
        || line.starts_with("scx_roost runs:")
}

/// Whether the error is about what this machine does not have: groups, files of the reader.
fn about_this_machine(error: &str) -> bool {
    ["there is no group", "cannot read"]
        .iter()
        .any(|part| error.contains(part))
}

/// Whether something is missing, and nothing wrong.
fn incomplete(error: &str) -> bool {
    [
        "were not provided",
        "a value is required",
        "expected a command",
    ]
    .iter()
    .any(|part| error.contains(part))
}

/// Names of features, tunables and presets that only the scheduler checks, as with `ctl set`.
fn unknown_name(words: &[String]) -> Option<&String> {
    let feature = |name: &str| FEATURES.iter().any(|f| f.name == name);
    let tunable = |name: &str| TUNABLES.iter().any(|t| t.name == name);
    let preset = |name: &str| PRESETS.iter().any(|p| p.name == name);
    let profile = |name: &str| PROFILES.iter().any(|p| p.name == name);
    let unknown = |pair: &&[String]| {
        let placeholder = pair[1].chars().all(|c| c.is_ascii_uppercase());
        let known = match (words[1].as_str(), pair[0].as_str()) {
            (_, "--enable" | "--disable") => feature(&pair[1]),
            (_, "--preset") => preset(&pair[1]),
            (_, "--profile") => profile(&pair[1]),
            ("ctl", "--set") => tunable(pair[1].split('=').next().unwrap_or_default()),
            _ => true,
        };
        !known && !placeholder
    };
    words.windows(2).find(unknown).map(|pair| &pair[1])
}

/// Whether the program has every command: a build without a cargo feature lacks some.
pub fn whole_program() -> bool {
    let commands = ["ab", "tune", "export", "monitor"];
    commands.iter().all(|c| scx_roost::cli::is_subcommand(c))
}

#[test]
fn command_lines_parse() {
    if !whole_program() {
        return;
    }
    let (mut refused, mut tried) = (Vec::new(), 0);
    for (page, text) in pages() {
        for (line, inline) in command_lines(&text) {
            if no_command(&line) {
                continue;
            }
            tried += 1;
            let words = words(line.trim_start_matches("sudo "));
            if let Some(name) = unknown_name(&words) {
                refused.push(format!("{}: {line}\n    {name}", page.display()));
            }
            let Err(e) = scx_roost::cli::parse(&words) else {
                continue;
            };
            let error = format!("{e:#}");
            let excused = about_this_machine(&error) || (inline && incomplete(&error));
            if !excused {
                refused.push(format!("{}: {line}\n    {error}", page.display()));
            }
        }
    }
    assert!(tried > 100, "only {tried} command lines were found");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
