//! What a variant loses and gains beside the figure that it is judged by.

use super::focus::{Focus, has_percentiles, throughput};
use super::party::Party;
use super::ratio::{Ratio, logarithm};
use crate::comparison::Comparison;
use crate::document::{Aspect, Shift};
use crate::figure::Figure;
use crate::operation::Operation;

/// A loss of this factor is told, and counts, although the repeats do not agree on it: caution is cheaper than a stall.
const UNCERTAIN_FACTOR: f64 = 1.25;
/// The same of largest latencies, each of which is a single I/O.
const UNCERTAIN_FACTOR_OF_MAX: f64 = 2.0;

/// Whether a loss by this factor is told although it may be chance.
pub(crate) fn is_told_though_uncertain(aspect: Aspect, factor: f64) -> bool {
    let is_max = matches!(aspect, Aspect::Figure(Figure::Max));
    factor >= if is_max { UNCERTAIN_FACTOR_OF_MAX } else { UNCERTAIN_FACTOR }
}

/// What changes from one variant to another.
pub(super) struct Shifts {
    /// Worst first.
    pub(super) losses: Vec<Shift>,
    /// Largest first.
    pub(super) gains: Vec<Shift>,
}

/// All changes of at least `smallest_effect`.
pub(super) fn shifts(
    comparison: &Comparison<'_>,
    focus: &Focus<'_>,
    [from, to]: [usize; 2],
    smallest_effect: f64,
) -> Shifts {
    let mut shifts = Shifts { losses: Vec::new(), gains: Vec::new() };
    for party in Party::all(comparison) {
        for (operation, aspect) in aspects(&party) {
            // With one figure in focus, that is what everything else is weighed against.
            let is_focus = focus.parts.iter().any(|part| part.is_shown_by(&party, operation, aspect));
            if is_focus && focus.parts.len() == 1 {
                continue;
            }
            let Some((shift, ratio)) = shift(comparison, &party, operation, aspect, [from, to]) else { continue };
            if shift.factor < 1.0 + smallest_effect {
                continue;
            }
            if ratio.mean > 0.0 {
                if shift.significant != Some(false) {
                    shifts.gains.push(shift);
                }
                continue;
            }
            let is_max = matches!(aspect, Aspect::Figure(Figure::Max));
            if shift.significant != Some(false) || is_told_though_uncertain(aspect, shift.factor) {
                let is_own = focus.parts.iter().any(|part| part.party.jobs[0].job == party.jobs[0].job);
                shifts.losses.push(Shift { weighs: !is_focus && (is_own || !is_max), ..shift });
            }
        }
    }
    for side in [&mut shifts.losses, &mut shifts.gains] {
        side.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    }
    shifts
}

/// What is looked at of a party.
fn aspects(party: &Party<'_>) -> Vec<(Option<Operation>, Aspect)> {
    let mut aspects = vec![(None, Aspect::Fairness)];
    for operation in party.operations() {
        let mut add = |aspect| aspects.push((Some(operation), aspect));
        add(Aspect::Figure(throughput(party, operation)));
        add(Aspect::Figure(Figure::Mean));
        add(Aspect::Figure(Figure::Max));
        if has_percentiles(party, operation) {
            add(Aspect::Figure(Figure::P99));
            if party.jobs.len() > 1 {
                add(Aspect::Worst(Figure::P99));
            }
        }
    }
    aspects
}

fn shift(
    comparison: &Comparison<'_>,
    party: &Party<'_>,
    operation: Option<Operation>,
    aspect: Aspect,
    [from, to]: [usize; 2],
) -> Option<(Shift, Ratio)> {
    let higher_is_better = match aspect {
        Aspect::Figure(figure) | Aspect::Worst(figure) => figure.higher_is_better(),
        Aspect::Fairness => true,
    };
    let mut pairs = Vec::new();
    for run in &comparison.variants[from].runs {
        let value = |variant| party.value(operation, aspect, variant, run.repeat);
        pairs.extend(value(from).zip(value(to)));
    }
    let logarithms: Option<Vec<f64>> = pairs.iter().map(|(from, to)| logarithm(*from, *to, higher_is_better)).collect();
    let ratio = Ratio::of(&logarithms?)?;
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let shown = |values: Vec<f64>| match aspect {
        // As the factor is that of a typical run, and the largest of all runs may be the same in both.
        Aspect::Figure(Figure::Max) => (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp(),
        _ => values.iter().sum::<f64>() / values.len() as f64,
    };
    let shift = Shift {
        job: party.name().to_owned(),
        jobs: party.jobs.len() as u32,
        operation,
        aspect,
        from: shown(before),
        to: shown(after),
        factor: ratio.mean.abs().exp(),
        significant: ratio.is_significant(),
        weighs: true,
    };
    Some((shift, ratio))
}
