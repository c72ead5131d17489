//! Start-time fair queueing against its rules: tags, virtual time, classes, slots.

use super::*;
use crate::ground::ids::IoContextId;
use crate::schedulers::test_bench::Draws;
use proptest::prelude::*;

const CAPACITY: u32 = 64;

/// A queue with requests that each flow has in turn.
struct Flows {
    queue: FairQueue,
    free: Vec<u32>,
    at_device: Vec<RqId>,
}

impl Flows {
    fn new(classes: usize, slots: u32) -> Self {
        Flows {
            queue: FairQueue::new(classes, slots, CAPACITY),
            free: (0..CAPACITY).rev().collect(),
            at_device: Vec::new(),
        }
    }

    fn flow(&mut self, process: u32, class: usize) -> FlowId {
        self.queue.find_or_create(FlowKey::io_context(IoContextId(process)).in_class(class), class).0
    }

    fn insert(&mut self, process: u32, class: usize, credit: u64) -> RqId {
        let id = RqId(self.free.pop().expect("a free slot"));
        let flow = self.flow(process, class);
        self.queue.insert(id, flow, Place::Sorted, credit);
        id
    }

    /// Takes the next request and charges its flow.
    fn pop(&mut self, charge: i64) -> Option<RqId> {
        let next = self.queue.pop()?;
        self.queue.charge(next.flow, charge);
        self.at_device.push(next.id);
        Some(next.id)
    }

    fn complete(&mut self, index: usize) {
        let id = self.at_device.remove(index);
        assert!(self.queue.leave(id), "it was at the device");
        self.free.push(id.0);
    }
}

#[test]
fn the_flow_that_was_charged_least_goes_next_and_equal_ones_take_turns() {
    let mut flows = Flows::new(1, 64);
    let [a, b] = [1, 2].map(|process| [0, 1, 2].map(|_| flows.insert(process, 0, 0)));
    assert_eq!([10, 10, 10, 30].map(|charge| flows.pop(charge).unwrap()), [a[0], b[0], a[1], b[1]]);
    assert_eq!([flows.pop(0), flows.pop(0), flows.pop(0)], [Some(a[2]), Some(b[2]), None]);
    assert_eq!(flows.queue.virtual_time(0), 40);
}

#[test]
fn a_flow_that_was_idle_comes_back_at_virtual_time_and_one_that_waited_for_its_request_keeps_its_credit() {
    let tag_of = |waits: bool, credit: u64| {
        let mut flows = Flows::new(1, 64);
        flows.insert(1, 0, 0);
        flows.pop(10);
        if !waits {
            flows.complete(0);
        }
        for _ in 0..11 {
            flows.insert(2, 0, 0);
            flows.pop(100);
        }
        if waits {
            flows.complete(0);
        }
        flows.insert(1, 0, credit);
        assert_eq!(flows.queue.virtual_time(0), 1000);
        let flow = flows.flow(1, 0);
        flows.queue.flows[flow.index()].tag
    };
    assert_eq!([tag_of(false, 300), tag_of(true, 0)], [1000, 1000]);
    assert_eq!([tag_of(true, 300), tag_of(true, 5000)], [700, 10], "no more than it did not use");
}

#[test]
fn a_class_goes_before_those_behind_it_and_has_virtual_time_of_its_own() {
    let mut flows = Flows::new(3, 64);
    let last = flows.insert(1, 2, 0);
    let middle = [0, 1].map(|_| flows.insert(1, 1, 0));
    assert_eq!(flows.pop(50), Some(middle[0]));
    let first = flows.insert(2, 0, 0);
    assert_eq!([flows.pop(7), flows.pop(7), flows.pop(7)], [Some(first), Some(middle[1]), Some(last)]);
    assert_eq!([0, 1, 2].map(|class| flows.queue.virtual_time(class)), [0, 50, 0]);
}

#[test]
fn what_comes_back_goes_first_and_no_more_than_the_slots_are_at_the_device() {
    let mut flows = Flows::new(1, 2);
    let ids = [0, 1, 2].map(|_| flows.insert(1, 0, 0));
    assert_eq!([flows.pop(1), flows.pop(1), flows.pop(1)], [Some(ids[0]), Some(ids[1]), None]);
    let back = flows.at_device.remove(0);
    flows.queue.leave(back);
    let flow = flows.flow(1, 0);
    flows.queue.insert(back, flow, Place::Head, 0);
    let next = flows.queue.pop().unwrap();
    assert_eq!((next.id, next.is_requeued), (back, true));
    assert!(!flows.queue.has_work() && !flows.queue.is_empty());
}

#[test]
fn an_ended_flow_is_served_and_its_place_reused_while_one_of_its_key_is_new() {
    let mut flows = Flows::new(1, 64);
    let old = flows.flow(1, 0);
    flows.insert(1, 0, 0);
    flows.queue.end(FlowKey::io_context(IoContextId(1)));
    let new = flows.flow(1, 0);
    assert_ne!(old, new);
    flows.pop(5);
    flows.complete(0);
    assert_eq!(flows.flow(2, 0), old, "its place is free now");
    flows.queue.end(FlowKey::io_context(IoContextId(1)));
    assert_eq!(flows.flow(3, 0), new);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Start-time fair queueing's bound: of two flows that always have requests, what they were charged differs by the largest charges.
    #[test]
    fn flows_that_always_have_requests_are_charged_alike_and_none_starves(seed in any::<u64>()) {
        let mut draws = Draws(seed);
        let mut flows = Flows::new(1, 1 + draws.below(8) as u32);
        let most: [u64; 3] = std::array::from_fn(|_| 1 + draws.below(1000));
        let mut charged = [0_u64; 3];
        for process in 0..3 {
            (0..16).for_each(|_| { flows.insert(process, 0, 0); });
        }
        let mut before = 0;
        for _ in 0..500 {
            if let Some(next) = flows.queue.pop() {
                let process = (0..3).find(|&process| flows.flow(process, 0) == next.flow).unwrap();
                let charge = 1 + draws.below(most[process as usize]);
                flows.queue.charge(next.flow, charge as i64);
                charged[process as usize] += charge;
                flows.at_device.push(next.id);
                let now = flows.queue.virtual_time(0);
                prop_assert!(now >= before, "virtual time steps back");
                before = now;
            } else {
                prop_assert_eq!(flows.queue.inflight(), flows.queue.slots, "something waits and a slot is free");
                let index = draws.below(flows.at_device.len() as u64) as usize;
                let flow = flows.queue.flow_of(flows.at_device[index]);
                let process = (0..3).find(|&process| flows.flow(process, 0) == flow).unwrap();
                flows.complete(index);
                flows.insert(process, 0, 0);
            }
            for (a, b) in [(0, 1), (0, 2), (1, 2)] {
                prop_assert!(charged[a].abs_diff(charged[b]) <= most[a] + most[b], "{charged:?}");
            }
        }
    }
}
