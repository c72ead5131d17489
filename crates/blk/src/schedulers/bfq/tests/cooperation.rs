//! Queues that are merged and split (BFQ-104 to BFQ-111).

use super::super::config::RAISE_INTERACTIVE;
use super::super::entity::QueueId;
use super::super::{BfqConfig, BfqVariant, StateChange};
use super::machine::{MS, Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::bio::{Bio, Op};
use crate::ground::ids::{CgroupId, IoContextId, RqId, Sector};
use crate::ground::kernel::Kernel;
use crate::policy::{Scheduler, SchedulerEvent};

const FAR: u64 = 1 << 30;

/// A disk without stable merging.
fn disk() -> BfqConfig {
    let config = config(true);
    BfqConfig { variant: BfqVariant { stable_merging: false, ..config.variant }, ..config }
}

fn bio(pid: u32, sector: u64) -> Bio {
    Bio { io_context: IoContextId(pid), ..Bio::new(Op::Read, Sector(sector), 256) }
}

/// Two processes read alternate pieces: 1 is in service and has read the first, 2 waits with the second.
fn side_by_side(config: BfqConfig) -> (Machine, [QueueId; 2]) {
    let mut machine = Machine::new(config);
    machine.read(1, 1000, 256);
    machine.read(1, FAR, 256);
    machine.read(2, 1256, 256);
    assert_eq!(machine.dispatch().map(|(_, sector)| sector), Some(1000));
    let queues = [1, 2].map(|pid| machine.sync_queue(pid));
    assert_eq!(machine.bfq.in_service, Some(queues[0]));
    (machine, queues)
}

#[test]
fn a_process_reading_near_the_in_service_queue_joins_it_as_in_28_22() {
    let (mut machine, [one, two]) = side_by_side(disk());
    assert_ne!(one, two, "with one queue at work nothing is tried");
    machine.now = 50 * MS;
    machine.read(2, 1256 + 512, 256);
    assert_eq!(machine.sync_queue(2), one);
    let shared = &machine.bfq.queues[one];
    assert!(shared.shared && shared.owner.is_none());
    assert_eq!((shared.process_refs, shared.queued()), (2, 2), "its own and the newcomer");
    assert_eq!(machine.bfq.queues[two].queued(), 1, "what it had stays where it is");
    assert_eq!(machine.lines_of(2, |what| matches!(what, StateChange::MergePlanned { .. })).len(), 1);
    assert_eq!(machine.drain(), 3);
    assert!(!machine.bfq.queues[two].alive, "then it is gone");
}

#[test]
fn only_close_queues_of_one_kind_merge() {
    let merges = |prepare: &dyn Fn(&mut Machine, [QueueId; 2]), sector| {
        let (mut machine, queues) = side_by_side(disk());
        prepare(&mut machine, queues);
        machine.read(2, sector, 256);
        machine.sync_queue(2) == queues[0]
    };
    let nothing = |_: &mut Machine, _| {};
    assert!(merges(&nothing, 1256 + 8192) && !merges(&nothing, 1256 + 8193));
    let seeky = |machine: &mut Machine, queues: [QueueId; 2], which: usize| {
        (0..32).for_each(|_| machine.bfq.queues[queues[which]].seeks.push(true));
    };
    assert!(!merges(&|machine, queues| seeky(machine, queues, 0), 1300));
    assert!(!merges(&|machine, queues| seeky(machine, queues, 1), 1300));
    assert!(!merges(&|machine, queues| machine.bfq.entity_mut(queues[1]).class = 0, 1300));
    assert!(!merges(&|machine, _| machine.bfq.config.rotational = false, 1300), "not on flash that queues");
}

#[test]
fn after_100_ms_of_service_neither_queue_may_merge() {
    let merges = |now: u64, first_io: [i64; 2]| {
        let (mut machine, queues) = side_by_side(disk());
        for (q, first_io) in queues.into_iter().zip(first_io) {
            machine.bfq.queues[q].service_since_backlogged = 8;
            machine.bfq.queues[q].first_io = first_io;
        }
        machine.now = now * MS;
        machine.read(2, 1300, 256);
        machine.sync_queue(2) == queues[0]
    };
    assert!(merges(100, [0, 0]));
    assert!(!merges(101, [0, 50]), "the target");
    assert!(!merges(101, [50, 0]), "the asker");
    assert!(merges(101, [50, 50]));
    let (mut machine, [one, two]) = side_by_side(disk());
    machine.bfq.queues[one].first_io = 0;
    machine.now = 500 * MS;
    machine.read(2, 1300, 256);
    assert_eq!(machine.sync_queue(2), two);
    machine.bfq.queues[one].service_since_backlogged = 0;
    machine.read(2, 1300, 256);
    assert_eq!(machine.sync_queue(2), one, "who had no service yet is never late");
}

#[test]
fn the_index_finds_a_close_queue_if_the_one_in_service_is_not_close() {
    let (mut machine, [one, two]) = side_by_side(disk());
    machine.read(3, FAR + (1 << 20), 256);
    let three = machine.sync_queue(3);
    machine.now = MS;
    machine.bfq.last_position = 0;
    machine.read(3, 1256 + 256, 256);
    assert_eq!(machine.sync_queue(3), one, "the one in service is near");
    let _ = (two, three);
    let (mut machine, [_, two]) = side_by_side(disk());
    machine.bfq.in_service_last_position = FAR * 4;
    machine.read(3, FAR * 2, 256);
    machine.read(3, 1256 + 300, 256);
    assert_eq!(machine.sync_queue(3), two);
}

#[test]
fn before_4_16_a_queue_that_is_raised_for_100_ms_does_not_merge_and_flash_makes_no_difference() {
    let old = BfqConfig { variant: BfqVariant::of(Kernel::V4_12), ..config(false) };
    let merges = |raise, ms: u64| {
        let (mut machine, queues) = side_by_side(old.clone());
        machine.bfq.entity_mut(queues[0]).raise = raise;
        machine.bfq.raised_busy = u32::from(raise > 1);
        machine.bfq.queues[queues[0]].raising.start = 0;
        machine.now = ms * MS;
        machine.read(2, 1300, 256);
        machine.sync_queue(2) == queues[0]
    };
    assert!(merges(1, 5000), "time alone does not matter");
    assert!(merges(RAISE_INTERACTIVE, 100) && !merges(RAISE_INTERACTIVE, 101));
}

#[test]
fn raising_is_inherited_by_a_queue_that_is_not_raised() {
    let merged = |raises: [u64; 2]| {
        let (mut machine, [one, two]) = side_by_side(disk());
        for (q, raise) in [(one, raises[0]), (two, raises[1])] {
            machine.inside(|bfq| bfq.set_raise(q, raise));
        }
        machine.bfq.queues[two].raising.start = 77;
        machine.bfq.queues[two].raising.duration = 5_000;
        machine.read(2, 1300, 256);
        assert_eq!(machine.sync_queue(2), one);
        let raising = machine.bfq.queues[one].raising;
        (machine.bfq.entity(one).raise, machine.bfq.entity(two).raise, (raising.start, raising.duration) == (77, 5_000))
    };
    assert_eq!(merged([1, 30]), (30, 1, true));
    assert_eq!(merged([3000, 30]), (3000, 1, false), "it has its own");
    assert_eq!(merged([1, 1]), (1, 1, false));
}

#[test]
fn a_merge_makes_the_target_bound_by_io_and_gives_it_a_waker() {
    let (mut machine, [one, two]) = side_by_side(disk());
    machine.read(3, FAR * 3, 256);
    let waker = machine.sync_queue(3);
    machine.bfq.queues[one].io_bound.refute();
    machine.inside(|bfq| bfq.set_waker(two, Some(waker)));
    machine.read(2, 1300, 256);
    assert!(machine.bfq.queues[one].io_bound.is);
    assert_eq!(machine.bfq.queues[one].waker.known, Some(waker));
}

#[test]
fn a_bio_that_could_join_a_request_merges_queues_as_well() {
    let (mut machine, [one, _]) = side_by_side(disk());
    let queued = RqId(machine.bfq.queues[one].next().unwrap());
    let bio = bio(2, FAR + 256);
    assert!(machine.call(|bfq, cx| bfq.allow_merge(cx, queued, &bio)), "its queue is the same by now");
    assert_eq!(machine.sync_queue(2), one);
}

#[test]
fn a_bio_joins_no_request_of_another_queue_and_a_sync_one_no_async_one() {
    let mut machine = Machine::new(config(true));
    let read = machine.read(1, 0, 256);
    let write = machine.write(1, 1 << 20, 256);
    machine.read(2, 1 << 24, 256);
    let jumper = machine.sync_queue(2);
    (0..32).for_each(|_| machine.bfq.queues[jumper].seeks.push(true));
    let mut allows = |id, bio: Bio| machine.call(|bfq, cx| bfq.allow_merge(cx, id, &bio));
    assert!(allows(read, bio(1, 256)));
    assert!(!allows(read, bio(2, 256)), "another process");
    assert!(!allows(read, bio(9, 256)), "one that was never seen");
    let flags = crate::bio::BioFlags::SYNC;
    let write_bio = |flags| Bio { flags, op: Op::Write, ..bio(1, (1 << 20) + 256) };
    assert!(!allows(write, write_bio(flags)));
    assert!(allows(write, write_bio(crate::bio::BioFlags::NONE)));
}

/// One and two share a queue that has become seeky and lost its slot.
fn seeky_and_shared() -> (Machine, QueueId) {
    let (mut machine, [one, two]) = side_by_side(disk());
    machine.bfq.queues[two].short_think = false;
    machine.bfq.queues[two].injection.baseline = 4711;
    machine.inside(|bfq| bfq.set_raise(two, 1));
    machine.read(2, 1300, 256);
    assert_eq!(machine.sync_queue(2), one);
    (0..20).for_each(|_| machine.bfq.queues[one].seeks.push(true));
    machine.inside(|bfq| bfq.expire(one, false, super::super::Expiration::BudgetTimeout));
    assert!(machine.bfq.queues[one].split_wanted);
    (machine, one)
}

#[test]
fn a_shared_queue_that_turned_seeky_is_left_with_the_state_that_was_saved() {
    let (mut machine, shared) = seeky_and_shared();
    machine.now = 300 * MS;
    machine.read(2, FAR * 2, 256);
    let own = machine.sync_queue(2);
    assert_ne!(own, shared);
    let queue = &machine.bfq.queues[own];
    assert_eq!((queue.short_think, queue.injection.baseline, queue.split), (false, 4711, 300));
    assert!(queue.owner.is_some());
    machine.read(1, FAR * 3, 256);
    assert_eq!(machine.sync_queue(1), shared, "the last one keeps it");
    let queue = &machine.bfq.queues[shared];
    assert!(!queue.shared && !queue.split_wanted && queue.owner.is_some());
}

#[test]
fn for_two_seconds_after_a_split_a_queue_is_not_raised_or_judged_to_think() {
    let (mut machine, _) = seeky_and_shared();
    machine.set("low_latency", 1);
    machine.now = 5_000 * MS;
    machine.read(2, FAR * 2, 256);
    let own = machine.sync_queue(2);
    assert_eq!(machine.bfq.entity(own).raise, 1);
    assert!(!machine.bfq.queues[own].short_think, "restored, and kept");
}

/// A second process starts `gap` ms after the first; how many ms after that are they one queue, if ever?
fn stable_merge(rotational: bool, gap: u64, streams: bool) -> Option<u64> {
    let mut machine = Machine::new(config(rotational));
    let read = |machine: &mut Machine, pid: u32, nth: u64| {
        let step = if streams { 256 } else { FAR };
        let id = machine.read(pid, (u64::from(pid) << 40) + 8 + nth * step, 256);
        if pid == 2 && !streams {
            let q = machine.sync_queue(2);
            machine.bfq.queues[q].io_bound.refute();
        }
        id
    };
    let _ = read(&mut machine, 1, 0);
    let mut now = gap;
    for nth in 0..20 {
        machine.now = now * MS;
        read(&mut machine, 2, nth);
        if machine.sync_queue(1) == machine.sync_queue(2) {
            assert!([1, 2].iter().all(|&pid| machine.queues_of(pid).stably_merged));
            let own = machine.sync_queue(1);
            assert_eq!(machine.bfq.queues[own].merge_refs, 0, "no queue plans to merge with it any more");
            return Some(now - gap);
        }
        now += 100;
    }
    None
}

#[test]
fn stable_merges_happen_at_once_on_flash_and_after_600_ms_on_disks() {
    assert_eq!(stable_merge(false, 180, false), Some(0));
    assert_eq!(stable_merge(false, 181, false), None, "neither merged nor compared with again");
    assert_eq!(stable_merge(true, 180, false), Some(700), "older than 600 ms, at a request each 100 ms");
    assert_eq!(stable_merge(true, 181, false), None);
    assert_eq!(stable_merge(true, 180, true), None, "idling pays for a stream");
}

#[test]
fn stable_merging_needs_the_same_level_and_group_and_a_recent_release() {
    let merged = |config: BfqConfig, second: Bio| {
        let mut machine = Machine::new(config);
        machine.read(1, 8, 256);
        machine.now = 20 * MS;
        machine.insert(second);
        machine.sync_queue(1) == machine.sync_queue(2)
    };
    assert!(merged(config(false), bio(2, FAR)));
    let ioprio = IoPriority::new(PriorityClass::BestEffort, 3);
    assert!(!merged(config(false), Bio { ioprio, ..bio(2, FAR) }));
    assert!(!merged(config(false), Bio { cgroup: crate::ground::ids::CgroupId(1), ..bio(2, FAR) }));
    for kernel in [Kernel::V4_12, Kernel::V4_19, Kernel::V5_10] {
        assert!(!merged(BfqConfig { variant: BfqVariant::of(kernel), ..config(false) }, bio(2, FAR)), "{kernel}");
    }
}

#[test]
fn a_stably_merged_process_never_splits_off() {
    let mut machine = Machine::new(config(false));
    machine.read(1, 8, 256);
    machine.now = 20 * MS;
    machine.read(2, FAR, 256);
    let shared = machine.sync_queue(2);
    assert_eq!(machine.sync_queue(1), shared);
    machine.bfq.queues[shared].split_wanted = true;
    machine.read(1, FAR * 2, 256);
    machine.read(2, FAR * 3, 256);
    assert_eq!([1, 2].map(|pid| machine.sync_queue(pid)), [shared; 2]);
}

#[test]
fn a_queue_whose_process_has_exited_is_no_target_of_a_stable_merge() {
    let mut machine = Machine::new(config(false));
    machine.read(1, 8, 256);
    let old = machine.sync_queue(1);
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(1))));
    machine.now = 20 * MS;
    machine.read(2, FAR, 256);
    assert_ne!(machine.sync_queue(2), old);
    assert!(!machine.queues_of(2).stably_merged);
}

