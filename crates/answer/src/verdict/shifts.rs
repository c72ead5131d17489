//! What a variant loses and gains beside the figure that it is judged by.

use super::focus::{Focus, has_percentiles, throughput};
use super::party::Party;
use super::ratio::{Ratio, logarithm};
use super::score::WeightedParty;
use super::turn::NOTICED_SHARE;
use super::waiting::Role;
use crate::analysis::Analysis;
use crate::document::{Aspect, Shift, is_cut_off};
use crate::figure::Figure;
use hoistway_measure::Operation;

/// A loss of this factor is reported, and counts, although the repeats do not agree on it: caution is cheaper than a stall. A smaller one is reported
/// if it would be more than is gained, and does not count.
const UNCERTAIN_FACTOR: f64 = 1.25;
/// A loss of this factor of a largest latency, which is a single I/O, is reported although it may be chance, and counts if it is not.
const LARGE_FACTOR_OF_MAX: f64 = 2.0;

/// Latencies up to this one, ns, make no difference to people.
const UNNOTICED_NS: f64 = 100_000.0;
/// Seconds that a user waits longer or shorter, from which on they are named before everything else.
const LONG_WAIT_NS: f64 = 1e8;

/// Whether it is that of a single I/O.
fn is_max(aspect: Aspect) -> bool {
    matches!(aspect, Aspect::Figure(Figure::Max))
}

/// Whether a loss by this factor is reported although it may be chance. `gain` is what is gained for it, as a factor, if anything.
pub(crate) fn is_reported_though_uncertain(aspect: Aspect, factor: f64, gain: Option<f64>) -> bool {
    match gain {
        _ if is_max(aspect) => factor >= LARGE_FACTOR_OF_MAX,
        Some(gain) => factor >= UNCERTAIN_FACTOR.min(gain),
        None => factor >= UNCERTAIN_FACTOR,
    }
}

/// What is shown of the values of the runs, beside the factor of a typical run: their mean, and of largest latencies the geometric one,
/// as the largest of all runs may be the same on both sides.
pub(crate) fn shown(aspect: Aspect, values: &[f64]) -> f64 {
    let mean = |of: fn(f64) -> f64| values.iter().copied().map(of).sum::<f64>() / values.len() as f64;
    if is_max(aspect) { mean(f64::ln).exp() } else { mean(|value| value) }
}

/// Whether a loss can outweigh a gain. A largest latency is that of a single I/O, which in one run met a stall and in the next one did not:
/// it counts if it is of the job in focus, the runs agree on it, and it is large; else the number of runs would decide.
pub(crate) fn can_outweigh(aspect: Aspect, is_of_focus: bool, significant: Option<bool>, factor: f64) -> bool {
    let is_certain = significant != Some(false);
    if is_max(aspect) {
        is_of_focus && is_certain && factor >= LARGE_FACTOR_OF_MAX
    } else {
        is_certain || factor >= UNCERTAIN_FACTOR
    }
}

/// What changes from one variant to another.
pub(super) struct Shifts {
    /// Worst first.
    pub(super) losses: Vec<Shift>,
    /// Largest first.
    pub(super) gains: Vec<Shift>,
    /// Gains that the repeats do not agree on, each by itself.
    pub(super) uncertain_gains: Vec<Shift>,
}

/// All changes of at least `smallest_effect`. `gain` is what the change brings in the focus, as a factor, if anything.
pub(super) fn shifts(
    analysis: &Analysis<'_>,
    (focus, stakes): (&Focus<'_>, &[WeightedParty<'_>]),
    [from, to]: [usize; 2],
    smallest_effect: f64,
    gain: Option<f64>,
) -> Shifts {
    let mut shifts = Shifts { losses: Vec::new(), gains: Vec::new(), uncertain_gains: Vec::new() };
    for stake in stakes {
        let party = &stake.party;
        let loop_ns = stake.loop_ns([from, to]);
        for (operation, aspect) in aspects(stake) {
            // With one figure in focus, that is what everything else is weighed against.
            let is_focus = focus.parts.iter().any(|part| part.is_covered_by(party, operation, aspect));
            if is_focus && focus.parts.len() == 1 {
                continue;
            }
            let Some((shift, ratio)) = shift(analysis, party, operation, aspect, [from, to]) else { continue };
            if shift.factor < 1.0 + smallest_effect
                || is_too_short_to_notice(&shift, loop_ns)
                || is_hidden(party, &shift, [from, to])
            {
                continue;
            }
            if ratio.mean > 0.0 {
                let is_certain = shift.significant != Some(false);
                let gains = if is_certain { &mut shifts.gains } else { &mut shifts.uncertain_gains };
                gains.push(Shift { weighs: !is_focus && !is_max(aspect), ..shift });
            } else if shift.significant != Some(false) || is_reported_though_uncertain(aspect, shift.factor, gain) {
                let is_own = focus.parts.iter().any(|part| part.party.jobs[0].job == party.jobs[0].job);
                let weighs = !is_focus && can_outweigh(aspect, is_own, shift.significant, shift.factor);
                shifts.losses.push(Shift { weighs, ..shift });
            }
        }
    }
    for side in [&mut shifts.losses, &mut shifts.gains, &mut shifts.uncertain_gains] {
        side.sort_by(|a, b| {
            let [of_a, of_b] = [a, b].map(|shift| long_wait_ns(shift, stakes));
            of_b.total_cmp(&of_a).then(b.factor.total_cmp(&a.factor)).then(a.job.cmp(&b.job))
        });
    }
    shifts
}

