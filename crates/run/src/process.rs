//! A process at a worker. As fio's, it fills its queue in batches, waits, takes what has ended, and fills it again.

use std::sync::Arc;

use hoistway_blk::{Instant, IoPriority, Nanos, Op};
use hoistway_engine::{Buffer, Buffers, Completion, Operation, Request, Resident, Turn};
use hoistway_load::process::{Finished, Measurement, Thinking};
use hoistway_load::{Fsync, Generator, Io, Pacer, Process, ThinkBlocks, WriteSync};

use crate::Settings;
use crate::board::Board;
use crate::window::Window;

/// How often a process that waits to begin looks whether it may.
const LOOK: Nanos = Nanos::from_millis(1);
/// How often any other looks whether it is to end.
const LOOK_UP: Nanos = Nanos::from_millis(50);
/// As in fio, the error of a process with an I/O above `max_latency`, and of one whose recording cannot be read to its end.
const ETIMEDOUT: i32 = 110;
const EIO: i32 = 5;

/// A process.
pub struct RealProcess {
    process: Process,
    number: usize,
    board: Arc<Board>,
    generator: Generator,
    pacer: Option<Pacer>,
    think: Option<Thinking>,
    measurement: Option<Measurement>,
    window: Window,
    /// Ends that it has not looked at.
    ended: Vec<Completion>,
    /// An I/O that was drawn and could not be submitted yet.
    held_back: Option<Io>,
    /// When it begins; `None` while that is not known.
    start: Option<Instant>,
    /// From then on its rate counts.
    pace_start: Instant,
    /// Nothing is submitted from then on.
    deadline: Instant,
    runtime: Option<Nanos>,
    /// It submits nothing any more.
    is_exhausted: bool,
    /// `end_fsync`: it is still to flush when all else is done.
    is_to_flush: bool,
    /// That flush is under way; as in fio, it is not measured.
    is_closing: bool,
}

impl RealProcess {
    pub fn new(
        process: &Process,
        number: usize,
        generator: Generator,
        settings: &Settings,
        board: Arc<Board>,
        buffers: &Buffers,
    ) -> Self {
        RealProcess {
            number,
            board,
            generator,
            pacer: process.pacer(number as u32, settings.seed),
            think: None,
            measurement: None,
            window: Window::new(process, process.plan.block_bytes_max(), buffers),
            ended: Vec::new(),
            held_back: None,
            start: None,
            pace_start: Instant::ZERO,
            deadline: Instant::NEVER,
            runtime: settings.runtime.or(process.schedule.runtime),
            is_exhausted: false,
            is_to_flush: process.caching.end_fsync && process.plan.modifies(),
            is_closing: false,
            process: process.clone(),
        }
    }

    /// Begins, if its time has come. Answers when to look again if not.
    fn begin(&mut self, now: Instant) -> Option<Instant> {
        if self.measurement.is_some() {
            return None;
        }
        if self.start.is_none() {
            self.start =
                if self.board.is_over(self.number) { Some(now) } else { self.board.start_of(self.number, now) };
        }
        let Some(start) = self.start else { return Some(now + LOOK) };
        if now < start && !self.board.is_over(self.number) {
            return Some(start.min(now + LOOK_UP));
        }
        let start = start.min(now);
        self.measurement = Some(Measurement::new(&self.process, start));
        self.think = self.process.pace.think.map(|think| Thinking::new(think, start));
        self.pace_start = start;
        self.deadline = self.runtime.map_or(Instant::NEVER, |time| start + self.process.schedule.ramp + time);
        None
    }

    // --- what has ended ---

    fn reap(&mut self, now: Instant) {
        let Some(measurement) = &mut self.measurement else { return };
        let count = self.ended.len() as u32;
        for Completion { token, result, mut buffer } in self.ended.drain(..) {
            let slot = self.window.end(token as u32);
            // A flush, or a trim, has none.
            if buffer.capacity() > 0 {
                buffer.set_len(buffer.capacity());
                slot.buffer = buffer;
            }
            if let Err(errno) = result {
                measurement.failed(errno.0);
                self.is_exhausted = true;
            }
            if self.is_closing || result.is_err() {
                continue;
            }
            let latency = now.since(slot.created);
            let limits = self.process.latency.max;
            let lane = [Op::Read, Op::Write, Op::Discard].iter().position(|&op| op == slot.op);
            if lane.is_some_and(|lane| limits[lane] > Nanos::ZERO && latency > limits[lane]) {
                measurement.failed(ETIMEDOUT);
                self.is_exhausted = true;
            }
            measurement.finished(&Finished {
                op: slot.op,
                bytes: slot.bytes,
                offset_bytes: slot.offset_bytes,
                priority: IoPriority::UNSET,
                created: slot.created,
                // What it takes to hand an I/O in is not told from the rest.
                issued: slot.created,
                reaped: now,
            });
        }
        measurement.reaped(now, count);
        self.board.count_ios(u64::from(count));
        if let Some(think) = &mut self.think {
            think.count(ThinkBlocks::Completed, count);
        }
    }

    // --- what comes next ---

