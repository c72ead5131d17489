//! Focus: the figures that results are judged by, with weights.
//!
//! Used by: `document`, `verdict`; crates `experiment`, `hoistway`, `render`.
//! Tests: below, `crates/answer/tests/parts.rs`.
//!
//! ```text
//! backends:read:p99        this figure alone
//! wal:sync:max*2           with twice the weight of the others
//! ```

use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::figure_name::{FigureName, FigureNameError};

/// Weights that a text may give: a million times smaller than another, a weight would no longer matter.
const WEIGHTS: RangeInclusive<f64> = 0.001..=1000.0;

/// A figure with its weight in the judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeightedFigure {
    /// The figure.
    pub figure: FigureName,
    /// Its weight relative to other figures: above 0, and from 0.001 to 1000 if parsed from a text.
    pub weight: f64,
}

impl From<FigureName> for WeightedFigure {
    fn from(figure: FigureName) -> Self {
        Self { figure, weight: 1.0 }
    }
}

impl FromStr for WeightedFigure {
    type Err = FigureNameError;

    fn from_str(text: &str) -> Result<Self, FigureNameError> {
        // An asterisk that is part of the job's name is followed by a colon.
        let Some((name, weight)) = text.rsplit_once('*').filter(|(_, weight)| !weight.contains(':')) else {
            return Ok(text.parse::<FigureName>()?.into());
        };
        let weight = weight.parse().ok().filter(|weight| WEIGHTS.contains(weight));
        let weight = weight.ok_or_else(|| FigureNameError {
            text: text.to_owned(),
            problem: "after * a weight is expected, a number from 0.001 to 1000, such as p99*2".to_owned(),
        })?;
        Ok(Self { figure: name.parse()?, weight })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_stands_behind_an_asterisk() {
        let read = |text: &str| text.parse::<WeightedFigure>().map(|focus| (focus.figure.to_string(), focus.weight));
        assert_eq!(read("a:read:p99"), Ok(("a:read:p99".to_owned(), 1.0)));
        assert_eq!(read("wal:sync:max*2.5"), Ok(("wal:sync:max".to_owned(), 2.5)));
        assert_eq!(read("a*b:read:p99"), Ok(("a*b:read:p99".to_owned(), 1.0)));
        for wrong in
            ["a:read:p99*", "a:read:p99*0", "a:read:p99*-1", "a:read:p99*inf", "a:read:p99*x", "a:read:p99*1e308"]
        {
            assert!(read(wrong).unwrap_err().to_string().contains("a number from 0.001 to 1000"), "{wrong}");
        }
    }
}
