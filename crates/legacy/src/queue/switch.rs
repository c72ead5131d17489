//! Changing the elevator under load (LQ-32 to LQ-34).
//!
//! While a change is under way new requests go past the elevator, and I/O goes on. What the elevator manages must
//! *end*, not only leave it; that is looked for every [`SWITCH_POLL`]. A queue that multi-queue devices have is
//! frozen instead.
//!
//! ```text
//! begin_switch -> Done, or More: poll_switch every 10 ms until Done -> end_switch
//! ```

use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::ground::{CpuId, Lock, Nanos, Now, ReadMostly, Sharing, Site};
use hoistway_blk::queue::Step;
use hoistway_blk::schedulers::{Layer, Row};

use super::elevator::LegacyElevator;
use super::{LegacyConfig, LegacyQueue, Locked};

/// How often a change of scheduler looks whether the old one's requests have ended.
pub const SWITCH_POLL: Nanos = Nanos::from_millis(10);

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// What reading `queue/scheduler` shows.
    #[must_use]
    pub fn show_scheduler(&self) -> String {
        let current = self.scheduler();
        let show = |row: &Row| if row.name == current { format!("[{}] ", row.name) } else { format!("{} ", row.name) };
        self.config.schedulers.of(Layer::SingleQueue).map(show).chain(["\n".to_owned()]).collect()
    }

    /// Whether writing `text` to `queue/scheduler` asks for another scheduler than the present one; nothing if there is no
    /// such legacy scheduler. No name is too long.
    #[must_use]
    pub fn would_switch(&self, text: &str) -> Option<bool> {
        let mut known = self.config.schedulers.of(Layer::SingleQueue);
        known.find(|row| row.name == text.trim()).map(|row| row.name != self.scheduler())
    }

    /// The scheduler that a text written to `queue/scheduler` asks for, with default tunables, for this queue as it is now.
    #[must_use]
    pub fn elevator_for(&self, now: Now, text: &str) -> Option<LegacyElevator> {
        let limits = self.rules.read(CpuId(0), |rules| rules.limits.clone());
        LegacyElevator::named(text.trim(), &LegacyConfig { limits, ..self.config.clone() }, now)
    }

    /// Begins a change of scheduler: from now on nothing new comes under the present one's management, until each change
    /// that has begun has [ended](Self::end_switch). Returns whether it still has requests that must end.
    pub fn begin_switch<E: Env>(&self, cx: &mut Cx<'_, E>) -> Step {
        self.locked.with(cx.meter, Site::Legacy, |queue| queue.bypasses += 1);
        self.poll_switch(cx)
    }

    /// Forces out what the present scheduler holds, and looks whether all that it manages has ended.
    pub fn poll_switch<E: Env>(&self, cx: &mut Cx<'_, E>) -> Step {
        self.locked.with(cx.meter, Site::Legacy, |queue| queue.drain_elevator(cx));
        self.run(cx);
        if self.locked.with(cx.meter, Site::Legacy, |queue| queue.managed) == 0 { Step::Done } else { Step::More }
    }

    /// Ends a change of scheduler. Without a next one, because it could not be made, the old one goes on.
    ///
    /// # Panics
    /// If a next scheduler is given while the old one still manages requests, see [`poll_switch`](Self::poll_switch).
    pub fn end_switch<E: Env>(&self, cx: &mut Cx<'_, E>, next: Option<LegacyElevator>) {
        self.locked.with(cx.meter, Site::Legacy, |queue| {
            if let Some(mut next) = next {
                next.grow(queue.capacity);
                queue.replace_elevator(next);
                // What the old one's timer was for is over.
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
