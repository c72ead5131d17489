//! The requests of one connection, from their headers to their replies.

mod begin;
mod end;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hoistway_blk::ground::{Instant, Nanos};
use hoistway_engine::{Buffer, Completion, Errno, Handler, Request as Io};
use hoistway_nbd::{Agreed, Command, Origin, Received, Refusal, Replies, ReplyWriter, Request, Requests, Violation};

use crate::event_loop::ConnectionId;
use crate::input::Input;
use crate::outbox::Outbox;
use crate::pool::Pool;
use crate::served::{Bounds, Served, Site};
use crate::throttled_client::ThrottledClient;

/// So much may be done for a client on this thread before others have their turn: requests that are answered as they come, each of
/// which takes less than a microsecond, and parts of a file that are looked for, each of which takes one or two.
const TURN: u32 = 64;

/// A client that has begun to send a write and sends no more of it for this long is disconnected: it holds memory.
pub const STALL_MAX: Nanos = Nanos::from_secs(30);
/// How exactly the time of the last data is kept, so that a timer is not set for each piece.
const ACTIVITY_STEP: Nanos = Nanos::from_secs(1);

/// A client that has chosen an export.
pub struct Session {
    /// Which.
    pub served: Arc<Served>,
    requests: Requests,
    writer: ReplyWriter,
    has_chunks: bool,
    /// The way to the engine.
    pub client: ThrottledClient,
    /// In-flight requests, by slot.
    slots: Vec<Option<Pending>>,
    free: Vec<u32>,
    in_flight: u32,
    /// Bytes of buffers that requests have.
    held_bytes: usize,
    /// The write whose data is being received.
    receiving: Option<Receiving>,
    /// The request that is refused when its data has been dropped.
    dropping: Option<Dropping>,
    /// Nothing more is taken.
    leaves: bool,
    /// Buffers to be used again.
    pub pool: Pool,
    /// Requests so far.
    pub completed: u64,
    /// What this thread has done for it without the engine since others had their turn: see [`TURN`].
    spent: u32,
}

/// An in-flight request.
struct Pending {
    request: Request,
    /// When it had come whole.
    began: Instant,
    /// Parts that have not ended.
    left: u32,
    result: Result<(), Errno>,
    /// Of a READ that is more than one chunk, its chunks in order.
    chunks: Vec<Chunk>,
}

/// A part of a READ.
struct Chunk {
    offset: u64,
    length: u32,
    /// `None` is a hole, an empty one has not been read yet.
    data: Option<Buffer>,
}

struct Receiving {
    request: Request,
    buffer: Buffer,
    filled: usize,
    /// When data came last, within [`ACTIVITY_STEP`].
    active_at: Instant,
}

struct Dropping {
    origin: Origin,
    refusal: Refusal,
    left: u64,
}

/// What was made of received bytes.
pub enum Taken {
    /// They are not enough for anything.
    Nothing,
    /// At least one request, or a part of one.
    Something,
    /// They violate the protocol.
    Violation(Violation),
}

impl Session {
    /// Begins it.
    ///
    /// # Errors
    /// If the target does not have what the export says.
    pub fn begin(
        site: &Site,
        id: ConnectionId,
        served: Arc<Served>,
        agreed: Agreed,
        requests: Requests,
        handler: impl Handler + 'static,
    ) -> Result<Session, Errno> {
        // One more than we take: a request that was refused by the engine would have to be kept.
        let depth = 2 * site.bounds.in_flight + 2;
        let client = ThrottledClient::open(site, Arc::clone(&served), id, depth, handler)?;
        served.counts.connections.fetch_add(1, Relaxed);
        Ok(Session {
            served,
            requests,
            writer: ReplyWriter::new(agreed.replies),
            has_chunks: agreed.replies != Replies::Simple,
            client,
            slots: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            held_bytes: 0,
            receiving: None,
            dropping: None,
            leaves: false,
            pool: Pool::new(site.engine.buffers()),
            completed: 0,
            spent: 0,
        })
    }

    // --- bounds ---

    /// Whether other connections have to run before its next request; reported once.
    pub fn has_had_its_turn(&mut self) -> bool {
        let has_had = self.spent >= TURN;
        if has_had {
            self.spent = 0;
        }
        has_had
    }

    /// Whether nothing more may be taken at present.
    pub fn is_full(&self, bounds: &Bounds, to_send_bytes: usize) -> bool {
        // One whose data is on its way has its room already.
        self.receiving.is_none()
            && (self.in_flight >= bounds.in_flight || self.held_bytes + to_send_bytes >= bounds.held_bytes)
    }

