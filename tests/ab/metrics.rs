// SPDX-License-Identifier: GPL-2.0-only
//! What is compared: names of metrics, and numbers in what a command printed.

use scx_roost::ab::metric::{MEASURED, Metric};
use scx_roost::ab::stats::verdict::Direction::{Higher, Lower};

fn metric(text: &str) -> Metric {
    Metric::parse(text).unwrap()
}

fn error(text: &str) -> String {
    format!("{:#}", Metric::parse(text).unwrap_err())
}

fn printed(metric: &str, output: &str) -> Result<f64, String> {
    printed_beside(metric, output, "")
}

fn printed_beside(metric: &str, output: &str, errors: &str) -> Result<f64, String> {
    let number = self::metric(metric).printed(output, errors).unwrap();
    number.map_err(|e| format!("{e:#}"))
}

#[test]
fn what_is_measured_has_a_name_and_less_of_it_is_better() {
    for row in &MEASURED {
        let metric = Metric::parse(row.name).unwrap();
        assert_eq!((metric.name.as_str(), metric.unit()), (row.name, row.unit));
        assert_eq!(metric.better, Lower);
        assert!(metric.printed("1", "1").is_none());
    }
}

#[test]
fn lower_is_better_unless_it_is_said() {
    for (text, better) in [
        ("regex:([0-9]+)", Lower),
        ("higher:regex:([0-9]+)", Higher),
        ("lower:json:/ops", Lower),
        ("higher:wall", Higher),
    ] {
        assert_eq!(metric(text).better, better, "{text}");
    }
    assert_eq!(metric("higher:json:/ops").name, "json:/ops");
}

#[test]
fn an_unknown_metric_is_refused_with_the_known_ones() {
    assert_eq!(
        error("time"),
        "unknown metric 'time': expected one of wall, user, system, max-rss, context-switches, migrations, \
         wakeup-p50, wakeup-p99, regex:PATTERN or json:/POINTER"
    );
    assert!(error("regex:(").contains("unclosed group"));
    assert!(error("regex:(a)(b)").contains("it has 2 groups, but one must be the number"));
    assert!(error("json:ops").contains("begins with a slash"));
}

#[test]
fn the_last_match_is_the_number() {
    let pattern = r"regex:([0-9.]+) ops/s";
    assert_eq!(
        printed(pattern, "run 1: 10.5 ops/s\nall: 12.25 ops/s\n"),
        Ok(12.25)
    );
    assert_eq!(printed(r"regex:\d+", "7 and 8"), Ok(8.0));
    assert_eq!(
        printed(pattern, "nothing\n"),
        Err("the command's output has no match for '([0-9.]+) ops/s'".into())
    );
    assert_eq!(
        printed("regex:took (.*)", "took long"),
        Err("'took (.*)' matched 'long', which is not a number up to 1e100".into())
    );
    assert!(printed("regex:(.*)", "inf").is_err());
}

/// Many programs print their times on stderr.
#[test]
fn a_number_may_be_among_the_errors() {
    let regex = "regex:took ([0-9.]+)";
    assert_eq!(printed_beside(regex, "5 apples\n", "took 5\n"), Ok(5.0));
    assert_eq!(printed_beside(regex, "took 4\n", "took 5\n"), Ok(4.0));
    let wrong = printed_beside("regex:took (.*)", "took long\n", "took 5\n");
    assert!(
        wrong
            .unwrap_err()
            .ends_with("'long', which is not a number up to 1e100")
    );
    let json = |output| printed_beside("json:/n", output, "{\"n\": 3}\n");
    assert_eq!(json("5 apples"), Ok(3.0));
    assert_eq!(json("{\"m\": 1}"), Ok(3.0));
    assert_eq!(json("{\"n\": 2}"), Ok(2.0));
}

#[test]
fn a_near_match_gets_a_hint() {
    assert_eq!(
        printed("regex:^took ([0-9]+)$", "begin\ntook 5\n"),
        Err("the command's output has no match for '^took ([0-9]+)$': ^ and $ match at lines if the pattern begins with (?m)".into())
    );
    assert_eq!(
        printed("regex:(?m)^took ([0-9]+)$", "begin\ntook 5\n"),
        Ok(5.0)
    );
    assert_eq!(
        printed("regex:took ([0-9,]+)", "took 1,234\n"),
        Err("'took ([0-9,]+)' matched '1,234', which is not a number up to 1e100: a comma is ambiguous (thousands or decimals), so the number must have none".into())
    );
}

#[test]
fn json_has_its_lines_for_itself() {
    let several = "{\n  \"n\": 5,\n  \"all\": [\n    {}\n  ]\n}\n";
    for (output, number) in [
        (format!("starting\n{several}"), 5.0),
        (format!("[1] starting\n{several}done\n"), 5.0),
        (format!("{several}{{\"n\": 6}}\n"), 6.0),
        (format!("{{\"n\": 4}}\n{several}[7] done\n"), 5.0),
        ("  {\"n\": 4}".to_string(), 4.0),
    ] {
        assert_eq!(printed("json:/n", &output), Ok(number), "{output}");
    }
    assert!(printed("json:/n", "{\"n\": 4} s\n{\n").is_err());
    // A number inside of a truncated object does not count as printed.
    let broken =
        "starting\n{\n  \"n\": 1,\n  \"ratio\": NaN,\n  \"runs\": [\n    {\"n\": 3}\n  ]\n}\n";
    assert_eq!(
        printed("json:/n", broken).unwrap_err(),
        "the JSON that the command printed is invalid, or has a number beyond 1e308, in line 4 of its output"
    );
}

#[test]
fn json_is_all_that_was_printed_or_its_last_line() {
    assert_eq!(printed("json:/a/1", "{\"a\": [1,\n 2.5]}\n"), Ok(2.5));
    assert_eq!(
        printed("json:/n", "starting\n{\"n\": 1}\n{\"n\": 3}\ndone\n"),
        Ok(3.0)
    );
    assert_eq!(printed("json:/n", "{\"n\": \"4.5\"}"), Ok(4.5));
    let told = |output| printed("json:/n", output).unwrap_err();
    assert_eq!(
        told("{\"n\": 1e999}"),
        "the JSON that the command printed is invalid, or has a number beyond 1e308, in line 1 of its output"
    );
    assert_eq!(
        told("{\"n\": 1e300}"),
        "/n in the command's JSON is 1e+300, which is not a number up to 1e100"
    );
    assert_eq!(told("5 apples"), "the command printed no JSON");
    assert_eq!(told("{}"), "the JSON that the command printed has no /n");
    assert_eq!(
        told("{\"n\": null}"),
        "/n in the command's JSON is null, which is not a number up to 1e100"
    );
}
