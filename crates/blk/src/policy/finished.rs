//! Deferred completions: a set of request ids that completing CPUs fill without a lock, and that the next holder of the policy's
//! lock empties.

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use crate::ground::ids::RqId;
use crate::ground::sharing::{Sharing, Word};

/// The set: a bit for each id, and a summary bit for each word of bits.
pub struct FinishedSet<Sh: Sharing> {
    summary: Vec<Sh::Word>,
    words: Vec<Sh::Word>,
}

impl<Sh: Sharing> FinishedSet<Sh> {
    /// An empty set for the ids below `capacity`.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        let words = (capacity as usize).div_ceil(64).max(1);
        let zeroes = |count: usize| (0..count).map(|_| Sh::Word::new(0)).collect();
        FinishedSet { summary: zeroes(words.div_ceil(64)), words: zeroes(words) }
    }

    /// Adds an id. The summary bit follows the bit itself, so a reader that sees it finds the id. The next user of the slot sees
    /// the id, because it is added before the tag is freed. `SeqCst` is for callers that then check whether a CPU is
    /// dispatching.
    #[inline]
    pub fn add(&self, id: RqId) {
        let word = id.index() / 64;
        self.words[word].fetch_or(1 << (id.index() % 64), Relaxed);
        self.summary[word / 64].fetch_or(1 << (word % 64), SeqCst);
    }

    /// Whether nothing is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.summary.iter().all(|summary| summary.load(SeqCst) == 0)
    }

    /// Empties the set into `on_id`.
    #[inline]
    pub fn drain(&self, mut on_id: impl FnMut(RqId)) {
        for (group, summary) in self.summary.iter().enumerate() {
            if summary.load(Relaxed) == 0 {
                continue;
            }
            let mut words_left = summary.swap(0, Acquire);
            while words_left != 0 {
                let word = group * 64 + words_left.trailing_zeros() as usize;
                words_left &= words_left - 1;
                let mut ids = self.words[word].swap(0, Relaxed);
                while ids != 0 {
                    on_id(RqId((word * 64) as u32 + ids.trailing_zeros()));
                    ids &= ids - 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::sharing::Local;

    #[test]
    fn every_added_id_is_drained_once() {
        let set: FinishedSet<Local> = FinishedSet::new(10_000);
        let ids = [0, 1, 63, 64, 4095, 4096, 9_999];
        ids.iter().for_each(|&id| set.add(RqId(id)));
        let mut out = Vec::new();
        set.drain(|id| out.push(id.0));
        assert_eq!(out, ids);
        set.drain(|id| panic!("{id:?} was drained before"));
    }
}
