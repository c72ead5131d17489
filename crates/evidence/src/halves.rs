//! Which rows of a set of measurements a model may be fitted to.
//!
//! Used by: `reproduction`; its program `hoistway-evidence`.
//! Tests: below.
//!
//! Half of the rows, by a hash of their names, are fitted and the others judge. The rule knows neither figures nor models, so nobody can
//! choose.

/// Whether the row with this name judges a model; if not, the model may be fitted to it.
#[must_use]
pub fn is_judged(row: &str) -> bool {
    // FNV-1a, of which one bit decides.
    let hash = row
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash >> 32 & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_half_of_many_names_judge_and_the_rule_does_not_change() {
        let names = (0..1000).map(|number| format!("row {number}, none"));
        let judged = names.filter(|name| is_judged(name)).count();
        assert!((400..600).contains(&judged), "{judged}");
        assert_eq!(
            ["11c none 1", "11c kyber 1", "11d mq-deadline 4", "12b bfq 4"].map(is_judged),
            [true, false, false, true]
        );
    }
}
