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
    /// What the figure is without the effect: with none in the place of the scheduler, or with two settings swapped; null if
    /// that is not known. Nothing is claimed that holds for both figures.
    #[serde(default)]
    pub without: Option<f64>,
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
    /// It is at most this many times the published figure, and the published figure at most this many times it.
    Factor(f64),
}

/// A claim asks at least this part of a published effect, on a logarithmic scale.
const PART_OF_EFFECT: f64 = 0.5;
/// Published figures that differ by less count as equal.
const SMALLEST_EFFECT: f64 = 0.1;

impl Judgement {
    /// At least half of a published ratio to the figure without the effect.
    pub(super) fn half_of(ratio: f64) -> Judgement {
        let bound = ratio.powf(PART_OF_EFFECT);
        if ratio > 1.0 { Judgement::AtLeast(bound) } else { Judgement::AtMost(bound) }
    }

    /// An error of at most this, or less if half of the effect would be missed by it; nothing where the published figures are
    /// equal with and without the effect.
    pub(super) fn error_within_effect(most: f64, published: f64, without: f64) -> Judgement {
        let effect = (published / without).max(without / published);
        if effect < 1.0 + SMALLEST_EFFECT {
            return Judgement::None;
        }
        // Towards the figure without the effect the published one is multiplied by at most 1 + error, or divided by 1 / (1 - error).
        let allowed =
            if published < without { effect.powf(PART_OF_EFFECT) - 1.0 } else { 1.0 - effect.powf(-PART_OF_EFFECT) };
        Judgement::Error(most.min(allowed))
    }

    /// At most this factor, or less if half of the effect would be missed by it.
    pub(super) fn factor_within_effect(most: f64, published: f64, without: Option<f64>) -> Judgement {
        let effect = without.map_or(f64::INFINITY, |without| (published / without).max(without / published));
        let is_effect = effect >= 1.0 + SMALLEST_EFFECT;
        Judgement::Factor(if is_effect { most.min(effect.powf(PART_OF_EFFECT)) } else { most })
    }

    /// What is claimed, in words; `None` if nothing is.
    fn claim(self) -> Option<String> {
        let text = match self {
            Judgement::Calibration | Judgement::None => return None,
            Judgement::Error(most) => format!("error at most {} %", (10_000.0 * most).round() / 100.0),
            Judgement::Distance(most) => format!("at most {} away", rounded(most)),
            Judgement::AtMost(most) => format!("at most {}", rounded(most)),
            Judgement::AtLeast(least) => format!("at least {}", rounded(least)),
            Judgement::NearOne(most) => format!("{} to {}", rounded(1.0 - most), rounded(1.0 + most)),
            Judgement::Factor(most) => format!("within a factor of {}", rounded(most)),
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
            Judgement::Factor(most) => published.map(|published| ours <= published * most && published <= ours * most),
        }
    }
}

/// A limit with at most three digits after the point.
fn rounded(limit: f64) -> f64 {
    (1000.0 * limit).round() / 1000.0
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
            without: None,
            judgement,
        }
    }

    /// The same beside the figure without the effect. A claim that holds of both is withdrawn.
    #[must_use]
    pub(super) fn beside(mut self, without: f64) -> Cell {
        self.without = Some(without);
        if self.holds == Some(true) && self.judgement.holds(without, self.published) == Some(true) {
            (self.claim, self.holds) = (None, None);
        }
        self
    }

    /// A ratio that is 1 without the effect.
    #[must_use]
    pub(super) fn ratio(
        row: impl Into<String>,
        column: impl Into<String>,
        ours: f64,
        published: Option<f64>,
        judgement: Judgement,
    ) -> Cell {
        Cell::new(row, column, ours, published, judgement).beside(1.0)
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
        assert_eq!(claim(Judgement::Factor(2.0)), "within a factor of 2");
        assert_eq!([1.05, 1.2].map(|most| cell(Judgement::Factor(most)).holds), [Some(false), Some(true)]);
        assert!((cell(Judgement::None).error.unwrap() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_claim_that_holds_without_the_effect_is_withdrawn_and_a_missed_one_stays() {
        let ratio = |ours, judgement| {
            let cell = Cell::ratio("bfq", "over none", ours, None, judgement);
            (cell.holds, cell.claim.is_some())
        };
        assert_eq!(ratio(0.6, Judgement::AtMost(1.02)), (None, false));
        assert_eq!(ratio(0.6, Judgement::AtMost(0.8)), (Some(true), true));
        assert_eq!(ratio(1.1, Judgement::AtMost(1.02)), (Some(false), true));
        assert_eq!(ratio(3.0, Judgement::AtLeast(1.0)), (None, false));
        let as_fast_as_none = Cell::new("noop", "IOPS", 104.0, Some(100.0), Judgement::Error(0.07)).beside(103.0);
        assert_eq!((as_fast_as_none.claim, as_fast_as_none.without), (None, Some(103.0)));
    }

    #[test]
    fn half_of_an_effect_is_asked_and_nothing_where_there_is_none() {
        assert_eq!(Judgement::half_of(16.0), Judgement::AtLeast(4.0));
        assert_eq!(Judgement::half_of(0.25), Judgement::AtMost(0.5));
        assert_eq!(Judgement::error_within_effect(0.1, 104.0, 100.0), Judgement::None);
        assert_eq!(Judgement::error_within_effect(0.1, 400.0, 100.0), Judgement::Error(0.1));
        let [above, below] = [(121.0, 100.0), (100.0, 121.0)].map(|(published, without)| {
            let Judgement::Error(most) = Judgement::error_within_effect(0.5, published, without) else { panic!() };
            most
        });
        assert!((121.0 * (1.0 - above) - 110.0).abs() < 1e-9, "{above}");
        assert!((100.0 * (1.0 + below) - 110.0).abs() < 1e-9, "{below}");
        let factor = |without| Judgement::factor_within_effect(2.0, 100.0, without);
        assert_eq!([None, Some(99.0), Some(10.0)].map(factor), [Judgement::Factor(2.0); 3]);
        assert_eq!(factor(Some(144.0)), Judgement::Factor(1.2));
    }
}
