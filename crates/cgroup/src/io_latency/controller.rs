//! The controller of a device: which bios pass, which wait, and when they are released.

use std::collections::VecDeque;

use hoistway_blk::bio::{Bio, BioFlags, Op};
use hoistway_blk::ground::{CgroupId, Instant, Nanos};

use super::depth::STEP_INTERVAL;
use super::group::{GroupLatency, LatencyGroup, STOPPED_AFTER};
use super::target::IoLatencyTarget;

/// The longest delay of a group at a time (IL-12).
const DELAY_MAX: Nanos = Nanos::from_secs(1);

/// A step up is this part of the queue's requests (IL-8).
const RISE_PARTS: u32 = 16;

/// A step up after the victim has stopped is this part of them, and the next one comes after this time (IL-9).
const RELEASE_PARTS: u32 = 4;
const RELEASE_INTERVAL: Nanos = Nanos::from_secs(1);

/// The latency targets of all cgroups on one device, and the bios that wait for them.
///
/// While all groups meet their targets, nothing waits. A group that misses its target lowers, at the end of its windows, the number of I/Os
/// that siblings with a looser target may have outstanding, down to 1; windows that meet it raise it. Bios of the root are not controlled.
/// Source: IL-1 to IL-16.
///
/// Cost: a bio is counted in its group and in those above it, at its submission and at its end; siblings are looked at once a window.
/// After the maximum number of waiting bios has been reached once, nothing is allocated per bio.
///
/// ```
/// use hoistway_blk::bio::{Bio, Op};
/// use hoistway_blk::ground::{CgroupId, Instant, Nanos, Sector};
/// use hoistway_cgroup::{IoLatency, IoLatencyTarget};
///
/// let (db, batch) = (CgroupId(1), CgroupId(2));
/// let mut latency = IoLatency::new(false, 2);
/// latency.add_group(db, CgroupId::ROOT);
/// latency.add_group(batch, CgroupId::ROOT);
/// latency.set_target(db, IoLatencyTarget { us: 1000 });
///
/// let bio = Bio { cgroup: batch, ..Bio::new(Op::Read, Sector(0), 8) };
/// assert!(latency.submit(Instant::ZERO, bio.clone(), 1).is_some(), "no group misses its target");
/// // A read of the database takes 5 ms, at the end of a window.
/// latency.ended(Instant(120_000_000), db, Op::Read, 8, Nanos::from_millis(5));
/// assert!(latency.submit(Instant(120_000_000), bio, 1).is_none(), "one I/O is outstanding, and the depth is half of two");
/// ```
#[derive(Clone, Debug)]
pub struct IoLatency {
    /// All groups, the root first.
    groups: Vec<LatencyGroup>,
    /// The group of each cgroup, by its number; 0, the root, for those that were not added.
    by_cgroup: Vec<u32>,
    /// Groups with waiting bios, the next one first.
    pending: VecDeque<u32>,
    /// Groups whose depth is limited.
    throttled: Vec<u32>,
    /// Since when a bio that waits may pass.
    ready: Option<Instant>,
    /// Whether the device rotates.
    rotates: bool,
    /// `nr_requests` of its queue.
    requests: u32,
}

impl IoLatency {
    /// The least time between two steps of a group's depth (IL-7).
    pub const STEP_INTERVAL: Nanos = STEP_INTERVAL;

    /// A device without groups, which `rotates` or not, and whose queue has this many `requests` (`nr_requests`).
    #[must_use]
    pub fn new(rotates: bool, requests: u32) -> Self {
        IoLatency {
            groups: vec![LatencyGroup::new(0)],
            by_cgroup: vec![0],
            pending: VecDeque::new(),
            throttled: Vec::new(),
            ready: None,
            rotates,
            requests,
        }
    }

    /// Adds a cgroup as a child of `parent`, without a target. A known cgroup keeps its parent. Bios of cgroups that were not added are
    /// not controlled, as those of the root.
    pub fn add_group(&mut self, cgroup: CgroupId, parent: CgroupId) {
        if self.by_cgroup.len() <= cgroup.index() {
            self.by_cgroup.resize(cgroup.index() + 1, 0);
        }
        if cgroup != CgroupId::ROOT && self.by_cgroup[cgroup.index()] == 0 {
            let parent = self.group_of(parent);
            self.by_cgroup[cgroup.index()] = self.groups.len() as u32;
            self.groups.push(LatencyGroup::new(parent));
            // Reserved for every group, so that a bio never makes these grow.
            self.pending.reserve(self.groups.len());
            self.throttled.reserve(self.groups.len());
        }
    }

    /// Sets the number of requests that the queue has.
    pub fn set_requests(&mut self, requests: u32) {
        self.requests = requests;
    }

