//! mqfq against its rules and its invariants, with the requests that it decides on around it.

use std::cell::Cell;

use super::*;
use crate::bio::ioprio::PriorityClass;
use crate::ground::ids::{RqId, Sector};
use crate::ground::sharing::Local;
use crate::policy::{Concurrent, SchedulerEvent};
use crate::schedulers::test_bench::{Bench, CAPACITY, Draws, Unserialized, random_calls};
use proptest::prelude::*;

/// Tags of a KiB at weight 1.
const KIB: u64 = 1024 * TAGS_PER_BYTE;

type MqfqBench = Bench<Unserialized<Mqfq<Local>>>;

fn mqfq(capacity: u32) -> Mqfq<Local> {
    Mqfq::new(&CpuMap::of_one_type(&[0, 1, 2, 3, 4].map(HctxId)), capacity)
}

fn bench() -> MqfqBench {
    Bench::of_concurrent(mqfq(CAPACITY))
}

/// A read of 4 KiB by a process.
fn read_by(process: u32, sector: u64) -> Bio {
    Bio { io_context: IoContextId(process), ..Bio::new(Op::Read, Sector(sector), 8) }
}

fn of_level(level: u8, bio: Bio) -> Bio {
    Bio { ioprio: IoPriority::new(PriorityClass::BestEffort, level), ..bio }
}

fn in_group(group: u32, bio: Bio) -> Bio {
    Bio { cgroup: CgroupId(group), ..bio }
}

/// The start tag of a request that waits.
fn start_of(bench: &MqfqBench, id: RqId) -> u64 {
    let starts = |hctx: &Padded<HctxQueues<Local>>| hctx.queues.aside(|queues| queues.start_of(id));
    bench.scheduler().hctxs.iter().find_map(starts).expect("it waits")
}

fn virtual_time(bench: &MqfqBench) -> u64 {
    bench.scheduler().virtual_time()
}

/// What must be true between calls.
fn check(mqfq: &Mqfq<Local>) {
    let head_len = mqfq.head.aside(|head| head.len());
    assert_eq!(mqfq.head_len.load(Relaxed), head_len as u64);
    let mut waiting = head_len;
    for hctx in &mqfq.hctxs {
        waiting += hctx.queues.aside(|queues| queues.check());
        assert_eq!(hctx.min_start.load(Relaxed), hctx.queues.aside(|queues| queues.min_start()));
    }
    assert_eq!(mqfq.waiting(), waiting as u64);
    assert!(
        mqfq.earliest().is_none_or(|(_, min_start)| mqfq.virtual_time() >= min_start),
        "the least start tag or later"
    );
    assert_eq!(mqfq.inflight(), mqfq.is_counted.iter().map(|word| word.load(Relaxed)).sum::<u64>());
}

#[test]
fn start_and_finish_tags_follow_virtual_time_and_cost_over_weight() {
    let mut bench = bench();
    let first = bench.insert_on(0, read_by(1, 0));
    let second = bench.insert_on(3, read_by(1, 1000));
    let third = bench.insert_on(0, Bio { sectors: 16, ..read_by(1, 2000) });
    let fourth = bench.insert_on(1, read_by(1, 3000));
    assert_eq!([first, second, third, fourth].map(|id| start_of(&bench, id)), [0, 4 * KIB, 8 * KIB, 16 * KIB]);
    let heavy = [4000, 5000].map(|sector| bench.insert(of_level(0, read_by(2, sector))));
    assert_eq!(heavy.map(|id| start_of(&bench, id)), [0, 2 * KIB], "level 0 weighs twice what level 4 does");
    bench.set("write_cost", "300").unwrap();
    let writes = [6000, 7000].map(|sector| bench.insert(Bio { op: Op::Write, ..read_by(3, sector) }));
    assert_eq!(writes.map(|id| start_of(&bench, id)), [0, 12 * KIB]);
    bench.drain();
    assert_eq!(virtual_time(&bench), 16 * KIB);
    let late = bench.insert(read_by(4, 0));
    assert_eq!(start_of(&bench, late), 16 * KIB, "virtual time");
    bench.drain();
}

