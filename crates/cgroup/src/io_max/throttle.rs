//! The throttle: decides which bios pass, which wait, and when they are released.

use super::limits::IoMax;
use super::meter::{Cost, Meter};
use super::service_queue::{QueuedBio, QueuedBios, ServiceQueue, Source};
use hoistway_blk::bio::{Bio, BioFlags, Direction, Op};
use hoistway_blk::ground::{CgroupId, Instant, Nanos, SECTOR_BYTES};

/// Maximum bios released in one round.
pub const THROTTLE_ROUND: usize = 32;

/// Maximum bios that a group releases before the next group's turn: reads first (3/4 of 8), then writes.
const TURN: [(Direction, usize); 2] = [(Direction::Read, 6), (Direction::Write, 2)];

/// The charge for a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charge {
    /// Its bytes and an operation: a bio as it was submitted.
    Whole,
    /// Its bytes, and an operation for each of the parts that the queue will split it into: for callers that do not
    /// submit the parts separately. It is released when all parts are allowed.
    Parts(u32),
    /// One operation: a part split off a bio whose bytes were charged when it was first submitted.
    Part,
}

/// The limits of all cgroups on one device, and the bios that wait because of them.
///
/// A limit applies to a group *and its descendants together*, so a bio must satisfy its own group and every one above.
/// Directions are independent. It is not work-conserving: limits apply even if the device is idle. A group may send a
/// slice's worth at once: in any interval at most `rate * (interval + 2 slices)` and one bio leave it, or one slice
/// less while bios wait for the only limit of their direction. (Groups above may hold bios back and release them
/// together.) Source: CG-9 to CG-15.
///
/// Cost: a bio walks its ancestors; groups with waiting bios are sorted by release time. After the maximum number of
/// waiting bios has been reached once, nothing is allocated per bio.
///
/// Waiting entries are [`Bio`]s, or requests of a caller's type `T` ([`Throttle::submit_request`]).
///
/// ```
/// use hoistway_blk::bio::{Bio, Op};
/// use hoistway_blk::ground::{CgroupId, Instant, Sector};
/// use hoistway_cgroup::{Charge, IoMax, THROTTLE_SLICE, Throttle};
///
/// let mut throttle = Throttle::new(THROTTLE_SLICE);
/// let limits = IoMax { riops: Some(10), ..IoMax::default() };
/// throttle.set_limits(Instant::ZERO, CgroupId(1), limits);
///
/// let bio = Bio { cgroup: CgroupId(1), ..Bio::new(Op::Read, Sector(0), 8) };
/// assert!(throttle.submit(Instant::ZERO, bio.clone(), Charge::Whole).is_some(), "the first of this slice");
/// assert!(throttle.submit(Instant::ZERO, bio, Charge::Whole).is_none(), "kept");
///
/// let due = throttle.due().unwrap();
/// let mut released = Vec::new();
/// throttle.release(due, &mut released);
/// assert_eq!((due, released.len()), (Instant::ZERO + THROTTLE_SLICE, 1));
/// ```
#[derive(Clone, Debug)]
pub struct Throttle<T = Bio> {
    /// Length of the slices.
    slice: Nanos,
    /// The root first.
    groups: Vec<ThrottledGroup>,
    /// Positions in `groups`, sorted by cgroup.
    by_cgroup: Vec<(CgroupId, usize)>,
    queued_bios: QueuedBios<T>,
    /// Groups with waiting bios, by the time when they may release one; the next one is *last*.
    pending: Vec<(Instant, usize)>,
}

/// A cgroup on this device.
#[derive(Clone, Debug)]
struct ThrottledGroup {
    /// `None` for the root.
    parent: Option<usize>,
    limits: IoMax,
    /// By direction, like the next two fields.
    meters: [Meter; 2],
    queues: [ServiceQueue; 2],
    /// Bios of this group itself that were throttled when they were submitted.
    throttled: [u64; 2],
}

impl ThrottledGroup {
    fn new(parent: Option<usize>) -> Self {
        ThrottledGroup {
            parent,
            limits: IoMax::default(),
            meters: Default::default(),
            queues: Default::default(),
            throttled: [0; 2],
        }
    }

    /// Whether bios of a direction pass unchecked.
    #[inline]
    fn passes_unchecked(&self, direction: Direction) -> bool {
        self.queues[direction.index()].is_empty() && self.limits.rate(direction).is_unlimited()
    }
}

impl<T> Throttle<T> {
    /// No limits yet. `slice` is [`THROTTLE_SLICE`](super::THROTTLE_SLICE), or on non-rotational devices of
    /// some kernels [`THROTTLE_SLICE_WITH_LOW_LIMIT`](super::THROTTLE_SLICE_WITH_LOW_LIMIT).
    ///
    /// # Panics
    /// If `slice` is zero.
    #[must_use]
    pub fn new(slice: Nanos) -> Self {
        assert!(slice > Nanos::ZERO, "a slice takes time");
        let mut queued_bios = QueuedBios::default();
        queued_bios.grow(1);
        Throttle {
            slice,
            groups: vec![ThrottledGroup::new(None)],
            by_cgroup: vec![(CgroupId::ROOT, 0)],
            queued_bios,
            pending: Vec::with_capacity(1),
        }
    }

