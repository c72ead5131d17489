//! When a task submits, and when it does not: its queue, pauses, rate, balance with others, overlaps and latencies.

use hoistway_blk::{Instant, Nanos, Op, Parts};
use hoistway_load::{Io, ThinkBlocks};

use super::{Next, Slot, Task};
use crate::flow::Flows;
use crate::latency_search::Step;

/// As in fio, the error of a process with an I/O above `max_latency`.
const ETIMEDOUT: i32 = 110;
/// The error of a process whose recording cannot be read to its end.
const EIO: i32 = 5;

/// What keeps an I/O back.
enum Restraint {
    None,
    /// Something, until then if that is known.
    Waits(Option<Instant>),
}

impl Task {
    /// The pause that the process makes now, if any.
    pub(super) fn pause(&mut self, now: Instant) -> Option<Next> {
        let think = self.think.as_mut()?;
        if let Some(until) = think.until {
            if now < until {
                return Some(Next::Wait(Some(until)));
            }
            think.until = None;
        }
        if !think.is_due(now) || self.is_exhausted || now >= self.deadline {
            return None;
        }
        if self.in_flight > 0 {
            return Some(Next::Wait(None));
        }
        self.spin = think.spin();
        self.measurement.spun(now, self.spin);
        self.pace_start += think.not_made_up_for();
        Some(Next::Wait(Some(think.begin(now))))
    }

    #[inline]
    pub(super) fn may_submit(&mut self, now: Instant) -> bool {
        if self.in_flight >= self.depth {
            self.is_draining = self.depth_low < self.depth;
        } else if self.in_flight <= self.depth_low {
            self.is_draining = false;
        }
        self.is_fenced &= self.in_flight > 0;
        self.in_flight < self.depth && !self.is_draining && !self.is_fenced && !self.is_exhausted && now < self.deadline
    }

    /// Draws the I/Os of the next system call. Answers when it should be tried again if something forbids one now.
    #[inline]
    pub(super) fn gather(&mut self, now: Instant, flows: &mut Flows) -> Option<Instant> {
        let room = (self.depth - self.in_flight).min(self.batch_max);
        for _ in 0..room {
            let io = match self.held_back.take() {
                Some(io) => io,
                None => match self.generator.next() {
                    Some(io) => io,
                    None => {
                        self.is_exhausted = true;
                        if self.generator.has_failed() {
                            self.measurement.failed(EIO);
                        }
                        return None;
                    }
                },
            };
            // An fsync waits for what was submitted before it, and nothing is submitted beside it.
            if io.op == Op::Flush && self.in_flight > 0 {
                self.held_back = Some(io);
                return None;
            }
            if self.is_restrained
                && let Restraint::Waits(until) = self.restrain(now, &io, flows)
            {
                self.held_back = Some(io);
                return until;
            }
            let slot = self.free.pop()?;
            self.slots[slot as usize] = Slot {
                op: Some(io.op),
                device: io.file,
                priority: io.priority,
                offset_bytes: io.offset_bytes,
                bytes: io.bytes,
                parts: Parts::of_sectors(io.bytes / 512),
                created: now,
                issued: Instant::ZERO,
            };
            self.in_flight += 1;
            self.batch.push_back(slot);
            if io.op == Op::Flush {
                self.is_fenced = true;
                return None;
            }
        }
        None
    }

    /// Whether an I/O may be issued now, as far as balance, overlaps and rate are concerned. If so, they and pauses count it.
    #[cold]
    fn restrain(&mut self, now: Instant, io: &Io, flows: &mut Flows) -> Restraint {
        if self.flow_sleep.is_some() && !flows.lets_through(self.number) {
            return Restraint::Waits(self.hold(now, flows));
        }
        if self.serializes && self.overlaps(io) {
            return Restraint::Waits(None);
        }
        if let Some(pacer) = &mut self.pacer {
            let due = self.pace_start + pacer.due(io.op, self.generator.pause());
            if due > now {
                return Restraint::Waits(Some(due));
            }
            pacer.issued(io.op, io.bytes, now.since(self.pace_start));
        }
        if let Some(think) = &mut self.think {
            think.count(ThinkBlocks::Issued, 1);
        }
        if self.flow_sleep.is_some() {
            flows.issued(self.number);
        }
        Restraint::None
    }

    /// I/Os were reaped, the last of which ended now.
    #[cold]
    pub(super) fn count_reaped(&mut self, now: Instant, ios: u32) {
        if let Some(think) = &mut self.think {
            think.count(ThinkBlocks::Completed, ios);
        }
        if self.search.is_some() {
            self.search_depth(now);
        }
    }

    /// Whether an I/O has sectors in common with one that is in flight.
    fn overlaps(&self, io: &Io) -> bool {
        let end = |offset: u64, bytes: u32| offset + u64::from(bytes);
        self.slots.iter().any(|slot| {
            slot.op.is_some()
                && slot.device == io.file
                && slot.offset_bytes < end(io.offset_bytes, io.bytes)
                && io.offset_bytes < end(slot.offset_bytes, slot.bytes)
        })
    }

    /// It is ahead of its share. Answers when it should try again, if it is not told before.
    fn hold(&mut self, now: Instant, flows: &mut Flows) -> Option<Instant> {
        let sleep = self.flow_sleep.unwrap_or_default();
        let until = if sleep > Nanos::ZERO {
            (now + sleep).min(self.deadline)
        } else {
            flows.hold(self.number);
            self.deadline
        };
        (until != Instant::NEVER).then_some(until)
    }

    /// An I/O of this slot has ended, and took so long.
    #[cold]
    pub(super) fn judge_end(&mut self, now: Instant, slot: u32, op: Op, latency: Nanos) {
        // It no longer overlaps anything.
        self.slots[slot as usize].op = None;
        let lane = match op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Discard => 2,
            _ => return,
        };
        if let Some(search) = &mut self.search {
            search.finished(now, latency);
        }
        if self.max_latency.is_some_and(|limits| limits[lane] > Nanos::ZERO && latency > limits[lane]) {
            self.measurement.failed(ETIMEDOUT);
            self.is_exhausted = true;
        }
    }

    /// Goes on with the search for a depth.
    fn search_depth(&mut self, now: Instant) {
        let Some(search) = &mut self.search else { return };
        match search.step(now) {
            Step::GoOn => {}
            Step::Rise(depth) => self.depth = depth,
            Step::Fall(depth) => {
                self.depth = depth;
                self.is_fenced = true;
            }
            Step::Measure => {
                self.measurement.restart(now);
                if let Some(runtime) = self.runtime {
                    self.deadline = now + runtime;
                }
            }
            Step::End => self.is_exhausted = true,
        }
    }
}
