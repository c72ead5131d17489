//! Repeats: their seeds, and which of them count.

/// Maximum repeats: the results of all of them are in memory at the end.
pub const REPEATS_MAX: u32 = 1000;

/// Minimum repeats before the decision is checked: with fewer, confidence intervals are too wide.
const REPEATS_MIN: u32 = 3;
/// Maximum repeats of a comparison that stops once its decision is certain.
pub const UNTIL_SURE_MAX: u32 = 60;
/// Maximum I/Os of all its runs together: up to ten seconds on two cores, at 1 to 4 us per I/O.
const UNTIL_SURE_IOS: u64 = 5_000_000;
/// Maximum runs: each is stored in the document.
const UNTIL_SURE_RUNS: u32 = 2000;

/// The number of repeats that a comparison needs until its decision is certain, given that `done` repeats did `ios` I/Os; `None` if they
/// are enough. It depends only on the results, so the same seed gives the same repeats on every machine.
pub(crate) fn until_sure(
    done: u32,
    ios: u64,
    runs_per_repeat: usize,
    repeats_max: u32,
    is_sure: impl FnOnce() -> bool,
) -> Option<u32> {
    let repeats_min = REPEATS_MIN.min(repeats_max);
    if done < repeats_min {
        return Some(repeats_min);
    }
    let by_ios = UNTIL_SURE_IOS.saturating_mul(u64::from(done)) / ios.max(1);
    let by_runs = UNTIL_SURE_RUNS / runs_per_repeat.max(1) as u32;
    let repeats_max = repeats_max.min(by_runs).min(u32::try_from(by_ios).unwrap_or(u32::MAX));
    // Each check adds a chance of a wrong decision, and cores idle at the end of each round, so rounds grow.
    let next = repeats_max.min(done + (done / 2).max(2));
    (next > done && !is_sure()).then_some(next)
}

/// Seeds fit into the numbers of every JSON reader, so a repeat can be run again by its seed.
const SEED_BITS: u32 = 53;

/// The seed of each repeat: first `seed` itself, so the first repeat equals a comparison without repeats; then numbers
/// drawn from it.
pub fn seeds(seed: u64, repeats: u32) -> Vec<u64> {
    let mut seeds = Vec::with_capacity(repeats as usize);
    seeds.push(seed);
    let mut state = seed;
    while seeds.len() < repeats.max(1) as usize {
        let next = split_mix(&mut state) >> (u64::BITS - SEED_BITS);
        // A repeated seed would count the same run twice.
        if !seeds.contains(&next) {
            seeds.push(next);
        }
    }
    seeds
}

/// SplitMix64 (Steele, Lea and Flood 2014): a bijection of the counter, so numbers do not repeat before truncation.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Selects the runs that count; `runs` holds `of_repeat` runs per repeat, in order. If repeats were interrupted, only
/// those count in which `is_whole` holds for every run, since runs that stopped at different times cannot be compared.
/// If no repeat is whole, all runs count.
pub(crate) fn counted<T>(runs: Vec<Option<T>>, runs_per_repeat: usize, is_complete: impl Fn(&T) -> bool) -> Vec<T> {
    let is_finished = |repeat: &[Option<T>]| repeat.iter().all(|run| run.as_ref().is_some_and(&is_complete));
    let finished: Vec<bool> = runs.chunks(runs_per_repeat.max(1)).map(is_finished).collect();
    let only_finished = finished.iter().any(|&finished| finished);
    let counts = |index: usize| !only_finished || finished[index / runs_per_repeat.max(1)];
    runs.into_iter().enumerate().filter(|(index, _)| counts(*index)).filter_map(|(_, run)| run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_continue_until_the_decision_is_sure_or_the_ios_are_spent() {
        let rounds = |ios_of_repeat: u64, runs_per_repeat: usize, most: u32, sure_from: u32| {
            let (mut done, mut rounds) = (0, Vec::new());
            let goes_on = |done: u32| {
                until_sure(done, ios_of_repeat * u64::from(done), runs_per_repeat, most, || done >= sure_from)
            };
            while let Some(next) = goes_on(done) {
                assert!(next > done);
                done = next;
                rounds.push(next);
            }
            rounds
        };
        assert_eq!(rounds(1000, 4, 60, 0), [3]);
        assert_eq!(rounds(1000, 4, 60, 6), [3, 5, 7]);
        assert_eq!(rounds(1000, 4, 60, 61), [3, 5, 7, 10, 15, 22, 33, 49, 60]);
        assert_eq!(rounds(1_000_000, 4, 60, 61), [3, 5], "the I/Os are spent");
        assert_eq!(rounds(20_000_000, 4, 60, 61), [3], "three in any case");
        assert_eq!(rounds(1000, 500, 60, 61), [3, 4]);
        assert_eq!(rounds(1000, 4, 2, 61), [2]);
        assert_eq!(rounds(0, 4, 60, 5), [3, 5], "no I/O at all");
    }

    #[test]
    fn seeds_differ_begin_with_the_given_one_and_fit_every_reader() {
        for seed in [0, 1, 42, u64::MAX] {
            let many = seeds(seed, 1000);
            assert_eq!(many[0], seed);
            assert_eq!(many.iter().collect::<std::collections::BTreeSet<_>>().len(), 1000);
            assert!(many[1..].iter().all(|seed| *seed < 1 << 53));
            assert_eq!(seeds(seed, 10), many[..10], "more repeats change nothing of the first");
        }
        assert_eq!(seeds(7, 1), [7]);
    }

    #[test]
    fn an_interrupted_repeat_counts_only_if_every_scheduler_finished_it() {
        // Two schedulers, three repeats; the last run never began.
        let counted = |cut: &[u32]| {
            let runs = vec![Some(0), Some(1), Some(2), Some(3), Some(4), None];
            super::counted(runs, 2, |run| !cut.contains(run))
        };
        assert_eq!(counted(&[]), [0, 1, 2, 3]);
        assert_eq!(counted(&[3]), [0, 1]);
        assert_eq!(counted(&[0]), [2, 3]);
        assert_eq!(counted(&[1, 2]), [0, 1, 2, 3, 4], "no repeat is whole: all that there is");
    }
}
