// SPDX-License-Identifier: GPL-2.0-only
//! Reads the rows of src/bpf/*.tbl.h. Their strings have the same form in C and Rust, so a row is
//! passed on unchanged, as one line of a macro call. The macros are in src/policy/features.rs and
//! src/wire/stats/.

/// FEATURE(name, "source", "counters", "help") -> `name, roost_feature_FEATURE_name, "", "source",
/// "counters", "help";` SUBSWITCH(name, parent, ...) -> the same with "parent".
pub fn features(path: &str) -> Result<String, String> {
    let mut lines = Vec::new();
    for row in rows(path, &["FEATURE", "SUBSWITCH"])? {
        let (parent, rest) = match row.macro_name {
            "SUBSWITCH" => row
                .rest
                .split_once(',')
                .ok_or_else(|| format!("{path}: SUBSWITCH({}) names no parent", row.name))?,
            _ => ("", row.rest.as_str()),
        };
        let (name, parent, rest) = (&row.name, parent.trim(), rest.trim());
        lines.push(format!(
            "{name}, roost_feature_FEATURE_{name}, {parent:?}, {rest}"
        ));
    }
    Ok(call("feature_table", lines.into_iter()))
}

/// STAT(name, "help") -> `name, roost_stat_STAT_name, "group", false, "help";` where the group is
/// the comment above the rows, up to its colon. Rungs are rows as STAT. MACHINE_STAT(name, "help")
/// -> the same with true.
pub fn stats(path: &str) -> Result<String, String> {
    let line = |r: &Row| {
        let machine = r.macro_name == "MACHINE_STAT";
        format!(
            "{0}, roost_stat_STAT_{0}, {1:?}, {machine}, {2}",
            r.name, r.group, r.rest
        )
    };
    let rows = rows(path, &["STAT", "MACHINE_STAT", "RUNG", "EARLY_RUNG"])?;
    Ok(call("stat_table", rows.iter().map(line)))
}

/// HIST(name, "help") -> `name, name_sum_us, roost_hist_HIST_name, "help", "sum in us: help";`
pub fn hists(path: &str) -> Result<String, String> {
    let line = |r: &Row| {
        let sum = r.rest.replacen('"', "\"sum in us: ", 1);
        format!(
            "{0}, {0}_sum_us, roost_hist_HIST_{0}, {1}, {sum}",
            r.name, r.rest
        )
    };
    Ok(call("hist_table", rows(path, &["HIST"])?.iter().map(line)))
}

struct Row {
    macro_name: &'static str,
    /// The comment above, up to its colon.
    group: String,
    name: String,
    /// The strings in their source form.
    rest: String,
}

fn rows(path: &str, macro_names: &[&'static str]) -> Result<Vec<Row>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let (mut rows, mut group) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("/*").and_then(|l| l.strip_suffix("*/")) {
            group = comment.split(':').next().unwrap_or("").trim().to_string();
        } else if let Some((macro_name, rest)) = macro_names
            .iter()
            .find_map(|m| Some((*m, line.strip_prefix(m)?)))
        {
            let (name, rest) = split(rest).ok_or_else(|| {
                format!("{path}: '{line}': expected is {macro_name}(name, \"...\") on one line")
            })?;
            rows.push(Row {
                macro_name,
                group: group.clone(),
                name,
                rest,
            });
        }
    }
    if rows.is_empty() {
        return Err(format!(
            "{path}: no {}(...) row, one a line is expected",
            macro_names[0]
        ));
    }
    Ok(rows)
}

fn split(rest: &str) -> Option<(String, String)> {
    let (name, rest) = rest.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    Some((name.trim().to_string(), rest.trim().to_string()))
}

fn call(name: &str, lines: impl Iterator<Item = String>) -> String {
    let body: String = lines.map(|l| format!("    {l};\n")).collect();
    format!("{name}! {{\n{body}}}\n")
}
