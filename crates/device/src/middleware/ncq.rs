//! A SATA drive's command queue: reads and writes are queued commands (NCQ), flushes and discards are not.
//!
//! A non-queued command starts when nothing is in the drive, and nothing else starts before it ends. The host holds one of
//! them back until the drive has drained; from then on everything else is refused until a completion, so it stays where the
//! host can still choose the order.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Nanos};

use crate::model::{Command, Device, Refusal, Schedule, Shape};

/// The link of a SATA drive: it wraps the drive.
pub(crate) struct Ncq<D> {
    inner: D,
    /// Commands in the drive whose end has not been announced.
    unannounced: u32,
    /// The latest end that has been announced.
    last_end: Instant,
    /// A non-queued command waiting for the drive to drain.
    held: Option<Command>,
    /// Whether the last command sent to the drive is a non-queued one.
    last_is_non_queued: bool,
    /// Whether the alarm for `held` is set.
    alarm_is_set: bool,
}

/// The wrapper's own alarm, a number that no device uses: alarms of the wrapped device keep their numbers, since changing them would cost
/// time for every command.
const OWN_ALARM: u32 = 1 << 31;

/// Time until the held command is retried after the device has refused it. Arbitrary: short compared with a flush.
const RETRY: Nanos = Nanos(20_000);

fn is_queued(op: Op) -> bool {
    !matches!(op, Op::Flush | Op::Discard)
}

impl<D: Device> Ncq<D> {
    pub(crate) fn new(inner: D) -> Ncq<D> {
        Ncq {
            inner,
            unannounced: 0,
            last_end: Instant::ZERO,
            held: None,
            last_is_non_queued: false,
            alarm_is_set: false,
        }
    }

    fn is_drained(&self, now: Instant) -> bool {
        self.unannounced == 0 && self.last_end <= now
    }

    /// Records the completions that the wrapped device has announced beyond the first `before`.
    #[inline]
    fn record_completions(&mut self, schedule: &Schedule, before: usize) {
        for completion in &schedule.completions[before..] {
            self.unannounced -= 1;
            self.last_end = self.last_end.max(completion.at);
        }
    }

    #[inline]
    fn send(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let (before, last_is_non_queued) = (schedule.completions.len(), !is_queued(command.op));
        let result = self.inner.submit(now, command, schedule);
        if result.is_ok() {
            self.last_is_non_queued = last_is_non_queued;
            self.unannounced += 1;
        }
        self.record_completions(schedule, before);
        result
    }

    /// Sets the alarm for the held command once it is known when the drive has drained.
    #[inline]
    fn set_alarm(&mut self, now: Instant, schedule: &mut Schedule) {
        if self.held.is_some() && self.unannounced == 0 && !self.alarm_is_set {
            self.alarm_is_set = true;
            schedule.alarms.push((self.last_end.max(now), OWN_ALARM));
        }
    }
}

impl<D: Device> Device for Ncq<D> {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn inner(&self) -> Option<&dyn Device> {
        Some(&self.inner)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Device> {
        Some(&mut self.inner)
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        if self.held.is_some() || (self.last_is_non_queued && !self.is_drained(now)) {
            return Err(Refusal::UntilCompletion);
        }
        if is_queued(command.op) || self.is_drained(now) {
            return self.send(now, command, schedule);
        }
        self.held = Some(command);
        self.set_alarm(now, schedule);
        Ok(())
    }

    fn wake(&mut self, now: Instant, alarm: u32, schedule: &mut Schedule) {
        if alarm != OWN_ALARM {
            let before = schedule.completions.len();
            self.inner.wake(now, alarm, schedule);
            self.record_completions(schedule, before);
            self.set_alarm(now, schedule);
            return;
        }
        let Some(command) = self.held else { return };
        if self.send(now, command, schedule).is_ok() {
            (self.held, self.alarm_is_set) = (None, false);
        } else {
            schedule.alarms.push((now + RETRY, OWN_ALARM));
        }
    }
}
