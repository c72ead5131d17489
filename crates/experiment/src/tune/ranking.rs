//! Ranks the settings of a round: those that meet the conditions first, then by the mean cost of the objective.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use hoistway_answer::analysis::Estimate;
use hoistway_answer::document::Change;
use hoistway_answer::tuning::{Setting, SettingResult};
use hoistway_answer::{Condition, Figure, FigureName, Limit, Objective};
use hoistway_measure::stats;

use super::ledger::{Key, Ledger};

/// The basis for ranking the settings of a round: the objective, over the same seeds and runtime.
pub(super) struct Ranking<'a> {
    pub(super) objective: &'a Objective,
    pub(super) ledger: &'a Ledger<'a>,
    pub(super) seeds: &'a [u64],
    pub(super) runtime_ns: Option<u64>,
    /// The kernel's default scheduler.
    pub(super) default: &'a str,
}

/// A setting with its rank criteria.
pub(super) struct RankedSetting {
    pub(super) result: SettingResult,
    /// Total violation of the conditions, as a logarithm; 0 if all are met.
    violation: f64,
    /// Mean of [`Objective::log_cost`] over the seeds; infinite if a run is missing.
    cost: f64,
}

impl Ranking<'_> {
    /// The settings, best first.
    pub(super) fn rank(&self, settings: &[Setting]) -> Vec<RankedSetting> {
        let mut ranked: Vec<RankedSetting> = settings.iter().map(|setting| self.rank_setting(setting)).collect();
        // The sort is stable: equal settings keep their order.
        ranked.sort_by(RankedSetting::order);
        let best = ranked.first().map(|best| best.result.setting.clone());
        for setting in &mut ranked {
            setting.result.beside_best = best.as_ref().and_then(|best| self.change(best, &setting.result.setting));
        }
        ranked
    }

    /// The change of the objective from the first setting to the second, seed by seed; above 1 the second is better.
    pub(super) fn change(&self, from: &Setting, to: &Setting) -> Option<Change> {
        let cost_of = |setting: &Setting, seed| {
            Some(self.objective.log_cost(self.figure(setting, seed, &self.objective.figure)?))
        };
        Change::of(
            &self.seeds.iter().filter_map(|seed| Some(cost_of(from, *seed)? - cost_of(to, *seed)?)).collect::<Vec<_>>(),
        )
    }

    fn rank_setting(&self, setting: &Setting) -> RankedSetting {
        let margins: Vec<Option<Vec<f64>>> =
            self.objective.conditions.iter().map(|condition| self.margins(setting, condition)).collect();
        let (mut violation, mut holds) = (0.0_f64, true);
        for (condition, margins) in self.objective.conditions.iter().zip(&margins) {
            let mean = margins.as_deref().and_then(stats::mean).unwrap_or(f64::NEG_INFINITY);
            violation += (-mean).max(0.0);
            holds &= condition.is_met(mean);
        }
        let values = self.values(setting, &self.objective.figure);
        let is_complete = values.len() == self.seeds.len();
        let cost = values.iter().map(|value| self.objective.log_cost(*value)).sum::<f64>() / values.len().max(1) as f64;
        let names = self.objective.figures().into_iter();
        let figures: BTreeMap<FigureName, Estimate> =
            names.filter_map(|name| Some((name.clone(), spread(name.figure, &self.values(setting, name))?))).collect();
        let result = SettingResult {
            setting: setting.clone(),
            seeds: self.seeds.len() as u32,
            figures,
            margins: margins.iter().map(|margins| Change::of(margins.as_ref()?)).collect(),
            holds: holds && is_complete,
            beside_best: None,
        };
        RankedSetting { result, violation, cost: if is_complete { cost } else { f64::INFINITY } }
    }

    /// The margin by which a condition is met, seed by seed; `None` if a figure for it is missing.
    fn margins(&self, setting: &Setting, condition: &Condition) -> Option<Vec<f64>> {
        let margin = |seed: &u64| {
            let limit = match &condition.limit {
                Limit::Value(limit) => *limit,
                Limit::Under { factor, scheduler } => {
                    let name = if scheduler == "default" { self.default } else { scheduler };
                    factor * self.figure(&Setting::untouched(name), *seed, &condition.figure)?
                }
            };
            Some(condition.margin(self.figure(setting, *seed, &condition.figure)?, limit))
        };
        self.seeds.iter().map(margin).collect()
    }

    fn values(&self, setting: &Setting, name: &FigureName) -> Vec<f64> {
        self.seeds.iter().filter_map(|seed| self.figure(setting, *seed, name)).collect()
    }

    fn figure(&self, setting: &Setting, seed: u64, name: &FigureName) -> Option<f64> {
        let key = Key { setting: setting.clone(), seed, runtime_ns: self.runtime_ns };
        self.ledger.figure(&key, name)
    }
}

fn spread(figure: Figure, values: &[f64]) -> Option<Estimate> {
    if figure == Figure::Max {
        let largest = values.iter().copied().reduce(f64::max)?;
        return Some(Estimate { mean: largest, half_width: None });
    }
    Some(Estimate { mean: stats::mean(values)?, half_width: stats::half_width(values) })
}

impl RankedSetting {
    /// Settings that meet the conditions come first, then those closest to meeting them; ties are ordered by cost.
    fn order(a: &RankedSetting, b: &RankedSetting) -> Ordering {
        b.result.holds.cmp(&a.result.holds).then(a.violation.total_cmp(&b.violation)).then(a.cost.total_cmp(&b.cost))
    }

    /// Whether it is worse than the best, beyond the noise.
    pub(super) fn is_worse_than_best(&self) -> bool {
        self.result.beside_best.is_none_or(Change::is_worse)
    }
}
