//! Tokens: how many requests of a domain may be at the device, and which queues wait for one. Rules: KY-1, KY-9 to
//! KY-12.
//!
//! A token is a *number* below the depth. When the depth is reduced, the higher numbers are no longer handed out, but
//! none is revoked: a request that holds one keeps it, and does not count against the new depth.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::ground::ids::{CpuId, HctxId};
use crate::ground::kernel::ShallowRule;
use crate::ground::meter::{Meter, NoMeter, Site};
use crate::ground::sharing::{Padded, Sharing, Word};
use crate::tags::{Depth, Sleeper, Tags, wake_batch};

/// The tokens of one domain, shared by all hardware queues without a lock.
pub(super) struct TokenPool<Sh: Sharing> {
    numbers: Tags<Sh>,
    /// The numbers below it are handed out; 1 to `depth_max`.
    depth: Sh::Word,
    /// 1 if a search has found no free token and none has been returned since: other callers are then refused without a search.
    /// The CPU that sets it searches once more, and a CPU that returns a token or sets the depth checks it afterwards. One of the
    /// two must see the other, so these accesses are `SeqCst`.
    is_dry: Padded<Sh::Word>,
    /// The most that `depth` may be.
    depth_max: u32,
    /// The state of each hardware queue.
    lines: Vec<Padded<Line<Sh>>>,
    /// Whether a hardware queue that got a token right after it began to wait stays in line.
    keeps_waiting: bool,
}

/// How a hardware queue waits for a token. As with all [tags](crate::tags), it joins the line and then looks for a token once
/// more.
struct Line<Sh: Sharing> {
    /// 1 while it waits in line. Changed under the hardware queue's lock, and by the CPU that wakes it, under the lock of the wait
    /// queues. `Relaxed`, since a hardware queue that is wrongly seen as still in line is about to be run anyway.
    is_waiting: Sh::Word,
    /// Its last place in line; under its lock.
    place: Sh::Word,
    /// How often it has joined the line, each time in the next of the wait queues; under its lock.
    joined: Sh::Word,
}

impl<Sh: Sharing> Line<Sh> {
    fn new() -> Self {
        Line { is_waiting: Sh::Word::new(0), place: Sh::Word::new(0), joined: Sh::Word::new(0) }
    }
}

/// The CPU whose hint a hardware queue uses. The hint is per hardware queue rather than per CPU, since dispatching CPUs share the
/// hardware queue's lock anyway.
fn hint_of(hctx: HctxId) -> CpuId {
    CpuId(u32::from(hctx.0))
}

impl<Sh: Sharing> TokenPool<Sh> {
    /// A pool of `positions` numbers, limited to `depth_max`, for `hctxs` hardware queues.
    pub(super) fn new(positions: u32, depth_max: u32, hctxs: usize, keeps_waiting: bool) -> Self {
        let pool = TokenPool {
            numbers: Tags::new(positions.max(depth_max).max(1), hctxs, ShallowRule::WholeMap, None)
                .with_wait_site(Site::TokenWaiters),
            depth: Sh::Word::new(u64::from(depth_max)),
            is_dry: Padded(Sh::Word::new(0)),
            depth_max,
            lines: (0..hctxs).map(|_| Padded(Line::new())).collect(),
            keeps_waiting,
        };
        pool.numbers.set_wake_batch(wake_batch(depth_max));
        pool
    }

    /// The present depth.
    #[inline]
    pub(super) fn depth(&self) -> u32 {
        self.depth.load(SeqCst) as u32
    }

    /// The largest depth.
    pub(super) fn depth_max(&self) -> u32 {
        self.depth_max
    }

    /// Sets the depth. A larger one does not wake any hardware queue; returned tokens do.
    pub(super) fn set_depth(&self, depth: u32) {
        debug_assert!((1..=self.depth_max).contains(&depth), "a depth of {depth} is out of range");
        self.depth.store(u64::from(depth), SeqCst);
        self.clear_dry_flag();
        self.numbers.set_wake_batch(wake_batch(depth));
    }

    /// Tokens that are taken.
    pub(super) fn in_use(&self) -> u32 {
        self.numbers.in_use()
    }

    /// Hardware queues in line.
    pub(super) fn waiting(&self) -> u64 {
        self.numbers.sleepers()
    }

