//! The Pareto front.

use hoistway_answer::tuning::SettingResult;
use hoistway_answer::{FigureName, Goal, Objective};

/// The settings that no other setting dominates in all figures.
pub(super) fn front(objective: &Objective, standings: &[SettingResult]) -> Vec<SettingResult> {
    let is_more_better = |place: usize| match place {
        0 => objective.goal == Goal::Max,
        _ => {
            let name = objective.figures()[place];
            objective.conditions.iter().any(|condition| condition.figure == *name && condition.is_lower_bound())
        }
    };
    let values = |standing: &SettingResult| -> Option<Vec<f64>> {
        let value = |(place, name): (usize, &FigureName)| {
            let mean = standing.figures.get(name)?.mean;
            Some(if is_more_better(place) { mean } else { -mean })
        };
        objective.figures().into_iter().enumerate().map(value).collect()
    };
    let all: Vec<(&SettingResult, Vec<f64>)> = standings.iter().filter_map(|one| Some((one, values(one)?))).collect();
    let beats = |one: &[f64], other: &[f64]| {
        let pairs = || one.iter().zip(other);
        pairs().all(|(one, other)| one >= other) && pairs().any(|(one, other)| one > other)
    };
    let is_worse_than_best = |values: &[f64]| all.iter().any(|(_, others)| beats(others, values));
    let mut front: Vec<SettingResult> = Vec::new();
    for (standing, _) in all.iter().filter(|(_, values)| !is_worse_than_best(values)) {
        if !front.iter().any(|other| is_equivalent_setting(other, standing)) {
            front.push((*standing).clone());
        }
    }
    front
}

/// Whether the difference between two settings has no effect here.
pub(super) fn is_equivalent_setting(one: &SettingResult, other: &SettingResult) -> bool {
    one.setting.scheduler == other.setting.scheduler && one.figures == other.figures
}
