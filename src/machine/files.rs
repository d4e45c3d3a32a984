// SPDX-License-Identifier: GPL-2.0-only
//! Readers of small files of /sys. Their errors say what was expected.

use crate::bpf::intf;
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::path::Path;

/// The text of a file that must exist.
pub fn text(path: &Path) -> Result<String> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim().to_string())
}

/// The text of a file that may be missing. A file that exists and cannot be read is an error.
pub fn optional_text(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_string())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The CPU list in a file that must exist. Errors: it cannot be read; it is not a list.
pub fn cpulist(path: &Path) -> Result<Vec<u16>> {
    let text = text(path)?;
    parse_cpulist(&text).with_context(|| {
        format!(
            "{} reads '{text}': expected a list of CPUs such as '0-3,8'",
            path.display()
        )
    })
}

/// The CPU list in a file that may be missing. A file that exists and cannot be read, or is not a
/// list, is an error.
pub fn optional_cpulist(path: &Path) -> Result<Option<Vec<u16>>> {
    match path.try_exists() {
        Ok(true) => Ok(Some(cpulist(path)?)),
        Ok(false) => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Parses ascending CPU numbers. scx_utils::read_cpulist refuses the empty list, which the kernel
/// does write, and does not bound the numbers.
pub fn parse_cpulist(text: &str) -> Result<Vec<u16>> {
    let mut cpus = Vec::new();
    for range in text.split(',').map(str::trim).filter(|r| !r.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            bail!("'{range}' runs backwards");
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

fn number(text: &str) -> Result<u16> {
    let n: u32 = text
        .parse()
        .with_context(|| format!("'{text}' is not a number"))?;
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
    fn cache_sizes() {
        assert_eq!(parse_kb("16384K"), Some(16384));
        assert_eq!(parse_kb("16M"), None);
    }
}