#[test]
fn class_idle_queues_and_queues_of_other_groups_never_merge() {
    let ioprio = IoPriority::new(PriorityClass::Idle, 4);
    let mut machine = Machine::new(disk());
    machine.insert(Bio { ioprio, ..bio(1, 1000) });
    machine.insert(Bio { ioprio, ..bio(2, FAR) });
    let queues = [1, 2].map(|pid| machine.sync_queue(pid));
    assert!(queues.iter().all(|&q| !machine.bfq.queues[q].indexed));
    machine.bfq.in_service = Some(queues[0]);
    machine.bfq.in_service_last_position = FAR;
    let context = machine.bfq.contexts.find(IoContextId(2)).unwrap();
    (0..32).for_each(|_| queues.iter().for_each(|&q| machine.bfq.queues[q].seeks.push(false)));
    assert_eq!(machine.inside(|bfq| bfq.cooperate(queues[1], context, FAR)), None);
}

#[test]
fn queues_of_two_groups_do_not_merge_however_close() {
    for (other, merges) in [(1, true), (2, false)] {
        let mut machine = Machine::new(disk());
        let mut read = |cgroup, pid, sector| machine.insert(Bio { cgroup: CgroupId(cgroup), ..bio(pid, sector) });
        read(1, 1, 1000);
        read(other, 2, FAR);
        machine.dispatch();
        let [one, two] = [1, 2].map(|pid| machine.sync_queue(pid));
        assert_eq!(machine.bfq.in_service, Some(one));
        machine.insert(Bio { cgroup: CgroupId(other), ..bio(2, 1256) });
        assert_eq!(machine.sync_queue(2), if merges { one } else { two });
    }
}

