// SPDX-License-Identifier: GPL-2.0-only
//! Pictures and tables of a page: what is shown, and where.

use crate::played::{asked, header, played_runs};
use scx_roost::ab::report::Report;
use scx_roost::ab::report::html::html;
use scx_roost::ab::result::{Recorded, Repetition};
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::Direction;
use std::collections::BTreeMap;

/// Width of a picture on a screen of 360 pixels.
const NARROW: f64 = 328.0;

/// Runs of these variants, each changed by `change`.
fn recorded(variants: &[&str], change: impl Fn(&mut Repetition)) -> Recorded {
    let header = header(variants, Plan::Fixed(8));
    let mut runs = played_runs(&header, 1);
    runs.iter_mut().for_each(change);
    Recorded {
        runs,
        ..Recorded::new(header)
    }
}

fn page(recorded: &Recorded) -> String {
    html(&Report::new(recorded).unwrap())
}

/// The page's figures with a picture of this name.
fn figures(recorded: &Recorded, name: &str) -> Vec<String> {
    let page = page(recorded);
    let all = page.split("<figure>").skip(1);
    let all = all.map(|rest| rest.split("</figure>").next().unwrap().to_string());
    let named = format!("aria-label=\"{name}\"");
    all.filter(|figure| figure.contains(&named)).collect()
}

/// The values of this attribute of all elements with this name and class, in order. Positions
/// across are in percent.
fn numbers(figure: &str, element: &str, class: &str, attribute: &str) -> Vec<f64> {
    let (begin, named) = (format!("<{element} "), format!("{attribute}=\""));
    let elements = figure.split(&begin).skip(1);
    let value = |rest: &str| {
        let (own, _) = rest.split_once('>')?;
        let (_, classes) = own.split_once("class=\"")?;
        let mut classes = classes.split('"').next()?.split(' ');
        let (_, value) = own.split_once(&named)?;
        let value = value.split(['"', '%']).next()?.parse().ok();
        classes.find(|c| *c == class).and(value)
    };
    elements.filter_map(value).collect()
}

/// Position and text of the numbers below a picture.
fn below(figure: &str) -> Vec<(f64, String)> {
    let texts = figure.split("<text ").skip(1);
    let tick = |rest: &str| {
        let whole = format!("<text {rest}");
        let x = *numbers(&whole, "text", "tick", "x").first()?;
        let (_, text) = rest.split_once('>')?;
        let text = text.split('<').next()?.to_string();
        rest.contains("\"middle\"").then_some((x, text))
    };
    texts.filter_map(tick).collect()
}

/// Counters are in the groups of the scheduler's table, with what they count, and folded.
#[test]
fn counters_are_a_table() {
    let grown = BTreeMap::from([("roost", 50), ("roost+claim=off", 100)]);
    let recorded = recorded(&["eevdf", "roost", "roost+claim=off"], |run| {
        run.counters.clear();
        if let Some(n) = grown.get(run.variant.as_str()) {
            run.counters.insert("fork_busy".to_string(), *n);
            run.counters.insert("delay_wake".to_string(), 2 * n);
            run.counters.insert("of_tomorrow".to_string(), *n);
        }
    });
    let page = page(&recorded);
    let (_, counters) = page
        .split_once("<details><summary>Counters that differ")
        .unwrap();
    let mut rest = counters;
    for shown in [
        ">select_idle_sibling<",
        "fork_busy<td class=\"n\">-<td class=\"n\">50<td class=\"n\"><td class=\"n\">100<td class=\"n\">+100&nbsp;%<",
        ">fork: no CPU is idle",
        ">delayed migration<",
        "delay_wake<",
        "of_tomorrow<",
    ] {
        let (_, after) = rest
            .split_once(shown)
            .unwrap_or_else(|| panic!("{shown} in {rest}"));
        rest = after;
    }
}

/// A value of 0 turns the ratios of its comparison into differences; the other comparison keeps its
/// ratio. A ratio of 0.9 is left of the line for no change.
#[test]
fn a_ratio_and_a_difference_have_an_axis_each() {
    let times = BTreeMap::from([("roost", 0.0), ("eevdf", 0.9)]);
    let recorded = recorded(&["mainline", "roost", "eevdf"], |run| {
        let times = times.get(run.variant.as_str()).unwrap_or(&1.0);
        *run.values.get_mut("wall").unwrap() *= times;
    });
    let effects = figures(&recorded, "wall: effects");
    assert_eq!(effects.len(), 2);
    for (figure, name, same) in [
        (&effects[0], ">eevdf<", "0 %"),
        (&effects[1], ">roost<", "0 s"),
    ] {
        let (dots, line) = (
            numbers(figure, "circle", "effect", "cx"),
            numbers(figure, "line", "same", "x1"),
        );
        assert!(figure.contains(name) && dots.len() == 1, "{figure}");
        assert!(dots[0] < line[0] - 15.0, "{figure}");
        assert!(
            below(figure).contains(&(line[0], same.to_string())),
            "{figure}"
        );
    }
}

