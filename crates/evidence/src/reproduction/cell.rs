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
    /// What is claimed of the simulated figure, such as "error at most 7 %"; null if nothing is, or for calibration.
    pub claim: Option<String>,
    /// Whether that holds; null if nothing is claimed, or for calibration.
    pub holds: Option<bool>,
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

impl Judgement {
    /// What is claimed, in words; `None` if nothing is.
    fn claim(self) -> Option<String> {
        let text = match self {
            Judgement::Calibration | Judgement::None => return None,
            Judgement::Error(most) => format!("error at most {} %", rounded(100.0 * most)),
            Judgement::Distance(most) => format!("at most {} away", rounded(most)),
            Judgement::AtMost(most) => format!("at most {}", rounded(most)),
            Judgement::AtLeast(least) => format!("at least {}", rounded(least)),
            Judgement::NearOne(most) => format!("{} to {}", rounded(1.0 - most), rounded(1.0 + most)),
        };
        Some(text)
    }

    /// Whether the claim holds of a figure and its published value; `None` if nothing is claimed.
    fn holds(self, ours: f64, published: Option<f64>) -> Option<bool> {
        match self {
            Judgement::Calibration | Judgement::None => None,
            Judgement::Error(most) => relative_error(ours, published).map(|error| error.abs() <= most),
            Judgement::Distance(most) => published.map(|published| (ours - published).abs() <= most),
            Judgement::AtMost(most) => Some(ours <= most),
            Judgement::AtLeast(least) => Some(ours >= least),
            Judgement::NearOne(most) => Some((ours - 1.0).abs() <= most),
        }
    }
}

/// A limit with at most two digits after the point.
fn rounded(limit: f64) -> f64 {
    (100.0 * limit).round() / 100.0
}

fn relative_error(ours: f64, published: Option<f64>) -> Option<f64> {
    published.filter(|&published| published != 0.0).map(|published| ours / published - 1.0)
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
        Cell {
            row: row.into(),
            column: column.into(),
            ours,
            interval: None,
            published,
            error: relative_error(ours, published),
            calibration: judgement == Judgement::Calibration,
            claim: judgement.claim(),
            holds: judgement.holds(ours, published),
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
        assert_eq!((cell(Judgement::Calibration).holds, cell(Judgement::Calibration).calibration), (None, true));
        assert_eq!((cell(Judgement::None).holds, cell(Judgement::None).calibration), (None, false));
        assert_eq!(cell(Judgement::Error(0.11)).holds, Some(true));
        assert_eq!(cell(Judgement::Error(0.09)).holds, Some(false));
        assert_eq!(cell(Judgement::Distance(9.0)).holds, Some(false));
        assert_eq!(cell(Judgement::AtMost(110.0)).holds, Some(true));
        assert_eq!(cell(Judgement::AtLeast(111.0)).holds, Some(false));
        assert_eq!([108.0, 110.0].map(|most| cell(Judgement::NearOne(most)).holds), [Some(false), Some(true)]);
        let claim = |judgement| cell(judgement).claim.unwrap();
        assert_eq!(claim(Judgement::Error(0.07)), "error at most 7 %");
        assert_eq!(claim(Judgement::AtLeast(3.0)), "at least 3");
        assert_eq!(claim(Judgement::NearOne(0.4)), "0.6 to 1.4");
        assert!((cell(Judgement::None).error.unwrap() - 0.1).abs() < 1e-9);
    }
}
