//! The requests of one connection: from their headers to their answers.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hoistway_blk::{Instant, SECTOR_BYTES};
use hoistway_engine::{Buffer, Completion, Errno, Handler, Operation, Request as Io};
use hoistway_nbd::{
    Agreed, Command, Extent, Origin, Received, Refusal, Replies, ReplyWriter, Request, Requests, Violation,
};

use crate::gate::Gate;
use crate::input::Input;
use crate::lobby::VisitorId;
use crate::outbox::Outbox;
use crate::pool::Pool;
use crate::served::{Bounds, Ended, Served, Site};

/// Reads of at least so many bytes are answered with holes where there are some: to ask where they are has a price, too.
const READ_WITH_HOLES_BYTES: u64 = 32 << 10;
/// Requests without data may be longer than what the engine takes at a time: 2^32 - 1 sectors.
const PART_BYTES_MAX: u64 = 1 << 40;

/// A client that has chosen an export.
pub struct Session {
    /// Which.
    pub served: Arc<Served>,
    requests: Requests,
    writer: ReplyWriter,
    has_chunks: bool,
    /// The way to the engine.
    pub gate: Gate,
    /// Requests that have not been answered, by slot.
    slots: Vec<Option<Pending>>,
    free: Vec<u32>,
    unanswered: u32,
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
    pub answered: u64,
}

/// A request under way.
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
    /// They cannot be gone on from.
    Violation(Violation),
}

impl Session {
    /// Begins it.
    ///
    /// # Errors
    /// If the target does not have what the export says.
    pub fn begin(
        site: &Site,
        id: VisitorId,
        served: Arc<Served>,
        agreed: Agreed,
        requests: Requests,
        handler: impl Handler + 'static,
    ) -> Result<Session, Errno> {
        // One more than we take: a request that was refused by the engine would have to be kept.
        let depth = 2 * site.bounds.in_flight + 2;
        let gate = Gate::open(site, Arc::clone(&served), id, depth, handler)?;
        served.counts.connections.fetch_add(1, Relaxed);
        Ok(Session {
            served,
            requests,
            writer: ReplyWriter::new(agreed.replies),
            has_chunks: agreed.replies != Replies::Simple,
            gate,
            slots: Vec::new(),
            free: Vec::new(),
            unanswered: 0,
            held_bytes: 0,
            receiving: None,
            dropping: None,
            leaves: false,
            pool: Pool::default(),
            answered: 0,
        })
    }

    // --- bounds ---

    /// Whether nothing more may be taken at present.
    pub fn is_full(&self, bounds: &Bounds, to_send_bytes: usize) -> bool {
        // One whose data is on its way has its room already.
        self.receiving.is_none()
            && (self.unanswered >= bounds.in_flight || self.held_bytes + to_send_bytes >= bounds.held_bytes)
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.unanswered == 0
    }

    /// Whether the client or the server has said that it is the end.
    pub fn is_leaving(&self) -> bool {
        self.leaves
    }

    /// Nothing more comes; what has come is answered.
    pub fn stop_taking(&mut self) {
        self.leaves = true;
        self.receiving = None;
        self.dropping = None;
    }

