//! Requests, from allocation to completion, and the pool of their slots.
//!
//! Used by: `schedulers`, `queue`, `policy`, `caller`, `elevator` and others; crates `legacy`, `device`, `evidence`, `sim`, `trace` and others.
//! Tests: `crates/blk/src/request/` (in its files), `checks/tests/shuttle/steering.rs`.
//!
//! **Ownership is location.** An [`Rq`] owns one slot. It can be moved but not copied, so a request is in exactly one
//! place (plug, software queue, elevator, dispatch list, driver, ...), can be neither queued nor completed twice, and
//! its holder may read and change it without a lock. Slots are allocated once, with the queue; nothing is allocated per
//! I/O. Indexes use the plain [`RqId`] of a slot.

pub(crate) mod cpu_map;
mod flush_steps;
pub(crate) mod merge;
pub(crate) mod plug;

pub use cpu_map::{Arbitration, CpuMap, QueueClass, QueueType, Transport};
pub use merge::{Edge, Merge, MergeRules, Merging};
pub use plug::Plug;

pub use flush_steps::FlushSteps;

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::bio::ioprio::IoPriority;
use crate::bio::{Bio, BioFlags, Direction, Op, is_sync};
use crate::ground::ids::{CgroupId, CpuId, HctxId, IoContextId, RqId, Sector};
use crate::ground::lost::{Guard, Home};
use crate::ground::sharing::{Lock, Sharing};
use crate::ground::sparse::Sparse;
use crate::ground::time::Instant;

/// The state of a request. Sector and length cover all of its bios.
#[derive(Debug)]
pub struct Request {
    id: RqId,
    _guard: Guard,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// The operation.
    pub op: Op,
    /// Flags of its first bio.
    pub flags: BioFlags,
    /// Physical segments, summed over its bios.
    pub segments: u16,
    /// Priority of its first bio.
    pub ioprio: IoPriority,
    /// Lifetime hint of the data.
    pub write_hint: u8,
    /// Its marks.
    pub marks: Marks,
    /// Remaining steps of its flush sequence.
    pub steps: FlushSteps,
    /// The software queue that it was allocated on; never changes.
    pub ctx: CpuId,
    /// The hardware queue that it was allocated for; never changes.
    pub hctx: HctxId,
    /// Its driver tag, between dispatch and completion.
    pub driver_tag: Option<u32>,
    /// The I/O context that it belongs to.
    pub io_context: IoContextId,
    /// The cgroup that it is charged to.
    pub cgroup: CgroupId,
    /// When it was allocated.
    pub start: Instant,
    /// When it was issued to the driver.
    pub issued: Instant,
    /// Its bios in the order of their sectors.
    pub bios: Vec<Bio>,
}

/// Marks of a request: a set of bits, always accessed as a whole word.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Marks(u32);

impl Marks {
    /// No marks.
    pub const NONE: Marks = Marks(0);
    /// An elevator manages it: the scheduler hooks apply.
    pub const USES_ELEVATOR: Marks = Marks(1);
    /// The elevator has dispatched it, or (legacy queues) the driver has fetched it: no more merging.
    pub const STARTED: Marks = Marks(2);
    /// It holds a unit of the driver's budget.
    pub const HAS_BUDGET: Marks = Marks(4);
    /// The driver keeps its own data for it: when requeued it bypasses the elevator.
    pub const DONTPREP: Marks = Marks(8);
    /// It was inserted into the elevator, which must be notified when it is released.
    pub const INSERTED: Marks = Marks(16);
    /// Legacy queues: no request may be sorted past it in the dispatch queue.
    pub const SOFT_BARRIER: Marks = Marks(32);

    /// Its data is one step of a flush sequence.
    pub const IN_SEQUENCE: Marks = Marks(64);
    /// It is the flush command of a sequencer.
    pub const FLUSH_COMMAND: Marks = Marks(128);
    /// Write-back throttling counts it.
    pub const THROTTLED: Marks = Marks(256);
    /// It was inserted into the elevator some time after its allocation, without a plug that stops the clock.
    pub const CLOCK_RAN: Marks = Marks(512);
    /// A policy chose its hardware queue, and is notified of its end.
    pub const STEERED: Marks = Marks(1024);

    /// Whether all of `marks` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, marks: Marks) -> bool {
        self.0 & marks.0 == marks.0
    }

    /// The union of both sets.
    #[inline]
    #[must_use]
    pub const fn with(self, marks: Marks) -> Marks {
        Marks(self.0 | marks.0)
    }

    /// Whether any of `marks` is set.
    #[inline]
    #[must_use]
    pub const fn intersects(self, marks: Marks) -> bool {
        self.0 & marks.0 != 0
    }

    /// Sets `marks`.
    #[inline]
    pub fn set(&mut self, marks: Marks) {
        self.0 |= marks.0;
    }

    /// Clears `marks`.
    #[inline]
    pub fn clear(&mut self, marks: Marks) {
        self.0 &= !marks.0;
    }
}

impl Request {
    /// The slot.
    #[inline]
    #[must_use]
    pub fn id(&self) -> RqId {
        self.id
    }

