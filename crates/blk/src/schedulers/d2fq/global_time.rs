//! The global virtual time: a sloppy minimum of the flows' virtual times (D2FQ-6, D2FQ-7).

use std::sync::atomic::Ordering::Relaxed;

use crate::ground::sharing::{Sharing, Word};

/// The first bit of the holder in the word; virtual times are below.
const HOLDER_SHIFT: u32 = 48;
/// The latest virtual time. From there on all flows are equal; a flow of weight 1 reaches it after about 300 TiB.
pub(super) const TIME_MAX: u64 = (1 << HOLDER_SHIFT) - 1;

/// The time and the flow that holds it, in one word.
pub(super) struct GlobalTime<Sh: Sharing>(Sh::Word);

/// The holder in a word: the flow's number and 1, or 0 without one.
fn holder(number: u16) -> u64 {
    u64::from(number) + 1
}

impl<Sh: Sharing> GlobalTime<Sh> {
    pub(super) fn new() -> Self {
        GlobalTime(Sh::Word::new(0))
    }

    #[inline]
    pub(super) fn value(&self) -> u64 {
        self.0.load(Relaxed) & TIME_MAX
    }

    /// A request of a flow has completed, which is at `virtual_time` now: the holder advances the time, and a flow that is behind it
    /// becomes the holder, even if the time steps back.
    #[inline]
    pub(super) fn on_completed(&self, number: u16, virtual_time: u64) {
        loop {
            let old = self.0.load(Relaxed);
            let (old_holder, value) = (old >> HOLDER_SHIFT, old & TIME_MAX);
            let changes = match old_holder {
                0 => true,
                old_holder if old_holder == holder(number) => virtual_time > value,
                _ => virtual_time < value,
            };
            let new = holder(number) << HOLDER_SHIFT | virtual_time;
            if !changes || self.0.compare_exchange(old, new, Relaxed) {
                return;
            }
        }
    }

    /// A flow is no longer the holder, if it was. The time stays.
    pub(super) fn release(&self, number: u16) {
        loop {
            let old = self.0.load(Relaxed);
            if old >> HOLDER_SHIFT != holder(number) || self.0.compare_exchange(old, old & TIME_MAX, Relaxed) {
                return;
            }
        }
    }

    /// Begins at zero, without a holder.
    pub(super) fn reset(&self) {
        self.0.store(0, Relaxed);
    }

    #[cfg(test)]
    pub(super) fn holder(&self) -> Option<u16> {
        (self.0.load(Relaxed) >> HOLDER_SHIFT).checked_sub(1).map(|number| number as u16)
    }
}
