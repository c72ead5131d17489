//! Tag limits (BFQ-114, BFQ-115).

use super::super::{Bfq, BfqConfig, BfqGroup};
use super::machine::{Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::bio::{Bio, BioFlags, Op};
use crate::ground::ids::{CgroupId, IoContextId, Sector};
use crate::ground::kernel::ShallowRule;
use crate::policy::Scheduler;

fn limit(machine: &mut Machine, pid: u32, op: Op, flags: BioFlags) -> Option<u32> {
    let io_context = IoContextId(pid);
    let bio = Bio { flags, io_context, ..Bio::new(op, Sector(0), 8) };
    machine.call(|bfq: &mut Bfq, cx| bfq.limit_depth(cx, &bio))
}

#[test]
fn writes_get_a_share_of_the_tags_and_less_while_a_queue_is_raised() {
    let limits = |tags, raised, shallow| {
        let mut machine = Machine::new(BfqConfig { nr_requests: tags, shallow, ..config(true) });
        machine.bfq.raised_busy = raised;
        [(Op::Read, BioFlags::NONE), (Op::Write, BioFlags::NONE), (Op::Write, BioFlags::SYNC)]
            .map(|(op, flags)| limit(&mut machine, 1, op, flags))
    };
    assert_eq!(limits(256, 0, ShallowRule::WholeMap), [None, Some(128), Some(192)]);
    assert_eq!(limits(256, 1, ShallowRule::WholeMap), [None, Some(48), Some(96)]);
    assert_eq!(limits(32, 1, ShallowRule::WholeMap), [None, Some(6), Some(12)]);
    assert_eq!(limits(256, 0, ShallowRule::PerWord), [None, Some(32), Some(48)], "of each word of 64");
}

#[test]
fn a_process_with_its_share_of_requests_gets_one_at_a_time() {
    let group = |id, weight| BfqGroup { cgroup: CgroupId(id), parent: CgroupId::ROOT, weight };
    let mut machine = Machine::new(BfqConfig { groups: vec![group(1, 100), group(2, 300)], ..config(true) });
    let read = |machine: &mut Machine, pid, cgroup, sector| {
        let bio = Bio::new(Op::Read, Sector(sector), 8);
        machine.insert(Bio { io_context: IoContextId(pid), cgroup: CgroupId(cgroup), ..bio })
    };
    read(&mut machine, 3, 2, 0);
    read(&mut machine, 2, 1, 1 << 30);
    for at in 0..31 {
        read(&mut machine, 1, 1, (2 << 30) + at * 100);
    }
    assert_eq!(limit(&mut machine, 1, Op::Read, BioFlags::NONE), None, "31 of 32");
    read(&mut machine, 1, 1, 3 << 30);
    assert_eq!(limit(&mut machine, 1, Op::Read, BioFlags::NONE), Some(1));
}

/// Whether a sync read of process 1 is over its share, of 8 tags, when it has `own` requests beside one of each of
/// `others`.
fn over(own: u64, class: PriorityClass, others: &[PriorityClass]) -> bool {
    let mut machine = Machine::new(BfqConfig { nr_requests: 8, ..config(true) });
    let mut insert = |pid, class, sector| {
        let bio = Bio::new(Op::Read, Sector(sector), 8);
        machine.insert(Bio { io_context: IoContextId(pid), ioprio: IoPriority::new(class, 4), ..bio });
    };
    (0..own).for_each(|at| insert(1, class, 8 * at));
    (2..).zip(others).for_each(|(pid, &class)| insert(pid, class, u64::from(pid) << 30));
    limit(&mut machine, 1, Op::Read, BioFlags::NONE) == Some(1)
}

#[test]
fn a_higher_class_weighs_eight_times_in_the_share_of_those_below() {
    use PriorityClass::{BestEffort, Idle, RealTime};
    assert!(!over(7, BestEffort, &[]) && over(8, BestEffort, &[]), "alone: all of the 8");
    // 8 * 40 / 80, and beside real time 8 * 40 / (40 * 8 + 40) = 0.9.
    assert!(!over(3, BestEffort, &[BestEffort]) && over(4, BestEffort, &[BestEffort]));
    assert!(over(1, BestEffort, &[RealTime]));
    assert!(!over(7, RealTime, &[BestEffort, Idle]), "a class above does not count those below");
    // 8 * 10 / (40 * 8 + 10) = 0.2: the share of none is reached without a request.
    assert!(over(1, Idle, &[RealTime]), "8 * 10 / (40 * 8 * 8 + 10)");
    assert!(over(1, Idle, &[BestEffort]) && !over(7, Idle, &[]));
}

#[test]
fn a_share_is_rounded_to_nearest() {
    use PriorityClass::BestEffort;
    // Of 8 among three: 2.67, which is three.
    assert!(!over(2, BestEffort, &[BestEffort; 2]) && over(3, BestEffort, &[BestEffort; 2]));
}

#[test]
fn a_queue_that_virtual_time_has_overtaken_has_no_share_to_exceed() {
    let group = |id| BfqGroup { cgroup: CgroupId(id), parent: CgroupId::ROOT, weight: 100 };
    // Either the queue itself, or the group above it.
    for above in [false, true] {
        let groups = vec![group(1), group(2)];
        let mut machine = Machine::new(BfqConfig { nr_requests: 8, groups, ..config(true) });
        (0..8).for_each(|at| {
            machine.read_in(1, 1, 8 * at);
        });
        // One has weight there, and there is a share of it.
        machine.read_in(if above { 2 } else { 1 }, 2, 1 << 30);
        assert_eq!(limit(&mut machine, 1, Op::Read, BioFlags::NONE), Some(1));
        let q = machine.sync_queue(1);
        let queue = machine.bfq.queues[q].entity;
        let dropped = if above { machine.bfq.hierarchy.parent(queue).unwrap() } else { queue };
        // Virtual time is yet to catch up with it.
        machine.bfq.entity_mut(q).service = 50;
        machine.inside(|bfq| bfq.leave_busy(q, false));
        machine.inside(|bfq| bfq.hierarchy.drop_idle(dropped));
        assert!(!machine.bfq.hierarchy.entities[dropped].accounted);
        assert_eq!(limit(&mut machine, 1, Op::Read, BioFlags::NONE), None);
    }
}

#[test]
fn with_an_async_depth_the_depth_limits_are_shares_of_it() {
    let limits = |depth, raised| {
        let mut machine = Machine::new(BfqConfig { async_depth: Some(depth), ..config(true) });
        machine.bfq.raised_busy = raised;
        [(Op::Read, BioFlags::NONE), (Op::Write, BioFlags::NONE), (Op::Write, BioFlags::SYNC)]
            .map(|(op, flags)| limit(&mut machine, 1, op, flags))
    };
    assert_eq!(limits(192, 0), [None, Some(128), Some(192)]);
    assert_eq!(limits(192, 1), [None, Some(48), Some(96)]);
    assert_eq!([limits(1, 0), limits(1, 1)], [[None, Some(1), Some(1)]; 2], "never none at all");
}
