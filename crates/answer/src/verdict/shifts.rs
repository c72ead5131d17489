//! Losses and gains of a variant in figures other than the focus.

use super::SMALLEST_EFFECT;
use super::focus::{Focus, has_percentiles, has_pooled_percentiles, throughput};
use super::party::Party;
use super::ratio::{LogRatio, logarithm};
use super::roles::Role;
use super::score::JudgedParty;
use super::turn::NOTICED_SHARE;
use crate::analysis::Analysis;
use crate::document::{Aspect, Shift, is_cut_off};
use crate::figure::Figure;
use hoistway_measure::Operation;

/// A loss by at least this factor is reported and counts even if it is within the noise: caution is cheaper than a stall. A smaller
/// uncertain loss is reported if it may exceed the gain, and does not count.
pub(super) const UNCERTAIN_FACTOR: f64 = 1.25;
/// A loss in a largest latency, which is a single I/O, is reported from this factor on even if it is within the noise, and counts if it
/// is not.
const LARGE_FACTOR_OF_MAX: f64 = 2.0;

/// Latencies up to this, ns, are imperceptible to people.
const UNNOTICED_NS: f64 = 100_000.0;
/// Differences in waiting time from this on, ns, are listed before all other shifts.
const LONG_WAIT_NS: f64 = 1e8;

/// Whether an aspect is a largest latency, which is that of a single I/O.
fn is_max(aspect: Aspect) -> bool {
    matches!(aspect, Aspect::Figure(Figure::Max))
}

/// Whether a loss by this factor is reported even if it is within the noise. `gain` is the gain in the focus, as a factor, if any.
pub(crate) fn is_reported_though_uncertain(aspect: Aspect, factor: f64, gain: Option<f64>) -> bool {
    match gain {
        _ if is_max(aspect) => factor >= LARGE_FACTOR_OF_MAX,
        Some(gain) => factor >= UNCERTAIN_FACTOR.min(gain),
        None => factor >= UNCERTAIN_FACTOR,
    }
}

/// The value shown for the runs: their mean, for largest latencies the geometric mean, because the largest of all runs may be the same on
/// both sides.
pub(crate) fn shown(aspect: Aspect, values: &[f64]) -> f64 {
    let mean = |transform: fn(f64) -> f64| values.iter().copied().map(transform).sum::<f64>() / values.len() as f64;
    if is_max(aspect) { mean(f64::ln).exp() } else { mean(|value| value) }
}

/// Whether a loss can outweigh a gain. A largest latency is that of a single I/O, which meets a stall in some runs only: it counts only if
/// it belongs to the job in focus, the runs agree on it and it is large. Otherwise the number of runs would decide.
pub(crate) fn can_outweigh(aspect: Aspect, is_of_focus: bool, significant: Option<bool>, factor: f64) -> bool {
    let is_certain = significant != Some(false);
    if is_max(aspect) {
        is_of_focus && is_certain && factor >= LARGE_FACTOR_OF_MAX
    } else {
        is_certain || factor >= UNCERTAIN_FACTOR
    }
}

/// The changes from one variant to another.
pub(super) struct Shifts {
    /// Worst first.
    pub(super) losses: Vec<Shift>,
    /// Largest first.
    pub(super) gains: Vec<Shift>,
}

/// All changes of at least `smallest_effect`. `gain` is the gain in the focus, as a factor, if any.
pub(super) fn shifts(
    analysis: &Analysis<'_>,
    (focus, judged_parties): (&Focus<'_>, &[JudgedParty<'_>]),
    [from, to]: [usize; 2],
    smallest_effect: f64,
    gain: Option<f64>,
) -> Shifts {
    let mut shifts = Shifts { losses: Vec::new(), gains: Vec::new() };
    for judged in judged_parties {
        let party = &judged.party;
        let loop_ns = judged.loop_ns([from, to]);
        for ComparedAspect { operation, aspect, has_few_ios } in aspects(judged) {
            // A single figure in focus is what the shifts are weighed against, so it is not one of them.
            let is_focus = focus.parts.iter().any(|part| part.is_covered_by(party, operation, aspect));
            if is_focus && focus.parts.len() == 1 {
                continue;
            }
            let Some((shift, ratio)) = shift(analysis, party, operation, aspect, [from, to]) else { continue };
            if shift.factor < 1.0 + smallest_effect
                || is_too_short_to_notice(&shift, loop_ns)
                || is_hidden(party, &shift, [from, to])
                || aspect == Aspect::Wait && !contradicts(analysis, party, &shift, [from, to])
            {
                continue;
            }
            let as_asked = judged.role == Role::LeftOver;
            if ratio.mean > 0.0 {
                // A gain within the noise is none, nor is one of a job that asked for what others leave.
                if shift.significant != Some(false) && !as_asked {
                    shifts.gains.push(Shift { weighs: !is_focus && !is_max(aspect) && !has_few_ios, ..shift });
                }
            } else if shift.significant != Some(false) || is_reported_though_uncertain(aspect, shift.factor, gain) {
                let is_focus_party = focus.parts.iter().any(|part| part.party.jobs[0].job == party.jobs[0].job);
                let weighs = !is_focus
                    && !has_few_ios
                    && !as_asked
                    && can_outweigh(aspect, is_focus_party, shift.significant, shift.factor);
                shifts.losses.push(Shift { weighs, as_asked, ..shift });
            }
        }
    }
    for side in [&mut shifts.losses, &mut shifts.gains] {
        side.sort_by(|a, b| {
            let [wait_a, wait_b] = [a, b].map(|shift| long_wait_ns(shift, judged_parties));
            let by_wait = a.as_asked.cmp(&b.as_asked).then(wait_b.total_cmp(&wait_a));
            by_wait.then(b.factor.total_cmp(&a.factor)).then(a.job.cmp(&b.job))
        });
    }
    shifts
}

