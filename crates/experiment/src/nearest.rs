//! Suggests the known name that is closest to an unknown one.
//!
//! Used by: `plan`, `load`, `tune`; crate `hoistway`.
//! Tests: below.

/// Minimum similarity of two names.
const SUGGESTION_SIMILARITY: f64 = 0.75;

/// `did you mean "none"? ` if a known name is similar; otherwise an empty text. Comes before the expected values.
#[must_use]
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    // A known name that equals the given one is not available here, so suggesting it would not help.
    let others = known.into_iter().filter(|known| *known != name);
    let scored = others.map(|known| (strsim::jaro_winkler(known, name), known));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(similarity, _)| *similarity >= SUGGESTION_SIMILARITY);
    best.map(|(_, known)| format!("did you mean \"{known}\"? ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_put_right_and_other_names_are_not() {
        let known = ["none", "mq-deadline", "kyber"];
        assert_eq!(hint("nonee", known), "did you mean \"none\"? ");
        assert_eq!(hint("mq_deadline", known), "did you mean \"mq-deadline\"? ");
        assert_eq!(hint("cfq", known), "");
        assert_eq!(hint("", known), "");
        assert_eq!(hint("none", known), "");
        assert_eq!(hint("foo", ["tcp", "socket"]), "");
    }
}