    /// Sets the target of a cgroup that was added (`io.latency`). The root has none.
    pub fn set_target(&mut self, cgroup: CgroupId, target: IoLatencyTarget) {
        match self.group_of(cgroup) {
            0 => {}
            group => self.groups[group].set_target(target.duration()),
        }
    }

    /// Submits a bio that the queue will split into `parts`: returns it if it may continue; otherwise it waits until
    /// [`IoLatency::release`].
    ///
    /// Bios with META or SWAP always continue, since others may wait for them: if they exceed the depth, their group is delayed later.
    #[must_use = "a bio that comes back has not been sent"]
    pub fn submit(&mut self, now: Instant, bio: Bio, parts: u32) -> Option<Bio> {
        let group = self.group_of(bio.cgroup);
        if group == 0 || !is_controlled(bio.op, bio.sectors) {
            return Some(bio);
        }
        self.raise_depths(now);
        if bio.flags.intersects(BioFlags::META.with(BioFlags::SWAP)) {
            self.charge_delay(group);
        } else if !self.groups[group].waiting.is_empty() || self.is_delayed(now, group) || !self.may_pass(group) {
            self.wait(now, group, bio, parts);
            return None;
        }
        self.pass(group, parts);
        Some(bio)
    }

    /// Notifies that a part of a bio that passed has ended, and how long after it passed.
    pub fn ended(&mut self, now: Instant, cgroup: CgroupId, op: Op, sectors: u32, latency: Nanos) {
        let mut group = self.group_of(cgroup);
        if !is_controlled(op, sectors) {
            return;
        }
        while group != 0 {
            let at = &mut self.groups[group];
            at.outstanding = at.outstanding.saturating_sub(1);
            let parent = at.parent;
            if at.add_latency(now, latency, self.rotates) {
                self.end_window(now, group);
            }
            group = parent;
        }
        if self.ready.is_none() && self.pending.iter().any(|&group| self.may_release(now, group as usize)) {
            self.ready = Some(now);
        }
    }

