//! adios against its rules, with the requests that it decides on around it.

use super::*;
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::bio::{Bio, BioFlags};
use crate::ground::ids::{IoContextId, Sector};
use crate::ground::tunables::StoreError;
use crate::policy::RequestStore;
use crate::schedulers::test_bench::{Bench, CAPACITY, Draws, random_calls};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn bench() -> Bench<RequestStore<Adios>> {
    Bench::new(Adios::new(CAPACITY, false))
}

fn read(sector: u64) -> Bio {
    Bio::new(Op::Read, Sector(sector), 8)
}

fn write(sector: u64) -> Bio {
    Bio::new(Op::Write, Sector(sector), 8)
}

fn with_flags(bio: Bio, flags: BioFlags) -> Bio {
    Bio { flags, ..bio }
}

/// Predicted latency of requests that are in a batch or at the device.
fn predicted(policy: &Adios) -> u64 {
    let counted = |entry: &&Entry| matches!(entry.location, Location::Batch(_) | Location::Device);
    policy.entries.iter().filter(counted).map(|entry| entry.predicted_ns).sum()
}

#[test]
fn requeued_requests_go_first_then_durable_ones_then_the_rest() {
    let mut bench = bench();
    let first = bench.insert(read(9000));
    assert_eq!(bench.dispatch_to(0), (Some(first), Reason::DeadlineBatch));
    let plain = bench.insert(read(100));
    let durable = [200, 300].map(|sector| bench.insert(with_flags(write(sector), BioFlags::FUA)));
    assert_eq!(bench.requeue(0), first);
    assert_eq!(bench.dispatch_to(0), (Some(first), Reason::HeadList));
    assert_eq!(bench.dispatch_to(0), (Some(durable[0]), Reason::Durable));
    assert_eq!(bench.dispatch_to(0), (Some(durable[1]), Reason::Durable));
    assert_eq!(bench.dispatch_to(0), (Some(plain), Reason::DeadlineBatch));
    assert_eq!(bench.dispatch_to(0), (None, Reason::Empty));
}

#[test]
fn a_sync_request_is_due_when_it_started_and_equal_deadlines_go_in_the_order_of_arrival() {
    let mut bench = bench().with("read_priority", "0");
    let at = |ms: u64| Instant(ms * MS);
    let late = bench.insert_at(0, read(100), at(9));
    let sync_write = bench.insert_at(0, with_flags(write(200), BioFlags::SYNC), at(7));
    let same = bench.insert_at(0, read(300), at(7));
    let early = bench.insert_at(0, read(400), at(5));
    assert_eq!(bench.drain(), [early, sync_write, same, late]);
}

#[test]
fn an_async_deadline_adds_the_target_and_optionally_the_prediction() {
    let mut bench = bench().with("lat_target_write", "5000000").with("read_priority", "0");
    let at = |ms: u64| Instant(ms * MS);
    let write_due_at_6 = bench.insert_at(0, write(100), at(1));
    let reads = [5, 7].map(|ms| bench.insert_at(0, read(1000 * ms), at(ms)));
    assert_eq!(bench.drain(), [reads[0], write_due_at_6, reads[1]]);

    let mut bench = bench.with("lat_model_write_base", "1000000").with("lat_model_write_slope", "100000");
    let mut order = |places: &str| {
        bench.set("place_deadline_pred_lat", places).unwrap();
        let large = bench.insert_at(0, Bio { sectors: 208, ..write(1000) }, at(1));
        let small = bench.insert_at(0, write(9000), at(2));
        bench.drain() == [small, large]
    };
    assert_eq!((order("0"), order("1")), (false, true), "100 KiB more are expected to take 10 ms more");
}

#[test]
fn a_batch_exceeds_neither_the_window_nor_a_limit_but_for_its_first_request() {
    let mut bench = bench().with("lat_model_read_base", "3000000").with("bq_refill_below_ratio", "0");
    for n in 0..10 {
        bench.insert(read(n * 1000));
    }
    assert_eq!(bench.dispatch().len(), 5, "16 ms hold five requests of 3 ms");
    assert_eq!(bench.dispatch_to(0), (None, Reason::WindowFull));
    bench.drain();
    bench.set("global_latency_window", "1000000").unwrap();
    for sector in [0, 1000] {
        bench.insert(read(sector));
    }
    assert_eq!(bench.dispatch().len(), 1, "the first goes whatever it takes");
    bench.drain();
    let mut bench = Bench::new(Adios::new(CAPACITY, false))
        .with("batch_limit_read", "2")
        .with("lat_model_read_base", "1")
        .with("bq_refill_below_ratio", "0");
    for n in 0..5 {
        bench.insert(read(n * 1000));
    }
    assert_eq!(bench.dispatch().len(), 2, "a batch of two, and nothing until these are done");
    bench.drain();
}

