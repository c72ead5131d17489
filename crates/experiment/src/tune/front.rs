//! The Pareto front.

use hoistway_answer::tuning::SettingResult;
use hoistway_answer::{FigureName, Goal, Objective};

/// The settings that no other setting dominates in all figures.
pub(super) fn front(objective: &Objective, results: &[SettingResult]) -> Vec<SettingResult> {
    let higher_is_better = |index: usize| match index {
        0 => objective.goal == Goal::Max,
        _ => {
            let name = objective.figures()[index];
            objective.conditions.iter().any(|condition| condition.figure == *name && condition.is_lower_bound())
        }
    };
    let values = |result: &SettingResult| -> Option<Vec<f64>> {
        let value = |(index, name): (usize, &FigureName)| {
            let mean = result.figures.get(name)?.mean;
            Some(if higher_is_better(index) { mean } else { -mean })
        };
        objective.figures().into_iter().enumerate().map(value).collect()
    };
    let all: Vec<(&SettingResult, Vec<f64>)> =
        results.iter().filter_map(|result| Some((result, values(result)?))).collect();
    let dominates = |first: &[f64], second: &[f64]| {
        let pairs = || first.iter().zip(second);
        pairs().all(|(first, second)| first >= second) && pairs().any(|(first, second)| first > second)
    };
    let is_worse_than_best = |values: &[f64]| all.iter().any(|(_, others)| dominates(others, values));
    let mut front: Vec<SettingResult> = Vec::new();
    for (result, _) in all.iter().filter(|(_, values)| !is_worse_than_best(values)) {
        if !front.iter().any(|other| is_equivalent_setting(other, result)) {
            front.push((*result).clone());
        }
    }
    front
}

/// Whether the difference between two settings has no effect here.
pub(super) fn is_equivalent_setting(first: &SettingResult, second: &SettingResult) -> bool {
    first.setting.scheduler == second.setting.scheduler && first.figures == second.figures
}