    /// The server ends: what still waits for its turn is refused, what is under way is answered.
    pub fn leave(&mut self, now: Instant, outbox: &mut Outbox) {
        self.stop_taking();
        for Io { token, buffer, .. } in self.gate.give_up() {
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

    /// So much of it has come.
    pub fn filled(&mut self, count: usize) {
        if let Some(receiving) = &mut self.receiving {
            receiving.filled += count;
        }
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
            if self.leaves || self.is_full(&site.bounds, outbox.bytes()) {
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
        self.answered += 1;
        outbox.header(|out| self.writer.refused(origin, refusal, out));
    }

    // --- beginning ---

    fn begin_request(&mut self, site: &Site, now: Instant, request: Request, outbox: &mut Outbox) {
        let Request { offset, length, .. } = request;
        match request.command {
            Command::Read { unfragmented } => {
                if self.has_chunks && !unfragmented && length >= READ_WITH_HOLES_BYTES {
                    self.begin_read_with_holes(site, now, request, outbox);
                } else {
                    let slot = self.occupy(now, request, 1, Vec::new());
                    self.read_part(slot, 0, offset, length);
                }
            }
            Command::Write { .. } => {
                self.held_bytes += length as usize;
                let buffer = self.pool.take(length as usize);
                self.receiving = Some(Receiving { request, buffer, filled: 0 });
            }
            Command::Flush => {
                let slot = self.occupy(now, request, 1, Vec::new());
                self.gate.push(Io::flush(token_of(slot, 0)));
            }
            Command::Trim { fua } => self.begin_parts(now, request, fua, |bytes| Operation::Discard { bytes }),
            Command::WriteZeroes { fua, no_hole, fast } => self.begin_parts(now, request, fua, |bytes| {
                Operation::WriteZeroes { bytes, may_unmap: !no_hole, fast_only: fast }
            }),
            // A hint: what it names will be read when it is read. Whether it exists has been checked.
            Command::Cache => {
                self.served.counts.at_once(true);
                self.answered += 1;
                outbox.header(|out| self.writer.done(request.origin(), out));
            }
            Command::BlockStatus { one } => self.answer_block_status(site, request, one, outbox),
        }
    }

    fn begin_write(&mut self, now: Instant, request: Request, buffer: Buffer) {
        let durable = matches!(request.command, Command::Write { fua: true });
        let slot = self.occupy(now, request, 1, Vec::new());
        let operation = Operation::Write { durable };
        self.gate.push(Io { operation, offset: request.offset, buffer, token: token_of(slot, 0) });
    }

    /// Without data, and perhaps longer than the engine takes at a time. What has to be durable is followed by a flush, when
    /// all of it has ended.
    fn begin_parts(&mut self, now: Instant, request: Request, fua: bool, operation: impl Fn(u64) -> Operation) {
        let Request { offset, length, .. } = request;
        let parts = length.div_ceil(PART_BYTES_MAX) as u32;
        let slot = self.occupy(now, request, parts + u32::from(fua), Vec::new());
        for part in 0..u64::from(parts) {
            let begin = part * PART_BYTES_MAX;
            let bytes = (length - begin).min(PART_BYTES_MAX);
            let token = token_of(slot, part as u32);
            self.gate.push(Io { operation: operation(bytes), offset: offset + begin, buffer: Buffer::EMPTY, token });
        }
    }

    fn read_part(&mut self, slot: u32, part: u32, offset: u64, length: u64) {
        self.held_bytes += length as usize;
        let buffer = self.pool.take(length as usize);
        self.gate.push(Io::read(offset, buffer, token_of(slot, part)));
    }

    fn begin_read_with_holes(&mut self, site: &Site, now: Instant, request: Request, outbox: &mut Outbox) {
        let extents = self.extents(site, request).unwrap_or_default();
        let mut chunks = Vec::new();
        if extents.iter().any(|extent| extent.hole) {
            let mut offset = request.offset;
            for extent in extents {
                let data = (!extent.hole).then(Buffer::default);
                // A part of a request, so it fits.
                chunks.push(Chunk { offset, length: extent.length as u32, data });
                offset += extent.length;
            }
        }
        let parts: Vec<_> = match chunks.is_empty() {
            true => vec![(0, request.offset, request.length)],
            false => {
                let data = chunks.iter().enumerate().filter(|(_, chunk)| chunk.data.is_some());
                data.map(|(at, chunk)| (at as u32, chunk.offset, u64::from(chunk.length))).collect()
            }
        };
        let slot = self.occupy(now, request, parts.len() as u32, chunks);
        for &(part, offset, length) in &parts {
            self.read_part(slot, part, offset, length);
        }
        if parts.is_empty() {
            self.finish(now, slot, None, outbox);
        }
    }

    fn answer_block_status(&mut self, site: &Site, request: Request, one: bool, outbox: &mut Outbox) {
        match self.extents(site, request) {
            Ok(extents) => {
                self.served.counts.at_once(true);
                self.answered += 1;
                let (origin, length) = (request.origin(), request.length);
                outbox.header(|out| self.writer.block_status(origin, length, one, extents, out));
            }
            Err(error) => {
                let refusal = Refusal::from_errno(error.raw_os_error().unwrap_or(Errno::IO.0));
                self.refuse(request.origin(), refusal, outbox);
            }
        }
    }

    /// Data and holes of a range, in order and without gaps.
    fn extents(&self, site: &Site, request: Request) -> std::io::Result<Vec<Extent>> {
        let Request { offset, length, .. } = request;
        let extents = self.served.on(&site.engine)?.extents(offset..offset + length)?;
        let extent = |extent: hoistway_engine::Extent| {
            let length = extent.sectors * SECTOR_BYTES;
            Extent { length, hole: extent.is_hole, zero: extent.is_hole }
        };
        Ok(extents.into_iter().map(extent).collect())
    }

    fn occupy(&mut self, now: Instant, request: Request, parts: u32, chunks: Vec<Chunk>) -> u32 {
        self.unanswered += 1;
        self.served.counts.began();
        let pending = Pending { request, began: now, left: parts, result: Ok(()), chunks };
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(pending);
                slot
            }
            None => {
                self.slots.push(Some(pending));
                self.slots.len() as u32 - 1
            }
        }
    }

    // --- ending ---

    /// A part of a request has ended.
    pub fn completed(&mut self, now: Instant, completion: Completion, outbox: &mut Outbox) {
        let Completion { token, result, buffer } = completion;
        let (slot, part) = (token as u32, (token >> 32) as usize);
        let Some(pending) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        self.held_bytes -= buffer.len();
        pending.left -= 1;
        // A trim is a hint, which a target may be unable to take.
        let is_hint = matches!(pending.request.command, Command::Trim { .. }) && result == Err(Errno::OPNOTSUPP);
        pending.result = pending.result.and(if is_hint { Ok(()) } else { result });
        let mut whole = None;
        match pending.chunks.get_mut(part) {
            Some(chunk) => chunk.data = Some(buffer),
            None => whole = Some(buffer),
        }
        match pending.left {
            0 => self.finish(now, slot, whole, outbox),
            // What remains is the flush of what has to be durable.
            1 if pending.request.flushes_behind() && part != FLUSH_BEHIND => {
                if pending.result.is_ok() {
                    self.gate.push(Io::flush(token_of(slot, FLUSH_BEHIND as u32)));
                } else {
                    self.finish(now, slot, whole, outbox);
                }
            }
            _ => {}
        }
    }

    /// All parts of a request have ended: it is answered.
    fn finish(&mut self, now: Instant, slot: u32, whole: Option<Buffer>, outbox: &mut Outbox) {
        let Some(Pending { request, began, result, chunks, .. }) = self.slots[slot as usize].take() else { return };
        self.free.push(slot);
        self.unanswered -= 1;
        self.answered += 1;
        self.served.counts.ended(kind(&request), result.is_ok().then(|| now.since(began)));
        let (origin, writer) = (request.origin(), self.writer);
        if let Err(errno) = result {
            outbox.header(|out| writer.refused(origin, Refusal::from_errno(errno.0), out));
            whole.into_iter().chain(chunks.into_iter().filter_map(|it| it.data)).for_each(|it| self.pool.give_back(it));
            return;
        }
        if !matches!(request.command, Command::Read { .. }) {
            outbox.header(|out| writer.done(origin, out));
            whole.into_iter().for_each(|buffer| self.pool.give_back(buffer));
            return;
        }
        if let Some(buffer) = whole {
            outbox.header(|out| writer.data_header(origin, request.offset, request.length as u32, true, out));
            outbox.data(buffer);
        }
        let last = chunks.len().saturating_sub(1);
        for (at, Chunk { offset, length, data }) in chunks.into_iter().enumerate() {
            match data {
                Some(buffer) => {
                    outbox.header(|out| writer.data_header(origin, offset, length, at == last, out));
                    outbox.data(buffer);
                }
                None => outbox.header(|out| writer.hole(origin, offset, length, at == last, out)),
            }
        }
    }
}

impl Drop for Session {
    /// What is under way ends without us: with the session goes the engine's client.
    fn drop(&mut self) {
        let counts = &self.served.counts;
        counts.connections.fetch_sub(1, Relaxed);
        counts.abandoned(u64::from(self.unanswered));
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

/// What of a request is counted.
fn kind(request: &Request) -> Ended {
    match request.command {
        Command::Read { .. } => Ended::Read(request.length),
        Command::Write { .. } => Ended::Write(request.length),
        _ => Ended::Other,
    }
}
