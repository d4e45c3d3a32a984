// SPDX-License-Identifier: GPL-2.0-only
//! Pictures of a page: what is drawn, and where.

use crate::played::{header, played_runs};
use scx_roost::ab::report::Report;
use scx_roost::ab::report::html::html;
use scx_roost::ab::result::{Recorded, Repetition};
use scx_roost::ab::stats::plan::Plan;
use std::collections::BTreeMap;

/// Runs of these variants, each changed by `change`.
fn recorded(variants: &[&str], change: impl Fn(&mut Repetition)) -> Recorded {
    let header = header(variants, Plan::Fixed(8));
    let mut runs = played_runs(&header, 1);
    runs.iter_mut().for_each(change);
    Recorded {
        header,
        runs,
        failed: Vec::new(),
    }
}

/// The page's pictures whose title ends with `title`.
fn pictures(recorded: &Recorded, title: &str) -> Vec<String> {
    let page = html(&Report::new(recorded).unwrap());
    let all = page.split("<svg ").skip(1);
    let all = all.map(|rest| rest.split("</svg>").next().unwrap().to_string());
    let titled = format!("{title}</title>");
    all.filter(|picture| {
        picture
            .split_once(&titled)
            .is_some_and(|(before, _)| !before.contains("</title>"))
    })
    .collect()
}

/// The values of this attribute of all elements with this name, in order.
fn numbers(picture: &str, element: &str, attribute: &str) -> Vec<f64> {
    let begin = format!("<{element} ");
    let named = format!("{attribute}=\"");
    let elements = picture.split(&begin).skip(1);
    let value = |rest: &str| {
        let (_, value) = rest.split_once(&named)?;
        value.split('"').next()?.parse().ok()
    };
    elements.filter_map(value).collect()
}

#[test]
fn counters_are_bars() {
    let grown = BTreeMap::from([("mainline", 50), ("roost", 100)]);
    let recorded = recorded(&["mainline", "roost", "eevdf"], |run| {
        run.counters.clear();
        if let Some(n) = grown.get(run.variant.as_str()) {
            run.counters.insert("prev_core".to_string(), *n);
        }
    });
    let [picture] = pictures(&recorded, "counters that differ")
        .try_into()
        .expect("there is one");
    let bars = numbers(&picture, "rect", "width");
    assert!(
        (bars[1] - 2.0 * bars[0]).abs() < 0.2 && bars[1] > 300.0,
        "{bars:?}"
    );
    assert_eq!((bars.len(), bars[2]), (3, 0.0));
    for shown in [
        ">prev_core<",
        ">mainline: 50<",
        ">roost: 100<",
        ">eevdf: -<",
    ] {
        assert!(picture.contains(shown), "{shown} in {picture}");
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
    let effects = pictures(&recorded, "wall: effects");
    assert_eq!(effects.len(), 2);
    for (picture, name, same) in [
        (&effects[0], ">eevdf<", ">1</text>"),
        (&effects[1], ">roost<", ">0</text>"),
    ] {
        assert!(
            picture.contains(name) && picture.contains(same),
            "{picture}"
        );
        let (dots, dashed) = (
            numbers(picture, "circle", "cx"),
            numbers(picture, "line", "x1"),
        );
        assert!(
            dots.len() == 1 && dots[0] < dashed[dashed.len() - 1] - 100.0,
            "{picture}"
        );
    }
}

/// If a character is 7 px wide, the labels left of a plot have room. A label that is cut shows its
/// beginning and its end.
#[test]
fn names_have_room() {
    let (long, longest) = (
        "roost+claim=off+slice-us=2000",
        "scx:/usr/bin/scx_cosmos -m all -s 1250 -l 50000 -c 0 -p 0 -d",
    );
    let recorded = recorded(&["mainline", long, longest], |_| ());
    for title in ["wall: distribution", "wall: effects"] {
        let picture = pictures(&recorded, title).remove(0);
        assert!(picture.contains(&format!("<title>{longest}</title>")));
        assert!(picture.contains(&format!("{long}</text>")));
        let cut = "scx:/usr/bin/scx_c…0000 -c 0 -p 0 -d</text>";
        assert!(picture.contains(cut), "{picture}");
        let places = numbers(&picture, "text", "x");
        let names = [long.len(), cut.chars().count() - "</text>".len()];
        for signs in names {
            assert!(places[0] >= 7.0 * signs as f64, "{picture}");
        }
    }
}

/// The band shows the margin, as far as it is within the picture.
#[test]
fn the_margin_is_drawn_behind_effects() {
    let recorded = recorded(&["mainline", "roost", "eevdf"], |run| {
        let times = if run.variant == "eevdf" { 1.1 } else { 1.0 };
        *run.values.get_mut("wall").unwrap() *= times;
    });
    let picture = pictures(&recorded, "wall: effects").remove(0);
    assert_eq!(
        picture
            .matches("<title>margin, 0.9804 to 1.02</title>")
            .count(),
        2
    );
    let (x, width) = (
        numbers(&picture, "rect", "x"),
        numbers(&picture, "rect", "width"),
    );
    let dots = numbers(&picture, "circle", "cx");
    let within = |dot: f64| (x[0]..x[0] + width[0]).contains(&dot);
    assert_eq!(
        (within(dots[0]), within(dots[1])),
        (true, false),
        "{picture}"
    );
}

/// If all variants are better, the line for no change is at the end of the axis, where another
/// label is.
#[test]
fn labels_are_not_printed_over_each_other() {
    for times in [0.9, 0.999, 1.0, 1.001, 1.1] {
        let recorded = recorded(&["mainline", "roost"], |run| {
            let times = if run.variant == "roost" { times } else { 1.0 };
            *run.values.get_mut("wall").unwrap() *= times;
        });
        for title in ["effects", "distribution", "runs in order"] {
            let picture = pictures(&recorded, &format!("wall: {title}")).remove(0);
            let below = picture
                .split("<text ")
                .skip(1)
                .filter(|t| t.contains("\"middle\""));
            let mut places: Vec<f64> = below
                .flat_map(|t| numbers(&format!("<text {t}"), "text", "x"))
                .collect();
            places.sort_unstable_by(f64::total_cmp);
            assert!(!places.is_empty());
            // 'run 18' is 6 characters wide, '0.9990' too.
            assert!(
                places.windows(2).all(|two| two[1] - two[0] > 42.0),
                "{places:?} {picture}"
            );
        }
        let effects = pictures(&recorded, "wall: effects").remove(0);
        assert!(effects.contains(">1</text>"), "{effects}");
    }
}

#[test]
fn pictures_say_what_they_show() {
    let recorded = recorded(&["mainline", "scx:a b"], |_| ());
    let page = html(&Report::new(&recorded).unwrap());
    let (_, in_order) = page.split_once("<h3>Runs in order</h3>").unwrap();
    let (legend, _) = in_order.split_once("<svg ").unwrap();
    for shown in [
        "<b style=\"color:#0072b2\">\u{25cf}</b> mainline<",
        "<b style=\"color:#d55e00\">\u{25cf}</b> scx:a b<",
    ] {
        assert!(legend.contains(shown), "{shown} in {legend}");
    }
    // Runs 1 and 2 are warm-ups.
    let picture = pictures(&recorded, "wall: runs in order").remove(0);
    assert!(
        picture.contains(">run 3</text>") && picture.contains(">run 18</text>"),
        "{picture}"
    );
    assert!(page.contains("A hollow dot is far from the rest; it is included."));
    assert!(page.contains("the margin is grey"));
}
