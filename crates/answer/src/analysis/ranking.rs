//! Ranking: the rows that are best and worst by a figure, up to the noise.

use super::Row;
use crate::figure::Figure;

/// The rows at both ends of a figure: indexes into the rows that were ranked, the extreme one first.
///
/// A row belongs to an end if its difference from the extreme row is within the noise or is zero, or if the two share no
/// repeat. If every row qualifies,
/// none is marked. A row whose repeats differ widely may belong to both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// The best.
    pub best: Vec<usize>,
    /// The worst.
    pub worst: Vec<usize>,
}

impl Ranking {
    /// Ranks the rows.
    pub(super) fn of(rows: &[Row<'_>], figure: Figure) -> Self {
        let is_repeated = rows.iter().any(|row| row.samples().len() > 1);
        if is_repeated && figure == Figure::Max {
            // The noise of maxima is unknown.
            return Self::default();
        }
        let goodness: Vec<f64> = rows
            .iter()
            .map(|row| row.estimate(figure).mean)
            .map(|mean| if figure.higher_is_better() { mean } else { -mean })
            .collect();
        let by_goodness = |a: &usize, b: &usize| goodness[*a].total_cmp(&goodness[*b]);
        let indexes = 0..rows.len();
        // Of equal rows, the first: hence `rev`, as `max_by` returns the last.
        let (Some(best), Some(worst)) = (indexes.clone().rev().max_by(by_goodness), indexes.min_by(by_goodness)) else {
            return Self::default();
        };
        let unless_all =
            |rows_at_end: Vec<usize>| if rows_at_end.len() == rows.len() { Vec::new() } else { rows_at_end };
        Self {
            best: unless_all(end(rows, best, figure, End::Best)),
            worst: unless_all(end(rows, worst, figure, End::Worst)),
        }
    }

    /// Whether a row is among the best, and not among the worst too.
    pub fn is_best(&self, row: usize) -> bool {
        self.best.contains(&row) && !self.worst.contains(&row)
    }

    /// Whether a row is among the worst, and not among the best too.
    pub fn is_worst(&self, row: usize) -> bool {
        self.worst.contains(&row) && !self.best.contains(&row)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Best,
    Worst,
}

/// Every row that is not significantly less extreme than `extreme`.
fn end(rows: &[Row<'_>], extreme: usize, figure: Figure, side: End) -> Vec<usize> {
    let is_repeated = rows.iter().any(|row| row.samples().len() > 1);
    let is_as_extreme = |index: &usize| {
        let Some(difference) = rows[*index].difference(&rows[extreme], figure) else { return true };
        let is_better = (difference.mean > 0.0) == figure.higher_is_better();
        match difference.half_width {
            // A row may be more extreme than `extreme` in their common repeats, if one of them lacks repeats: it belongs to this
            // end, too.
            Some(half_width) => difference.mean.abs() <= half_width || is_better == (side == End::Best),
            // Single runs are ranked by their figures alone. If there are repeats, one common pair shows no noise: the rows count
            // as equal.
            None => is_repeated || difference.mean == 0.0,
        }
    };
    let others = (0..rows.len()).filter(|index| *index != extreme).filter(is_as_extreme);
    std::iter::once(extreme).chain(others).collect()
}
