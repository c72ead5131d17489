//! cffq against its rules, with the requests that it decides on around it.

use super::*;
use crate::bio::Bio;
use crate::ground::ids::{IoContextId, Sector};
use crate::policy::RequestStore;
use crate::schedulers::test_bench::{Bench, CAPACITY, random_calls};
use proptest::prelude::*;
use std::cell::Cell;

fn bench() -> Bench<RequestStore<Cffq>> {
    Bench::new(Cffq::new(CAPACITY))
}

/// A read of 4 KiB, `n` apart from others.
fn read(process: u32, class: PriorityClass, level: u8, n: u64) -> Bio {
    let ioprio = IoPriority::new(class, level);
    Bio { io_context: IoContextId(process), ioprio, ..Bio::new(Op::Read, Sector(n * 1000), 8) }
}

#[test]
fn real_time_goes_before_best_effort_and_that_before_idle_whatever_came_first() {
    let mut bench = bench();
    let classes = [PriorityClass::Idle, PriorityClass::None, PriorityClass::BestEffort, PriorityClass::RealTime];
    let [idle, none, best_effort, real_time] = [0, 1, 2, 3].map(|n| bench.insert(read(9, classes[n], 4, n as u64)));
    assert_eq!(bench.dispatch_to(0), (Some(real_time), Reason::LeastStartTag));
    assert_eq!(bench.dispatch(), [none, best_effort, idle], "without a class it is best effort");
}

/// Of 30 requests that are dispatched one after the other, those of the first of two levels of a class.
fn of_first(class: PriorityClass, levels: [u8; 2], sectors: [u32; 2]) -> usize {
    let mut bench = bench().with("slots", "1");
    let mut next = 0;
    let mut add = |bench: &mut Bench<RequestStore<Cffq>>, process: usize| {
        next += 1;
        bench.insert(Bio { sectors: sectors[process], ..read(process as u32, class, levels[process], next) });
    };
    for process in [0, 1, 0, 1] {
        add(&mut bench, process);
    }
    let mut first = 0;
    for _ in 0..30 {
        bench.dispatch_to(0);
        let process = bench.at_device[0].io_context.0 as usize;
        first += usize::from(process == 0);
        bench.complete(0);
        add(&mut bench, process);
    }
    first
}

#[test]
fn within_a_class_processes_get_bytes_by_the_weight_of_their_level() {
    for class in [PriorityClass::BestEffort, PriorityClass::RealTime] {
        assert_eq!(of_first(class, [4, 4], [8, 8]), 15);
        assert_eq!(of_first(class, [0, 4], [8, 8]), 20, "8 : 4");
        assert_eq!(of_first(class, [2, 7], [8, 8]), 25, "6 : 1, of 30");
        assert_eq!(of_first(class, [4, 4], [8, 16]), 20, "bytes, not requests");
    }
    assert_eq!(of_first(PriorityClass::Idle, [0, 7], [8, 8]), 15, "the idle class has no levels");
}

#[test]
fn what_comes_back_goes_first_and_is_not_charged_again() {
    let mut bench = bench().with("slots", "1");
    let [first, second] = [0, 1].map(|n| bench.insert(read(1, PriorityClass::BestEffort, 4, n)));
    assert_eq!(bench.dispatch(), [first]);
    let tag = bench.policy().queue.virtual_time(1);
    bench.requeue(0);
    bench.insert(read(2, PriorityClass::RealTime, 0, 7));
    assert_eq!(bench.dispatch_to(0), (Some(first), Reason::HeadList));
    assert_eq!(bench.dispatch_to(0), (None, Reason::NoSlot));
    assert_eq!(bench.policy().queue.virtual_time(1), tag);
    bench.complete(0);
    assert_eq!(bench.drain().last(), Some(&second));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn random_calls_lose_no_request_leave_no_slot_empty_and_never_turn_virtual_time_back(seed in any::<u64>()) {
        let before = Cell::new([0; CLASSES]);
        random_calls(bench(), seed, |bench| {
            let queue = &bench.policy().queue;
            assert_eq!((queue.waiting() as usize, queue.inflight() as usize), (bench.waiting(), bench.at_device.len()));
            let is_held = queue.inflight() >= queue.slots;
            assert_eq!(queue.has_work(), bench.waiting() > 0 && !is_held, "something waits, and a slot is free");
            assert!(!queue.has_work() || queue.clone().pop().is_some(), "and then something goes");
            let now = [0, 1, 2].map(|class| queue.virtual_time(class));
            assert!(now.iter().zip(before.get()).all(|(now, before)| *now >= before));
            before.set(now);
        });
    }
}
