//! Random loads over the policies of all schedulers, beside a model that knows where each request is: insertions, merges
//! (a bio into a request, a newcomer into a queued one, two queued ones), dispatch, completion, requeues, timers, ends
//! of processes, priorities, cgroups and tunables, in any order. Whatever happens
//! - a request comes out exactly once for each time that it is put in, and one that is not inside is never seen;
//! - a scheduler with requests says that it has work, and gives them out once completions and its timer have come;
//! - one that promises a bound on waiting keeps it.
//!
//! `HOISTWAY_CASES=10000 cargo test -p hoistway-legacy policies` runs more cases than the default.

mod world;

use crate::cases::cases;
use crate::support::{Context, Random};
use hoistway_blk::bio::{Bio, Op};
use hoistway_blk::ground::{HctxId, Kernel, Nanos, Sector};
use proptest::prelude::*;
use world::{Subject, World};

/// One load from beginning to end; returns what came out, in order.
fn load(seed: u64, subject: Subject) -> Vec<u32> {
    let _context = Context(format!("{subject:?}, seed {seed}"));
    let mut world = World::new(seed, subject);
    for _ in 0..300 {
        world.act();
    }
    world.empty();
    world.given_out
}

proptest! {
    #![proptest_config(cases(125))]

    #[test]
    fn every_request_comes_out_once_and_none_is_stuck_in_any_policy(seed in any::<u64>()) {
        for subject in Subject::all() {
            load(seed, subject);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order(seed in any::<u64>(), subject in any::<prop::sample::Index>()) {
        let subjects = Subject::all();
        let subject = subjects[subject.index(subjects.len())];
        prop_assert_eq!(load(seed, subject), load(seed, subject));
    }

    /// Waits that are short when they are kept: see `support/bounds`, which watches all loads.
    #[test]
    fn an_overdue_request_waits_as_many_cycles_as_there_are_older_ones(
        seed in any::<u64>(), subject in any::<prop::sample::Index>(),
    ) {
        let subjects: Vec<Subject> = Subject::all().into_iter().filter(Subject::bounds_waiting).collect();
        let subject = subjects[subject.index(subjects.len())];
        let mut random = Random(seed);
        let (batch, starved) = (1 + random.below(8), 1 + random.below(3));
        let _context = Context(format!("{subject:?}, batches of {batch}, {starved} before writes, seed {seed}"));
        let mut world = World::new(seed, subject);
        if subject.scheduler != "kyber" {
            let set = [("fifo_batch", batch), ("writes_starved", starved), ("read_expire", 50), ("write_expire", 200)];
            set.iter().for_each(|(name, value)| world.write_tunable(name, &value.to_string()));
        }
        for _ in 0..600 {
            for _ in 0..random.below(3) {
                let op = if random.one_in(3) { Op::Write } else { Op::Read };
                world.insert_alone(Bio::new(op, Sector(random.below(100_000) * 16), 8));
            }
            world.now += Nanos::from_millis(random.below(8));
            if let Some(out) = world.give_out(HctxId(0)) {
                world.finish(out);
            }
        }
    }
}

#[test]
fn every_scheduler_is_among_the_subjects_on_every_kernel_that_has_it() {
    let subjects = Subject::all();
    for scheduler in hoistway_blk::queue::SCHEDULERS.iter().filter(|&&name| name != "none") {
        assert_eq!(subjects.iter().filter(|subject| subject.scheduler == *scheduler).count(), Kernel::EXAMPLES.len());
    }
    for scheduler in hoistway_legacy::LEGACY_SCHEDULERS {
        assert!(subjects.iter().any(|subject| subject.scheduler == scheduler), "{scheduler}");
    }
}
