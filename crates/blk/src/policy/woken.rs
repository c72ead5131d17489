//! Hardware queues that have become ready in one call.

use crate::ground::ids::HctxId;

/// The most that a call can wake: the largest wake-up batch of a tag bitmap.
const MOST: usize = 8;

/// A few hardware queues, in the order in which they were woken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WokenHctxs {
    hctxs: [HctxId; MOST],
    count: u8,
}

impl WokenHctxs {
    /// Adds one.
    ///
    /// # Panics
    /// If there are eight already.
    pub fn push(&mut self, hctx: HctxId) {
        self.hctxs[usize::from(self.count)] = hctx;
        self.count += 1;
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = HctxId> + '_ {
        self.hctxs[..usize::from(self.count)].iter().copied()
    }
}