    /// The pause that it makes now, if any: until when, or until something ends.
    fn pause(&mut self, now: Instant) -> Option<Option<Instant>> {
        let think = self.think.as_mut()?;
        if let Some(until) = think.until {
            if now < until {
                return Some(Some(until));
            }
            think.until = None;
        }
        if !think.is_due(now) {
            return None;
        }
        if self.window.in_flight() > 0 {
            return Some(None);
        }
        self.pace_start += think.not_made_up_for();
        Some(Some(think.begin(now)))
    }

    /// Submits a batch, as far as anything lets it. Answers when it should be tried again if something forbids it now.
    fn gather(&mut self, now: Instant, requests: &mut Vec<Request>) -> Option<Instant> {
        let fsync = Fsync::of(self.process.issue.engine);
        for _ in 0..self.window.room() {
            let Some(io) = self.held_back.take().or_else(|| self.generator.next()) else {
                self.is_exhausted = true;
                if self.generator.has_failed()
                    && let Some(measurement) = &mut self.measurement
                {
                    measurement.failed(EIO);
                }
                return None;
            };
            // What was drawn before an fsync is submitted before it.
            if io.op == Op::Flush && (!requests.is_empty() || fsync.waits() && self.window.in_flight() > 0) {
                self.held_back = Some(io);
                return None;
            }
            if let Some(pacer) = &mut self.pacer {
                let due = self.pace_start + pacer.due(io.op, self.generator.pause());
                if due > now {
                    self.held_back = Some(io);
                    return Some(due);
                }
                pacer.issued(io.op, io.bytes, now.since(self.pace_start));
            }
            if let Some(think) = &mut self.think {
                think.count(ThinkBlocks::Issued, 1);
            }
            let slot = self.submit(now, &io, requests)?;
            if io.op == Op::Flush && fsync != Fsync::IsQueued {
                self.window.sleep_in(slot);
                return None;
            }
        }
        None
    }

    /// Submits an I/O. Answers its slot.
    fn submit(&mut self, now: Instant, io: &Io, requests: &mut Vec<Request>) -> Option<u32> {
        let is_durable = self.process.caching.write_sync != WriteSync::None;
        // There is room, which was asked for before.
        let (token, slot) = self.window.begin()?;
        (slot.op, slot.bytes, slot.offset_bytes, slot.created) = (io.op, io.bytes, io.offset_bytes, now);
        let mut buffer = || {
            let mut buffer = std::mem::take(&mut slot.buffer);
            buffer.set_len(io.bytes as usize);
            buffer
        };
        let (operation, buffer) = match io.op {
            Op::Read => (Operation::Read, buffer()),
            Op::Write => (Operation::Write { durable: is_durable }, buffer()),
            Op::Flush => (Operation::Flush, Buffer::EMPTY),
            Op::Discard | Op::WriteZeroes => (Operation::Discard { bytes: u64::from(io.bytes) }, Buffer::EMPTY),
        };
        requests.push(Request { operation, offset: io.offset_bytes, buffer, token: u64::from(token) });
        Some(token)
    }

    /// Whether it has submitted all that it is going to.
    fn is_over(&self, now: Instant) -> bool {
        self.is_exhausted || now >= self.deadline
    }

    /// Nothing is under way and nothing comes: it flushes if that is left to do, or leaves.
    fn close(&mut self, now: Instant, requests: &mut Vec<Request>) -> Turn {
        if std::mem::take(&mut self.is_to_flush) {
            self.is_closing = true;
            let flush = Io { op: Op::Flush, file: 0, priority: IoPriority::UNSET, bytes: 0, offset_bytes: 0 };
            self.submit(now, &flush, requests);
            return Turn::By(Instant::NEVER);
        }
        if let Some(measurement) = self.measurement.take() {
            self.board.ended(self.number, measurement.into_result(now));
        }
        Turn::Leaves
    }
}

impl Resident for RealProcess {
    fn turn(&mut self, now: Instant, ended: &mut Vec<Completion>, requests: &mut Vec<Request>) -> Turn {
        if let Some(again) = self.begin(now) {
            return Turn::By(again);
        }
        self.ended.append(ended);
        if self.window.wants(&self.ended) {
            self.reap(now);
        }
        self.is_exhausted |= self.board.is_over(self.number);
        let mut again = None;
        if !self.is_over(now) {
            match self.pause(now) {
                Some(until) => again = until,
                None => {
                    again = self.gather(now, requests);
                    let submitted = requests.len() as u32;
                    if submitted > 0 {
                        let depth = self.window.in_flight();
                        self.measurement.iter_mut().for_each(|it| it.submitted(now, submitted, depth));
                        // There may be room for another batch.
                        if again.is_none() && self.window.room() > 0 {
                            return Turn::By(now);
                        }
                    }
                }
            }
        }
        if self.window.in_flight() == 0 && self.is_over(now) {
            return self.close(now, requests);
        }
        let deadline = if now < self.deadline { self.deadline } else { Instant::NEVER };
        Turn::By(again.unwrap_or(Instant::NEVER).min(deadline).min(now + LOOK_UP))
    }
}

impl Drop for RealProcess {
    fn drop(&mut self) {
        // The engine was stopped under it: nobody is to wait for it for ever.
        if let Some(measurement) = self.measurement.take() {
            self.board.ended(self.number, measurement.into_result(self.pace_start));
        }
    }
}

#[cfg(test)]
mod tests;
