//! A cell of a published table: the simulated and the published figure, and how they are judged.

use hoistway_measure::stats;
use serde::{Deserialize, Serialize};

/// A figure of a table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Row of the table.
    pub row: String,
    /// Column, with the unit.
    pub column: String,
    /// The simulated figure.
    pub ours: f64,
    /// Half of its 95 % confidence interval over repeats, relative to the figure; null for a single run.
    #[serde(default)]
    pub interval: Option<f64>,
    /// The published figure; null if only an order or a bound was published.
    pub published: Option<f64>,
    /// The relative error of the simulated figure.
    pub error: Option<f64>,
    /// Whether a device or a host was calibrated with it.
    pub calibration: bool,
    /// The claimed limit: of the error, of the distance from the published figure, or of the figure itself; null if
    /// nothing is claimed.
    pub tolerance: Option<f64>,
    /// Whether the simulated figure is within that limit; null if nothing is claimed, or for calibration.
    pub within: Option<bool>,
    /// How the simulated figure is judged.
    #[serde(skip)]
    pub(super) judgement: Judgement,
}

/// How a figure is judged.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Judgement {
    /// It was used for calibration: not judged.
    Calibration,
    /// Nothing is claimed about it.
    #[default]
    None,
    /// Its relative error is at most this.
    Error(f64),
    /// Its distance from the published figure is at most this.
    Distance(f64),
    /// It is at most this.
    AtMost(f64),
    /// It is at least this.
    AtLeast(f64),
    /// Its distance from 1 is at most this.
    NearOne(f64),
}

impl Cell {
    /// A figure with its judgement.
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

/// The median; 0 without figures.
pub(super) fn median(figures: Vec<f64>) -> f64 {
    stats::median(figures).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_cells_are_not_judged_and_others_by_their_claimed_error() {
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
