//! Driver tags: of one queue, or of several devices behind one controller, which then share them fairly (BL-60, BL-61,
//! BL-64, BL-65).

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::{Depth, Sleeper, Tags, wake_batch};
use crate::ground::ids::{CpuId, HctxId, QueueId};
use crate::ground::kernel::ShallowRule;
use crate::ground::meter::Meter;
use crate::ground::sharing::{Padded, Sharing, Word};

/// The smallest share of a queue, tags.
const SHARE_MIN: u32 = 4;

/// The tags of a driver: one tag space for each hardware queue, or a single one for all of them.
pub struct TagSet<Sh: Sharing> {
    spaces: Vec<Padded<Space<Sh>>>,
    /// Hardware queues that it has tags for.
    hctxs: u16,
    /// Tags of each space.
    depth: u32,
    /// Whether several queues may join.
    is_shared: bool,
    /// Queues that have joined, and the number of the next one.
    queues: Sh::Word,
    next_queue: Sh::Word,
}

/// One tag space.
struct Space<Sh: Sharing> {
    tags: Tags<Sh>,
    /// Queues that have used it recently.
    active: Sh::Word,
}

/// How the tags of a driver are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TagLayout {
    /// Hardware queues.
    pub hctxs: u16,
    /// Tags of each space.
    pub depth: u32,
    /// One space for all hardware queues instead of one for each.
    pub host_wide: bool,
    /// CPUs that take tags.
    pub cpus: u16,
    /// The seed of their random hints; `None`: hints are spread evenly.
    pub hint_seed: Option<u64>,
}

impl<Sh: Sharing> TagSet<Sh> {
    /// Free tags for one queue.
    pub(crate) fn private(layout: TagLayout) -> Arc<Self> {
        Arc::new(TagSet::new(layout, false))
    }

    /// Free tags for all devices behind one controller: queues [join](crate::queue::Queue::with_shared_tags) and share them.
    #[must_use]
    pub fn shared(layout: TagLayout) -> Arc<Self> {
        Arc::new(TagSet::new(layout, true))
    }

    fn new(layout: TagLayout, is_shared: bool) -> Self {
        let TagLayout { hctxs, depth, host_wide, cpus, hint_seed } = layout;
        // Driver tags are never allocated with a shallow depth, so the rule does not matter.
        let tags = |map| {
            let mut tags = Tags::new(depth, usize::from(cpus), ShallowRule::WholeMap, None);
            tags.randomize_hints(hint_seed, map);
            tags
        };
        let space = |map: u16| Padded(Space { tags: tags(map.into()), active: Sh::Word::new(0) });
        TagSet {
            spaces: (0..if host_wide { 1 } else { hctxs }).map(space).collect(),
            hctxs,
            depth,
            is_shared,
            queues: Sh::Word::new(0),
            next_queue: Sh::Word::new(0),
        }
    }

    /// Tags of each space.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Hardware queues that it has tags for.
    #[must_use]
    pub fn hctxs(&self) -> u16 {
        self.hctxs
    }

    /// Whether one space serves all hardware queues.
    #[must_use]
    pub fn is_host_wide(&self) -> bool {
        self.spaces.len() < usize::from(self.hctxs)
    }

    /// Tags that are taken, in all spaces and by all queues.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.spaces.iter().map(|space| space.tags.in_use()).sum()
    }
}

/// A queue's part in a tag set.
pub(crate) struct TagUser<Sh: Sharing> {
    set: Arc<TagSet<Sh>>,
    id: QueueId,
    /// For each space.
    marks: Vec<Padded<UserMarks<Sh>>>,
    /// The space of a hardware queue is its number ANDed with this mask, which is all ones or 0.
    space_mask: usize,
}

struct UserMarks<Sh: Sharing> {
    /// Whether it is one of the queues that share the space.
    active: Sh::Word,
    /// The number of tags that it has, counted only in a shared set. A queue whose share is used up sleeps, so reading and
    /// decrementing it are `SeqCst`, as for the tags themselves.
    in_use: Sh::Word,
}

impl<Sh: Sharing> TagUser<Sh> {
    pub(crate) fn join(set: &Arc<TagSet<Sh>>) -> Self {
        set.queues.fetch_add(1, Relaxed);
        let marks = |_: &Padded<Space<Sh>>| Padded(UserMarks { active: Sh::Word::new(0), in_use: Sh::Word::new(0) });
        TagUser {
            id: QueueId(set.next_queue.fetch_add(1, Relaxed) as u32),
            marks: set.spaces.iter().map(marks).collect(),
            space_mask: if set.spaces.len() == 1 { 0 } else { usize::MAX },
            set: Arc::clone(set),
        }
    }

    /// Limits the tags of each space that are used from now on. Returns the depth to [allocate](Self::try_allocate) with.
    pub(crate) fn limit_tags_in_use(&self, tags: u32) -> Depth {
        if !self.set.is_shared {
            for space in &self.set.spaces {
                space.tags.set_wake_batch(wake_batch(tags));
            }
        }
        if tags < self.set.depth { Depth::Below(tags) } else { Depth::Full }
    }

    pub(crate) fn id(&self) -> QueueId {
        self.id
    }

    #[inline]
    fn space_index(&self, hctx: HctxId) -> usize {
        hctx.index() & self.space_mask
    }

    /// The tags of a hardware queue.
    #[inline]
    pub(crate) fn of(&self, hctx: HctxId) -> &Tags<Sh> {
        &self.set.spaces[self.space_index(hctx)].tags
    }

