//! Samples the search space when it is too large to try whole. Half of the samples change one tunable, to isolate its effect; the other
//! half several.

use std::collections::BTreeSet;

use hoistway_answer::tuning::Setting;

use super::space::{Branch, Space};
use crate::plan::repeats::split_mix;

/// Up to this many combinations are enumerated.
const LISTED_MAX: u64 = 4096;
/// After this many draws without a new setting the sample is complete.
const DRAWS_MAX: u32 = 200;

/// Chooses `count` settings, taking schedulers in turn; a larger count only appends to the list. Each scheduler's
/// defaults come first.
pub(super) fn settings(space: &Space, count: usize, seed: u64) -> Vec<Setting> {
    let mut sources: Vec<Source<'_>> =
        (0..).zip(&space.branches).map(|(index, branch)| Source::new(branch, seed ^ (index + 1))).collect();
    let mut settings = Vec::new();
    while settings.len() < count && !sources.is_empty() {
        sources.retain_mut(|source| match source.next() {
            Some(setting) => {
                settings.push(setting);
                true
            }
            None => false,
        });
    }
    settings.truncate(count);
    settings
}

/// A source of a scheduler's settings.
struct Source<'a> {
    branch: &'a Branch,
    /// The next settings, in reverse order: all of them, or those with one changed tunable.
    pending: Vec<Setting>,
    /// Whether the list is complete.
    is_exhaustive: bool,
    /// Whether the latest setting was drawn at random; drawn and pending ones alternate.
    last_was_random: bool,
    seen: BTreeSet<Setting>,
    random: u64,
}

impl<'a> Source<'a> {
    fn new(branch: &'a Branch, mut random: u64) -> Self {
        let is_exhaustive = branch.size() <= LISTED_MAX;
        let mut pending: Vec<Setting> = if is_exhaustive {
            (1..branch.size()).map(|number| branch.setting(&choices(branch, number))).collect()
        } else {
            let single = |tunable: usize, value: usize| {
                let mut choices = vec![0; branch.tunables.len()];
                choices[tunable] = value;
                branch.setting(&choices)
            };
            let single_changes =
                |tunable: usize| (1..=branch.tunables[tunable].texts.len()).map(move |value| single(tunable, value));
            (0..branch.tunables.len()).flat_map(single_changes).collect()
        };
        // Fisher-Yates shuffle.
        for last in (1..pending.len()).rev() {
            pending.swap(last, below(&mut random, last + 1));
        }
        pending.push(branch.setting(&[]));
        Source { branch, pending, is_exhaustive, last_was_random: true, seen: BTreeSet::new(), random }
    }

    fn next(&mut self) -> Option<Setting> {
        self.last_was_random = !self.last_was_random;
        let next = if self.is_exhaustive || !self.last_was_random {
            self.pending.pop().or_else(|| self.draw())
        } else {
            self.draw().or_else(|| self.pending.pop())
        };
        self.seen.extend(next.clone());
        next
    }

    fn draw(&mut self) -> Option<Setting> {
        if self.is_exhaustive {
            return None;
        }
        (0..DRAWS_MAX).find_map(|_| {
            let tunables = &self.branch.tunables;
            let choices: Vec<usize> =
                tunables.iter().map(|tunable| below(&mut self.random, tunable.texts.len() + 1)).collect();
            let setting = self.branch.setting(&choices);
            // Settings with one changed tunable are listed separately.
            (choices.iter().filter(|choice| **choice > 0).count() > 1 && !self.seen.contains(&setting))
                .then_some(setting)
        })
    }
}

/// The choices of a combination, by the combination's number.
fn choices(branch: &Branch, mut number: u64) -> Vec<usize> {
    let digit = |tunable: &hoistway_answer::tuning::Candidates| {
        let count = tunable.texts.len() as u64 + 1;
        let digit = number % count;
        number /= count;
        digit as usize
    };
    branch.tunables.iter().map(digit).collect()
}

/// A random number below a limit.
fn below(random: &mut u64, limit: usize) -> usize {
    // With limits this small the bias of the modulo is negligible.
    (split_mix(random) % limit as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_answer::tuning::Candidates;

    fn space(tunables: usize, values: usize) -> Space {
        let tunable = |number: usize| Candidates {
            scheduler: "bfq".to_owned(),
            name: format!("tunable{number}"),
            is_queue_file: false,
            texts: (0..values).map(|value| value.to_string()).collect(),
        };
        let branch = |scheduler: &str, tunables: usize| Branch {
            scheduler: scheduler.to_owned(),
            tunables: (0..tunables).map(tunable).collect(),
        };
        Space { branches: vec![branch("none", 0), branch("bfq", tunables)] }
    }

    #[test]
    fn a_small_space_is_tried_whole_and_each_setting_once() {
        let space = space(3, 2);
        let all = settings(&space, 1000, 1);
        assert_eq!((all.len() as u64, space.size()), (28, 28));
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 28);
        assert_eq!(all[..2], [Setting::untouched("none"), Setting::untouched("bfq")]);
        assert_eq!(settings(&space, 10, 1), all[..10]);
        assert_ne!(settings(&space, 10, 2), all[..10]);
    }

    #[test]
    fn a_sample_has_single_tunables_and_combinations_and_grows_stably() {
        let space = space(9, 6);
        let many = settings(&space, 150, 7);
        assert_eq!(many.iter().collect::<BTreeSet<_>>().len(), 150);
        let with = |tunables: usize| many.iter().filter(|setting| setting.writes.len() == tunables).count();
        assert_eq!((with(0), with(1)), (2, 54), "each value of each tunable alone");
        assert!(with(7) + with(8) + with(9) > 50);
        assert_eq!(settings(&space, 40, 7), many[..40]);
    }
}