proptest! {
    #[test]
    fn requests_added_to_a_batch_fit_the_window_and_the_limits(seed in any::<u64>()) {
        let mut draws = Draws(seed);
        let mut policy = Adios::new(CAPACITY, false);
        for model in &mut policy.models {
            model.set_base_ns(1 + draws.below(4 * MS));
            model.set_slope_ns_per_kib(draws.below(100_000));
        }
        policy.settings.batch_limit = [0; 3].map(|_| 1 + draws.below(6) as u32);
        policy.settings.refill_percent = draws.below(101);
        let mut bench = Bench::new(policy);
        for n in 0..CAPACITY {
            let bio = draws.bio(false);
            bench.insert(Bio { sector: Sector(u64::from(n) * 10_000), flags: BioFlags::NONE, ..bio });
        }
        while bench.waiting() > 0 {
            let before = bench.policy().batches.map(|batch| batch.first());
            bench.dispatch_to(0);
            let policy = bench.policy();
            // A batch that was empty and has requests now was filled in this call; the first of it has perhaps gone.
            for (batch, before) in policy.batches.iter().zip(before) {
                if before.is_some() {
                    continue;
                }
                let rest: Vec<usize> = batch.iter(&policy.links).map(|id| usize::from(policy.entries[id as usize].kind)).collect();
                prop_assert!(rest.len() <= 1 || policy.predicted_ns <= policy.settings.window_ns);
                for kind in 0..3 {
                    let count = rest.iter().filter(|&&of| of == kind).count();
                    prop_assert!(count <= policy.settings.batch_limit[kind] as usize);
                }
            }
            if !bench.at_device.is_empty() && draws.below(2) == 0 {
                bench.complete(0);
            }
        }
        bench.drain();
    }
}

#[test]
fn the_next_batch_is_filled_below_the_ratio_and_not_above() {
    let mut bench = bench().with("lat_model_read_base", "2000000").with("bq_refill_below_ratio", "50");
    for n in 0..20 {
        bench.insert(read(n * 1000));
    }
    // Eight of 2 ms fill 16 ms.
    assert_eq!(bench.dispatch().len(), 8);
    for _ in 0..3 {
        bench.complete(0);
        assert!(!bench.has_work() && !bench.requested.run_queues, "10 ms or more are left");
    }
    bench.complete(0);
    assert!(bench.has_work() && bench.requested.run_queues, "8 ms are left, half the window");
    assert_eq!(bench.dispatch().len(), 4);
    bench.drain();
}

#[test]
fn a_latency_above_the_limit_is_not_learned() {
    let mut bench = bench().with("lat_model_latency_limit", "5000000");
    let take = |bench: &mut Bench<RequestStore<Adios>>, ms: u64| {
        bench.at.0 += 200 * MS;
        bench.insert(read(100));
        bench.dispatch();
        bench.at.0 += ms * MS;
        bench.complete(0);
        bench.shown("lat_model_read_base")
    };
    assert_eq!(take(&mut bench, 6), 0);
    assert_eq!(take(&mut bench, 5), 5_000_000);
    assert_eq!(take(&mut bench, 400), 5_000_000);
    assert_eq!(bench.shown("lat_model_write_base"), 0, "each kind has a model of its own");
}

#[test]
fn a_model_is_six_numbers_that_may_be_written_and_anything_else_is_refused() {
    let mut bench = bench();
    for kind in ["read", "write", "discard"] {
        for (part, text) in [("base", "80000"), ("slope", "300")] {
            let name = format!("lat_model_{kind}_{part}");
            bench.set(&name, text).unwrap();
            for garbage in ["", "80000 300", "fast", "-1", "0x10"] {
                assert_eq!(bench.set(&name, garbage), Err(StoreError::Invalid), "{garbage:?}");
            }
            assert_eq!(bench.set(&name, "10000000001"), Err(StoreError::Range));
            assert_eq!(bench.shown(&name).to_string(), text);
        }
    }
    bench.set("reset_lat_model", "0").unwrap();
    assert_eq!(bench.shown("lat_model_read_base"), 80_000);
    bench.set("reset_lat_model", "1").unwrap();
    assert_eq!((bench.shown("lat_model_read_base"), bench.shown("reset_lat_model")), (0, 0));
}

