//! What always holds, whatever happens in whatever order.
//!
//! Rules: CFQ-8, CFQ-9, CFQ-73.

use proptest::prelude::*;

use hoistway_blk::bio::{BioFlags, PriorityClass};
use hoistway_blk::ground::{CgroupId, HctxId, RqId};
use hoistway_blk::policy::{LegacyHooks, Scheduler, SchedulerEvent};

use super::super::Location;
use super::super::class::TreeId;
use super::super::queue::QueueId;
use super::*;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A process submits: which, class and level, cgroup, what, where.
    Insert { pid: u32, class: u8, level: u8, cgroup: u32, kind: u8, sector: u64 },
    /// The driver asks this many times.
    Ask(u8),
    /// One of those that are out ends, or is requeued and started again first.
    Finish { which: usize, requeue: bool },
    /// A process ends.
    Exit(u32),
    /// Time passes, us.
    Wait(u32),
    /// Two neighbours of a queue become one.
    Join(u32),
    /// A tunable is written.
    Write(usize, u32),
    /// A cgroup gets another weight.
    Weigh(u32, u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..6u32, 0..8u8, 0..8u8, 0..4u32, 0..5u8, 0..400u64).prop_map(
            |(pid, class, level, cgroup, kind, sector)| {
                // Most are best effort of a level of their own, in a cgroup of their own.
                let class = match class { 0 => 1, 1 => 3, _ => 2 };
                let cgroup = if level == 0 { cgroup } else { pid % 3 };
                Step::Insert { pid, class, level: if level < 6 { 4 } else { level }, cgroup, kind, sector: sector * 97 }
            }
        ),
        8 => (0..6u8).prop_map(Step::Ask),
        8 => (any::<usize>(), any::<bool>()).prop_map(|(which, requeue)| Step::Finish { which, requeue }),
        1 => (1..6u32).prop_map(Step::Exit),
        4 => (0..40_000u32).prop_map(Step::Wait),
        2 => (0..64u32).prop_map(Step::Join),
        1 => (0..17usize, 0..200u32).prop_map(|(file, value)| Step::Write(file, value)),
        1 => (1..4u32, 10..1000u16).prop_map(|(cgroup, weight)| Step::Weigh(cgroup, weight)),
    ]
}

fn apply(bench: &mut Bench, step: Step) {
    match step {
        Step::Insert { pid, class, level, cgroup, kind, sector } => {
            if bench.requests_left() == 0 {
                return;
            }
            let class = match class {
                1 => PriorityClass::RealTime,
                3 => PriorityClass::Idle,
                _ => PriorityClass::BestEffort,
            };
            let job = Job { cgroup: CgroupId(cgroup), sector, ..Job::new(pid, 1) }.class(class, level);
            bench.insert(match kind {
                0 => job.asynchronous(),
                1 => Job { flags: BioFlags::SYNC, ..job.asynchronous() },
                2 => Job { flags: BioFlags::PRIO, ..job },
                _ => job,
            });
        }
        Step::Ask(times) => (0..times).for_each(|_| {
            if let Some(rq) = bench.pull() {
                bench.out.push(rq);
            }
        }),
        Step::Finish { which, requeue } => {
            if bench.out.is_empty() {
                return;
            }
            let which = which % bench.out.len();
            let rq = bench.out.swap_remove(which);
            if requeue {
                bench.call(|policy, cx| policy.on_requeued(cx, rq.id()));
                bench.call(|policy, cx| policy.on_started(cx, rq.id()));
            }
            bench.finish(rq);
        }
        Step::Exit(pid) => bench.exit(pid),
        Step::Wait(us) => bench.run_timer_until(bench.now + u64::from(us) * US),
        Step::Join(id) => {
            let survivor = RqId(id);
            let waits = |bench: &Bench, id: RqId| bench.policy.entries[id.index()].location == Location::Waiting;
            if !waits(bench, survivor) {
                return;
            }
            if let Some(absorbed) = bench.policy.next(survivor) {
                bench.call(|policy, cx| policy.on_absorbed(cx, survivor, absorbed));
                let rq = bench.requests.release(absorbed);
                bench.finish(rq);
            }
        }
        Step::Write(file, value) => {
            let (tunable, _) = bench.policy.tunables()[file];
            bench.set(tunable.name, &value.to_string());
        }
        Step::Weigh(cgroup, weight) => {
            bench.call(|policy, cx| policy.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(cgroup), weight }))
        }
    }
}

