//! The tags of commands at the device, some of which are reserved for sync I/O (LQ-23).

use hoistway_blk::request::Rq;

use super::request_list::SyncClass;

/// How the device's tags are allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tagging {
    /// By the driver itself: first come, first served (libata).
    #[default]
    Driver,
    /// By the block layer, lowest tag first: async I/O leaves two tags to sync I/O.
    Lowest,
    /// Like `Lowest`, but round robin.
    RoundRobin,
}

/// The tags of a device.
pub(super) struct DriverTags {
    tagging: Tagging,
    depth: u32,
    /// A bit for each tag in use.
    words: Vec<u64>,
    taken: u32,
    /// Where the next search begins.
    next: u32,
}

impl DriverTags {
    pub(super) fn new(depth: u32, tagging: Tagging) -> Self {
        DriverTags { tagging, depth, words: vec![0; depth.div_ceil(64) as usize], taken: 0, next: 0 }
    }

    pub(super) fn in_use(&self) -> u32 {
        self.taken
    }

    /// How many tags a class may use.
    fn usable(&self, class: SyncClass) -> u32 {
        match (self.tagging, class, self.depth) {
            (Tagging::Driver, ..) | (_, SyncClass::Sync, _) => self.depth,
            (_, SyncClass::Async, 0..=2) => 1,
            (_, SyncClass::Async, 3) => 2,
            (_, SyncClass::Async, depth) => depth - 2,
        }
    }

    /// Takes a tag for a request, if the number of its class at the driver allows that.
    #[inline]
    pub(super) fn take(&mut self, rq: &mut Rq, in_flight: u32) -> bool {
        let class = SyncClass::of(rq.is_sync());
        let end = self.usable(class);
        if self.taken == self.depth || (end < self.depth && in_flight > end) {
            return false;
        }
        let begin = if self.tagging == Tagging::RoundRobin && self.next < end { self.next } else { 0 };
        let Some(tag) = self.first_free(begin, end).or_else(|| self.first_free(0, begin)) else { return false };
        self.words[tag as usize / 64] |= 1 << (tag % 64);
        self.taken += 1;
        self.next = tag + 1;
        rq.driver_tag = Some(tag);
        true
    }

    /// The lowest free tag in `begin..end`.
    #[inline]
    fn first_free(&self, begin: u32, end: u32) -> Option<u32> {
        let mut tag = begin;
        while tag < end {
            let free = !self.words[tag as usize / 64] >> (tag % 64);
            if free != 0 {
                let found = tag + free.trailing_zeros();
                return (found < end).then_some(found);
            }
            tag = (tag / 64 + 1) * 64;
        }
        None
    }

    /// Frees a request's tag.
    #[inline]
    pub(super) fn put(&mut self, rq: &mut Rq) {
        if let Some(tag) = rq.driver_tag.take() {
            self.words[tag as usize / 64] &= !(1 << (tag % 64));
            self.taken -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_blk::bio::{Bio, Op};
    use hoistway_blk::ground::{Instant, Local, RqId, Sector};
    use hoistway_blk::request::RequestPool;

    /// Takes tags for `op` until none is left; returns the tags.
    fn take_all(tags: &mut DriverTags, op: Op) -> Vec<u32> {
        let pool: RequestPool<Local> = RequestPool::new(1);
        let mut rq = pool.take(RqId(0));
        rq.found(Bio::new(op, Sector(0), 8), Instant::ZERO);
        let mut taken = Vec::new();
        while tags.take(&mut rq, taken.len() as u32) {
            taken.extend(rq.driver_tag.take());
        }
        taken
    }

    #[test]
    fn async_requests_never_hold_the_last_two_of_the_block_layers_tags() {
        for (depth, most) in [(1, 1), (2, 1), (3, 2), (4, 2), (32, 30), (100, 98)] {
            for tagging in [Tagging::Lowest, Tagging::RoundRobin] {
                let mut tags = DriverTags::new(depth, tagging);
                assert_eq!(take_all(&mut tags, Op::Write), (0..most).collect::<Vec<_>>(), "depth {depth}");
                assert_eq!(take_all(&mut tags, Op::Read), (most..depth).collect::<Vec<_>>(), "depth {depth}");
            }
        }
    }

    #[test]
    fn driver_owned_tags_are_all_available_to_any_request() {
        let mut tags = DriverTags::new(100, Tagging::Driver);
        assert_eq!(take_all(&mut tags, Op::Write), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn tags_are_given_lowest_first_or_in_turns() {
        for (tagging, expected) in [(Tagging::Lowest, [0, 1, 0]), (Tagging::RoundRobin, [0, 1, 2])] {
            let mut tags = DriverTags::new(8, tagging);
            let pool: RequestPool<Local> = RequestPool::new(3);
            let given = [0, 1, 2].map(|id| {
                let mut rq = pool.take(RqId(id));
                rq.found(Bio::new(Op::Read, Sector(0), 8), Instant::ZERO);
                assert!(tags.take(&mut rq, 0));
                let tag = rq.driver_tag;
                if id == 1 {
                    // The first two are freed.
                    tags.put(&mut rq);
                    rq.driver_tag = Some(0);
                    tags.put(&mut rq);
                }
                tag.unwrap()
            });
            assert_eq!(given, expected, "{tagging:?}");
        }
    }
}
