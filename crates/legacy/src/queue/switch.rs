//! Changing the elevator under load (LQ-32 to LQ-34).
//!
//! During a change new requests bypass the elevator, and I/O continues. Requests managed by the elevator must
//! *complete*, not only be dispatched; this is checked every [`SWITCH_POLL`]. In contrast, multi-queue devices freeze
//! their queue.
//!
//! ```text
//! begin_switch -> Done, or More: call poll_switch every 10 ms until Done -> end_switch
//! ```

use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::ground::{CpuId, Lock, Nanos, Now, ReadMostly, Sharing, Site};
use hoistway_blk::queue::Step;
use hoistway_blk::schedulers::{Layer, Row};

use super::elevator::LegacyElevator;
use super::{LegacyConfig, LegacyQueue, Locked};

/// Interval of checks whether the old scheduler's requests have completed.
pub const SWITCH_POLL: Nanos = Nanos::from_millis(10);

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// The content of `queue/scheduler`.
    #[must_use]
    pub fn show_scheduler(&self) -> String {
        let current = self.scheduler();
        let show = |row: &Row| if row.name == current { format!("[{}] ", row.name) } else { format!("{} ", row.name) };
        self.config.schedulers.of(Layer::SingleQueue).map(show).chain(["\n".to_owned()]).collect()
    }

    /// Whether writing `text` to `queue/scheduler` changes the scheduler; None if there is no such legacy scheduler. Names
    /// of any length are accepted.
    #[must_use]
    pub fn would_switch(&self, text: &str) -> Option<bool> {
        let mut rows = self.config.schedulers.of(Layer::SingleQueue);
        rows.find(|row| row.name == text.trim()).map(|row| row.name != self.scheduler())
    }

    /// The scheduler for a text written to `queue/scheduler`, with default tunables, for the queue in its current state.
    #[must_use]
    pub fn elevator_for(&self, now: Now, text: &str) -> Option<LegacyElevator> {
        let limits = self.rules.read(CpuId(0), |rules| rules.limits.clone());
        LegacyElevator::named(text.trim(), &LegacyConfig { limits, ..self.config.clone() }, now)
    }

    /// Begins a change of scheduler: from now on the current one gets no new requests, until each change that has begun
    /// has [ended](Self::end_switch). Returns whether it still has requests that must complete.
    pub fn begin_switch<E: Env>(&self, cx: &mut Cx<'_, E>) -> Step {
        self.locked.with(cx.meter, Site::Legacy, |queue| queue.bypasses += 1);
        self.poll_switch(cx)
    }

    /// Forces the current scheduler to dispatch everything, and checks whether all its requests have completed.
    pub fn poll_switch<E: Env>(&self, cx: &mut Cx<'_, E>) -> Step {
        self.locked.with(cx.meter, Site::Legacy, |queue| queue.drain_elevator(cx));
        self.run(cx);
        if self.locked.with(cx.meter, Site::Legacy, |queue| queue.managed) == 0 { Step::Done } else { Step::More }
    }

    /// Ends a change of scheduler. Without `next`, because it could not be made, the old one continues.
    ///
    /// # Panics
    /// If a next scheduler is given while the old one still manages requests, see [`poll_switch`](Self::poll_switch).
    pub fn end_switch<E: Env>(&self, cx: &mut Cx<'_, E>, next: Option<LegacyElevator>) {
        self.locked.with(cx.meter, Site::Legacy, |queue| {
            if let Some(mut next) = next {
                next.grow(queue.capacity);
                queue.replace_elevator(next);
                // The old scheduler's timer is obsolete.
                cx.effects.push(hoistway_blk::drive::Effect::CancelTimer);
            }
            queue.bypasses -= 1;
        });
        self.run(cx);
    }
}

impl Locked {
    fn replace_elevator(&mut self, next: LegacyElevator) {
        assert_eq!(self.managed, 0, "a scheduler that is replaced manages nothing");
        self.elevator = next;
    }
}
