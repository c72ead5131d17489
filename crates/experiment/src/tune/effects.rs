//! Effects of tunables: the share of the variance that each explains.
//!
//! Settings of a round with the same value of a tunable form a group. The share of the variance between groups is attributed to the tunable,
//! less what chance explains on average (epsilon squared, Kelley 1935). The tunable that explains most is removed from the variance first,
//! then the one that explains most of the rest, and so on, so that no tunable is credited with the effect of another. An effect that
//! chance alone would show once in twenty searches (F test, corrected for the number of tunables) is left out.

use std::collections::BTreeMap;

use hoistway_answer::tuning::{Candidates, SettingEffect, SettingResult};
use hoistway_measure::stats;

use super::Search;
use super::space::{Branch, Space};

/// Shown as the value of a tunable that is not set.
const UNSET: &str = "default";

/// The effects of the choice of the scheduler and of every tunable, largest first.
pub(super) fn effects(search: &Search, space: &Space, results: &[SettingResult]) -> Vec<SettingEffect> {
    let objective = &search.objective;
    let costs: Vec<(&SettingResult, f64)> = results
        .iter()
        .filter_map(|result| Some((result, objective.log_cost(result.figures.get(&objective.figure)?.mean))))
        .collect();
    let mut effects: Vec<SettingEffect> = Vec::new();
    let by_scheduler = costs.iter().map(|(result, cost)| (result.setting.scheduler.as_str(), *cost));
    let by_scheduler: Vec<(&str, f64)> = by_scheduler.collect();
    effects.extend(effect(None, "scheduler", &by_scheduler, 1).map(|explained| explained.effect));
    for branch in &space.branches {
        let scheduler_costs: Vec<(&SettingResult, f64)> =
            costs.iter().filter(|(result, _)| result.setting.scheduler == branch.scheduler).copied().collect();
        effects.extend(branch_effects(branch, scheduler_costs));
    }
    effects.sort_by(|a, b| b.share.total_cmp(&a.share));
    effects
}

/// The effects of a scheduler's tunables, one after the other.
fn branch_effects(branch: &Branch, mut costs: Vec<(&SettingResult, f64)>) -> Vec<SettingEffect> {
    let mut effects: Vec<SettingEffect> = Vec::new();
    // The share of the variance that is not explained yet.
    let mut unexplained = 1.0;
    loop {
        let is_rated = |tunable: &&Candidates| effects.iter().any(|effect| effect.tunable == tunable.name);
        let remaining: Vec<&Candidates> = branch.tunables.iter().filter(|tunable| !is_rated(tunable)).collect();
        let explained = remaining.iter().filter_map(|tunable| {
            let groups: Vec<(&str, f64)> = costs.iter().map(|(result, cost)| (value(result, tunable), *cost)).collect();
            Some((*tunable, effect(Some(&branch.scheduler), &tunable.name, &groups, remaining.len())?))
        });
        let Some((tunable, largest)) = explained.max_by(|a, b| a.1.effect.share.total_cmp(&b.1.effect.share)) else {
            break;
        };
        effects.push(SettingEffect { share: largest.effect.share * unexplained, ..largest.effect });
        unexplained *= 1.0 - largest.sample_share;
        for (result, cost) in &mut costs {
            *cost -= largest.means[value(result, tunable)];
        }
    }
    effects
}

fn value<'a>(standing: &'a SettingResult, tunable: &Candidates) -> &'a str {
    standing.setting.text(&tunable.file()).unwrap_or(UNSET)
}

/// The effect of a tunable.
struct Explained {
    effect: SettingEffect,
    /// The share of the variance in the sample, without a correction for chance.
    sample_share: f64,
    /// The mean of each value's group.
    means: BTreeMap<String, f64>,
}

