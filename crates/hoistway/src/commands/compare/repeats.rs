//! `--repeat`: seeds, the runs that they make, and what of them counts.

use std::collections::BTreeMap;

use hoistway_results::document::Run;
use hoistway_sim::{GuestSpec, RunSpec};

use super::tunables::Settings;

/// Most repeats: all their documents are in memory at the end.
pub(super) const REPEATS_MAX: u32 = 1000;

/// Seeds fit the numbers of every reader of JSON, so that a repeat can be run again by its seed.
const SEED_BITS: u32 = 53;

/// The seed of each repeat: first `seed` itself, so that the first repeat is the run without repeats; then numbers
/// drawn from it.
pub(super) fn seeds(seed: u64, repeats: u32) -> Vec<u64> {
    let mut seeds = Vec::with_capacity(repeats as usize);
    seeds.push(seed);
    let mut state = seed;
    while seeds.len() < repeats.max(1) as usize {
        let next = split_mix(&mut state) >> (u64::BITS - SEED_BITS);
        // A run twice would count as two.
        if !seeds.contains(&next) {
            seeds.push(next);
        }
    }
    seeds
}

/// SplitMix64 (Steele, Lea and Flood 2014): a bijection of the counter, so numbers do not repeat before they are cut.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// The runs: repeat by repeat, every scheduler with the same seed; with guests every one of theirs over every one of the
/// host.
pub(super) fn specs(
    schedulers: &[String],
    of_guests: Option<&[String]>,
    settings: &Settings,
    seeds: &[u64],
) -> Vec<RunSpec> {
    let tunables = |scheduler: &String| settings.get(scheduler).cloned().unwrap_or_default();
    let guest = |scheduler: &String| GuestSpec { scheduler: scheduler.clone(), tunables: tunables(scheduler) };
    let guests: Vec<Option<GuestSpec>> = match of_guests {
        Some(schedulers) => schedulers.iter().map(guest).map(Some).collect(),
        None => vec![None],
    };
    let mut specs = Vec::with_capacity(seeds.len() * schedulers.len() * guests.len());
    for &seed in seeds {
        for scheduler in schedulers {
            specs.extend(guests.iter().map(|guest| RunSpec {
                scheduler: scheduler.clone(),
                tunables: tunables(scheduler),
                guest: guest.clone(),
                seed,
            }));
        }
    }
    specs
}

/// Numbers the runs by their seeds. Of repeats that were interrupted only those count that every scheduler finished:
/// what was cut short at different moments cannot be compared. If there are none of these, all that there is remains.
pub(super) fn counted(mut runs: Vec<Run>, seeds: &[u64], schedulers: usize, cut_short: &[(String, u64)]) -> Vec<Run> {
    for run in &mut runs {
        run.repeat = seeds.iter().position(|seed| *seed == run.seed).unwrap_or(0) as u32;
    }
    if seeds.len() < 2 {
        return runs;
    }
    let mut finished: BTreeMap<u64, usize> = BTreeMap::new();
    for run in &runs {
        let is_cut = cut_short.iter().any(|(scheduler, seed)| *scheduler == run.scheduler && *seed == run.seed);
        *finished.entry(run.seed).or_default() += usize::from(!is_cut);
    }
    if finished.values().any(|count| *count == schedulers) {
        runs.retain(|run| finished[&run.seed] == schedulers);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn run(scheduler: &str, seed: u64) -> Run {
        serde_json::from_value(serde_json::json!({
            "scheduler": scheduler, "front": "mq", "tunables": {}, "repeat": 0, "seed": seed, "simulated_seconds": 1.0,
            "simulated_ios": 1, "wall_seconds": 1.0, "cpu_us_per_io": null, "jobs": [],
            "fio": {"fio version": "fio-3.33", "jobs": []},
        }))
        .unwrap()
    }

    #[test]
    fn of_interrupted_repeats_only_those_count_that_every_scheduler_finished() {
        let seeds = [1, 20, 30];
        let runs = || vec![run("none", 1), run("bfq", 1), run("none", 20), run("bfq", 20), run("none", 30)];
        let counted = |cut: &[(&str, u64)]| -> Vec<(String, u32)> {
            let cut: Vec<_> = cut.iter().map(|(scheduler, seed)| ((*scheduler).to_owned(), *seed)).collect();
            super::counted(runs(), &seeds, 2, &cut).into_iter().map(|run| (run.scheduler, run.repeat)).collect()
        };
        let names = |list: &[(&str, u32)]| list.iter().map(|(s, n)| ((*s).to_owned(), *n)).collect::<Vec<_>>();
        assert_eq!(counted(&[]), names(&[("none", 0), ("bfq", 0), ("none", 1), ("bfq", 1)]));
        assert_eq!(counted(&[("bfq", 20)]), names(&[("none", 0), ("bfq", 0)]));
        assert_eq!(counted(&[("bfq", 20), ("none", 1)]).len(), 5, "no repeat is whole: all that there is");
    }
}