    #[inline]
    fn try_take(&self, hctx: HctxId) -> Option<u32> {
        self.numbers.try_take(hint_of(hctx), Depth::Below(self.depth()))
    }

    #[inline]
    fn clear_dry_flag(&self) {
        // Read it first: it is nearly always 0, and unnecessary writes would move the cache line between CPUs.
        if self.is_dry.load(SeqCst) != 0 {
            self.is_dry.store(0, SeqCst);
        }
    }

    /// Whether a hardware queue is in line and no token has been returned since a search found none, so that a search is in vain.
    #[inline(always)]
    pub(super) fn refuses(&self, hctx: HctxId) -> bool {
        let refuses = self.is_dry.load(SeqCst) != 0 && self.lines[hctx.index()].is_waiting.load(Relaxed) != 0;
        if refuses {
            self.numbers.reset_hint(hint_of(hctx));
        }
        refuses
    }

    /// Takes a token for a hardware queue, whose lock the caller holds. Without one the hardware queue is in line
    /// afterwards.
    #[inline]
    pub(super) fn take(&self, meter: &impl Meter, hctx: HctxId) -> Option<u32> {
        let was_in_line = self.lines[hctx.index()].is_waiting.load(Relaxed) != 0;
        if self.is_dry.load(SeqCst) == 0 {
            if let Some(token) = self.try_take(hctx) {
                if was_in_line {
                    self.leave(meter, hctx);
                }
                return Some(token);
            }
        } else {
            self.numbers.reset_hint(hint_of(hctx));
            if was_in_line {
                return None;
            }
        }
        self.queue_and_retry_token(meter, hctx, was_in_line)
    }

    /// A search has found no token: the hardware queue joins the line and then looks once more. A token may have been returned
    /// before the pool knew that a queue waits, or that it is dry.
    #[inline(never)]
    fn queue_and_retry_token(&self, meter: &impl Meter, hctx: HctxId, was_in_line: bool) -> Option<u32> {
        if !was_in_line {
            let line = &self.lines[hctx.index()];
            line.is_waiting.store(1, Relaxed);
            let queue = line.joined.fetch_add(1, Relaxed);
            line.place.store(self.numbers.wait(meter, queue, Sleeper::Hctx(hctx)), Relaxed);
        }
        self.is_dry.store(1, SeqCst);
        if !Sh::CONTENDS {
            return None;
        }
        let token = self.try_take(hctx)?;
        self.is_dry.store(0, SeqCst);
        if was_in_line || !self.keeps_waiting {
            self.leave(meter, hctx);
        }
        Some(token)
    }

    /// Takes the hardware queue out of line. If another CPU has just woken it, it is already out of line.
    #[cold]
    fn leave(&self, meter: &impl Meter, hctx: HctxId) {
        let line = &self.lines[hctx.index()];
        self.numbers.remove_sleeper_at(meter, line.place.load(Relaxed));
        line.is_waiting.store(0, Relaxed);
    }

    /// Returns a token and calls `wake` for each hardware queue to be woken.
    #[inline]
    pub(super) fn give_back(&self, meter: &impl Meter, token: u32, hctx: HctxId, mut wake: impl FnMut(HctxId)) {
        self.numbers.free(meter, token, hint_of(hctx), |sleeper| {
            if let Sleeper::Hctx(woken) = sleeper {
                self.lines[woken.index()].is_waiting.store(0, Relaxed);
                wake(woken);
            }
        });
        self.clear_dry_flag();
    }

    /// Takes a certain token, if it is free; in a replay that is the recorded one.
    pub(super) fn try_take_exact(&self, token: u32) -> bool {
        self.numbers.try_take_exact(token)
    }

    /// Takes the token `wanted` instead of `held`, if it is free, so that a replay follows the recorded choice. Woken hardware
    /// queues are not notified, since in a replay the recording determines when hardware queues run.
    pub(super) fn exchange(&self, held: u32, wanted: u32, hctx: HctxId) -> bool {
        if held != wanted {
            if !self.numbers.try_take_exact(wanted) {
                return false;
            }
            self.give_back(&NoMeter, held, hctx, |_| {});
        }
        true
    }
}