#[test]
fn a_merged_request_keeps_the_earlier_deadline() {
    let at = |ms: u64| Instant(ms * MS);
    let mut bench = bench();
    let other = bench.insert_at(0, read(9000), at(2));
    let early = bench.insert_at(0, read(100), at(1));
    bench.at = at(5);
    assert_eq!(bench.merge(read(108)), Some(Edge::Back));
    assert_eq!(bench.drain(), [early, other]);
    // A request that closes a gap makes one of two, of which the one behind was the earlier.
    let other = bench.insert_at(0, read(9000), at(8));
    bench.insert_at(0, read(100), at(7));
    let before = bench.insert_at(0, read(92), at(9));
    bench.insert_at(0, read(108), at(10));
    assert_eq!(bench.waiting(), 2);
    assert_eq!(bench.drain(), [before, other]);
    // Among equal deadlines it stands where that one stood.
    let mut bench = self::bench();
    let last = bench.insert_at(0, read(50_000), at(30));
    bench.insert_at(0, read(100), at(17));
    let equal = bench.insert_at(0, read(9000), at(17));
    let before = bench.insert_at(0, read(92), at(19));
    bench.insert_at(0, read(108), at(20));
    assert_eq!(bench.drain(), [before, equal, last]);
}

#[test]
fn a_request_that_grows_in_a_batch_takes_more_of_the_window() {
    let mut bench = bench().with("lat_model_read_base", "1000000").with("lat_model_read_slope", "250000");
    for sector in [0, 1000, 2000] {
        bench.insert(read(sector));
    }
    bench.dispatch_to(0);
    assert_eq!(bench.policy().predicted_ns, 3_000_000);
    assert_eq!(bench.merge(read(2008)), Some(Edge::Back));
    assert_eq!(bench.policy().predicted_ns, 4_000_000, "4 KiB more are 1 ms more");
    bench.drain();
    assert_eq!(bench.policy().predicted_ns, 0);
}

#[test]
fn everything_is_drained_by_tier_and_then_by_deadline() {
    let mut bench = bench();
    let at = |ms: u64| Instant(ms * MS);
    let writes = [3, 1].map(|ms| bench.insert_at(0, write(ms * 1000), at(ms)));
    let reads = [40, 20].map(|ms| bench.insert_at(0, read(ms * 1000), at(ms)));
    let durable = bench.insert_at(0, with_flags(write(90_000), BioFlags::FUA), at(50));
    assert_eq!(bench.drain(), [durable, reads[1], reads[0], writes[1], writes[0]]);
}

#[test]
fn priorities_and_processes_change_nothing() {
    let order = |class: PriorityClass| {
        let mut bench = bench();
        let [first, second] = [0, 1].map(|n| {
            let ioprio = if n == 1 { IoPriority::new(class, 0) } else { IoPriority::DEFAULT };
            bench.insert(Bio { ioprio, io_context: IoContextId(n), ..read(u64::from(n) * 1000) })
        });
        bench.drain() == [first, second]
    };
    assert!([PriorityClass::RealTime, PriorityClass::BestEffort, PriorityClass::Idle].into_iter().all(order));
}

#[test]
fn a_read_goes_before_another_request_that_is_a_little_earlier() {
    let order = |priority: &str, lead_us: u64| {
        let mut bench = bench().with("read_priority", priority);
        bench.insert_at(0, with_flags(write(100), BioFlags::SYNC), Instant(MS));
        let read = bench.insert_at(0, read(9000), Instant(MS + lead_us * 1000));
        bench.drain()[0] == read
    };
    assert_eq!([874, 876].map(|lead| order("7", lead)), [true, false], "seven steps of 125 us");
    assert_eq!((order("0", 1), order("-20", 0)), (false, false));
}

#[test]
fn the_window_of_a_rotating_device_is_longer() {
    let shown = |is_rotational| Bench::new(Adios::new(CAPACITY, is_rotational)).shown("global_latency_window");
    assert_eq!((shown(false), shown(true)), (16_000_000, 22_000_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_calls_lose_no_request_and_keep_the_prediction_sum_exact(seed in any::<u64>()) {
        random_calls(Bench::new(Adios::new(CAPACITY, false)), seed, |bench| {
            assert_eq!(bench.policy().predicted_ns, predicted(bench.policy()));
        });
    }
}

#[test]
fn a_larger_queue_makes_room_for_more_ids() {
    let mut adios = Adios::new(2, false);
    adios.grow(CAPACITY);
    adios.grow(1);
    assert_eq!(adios.entries.len(), CAPACITY as usize);
}