/// The effect of a tunable; `None` if there are too few settings, or if chance may explain the effect, given the number of tunables.
fn effect(scheduler: Option<&str>, tunable: &str, costs: &[(&str, f64)], tunables: usize) -> Option<Explained> {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (value, cost) in costs {
        groups.entry(value).or_default().push(*cost);
    }
    let (settings, count) = (costs.len(), groups.len());
    if count < 2 || settings <= count {
        return None;
    }
    let mean = stats::mean(&costs.iter().map(|(_, cost)| *cost).collect::<Vec<_>>())?;
    let total: f64 = costs.iter().map(|(_, cost)| (cost - mean) * (cost - mean)).sum();
    let means: Vec<(&str, f64, usize)> =
        groups.iter().filter_map(|(value, group)| Some((*value, stats::mean(group)?, group.len()))).collect();
    let between: f64 =
        means.iter().map(|(_, group_mean, size)| *size as f64 * (group_mean - mean) * (group_mean - mean)).sum();
    let (degrees_of_freedom, within) = ([count - 1, settings - count], (total - between).max(0.0));
    let per_group = between / degrees_of_freedom[0] as f64;
    let chance = within / degrees_of_freedom[1] as f64;
    let is_beyond_chance = total > ROUNDING_VARIANCE
        && per_group > ROUNDING_VARIANCE
        && stats::chance_of_ratio(per_group / chance, degrees_of_freedom)
            .max(chance_of_groups(settings, groups.values()))
            < (1.0 - stats::CONFIDENCE) / tunables as f64;
    if !is_beyond_chance {
        return None;
    }
    let best = means.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let worst = means.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let effect = SettingEffect {
        scheduler: scheduler.map(str::to_owned),
        tunable: tunable.to_owned(),
        share: ((between - degrees_of_freedom[0] as f64 * chance) / total).clamp(0.0, 1.0),
        best: best.0.to_owned(),
        worst: worst.0.to_owned(),
        factor: (worst.1 - best.1).exp(),
        settings: settings as u32,
    };
    let means = means.iter().map(|(value, mean, _)| ((*value).to_owned(), *mean)).collect();
    Some(Explained { effect, sample_share: between / total, means })
}

/// The probability that chance picks exactly these groups among all of these sizes; no group can be more significant than that. It
/// matters for figures that are equal to the bit, such as percentiles in bins: they leave no variance within groups.
fn chance_of_groups<'a>(settings: usize, groups: impl Iterator<Item = &'a Vec<f64>>) -> f64 {
    let ln_factorial = |n: usize| (1..=n).map(|i| (i as f64).ln()).sum::<f64>();
    (groups.map(|group| ln_factorial(group.len())).sum::<f64>() - ln_factorial(settings)).exp()
}

/// Variances below this are rounding errors.
const ROUNDING_VARIANCE: f64 = 1e-18;

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_answer::tuning::Setting;

    #[test]
    fn a_deciding_tunable_has_all_of_the_variance_and_an_idle_one_none() {
        let costs = |decides: bool| -> Vec<(&'static str, f64)> {
            (0..40).map(|n| (["1", "2"][n % 2], if decides { (n % 2) as f64 } else { (n / 2 % 2) as f64 })).collect()
        };
        let decides = effect(Some("bfq"), "a", &costs(true), 1).unwrap().effect;
        assert_eq!((decides.share, decides.best.as_str(), decides.worst.as_str()), (1.0, "1", "2"));
        assert!((decides.factor - 1_f64.exp()).abs() < 1e-9 && decides.settings == 40);
        assert!(effect(Some("bfq"), "b", &costs(false), 1).is_none());
        assert!(effect(None, "c", &[("1", 1.0), ("2", 2.0)], 1).is_none(), "each alone says nothing");
        assert!(effect(None, "c", &[("1", 1.0), ("1", 2.0)], 1).is_none());
    }

    #[test]
    fn one_outlier_among_few_identical_settings_says_nothing_about_its_tunables() {
        // One setting of three is an outlier, so every tunable that only it sets would explain all of the variance.
        let odd = |others: usize| {
            let mut costs = vec![("1", 2.0)];
            costs.extend(std::iter::repeat_n(("2", 1.0), others));
            effect(Some("bfq"), "a", &costs, 1).is_some()
        };
        assert!(!odd(2) && !odd(18));
        assert!(odd(20), "one in 21 is rarer than one in twenty");
    }

    #[test]
    fn a_tunable_correlated_with_another_gets_no_share_of_its_effect() {
        let tunable = |name: &str| Candidates {
            scheduler: "bfq".to_owned(),
            name: name.to_owned(),
            is_queue_file: false,
            texts: vec!["1".to_owned()],
        };
        let branch = Branch { scheduler: "bfq".to_owned(), tunables: vec![tunable("a"), tunable("b"), tunable("c")] };
        let standing = |choices: [usize; 3]| SettingResult {
            setting: branch.setting(&choices),
            seeds: 2,
            figures: BTreeMap::new(),
            margins: Vec::new(),
            holds: true,
            beside_best: None,
        };
        // b is mostly correlated with a, which causes nearly all of the effect; c has a small effect.
        let all: Vec<(SettingResult, f64)> = (0..64)
            .map(|n| {
                let (a, c) = (n % 2, n / 2 % 2);
                let b = if n % 8 < 6 { a } else { 1 - a };
                (standing([a, b, c]), a as f64 + 0.2 * c as f64)
            })
            .collect();
        let found = branch_effects(&branch, all.iter().map(|(standing, cost)| (standing, *cost)).collect());
        let found: Vec<(&str, bool)> =
            found.iter().map(|effect| (effect.tunable.as_str(), effect.share > 0.9)).collect();
        assert_eq!(found, [("a", true), ("c", false)]);
        assert_eq!(Setting::untouched("bfq"), branch.setting(&[0, 0, 0]));
    }
}