    /// Takes a tag for a request that goes to the driver.
    #[inline]
    pub(crate) fn try_take(&self, cpu: CpuId, hctx: HctxId) -> Option<u32> {
        self.try_allocate(cpu, hctx, Depth::Full)
    }

    /// Takes a tag for a request that needs no scheduler tag.
    #[inline]
    pub(crate) fn try_allocate(&self, cpu: CpuId, hctx: HctxId, depth: Depth) -> Option<u32> {
        if self.set.is_shared { self.try_take_share(cpu, hctx, depth) } else { self.of(hctx).try_take(cpu, depth) }
    }

    /// Takes a tag if this queue has less than its share of them.
    #[inline(never)]
    fn try_take_share(&self, cpu: CpuId, hctx: HctxId, depth: Depth) -> Option<u32> {
        let index = self.space_index(hctx);
        let (space, marks) = (&self.set.spaces[index], &self.marks[index]);
        if self.set.queues.load(Relaxed) > 1 {
            if marks.active.load(Relaxed) == 0 && marks.active.swap(1, Relaxed) == 0 {
                space.active.fetch_add(1, Relaxed);
                self.share_changed(space);
            }
            if self.set.depth > 1 && marks.in_use.load(SeqCst) >= u64::from(self.share(space)) {
                return None;
            }
        }
        let tag = space.tags.try_take(cpu, depth)?;
        marks.in_use.fetch_add(1, Relaxed);
        Some(tag)
    }

    /// The number of tags that each of the queues that share a space may have.
    fn share(&self, space: &Space<Sh>) -> u32 {
        let users = (space.active.load(Relaxed) as u32).max(1);
        self.set.depth.div_ceil(users).max(SHARE_MIN)
    }

    fn share_changed(&self, space: &Space<Sh>) {
        let users = (space.active.load(Relaxed) as u32).max(1);
        space.tags.set_wake_batch(wake_batch(self.set.depth.div_ceil(users)));
    }

    /// Returns a tag and calls `wake` for each sleeper to be woken.
    #[inline]
    pub(crate) fn free(&self, meter: &impl Meter, tag: u32, hctx: HctxId, cpu: CpuId, wake: impl FnMut(Sleeper)) {
        if self.set.is_shared {
            self.marks[self.space_index(hctx)].in_use.fetch_sub(1, SeqCst);
        }
        self.of(hctx).free(meter, tag, cpu, wake);
    }

    /// Whether other queues take tags from the same space. Then a completion of this queue need not be what frees its next
    /// tag.
    #[inline]
    pub(crate) fn shares_tags_with_other_queues(&self) -> bool {
        (self.space_mask == 0 && self.set.hctxs > 1) || (self.set.is_shared && self.set.queues.load(Relaxed) > 1)
    }

    /// The queue has been idle: other queues may use its share.
    pub(crate) fn release_share(&self) {
        for (space, marks) in self.set.spaces.iter().zip(&self.marks) {
            if marks.active.load(Relaxed) != 0 && marks.active.swap(0, Relaxed) != 0 {
                space.active.fetch_sub(1, Relaxed);
                self.share_changed(space);
            }
        }
    }

    /// Tags that this queue has taken.
    pub(crate) fn in_use(&self) -> u32 {
        if self.set.is_shared {
            self.marks.iter().map(|marks| marks.in_use.load(Relaxed) as u32).sum()
        } else {
            self.set.in_use()
        }
    }
}

impl<Sh: Sharing> Drop for TagUser<Sh> {
    fn drop(&mut self) {
        self.release_share();
        self.set.queues.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::Waiter;
    use crate::ground::meter::NoMeter;
    use crate::ground::sharing::Local;

    #[test]
    fn a_11_of_64_tags_three_users_have_22_each_and_no_share_is_below_4() {
        for (count, share) in [(1, 64), (3, 22), (20, 4), (30, 4)] {
            let set =
                TagSet::<Local>::shared(TagLayout { hctxs: 1, depth: 64, host_wide: false, cpus: 1, hint_seed: None });
            let users: Vec<TagUser<Local>> = (0..count).map(|_| TagUser::join(&set)).collect();
            assert!(users.iter().all(|user| user.try_take(CpuId(0), HctxId(0)).is_some()));
            assert!(users.iter().all(|user| user.share(&set.spaces[0]) == share), "{count} users");
        }
    }

    #[test]
    fn when_a_queue_has_been_idle_the_others_sleepers_are_woken_as_befits_their_larger_share() {
        let set =
            TagSet::<Local>::shared(TagLayout { hctxs: 1, depth: 16, host_wide: false, cpus: 1, hint_seed: None });
        let [first, second] = [(); 2].map(|()| TagUser::join(&set));
        assert!([&first, &second].iter().all(|user| user.try_take(CpuId(0), HctxId(0)).is_some()));
        let woken_by = |user: &TagUser<Local>, tag| {
            for waiter in 0..2 {
                first.of(HctxId(0)).wait(&NoMeter, u64::from(waiter), Sleeper::Submitter(Waiter(waiter)));
            }
            let mut woken = 0;
            user.free(&NoMeter, tag, HctxId(0), CpuId(0), |_| woken += 1);
            woken
        };
        assert_eq!(woken_by(&second, 1), 1, "8 for each: at every tag");
        second.release_share();
        assert_eq!(woken_by(&first, 0), 0, "of 16 two have to come together");
    }
}
