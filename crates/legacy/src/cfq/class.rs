//! Classes, levels and kinds of workload.
//!
//! Rules: CFQ-10 to CFQ-13.

use hoistway_blk::bio::{BioFlags, IoPriority, Op, PriorityClass};

/// The class of a queue. Within a group a class is served only while no better class is busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(super) enum Class {
    /// Best effort.
    #[default]
    BestEffort = 0,
    /// Real time.
    RealTime = 1,
    /// Idle: served only when no other class wants the device.
    Idle = 2,
}

/// The kind of a queue's load; within a class each kind gets its own share of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(super) enum Workload {
    /// Async: no task waits for it.
    #[default]
    Async = 0,
    /// Sync, without idling for a single queue.
    NoIdle = 1,
    /// Sync, with idling.
    Idleable = 2,
}

impl Workload {
    /// All kinds, in the order that breaks ties.
    pub(super) const ALL: [Workload; 3] = [Workload::Async, Workload::NoIdle, Workload::Idleable];
}

/// One of the seven trees of a group: two classes with three kinds each, and class idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TreeId(u8);

impl TreeId {
    pub(super) const IDLE: TreeId = TreeId(6);
    /// The order in which a forced drain empties the trees.
    pub(super) const ALL: [TreeId; 7] =
        [TreeId(0), TreeId(1), TreeId(2), TreeId(3), TreeId(4), TreeId(5), TreeId::IDLE];

    #[inline]
    pub(super) fn of(class: Class, workload: Workload) -> TreeId {
        match class {
            Class::Idle => TreeId::IDLE,
            class => TreeId(class as u8 * 3 + workload as u8),
        }
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A class, and a level from 0 (best) to 7.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Priority {
    pub(super) class: Class,
    pub(super) level: u8,
}

impl Priority {
    /// The priority for an effective I/O priority. An unset one counts as that of nice 0.
    pub(super) fn of(ioprio: IoPriority) -> Priority {
        match ioprio.class() {
            PriorityClass::None => Priority { class: Class::BestEffort, level: IoPriority::DEFAULT.level() },
            PriorityClass::RealTime => Priority { class: Class::RealTime, level: ioprio.level() },
            PriorityClass::BestEffort => Priority { class: Class::BestEffort, level: ioprio.level() },
            PriorityClass::Idle => Priority { class: Class::Idle, level: 7 },
        }
    }

    /// The priority that a queue is boosted to by a request flagged as important.
    pub(super) fn boosted(self) -> Priority {
        let class = if self.class == Class::Idle { Class::BestEffort } else { self.class };
        Priority { class, level: self.level.min(4) }
    }
}

/// Whether a request is a sync write that announces no further one.
pub(super) fn is_noidle_write(op: Op, flags: BioFlags) -> bool {
    op == Op::Write && flags.contains(BioFlags::SYNC) && !flags.contains(BioFlags::IDLE)
}