#[test]
fn async_queues_take_no_part_in_cooperation() {
    let write = |pid, sector| Bio { io_context: IoContextId(pid), ..Bio::new(Op::Write, Sector(sector), 256) };
    // A write close to what a reader in service reads, and the other way round.
    let mut machine = Machine::new(disk());
    machine.insert(bio(1, 1000));
    machine.insert(write(2, FAR));
    machine.dispatch();
    assert_eq!(machine.bfq.in_service, Some(machine.sync_queue(1)));
    let id = machine.insert(write(2, 1256));
    assert_eq!(machine.bfq.entries[id.index()].queue, Some(machine.async_queue(2)));
    let mut machine = Machine::new(disk());
    machine.insert(write(1, 1000));
    machine.dispatch();
    let shared = machine.async_queue(1);
    machine.bfq.in_service = Some(shared);
    machine.insert(bio(2, FAR));
    machine.bfq.in_service = Some(shared);
    machine.bfq.in_service_last_position = 1256;
    let q = machine.sync_queue(2);
    let context = machine.bfq.contexts.find(IoContextId(2)).unwrap();
    machine.bfq.busy[1] = 2;
    assert_eq!(machine.inside(|bfq| bfq.cooperate(q, context, 1256)), None);
}

#[test]
fn closeness_uses_the_in_service_queue_and_before_4_16_the_device_position() {
    for (kernel, merges) in [(Kernel::V4_12, false), (Kernel::V4_19, true), (Kernel::V5_10, true)] {
        let variant = BfqVariant { stable_merging: false, ..BfqVariant::of(kernel) };
        let (mut machine, [one, two]) = side_by_side(BfqConfig { variant, ..config(true) });
        machine.bfq.last_position = FAR * 7;
        let context = machine.bfq.contexts.find(IoContextId(2)).unwrap();
        machine.inside(|bfq| bfq.unindex(one));
        let target = machine.inside(|bfq| bfq.cooperate(two, context, 1256));
        assert_eq!(target.is_some(), merges, "{kernel}");
    }
}

