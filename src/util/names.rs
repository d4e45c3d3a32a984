// SPDX-License-Identifier: GPL-2.0-only
//! What to say of a name that does not exist.

/// A name this similar is probably meant (Jaro and Winkler; 1: equal).
const SIMILAR: f64 = 0.85;

/// `did you mean 'x'?`, or all names if none is similar.
pub fn instead(wrong: &str, names: &[&str]) -> String {
    meant(wrong, names).unwrap_or_else(|| format!("expected one of {}", names.join(", ")))
}

/// `did you mean 'x'?` None: no name is similar.
pub fn meant(wrong: &str, names: &[&str]) -> Option<String> {
    let similar = |name: &&&str| strsim::jaro_winkler(wrong, name);
    let nearest = names
        .iter()
        .max_by(|a, b| similar(a).total_cmp(&similar(b)));
    let nearest = nearest.filter(|name| similar(name) >= SIMILAR)?;
    Some(format!("did you mean '{nearest}'?"))
}

#[cfg(test)]
mod tests {
    use super::instead;

    #[test]
    fn a_similar_name_or_all() {
        let names = ["claim", "core_claim", "prev_core", "sync_local"];
        for (wrong, meant) in [
            ("claims", "claim"),
            ("prev-core", "prev_core"),
            ("sync", "sync_local"),
        ] {
            let expected = format!("did you mean '{meant}'?");
            assert_eq!(instead(wrong, &names), expected, "{wrong}");
        }
        for wrong in ["magic", "", "x"] {
            assert!(instead(wrong, &names).starts_with("expected one of claim, core_claim"));
        }
        assert_eq!(instead("x", &[]), "expected one of ");
    }
}
