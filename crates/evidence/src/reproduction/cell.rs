//! A figure, here and as it was published.

use hoistway_measure::stats;
use serde::{Deserialize, Serialize};

/// A figure of a table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Row of the table.
    pub row: String,
    /// Column, with the unit.
    pub column: String,
    /// What comes out here.
    pub ours: f64,
    /// Half the 95 % confidence interval of that over repeats, as a fraction of it; null of one run.
    #[serde(default)]
    pub interval: Option<f64>,
    /// What was published; null if only an order or a bound was.
    pub published: Option<f64>,
    /// Ours over what was published, less 1.
    pub error: Option<f64>,
    /// Whether a device or a host was calibrated on it.
    pub calibration: bool,
    /// How large the error may be, or how far the figure may lie from what was published, or where its bound is; null if
    /// nothing is claimed.
    pub tolerance: Option<f64>,
    /// Whether it is as close as that; null if nothing is claimed, and for what was calibrated on.
    pub within: Option<bool>,
    /// How it is judged, for the mean of several.
    #[serde(skip)]
    pub(super) judgement: Judgement,
}

/// How a figure is judged.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Judgement {
    /// It was calibrated on: not at all.
    Calibration,
    /// Nothing is claimed of it.
    #[default]
    None,
    /// Its error is at most such a fraction.
    Error(f64),
    /// It is no further from what was published than this.
    Distance(f64),
    /// It is at most this.
    AtMost(f64),
    /// It is at least this.
    AtLeast(f64),
    /// It is no further from 1 than this.
    NearOne(f64),
}

impl Cell {
    /// A figure and its judgement.
    #[must_use]
    pub fn new(
        row: impl Into<String>,
        column: impl Into<String>,
        ours: f64,
        published: Option<f64>,
        judgement: Judgement,
    ) -> Cell {
        let error = published.filter(|&published| published != 0.0).map(|published| ours / published - 1.0);
        let (tolerance, within) = match judgement {
            Judgement::Calibration | Judgement::None => (None, None),
            Judgement::Error(most) => (Some(most), error.map(|error| error.abs() <= most)),
            Judgement::Distance(most) => (Some(most), published.map(|published| (ours - published).abs() <= most)),
            Judgement::AtMost(most) => (Some(most), Some(ours <= most)),
            Judgement::AtLeast(least) => (Some(least), Some(ours >= least)),
            Judgement::NearOne(most) => (Some(most), Some((ours - 1.0).abs() <= most)),
        };
        let calibration = judgement == Judgement::Calibration;
        Cell {
            row: row.into(),
            column: column.into(),
            ours,
            interval: None,
            published,
            error,
            calibration,
            tolerance,
            within,
            judgement,
        }
    }
}

/// The median of some figures; 0 of none.
pub(super) fn median(figures: Vec<f64>) -> f64 {
    stats::median(figures).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_calibrated_on_is_not_judged_and_all_else_by_what_is_claimed_of_it() {
        let cell = |judgement| Cell::new("kyber", "IOPS", 110.0, Some(100.0), judgement);
        assert_eq!((cell(Judgement::Calibration).within, cell(Judgement::Calibration).calibration), (None, true));
        assert_eq!((cell(Judgement::None).within, cell(Judgement::None).calibration), (None, false));
        assert_eq!(cell(Judgement::Error(0.11)).within, Some(true));
        assert_eq!(cell(Judgement::Error(0.09)).within, Some(false));
        assert_eq!(cell(Judgement::Distance(9.0)).within, Some(false));
        assert_eq!(cell(Judgement::AtMost(110.0)).within, Some(true));
        assert_eq!(cell(Judgement::AtLeast(111.0)).within, Some(false));
        assert_eq!([108.0, 110.0].map(|most| cell(Judgement::NearOne(most)).within), [Some(false), Some(true)]);
        assert!((cell(Judgement::None).error.unwrap() - 0.1).abs() < 1e-9);
    }
}
