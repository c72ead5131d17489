//! When a process submits: its queue, pauses, rate, balance with others, overlaps and latency search.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Nanos};

use super::latency_search::Judgement;
use super::window::IoInFlight;
use super::{Flows, RunningProcess, Step};
use crate::{Fsync, Io, ThinkBlocks};

/// The error of a process whose recording cannot be read to its end.
pub(super) const EIO: i32 = 5;

/// A reason to hold an I/O back.
enum HoldReason {
    None,
    /// It has to wait, until this time if known.
    Waits(Option<Instant>),
}

impl RunningProcess {
    /// The current pause, if any.
    #[inline]
    pub(super) fn pause(&mut self, now: Instant) -> Option<Step> {
        let think = self.think.as_mut()?;
        if let Some(until) = think.until {
            if now < until {
                return Some(Step::Wait(Some(until)));
            }
            think.until = None;
        }
        if self.window.room() == 0 || !think.is_due(now) || self.is_exhausted || now >= self.deadline {
            return None;
        }
        if self.window.in_flight() > 0 {
            return Some(Step::Wait(None));
        }
        self.spin = think.spin();
        self.measurement.spun(now, self.spin);
        self.pace_start += think.uncompensated_pause();
        Some(Step::Wait(Some(think.begin(now))))
    }

    /// The number of I/Os that it may submit in the next system call.
    #[inline]
    pub(super) fn room(&mut self, now: Instant) -> u32 {
        let room = self.window.room();
        if self.is_exhausted || now >= self.deadline { 0 } else { room }
    }

    /// Generates the I/Os of the next system call. Returns when to try again if something forbids one now.
    #[inline]
    pub(super) fn generate_batch(&mut self, now: Instant, room: u32, flows: &mut Flows) -> Option<Instant> {
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
            // I/Os generated before an fsync are submitted before it.
            if io.op == Op::Flush && (self.window.has_batch() || self.fsync.waits() && self.window.in_flight() > 0) {
                self.held_back = Some(io);
                return None;
            }
            if self.is_restrained
                && let HoldReason::Waits(until) = self.hold_back_reason(now, &io, flows)
            {
                self.held_back = Some(io);
                return until;
            }
            let slot = self.window.add(IoInFlight::new(&io, now))?;
            if io.op == Op::Flush && self.fsync != Fsync::IsQueued {
                self.window.sleep_on_io(slot);
                return None;
            }
        }
        None
    }

    /// Whether balance, overlaps and rate allow an I/O now. If they do, the I/O is counted in them and for pauses.
    #[cold]
    fn hold_back_reason(&mut self, now: Instant, io: &Io, flows: &mut Flows) -> HoldReason {
        if self.flow_sleep.is_some() && !flows.allows_next_io(self.number) {
            return HoldReason::Waits(self.hold(now, flows));
        }
        if self.serializes && self.window.overlaps(io) {
            return HoldReason::Waits(None);
        }
        if let Some(pacer) = &mut self.pacer {
            let due = self.pace_start + pacer.due(io.op, self.generator.pause());
            if due > now {
                return HoldReason::Waits(Some(due));
            }
            pacer.issued(io.op, io.bytes, now.since(self.pace_start));
        }
        // Tried with fio 3.33: neither an fsync nor its end counts for a pause.
        if io.op != Op::Flush
            && let Some(think) = &mut self.think
        {
            think.count(ThinkBlocks::Issued, 1);
        }
        if self.flow_sleep.is_some() {
            flows.issued(self.number);
        }
        HoldReason::None
    }

    /// Holds a process that is ahead of its share. Returns when to try again unless its balance releases it earlier.
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

    /// Continues the search for a depth.
    pub(super) fn search_depth(&mut self, now: Instant) {
        let Some(search) = &mut self.search else { return };
        match search.judge(now) {
            Judgement::ContinueWindow => {}
            Judgement::Rise(depth) => self.window.set_depth(depth),
            Judgement::Fall(depth) => {
                self.window.set_depth(depth);
                self.window.fence();
            }
            Judgement::Measure => {
                self.measurement.restart(now);
                if let Some(runtime) = self.runtime {
                    self.deadline = now + runtime;
                }
            }
            Judgement::End => self.is_exhausted = true,
        }
    }
}
