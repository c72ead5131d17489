//! Cooperation: what is found, how queues are merged and split, and which processes count as using them.
//!
//! Rules: CFQ-46, CFQ-65 to CFQ-69.

use hoistway_blk::bio::PriorityClass;
use hoistway_blk::ground::{CgroupId, Sector};

use super::super::CfqEvent;
use super::super::class::Class;
use super::*;

fn reader_at(pid: u32, sector: u64) -> Job {
    Job { count: 1, sector, sectors: 256, ..Job::new(pid, 1) }
}

/// Processes 1 and 2 read 256 sectors each; 1 is active and empty, the head is where 2 continues.
fn side_by_side(second: Job) -> Bench {
    let mut bench = Bench::new(31);
    bench.insert(reader_at(1, 0));
    bench.insert(second);
    let rq = bench.pull().expect("the first");
    assert_eq!(rq.io_context.0, 1);
    bench.now = MS;
    bench.finish(rq);
    bench
}

#[test]
fn two_processes_that_read_one_stream_end_up_in_one_queue() {
    let mut bench = side_by_side(reader_at(2, 256));
    assert!(bench.timer.is_none(), "none is waited for if another continues here");
    let rq = bench.pull().expect("the second");
    assert_eq!((rq.io_context.0, rq.sector, bench.active()), (2, Sector(256), Some(2)));
    let (first, second) = (bench.queue_id(1, 1), bench.queue_id(2, 1));
    assert_eq!(bench.policy.queue(first).merge_target, Some(second));
    assert_eq!(bench.policy.queue(second).process_refs, 2, "gained when the merge is planned");
    bench.insert(reader_at(1, 512));
    assert_eq!(bench.queue_id(1, 1), second);
    assert!(bench.policy.queue(second).shared);
    assert!(bench.events_of(1).contains(&CfqEvent::Freed), "none is left in the old queue");
    bench.exit(1);
    assert_eq!(bench.policy.queue(second).process_refs, 1);
}

#[test]
fn distant_seeky_async_and_foreign_queues_do_not_cooperate() {
    let cooperates = |job: Job| {
        let bench = side_by_side(job);
        let first = bench.queue_id(1, 1);
        bench.policy.close_cooperator(first).is_some()
    };
    assert!(cooperates(reader_at(2, 256)));
    assert!(cooperates(reader_at(2, 256 + 8192)) && !cooperates(reader_at(2, 256 + 8193)));
    assert!(!cooperates(Job { cgroup: CgroupId(1), ..reader_at(2, 256) }));
    assert!(!cooperates(reader_at(2, 256).asynchronous()));
    assert!(!cooperates(reader_at(2, 256).level(3)), "another level has another position tree");
    assert!(!cooperates(reader_at(2, 256).class(PriorityClass::Idle, 4)));
    let mut bench = side_by_side(reader_at(2, 256));
    for nth in 0..6 {
        bench.queue_mut(2).note_seek(true, Sector(nth * 1_000_000), 8);
    }
    assert_eq!(bench.policy.close_cooperator(bench.queue_id(1, 1)), None);
}

#[test]
fn the_queue_with_fewer_processes_is_merged_into_the_other() {
    let mut bench = side_by_side(reader_at(2, 256));
    bench.insert(reader_at(3, 9 << 20));
    let [one, two, three] = [1, 2, 3].map(|pid| bench.queue_id(pid, 1));
    bench.policy.plan_merge(three, one);
    assert_eq!(bench.policy.queue(three).merge_target, Some(one), "equal: the asker goes");
    bench.policy.plan_merge(one, two);
    assert_eq!(bench.policy.queue(two).merge_target, Some(one), "one has two references by now");
    assert_eq!(bench.policy.queue(one).process_refs, 3);
    bench.policy.plan_merge(one, three);
    assert_eq!(bench.policy.queue(one).merge_target, None, "never in a circle");
}