    /// Adds a cgroup as a child of `parent`. A known cgroup keeps its parent, as in the kernel. A cgroup that was not
    /// added before its first bio or limit is a child of the root.
    pub fn add_group(&mut self, cgroup: CgroupId, parent: CgroupId) {
        if self.find(cgroup).is_err() {
            let parent = self.group_of(parent);
            self.create(cgroup, parent);
        }
    }

    /// Changes the limits of a cgroup at `now`. Its debt, or the allowance saved by its waiting bios, is carried over.
    /// Bios that are allowed by the change are [due](Throttle::due) at once.
    ///
    /// # Panics
    /// For the root, which has no `io.max`.
    pub fn set_limits(&mut self, now: Instant, cgroup: CgroupId, limits: IoMax) {
        assert_ne!(cgroup, CgroupId::ROOT, "the root cgroup has no io.max");
        let id = self.group_of(cgroup);
        let group = &mut self.groups[id];
        for direction in Direction::BOTH {
            let is_waiting = !group.queues[direction.index()].is_empty();
            let (old, new) = (group.limits.rate(direction), limits.rate(direction));
            group.meters[direction.index()].rescale_for_new_limits(now, self.slice, old, new, is_waiting);
        }
        group.limits = limits;
        self.reschedule(now, id);
    }

    /// The limits of a cgroup.
    #[must_use]
    pub fn limits(&self, cgroup: CgroupId) -> IoMax {
        self.find(cgroup).map_or(IoMax::default(), |index| self.groups[self.by_cgroup[index].1].limits)
    }

    /// Submits a request of the caller's type: returns it if it may continue; otherwise it waits until
    /// [`Throttle::release`].
    #[must_use = "a request that comes back has not been sent"]
    pub fn submit_request(&mut self, now: Instant, cgroup: CgroupId, op: Op, bytes: u64, request: T) -> Option<T> {
        self.admit(now, cgroup, op.direction(), Cost::of(op, bytes, 1), false, request)
    }

    fn admit(
        &mut self,
        now: Instant,
        cgroup: CgroupId,
        direction: Direction,
        cost: Cost,
        must_pass: bool,
        bio: T,
    ) -> Option<T> {
        let origin = self.group_of(cgroup);
        let mut id = origin;
        let mut source = Source::own(id, direction);
        loop {
            let group = &mut self.groups[id];
            if !group.passes_unchecked(direction) {
                let rate = group.limits.rate(direction);
                let meter = &mut group.meters[direction.index()];
                let is_first = group.queues[direction.index()].is_empty();
                if is_first {
                    meter.resume(now, self.slice, rate);
                }
                let may_pass = must_pass || (is_first && meter.earliest(now, self.slice, rate, cost) == now);
                if !may_pass {
                    self.groups[origin].throttled[direction.index()] += 1;
                    self.enqueue(now, id, source, QueuedBio { bio, cost }, direction);
                    return None;
                }
                if is_first {
                    meter.charge(now, self.slice, rate, cost);
                } else {
                    meter.charge_without_trim(cost);
                    self.reschedule(now, id);
                }
            }
            source = Source::child(id, direction);
            match self.groups[id].parent {
                Some(parent) => id = parent,
                None => return Some(bio),
            }
        }
    }

