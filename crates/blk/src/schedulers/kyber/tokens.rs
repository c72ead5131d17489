//! Tokens: how many requests of a domain may be at the device, and which queues wait for one. Rules: KY-1, KY-9 to KY-12.
//!
//! A token is a *number* below the depth. Cutting the depth withholds the high numbers and revokes nothing: a request that holds
//! one of them keeps it, and does not count against the new depth.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::ground::ids::{CpuId, HctxId};
use crate::ground::kernel::ShallowRule;
use crate::ground::meter::{Meter, NoMeter};
use crate::ground::sharing::{Padded, Sharing, Word};
use crate::tags::{Depth, Sleeper, Tags, wake_batch};

/// The tokens of one domain, shared by all hardware queues without a lock.
pub(super) struct TokenPool<Sh: Sharing> {
    numbers: Tags<Sh>,
    /// Numbers below it are given out, 1 to `depth_max`.
    depth: Sh::Word,
    /// 1 if a search has found none and nothing has come back since: callers meanwhile are refused without a search. The CPU that
    /// sets it searches once more, and one that gives back a token or sets the depth looks at it afterwards: one of the two sees
    /// the other, so these accesses are `SeqCst`.
    is_dry: Padded<Sh::Word>,
    /// The most that `depth` may be.
    depth_max: u32,
    /// For each hardware queue.
    lines: Vec<Padded<Line<Sh>>>,
    /// Whether a hardware queue that was given a token as soon as it began to wait stays in line.
    keeps_waiting: bool,
}

/// How a hardware queue waits for a token. That it waits, and looks for a token once more, is in order as for all
/// [tags](crate::tags).
struct Line<Sh: Sharing> {
    /// 1 while it waits in line. Changed under the hardware queue's lock, and by the CPU that wakes it, under the lock of the
    /// wait queues: `Relaxed`, since a hardware queue that takes itself to be still in line is about to be run.
    is_waiting: Sh::Word,
    /// Its last place in line; under its lock, as the next.
    place: Sh::Word,
    /// How often it has joined the line, each time the next of the wait queues.
    joined: Sh::Word,
}

impl<Sh: Sharing> Line<Sh> {
    fn new() -> Self {
        Line { is_waiting: Sh::Word::new(0), place: Sh::Word::new(0), joined: Sh::Word::new(0) }
    }
}

/// Whose hint a hardware queue uses: the search for a free number begins where *it* left off, since dispatching CPUs
/// meet on the hardware queue's lock anyway.
fn hint_of(hctx: HctxId) -> CpuId {
    CpuId(u32::from(hctx.0))
}

impl<Sh: Sharing> TokenPool<Sh> {
    /// A pool of `positions` numbers, cut to `depth_max`, for `hctxs` hardware queues.
    pub(super) fn new(positions: u32, depth_max: u32, hctxs: usize, keeps_waiting: bool) -> Self {
        let pool = TokenPool {
            numbers: Tags::new(positions.max(depth_max).max(1), hctxs, ShallowRule::WholeMap, None),
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

    /// Sets the depth. A larger one wakes none: what comes back does.
    pub(super) fn set_depth(&self, depth: u32) {
        debug_assert!((1..=self.depth_max).contains(&depth), "a depth of {depth} is out of range");
        self.depth.store(u64::from(depth), SeqCst);
        self.clear_dry_flag();
        self.numbers.set_wake_batch(wake_batch(depth));
    }

    /// Tokens that are out.
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
        // Looked at first: nearly always it is not, and CPUs would take the line from each other.
        if self.is_dry.load(SeqCst) != 0 {
            self.is_dry.store(0, SeqCst);
        }
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
            self.numbers.refuse(hint_of(hctx));
            if was_in_line {
                return None;
            }
        }
        self.queue_and_retry_token(meter, hctx, was_in_line)
    }

    /// A search has found none: the hardware queue gets into line, and looks once more if there are others. One may have come back
    /// before the pool knew that a queue waits, or that it is dry.
    #[inline(never)]
    fn queue_and_retry_token(&self, meter: &impl Meter, hctx: HctxId, was_in_line: bool) -> Option<u32> {
        if !was_in_line {
            let line = &self.lines[hctx.index()];
            line.is_waiting.store(1, Relaxed);
            let queue = line.joined.fetch_add(1, Relaxed);
            line.place.store(self.numbers.enqueue_in_wait_queue(meter, queue, Sleeper::Hctx(hctx)), Relaxed);
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

    /// A CPU that wakes a hardware queue takes it out of line in one piece, so afterwards it is out of line either way.
    #[cold]
    fn leave(&self, meter: &impl Meter, hctx: HctxId) {
        let line = &self.lines[hctx.index()];
        self.numbers.remove_sleeper_at(meter, line.place.load(Relaxed));
        line.is_waiting.store(0, Relaxed);
    }

    /// Gives a token back and calls `wake` for each hardware queue whose turn has come.
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

    /// Takes a certain token, if it is free: the recorded one, in a replay.
    pub(super) fn try_take_exact(&self, token: u32) -> bool {
        self.numbers.try_take_exact(token)
    }

    /// Takes the token `wanted` instead of `held`, if it is free. A replay goes on from the recorded pick with it, and
    /// runs hardware queues when the recording says so: the woken ones are not notified here.
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
