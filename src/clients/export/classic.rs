// SPDX-License-Identifier: GPL-2.0-only
//! Converts OpenMetrics to the classic text format of Prometheus, which node_exporter and older
//! scrapers read. Names, labels and values are the same; the lines about a family differ. Pure.

/// `open` is the output of `encode`.
pub fn from_open_metrics(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    // HELP precedes TYPE, and the name in the HELP line depends on the type.
    let mut help = "";
    for line in open.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            text += &about(help, rest);
        } else if !line.starts_with('#') {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// In the classic format a counter's family has the name of its samples, and an info is a gauge.
fn about(help: &str, typed: &str) -> String {
    let (name, kind) = typed.split_once(' ').unwrap_or((typed, "untyped"));
    let (suffix, kind) = match kind {
        "counter" => ("_total", "counter"),
        "info" => ("_info", "gauge"),
        "unknown" => ("", "untyped"),
        other => ("", other),
    };
    let words = help.split_once(' ').map_or("", |(_, words)| words);
    // OpenMetrics escapes quotes in HELP, the classic format does not.
    let words = words.replace("\\\"", "\"");
    format!("# HELP {name}{suffix} {words}\n# TYPE {name}{suffix} {kind}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_of_families_changes() {
        let open = "# HELP a Counts \\\"x\\\" and \\\\.\n# TYPE a counter\na_total{arm=\"x\"} 1\n\
                    # HELP b_seconds Time.\n# TYPE b_seconds histogram\n# UNIT b_seconds seconds\n\
                    b_seconds_sum 0.5\nb_seconds_count 1\nb_seconds_bucket{le=\"+Inf\"} 1\n\
                    # HELP c What runs.\n# TYPE c info\nc_info{version=\"1\"} 1\n# EOF\n";
        let classic = "# HELP a_total Counts \"x\" and \\\\.\n# TYPE a_total counter\na_total{arm=\"x\"} 1\n\
                       # HELP b_seconds Time.\n# TYPE b_seconds histogram\n\
                       b_seconds_sum 0.5\nb_seconds_count 1\nb_seconds_bucket{le=\"+Inf\"} 1\n\
                       # HELP c_info What runs.\n# TYPE c_info gauge\nc_info{version=\"1\"} 1\n";
        assert_eq!(from_open_metrics(open), classic);
    }
}
