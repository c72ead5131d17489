//! How many cases a property has.

use proptest::prelude::ProptestConfig;

/// Cases of a property: `HOISTWAY_CASES`, or the default.
pub fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("HOISTWAY_CASES").ok().map(|text| text.parse().expect("HOISTWAY_CASES is a number"));
    ProptestConfig::with_cases(cases.unwrap_or(default))
}