    /// The sector after its last one.
    #[inline]
    #[must_use]
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }

    /// The data direction.
    #[inline]
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.op.direction()
    }

    /// Whether a task waits for it.
    #[inline]
    #[must_use]
    pub fn is_sync(&self) -> bool {
        is_sync(self.op, self.flags)
    }

    /// Whether an insertion of it goes into the elevator: not without one, and not if a legacy queue inserts it directly into
    /// its dispatch queue.
    #[inline]
    #[must_use]
    pub fn enters_elevator(&self) -> bool {
        self.marks.contains(Marks::USES_ELEVATOR) && !self.marks.contains(Marks::SOFT_BARRIER)
    }

    /// Initialises the request from its first bio.
    #[inline(always)]
    pub fn found(&mut self, bio: Bio, start: Instant) {
        debug_assert!(self.bios.is_empty(), "a slot is emptied before it is used again");
        self.sector = bio.sector;
        self.sectors = bio.sectors;
        self.op = bio.op;
        self.flags = bio.flags;
        self.segments = bio.segments;
        self.ioprio = bio.ioprio;
        self.write_hint = bio.write_hint;
        self.io_context = bio.io_context;
        self.cgroup = bio.cgroup;
        self.start = start;
        self.issued = Instant::NEVER;
        self.marks = Marks::NONE;
        self.steps = FlushSteps::NONE;
        self.driver_tag = None;
        self.bios.push(bio);
    }
}

/// Owns a request: can be moved but not copied, and gives access to the slot.
#[must_use = "a request that is dropped never ends"]
pub struct Rq(Box<Request>);

impl Rq {
    /// An empty slot of a queue.
    pub fn empty(id: RqId, home: &Home) -> Rq {
        Rq::guarded(id, home.guard("request", id.0))
    }

    fn guarded(id: RqId, guard: Guard) -> Rq {
        Rq(Box::new(Request {
            id,
            _guard: guard,
            sector: Sector(0),
            sectors: 0,
            op: Op::Read,
            flags: BioFlags::NONE,
            segments: 0,
            ioprio: IoPriority::UNSET,
            write_hint: 0,
            marks: Marks::NONE,
            steps: FlushSteps::NONE,
            ctx: CpuId(0),
            hctx: HctxId(0),
            driver_tag: None,
            io_context: IoContextId(0),
            cgroup: CgroupId::ROOT,
            start: Instant::ZERO,
            issued: Instant::NEVER,
            bios: Vec::with_capacity(1),
        }))
    }
}

impl Deref for Rq {
    type Target = Request;
    #[inline]
    fn deref(&self) -> &Request {
        &self.0
    }
}

impl DerefMut for Rq {
    #[inline]
    fn deref_mut(&mut self) -> &mut Request {
        &mut self.0
    }
}

impl fmt::Debug for Rq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// All request slots of a queue. The owner of a tag takes its slot.
pub struct RequestPool<Sh: Sharing> {
    home: Home,
    /// Whether a request that is dropped is reported.
    is_guarded: bool,
    slots: Sparse<Sh::Lock<Option<Rq>>, SLOTS_AT_ONCE>,
}

/// Slots that are made with a pool: those of a usual device.
const SLOTS_AT_ONCE: usize = 8192;

impl<Sh: Sharing> RequestPool<Sh> {
    /// A pool of `count` slots, numbered from 0, without a queue: a test bench may drop its requests.
    #[must_use]
    pub fn new(count: u32) -> Self {
        RequestPool::with(Home::default(), count, false)
    }

    /// The pool of a queue.
    pub(crate) fn of_queue(count: u32) -> Self {
        RequestPool::with(Home::default(), count, true)
    }

    fn with(home: Home, count: u32, is_guarded: bool) -> Self {
        let slots = Sparse::new(count as usize, |index| Self::full_slot(&home, is_guarded, index));
        RequestPool { home, is_guarded, slots }
    }

    fn full_slot(home: &Home, is_guarded: bool, index: usize) -> Sh::Lock<Option<Rq>> {
        let id = RqId(index as u32);
        Sh::Lock::new(Some(if is_guarded { Rq::empty(id, home) } else { Rq::guarded(id, Guard::default()) }))
    }

    #[inline]
    fn slot(&self, id: RqId) -> &Sh::Lock<Option<Rq>> {
        self.slots.entry(id.index(), |index| Self::full_slot(&self.home, self.is_guarded, index))
    }

    /// Number of slots.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Takes the slot `id`, whose tag the caller has just allocated.
    ///
    /// # Panics
    /// If the slot is in use, which means that its tag was allocated twice.
    #[inline]
    pub fn take(&self, id: RqId) -> Rq {
        self.slot(id).aside(Option::take).expect("a tag has one owner, and so has its slot")
    }

    /// Returns a slot. Its tag must be freed afterwards, not before.
    #[inline]
    pub fn put(&self, mut rq: Rq) {
        rq.bios.clear();
        self.slot(rq.id()).aside(|slot| {
            debug_assert!(slot.is_none(), "a slot comes back once");
            // The replaced value is `None`: forgetting it saves a drop check.
            std::mem::forget(slot.replace(rq));
        });
    }

    /// Number of slots in use: for invariants in tests.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.slots.made().filter(|(_, slot)| slot.aside(|slot| slot.is_none())).count()
    }
}
