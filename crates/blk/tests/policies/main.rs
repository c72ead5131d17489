//! Random loads over the policies of all schedulers, beside a model that knows where each request is: insertions, merges
//! (a bio into a request, a newcomer into a queued one, two queued ones), dispatch, completion, requeues, timers, ends
//! of processes, priorities, cgroups and tunables, in any order. Whatever happens
//! - a request comes out exactly once for each time that it is put in, and nobody ever sees one that is not inside;
//! - a scheduler with requests says that it has work, and gives them out once completions and its timer have come;
//! - who promises a bound on waiting keeps it.
//!
//! `HOISTWAY_POLICY_CASES=10000 cargo test -p hoistway-blk --test policies` runs more cases than the default.

#[path = "../support/mod.rs"]
mod support;
mod world;

use hoistway_blk::{Bio, HctxId, Instant, Kernel, Nanos, Op, Sector};
use proptest::prelude::*;
use support::{Context, Random};
use world::{Subject, World};

/// Cases of a property: the variable, or so many.
fn cases(default: u32) -> ProptestConfig {
    let wanted = std::env::var("HOISTWAY_POLICY_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig::with_cases(wanted.unwrap_or(default))
}

/// One load from beginning to end; answers what came out, in order.
fn load(seed: u64, subject: Subject) -> Vec<u32> {
    let _context = Context(format!("{subject:?}, seed {seed}"));
    let mut world = World::new(seed, subject);
    for _ in 0..300 {
        world.act();
    }
    world.empty();
    world.given_out
}

/// A scheduler and what it may have: a cycle of batches after which each direction or domain has had its turn.
struct Bounded {
    subject: Subject,
    /// Requests in a cycle.
    cycle: u64,
    /// Tunables to set before.
    set: Vec<(&'static str, u64)>,
}

fn bounded(random: &mut Random) -> Bounded {
    let subjects: Vec<Subject> = Subject::all().into_iter().filter(Subject::bounds_waiting).collect();
    let subject = subjects[random.below(subjects.len() as u64) as usize];
    if subject.scheduler == "kyber" {
        // 16 reads, 8 writes and at most 8 of the others.
        return Bounded { subject, cycle: 32, set: Vec::new() };
    }
    let (batch, starved) = (1 + random.below(8), 1 + random.below(3));
    let set = vec![("fifo_batch", batch), ("writes_starved", starved), ("read_expire", 50), ("write_expire", 200)];
    Bounded { subject, cycle: batch * (starved + 1), set }
}

proptest! {
    #![proptest_config(cases(500))]

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

    /// `mq-deadline.md` 6.2, `deadline.md`: a new batch begins with the oldest request of its direction once that is over
    /// its time, and no direction waits for more than `writes_starved` batches of the other. `kyber.md` 5: domains take
    /// turns of limited length while there are tokens.
    #[test]
    fn who_is_over_its_time_waits_for_as_many_cycles_as_there_are_older_ones(seed in any::<u64>()) {
        let mut random = Random(seed);
        let Bounded { subject, cycle, set } = bounded(&mut random);
        let _context = Context(format!("{subject:?}, cycle {cycle}, seed {seed}"));
        let mut world = World::new(seed, subject);
        for (name, value) in set {
            world.write_tunable(name, &value.to_string());
        }
        // For each request that is inside: its kind, when it is over its time, how many dispatches it may then wait.
        let mut waiting: Vec<(u32, bool, Instant, Option<u64>)> = Vec::new();
        let mut random = Random(random.next());
        for _ in 0..600 {
            for _ in 0..random.below(3) {
                let is_read = !random.one_in(3);
                let op = if is_read { Op::Read } else { Op::Write };
                let bio = Bio::new(op, Sector(random.below(100_000) * 16), 8);
                let Some(id) = world.insert_alone(bio) else { continue };
                let expire = match (subject.scheduler, is_read) {
                    ("kyber", _) => 0,
                    (_, true) => 50,
                    (_, false) => 200,
                };
                // (Expiry times are kept in ticks, rounded up.)
                waiting.push((id.0, is_read, world.now + Nanos::from_millis(expire + 20), None));
            }
            world.now += Nanos::from_millis(random.below(8));
            let Some(out) = world.give_out(HctxId(0)) else { continue };
            world.finish(out);
            let place = waiting.iter().position(|&(id, ..)| id == out.0).expect("it is inside");
            waiting.remove(place);
            for at in 0..waiting.len() {
                let (id, is_read, expiry, left) = waiting[at];
                let older = waiting[..at].iter().filter(|other| other.1 == is_read).count() as u64;
                if expiry <= world.now {
                    let left = left.unwrap_or((older + 2) * cycle);
                    prop_assert!(left > 0, "request {id} waits for too long");
                    waiting[at].3 = Some(left - 1);
                }
            }
        }
    }
}

#[test]
fn every_scheduler_is_among_the_subjects_on_every_kernel_that_has_it() {
    let subjects = Subject::all();
    for scheduler in hoistway_blk::SCHEDULERS.iter().filter(|&&name| name != "none") {
        assert_eq!(subjects.iter().filter(|subject| subject.scheduler == *scheduler).count(), Kernel::ALL.len());
    }
    for scheduler in hoistway_blk::LEGACY_SCHEDULERS {
        assert!(subjects.iter().any(|subject| subject.scheduler == scheduler), "{scheduler}");
    }
}
