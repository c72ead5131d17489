//! Coming back to work: service recovery and preemption (BFQ-25, BFQ-50, BFQ-80 to BFQ-84).

use super::super::config::{RAISE_INTERACTIVE, RAISE_SOFT_RT};
use super::super::{BfqConfig, BfqGroup, BfqVariant};
use super::machine::{Job, MS, Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::CgroupId;
use crate::ground::kernel::Kernel;

/// Flash without stable merging, which would join processes that start together.
fn flash() -> BfqConfig {
    let config = config(false);
    BfqConfig { variant: BfqVariant { stable_merging: false, ..config.variant }, ..config }
}

#[test]
fn a_depth_one_process_recovers_its_service_with_the_timestamps_of_28_4() {
    let mut machine = Machine::new(flash());
    machine.service = |_, _| MS;
    machine.add(Job::random(2, 4));
    machine.add(Job { think: 300_000, start: 2_500_000, ..Job::random(1, 1) });
    machine.run_until(2_500_000);
    assert_eq!(machine.stamps(1), [(2_516_580, 1_147_771_287)]);
    assert_eq!(machine.expirations(2), [(2_500_000, "preempted")]);
    assert_eq!(machine.stamps(2).last(), Some(&(2_516_582, 1_147_771_289)));
    machine.run_until(4 * MS);
    assert_eq!(machine.dispatches.iter().find(|&&(_, pid, _)| pid == 1), Some(&(3 * MS, 1, 1 << 32)));
    assert_eq!(machine.expirations(1), [(4 * MS, "no_more_requests")]);
    assert_eq!(machine.bfq.queues[machine.sync_queue(1)].max_budget, 512);
    machine.run_until(4_300_000);
    assert_eq!(machine.stamps(1).last(), Some(&(3_355_440, 57_042_531)));
    assert_eq!(machine.expirations(2).last(), Some(&(4_300_000, "preempted")));
    machine.run_until(6_300_000);
    assert_eq!(machine.stamps(1).last(), Some(&(4_194_300, 57_042_530)), "504 sectors are left");
    machine.run_until(8_300_000);
    assert_eq!(machine.stamps(1).last().map(|stamps| stamps.1), Some(57_042_529), "its finish stays where it was");
    machine.run_until(60 * MS);
    let order: Vec<u32> = machine.dispatches.iter().skip(6).take(40).map(|&(_, pid, _)| pid).collect();
    assert!(order.windows(2).all(|pair| pair[0] != pair[1]), "one for one: {order:?}");
}

/// Process 1 had a slot that ended for want of requests at 0; when it comes back at `ns`, does it recover?
fn recovers(ns: u64, forget: bool) -> bool {
    let mut machine = Machine::new(flash());
    machine.read(1, 8, 8);
    machine.read(2, 1 << 20, 8);
    let (id, _) = machine.dispatch().unwrap();
    let q = machine.sync_queue(1);
    assert!(machine.bfq.queues[q].is_empty());
    machine.finish(id);
    machine.inside(|bfq| {
        if bfq.in_service == Some(q) {
            bfq.expire(q, false, super::super::Expiration::NoMoreRequests);
        }
    });
    assert!(machine.bfq.queues[q].non_blocking_wait);
    if forget {
        machine.bfq.entity_mut(q).service = machine.bfq.entity(q).budget;
    }
    machine.now = ns;
    let in_time = machine.inside(|bfq| bfq.is_back_in_time(q));
    machine.inside(|bfq| bfq.set_budget_for_return(q, in_time))
}

#[test]
fn a_queue_recovers_up_to_24_ms_after_its_last_completion_if_it_has_budget_left() {
    assert!(recovers(24 * MS, false) && !recovers(24 * MS + 1, false));
    assert!(!recovers(MS, true), "it has used everything");
}

#[test]
fn there_is_no_recovery_after_a_timeout_or_an_exhausted_budget() {
    use super::super::Expiration;
    for (reason, recovers) in [
        (Expiration::TooIdle, true),
        (Expiration::NoMoreRequests, true),
        (Expiration::BudgetTimeout, false),
        (Expiration::BudgetExhausted, false),
    ] {
        let mut machine = Machine::new(config(true));
        machine.read(1, 8, 8);
        machine.serve();
        let q = machine.sync_queue(1);
        machine.inside(|bfq| bfq.expire(q, false, reason));
        assert_eq!(machine.bfq.queues[q].non_blocking_wait, recovers);
    }
}

/// Whether process 2, which arrives while 1 is served, takes the device.
fn preempts(config: BfqConfig, cgroup: u32, prepare: impl FnOnce(&mut Machine), newcomer: Job) -> bool {
    let mut machine = Machine::new(config);
    for at in 0..4 {
        machine.read_in(cgroup, 1, 1000 + at * 8);
    }
    machine.dispatch();
    prepare(&mut machine);
    machine.now = 700 * MS;
    let served = machine.sync_queue(1);
    machine.bfq.queues[served].budget_timeout = i64::MAX;
    machine.add(Job { start: 700 * MS, depth: 1, ..newcomer });
    machine.device_depth = 0;
    machine.run_until(700 * MS);
    machine.expirations(1).iter().any(|&(_, why)| why == "preempted")
}

#[test]
fn a_higher_class_or_weight_preempts_and_an_equal_one_does_not_while_idling() {
    let groups = |weights: [u16; 2]| BfqConfig {
        groups: [(1, weights[0]), (2, weights[1])]
            .map(|(id, weight)| BfqGroup { cgroup: CgroupId(id), parent: CgroupId::ROOT, weight })
            .to_vec(),
        ..config(true)
    };
    let job = |cgroup, class, level| Job {
        cgroup: CgroupId(cgroup),
        ioprio: IoPriority::new(class, level),
        ..Job::sequential(2, 8)
    };
    let be = PriorityClass::BestEffort;
    let nothing = |_: &mut Machine| {};
    let equal = || groups([100, 100]);
    assert!(!preempts(equal(), 0, nothing, job(0, be, 4)), "alike");
    assert!(preempts(equal(), 0, nothing, job(0, be, 3)), "a greater weight");
    assert!(preempts(equal(), 0, nothing, job(0, PriorityClass::RealTime, 7)), "a higher class");
    assert!(!preempts(equal(), 1, nothing, job(1, be, 0)), "at the root the same group would come next");
    assert!(!preempts(equal(), 1, nothing, job(2, be, 0)), "in another group its weight does not count");
    assert!(preempts(groups([100, 101]), 1, nothing, job(2, be, 7)), "but that of its group");
    let not_idled_for = |machine: &mut Machine| {
        machine.set("slice_idle", 0);
    };
    assert!(preempts(equal(), 0, not_idled_for, job(0, be, 4)));
    let of_5_10 = BfqConfig { variant: BfqVariant::of(Kernel::V5_10), ..equal() };
    assert!(!preempts(of_5_10, 0, not_idled_for, job(0, be, 4)), "before 5.13 an equal one waits its turn");
}

#[test]
fn a_queue_is_not_preempted_if_the_root_would_choose_the_same_entity() {
    let mut machine = Machine::new(config(true));
    machine.set("slice_idle", 0);
    machine.read_in(1, 1, 0);
    machine.read_in(1, 1, 8);
    machine.dispatch();
    machine.now = 700 * MS;
    machine.read_in(1, 2, 1 << 20);
    assert!(!machine.bfq.hierarchy.next_differs_from_in_service(), "the group of both is");
    assert!(machine.expirations(1).is_empty());
}

#[test]
fn a_recovering_queue_does_not_take_the_device_from_one_that_is_raised_more() {
    for (raises, expected) in
        [([1, 1], true), ([RAISE_INTERACTIVE, 1], false), ([RAISE_INTERACTIVE, RAISE_SOFT_RT], true)]
    {
        let mut machine = Machine::new(config(true));
        machine.read(1, 0, 8);
        machine.read(1, 8, 8);
        machine.read(2, 1 << 20, 8);
        machine.dispatch();
        let [served, other] = [1, 2].map(|pid| machine.sync_queue(pid));
        machine.bfq.entity_mut(served).raise = raises[0];
        machine.bfq.entity_mut(other).raise = raises[1];
        machine.bfq.raised_busy = raises.iter().filter(|&&raise| raise > 1).count() as u32;
        assert!(expected || machine.bfq.better_to_idle(served));
        machine.inside(|bfq| bfq.maybe_preempt(other, true));
        assert_eq!(machine.bfq.in_service.is_none(), expected, "{raises:?}");
    }
}

#[test]
fn an_empty_queue_that_is_preempted_stays_scheduled_if_it_needs_idling() {
    for needed in [true, false] {
        let mut machine = Machine::new(config(true));
        machine.read(1, 0, 8);
        machine.serve();
        let q = machine.sync_queue(1);
        machine.now = 700 * MS;
        machine.read(2, 1 << 20, 8);
        machine.bfq.groups_pending = if needed { 2 } else { 1 };
        machine.inside(|bfq| bfq.expire(q, false, super::super::Expiration::Preempted));
        let queue = &machine.bfq.queues[q];
        assert_eq!((queue.busy, queue.is_empty()), (needed, true));
    }
}
