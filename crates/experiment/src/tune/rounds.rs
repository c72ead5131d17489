//! Plans the rounds of a search within its budget.

use hoistway_answer::tuning::Budget;
use hoistway_blk::ground::Nanos;

use super::Search;
use super::evaluate::Evaluator;
use super::space::Space;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;

/// One in this many settings of a round advances to the next.
pub(super) const KEPT: usize = 3;
/// Seeds of each round; the confidence interval of two is wide, so that chance alone eliminates no setting.
const SEEDS: [usize; 3] = [2, 3, 5];
/// Maximum seeds of the last round: more add little precision.
pub(super) const SEEDS_MAX: usize = 20;
/// Divisor of the runtime in each round.
const SHORTER: [u64; 3] = [9, 3, 1];
/// Minimum runtime, ns: shorter runs have too few I/Os for a percentile.
const RUNTIME_MIN_NS: u64 = 500_000_000;
/// With at most this many settings there is no further round.
const LAST_ROUND: usize = 6;
/// Maximum settings in the first round, however large the budget.
const SETTINGS_MAX: u64 = 100_000;

/// A planned round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Step {
    /// Replaces the runtime of every process.
    pub(super) runtime_ns: Option<u64>,
    pub(super) seeds: usize,
    /// Maximum settings, not counting the reference settings.
    pub(super) settings: usize,
}

/// Seeds of all rounds together.
pub(super) fn seeds(steps: &[Step]) -> usize {
    steps.iter().map(|step| step.seeds).sum::<usize>() + SEEDS_MAX
}

/// The amount of the budget, in runs or ns of virtual time.
pub(super) fn limit(budget: Budget) -> u64 {
    match budget {
        Budget::Runs(runs) => runs,
        Budget::VirtualNs(ns) => ns,
    }
}

/// The cost of a run, in the unit of the budget; `None` if it is unknown.
pub(super) fn cost(search: &Search, evaluator: &Evaluator<'_>, runtime_ns: Option<u64>) -> Option<u64> {
    match search.budget {
        Budget::Runs(_) => Some(1),
        Budget::VirtualNs(_) => evaluator.expected_ns(runtime_ns),
    }
}

/// The rounds, with as many settings as the budget allows. The `fixed` settings run in each round.
pub(super) fn planned(
    search: &Search,
    evaluator: &Evaluator<'_>,
    space: &Space,
    reference_count: usize,
) -> Result<Vec<Step>, Error> {
    let runtime_ns = evaluator.shortenable_ns();
    let runtime = |part: u64| runtime_ns.map(|ns| (ns / part).max(RUNTIME_MIN_NS)).filter(|ns| Some(*ns) < runtime_ns);
    let options = &evaluator.plan.options;
    let costs: Option<Vec<u64>> = SHORTER.iter().map(|part| cost(search, evaluator, runtime(*part))).collect();
    let budget_text = |budget: u64| match search.budget {
        Budget::Runs(_) => format!("{budget} runs"),
        Budget::VirtualNs(_) => format!("{} of virtual time", Nanos(budget)),
    };
    let limit = limit(search.budget);
    let Some(costs) = costs else {
        let problem = "the load is not bounded by time (expected a number of runs, or a runtime)";
        return Err(options.refuse(Field::Budget, budget_text(limit), problem));
    };
    let steps = |settings: usize| -> Vec<Step> {
        let rounds = match settings {
            0..=LAST_ROUND => 1,
            _ if settings <= LAST_ROUND * KEPT => 2,
            _ => 3,
        };
        let mut settings_left = settings;
        let step = |index: usize| {
            let step = Step { runtime_ns: runtime(SHORTER[index]), seeds: SEEDS[index], settings: settings_left };
            settings_left = settings_left.div_ceil(KEPT);
            step
        };
        (SEEDS.len() - rounds..SEEDS.len()).map(step).collect()
    };
    let total_cost = |steps: &[Step]| {
        let costs = &costs[SEEDS.len() - steps.len()..];
        let step_cost =
            |(step, cost): (&Step, &u64)| cost.saturating_mul(((step.settings + reference_count) * step.seeds) as u64);
        steps.iter().zip(costs).map(step_cost).fold(0, u64::saturating_add)
    };
    let all = space.size().min(SETTINGS_MAX) as usize;
    // Each scheduler with its defaults, and at least one more.
    let settings_min = (space.branches.len() + 1).min(all);
    let affordable = (settings_min..=all).rev().map(steps).find(|steps| total_cost(steps) <= limit);
    affordable.ok_or_else(|| {
        let needed = (settings_min..=all).map(|settings| total_cost(&steps(settings))).min().unwrap_or(0);
        let problem =
            format!("too little for {} schedulers (expected at least {})", space.branches.len(), budget_text(needed));
        options.refuse(Field::Budget, budget_text(limit), problem)
    })
}