    /// When [`Throttle::release`] has to be called next; `None` if nothing waits. Never early: a bio can move at that
    /// time, at least to the group above.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.pending.last().map(|&(at, _)| at)
    }

    /// One round: appends the bios that may continue at `now` to `out`, in order. Groups take turns by earliest release
    /// time, with up to 6 reads and 2 writes each; within a group its children take turns of one bio per direction. At most
    /// [`THROTTLE_ROUND`] bios move: while [`Throttle::due`] is not after `now`, another round is needed.
    pub fn release(&mut self, now: Instant, out: &mut Vec<T>) {
        let mut budget = THROTTLE_ROUND;
        while budget > 0
            && let Some((_, id)) = self.pending.pop_if(|&mut (at, _)| at <= now)
        {
            budget -= self.release_turn(now, id, budget, out);
            self.schedule(now, id);
        }
    }

    /// Whether no bio is waiting.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Number of waiting bios.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queued_bios.len()
    }

    /// Number of bios of a cgroup, without its descendants, that were throttled on submission so far, because of its
    /// own limits or of those above: reads and writes.
    #[must_use]
    pub fn throttled(&self, cgroup: CgroupId) -> [u64; 2] {
        self.find(cgroup).map_or([0; 2], |index| self.groups[self.by_cgroup[index].1].throttled)
    }

    /// Releases up to `budget` bios of a group that are allowed. Returns their number.
    fn release_turn(&mut self, now: Instant, id: usize, budget: usize, out: &mut Vec<T>) -> usize {
        let mut moved = 0;
        for (direction, bios_max) in TURN {
            for _ in 0..bios_max.min(budget - moved) {
                let Some((queued_bio, since)) = self.take_allowed(now, id, direction) else { break };
                self.enqueue_in_parent(now, id, direction, queued_bio, since, out);
                moved += 1;
            }
        }
        moved
    }

    /// Takes the next bio of a group if it is allowed; also returns since when the group has saved for it.
    fn take_allowed(&mut self, now: Instant, id: usize, direction: Direction) -> Option<(QueuedBio<T>, Instant)> {
        let ThrottledGroup { limits, meters, queues, .. } = &mut self.groups[id];
        let (meter, queue) = (&mut meters[direction.index()], &mut queues[direction.index()]);
        let (rate, cost) = (limits.rate(direction), self.queued_bios.first(queue)?);
        if meter.earliest(now, self.slice, rate, cost) > now {
            return None;
        }
        let since = if rate.is_unlimited() { now } else { meter.start() };
        meter.charge(now, self.slice, rate, cost);
        Some((self.queued_bios.pop(queue)?, since))
    }

    /// A bio leaves a group. In the next group above with limits it waits even if it could pass at once, so that bios
    /// of other children that are due now have their turns.
    fn enqueue_in_parent(
        &mut self,
        now: Instant,
        from: usize,
        direction: Direction,
        queued_bio: QueuedBio<T>,
        since: Instant,
        out: &mut Vec<T>,
    ) {
        let mut source = Source::child(from, direction);
        let mut next = self.groups[from].parent;
        while let Some(id) = next {
            let group = &mut self.groups[id];
            if !group.passes_unchecked(direction) {
                if group.queues[direction.index()].is_empty() {
                    let rate = group.limits.rate(direction);
                    group.meters[direction.index()].resume_with_credit(now, self.slice, rate, since);
                }
                return self.enqueue(now, id, source, queued_bio, direction);
            }
            source = Source::child(id, direction);
            next = group.parent;
        }
        out.push(queued_bio.bio);
    }

    /// Adds a bio to a service queue of a group.
    fn enqueue(&mut self, now: Instant, id: usize, source: Source, queued_bio: QueuedBio<T>, direction: Direction) {
        let queue = &mut self.groups[id].queues[direction.index()];
        let was_empty = queue.is_empty();
        self.queued_bios.push(queue, source, queued_bio);
        if was_empty {
            self.reschedule(now, id);
        }
    }

    /// Updates the position of a group among the pending ones.
    fn reschedule(&mut self, now: Instant, id: usize) {
        if let Some(index) = self.pending.iter().position(|&(_, pending)| pending == id) {
            self.pending.remove(index);
        }
        self.schedule(now, id);
    }

    /// Makes a group pending if bios wait in it. It must not be pending yet, and comes after others with the same time.
    fn schedule(&mut self, now: Instant, id: usize) {
        let group = &self.groups[id];
        let heads = Direction::BOTH.into_iter().filter_map(|direction| {
            let cost = self.queued_bios.first(&group.queues[direction.index()])?;
            Some(group.meters[direction.index()].earliest(now, self.slice, group.limits.rate(direction), cost))
        });
        if let Some(release) = heads.min() {
            let at = self.pending.partition_point(|&(at, _)| at > release);
            self.pending.insert(at, (release, id));
        }
    }

    /// The index of a cgroup's group. An unknown cgroup becomes a child of the root.
    fn group_of(&mut self, cgroup: CgroupId) -> usize {
        match self.find(cgroup) {
            Ok(index) => self.by_cgroup[index].1,
            Err(_) => self.create(cgroup, 0),
        }
    }

    fn find(&self, cgroup: CgroupId) -> Result<usize, usize> {
        self.by_cgroup.binary_search_by_key(&cgroup, |&(cgroup, _)| cgroup)
    }

    fn create(&mut self, cgroup: CgroupId, parent: usize) -> usize {
        let id = self.groups.len();
        self.groups.push(ThrottledGroup::new(Some(parent)));
        self.queued_bios.grow(id + 1);
        // Reserved for every group, so that a bio never makes this grow.
        self.pending.reserve(id + 1 - self.pending.len());
        let (Ok(index) | Err(index)) = self.find(cgroup);
        self.by_cgroup.insert(index, (cgroup, id));
        id
    }
}

impl Throttle<Bio> {
    /// Submits a bio: returns it if it may continue; otherwise it waits until [`Throttle::release`].
    ///
    /// A bio with META or SWAP always continues, since others may wait for it: the excess is a debt that later bios pay.
    #[must_use = "a bio that comes back has not been sent"]
    pub fn submit(&mut self, now: Instant, bio: Bio, charge: Charge) -> Option<Bio> {
        let bytes = u64::from(bio.sectors) * SECTOR_BYTES;
        let cost = match charge {
            Charge::Whole => Cost::of(bio.op, bytes, 1),
            Charge::Parts(parts) => Cost::of(bio.op, bytes, parts),
            Charge::Part => Cost::OPERATION,
        };
        let must_pass = bio.flags.intersects(BioFlags::META.with(BioFlags::SWAP));
        self.admit(now, bio.cgroup, bio.op.direction(), cost, must_pass, bio)
    }
}
