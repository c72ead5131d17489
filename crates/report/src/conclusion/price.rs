//! What the best at one thing loses at others.

use hoistway_results::comparison::{Comparison, Row};
use hoistway_results::{Figure, Operation};

use super::{Chosen, noun};
use crate::units;

/// A loss that is worth words, as a fraction.
const WORTH_TELLING: f64 = 0.02;
/// Losses that are told at most.
const LOSSES_MAX: usize = 2;

struct Loss {
    /// As a fraction of what the best has.
    fraction: f64,
    words: String,
}

/// The largest losses of a variant: how much worse than the best scheduler it is by the throughput of any job, and by
/// the 99th percentile of any other direction than the chosen one; over repeats, only what is beyond the noise.
pub(super) fn losses(comparison: &Comparison<'_>, chosen: &Chosen<'_>, variant: usize) -> Vec<String> {
    let mut losses: Vec<Loss> = Vec::new();
    for job in &comparison.jobs {
        for direction in &job.operations {
            let Some(own) = direction.row(variant) else { continue };
            let is_chosen = std::ptr::eq(direction, chosen.direction);
            for figure in [Figure::Iops, Figure::P99] {
                if is_chosen && (figure == chosen.figure || chosen.figure == Figure::Bandwidth || figure == Figure::P99)
                {
                    continue;
                }
                let others = direction.rows.iter().filter(|row| row.variant != variant);
                let worst =
                    others.filter_map(|other| loss(comparison, own, other, figure, &job.name, direction.operation));
                losses.extend(worst.max_by(|a, b| a.fraction.total_cmp(&b.fraction)));
            }
        }
    }
    losses.sort_by(|a, b| b.fraction.total_cmp(&a.fraction));
    losses.truncate(LOSSES_MAX);
    losses.into_iter().map(|loss| loss.words).collect()
}

fn loss(
    comparison: &Comparison<'_>,
    own: &Row,
    other: &Row,
    figure: Figure,
    job: &str,
    direction: Operation,
) -> Option<Loss> {
    let difference = own.difference(other, figure)?;
    if difference.is_significant() == Some(false) || (difference.pairs < 2 && comparison.repeats() > 1) {
        return None;
    }
    let relative = difference.relative?;
    let worse = if figure.higher_is_better() { -relative } else { relative };
    if worse < WORTH_TELLING {
        return None;
    }
    let than = &comparison.variants[other.variant].label;
    let noun = noun(figure, direction);
    let words = if relative >= 1.0 {
        format!("{} times the {noun} of {job} (against {than})", units::times(1.0 + relative))
    } else {
        format!("{} {noun} of {job} (against {than})", units::difference(relative))
    };
    // Losses of throughput end at 100 %, those of latency nowhere: compared as factors.
    let fraction = if figure.higher_is_better() { 1.0 / (1.0 - worse).max(1e-9) - 1.0 } else { worse };
    Some(Loss { fraction, words })
}