/// On a narrow screen and with characters of 7 px. A name that is cut shows its beginning and its
/// end, and its tooltip all of it.
#[test]
fn names_have_room() {
    let longest = "scx:/usr/bin/scx_cosmos -m all -s 1250 -l 50000 -c 0 -p 0 -d";
    let recorded = recorded(&["mainline", "roost", longest], |_| ());
    for title in ["wall: distribution", "wall: effects"] {
        let figure = figures(&recorded, title).remove(0);
        let (_, cut) = figure
            .split_once(&format!("<title>{longest}</title>"))
            .unwrap();
        let cut = cut.split('<').next().unwrap();
        let (begin, end) = cut.split_once('\u{2026}').unwrap();
        assert!(
            longest.starts_with(begin) && longest.ends_with(end),
            "{cut}"
        );
        assert!(begin.len() > 15 && end.len() > 15, "{cut}");
        assert!(7.0 * cut.chars().count() as f64 <= NARROW, "{cut}");
    }
}

/// The band is the margin, and the side that is better depends on the metric.
#[test]
fn an_effect_is_drawn_on_its_margin_between_better_and_worse() {
    let mut recorded = recorded(&["mainline", "roost", "eevdf"], |run| {
        let times = if run.variant == "eevdf" { 1.1 } else { 1.0 };
        *run.values.get_mut("wall").unwrap() *= times;
        run.values
            .insert("user".to_string(), 1.0 + 0.1 * run.number as f64);
    });
    recorded
        .header
        .metrics
        .push(asked("user", Direction::Higher));
    let figure = figures(&recorded, "wall: effects").remove(0);
    let margin = "<title>margin, -1.961 % to 2 %</title>";
    assert_eq!(figure.matches(margin).count(), 2, "{figure}");
    let (x, width) = (
        numbers(&figure, "rect", "band", "x"),
        numbers(&figure, "rect", "band", "width"),
    );
    let dots = numbers(&figure, "circle", "effect", "cx");
    let within = |dot: f64| (x[0]..x[0] + width[0]).contains(&dot);
    assert_eq!(
        (within(dots[0]), within(dots[1])),
        (true, false),
        "{figure}"
    );
    let better = |figure: &str| numbers(figure, "text", "better", "x")[0];
    let higher = figures(&recorded, "user: effects").remove(0);
    assert_eq!((better(&figure), better(&higher)), (0.0, 100.0));
}

/// Two runs far off, as by a disturbance, are at the end of the axis with their values; the others
/// have the room.
#[test]
fn outliers_do_not_squeeze_the_rest() {
    let recorded = recorded(&["mainline", "roost"], |run| {
        let value = run.values.get_mut("wall").unwrap();
        match (run.block, run.variant.as_str()) {
            (Some(2), "roost") => *value = 99.0,
            (Some(4), "mainline") => *value = 0.5,
            _ => (),
        }
    });
    for (title, across) in [("wall: distribution", "cx"), ("wall: runs in order", "cy")] {
        let figure = figures(&recorded, title).remove(0);
        let places = numbers(&figure, "circle", "dot", across);
        let (least, most) = (
            places.iter().copied().fold(f64::MAX, f64::min),
            places.iter().copied().fold(0.0, f64::max),
        );
        assert_eq!(places.len(), 14);
        assert!(most - least > 70.0, "{title}: {least} to {most}");
        assert_eq!(figure.matches("class=\"beyond ").count(), 2, "{figure}");
        for shown in [": 99 s</title>", ": 0.5 s</title>", ">99", ">0.5"] {
            assert!(figure.contains(shown), "{shown} in {figure}");
        }
    }
}

