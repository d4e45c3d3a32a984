// SPDX-License-Identifier: GPL-2.0-only
//! Readers of small files of /sys. Their errors say what was expected.

use crate::bpf::intf;
use crate::util::escape;
use crate::util::plain_file;
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The text between blanks. Programs that copy /sys end files with a NUL.
pub fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
}

/// The text of a file that must exist.
pub fn text(path: &Path) -> Result<String> {
    let text = plain_file::text(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(trimmed(&text).to_string())
}

/// The text of a file that may be missing. A file that exists and cannot be read is an error.
pub fn optional_text(path: &Path) -> Result<Option<String>> {
    match plain_file::text(path) {
        Ok(text) => Ok(Some(trimmed(&text).to_string())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// What a file reads, for errors: the beginning, without control characters.
pub fn shown(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    escape::line(&start).into_owned()
}

/// The CPU list in a file that may be missing; then the map beside it counts, which copies of /sys
/// may have instead. A file that exists and cannot be read, or is not a list, is an error.
pub fn optional_cpulist(path: &Path) -> Result<Option<Vec<u16>>> {
    if let Some(text) = optional_text(path)? {
        return parsed(path, &text, parse_cpulist, "a list of CPUs such as '0-3,8'").map(Some);
    }
    let Some(path) = map_beside(path) else {
        return Ok(None);
    };
    let text = optional_text(&path)?;
    let map = |text: String| {
        parsed(
            &path,
            &text,
            parse_cpumap,
            "a map of CPUs such as 'ff,000f'",
        )
    };
    text.map(map).transpose()
}

/// The list in a file of a CPU, which must name that CPU. None: there is no file, or it is empty.
pub fn own_list(path: &Path, cpu: u16) -> Result<Option<Vec<u16>>> {
    let cpus = optional_cpulist(path)?.filter(|cpus| !cpus.is_empty());
    if cpus.as_ref().is_some_and(|cpus| !cpus.contains(&cpu)) {
        bail!(
            "{} does not name CPU {cpu} itself, as it must",
            path.display()
        );
    }
    Ok(cpus)
}

fn parsed(
    path: &Path,
    text: &str,
    parse: impl Fn(&str) -> Result<Vec<u16>>,
    expected: &str,
) -> Result<Vec<u16>> {
    let told = || {
        let (path, text) = (path.display(), shown(text));
        format!("{path} reads '{text}': expected {expected}")
    };
    parse(text).with_context(told)
}

/// The kernel writes most sets of CPUs twice, as a list and as a map.
fn map_beside(list: &Path) -> Option<PathBuf> {
    let map = match list.file_name()?.to_str()? {
        "shared_cpu_list" => "shared_cpu_map",
        "cpulist" => "cpumap",
        name => name.strip_suffix("_list")?,
    };
    Some(list.with_file_name(map))
}

/// The numbers of the folders NAME0, NAME1 and so on, ascending. A missing folder has none.
pub fn numbered(dir: &Path, name: &str) -> Result<Vec<u16>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", dir.display())),
    };
    let digits = |entry: std::io::Result<std::fs::DirEntry>| {
        let file = entry.ok()?.file_name().into_string().ok()?;
        let digits = file.strip_prefix(name)?;
        // The kernel writes no leading zeros: cpu00 would be a second CPU 0.
        let plain = digits == "0" || !digits.starts_with('0');
        (plain && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
            .then(|| digits.to_string())
    };
    let numbers = entries.filter_map(digits).map(|digits| number(&digits));
    let mut numbers = numbers
        .collect::<Result<Vec<u16>>>()
        .with_context(|| format!("{} has too many folders", dir.display()))?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// Parses words of 32 bits in hex, the highest first.
pub fn parse_cpumap(text: &str) -> Result<Vec<u16>> {
    let mut cpus = Vec::new();
    for (word, text) in text.rsplit(',').enumerate() {
        let bits = u32::from_str_radix(text, 16)
            .ok()
            .with_context(|| format!("'{}' is not a word of the map", shown(text)))?;
        for bit in (0..32).filter(|bit| bits >> bit & 1 != 0) {
            cpus.push(number(&(word * 32 + bit).to_string())?);
        }
    }
    Ok(cpus)
}

/// Parses ascending CPU numbers. scx_utils::read_cpulist refuses the empty list, which the kernel
/// does write, and does not bound the numbers.
pub fn parse_cpulist(text: &str) -> Result<Vec<u16>> {
    let mut cpus = Vec::new();
    for range in text.split(',').map(str::trim).filter(|r| !r.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            bail!("'{}' runs backwards", shown(range));
        }
        cpus.extend(first..=last);
    }
    if !cpus.is_sorted_by(|a, b| a < b) {
        bail!("its numbers are not in ascending order");
    }
    Ok(cpus)
}

/// Parses CPU numbers separated by spaces, as cpufreq writes them; None: anything else.
pub fn parse_spaced(text: &str) -> Option<Vec<u16>> {
    let cpus = text.split_ascii_whitespace().map(|n| number(n).ok());
    let cpus = cpus.collect::<Option<Vec<u16>>>()?;
    (!cpus.is_empty() && cpus.is_sorted_by(|a, b| a < b)).then_some(cpus)
}

/// Ascending CPU numbers as the kernel writes them.
pub fn cpulist_text(cpus: &[u16]) -> String {
    let range = |range: &[u16]| match range {
        [one] => one.to_string(),
        _ => format!("{}-{}", range[0], range[range.len() - 1]),
    };
    let ranges = cpus.chunk_by(|a, b| a + 1 == *b).map(range);
    ranges.collect::<Vec<_>>().join(",")
}

/// 'CPU 3', 'CPUs 0-2,8'.
pub fn cpus_text(cpus: &[u16]) -> String {
    let what = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{what} {}", cpulist_text(cpus))
}

fn number(text: &str) -> Result<u16> {
    let n: u32 = text
        .parse()
        .with_context(|| format!("'{}' is not a number", shown(text)))?;
    if n >= intf::MAX_CPUS {
        bail!(
            "CPU {n} is beyond the {} CPUs that scx_roost handles",
            intf::MAX_CPUS
        );
    }
    Ok(n as u16)
}

/// The size of a cache in KiB, from the kernel's text: '16384K'. None: another text.
pub fn parse_kb(text: &str) -> Option<u32> {
    text.strip_suffix('K')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_the_kernel_writes_them() {
        assert_eq!(parse_cpulist("").unwrap(), [0u16; 0]);
        assert_eq!(parse_cpulist("0").unwrap(), [0]);
        assert_eq!(parse_cpulist("0-2,8,10-11").unwrap(), [0, 1, 2, 8, 10, 11]);
        assert_eq!(parse_cpulist("1023").unwrap(), [1023]);
    }

    #[test]
    fn what_is_written_is_read() {
        for text in ["", "0", "0-2,8,10-11", "0-1023", "7,9"] {
            assert_eq!(cpulist_text(&parse_cpulist(text).unwrap()), text);
        }
    }

    #[test]
    fn garbage_is_refused_and_named() {
        let error = |text| format!("{:#}", parse_cpulist(text).unwrap_err());
        assert!(error("x").contains("'x' is not a number"));
        assert!(error("3-1").contains("runs backwards"));
        assert!(error("4,2").contains("not in ascending order"));
        assert!(error("0-1024").contains("beyond the 1024 CPUs"));
        assert!(error("0-99999999999").contains("not a number"));
    }

    #[test]
    fn numbers_with_spaces() {
        assert_eq!(parse_spaced("0 1 32 33"), Some(vec![0, 1, 32, 33]));
        for wrong in ["", "1 0", "0 x", "0 1024", "0-3"] {
            assert_eq!(parse_spaced(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn maps_as_the_kernel_writes_them() {
        assert_eq!(parse_cpumap("00000000").unwrap(), [0u16; 0]);
        assert_eq!(parse_cpumap("f").unwrap(), [0, 1, 2, 3]);
        assert_eq!(parse_cpumap("1,00000000,80000001").unwrap(), [0, 31, 64]);
        for wrong in ["", "x", "1,", "123456789", "1\0", "-1"] {
            assert!(parse_cpumap(wrong).is_err(), "{wrong}");
        }
        let words = format!("1{}", ",0".repeat(32));
        let error = parse_cpumap(&words).unwrap_err();
        assert!(error.to_string().contains("beyond the 1024 CPUs"));
    }

    #[test]
    fn cache_sizes() {
        assert_eq!(parse_kb("16384K"), Some(16384));
        assert_eq!(parse_kb("16M"), None);
    }
}
