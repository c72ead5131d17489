//! The requests of one connection, from their headers to their replies.
//!
//! Used by: `nbd::connection`; the program `hoistway-serve`.
//! Tests: `crates/serve/tests/clients.rs`, `crates/serve/tests/event_loop.rs`.

mod begin;
mod end;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hoistway_blk::ground::{Instant, Nanos};
use hoistway_engine::{Buffer, Completion, Errno, Handler, Request as Io};
use hoistway_nbd::{Agreed, Command, Origin, Received, Refusal, Replies, ReplyWriter, Request, Requests, Violation};

use crate::event_loop::ConnectionId;
use crate::export::clients::Client;
use crate::export::exports::LiveExport;
use crate::memory::Account;
use crate::memory::pool::Pool;
use crate::nbd::input::Input;
use crate::nbd::outbox::Outbox;
use crate::server::admission::Admission;
use crate::server::server_state::{ServerLimits, ServerState};
use crate::server::throttled_client::ThrottledClient;

/// The cost of a turn of one client on this thread before others have theirs: see [`Connection::take_cost`](crate::Connection::take_cost).
/// A request costs one, and so does each extent that is looked up, and each of these bytes of data.
const TURN_COST_MAX: u32 = 64;
const BYTES_PER_COST: u64 = 4096;

/// A client that sends no data in the middle of a write for this long is disconnected, because it holds memory.
pub const STALL_MAX: Nanos = Nanos::from_secs(30);
/// Memory for the data of a write is taken in steps of this size, as the data arrives.
const STEP_BYTES: usize = 256 << 10;
/// Resolution of the time of the last data, so that a timer is not set for each piece.
pub const ACTIVITY_STEP: Nanos = Nanos::from_secs(1);

/// What a request takes in the server beside its data: its entries here, in the throttle and in the engine, and the header of its reply.
const REQUEST_BYTES: usize = 1 << 10;
/// Memory for requests and replies is taken for this many at a time.
const REPLIES_RESERVED: u32 = 4;

/// A client that has chosen an export.
pub struct Session {
    /// The export.
    pub export: Arc<LiveExport>,
    /// The client.
    peer: Arc<Client>,
    requests: Requests,
    writer: ReplyWriter,
    has_chunks: bool,
    /// The client of the engine.
    pub client: ThrottledClient,
    /// In-flight requests, by slot.
    slots: Vec<Option<Pending>>,
    free: Vec<u32>,
    in_flight: u32,
    /// Replies that have not been sent completely.
    unsent_replies: u32,
    /// Requests and unsent replies that memory has been taken for, beside their data.
    reserved_replies: u32,
    /// Bytes of received requests that memory has been taken for.
    input_bytes: usize,
    /// Bytes of buffers in use by requests.
    held_bytes: usize,
    /// The write whose data is being received.
    receiving: Option<Receiving>,
    /// The request that is refused once its data has been discarded.
    discarding: Option<Discarding>,
    /// Whether no more requests are taken.
    is_disconnecting: bool,
    /// Whether the next request, or more data of the current one, waits for memory or for room within the limits.
    is_blocked: bool,
    /// Reusable buffers.
    pub pool: Pool,
    /// Requests completed so far.
    pub completed: u64,
    /// The cost of requests taken since others had their turn.
    spent: u32,
    /// The cost of requests that have completed since then.
    completed_cost: u32,
}

/// An in-flight request.
struct Pending {
    request: Request,
    /// When it was completely received.
    began: Instant,
    /// Parts that have not completed.
    parts_left: u32,
    result: Result<(), Errno>,
    /// For a READ with several chunks, its chunks in order.
    chunks: Vec<Chunk>,
}

/// A part of a READ.
struct Chunk {
    offset: u64,
    length: u32,
    /// `None` is a hole; an empty buffer has not been read yet.
    data: Option<Buffer>,
}

struct Receiving {
    request: Request,
    buffer: Buffer,
    filled: usize,
    /// Bytes that memory has been taken for, from the start.
    charged: usize,
    /// When the last data arrived, to within [`ACTIVITY_STEP`].
    active_at: Instant,
}

struct Discarding {
    origin: Origin,
    refusal: Refusal,
    bytes_left: u64,
}

/// The result of parsing received bytes.
pub enum Taken {
    /// They are not complete.
    Nothing,
    /// At least one request, or part of one, was taken.
    Something,
    /// They violate the protocol.
    Violation(Violation),
}

