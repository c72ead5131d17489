//! Merge index: the one-hit cache and the hash by end sector in which requests are found for merging (BL-45 to BL-47).
//! One for each elevator, independent of its policy.

use crate::ground::id_list::{IdList, Links};
use crate::ground::ids::{RqId, Sector};

const BUCKETS: usize = 64;

/// The cache and the hash.
pub struct MergeIndex {
    /// The one-hit cache: the request that grew last, or the first one inserted while the cache was empty. Checked before the
    /// hash.
    cached: Option<RqId>,
    buckets: [IdList; BUCKETS],
    links: Links,
    /// End sector under which each request is hashed, if it is.
    ends: Vec<Option<Sector>>,
}

fn bucket(end: Sector) -> usize {
    // Fibonacci hashing: the top bits of a product with 2^64 over the golden ratio.
    (end.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize
}

impl MergeIndex {
    /// An empty index for the ids below `capacity`.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        MergeIndex {
            cached: None,
            buckets: [IdList::default(); BUCKETS],
            links: Links::new(capacity as usize),
            ends: vec![None; capacity as usize],
        }
    }

    /// Makes room for the ids below `capacity`.
    pub fn grow(&mut self, capacity: u32) {
        let capacity = (capacity as usize).max(self.ends.len());
        self.links.grow(capacity);
        self.ends.resize(capacity, None);
    }

    /// The cached request.
    #[inline]
    #[must_use]
    pub fn cached(&self) -> Option<RqId> {
        self.cached
    }

    /// Caches the request that has just grown.
    #[inline]
    pub fn cache(&mut self, id: RqId) {
        self.cached = Some(id);
    }

    /// Caches a request if none is cached.
    #[inline]
    pub fn cache_if_empty(&mut self, id: RqId) {
        self.cached.get_or_insert(id);
    }

    /// Puts a request into the hash under its end sector, or moves it there if it has another.
    #[inline(always)]
    pub fn hash(&mut self, id: RqId, end: Sector) {
        self.unhash(id);
        self.ends[id.index()] = Some(end);
        self.buckets[bucket(end)].push_front(&mut self.links, id.0);
    }

    /// Takes a request out of the hash, if it is there.
    #[inline]
    pub fn unhash(&mut self, id: RqId) {
        if let Some(end) = self.ends[id.index()].take() {
            self.buckets[bucket(end)].remove(&mut self.links, id.0);
        }
    }

    /// Forgets a request altogether.
    #[inline]
    pub fn forget(&mut self, id: RqId) {
        self.unhash(id);
        self.uncache(id);
    }

    /// Empties the cache if it holds this request; the hash keeps it.
    #[inline]
    pub fn uncache(&mut self, id: RqId) {
        if self.cached == Some(id) {
            self.cached = None;
        }
    }

    /// The most recently hashed request that ends at `end` and is still `mergeable`. Requests found that are no longer
    /// mergeable are removed from the hash.
    #[inline(always)]
    pub fn find(&mut self, end: Sector, mergeable: impl Fn(RqId) -> bool) -> Option<RqId> {
        let list = &mut self.buckets[bucket(end)];
        let mut next = list.first();
        while let Some(id) = next {
            next = list.next(&self.links, id);
            let rq = RqId(id);
            if !mergeable(rq) {
                list.remove(&mut self.links, id);
                self.ends[rq.index()] = None;
            } else if self.ends[rq.index()] == Some(end) {
                return Some(rq);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_follow_each_other_lie_in_different_buckets() {
        let mut used: Vec<usize> = (1..=BUCKETS as u64).map(|end| bucket(Sector(end * 8))).collect();
        used.sort_unstable();
        used.dedup();
        assert!(used.len() > BUCKETS / 4 && used.iter().all(|&bucket| bucket < BUCKETS), "{used:?}");
    }
}