#[test]
fn weights_are_those_of_groups_or_else_of_priorities() {
    let tags = |ioprio| {
        let mut bench = bench();
        let [_, second] = [0, 1000].map(|sector| bench.insert(Bio { ioprio, ..read_by(1, sector) }));
        let tags = start_of(&bench, second);
        bench.drain();
        tags
    };
    let class = |class, level| tags(IoPriority::new(class, level));
    assert_eq!([0, 3, 7].map(|level| class(PriorityClass::BestEffort, level)), [2 * KIB, 16 * KIB / 5, 16 * KIB]);
    assert_eq!(class(PriorityClass::RealTime, 7), 2 * KIB);
    assert_eq!((class(PriorityClass::Idle, 0), tags(IoPriority::UNSET)), (16 * KIB, 4 * KIB));

    let mut bench = bench();
    let cgroup = CgroupId(1);
    bench.tell(SchedulerEvent::CgroupAdded { cgroup, parent: CgroupId::ROOT });
    bench.tell(SchedulerEvent::Weight { cgroup, weight: 200 });
    let ids = [1, 2].map(|process| bench.insert(of_level(0, in_group(1, read_by(process, u64::from(process) * 1000)))));
    assert_eq!(ids.map(|id| start_of(&bench, id)), [0, 2 * KIB], "one flow, whichever process of the group submits");
    let ids = [1, 2].map(|n| bench.insert(read_by(n, 9000 * u64::from(n))));
    assert_eq!(ids.map(|id| start_of(&bench, id)), [0, 4 * KIB], "the root is a flow of weight 100");
    bench.drain();
}

#[test]
fn virtual_time_never_steps_back_and_keeps_its_value_while_nothing_waits() {
    let mut bench = bench();
    for n in 0..10 {
        bench.insert(read_by(1, n * 1000));
    }
    bench.drain();
    assert_eq!(virtual_time(&bench), 36 * KIB);
    // A request that lies behind: the flow of the later one joins with an earlier start tag.
    let ids = [2, 3].map(|process| bench.insert(read_by(process, u64::from(process) * 1000)));
    let mqfq = bench.scheduler();
    mqfq.hctxs[0].queues.aside(|queues| {
        queues.set_start(ids[0], 5 * KIB);
        mqfq.publish(&mqfq.hctxs[0], queues.min_start());
    });
    assert_eq!(virtual_time(&bench), 36 * KIB, "what was published late is below it, and due");
    assert_eq!(bench.dispatch_to(0), (Some(ids[0]), Reason::LeastStartTag));
    bench.drain();
    assert_eq!(virtual_time(&bench), 36 * KIB);
}

#[test]
fn an_idle_flow_comes_back_without_credit() {
    let mut bench = bench().with("slots", "1").with("threshold_kb", "0");
    bench.insert(read_by(1, 0));
    for n in 0..20 {
        bench.insert(read_by(2, n * 1000));
    }
    // The first flow has had its one; the second continues alone for a while.
    for _ in 0..10 {
        bench.dispatch_to(0);
        bench.complete(0);
    }
    let back: Vec<RqId> = (0..5).map(|n| bench.insert(read_by(1, 100_000 + n * 1000))).collect();
    let order = bench.drain();
    let places: Vec<usize> = back.iter().map(|id| order.iter().position(|other| other == id).unwrap()).collect();
    assert!(places[4] >= 8, "it takes turns with the other and does not catch up: {places:?}");
}

#[test]
fn a_local_flow_queue_goes_first_unless_ahead_by_more_than_the_threshold() {
    let mut bench = bench().with("threshold_kb", "8");
    let own: Vec<RqId> = (0..6).map(|n| bench.insert_on(1, read_by(1, n * 1000))).collect();
    let other = bench.insert_on(0, read_by(2, 90_000));
    let own_until_throttled = [
        (Some(own[0]), Reason::LeastStartTag),
        (Some(own[1]), Reason::OwnStartTag),
        (Some(own[2]), Reason::OwnStartTag),
        // The start tag 12 KiB is beyond virtual time and the threshold: what holds virtual time goes.
        (Some(other), Reason::LeastStartTag),
        (Some(own[3]), Reason::LeastStartTag),
    ];
    for expected in own_until_throttled {
        assert_eq!(bench.dispatch_to(1), expected);
    }
    bench.drain();
}