#[test]
fn a_merge_chain_is_followed_to_its_end_and_dropped_as_a_whole() {
    let mut bench = side_by_side(reader_at(2, 256));
    bench.insert(reader_at(3, 9 << 20));
    let [one, two, three] = [1, 2, 3].map(|pid| bench.queue_id(pid, 1));
    bench.policy.plan_merge(one, two);
    bench.policy.queue_mut(two).merge_target = Some(three);
    bench.policy.queue_mut(three).process_refs += 2;
    bench.exit(1);
    assert_eq!((bench.policy.queue(two).process_refs, bench.policy.queue(three).process_refs), (1, 2));
}

#[test]
fn a_shared_queue_that_turns_seeky_is_left_by_all_but_the_last() {
    let mut bench = side_by_side(reader_at(2, 256));
    bench.give_out();
    bench.insert(reader_at(1, 512));
    let shared = bench.queue_id(2, 1);
    for nth in 0..6 {
        bench.policy.queue_mut(shared).note_seek(true, Sector(nth * 1_000_000), 8);
    }
    bench.call(|policy, cx| policy.expire_active(cx, super::super::turn::Residual::Dropped));
    assert!(bench.policy.queue(shared).to_be_split);
    bench.insert(reader_at(2, 2_000_000));
    assert_ne!(bench.queue_id(2, 1), shared, "it got a queue of its own");
    bench.insert(reader_at(1, 3_000_000));
    let last = bench.policy.queue(shared);
    assert_eq!((last.owner.0, last.shared, last.to_be_split), (1, false, false));
    assert_eq!(bench.queue_id(1, 1), shared);
}

#[test]
fn an_emptied_queue_leaves_its_position_and_dispatch_does_not_move_it() {
    let mut bench = Bench::new(31);
    for sector in [1_000, 5_000, 9_000] {
        bench.insert(reader_at(1, sector));
    }
    let queue = bench.queue_id(1, 1);
    let key = |bench: &Bench| bench.policy.position_nodes.key(queue.0);
    let next = |bench: &Bench| bench.policy.queue(queue).backlog.next().map(|id| bench.requests.get(id).sector.0);
    for _ in 0..2 {
        bench.give_out();
        assert!(bench.policy.queue(queue).position_tree.is_some());
        assert_eq!(Some(key(&bench)), next(&bench), "comparisons see the present one");
    }
    bench.give_out();
    assert_eq!(bench.policy.queue(queue).position_tree, None);
}

#[test]
fn a_seeky_queue_seeks_no_cooperator_and_real_time_joins_only_real_time() {
    let bench = side_by_side(reader_at(2, 256));
    let first = bench.queue_id(1, 1);
    let found = |prepare: &dyn Fn(&mut Bench)| {
        let mut bench = side_by_side(reader_at(2, 256));
        prepare(&mut bench);
        bench.policy.close_cooperator(first).is_some()
    };
    assert!(found(&|_| {}));
    assert!(!found(&|bench| (0..6).for_each(|nth| bench.queue_mut(1).note_seek(true, Sector(nth * 1_000_000), 8))));
    assert!(!found(&|bench| bench.queue_mut(2).priority.class = Class::RealTime));
    assert!(found(&|bench| [1, 2].into_iter().for_each(|pid| bench.queue_mut(pid).priority.class = Class::RealTime)));
}

#[test]
fn a_queue_that_no_process_uses_is_not_merged_and_one_that_has_a_target_is_not_planned_again() {
    let mut bench = side_by_side(reader_at(2, 256));
    let [one, two] = [1, 2].map(|pid| bench.queue_id(pid, 1));
    bench.policy.queue_mut(one).process_refs = 0;
    bench.policy.plan_merge(one, two);
    assert_eq!(bench.policy.queue(one).merge_target, None);
    let mut bench = side_by_side(reader_at(2, 256));
    bench.insert(reader_at(3, 9 << 20));
    let three = bench.queue_id(3, 1);
    bench.policy.queue_mut(one).merge_target = Some(three);
    bench.policy.queue_mut(three).process_refs += 1;
    assert_eq!(bench.pull().map(|rq| rq.io_context.0), Some(2), "it is served nevertheless");
    assert_eq!(bench.policy.queue(one).merge_target, Some(three));
}