/// Whether a latency is too short on both sides, by itself or beside the loop that it is part of, for its ratio to mean anything; or
/// whether it is a percentile that the histogram cut off.
fn is_too_short_to_notice(shift: &Shift, loop_ns: f64) -> bool {
    let (Aspect::Figure(figure) | Aspect::Worst(figure)) = shift.aspect else { return false };
    let longer = shift.from.max(shift.to);
    let is_short = longer < UNNOTICED_NS || longer < NOTICED_SHARE * loop_ns;
    let is_percentile = matches!(figure, Figure::P50 | Figure::P95 | Figure::P99 | Figure::P99_9);
    figure.is_latency() && (is_short || is_percentile && is_cut_off(longer as u64))
}

/// Whether it is the largest latency of an operation beside another of the same processes that takes longer on both sides: what they wait
/// for at most is that one.
fn is_hidden(party: &Party<'_>, shift: &Shift, variants: [usize; 2]) -> bool {
    let largest = |operation: Operation, variant: usize| {
        let rows = party.of_operation(operation).filter_map(|operation| operation.row(variant));
        rows.map(|row| row.estimate(Figure::Max).mean).fold(0.0, f64::max)
    };
    let Some(own) = shift.operation.filter(|_| is_max(shift.aspect)) else { return false };
    let is_longer = |other: Operation| variants.iter().all(|&variant| largest(other, variant) > largest(own, variant));
    party.operations().any(is_longer)
}

/// By how much a party waits longer or shorter, ns, if that is long; else 0.
fn long_wait_ns(shift: &Shift, stakes: &[WeightedParty<'_>]) -> f64 {
    let waits = stakes.iter().any(|stake| stake.role == Role::Waits && stake.party.name() == shift.job);
    let is_latency = matches!(shift.aspect, Aspect::Figure(figure) if figure.is_latency() && figure != Figure::Max);
    let difference = (shift.to - shift.from).abs();
    if waits && is_latency && difference >= LONG_WAIT_NS { difference } else { 0.0 }
}

/// What is looked at of a party: 99th percentiles also where few I/Os lie behind them, if its wait is judged by them.
fn aspects(stake: &WeightedParty<'_>) -> Vec<(Option<Operation>, Aspect)> {
    let party = &stake.party;
    let is_judged = stake.role == Role::Waits && stake.has_p99;
    let mut aspects = vec![(None, Aspect::Fairness)];
    for operation in party.operations() {
        let mut add = |aspect| aspects.push((Some(operation), aspect));
        add(Aspect::Figure(throughput(party, operation)));
        add(Aspect::Figure(Figure::Mean));
        add(Aspect::Figure(Figure::Max));
        if is_judged || has_percentiles(party, operation) {
            add(Aspect::Figure(Figure::P99));
            if party.jobs.len() > 1 {
                add(Aspect::Worst(Figure::P99));
            }
        }
    }
    aspects
}

fn shift(
    analysis: &Analysis<'_>,
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
    for run in &analysis.variants[from].runs {
        let value = |variant| party.value(operation, aspect, variant, run.repeat);
        pairs.extend(value(from).zip(value(to)));
    }
    let logarithms: Option<Vec<f64>> = pairs.iter().map(|(from, to)| logarithm(*from, *to, higher_is_better)).collect();
    let ratio = Ratio::of(&logarithms?)?;
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let shift = Shift {
        job: party.name().to_owned(),
        jobs: party.jobs.len() as u32,
        operation,
        aspect,
        from: shown(aspect, &before),
        to: shown(aspect, &after),
        factor: ratio.mean.abs().exp(),
        significant: ratio.is_significant(),
        weighs: true,
    };
    Some((shift, ratio))
}
