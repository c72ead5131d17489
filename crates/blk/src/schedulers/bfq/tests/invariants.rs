//! What always holds, whatever happens in whatever order (BFQ-11, BFQ-121, BFQ-123).

use proptest::prelude::*;

use super::super::entity::{CLASSES, EntityId, GroupId, Membership, Owner, QueueId};
use super::super::vtime::delta;
use super::super::{BfqConfig, BfqGroup, BfqVariant};
use super::machine::{Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::bio::{Bio, BioFlags, Op};
use crate::ground::ids::{CgroupId, IoContextId, Sector};
use crate::ground::kernel::Kernel;
use crate::policy::{Scheduler, SchedulerEvent};

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A process submits: from which CPU, where, what, as what.
    Insert {
        pid: u32,
        sector: u64,
        kind: u8,
        class: u8,
        level: u8,
        cgroup: u32,
    },
    /// The driver asks this number of times.
    Ask(u8),
    /// One of those that are out ends.
    Finish(usize),
    /// Time passes, us.
    Wait(u64),
    /// A process ends, or goes to a cgroup.
    Exit(u32),
    Move(u32, u32),
    /// A cgroup gets a weight, or goes.
    Weigh(u32, u16),
    Remove(u32),
    /// A tunable is written.
    Write(usize, u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (1..6u32, 0..60u64, 0..6u8, 0..8u8, 0..8u8, 0..4u32).prop_map(|(pid, place, kind, class, level, cgroup)| {
            // Most are best effort of level 4, each in a cgroup of its own.
            let (level, cgroup) = (if level < 6 { 4 } else { level }, if level == 0 { cgroup } else { pid % 3 });
            Step::Insert { pid, sector: place * 300 + 8, kind, class, level, cgroup }
        }),
        8 => (1..5u8).prop_map(Step::Ask),
        7 => any::<usize>().prop_map(Step::Finish),
        5 => (0..30_000u64).prop_map(Step::Wait),
        1 => (0..3_000_000u64).prop_map(Step::Wait),
        1 => (1..6u32).prop_map(Step::Exit),
        1 => (1..6u32, 0..4u32).prop_map(|(pid, cgroup)| Step::Move(pid, cgroup)),
        1 => (1..4u32, 1..1000u16).prop_map(|(cgroup, weight)| Step::Weigh(cgroup, weight)),
        1 => (1..4u32).prop_map(Step::Remove),
        1 => (0..10usize, 0..200u32).prop_map(|(file, value)| Step::Write(file, value)),
    ]
}

fn apply(machine: &mut Machine, step: Step) {
    match step {
        Step::Insert { pid, sector, kind, class, level, cgroup } => {
            let class = match class {
                0 => PriorityClass::RealTime,
                1 => PriorityClass::Idle,
                _ => PriorityClass::BestEffort,
            };
            let (op, flags) = match kind {
                0 => (Op::Write, BioFlags::NONE),
                1 => (Op::Write, BioFlags::SYNC),
                2 => (Op::Read, BioFlags::META),
                _ => (Op::Read, BioFlags::NONE),
            };
            if machine.has_room() {
                machine.insert(Bio {
                    flags,
                    ioprio: IoPriority::new(class, level),
                    cgroup: CgroupId(cgroup),
                    io_context: IoContextId(pid),
                    ..Bio::new(op, Sector(sector), 8 << (sector % 5))
                });
            }
        }
        Step::Ask(times) => (0..times).for_each(|_| {
            machine.dispatch();
        }),
        Step::Finish(which) => {
            if !machine.in_device.is_empty() {
                let (_, id) = machine.in_device[which % machine.in_device.len()];
                machine.finish(id);
            }
        }
        Step::Wait(us) => {
            let end = machine.now + us * 1000;
            while machine.timer_left().is_some_and(|left| machine.now + left <= end) {
                machine.fire_timer();
            }
            machine.now = end;
        }
        Step::Exit(pid) => machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(pid)))),
        Step::Move(pid, cgroup) => {
            machine.call(|bfq, cx| {
                bfq.on_event(cx, SchedulerEvent::Moved { io_context: IoContextId(pid), cgroup: CgroupId(cgroup) })
            });
        }
        Step::Weigh(cgroup, weight) => {
            machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(cgroup), weight }))
        }
        Step::Remove(cgroup) => {
            machine.call(|bfq, cx| {
                bfq.on_event(cx, SchedulerEvent::CgroupRemoved(CgroupId(cgroup)));
                bfq.on_event(cx, SchedulerEvent::CgroupAdded { cgroup: CgroupId(cgroup), parent: CgroupId::ROOT });
            });
        }
        Step::Write(file, value) => machine.call(|bfq, cx| {
            let (tunable, _) = bfq.tunables()[file];
            bfq.set_tunable(cx, tunable.name, &value.to_string()).expect("a number");
        }),
    }
}

