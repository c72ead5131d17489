//! Flush and FUA: which steps make an I/O durable, and the sequencer that lets many waiters share one flush command
//! (BL-110 to BL-115, LQ-29 to LQ-31).

use crate::bio::{BioFlags, Op, Status};
use crate::ground::ids::RqId;
use crate::ground::lost::Home;
use crate::ground::time::{Instant, Nanos};
use crate::request::{FlushSteps, Marks, Request, Rq};

/// A flush is put off while sequenced data is in flight, but no longer than this.
const PENDING_FLUSH_DELAY_MAX: Nanos = Nanos::from_secs(5);

/// Prepares a write for its steps: what a step does is no longer a flag of the request.
pub fn begin(rq: &mut Request, steps: FlushSteps, fua: bool) {
    rq.steps = steps;
    let mut flags = rq.flags.without(BioFlags::PREFLUSH).with(BioFlags::SYNC);
    if !fua {
        flags = flags.without(BioFlags::FUA);
    }
    rq.flags = flags;
}

/// Where a request goes after a step.
#[derive(Debug)]
pub enum Next {
    /// Its data is to be written.
    Data(Rq),
    /// It has ended.
    End(Rq, Status),
}

/// The sequencer of one queue. One flush command at a time; all that wait when it is issued share it.
pub struct FlushQueue {
    _home: Home,
    /// Wait for the next flush command.
    pending: Vec<Rq>,
    /// Since when a request waits there.
    pending_since: Instant,
    /// Wait for the flush command that is under way.
    running: Vec<Rq>,
    data_in_flight: u32,
    /// The flush command, while it is not under way.
    command: Option<Rq>,
}

impl FlushQueue {
    /// A sequencer whose flush command has this id, which no tag names.
    pub fn new(id: RqId) -> Self {
        let home = Home::default();
        FlushQueue {
            pending: Vec::new(),
            pending_since: Instant::ZERO,
            running: Vec::new(),
            data_in_flight: 0,
            command: Some(Rq::empty(id, &home)),
            _home: home,
        }
    }

    /// Whether a flush command is under way.
    #[inline]
    pub fn is_flushing(&self) -> bool {
        self.command.is_none()
    }

    /// Counts data that is written by the ordinary way before a flush follows.
    pub fn data_begins(&mut self) {
        self.data_in_flight += 1;
    }

    /// Sends a request to its next step. One that needs a flush stays here.
    pub fn advance(&mut self, now: Instant, rq: Rq, status: Status) -> Option<Next> {
        if status != Status::Ok || rq.steps.is_empty() {
            return Some(Next::End(rq, status));
        }
        if rq.steps.begins_with_data() {
            self.data_begins();
            return Some(Next::Data(rq));
        }
        if self.pending.is_empty() {
            self.pending_since = now;
        }
        self.pending.push(rq);
        None
    }

    /// The data of a request has been written.
    pub fn data_done(&mut self, now: Instant, mut rq: Rq, status: Status) -> Option<Next> {
        self.data_in_flight -= 1;
        rq.steps.done();
        self.advance(now, rq, status)
    }

    /// The flush command is to be issued now: if none waits, if one is in flight, or if it pays to wait for data that
    /// will need a flush too, there is none. `defer`: whether data in flight counts.
    pub fn kick(&mut self, now: Instant, defer: bool) -> Option<Rq> {
        let first = self.pending.first()?;
        if defer && self.data_in_flight > 0 && now.since(self.pending_since) < PENDING_FLUSH_DELAY_MAX {
            return None;
        }
        let mut command = self.command.take()?;
        command.become_flush(first, now);
        debug_assert!(self.running.is_empty(), "one flush command at a time");
        std::mem::swap(&mut self.pending, &mut self.running);
        Some(command)
    }

    /// The flush command has ended. Returns those that waited for it: each has [done its step](Self::flush_done), and
    /// the emptied list [comes back](Self::keep).
    pub fn flushed(&mut self, command: Rq) -> Vec<Rq> {
        self.command = Some(command);
        std::mem::take(&mut self.running)
    }

    /// The flush that a request waited for is done.
    pub fn flush_done(&mut self, now: Instant, mut rq: Rq, status: Status) -> Option<Next> {
        rq.steps.done();
        self.advance(now, rq, status)
    }

    /// Keeps the memory of a list for the next flush.
    pub fn keep(&mut self, list: Vec<Rq>) {
        if self.running.capacity() == 0 {
            self.running = list;
        }
    }
}

impl Request {
    /// Makes the request a flush command for the benefit of `first` and others.
    fn become_flush(&mut self, first: &Request, now: Instant) {
        self.op = Op::Flush;
        self.flags = BioFlags::PREFLUSH;
        self.marks = Marks::NONE;
        self.marks.set(Marks::FLUSH_COMMAND);
        self.ctx = first.ctx;
        self.hctx = first.hctx;
        // Without a scheduler it travels on the tag of the first that waits, which needs none meanwhile.
        self.driver_tag = first.driver_tag;
        self.io_context = first.io_context;
        self.cgroup = first.cgroup;
        self.start = now;
        self.issued = Instant::NEVER;
    }
}