#[test]
fn a_slot_goes_to_the_queue_of_the_cpu_that_completed_where_start_tags_are_equal() {
    for hctx in [0, 1, 2] {
        let mut bench = bench().with("slots", "1").with("threshold_kb", "0");
        bench.insert(read_by(9, 900_000));
        bench.dispatch_to(0);
        let ids = [0, 1, 2].map(|n: u16| bench.insert_on(n, read_by(u32::from(n), u64::from(n) * 1000)));
        assert_eq!(bench.dispatch_to(hctx), (None, Reason::NoSlot));
        bench.complete(0);
        assert!(bench.requested.run_queues, "a slot is free");
        assert_eq!(bench.dispatch_to(hctx).0, Some(ids[usize::from(hctx)]));
        bench.drain();
    }
}

/// Some flows that always have requests and others that come and go, on hardware queues by chance. Returns the most that two of the
/// former differed by in any interval, in tags, and the sum of the largest request of each of these two over its weight.
fn widest(seed: u64, threshold_kb: &str, slots: &str, bounded_by: impl Fn(u64, u64) -> u64) {
    let mut draws = Draws(seed);
    let mut bench = bench().with("threshold_kb", threshold_kb).with("slots", slots);
    let levels: Vec<u8> = (0..3).map(|_| draws.below(8) as u8).collect();
    let largest: Vec<u32> = (0..3).map(|_| 8 << draws.below(5)).collect();
    let hctxs = 1 + draws.below(4);
    let mut sector = 0;
    let mut new_bio = |draws: &mut Draws, flow: usize| {
        sector += 10_000;
        let (level, sectors) = match levels.get(flow) {
            Some(&level) => (level, 8 + draws.below(u64::from(largest[flow]) - 7) as u32),
            None => (draws.below(8) as u8, 8 << draws.below(5)),
        };
        of_level(level, Bio { sectors, ..read_by(flow as u32, sector) })
    };
    let tags_of =
        |flow: usize, sectors: u32| u64::from(sectors) * 512 * TAGS_PER_BYTE * 4 / (8 - u64::from(levels[flow]));
    let mut waits = [0_u32; 3];
    let mut of_slot = [(usize::MAX, 0_u64); CAPACITY as usize];
    let mut starts = [0_u64; CAPACITY as usize];
    let mut given = [0_i64; 3];
    // The least and the most of the difference of two flows.
    let mut spans = [[(0_i64, 0_i64); 3]; 3];
    let mut time = 0;
    for step in 0..800 {
        for (flow, waits) in waits.iter_mut().enumerate() {
            while *waits < 4 {
                let bio = new_bio(&mut draws, flow);
                let tags = tags_of(flow, bio.sectors);
                let id = bench.insert_on(draws.below(hctxs) as u16, bio);
                of_slot[id.index()] = (flow, tags);
                starts[id.index()] = start_of(&bench, id);
                *waits += 1;
            }
        }
        let free = CAPACITY as usize - bench.waiting() - bench.at_device.len();
        match draws.below(8) {
            0 if step > 0 && free > 20 => {
                let flow = 3 + draws.below(3) as usize;
                let bio = new_bio(&mut draws, flow);
                let id = bench.insert_on(draws.below(hctxs) as u16, bio);
                of_slot[id.index()] = (flow, 0);
                starts[id.index()] = start_of(&bench, id);
            }
            1 => bench.tell(SchedulerEvent::IoContextExited(IoContextId(3 + draws.below(3) as u32))),
            2..4 if !bench.at_device.is_empty() => bench.complete(draws.below(bench.at_device.len() as u64) as usize),
            _ if bench.at_device.len() < 16 => {
                let limit = bench.scheduler().limit();
                let has_slot = bench.at_device.len() < bench.scheduler().slots() as usize;
                let (id, _) = bench.dispatch_to(draws.below(hctxs + 1) as u16);
                assert_eq!(id.is_some(), has_slot, "I2 and I3: with a slot something goes, and without one nothing");
                if let Some(id) = id {
                    assert!(starts[id.index()] <= limit, "I1");
                    let (flow, tags) = of_slot[id.index()];
                    if flow < 3 {
                        waits[flow] -= 1;
                        given[flow] += tags as i64;
                    }
                }
            }
            _ => {}
        }
        assert!(virtual_time(&bench) >= time, "virtual time never steps back");
        time = virtual_time(&bench);
        check(bench.scheduler());
        for one in 0..3 {
            for other in 0..one {
                let difference = given[one] - given[other];
                let (least, most) = &mut spans[one][other];
                (*least, *most) = ((*least).min(difference), (*most).max(difference));
                let [l_one, l_other] = [one, other].map(|flow| tags_of(flow, largest[flow]) + 3);
                let rounding = 2 * 800;
                let bound = bounded_by(l_one, l_other) + rounding;
                assert!((*most - *least) as u64 <= bound, "I4 or I5: {} of {bound}", *most - *least);
            }
        }
    }
    bench.drain();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_difference_of_two_backlogged_flows_is_bounded_at_every_event(seed in any::<u64>(), kib in 0u64..200, slots in 1u32..16) {
        let threshold = kib * KIB;
        // The specification's bound takes the largest request over the least weight, of any flow: 128 KiB at a quarter.
        widest(seed, &kib.to_string(), &slots.to_string(), |one, other| 2 * (threshold + one.max(other).max(128 * 4 * KIB)));
    }

    #[test]
    fn without_a_threshold_and_with_one_slot_it_is_start_time_fair_queueing(seed in any::<u64>()) {
        widest(seed, "0", "1", |one, other| one + other);
    }

    #[test]
    fn random_calls_lose_no_request_and_virtual_time_never_decreases(seed in any::<u64>()) {
        let time = Cell::new(0);
        random_calls(bench(), seed, |bench| {
            check(bench.scheduler());
            assert!(virtual_time(bench) >= time.replace(virtual_time(bench)));
        });
    }
}

