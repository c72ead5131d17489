//! Losses of a search's best setting in figures other than its objective.

use std::collections::BTreeMap;

use crate::document::{Aspect, Change, Shift};
use crate::figure::Figure;
use crate::figure_name::FigureName;
use crate::objective::Objective;
use crate::verdict::{SMALLEST_EFFECT, can_outweigh, is_reported_though_uncertain, logarithm, shown};

/// The figures of a run.
type Figures = BTreeMap<FigureName, f64>;

/// The compared figures: bandwidth follows the IOPS, and other percentiles follow the mean and the 99th.
const COMPARED_FIGURES: [Figure; 4] = [Figure::Iops, Figure::Mean, Figure::P99, Figure::Max];

/// All figures that are worse by at least 2 % in the second run of each pair (both with the same seed), worst first. `gain` is the
/// improvement of the objective. `None` if the runs have no figures other than the objective's.
pub fn losses(objective: &Objective, pairs: &[(Figures, Figures)], gain: Option<Change>) -> Option<Vec<Shift>> {
    let (first, _) = pairs.first()?;
    let known = objective.figures();
    if first.keys().all(|name| known.contains(&name)) {
        return None;
    }
    let others = first.keys().filter(|name| COMPARED_FIGURES.contains(&name.figure) && **name != objective.figure);
    let gain = gain.filter(|gain| gain.is_better() && gain.factor >= 1.0 + SMALLEST_EFFECT).map(|gain| gain.factor);
    let mut losses: Vec<Shift> = others.filter_map(|name| loss(objective, name, pairs, gain)).collect();
    losses.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    Some(losses)
}

