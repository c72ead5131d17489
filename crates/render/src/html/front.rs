//! The settings of a search as points of the page's chart.

use crate::text::{figure_in_words, standing_in_words};
use hoistway_answer::tuning::{SettingResult, Tuning};
use hoistway_answer::{Figure, FigureName};
use serde::Serialize;

/// The settings of the first round, best first, by the figures of the objective.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Front {
    /// The figures, the objective's first.
    pub(crate) figures: Vec<Axis>,
    pub(crate) points: Vec<Point>,
}

/// A figure, as an axis of the chart.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Axis {
    #[serde(rename = "name")]
    text: String,
    /// The figure in words.
    pub(crate) label: String,
    /// The kind of unit: `rate`, `bandwidth` or `latency`.
    unit: &'static str,
}

/// A setting, as a point of the chart.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Point {
    /// A description with all its figures.
    pub(crate) words: String,
    /// The setting's label.
    pub(crate) setting: String,
    /// Its rank in the round, from 1.
    pub(crate) place: usize,
    /// The mean of each figure; `None` without such I/O.
    pub(crate) values: Vec<Option<f64>>,
    /// Whether it meets the conditions.
    pub(crate) holds: bool,
    /// Whether no other setting dominates it.
    pub(crate) on_front: bool,
    /// Whether it is the result of the search.
    pub(crate) is_best: bool,
    /// Whether it is the baseline.
    pub(crate) is_default: bool,
}

impl Front {
    pub(crate) fn of(tuning: &Tuning) -> Front {
        let names = tuning.objective.figures();
        let settings = tuning.rounds.first().map_or(&[][..], |round| &round.settings);
        let outcome = tuning.found.as_ref();
        let point = |(result, place): (&SettingResult, usize)| Point {
            words: standing_in_words(tuning, result),
            setting: result.setting.to_string(),
            place,
            values: names.iter().map(|name| result.figures.get(name).map(|spread| spread.mean)).collect(),
            holds: result.holds,
            on_front: tuning.front.contains(result),
            is_best: outcome.is_some_and(|outcome| outcome.best.setting == result.setting),
            is_default: outcome.is_some_and(|outcome| outcome.reference.setting == result.setting),
        };
        Front {
            figures: names.iter().map(|name| Axis::of(name)).collect(),
            points: settings.iter().zip(1..).map(point).collect(),
        }
    }
}

impl Axis {
    fn of(name: &FigureName) -> Axis {
        let unit = match name.figure {
            Figure::Iops => "rate",
            Figure::Bandwidth => "bandwidth",
            _ => "latency",
        };
        Axis { text: name.to_string(), label: figure_in_words(name), unit }
    }
}