#[test]
fn an_ended_flow_keeps_its_requests_and_its_number_starts_a_new_flow() {
    let mut bench = bench();
    let ids: Vec<RqId> = (0..3).map(|n| bench.insert(read_by(1, n * 1000))).collect();
    bench.tell(SchedulerEvent::IoContextExited(IoContextId(1)));
    let anew = bench.insert(read_by(1, 9000));
    assert_eq!(
        (start_of(&bench, anew), bench.scheduler().flows.count()),
        (0, 1),
        "a process of the same number is another flow"
    );
    assert_eq!(bench.drain(), [ids[0], anew, ids[1], ids[2]]);
    assert_eq!(bench.scheduler().flows.count(), 1);
    for process in 0..10_000 {
        bench.insert(read_by(process, 0));
        bench.drain();
        bench.tell(SchedulerEvent::IoContextExited(IoContextId(process)));
    }
    assert_eq!(bench.scheduler().flows.count(), 0);
    let places = bench.scheduler().hctxs[0].queues.aside(|queues| queues.places());
    assert!(places <= 3, "records of flows that ended are used again");
}

#[test]
fn a_new_weight_applies_to_requests_tagged_later() {
    let mut bench = bench();
    let cgroup = CgroupId(1);
    let first = bench.insert(in_group(1, read_by(1, 0)));
    bench.tell(SchedulerEvent::Weight { cgroup, weight: 400 });
    let [second, third] = [1000, 2000].map(|sector| bench.insert(in_group(1, read_by(1, sector))));
    assert_eq!([first, second, third].map(|id| start_of(&bench, id)), [0, 4 * KIB, 5 * KIB]);
    bench.drain();
}

#[test]
fn a_weight_of_0_counts_as_the_least_one_for_flows_that_exist_and_for_later_ones() {
    let mut bench = bench();
    bench.insert(in_group(1, read_by(1, 0)));
    for group in [1, 2] {
        bench.tell(SchedulerEvent::Weight { cgroup: CgroupId(group), weight: 0 });
        let [first, second] = [1000, 2000].map(|sector| bench.insert(in_group(group, read_by(1, sector))));
        assert_eq!(start_of(&bench, second) - start_of(&bench, first), 400 * KIB, "a hundredth of the default");
    }
    bench.drain();
}

