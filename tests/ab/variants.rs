// SPDX-License-Identifier: GPL-2.0-only
//! Names of variants.

use scx_roost::ab::real::arm;
use scx_roost::ab::variant::{Kind, Scope, Variant, parse_all};

fn error(name: &str) -> String {
    format!("{:#}", Variant::parse(name).unwrap_err())
}

#[test]
fn a_preset_with_what_is_other() {
    let variant = Variant::parse("roost+claim=off+prev_core+slice-us=1500").unwrap();
    let Kind::Roost(roost) = variant.kind else {
        panic!("{variant:?}");
    };
    let (change, settings) = *roost;
    assert_eq!(change.preset.as_deref(), Some("roost"));
    assert_eq!(
        (change.enable, change.disable),
        (vec!["prev_core".to_string()], vec!["claim".to_string()])
    );
    assert_eq!(change.set["slice-us"], "1500");
    assert!(
        !settings
            .features
            .has(scx_roost::policy::features::bits::claim)
    );
    assert_eq!(settings.arm(8).task.slice_ns, 1_500_000);
}

#[test]
fn the_kernels_own_and_others() {
    assert_eq!(Variant::parse("eevdf").unwrap().kind, Kind::Eevdf);
    let words = |name| match Variant::parse(name).unwrap().kind {
        Kind::Scx(words) => words,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        words("scx:/usr/bin/scx_cosmos -m all"),
        ["/usr/bin/scx_cosmos", "-m", "all"]
    );
    assert_eq!(
        words(r#"scx:a 'b c' "d \"e" f\ g ''"#),
        ["a", "b c", "d \"e", "f g", ""]
    );
    assert_eq!(words(r#"scx:a "b\c" d # e"#), ["a", r"b\c", "d"]);
}

#[test]
fn decisions_in_rust_need_a_build_that_has_them() {
    let parsed = Variant::parse("rust:roost+wide_idle=off+slice-us=1500");
    if cfg!(feature = "rustland") {
        let Kind::Rust(options) = parsed.unwrap().kind else {
            panic!("it decides in userspace");
        };
        assert_eq!(
            options.join(" "),
            "--backend rust --preset=roost --disable=wide_idle --slice-us=1500"
        );
        return;
    }
    assert_eq!(
        format!("{:#}", parsed.unwrap_err()),
        "variant rust:roost+wide_idle=off+slice-us=1500: this scx_roost cannot decide in \
         userspace: build it with the cargo feature rustland"
    );
}

#[test]
fn invalid_variants_are_refused() {
    let nearest = error("roast");
    assert!(nearest.ends_with("unknown preset 'roast': did you mean 'roost'?"));
    for unknown in ["EEVDF", "scx_cosmos", "lavd+claim"] {
        let (told, preset) = (error(unknown), unknown.trim_end_matches("+claim"));
        let known = format!(
            "variant {unknown}: unknown preset '{preset}': expected eevdf, pinned, scx:COMMAND (scx:/usr/bin/scx_lavd), a preset of scx_roost: roost, mainline"
        );
        assert!(told.starts_with(&known), "{told}");
    }
    assert!(error("roost+claims=off").contains("there is no feature or tunable claims"));
    assert!(error("roost+claim=no").contains("claim must be on or off, not no"));
    assert!(error("roost+slice-us=5").contains("slice-us 5: 100 to 100000 us are possible"));
    assert_eq!(
        error("scx:"),
        "variant scx: needs a command, as in scx:/usr/bin/scx_lavd"
    );
    assert_eq!(error("scx:a 'b"), "variant scx:a 'b: a quote is not closed");
    assert!(error(r"scx:a \").ends_with("it ends within a quote, or with a backslash"));
}

#[test]
fn two_or_more_and_no_two_alike() {
    let all = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        parse_all(&names)
            .map(|v| v.len())
            .map_err(|e| e.to_string())
    };
    assert_eq!(all(&["mainline", "roost"]), Ok(2));
    assert!(
        all(&["roost"])
            .unwrap_err()
            .contains("two or more variants")
    );
    assert!(
        all(&["roost", "eevdf", "roost"])
            .unwrap_err()
            .contains("roost is given twice")
    );
}

#[test]
fn what_is_of_the_machine_is_not_for_a_command() {
    let refused = |names: &[&str]| {
        let variants: Vec<_> = names.iter().map(|n| Variant::parse(n).unwrap()).collect();
        assert!(Scope::Machine.check(&variants).is_ok());
        Scope::Workload.check(&variants).map_err(|e| e.to_string())
    };
    assert_eq!(refused(&["mainline", "mainline+prev_core"]), Ok(()));
    let eevdf = refused(&["mainline", "eevdf"]).unwrap_err();
    assert!(
        eevdf.starts_with("eevdf schedules the whole machine"),
        "{eevdf}"
    );
    assert!(refused(&["scx:a", "mainline"]).is_err());
    let idle = refused(&["mainline", "mainline+avg_idle=off"]).unwrap_err();
    assert!(idle.contains("differ in avg_idle"), "{idle}");
    for tunable in ["rescue-us=2000", "migration-cost-us=100"] {
        let wide = format!("mainline+{tunable}");
        for names in [[&wide[..], "roost"], ["roost", &wide[..]]] {
            let told = refused(&names).unwrap_err();
            let name = tunable.split('=').next().unwrap();
            assert!(
                told.contains(&format!("sets {name}, which applies to the whole machine")),
                "{told}"
            );
        }
    }
}

/// This holds for any other variants, in any order.
#[test]
fn an_arm_has_nothing_of_the_variants_before() {
    use scx_roost::policy::arms::{Arms, DEFAULT_ARM};
    use scx_roost::policy::settings::Settings;
    use scx_roost::wire::protocol::Op;
    let variants = ["mainline+slice-us=1000", "mainline", "roost+fits-margin=5"]
        .map(|n| Variant::parse(n).unwrap());
    let mut arms = Arms::new(Settings::default());
    let mut told = |op: Op| match op {
        Op::ArmAdd { arm, preset, .. } => {
            arms.add(&arm, preset.as_deref(), None).unwrap();
            None
        }
        Op::Reset { arm } => {
            arms.reset(&arm).unwrap();
            None
        }
        Op::Set { arm, change } => {
            arms.change(&arm, &change).unwrap();
            let slot = arms.slot(&arm).unwrap();
            Some(arms.get(slot).unwrap().settings.clone())
        }
        other => panic!("{other:?}"),
    };
    for (round, others) in variants.iter().enumerate() {
        let name = format!("ab{round}");
        for op in arm::becomes(DEFAULT_ARM, others).unwrap() {
            told(op);
        }
        told(arm::made(&name));
        for variant in variants.iter().chain(variants.iter().rev()) {
            let settings = arm::becomes(&name, variant).unwrap().map(&mut told);
            let Kind::Roost(wanted) = &variant.kind else {
                panic!("{variant:?}");
            };
            assert_eq!(
                settings[1].as_ref(),
                Some(&wanted.1),
                "{} beside {}",
                variant.name,
                others.name
            );
        }
    }
    let eevdf = Variant::parse("eevdf").unwrap();
    assert!(arm::becomes("ab", &eevdf).is_none());
}