fn loss(objective: &Objective, name: &FigureName, pairs: &[(Figures, Figures)], gain: Option<f64>) -> Option<Shift> {
    let values: Option<Vec<[f64; 2]>> =
        pairs.iter().map(|(from, to)| Some([*from.get(name)?, *to.get(name)?])).collect();
    let values = values?;
    let logarithms: Option<Vec<f64>> =
        values.iter().map(|[from, to]| logarithm(*from, *to, name.figure.higher_is_better())).collect();
    let change = Change::of(&logarithms?)?;
    let (aspect, factor, is_certain) = (Aspect::Figure(name.figure), 1.0 / change.factor, change.is_worse());
    let is_reported =
        factor >= 1.0 + SMALLEST_EFFECT && (is_certain || is_reported_though_uncertain(aspect, factor, gain));
    let shown = |side: usize| shown(aspect, &values.iter().map(|pair| pair[side]).collect::<Vec<_>>());
    let significant = change.low.map(|_| is_certain);
    // A condition on the figure already limits its loss.
    let is_limited_by_condition = objective.conditions.iter().any(|condition| condition.figure == *name);
    let can_outweigh = can_outweigh(aspect, name.job == objective.figure.job, significant, factor);
    is_reported.then(|| Shift {
        as_asked: false,
        job: name.job.clone(),
        jobs: 1,
        operation: Some(name.operation),
        aspect,
        from: shown(0),
        to: shown(1),
        factor,
        significant,
        weighs: !is_limited_by_condition && can_outweigh,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(p99: f64, others: [f64; 4]) -> BTreeMap<FigureName, f64> {
        let names = ["b:write:iops", "b:write:mean", "b:write:max", "b:write:p50"];
        let figures = names.into_iter().zip(others).chain([("a:read:p99", p99)]);
        figures.map(|(name, value)| (name.parse().unwrap(), value)).collect()
    }

    #[test]
    fn losses_are_reported_worst_first_and_uncertain_ones_only_if_large() {
        let objective: Objective = "min a:read:p99".parse().unwrap();
        let before = || run(9.0, [1000.0, 5.0, 50.0, 1.0]);
        let reported = |after: [[f64; 4]; 3]| -> Vec<(String, Option<bool>)> {
            let pairs: Vec<_> = after.into_iter().map(|after| (before(), run(99.0, after))).collect();
            let losses = losses(&objective, &pairs, None).unwrap();
            losses.iter().map(|loss| (format!("{:?} {:.2}", loss.aspect, loss.factor), loss.significant)).collect()
        };
        // The objective's own figure is not a loss, medians are not compared, and a largest latency is a single I/O.
        let certain = reported([[500.0, 6.0, 51.0, 9.0], [499.0, 6.1, 90.0, 9.0], [501.0, 5.9, 40.0, 9.0]]);
        assert_eq!(
            certain,
            [("Figure(Iops) 2.00".to_owned(), Some(true)), ("Figure(Mean) 1.20".to_owned(), Some(true))]
        );
        let noise = reported([[1200.0, 5.0, 50.0, 1.0], [800.0, 5.05, 50.0, 1.0], [900.0, 5.0, 1000.0, 1.0]]);
        assert_eq!(noise, [("Figure(Max) 2.71".to_owned(), Some(false))]);
        assert!(reported([[1001.0, 4.0, 50.0, 1.0]; 3]).is_empty());
    }

    #[test]
    fn an_uncertain_loss_larger_than_the_gain_is_reported_without_weight() {
        let objective: Objective = "min a:read:p99".parse().unwrap();
        let pair = |mean| (run(9.0, [1000.0, 5.0, 50.0, 1.0]), run(8.5, [1000.0, mean, 50.0, 1.0]));
        let pairs = [pair(6.0), pair(5.0), pair(5.6)];
        let reported = |factor, low| {
            let gain = Change { factor, low: Some(low), high: Some(2.0 * factor - low) };
            let losses = losses(&objective, &pairs, Some(gain)).unwrap();
            losses.iter().map(|loss| (loss.significant, loss.weighs)).collect::<Vec<_>>()
        };
        assert_eq!(reported(1.06, 1.05), [(Some(false), false)]);
        assert_eq!(reported(1.20, 1.05), [], "less than is gained");
        assert_eq!(reported(1.06, 0.95), [], "nothing is gained");
        assert_eq!(reported(1.01, 1.005), [], "next to nothing is gained");
    }

    #[test]
    fn losses_use_the_mean_of_runs_and_the_geometric_mean_of_max_latencies() {
        let objective: Objective = "min a:read:p99".parse().unwrap();
        let pair = |iops, max| (run(9.0, [1000.0, 5.0, 50.0, 1.0]), run(9.0, [iops, 5.0, max, 1.0]));
        let losses = losses(&objective, &[pair(400.0, 400.0), pair(600.0, 900.0)], None).unwrap();
        let reported: Vec<_> = losses.iter().map(|loss| (loss.aspect, loss.from.round(), loss.to.round())).collect();
        let [max, iops] = [Figure::Max, Figure::Iops].map(Aspect::Figure);
        assert_eq!(reported, [(max, 50.0, 600.0), (iops, 1000.0, 500.0)]);
    }

    #[test]
    fn figures_with_a_condition_and_single_ios_of_other_jobs_do_not_weigh() {
        let weighing = |objective: &str| -> Vec<String> {
            let pair = || (run(9.0, [1000.0, 5.0, 50.0, 1.0]), run(9.0, [500.0, 10.0, 500.0, 1.0]));
            let losses = losses(&objective.parse().unwrap(), &[pair(), pair(), pair()], None).unwrap();
            assert_eq!(losses.len(), 3, "all are reported");
            losses.iter().filter(|loss| loss.weighs).map(|loss| format!("{:?}", loss.aspect)).collect()
        };
        assert_eq!(weighing("min a:read:p99"), ["Figure(Iops)", "Figure(Mean)"]);
        assert_eq!(weighing("min a:read:p99 subject to b:write:iops >= 400"), ["Figure(Mean)"]);
        let own_max = run(9.0, [1000.0, 5.0, 50.0, 1.0]);
        let worse = run(9.0, [1000.0, 5.0, 500.0, 1.0]);
        let losses = losses(&"min b:write:p50".parse().unwrap(), &[(own_max, worse)], None).unwrap();
        assert!(losses[0].weighs, "{losses:?}");
        let own = |max| (run(9.0, [1000.0, 5.0, 50.0, 1.0]), run(9.0, [1000.0, 5.0, max, 1.0]));
        let runs = [own(5000.0), own(50.0), own(49.0)];
        let losses = super::losses(&"min b:write:p50".parse().unwrap(), &runs, None).unwrap();
        assert!(losses.len() == 1 && !losses[0].weighs, "its own, but the runs do not agree on it: {losses:?}");
    }

    #[test]
    fn losses_are_none_when_nothing_else_was_measured() {
        let objective: Objective = "min a:read:p99".parse().unwrap();
        let only = |value| BTreeMap::from([(objective.figure.clone(), value)]);
        assert_eq!(losses(&objective, &[(only(1.0), only(2.0))], None), None);
        assert_eq!(losses(&objective, &[], None), None);
    }
}