    /// Whether no request is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Whether the client or the server has said that it is the end.
    pub fn is_leaving(&self) -> bool {
        self.leaves
    }

    /// No more requests are taken; in-flight ones complete.
    pub fn stop_taking(&mut self) {
        self.leaves = true;
        self.receiving = None;
        self.dropping = None;
    }

    /// The server drains: throttled requests are refused, in-flight ones complete.
    pub fn leave(&mut self, now: Instant, outbox: &mut Outbox) {
        self.stop_taking();
        for Io { token, buffer, .. } in self.client.give_up() {
            self.completed(now, Completion { token, result: Err(Errno::SHUTDOWN), buffer }, outbox);
        }
    }

    // --- receiving ---

    /// Where the data that is being received goes.
    pub fn wanted(&mut self) -> &mut [u8] {
        match &mut self.receiving {
            Some(receiving) => &mut receiving.buffer[receiving.filled..],
            None => &mut [],
        }
    }

    /// `count` bytes of it have been received.
    pub fn filled(&mut self, now: Instant, count: usize) {
        if let Some(receiving) = &mut self.receiving {
            receiving.filled += count;
            if count > 0 && receiving.active_at + ACTIVITY_STEP <= now {
                receiving.active_at = now;
            }
        }
    }

    /// When the client has to be disconnected, unless more of its write has come.
    pub fn stalls_at(&self) -> Instant {
        self.receiving.as_ref().map_or(Instant::NEVER, |receiving| receiving.active_at + STALL_MAX)
    }

    /// Takes requests, as long as there are any and there is room for them.
    pub fn take(&mut self, site: &Site, now: Instant, input: &mut Input, outbox: &mut Outbox) -> Taken {
        let mut taken = Taken::Nothing;
        loop {
            if let Some(dropping) = &mut self.dropping {
                let now = (input.held().len() as u64).min(dropping.left);
                input.forget(now as usize);
                dropping.left -= now;
                if dropping.left > 0 {
                    return taken;
                }
                let Dropping { origin, refusal, .. } = *dropping;
                self.dropping = None;
                self.refuse(origin, refusal, outbox);
                taken = Taken::Something;
            }
            if let Some(receiving) = &mut self.receiving {
                let wanted = &mut receiving.buffer[receiving.filled..];
                receiving.filled += input.move_into(wanted);
                if receiving.filled < receiving.buffer.len() {
                    return taken;
                }
                if let Some(Receiving { request, buffer, .. }) = self.receiving.take() {
                    self.begin_write(now, request, buffer);
                }
                taken = Taken::Something;
            }
            if self.leaves || self.spent >= TURN || self.is_full(&site.bounds, outbox.bytes()) {
                return taken;
            }
            let Some(received) = self.requests.read(input.held()) else { return taken };
            taken = Taken::Something;
            match received {
                Received::Request(request) => {
                    input.forget(self.requests.header_bytes());
                    self.begin_request(site, now, request, outbox);
                }
                Received::Refused { origin, refusal, payload_bytes } => {
                    input.forget(self.requests.header_bytes());
                    self.dropping = Some(Dropping { origin, refusal, left: payload_bytes });
                }
                Received::Disconnect => {
                    self.leaves = true;
                    return taken;
                }
                Received::Violation(violation) => return Taken::Violation(violation),
            }
        }
    }

    fn refuse(&mut self, origin: Origin, refusal: Refusal, outbox: &mut Outbox) {
        self.served.counts.at_once(false);
        self.completed += 1;
        self.spent += 1;
        outbox.header(|out| self.writer.refused(origin, refusal, out));
    }
}

impl Drop for Session {
    /// In-flight requests end without a reply: the engine's client is dropped with the session.
    fn drop(&mut self) {
        let counts = &self.served.counts;
        counts.connections.fetch_sub(1, Relaxed);
        counts.abandoned(u64::from(self.in_flight));
    }
}

/// The part that is the flush behind the others.
const FLUSH_BEHIND: usize = u32::MAX as usize;

/// Whether a request without data has to be durable.
trait FlushesBehind {
    fn flushes_behind(&self) -> bool;
}

impl FlushesBehind for Request {
    fn flushes_behind(&self) -> bool {
        matches!(self.command, Command::Trim { fua: true } | Command::WriteZeroes { fua: true, .. })
    }
}

fn token_of(slot: u32, part: u32) -> u64 {
    u64::from(part) << 32 | u64::from(slot)
}
