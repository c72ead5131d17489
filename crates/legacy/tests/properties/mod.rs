//! Random loads over whole queues of both fronts: every scheduler, every kernel, several CPUs and hardware queues, plugs,
//! mergeable neighbours, flushes, refusals, errors, requeues, late completions, timeouts, processes that depart, and files of
//! `queue/` written under load, the scheduler among them, over a driver for each CPU. Whatever happens, each bio ends exactly once, tags stay within their depth, nothing waits for
//! longer than its scheduler promises (`tests/support/bounds`), and nothing is stuck in the end.
//!
//! `HOISTWAY_REQUESTS=100000000` has 100 million bios instead of some ten thousand; `docs/internals/testing.md` says how to run it.

mod device;
mod world;

use crate::cases::cases;
use crate::support::Context;
use hoistway_blk::ground::Kernel;
use hoistway_blk::schedulers::OUTSIDE_LINUX;
use hoistway_legacy::ALL_SCHEDULERS;
use proptest::prelude::*;
use world::{Habits, World};

/// One load from beginning to end; returns what was issued, in order, and how many bios there were.
fn load(seed: u64, kernel: Kernel, scheduler: &str, acts: u32) -> (Vec<u64>, u64) {
    let mut world = World::new(seed, kernel, scheduler);
    let _context =
        Context(format!("{scheduler} on {kernel}, seed {seed}, {acts} acts, {:?}, {:?}", world.habits, world.config));
    for _ in 0..acts {
        world.act();
    }
    world.finish();
    world.check_end();
    world.into_issued()
}

proptest! {
    #![proptest_config(cases(50))]

    #[test]
    fn every_bio_ends_once_and_nothing_is_stuck_under_any_scheduler_and_while_it_is_changed(seed in any::<u64>()) {
        for kernel in Kernel::EXAMPLES {
            for scheduler in ALL_SCHEDULERS.into_iter().chain(OUTSIDE_LINUX.map(|row| row.name)) {
                load(seed, kernel, scheduler, 250);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order(
        seed in any::<u64>(), kernel in 0usize..7, scheduler in 0..ALL_SCHEDULERS.len(),
    ) {
        let once = load(seed, Kernel::EXAMPLES[kernel], ALL_SCHEDULERS[scheduler], 250);
        let again = load(seed, Kernel::EXAMPLES[kernel], ALL_SCHEDULERS[scheduler], 250);
        prop_assert_eq!(once, again);
    }
}

#[test]
fn no_request_is_lost_or_duplicated_in_as_many_as_requested() {
    let min_bios: u64 = std::env::var("HOISTWAY_REQUESTS").map_or(20_000, |text| text.parse().expect("a number"));
    let first = std::env::var("HOISTWAY_SEED").map_or(1, |text| text.parse().expect("a number"));
    let (mut bios, mut seed, mut printed_at) = (0, first, 0);
    while bios < min_bios {
        for scheduler in ALL_SCHEDULERS {
            let kernel = Kernel::EXAMPLES[seed as usize % Kernel::EXAMPLES.len()];
            bios += load(seed, kernel, scheduler, if min_bios > 100_000 { 50_000 } else { 500 }).1;
            seed += 1;
        }
        // A long run can be stopped without losing how far it came.
        if bios - printed_at >= 10_000_000 || bios >= min_bios {
            println!("{bios} bios in loads of the seeds {first} to {}", seed - 1);
            printed_at = bios;
        }
    }
}

/// This many loads of the same kind; returns the sum of what is counted in them.
fn sum(habits: impl Fn(&mut Habits), count: impl Fn(&World) -> u64) -> u64 {
    let loads = (0..100).map(|seed| {
        let scheduler = ALL_SCHEDULERS[seed as usize % ALL_SCHEDULERS.len()];
        let mut world = World::new(seed, Kernel::EXAMPLES[seed as usize % Kernel::EXAMPLES.len()], scheduler);
        habits(&mut world.habits);
        (0..250).for_each(|_| world.act());
        world.finish();
        world.check_end();
        count(&world)
    });
    loads.sum()
}

#[test]
fn processes_depart_and_requests_time_out_in_these_loads() {
    let departures = sum(|habits| habits.departing = true, World::departures);
    let timeouts = sum(|_| {}, World::timeouts);
    assert!(departures > 100 && timeouts > 100, "{departures} departures, {timeouts} timeouts");
}

/// A writer that may use one tag of each word must not wait for a batch of eight freed ones.
#[test]
fn a_written_async_depth_leaves_no_sleeper_behind() {
    load(14_093_179_660_157_778_122, Kernel::V6_3, "mq-deadline", 250);
}