impl Session {
    /// Begins the session.
    ///
    /// # Errors
    /// If the target is smaller than the export.
    pub fn begin(
        admission: &Admission,
        id: ConnectionId,
        export: Arc<LiveExport>,
        agreed: Agreed,
        requests: Requests,
        account: Arc<Account>,
        handler: impl Handler + 'static,
    ) -> Result<Session, Errno> {
        let server = admission.server();
        // One more than is taken: a request refused by the engine would have to be kept.
        let depth = 2 * server.limits.in_flight + 2;
        let client = ThrottledClient::open(Arc::clone(&export), id, depth, handler)?;
        export.counts.connections.fetch_add(1, Relaxed);
        Ok(Session {
            pool: Pool::new(export.disk.engine.buffers(), account),
            export,
            peer: Arc::clone(admission.client()),
            requests,
            writer: ReplyWriter::new(agreed.replies),
            has_chunks: agreed.replies != Replies::Simple,
            client,
            slots: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            unsent_replies: 0,
            reserved_replies: 0,
            input_bytes: 0,
            held_bytes: 0,
            receiving: None,
            discarding: None,
            is_disconnecting: false,
            is_blocked: false,
            completed: 0,
            spent: 0,
            completed_cost: 0,
        })
    }

    // --- limits ---

    /// Whether other connections have to run before its next request.
    pub fn is_turn_over(&self) -> bool {
        self.spent >= TURN_COST_MAX
    }

    /// Begins a new turn. Returns the cost of the last one.
    pub fn take_cost(&mut self) -> u32 {
        std::mem::take(&mut self.spent) + std::mem::take(&mut self.completed_cost)
    }

    /// Whether no more may be taken now.
    pub fn is_full(&self, limits: &ServerLimits, to_send_bytes: usize) -> bool {
        // A request whose data is being received has its room already.
        self.receiving.is_none()
            && (self.outstanding() >= limits.in_flight || self.held_bytes + to_send_bytes >= limits.held_bytes)
    }

    /// Requests that are in flight or whose reply has not been sent.
    fn outstanding(&self) -> u32 {
        self.in_flight + self.unsent_replies
    }

    /// Takes memory for a further request and its reply, beside their data. Returns false if there is none.
    fn reserve_reply(&mut self) -> bool {
        if self.outstanding() < self.reserved_replies {
            return true;
        }
        let is_reserved = self.pool.account().take(REPLIES_RESERVED as usize * REQUEST_BYTES);
        self.reserved_replies += if is_reserved { REPLIES_RESERVED } else { 0 };
        is_reserved
    }

    /// A reply is complete in the outbox.
    fn reply_ends(&mut self, outbox: &mut Outbox) {
        outbox.reply_ends();
        self.unsent_replies += 1;
    }

    /// So many replies have been sent.
    pub fn replies_sent(&mut self, replies: u32, outbox: &mut Outbox) {
        self.unsent_replies -= replies;
        if self.outstanding() == 0 && self.reserved_replies > 0 && self.pool.account().memory().is_short() {
            (self.slots, self.free) = (Vec::new(), Vec::new());
            outbox.shrink();
            self.pool.account().give_back(std::mem::take(&mut self.reserved_replies) as usize * REQUEST_BYTES);
        }
    }

    /// The input keeps this many bytes of memory after a turn.
    pub fn charge_input(&mut self, bytes: usize) {
        match bytes.checked_sub(self.input_bytes) {
            Some(0) => {}
            Some(more) => self.pool.account().take_over_limit(more),
            None => self.pool.account().give_back(self.input_bytes - bytes),
        }
        self.input_bytes = bytes;
    }

    /// Whether no request is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Whether the client or the server has asked to end.
    pub fn is_disconnecting(&self) -> bool {
        self.is_disconnecting
    }

    /// No more requests are taken; those in flight complete.
    pub fn stop_taking(&mut self) {
        self.is_disconnecting = true;
        if let Some(Receiving { buffer, charged, .. }) = self.receiving.take() {
            let (before, behind) = buffer.margins();
            self.held_bytes -= buffer.len();
            let footprint = Buffer::footprint(before + buffer.len() + behind);
            self.pool.account().give_back(footprint - buffer.len() + charged);
        }
        self.discarding = None;
        self.is_blocked = false;
        self.pool.account().stop_waiting();
    }

    /// The server drains: throttled requests are refused, those in flight complete.
    pub fn drain(&mut self, now: Instant, outbox: &mut Outbox) {
        self.stop_taking();
        for Io { token, buffer, .. } in self.client.give_up() {
            self.completed(now, Completion { token, result: Err(Errno::SHUTDOWN), buffer }, outbox);
        }
    }

    // --- receiving ---

    /// Whether it waits for memory or for room within the limits, so that nothing may be received.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// The buffer for the data that is being received.
    pub fn payload_buffer(&mut self) -> &mut [u8] {
        match &mut self.receiving {
            Some(receiving) => &mut receiving.buffer[receiving.filled..receiving.charged],
            None => &mut [],
        }
    }