/// Round numbers at the axes, apart from each other also on a narrow screen.
#[test]
fn axes_have_round_numbers_that_do_not_touch() {
    for (times, by) in [
        (0.9, 1.0),
        (0.999, 1.0),
        (1.0, 1e-3),
        (1.001, 1e5),
        (1.1, 1e8),
    ] {
        let recorded = recorded(&["mainline", "roost"], |run| {
            let times = if run.variant == "roost" { times } else { 1.0 };
            *run.values.get_mut("wall").unwrap() *= times * by;
        });
        for title in ["effects", "distribution", "runs in order"] {
            let figure = figures(&recorded, &format!("wall: {title}")).remove(0);
            let ticks = below(&figure);
            assert!(ticks.len() >= 2, "{figure}");
            for two in ticks.windows(2) {
                let [(left, text), (right, other)] = two else {
                    continue;
                };
                let signs = (text.chars().count() + other.chars().count()) as f64 / 2.0;
                let apart = (right - left) / 100.0 * NARROW;
                assert!(apart > 6.5 * signs, "{text} and {other}: {apart} px");
            }
            let number = |text: &str| {
                let digits: String = text
                    .chars()
                    .filter(|c| "-.0123456789".contains(*c))
                    .collect();
                digits.parse::<f64>().unwrap()
            };
            let step = number(&ticks[1].1) - number(&ticks[0].1);
            let first = format!("{step:.0e}").chars().next().unwrap();
            assert!("125".contains(first), "{ticks:?}");
            assert!((step / format!("{step:.0e}").parse::<f64>().unwrap() - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn pictures_say_what_they_show() {
    let recorded = recorded(&["mainline", "scx:a b"], |_| ());
    let figure = figures(&recorded, "wall: runs in order").remove(0);
    for shown in [
        "<b class=\"v0\">\u{25cf}</b> mainline<",
        "<b class=\"v1\">\u{25cf}</b> scx:a b<",
    ] {
        assert!(figure.contains(shown), "{shown} in {figure}");
    }
    // Runs 1 and 2 are warm-ups.
    assert!(figure.contains(", run 3: ") && figure.contains(", run 18: "));
    assert!(!figure.contains(", run 2: "), "{figure}");
    let page = page(&recorded);
    for sign in [
        "a run far from the rest; it counts",
        " median<",
        " mean<",
        "the margin",
    ] {
        assert!(page.contains(sign), "{sign}");
    }
}

/// Only its color says whose run a dot is.
#[test]
fn no_picture_gives_two_variants_one_color() {
    let of = |us: usize| format!("mainline+slice-us={us}");
    let names: Vec<String> = (1000..1009).map(of).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pictures = figures(&recorded(&names, |_| ()), "wall: runs in order");
    assert_eq!(pictures.len(), 2);
    for (picture, shown) in pictures.iter().zip([&names[..7], &names[7..]]) {
        for (at, name) in shown.iter().enumerate() {
            let legend = format!("<b class=\"v{at}\">\u{25cf}</b> {name}<");
            assert!(picture.contains(&legend), "{legend} in {picture}");
        }
        assert_eq!(picture.matches("<b class=\"v").count(), shown.len());
        assert_eq!(picture.matches("<title>").count(), 8 * shown.len());
    }
}

/// WCAG's contrast of two colors such as '#0072b2'.
fn contrast(one: &str, other: &str) -> f64 {
    let light = |color: &str| {
        let digits: Vec<char> = color.trim_start_matches('#').chars().collect();
        let each = digits.len() / 3;
        let part = |at: usize| {
            let text: String = digits[at * each..(at + 1) * each].iter().collect();
            let part = u8::from_str_radix(&text.repeat(3 - each), 16).unwrap();
            (f64::from(part) / 255.0).powf(2.2)
        };
        0.2126 * part(0) + 0.7152 * part(1) + 0.0722 * part(2) + 0.05
    };
    let ratio = light(one) / light(other);
    ratio.max(1.0 / ratio)
}

/// In daylight and in the dark.
#[test]
fn colors_are_seen_on_their_paper() {
    let page = page(&recorded(&["mainline", "roost"], |_| ()));
    let (day, rest) = page.split_once("(prefers-color-scheme: dark)").unwrap();
    let (dark, _) = rest.split_once("body {").unwrap();
    for style in [day, dark] {
        let color = |name: &str| {
            let (_, rest) = style.split_once(name).unwrap();
            rest.split([';', ' ', '\n']).next().unwrap()
        };
        let paper = color("--paper: ");
        for variant in 0..7 {
            let seen = contrast(color(&format!(".v{variant} {{ color: ")), paper);
            assert!(seen > 2.0, "{variant}: {seen}");
        }
        for text in [
            "--ink: ",
            "--soft: ",
            "--better: ",
            "--worse: ",
            "--equivalent: ",
            "--open: ",
        ] {
            assert!(contrast(color(text), paper) > 4.5, "{text}");
        }
    }
}