/// Whether a latency is too short on both sides, absolutely or relative to its loop, for its ratio to mean anything; or whether it is a
/// percentile beyond the histogram's range.
fn is_too_short_to_notice(shift: &Shift, loop_ns: f64) -> bool {
    let longer = shift.from.max(shift.to);
    let is_short = longer < UNNOTICED_NS || longer < NOTICED_SHARE * loop_ns;
    let (Aspect::Figure(figure) | Aspect::Worst(figure)) = shift.aspect else {
        return shift.aspect == Aspect::Wait && is_short;
    };
    figure.is_latency() && (is_short || figure.is_percentile() && is_cut_off(longer as u64))
}

/// Whether a shift is in a largest latency that another operation of the same processes exceeds under both variants: that one is their
/// longest wait.
fn is_hidden(party: &Party<'_>, shift: &Shift, variants: [usize; 2]) -> bool {
    let largest = |operation: Operation, variant: usize| {
        let rows = party.operation_results(operation).filter_map(|operation| operation.row(variant));
        rows.map(|row| row.estimate(Figure::Max).mean).fold(0.0, f64::max)
    };
    let Some(own) = shift.operation.filter(|_| is_max(shift.aspect)) else { return false };
    let is_longer = |other: Operation| variants.iter().all(|&variant| largest(other, variant) > largest(own, variant));
    party.operations().any(is_longer)
}

/// Whether the mean or the 99th percentile of an operation changes the other way than its wait does, and the percentile does not show that.
fn contradicts(analysis: &Analysis<'_>, party: &Party<'_>, wait: &Shift, variants: [usize; 2]) -> bool {
    let is_longer = wait.to > wait.from;
    let is_other_way = |figure: Figure| {
        let (other, _) = shift(analysis, party, wait.operation, Aspect::Figure(figure), variants)?;
        let is_shift = other.significant != Some(false) && other.factor >= 1.0 + SMALLEST_EFFECT;
        is_shift.then_some((other.to > other.from) != is_longer)
    };
    match is_other_way(Figure::P99) {
        Some(is_other_way) => is_other_way,
        None => is_other_way(Figure::Mean) == Some(true),
    }
}

/// The difference in a party's waiting time, ns, if it is at least [`LONG_WAIT_NS`]; otherwise 0.
fn long_wait_ns(shift: &Shift, judged_parties: &[JudgedParty<'_>]) -> f64 {
    let waits = judged_parties.iter().any(|judged| judged.role == Role::Waits && judged.party.name() == shift.job);
    let is_latency = match shift.aspect {
        Aspect::Figure(figure) => figure.is_latency() && figure != Figure::Max,
        aspect => aspect == Aspect::Wait,
    };
    let difference = (shift.to - shift.from).abs();
    if waits && is_latency && difference >= LONG_WAIT_NS { difference } else { 0.0 }
}

/// An aspect of a party that is compared.
struct ComparedAspect {
    operation: Option<Operation>,
    aspect: Aspect,
    /// Whether a run has too few I/Os for it, so that it is reported from the runs together and decides nothing.
    has_few_ios: bool,
}

/// The compared aspects of a party.
fn aspects(judged: &JudgedParty<'_>) -> Vec<ComparedAspect> {
    let party = &judged.party;
    let mut aspects = vec![ComparedAspect { operation: None, aspect: Aspect::Fairness, has_few_ios: false }];
    for operation in party.operations() {
        let mut add = |aspect, has_few_ios| {
            aspects.push(ComparedAspect { operation: Some(operation), aspect, has_few_ios });
        };
        add(Aspect::Figure(throughput(party, operation)), false);
        add(Aspect::Figure(Figure::Mean), false);
        add(Aspect::Figure(Figure::Max), false);
        if judged.role == Role::Waits {
            add(Aspect::Wait, false);
        }
        let has_few_ios = !has_percentiles(party, operation);
        if !has_few_ios || judged.role == Role::Waits && has_pooled_percentiles(party, operation) {
            add(Aspect::Figure(Figure::P99), has_few_ios);
            if party.jobs.len() > 1 && !has_few_ios {
                add(Aspect::Worst(Figure::P99), false);
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
) -> Option<(Shift, LogRatio)> {
    let higher_is_better = match aspect {
        Aspect::Figure(figure) | Aspect::Worst(figure) => figure.higher_is_better(),
        Aspect::Wait => false,
        Aspect::Fairness => true,
    };
    let mut pairs = Vec::new();
    for run in &analysis.variants[from].runs {
        let value = |variant| party.value(operation, aspect, variant, run.repeat);
        pairs.extend(value(from).zip(value(to)));
    }
    let logarithms: Option<Vec<f64>> = pairs.iter().map(|(from, to)| logarithm(*from, *to, higher_is_better)).collect();
    let ratio = LogRatio::of(&logarithms?)?;
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
        as_asked: false,
    };
    Some((shift, ratio))
}