/// Checks what always holds.
fn check(machine: &Machine) {
    let bfq = &machine.bfq;
    let queues = || (0..bfq.queues.len() as u32).map(QueueId).filter(|&q| bfq.queues[q].alive);
    let (mut busy, mut raised, mut queued, mut dispatched) = ([0; CLASSES], 0, 0, 0);
    for q in queues() {
        let (queue, entity) = (&bfq.queues[q], bfq.entity(q));
        let served = bfq.in_service == Some(q);
        if queue.waiting {
            assert!(
                served && queue.dispatched == 0 && machine.timer_left().is_some(),
                "only who is served is waited for"
            );
        }
        assert!(queue.busy || (queue.is_empty() && !served), "who has requests or the device is busy");
        assert_eq!(queue.busy, entity.on == Membership::Active || served, "who is busy is active or served");
        assert_eq!(queue.next().is_some(), !queue.is_empty(), "one is always next");
        assert!(!queue.indexed || !queue.is_empty());
        assert_eq!(queue.pending_in_group, queue.busy || queue.dispatched > 0);
        assert!(entity.counted_weight.is_none() || queue.pending_in_group);
        assert!(entity.allocated >= queue.queued() + queue.dispatched);
        if entity.on == Membership::Active {
            assert_eq!(entity.finish, entity.start.wrapping_add(delta(entity.budget, entity.weight)));
        }
        for &woken in &queue.waker.woken {
            assert_eq!(bfq.queues[woken].waker.known, Some(q), "wakers and woken know of each other");
        }
        if let Some(waker) = queue.waker.known {
            assert_eq!(bfq.queues[waker].waker.woken.iter().filter(|&&woken| woken == q).count(), 1);
        }
        busy[queue.busy_class] += u32::from(queue.busy);
        raised += u32::from(queue.busy && entity.raise > 1);
        queued += queue.queued();
        dispatched += queue.dispatched;
    }
    assert_eq!((bfq.busy, bfq.raised_busy), (busy, raised));
    assert_eq!((bfq.queued, bfq.in_driver, bfq.in_driver_of.iter().sum()), (queued, dispatched, dispatched));
    let mut counted: Vec<u64> = queues().filter_map(|q| bfq.entity(q).counted_weight).collect();
    counted.sort_unstable();
    let weights = &bfq.hierarchy.weights;
    assert_eq!((weights.differ(), weights.smallest()), (counted.first() != counted.last(), counted.first().copied()));
    check_hierarchy(machine);
}

/// Sums of weights, and what groups count.
fn check_hierarchy(machine: &Machine) {
    let bfq = &machine.bfq;
    let mut pending_groups = 0;
    for (number, level) in bfq.hierarchy.levels.iter().enumerate() {
        let group = GroupId(number as u32);
        let own = |id: &EntityId| bfq.hierarchy.entities[*id].level == group && bfq.hierarchy.entities[*id].accounted;
        let of_queues = (0..bfq.queues.len() as u32).map(QueueId).filter(|&q| bfq.queues[q].alive);
        let of_queues = of_queues.map(|q| bfq.queues[q].entity);
        let of_groups = bfq.hierarchy.levels.iter().filter_map(|level| level.entity);
        let members: Vec<EntityId> = of_queues.chain(of_groups).filter(own).collect();
        for class in 0..CLASSES {
            let weights = members.iter().map(|&id| &bfq.hierarchy.entities[id]).filter(|entity| entity.class == class);
            let sum: u64 = weights.map(|entity| entity.weight).sum();
            assert_eq!(level.trees[class].weight_sum, sum, "active, idle and in service");
        }
        if let Some(next) = level.next {
            // A group that is served with its only child may still be the next one, too (BFQ-32).
            let waits = bfq.hierarchy.entities[next].on == Membership::Active;
            assert!(waits || level.in_service == Some(next), "the next one waits");
        }
        let pending = |&id: &EntityId| match bfq.hierarchy.entities[id].owner {
            Owner::Queue(q) => bfq.queues[q].pending_in_group,
            Owner::Group(_) => false,
        };
        let queues = (0..bfq.queues.len() as u32).map(QueueId).filter(|&q| bfq.queues[q].alive);
        let here = queues.filter(|&q| bfq.queues[q].group == group).map(|q| bfq.queues[q].entity);
        let count = here.filter(pending).count() as u32;
        assert_eq!(bfq.groups[group].pending_queues, count);
        pending_groups += u32::from(count > 0);
    }
    assert_eq!(bfq.groups_pending, pending_groups);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn counters_trees_and_references_stay_true_and_everything_comes_out(
        rotational in any::<bool>(),
        kernel in prop::sample::select(vec![Kernel::V4_12, Kernel::V4_19, Kernel::V5_10, Kernel::V6_3, Kernel::V6_18]),
        actuators in any::<bool>(),
        low_latency in 0..2i128,
        steps in prop::collection::vec(step(), 1..250),
    ) {
        let group = |id| BfqGroup { cgroup: CgroupId(id), parent: CgroupId::ROOT, weight: 100 };
        let mut machine = Machine::new(BfqConfig {
            variant: BfqVariant::of(kernel),
            groups: vec![group(1), group(2), BfqGroup { parent: CgroupId(1), ..group(3) }],
            actuators: if actuators { vec![Sector(9_000)] } else { Vec::new() },
            ..config(rotational)
        });
        machine.set("low_latency", low_latency);
        for step in steps {
            apply(&mut machine, step);
            check(&machine);
        }
        machine.drain();
        check(&machine);
        prop_assert_eq!((machine.bfq.queued, machine.bfq.in_driver), (0, 0));
        (1..6).for_each(|pid| machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(pid)))));
        check(&machine);
    }
}