#[test]
fn ten_thousand_flows_have_a_turn_each() {
    let mut bench = bench();
    for process in 0..10_000 {
        bench.insert(read_by(process, 0));
        assert_eq!(bench.drain().len(), 1);
    }
    assert_eq!(bench.scheduler().flows.count(), 10_000);
}

#[test]
fn a_change_of_threshold_or_slots_holds_for_the_next_attempt_and_runs_the_queues() {
    let mut bench = bench().with("slots", "2").with("threshold_kb", "0");
    let own: Vec<RqId> = (0..4).map(|n| bench.insert_on(1, read_by(1, n * 1000))).collect();
    let other = bench.insert_on(0, read_by(2, 90_000));
    assert_eq!(bench.dispatch_to(1).0, Some(own[0]));
    assert_eq!(bench.dispatch_to(1).0, Some(other), "the own queue is throttled");
    assert_eq!(bench.dispatch_to(1), (None, Reason::NoSlot));
    bench.set("slots", "2").unwrap();
    assert!(!bench.requested.run_queues, "there is no more room than before");
    bench.set("slots", "4").unwrap();
    assert!(bench.requested.run_queues && bench.has_work());
    let behind = bench.insert_on(0, read_by(3, 95_000));
    bench.set("threshold_kb", "8").unwrap();
    assert_eq!(bench.dispatch_to(1).0, Some(own[1]), "no longer throttled");
    bench.set("slots", "1").unwrap();
    bench.complete(0);
    bench.complete(0);
    assert!(!bench.requested.run_queues, "one is at the device, as many as may be");
    bench.complete(0);
    assert!(bench.requested.run_queues);
    assert_eq!(bench.drain(), [behind, own[2], own[3]]);
}

#[test]
fn a_drain_follows_the_start_tags() {
    let mut bench = bench();
    let small: Vec<RqId> = (0..3).map(|n| bench.insert(read_by(1, n * 1000))).collect();
    let large: Vec<RqId> = (0..3).map(|n| bench.insert(Bio { sectors: 64, ..read_by(2, 50_000 + n * 1000) })).collect();
    assert_eq!(bench.drain(), [small[0], large[0], small[1], small[2], large[1], large[2]]);
}

#[test]
fn a_merged_request_keeps_the_earlier_start_tag_and_its_flow_is_charged_for_all() {
    let mut bench = bench();
    let first = bench.insert(read_by(1, 100));
    assert_eq!(bench.merge(read_by(2, 108)), None, "another flow's");
    assert_eq!(bench.merge(read_by(1, 108)), Some(Edge::Back));
    let next = bench.insert(read_by(1, 9000));
    assert_eq!([first, next].map(|id| start_of(&bench, id)), [0, 8 * KIB]);
    bench.drain();
    // At the front, too, and only on the hardware queue that its CPU submits to.
    let time = virtual_time(&bench);
    let here = bench.insert_on(0, read_by(3, 100));
    bench.insert_on(1, read_by(3, 50_000));
    assert_eq!(bench.merge(read_by(3, 92)), Some(Edge::Front));
    assert_eq!(bench.merge(read_by(3, 50_008)), None, "on another hardware queue");
    let last = bench.insert_on(1, read_by(3, 70_000));
    assert_eq!([here, last].map(|id| start_of(&bench, id)), [time, time + 12 * KIB], "12 KiB were added");
    check(bench.scheduler());
    bench.drain();
}

#[test]
fn a_requeued_request_goes_first_and_is_not_charged_again() {
    let mut bench = bench().with("slots", "1");
    let first = bench.insert(read_by(1, 0));
    let others = [2, 3].map(|process| bench.insert(read_by(process, u64::from(process) * 1000)));
    bench.dispatch_to(0);
    bench.requeue(0);
    assert_eq!(bench.dispatch_to(0), (Some(first), Reason::HeadList));
    let second = bench.insert(read_by(1, 9000));
    assert_eq!(start_of(&bench, second), 4 * KIB);
    assert_eq!(bench.drain(), [others[0], others[1], second]);
}

#[test]
fn a_larger_queue_makes_room_for_more_ids() {
    let mut mqfq = mqfq(2);
    mqfq.grow(CAPACITY);
    mqfq.grow(1);
    assert_eq!(mqfq.is_counted.len(), CAPACITY as usize);
}
