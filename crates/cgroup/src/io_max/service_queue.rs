//! The service queues of throttled bios: each source, the group itself or a child that passed bios up, has its bios in
//! arrival order, and the sources take turns.

use super::meter::Cost;
use hoistway_blk::bio::Direction;
use hoistway_blk::ground::{IdList, Links};

/// A bio (or another caller's request) that waits, with its cost at the levels that it has not passed.
#[derive(Clone, Debug)]
pub(super) struct QueuedBio<T> {
    pub bio: T,
    pub cost: Cost,
}

/// The source of bios in a service queue, by direction: the group itself or one of its children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Source(u32);

/// A service queue of a group: the sources with waiting bios, next one first, and the number of these bios.
#[derive(Clone, Debug, Default)]
pub(super) struct ServiceQueue {
    sources: IdList,
    len: u32,
}

/// The bios of all service queues of all groups. Slots are reused, so nothing is allocated after the maximum has been reached
/// once.
#[derive(Clone, Debug)]
pub(super) struct QueuedBios<T> {
    slots: Vec<Option<QueuedBio<T>>>,
    free: Vec<u32>,
    /// The order of the bios of a source, by slot.
    slot_links: Links,
    /// The bios of each source.
    bios: Vec<IdList>,
    /// The turns of the sources of a service queue, by source.
    source_links: Links,
}

impl Source {
    /// Sources per group: itself, and as a child of its parent, each in two directions.
    const PER_GROUP: usize = 4;

    /// The source for bios submitted in the group itself.
    pub fn own(group: usize, direction: Direction) -> Source {
        Source((group * Source::PER_GROUP + direction.index()) as u32)
    }

    /// The source for bios that the group passes up to its parent.
    pub fn child(group: usize, direction: Direction) -> Source {
        Source((group * Source::PER_GROUP + 2 + direction.index()) as u32)
    }
}

impl ServiceQueue {
    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Default for QueuedBios<T> {
    fn default() -> Self {
        QueuedBios {
            slots: Vec::new(),
            free: Vec::new(),
            slot_links: Links::default(),
            bios: Vec::new(),
            source_links: Links::default(),
        }
    }
}

impl<T> QueuedBios<T> {
    /// Makes room for the sources of the groups below `groups`.
    pub fn grow(&mut self, groups: usize) {
        self.bios.resize(groups * Source::PER_GROUP, IdList::default());
        self.source_links.grow(groups * Source::PER_GROUP);
    }

    /// Number of waiting bios in all service queues.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds a bio after the others of its source.
    pub fn push(&mut self, queue: &mut ServiceQueue, Source(source): Source, queued_bio: QueuedBio<T>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slot_links.grow(self.slots.len());
            // Reserved here, so that returning slots never allocates.
            self.free.reserve(self.slots.len());
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some(queued_bio);
        let bios = &mut self.bios[source as usize];
        if bios.is_empty() {
            queue.sources.push_back(&mut self.source_links, source);
        }
        bios.push_back(&mut self.slot_links, slot);
        queue.len += 1;
    }

    /// The cost of the next bio of a service queue.
    pub fn first(&self, queue: &ServiceQueue) -> Option<Cost> {
        let slot = self.bios[queue.sources.first()? as usize].first()?;
        self.slots[slot as usize].as_ref().map(|queued_bio| queued_bio.cost)
    }

    /// Takes the next bio; its source goes to the end of the queue.
    pub fn pop(&mut self, queue: &mut ServiceQueue) -> Option<QueuedBio<T>> {
        let source = queue.sources.first()?;
        let bios = &mut self.bios[source as usize];
        let slot = bios.first()?;
        bios.remove(&mut self.slot_links, slot);
        queue.sources.remove(&mut self.source_links, source);
        if !bios.is_empty() {
            queue.sources.push_back(&mut self.source_links, source);
        }
        queue.len -= 1;
        self.free.push(slot);
        self.slots[slot as usize].take()
    }
}
