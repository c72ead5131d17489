//! Set of hardware queues that have become ready during one call.

use crate::ground::ids::HctxId;

/// Number of entries stored inline: the largest wake-up batch of a tag bitmap.
const INLINE_WOKEN_MAX: usize = 8;

/// Hardware queues, nearly always few, in wake-up order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WokenHctxs {
    inline_hctxs: [HctxId; INLINE_WOKEN_MAX],
    count: usize,
    overflow: Vec<HctxId>,
}

impl WokenHctxs {
    /// Adds a hardware queue.
    pub fn push(&mut self, hctx: HctxId) {
        match self.inline_hctxs.get_mut(self.count) {
            Some(slot) => *slot = hctx,
            None => self.overflow.push(hctx),
        }
        self.count += 1;
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All hardware queues.
    pub fn iter(&self) -> impl Iterator<Item = HctxId> + '_ {
        self.inline_hctxs[..self.count.min(INLINE_WOKEN_MAX)].iter().chain(&self.overflow).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn woken_hctxs_keep_their_order_in_short_and_long_lists() {
        for count in [0, 1, 8, 9, 64] {
            let mut woken = WokenHctxs::default();
            (0..count).for_each(|n| woken.push(HctxId(n)));
            assert!(woken.iter().eq((0..count).map(HctxId)), "{count}");
            assert_eq!(woken.is_empty(), count == 0);
        }
    }
}