    /// Takes memory for more data of the current write. Returns whether there is room for any.
    fn charge_memory(&mut self, now: Instant) -> bool {
        let Some(receiving) = &mut self.receiving else { return true };
        let rest = receiving.buffer.len() - receiving.charged;
        if receiving.filled < receiving.charged || rest == 0 {
            return true;
        }
        let step = rest.min(STEP_BYTES);
        // The client does not stall while it waits for memory.
        receiving.active_at = now;
        let is_charged = self.pool.account().take(step);
        if is_charged {
            receiving.charged += step;
        }
        is_charged
    }

    /// Whether the limits allow the data of a request. One request is always accepted.
    fn has_room(&self, limits: &ServerLimits, request: &Request, to_send_bytes: usize) -> bool {
        let held = self.held_bytes + to_send_bytes;
        let has_data = matches!(request.command, Command::Read { .. } | Command::Write { .. });
        held == 0 || !has_data || held + request.length as usize <= limits.held_bytes
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

    /// When the client has to be disconnected, unless more data of its write arrives.
    pub fn write_stall_deadline(&self) -> Instant {
        let receiving = self.receiving.as_ref().filter(|_| !self.is_blocked);
        receiving.map_or(Instant::NEVER, |receiving| receiving.active_at + STALL_MAX)
    }

    /// Takes requests while there are any and there is room for them.
    pub fn take_requests(
        &mut self,
        server: &ServerState,
        now: Instant,
        input: &mut Input,
        outbox: &mut Outbox,
    ) -> Taken {
        let mut taken = Taken::Nothing;
        self.is_blocked = false;
        loop {
            if let Some(discarding) = &mut self.discarding {
                let count = (input.buffered().len() as u64).min(discarding.bytes_left);
                input.consume(count as usize);
                discarding.bytes_left -= count;
                if discarding.bytes_left > 0 {
                    return taken;
                }
                let Discarding { origin, refusal, .. } = *discarding;
                self.discarding = None;
                self.refuse(origin, refusal, outbox);
                taken = Taken::Something;
            }
            if !self.charge_memory(now) {
                self.is_blocked = true;
                return taken;
            }
            if let Some(receiving) = &mut self.receiving {
                let unfilled = &mut receiving.buffer[receiving.filled..receiving.charged];
                receiving.filled += input.move_into(unfilled);
                if receiving.filled < receiving.buffer.len() {
                    if receiving.filled == receiving.charged {
                        continue;
                    }
                    return taken;
                }
                if let Some(Receiving { request, buffer, .. }) = self.receiving.take() {
                    self.begin_write(now, request, buffer);
                }
                taken = Taken::Something;
            }
            if self.is_disconnecting || self.is_turn_over() || self.is_full(&server.limits, outbox.bytes()) {
                return taken;
            }
            let Some(received) = self.requests.read(input.buffered()) else { return taken };
            match received {
                Received::Request(request) => {
                    let has_room = self.has_room(&server.limits, &request, outbox.bytes());
                    // It stays in the input until there is memory for it.
                    if !has_room || !self.begin_request(now, request, outbox) {
                        self.is_blocked = true;
                        return taken;
                    }
                    input.consume(self.requests.header_bytes());
                }
                Received::Refused { origin, refusal, payload_bytes } => {
                    if !self.reserve_reply() {
                        self.is_blocked = true;
                        return taken;
                    }
                    input.consume(self.requests.header_bytes());
                    self.discarding = Some(Discarding { origin, refusal, bytes_left: payload_bytes });
                }
                Received::Disconnect => {
                    self.is_disconnecting = true;
                    return Taken::Something;
                }
                Received::Violation(violation) => return Taken::Violation(violation),
            }
            taken = Taken::Something;
        }
    }

    fn refuse(&mut self, origin: Origin, refusal: Refusal, outbox: &mut Outbox) {
        self.export.counts.completed_at_once(false);
        self.completed += 1;
        self.spent += 1;
        outbox.header(|out| self.writer.refused(origin, refusal, out));
        self.reply_ends(outbox);
    }
}

impl Drop for Session {
    /// Requests in flight end without a reply: the engine's client is dropped with the session.
    fn drop(&mut self) {
        let counts = &self.export.counts;
        counts.connections.fetch_sub(1, Relaxed);
        counts.abandoned(u64::from(self.in_flight));
    }
}

/// The part number of the flush that follows the other parts.
const FINAL_FLUSH: usize = u32::MAX as usize;

/// Whether a request without data has to be durable, which takes a flush after all of its parts.
trait NeedsFinalFlush {
    fn needs_final_flush(&self) -> bool;
}

impl NeedsFinalFlush for Request {
    fn needs_final_flush(&self) -> bool {
        matches!(self.command, Command::Trim { fua: true } | Command::WriteZeroes { fua: true, .. })
    }
}

fn token_of(slot: u32, part: u32) -> u64 {
    u64::from(part) << 32 | u64::from(slot)
}