    /// When [`IoLatency::release`] has to be called next; `None` if nothing waits, or only for I/Os to end.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let delays = self.pending.iter().map(|&group| &self.groups[group as usize]);
        let delays = delays.map(|group| group.delayed_until).filter(|&until| until > Instant::ZERO);
        let raises = self.throttled.iter().map(|&group| self.groups[group as usize].next_raise);
        let times = self.ready.into_iter().chain(delays).chain(raises);
        if self.pending.is_empty() { None } else { times.min() }
    }

    /// Appends the bios that may continue at `now` to `out`, in turns of the groups.
    pub fn release(&mut self, now: Instant, out: &mut Vec<Bio>) {
        self.raise_depths(now);
        self.ready = None;
        let mut without_success = 0;
        while without_success < self.pending.len()
            && let Some(group) = self.pending.pop_front()
        {
            without_success += 1;
            let index = group as usize;
            if self.may_release(now, index)
                && let Some((bio, parts)) = self.groups[index].waiting.pop_front()
            {
                self.pass(index, parts);
                out.push(bio);
                without_success = 0;
            }
            let state = &mut self.groups[index];
            if now >= state.delayed_until {
                state.delayed_until = Instant::ZERO;
            }
            if state.waiting.is_empty() {
                state.figures.throttled += now.since(state.waiting_since);
            } else {
                self.pending.push_back(group);
            }
        }
    }

    /// Number of waiting bios.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pending.iter().map(|&group| self.groups[group as usize].waiting.len()).sum()
    }

    /// What a cgroup has in `io.stat`, and what happened to it until `now`.
    #[must_use]
    pub fn group_latency(&self, now: Instant, cgroup: CgroupId) -> GroupLatency {
        let group = &self.groups[self.group_of(cgroup)];
        let waits = if group.waiting.is_empty() { Nanos::ZERO } else { now.since(group.waiting_since) };
        GroupLatency {
            depth: group.depth.limit,
            lowest_depth: group.depth.lowest,
            throttled: group.figures.throttled + waits,
            ..group.figures
        }
    }

    #[inline]
    fn group_of(&self, cgroup: CgroupId) -> usize {
        self.by_cgroup.get(cgroup.index()).map_or(0, |&group| group as usize)
    }

    /// Whether the depths of the group and of all above it allow one more I/O.
    fn may_pass(&self, mut group: usize) -> bool {
        while group != 0 {
            let at = &self.groups[group];
            if !at.depth.allows(at.outstanding) {
                return false;
            }
            group = at.parent;
        }
        true
    }

    /// Whether the first waiting bio of a group may pass.
    fn may_release(&self, now: Instant, group: usize) -> bool {
        now >= self.groups[group].delayed_until && self.may_pass(group)
    }

    fn pass(&mut self, mut group: usize, parts: u32) {
        while group != 0 {
            let at = &mut self.groups[group];
            at.outstanding += parts;
            at.peak = at.peak.max(at.outstanding);
            group = at.parent;
        }
    }

    fn wait(&mut self, now: Instant, group: usize, bio: Bio, parts: u32) {
        let at = &mut self.groups[group];
        at.figures.delayed += 1;
        at.waiting.push_back((bio, parts));
        if at.waiting.len() == 1 {
            at.waiting_since = now;
            self.pending.push_back(group as u32);
        }
    }

    /// An I/O passes that would have to wait: its group owes the wait as a delay.
    #[cold]
    fn charge_delay(&mut self, group: usize) {
        if self.may_pass(group) {
            return;
        }
        let (mut wait, mut at) = (Nanos::ZERO, group);
        while at != 0 {
            wait = wait.max(self.groups[at].expected_wait());
            at = self.groups[at].parent;
        }
        let figures = &mut self.groups[group].figures;
        figures.use_delay += 1;
        figures.delay += wait;
    }

    /// Whether a group is delayed for I/Os that passed. It then pays for at most a second of it.
    fn is_delayed(&mut self, now: Instant, group: usize) -> bool {
        let at = &mut self.groups[group];
        if now >= at.delayed_until && at.figures.use_delay > 0 {
            at.delayed_until = Instant::ZERO;
            let delay = at.figures.delay.min(DELAY_MAX);
            at.delayed_until = now + delay;
            at.figures.delay = Nanos(at.figures.delay.0 - delay.0);
            if at.figures.delay == Nanos::ZERO {
                at.figures.use_delay = 0;
            }
        }
        now < at.delayed_until
    }

    /// A window of a group has ended: its siblings with looser targets are throttled if it missed its own, else released by a step.
    #[inline(never)]
    fn end_window(&mut self, now: Instant, group: usize) {
        let LatencyGroup { parent, is_missing, .. } = self.groups[group];
        for sibling in 1..self.groups.len() {
            let other = &self.groups[sibling];
            if sibling == group || other.parent != parent || !self.groups[group].is_stricter_than(other.figures.target)
            {
                continue;
            }
            let (has_io, is_limited) = (other.peak > 0, other.depth.limit.is_some());
            if other.depth.may_step(now) {
                if is_missing && (has_io || is_limited) {
                    self.groups[sibling].depth.lower(now, self.requests);
                } else if !is_missing && is_limited && !self.is_needed(now, sibling, |victim| victim.is_missing) {
                    self.groups[sibling].depth.raise(now, self.requests / RISE_PARTS);
                }
            }
            let other = &mut self.groups[sibling];
            (other.peak, other.next_raise) = (other.outstanding, now + STOPPED_AFTER);
            self.note_depth(sibling);
        }
    }

    /// Raises the depths that no active sibling needs any more.
    fn raise_depths(&mut self, now: Instant) {
        let mut at = 0;
        while let Some(&group) = self.throttled.get(at) {
            let group = group as usize;
            while self.groups[group].depth.limit.is_some() && self.groups[group].next_raise <= now {
                if !self.is_needed(self.groups[group].next_raise, group, |_| true) {
                    self.groups[group].depth.raise(now, self.requests / RELEASE_PARTS);
                    self.ready = self.ready.or(Some(now));
                }
                self.groups[group].next_raise += RELEASE_INTERVAL;
            }
            let before = self.throttled.len();
            self.note_depth(group);
            at += usize::from(self.throttled.len() == before);
        }
    }

    /// Whether an active sibling with a stricter target, for which `needs` holds, needs the limit of a group.
    fn is_needed(&self, now: Instant, group: usize, needs: impl Fn(&LatencyGroup) -> bool) -> bool {
        let LatencyGroup { parent, figures, .. } = &self.groups[group];
        let is_sibling = |other: &LatencyGroup| other.parent == *parent && other.is_stricter_than(figures.target);
        self.groups[1..].iter().any(|other| is_sibling(other) && needs(other) && other.is_active(now))
    }

    /// Keeps the list of groups with a limit up to date.
    fn note_depth(&mut self, group: usize) {
        let place = self.throttled.iter().position(|&other| other as usize == group);
        match (self.groups[group].depth.limit, place) {
            (Some(_), None) => self.throttled.push(group as u32),
            (None, Some(place)) => {
                self.throttled.remove(place);
            }
            _ => {}
        }
    }
}

/// Reads and writes of data are counted and held; all others pass.
fn is_controlled(op: Op, sectors: u32) -> bool {
    matches!(op, Op::Read | Op::Write) && sectors > 0
}
