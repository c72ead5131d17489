//! vfair against its rules, with the requests that it decides on around it.

use super::*;
use crate::bio::Bio;
use crate::ground::ids::Sector;
use crate::ground::time::Instant;
use crate::policy::RequestStore;
use crate::schedulers::test_bench::{Bench, CAPACITY, Draws, random_calls};
use proptest::prelude::*;
use std::cell::Cell;

const US: u64 = 1000;

type VfairBench = Bench<RequestStore<Vfair>>;

fn bench() -> VfairBench {
    Bench::new(Vfair::new(CAPACITY))
}

fn read(process: u32, n: u64) -> Bio {
    Bio { io_context: IoContextId(process), ..Bio::new(Op::Read, Sector(n * 1000), 8) }
}

/// Processes or groups that always have some requests waiting, on a device that serves one at a time. Returns the time that each had.
fn shares(bench: &mut VfairBench, bios: &[Bio], takes_us: &[u64]) -> Vec<u64> {
    let mut times = vec![0; bios.len()];
    let mut n = 0;
    let mut add = |bench: &mut VfairBench, of: usize| {
        n += 1;
        bench.insert(Bio { sector: Sector(n * 1000), ..bios[of] });
    };
    for of in (0..bios.len()).cycle().take(3 * bios.len()) {
        add(bench, of);
    }
    for _ in 0..600 {
        bench.dispatch_to(0);
        let rq = &bench.at_device[0];
        let of = bios.iter().position(|bio| (bio.io_context, bio.cgroup) == (rq.io_context, rq.cgroup)).unwrap();
        bench.at.0 += takes_us[of] * US;
        times[of] += takes_us[of];
        bench.complete(0);
        add(bench, of);
    }
    times
}

#[test]
fn flows_get_device_time_by_weight_whatever_their_requests_cost() {
    let mut one_slot = bench().with("slots", "1");
    let times = shares(&mut one_slot, &[read(1, 0), read(2, 0)], &[100, 400]);
    assert!(times[0].abs_diff(times[1]) <= 500, "{times:?}: four times as many requests of a quarter of the cost");
    let mut one_slot = bench().with("slots", "1");
    let in_group = |group: u32| Bio { cgroup: CgroupId(group), ..read(group, 0) };
    one_slot.tell(SchedulerEvent::Weight { cgroup: CgroupId(2), weight: 300 });
    let times = shares(&mut one_slot, &[in_group(1), in_group(2)], &[100, 100]);
    assert!((3 * times[0]).abs_diff(times[1]) <= 600, "{times:?}");
}

#[test]
fn a_request_costs_its_part_of_the_time_in_which_others_are_at_the_device() {
    let mut bench = bench();
    let ids = [1, 2].map(|process| bench.insert(read(process, u64::from(process))));
    assert_eq!(bench.dispatch(), ids);
    bench.at.0 += 100 * US;
    bench.complete(0);
    bench.at.0 += 30 * US;
    bench.complete(0);
    let expected = [50, 80].map(|us| us * US * PARTS_PER_NS / 8);
    let means = [1, 2].map(|process| {
        let flow = bench.policy().queue.find(FlowKey::io_context(IoContextId(process))).unwrap();
        bench.policy().flows[flow.index()].mean_costs.expect(0)
    });
    assert_eq!(means, expected, "half of 100 us, and 30 us more alone: an eighth of it in the mean");
}

/// The place of the second request of a process that waits for its first among requests of another one that always has some.
fn place_after_waiting(credit_us: &str, thinks: bool) -> usize {
    let mut bench = bench().with("slots", "2").with("credit_us", credit_us);
    let mut n = 0;
    let mut deep = |bench: &mut VfairBench| {
        n += 1;
        bench.insert(read(2, n))
    };
    bench.insert(read(1, 500));
    bench.dispatch_to(0);
    (0..8).for_each(|_| {
        deep(&mut bench);
    });
    bench.dispatch();
    if thinks {
        bench.at.0 += 10 * US;
        bench.complete(0);
        bench.dispatch();
    }
    for _ in 0..20 {
        bench.at.0 += 10 * US;
        let index = usize::from(!thinks);
        bench.complete(index);
        deep(&mut bench);
        bench.dispatch();
    }
    if !thinks {
        bench.complete(0);
    }
    let lone = bench.insert(read(1, 501));
    while bench.at_device.len() > 1 {
        bench.complete(0);
    }
    let mut place = 0;
    while bench.dispatch_to(0).0 != Some(lone) {
        bench.complete(0);
        place += 1;
    }
    place
}

#[test]
fn a_flow_that_waited_for_its_request_goes_first_by_its_credit_and_one_that_was_idle_does_not() {
    assert_eq!(place_after_waiting("1000", false), 0);
    assert_eq!(place_after_waiting("1000", true), place_after_waiting("0", true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn random_calls_lose_no_request_leave_no_slot_empty_and_never_turn_virtual_time_back(seed in any::<u64>()) {
        let before = Cell::new(0);
        random_calls(bench(), seed, |bench| {
            let queue = &bench.policy().queue;
            assert_eq!((queue.waiting() as usize, queue.inflight() as usize), (bench.waiting(), bench.at_device.len()));
            assert_eq!(queue.has_work(), bench.waiting() > 0 && queue.inflight() < queue.slots);
            assert!(!queue.has_work() || queue.clone().pop().is_some(), "something waits, and a slot is free");
            assert!(queue.virtual_time(ONLY_CLASS) >= before.get());
            before.set(queue.virtual_time(ONLY_CLASS));
        });
    }

    #[test]
    fn no_flow_starves_whatever_requests_cost(seed in any::<u64>()) {
        let mut draws = Draws(seed);
        let mut bench = bench().with("slots", "4");
        let costs_us = [0; 4].map(|_| 1 + draws.below(500));
        let mut times = [0_u64; 4];
        for n in 0..16 {
            bench.insert(read(n % 4, u64::from(n)));
        }
        for n in 16..1000 {
            bench.dispatch();
            let index = draws.below(bench.at_device.len() as u64) as usize;
            let process = bench.at_device[index].io_context.0;
            bench.at.0 += costs_us[process as usize] * US;
            times[process as usize] += 1;
            bench.complete(index);
            bench.insert(read(process, n));
        }
        prop_assert!(times.iter().all(|&ios| ios > 20), "{times:?} with {costs_us:?}");
        prop_assert!(bench.at > Instant::ZERO);
    }
}