#[test]
fn a_queue_that_grew_at_its_front_is_found_at_its_new_start() {
    let found = |grows| {
        let (mut machine, [one, two]) = side_by_side(disk());
        let next = machine.bfq.queues[two].next().unwrap();
        if grows {
            machine.grow_front(crate::ground::ids::RqId(next), 1240);
        }
        let context = machine.bfq.contexts.find(IoContextId(1)).unwrap();
        // 8192 sectors behind where it began.
        machine.inside(|bfq| bfq.cooperate(one, context, 1256 + 8192)) == Some(two)
    };
    assert!(found(false) && !found(true));
}

#[test]
fn on_flash_that_queues_commands_queues_are_in_the_index_only_before_5_4() {
    for (kernel, rotational, indexed) in [
        (Kernel::V4_19, false, true),
        (Kernel::V5_10, false, false),
        (Kernel::V6_18, false, false),
        (Kernel::V6_18, true, true),
    ] {
        let variant = BfqVariant { stable_merging: false, ..BfqVariant::of(kernel) };
        let mut machine = Machine::new(BfqConfig { variant, ..config(rotational) });
        machine.decide_ncq(true);
        machine.read(1, 1000, 256);
        assert_eq!(machine.bfq.queues[machine.sync_queue(1)].indexed, indexed, "{kernel}, rotational: {rotational}");
        machine.drain();
    }
}

#[test]
fn only_a_queue_that_is_shared_and_seeky_at_the_end_of_its_slot_is_to_be_split() {
    for (shared, seeky) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut machine = Machine::new(disk());
        machine.read(1, 8, 8);
        machine.dispatch();
        let q = machine.sync_queue(1);
        machine.bfq.queues[q].shared = shared;
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(seeky));
        machine.inside(|bfq| bfq.expire(q, false, super::super::Expiration::BudgetTimeout));
        assert_eq!(machine.bfq.queues[q].split_wanted, shared && seeky);
    }
}

#[test]
fn on_flash_a_stable_merge_happens_when_the_queue_is_created() {
    let mut machine = Machine::new(config(false));
    machine.read(1, 8, 256);
    machine.now = 20 * MS;
    let id = machine.announce(bio(2, FAR));
    assert_eq!(machine.sync_queue(1), machine.sync_queue(2));
    machine.call(|bfq, cx| bfq.insert(cx, id, crate::policy::Place::Sorted));
    assert_eq!(machine.drain(), 2);
}
