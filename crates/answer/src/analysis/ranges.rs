//! Ranges of figures over the alternative readings of a recording (RP23).

use hoistway_measure::Operation;

use super::{JobAnalysis, Row, Variant};
use crate::document::ResultsDocument;
use crate::figure::Figure;

/// Relative differences below this are ignored.
const DIFFERENCE_MIN: f64 = 0.02;

/// How much wider a range is than the readings where the recorded queue hid a depth: in the programs of the fitted half nine of ten
/// figures are then inside (docs/recordings.md has the share of the judged half).
const HIDDEN: [(Figure, f64); 3] = [(Figure::Iops, 2.13), (Figure::Mean, 1.17), (Figure::P99, 1.43)];

/// The range of a figure that the readings of a recording with a hidden depth give, wide enough for most programs.
#[must_use]
pub fn widened(figure: Figure, (from, to): (f64, f64)) -> (f64, f64) {
    let factor = HIDDEN.into_iter().find(|(known, _)| *known == figure).map_or(1.0, |(_, factor)| factor);
    (from / factor, to * factor)
}

/// From the smallest to the largest value of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    pub(super) figure: Figure,
    /// The smallest.
    pub from: f64,
    /// The largest.
    pub to: f64,
}

impl Row<'_> {
    /// The range of a figure over all readings of the recording, this one included; `None` if it is within the noise of the repeats or
    /// 2 %.
    pub fn range(&self, figure: Figure) -> Option<Range> {
        let estimate = self.estimate(figure);
        let noise = estimate.half_width.unwrap_or(0.0).max(estimate.mean * DIFFERENCE_MIN);
        let range = self.ranges.iter().find(|range| range.figure == figure)?;
        let is_wide = range.from < estimate.mean - noise || range.to > estimate.mean + noise;
        is_wide.then_some(Range { from: range.from.min(estimate.mean), to: range.to.max(estimate.mean), ..*range })
    }
}

/// Adds the figures of the alternative readings to their rows.
pub(super) fn add(document: &ResultsDocument, variants: &[Variant<'_>], jobs: &mut [JobAnalysis<'_>]) {
    let Some(recording) = document.recording.as_deref() else { return };
    let hides_depth = recording.hides_depth();
    for figures in recording.alternatives.iter().flat_map(|alternative| &alternative.figures) {
        let job = jobs.iter_mut().find(|job| job.name == figures.job);
        let Some(row) = job.and_then(|job| row(job, figures.operation, variants, &figures.label)) else { continue };
        for (figure, value) in
            [(Figure::Iops, figures.iops), (Figure::Mean, figures.mean_ns), (Figure::P99, figures.p99_ns)]
        {
            match row.ranges.iter_mut().find(|range| range.figure == figure) {
                Some(range) => (range.from, range.to) = (range.from.min(value), range.to.max(value)),
                None => row.ranges.push(Range { figure, from: value, to: value }),
            }
        }
    }
    for row in jobs.iter_mut().flat_map(|job| &mut job.operations).flat_map(|operation| &mut operation.rows) {
        let is_another = recording.recorded_under.as_deref() != Some(&*variants[row.variant].label);
        for figure in HIDDEN.map(|(figure, _)| figure).into_iter().filter(|_| hides_depth && is_another) {
            let mean = row.estimate(figure).mean;
            if let Some(range) = row.ranges.iter_mut().find(|range| range.figure == figure) {
                (range.from, range.to) = widened(figure, (range.from.min(mean), range.to.max(mean)));
            }
        }
    }
}

fn row<'j, 'a>(
    job: &'j mut JobAnalysis<'a>,
    operation: Operation,
    variants: &[Variant<'_>],
    label: &str,
) -> Option<&'j mut Row<'a>> {
    let operation_analysis =
        job.operations.iter_mut().find(|operation_analysis| operation_analysis.operation == operation)?;
    operation_analysis.rows.iter_mut().find(|row| variants[row.variant].label == label)
}