/// Checks what always holds.
fn check(bench: &Bench) {
    let policy = &bench.policy;
    let (mut busy, mut busy_sync, mut waiting, mut out) = (0, 0, 0, [0; 2]);
    let in_use = |id: &u32| !policy.free_queues.contains(&QueueId(*id));
    let ids: Vec<u32> = (0..policy.queues.len() as u32).filter(in_use).collect();
    for &id in &ids {
        let queue = &policy.queues[id as usize];
        let is_active = policy.active == Some(QueueId(id));
        assert!(queue.busy || queue.backlog.is_empty(), "a queue with requests is busy");
        assert!(!queue.busy || is_active || !queue.backlog.is_empty(), "a busy queue has requests or the device");
        assert_eq!(queue.busy, queue.tree.is_some(), "a busy queue is in a tree");
        assert!(queue.position_tree.is_none() || !queue.backlog.is_empty());
        assert_eq!(queue.backlog.next().is_some(), !queue.backlog.is_empty(), "one is always next");
        assert!(!is_active || queue.busy, "the active queue is busy");
        busy += u32::from(queue.busy);
        busy_sync += u32::from(queue.busy && queue.sync);
        waiting += queue.backlog.len();
        out[usize::from(queue.sync)] += queue.in_flight;
        assert!(queue.process_refs + queue.request_refs > 0, "unused queues are freed");
        assert!(queue.request_refs >= queue.backlog.len() + queue.in_flight);
    }
    assert_eq!((policy.busy_queues, policy.busy_sync_queues), (busy, busy_sync));
    assert_eq!((policy.waiting, policy.in_flight), (waiting, out));
    assert_eq!(policy.in_driver, bench.out.len() as u32);
    for cgroup in (0..4).map(CgroupId).filter(|&cgroup| policy.groups.exists(cgroup)) {
        let group = &policy.groups[cgroup];
        let members = || ids.iter().map(|&id| &policy.queues[id as usize]).filter(|queue| queue.group == cgroup);
        assert_eq!(group.busy_queues, members().filter(|queue| queue.busy).count() as u32);
        assert_eq!(group.in_flight, members().map(|queue| queue.in_flight).sum::<u32>());
        for tree in TreeId::ALL {
            let count = members().filter(|queue| queue.tree == Some(tree)).count() as u32;
            assert_eq!(group.trees[tree.index()].count, count);
        }
    }
    assert_eq!(policy.timer_armed, bench.timer.is_some(), "both sides agree about the timer");
}

proptest! {
    #[test]
    fn counters_trees_and_references_stay_true_and_everything_comes_out(
        rotational in any::<bool>(),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut bench = if rotational { Bench::new(1) } else { Bench::flash(1) };
        bench.call(|policy, cx| policy.on_event(cx, SchedulerEvent::CgroupAdded { cgroup: CgroupId(3), parent: CgroupId(1) }));
        for step in steps {
            apply(&mut bench, step);
            check(&bench);
        }
        let mut drained = Vec::new();
        bench.call(|policy, cx| policy.drain(cx, HctxId(0), &mut drained));
        prop_assert!(!bench.policy.has_work() && bench.policy.busy_queues == 0);
        for id in drained {
            let rq = bench.requests.release(id);
            bench.finish(rq);
        }
        while let Some(rq) = bench.out.pop() {
            bench.finish(rq);
        }
        (1..6).for_each(|pid| bench.exit(pid));
        let policy = &bench.policy;
        let left = policy.queues.len() - policy.free_queues.len();
        let by_groups = (0..4).map(CgroupId).filter(|&cgroup| policy.groups.exists(cgroup));
        let kept: usize =
            by_groups.map(|cgroup| policy.groups[cgroup].async_queues.iter().flatten().flatten().count()).sum();
        prop_assert_eq!(left, kept, "only the groups' async queues are left");
    }
}
