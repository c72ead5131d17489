//! Flush sequencer: the steps of flush and FUA writes, and one flush command shared by many waiters (BL-110 to BL-115,
//! LQ-29 to LQ-31).

use crate::bio::{BioFlags, Op, Status};
use crate::ground::ids::RqId;
use crate::ground::lost::Home;
use crate::ground::time::{Instant, Nanos};
use crate::request::{FlushSteps, Marks, Request, Rq};

/// A flush is delayed while sequenced data is in flight, but at most for this time.
const PENDING_FLUSH_DELAY_MAX: Nanos = Nanos::from_secs(5);

/// Prepares a write for its steps: removes the flags that steps replace.
pub fn begin(rq: &mut Request, steps: FlushSteps, fua: bool) {
    rq.steps = steps;
    let mut flags = rq.flags.without(BioFlags::PREFLUSH).with(BioFlags::SYNC);
    if !fua {
        flags = flags.without(BioFlags::FUA);
    }
    rq.flags = flags;
}

/// What happens to a request after a step.
#[derive(Debug)]
pub enum Next {
    /// Its data is written next.
    Data(Rq),
    /// It has completed.
    End(Rq, Status),
}

/// The sequencer of one queue. There is one flush command at a time, shared by all requests that wait when it is
/// issued.
pub struct FlushQueue {
    _home: Home,
    /// Requests that wait for the next flush command.
    pending: Vec<Rq>,
    /// Since when a request has been waiting in `pending`.
    pending_since: Instant,
    /// Requests that wait for the flush command in flight.
    running: Vec<Rq>,
    data_in_flight: u32,
    /// The flush command while it is not in flight.
    command: Option<Rq>,
}

impl FlushQueue {
    /// A sequencer whose flush command has this id, which corresponds to no tag.
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

    /// Whether a flush command is in flight.
    #[inline]
    pub fn is_flushing(&self) -> bool {
        self.command.is_none()
    }

    /// Counts data on the ordinary path that a flush follows.
    pub fn data_begins(&mut self) {
        self.data_in_flight += 1;
    }

    /// Advances a request to its next step. A request that needs a flush stays here.
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

    /// The flush command to issue now. `None` if no request waits, if one is in flight, or if it should wait for
    /// in-flight data that will need a flush, too (only with `defer`).
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

    /// The flush command has completed. Returns the requests that waited for it: call [`flush_done`](Self::flush_done)
    /// for each, and return the emptied list with [`keep`](Self::keep).
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
    /// Initialises a request as the flush command for `first` and others.
    fn become_flush(&mut self, first: &Request, now: Instant) {
        self.op = Op::Flush;
        self.flags = BioFlags::PREFLUSH;
        self.marks = Marks::NONE;
        self.marks.set(Marks::FLUSH_COMMAND);
        self.ctx = first.ctx;
        self.hctx = first.hctx;
        // Without a scheduler it uses the tag of the first waiter, which does not need it meanwhile.
        self.driver_tag = first.driver_tag;
        self.io_context = first.io_context;
        self.cgroup = first.cgroup;
        self.start = now;
        self.issued = Instant::NEVER;
    }
}
