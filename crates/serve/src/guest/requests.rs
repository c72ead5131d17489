//! The requests of a guest, from its rings to the engine and back.

use std::sync::Arc;

use hoistway_blk::ground::{Instant, SECTOR_BYTES};
use hoistway_engine::{Completion, Errno, Operation, Request as Io};
use hoistway_vhost::{Chain, Device, Head, Range, Request, Status, Taken};

use crate::export::clients::Client;
use crate::export::counts::Ended;
use crate::export::exports::LiveExport;
use crate::memory::pool::Pool;
use crate::server::server_state::ServerState;
use crate::server::throttled_client::ThrottledClient;

/// Maximum heads and descriptors taken from all rings in a turn, while other connections wait. A typical request has three, a
/// hostile one up to a thousand.
const TURN_COST_MAX: usize = 256;
/// Heads, descriptors and bytes that cost one: see [`Connection::take_cost`](crate::Connection::take_cost).
const DESCRIPTORS_PER_COST: u32 = 4;
const BYTES_PER_COST: u32 = 4096;
/// The part of a request that is the flush after the others.
const FINAL_FLUSH: u64 = 1 << 32;
/// The flush that no request asked for.
const OWN_FLUSH: u64 = u64::MAX;
/// Where the data of a write begins.
const HEADER_BYTES: u64 = 16;

/// A guest's disk, and its in-flight requests.
pub struct Requests {
    export: Arc<LiveExport>,
    /// The guest's client entry.
    peer: Arc<Client>,
    pub device: Device,
    pub client: ThrottledClient,
    slots: Vec<Slot>,
    free: Vec<u32>,
    held_bytes: usize,
    pool: Pool,
    /// The ring that is read first, in rotation.
    first_ring: u16,
    /// No more requests are returned: the guest has disconnected, or another process will serve it.
    pub is_gone: bool,
    /// The result of the flush that no request asked for.
    pub own_flush: Option<Result<(), Errno>>,
    pub completed: u64,
    pub malformed: u64,
    /// The cost of what has been done since the last turn.
    pub cost: u32,
}

/// An in-flight request. Its allocations are reused.
#[derive(Default)]
struct Slot {
    chain: Chain,
    pending: Option<Pending>,
}

#[derive(Clone, Copy)]
struct Pending {
    head: Head,
    /// When it was taken.
    began: Instant,
    kind: Kind,
    bytes: u32,
    /// Whether it must be durable when it completes, which takes a flush.
    needs_final_flush: bool,
    /// Parts that have not completed.
    parts_left: u32,
    result: Result<(), Errno>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Flush,
    Discard,
    WriteZeroes,
}

impl Requests {
    pub fn new(
        export: Arc<LiveExport>,
        peer: Arc<Client>,
        device: Device,
        client: ThrottledClient,
        pool: Pool,
    ) -> Self {
        Requests {
            export,
            peer,
            device,
            client,
            slots: Vec::new(),
            free: Vec::new(),
            held_bytes: 0,
            pool,
            first_ring: 0,
            is_gone: false,
            own_flush: None,
            completed: 0,
            malformed: 0,
            cost: 0,
        }
    }

    /// In-flight requests.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether nothing more may be taken now; a completion makes room.
    fn is_full(&self, server: &ServerState) -> bool {
        self.in_flight() >= server.limits.in_flight as usize
            || self.held_bytes >= server.limits.held_bytes
            || (self.held_bytes > 0 && !self.pool.account().is_within())
            || self.client.is_throttled()
    }

    // --- taking ---

    /// Submits what is in the rings, and signals the driver about returned requests. Returns whether there is more.
    pub fn advance(&mut self, server: &ServerState, now: Instant, say: &dyn Fn(&str)) -> bool {
        let rings = self.device.rings().len() as u16;
        let (mut turn_left, mut is_more) = (TURN_COST_MAX, false);
        for ring in 0..rings {
            is_more |= self.take_from_ring(server, now, (ring + self.first_ring) % rings, &mut turn_left, say);
        }
        self.first_ring = (self.first_ring + 1) % rings.max(1);
        self.client.submit(server, now);
        self.device.notify_driver();
        is_more
    }

    /// Whether a ring has new requests. If the worker is about to sleep, the driver has to kick from now on.
    pub fn poll(&mut self, server: &ServerState, is_about_to_sleep: bool) -> bool {
        !self.is_full(server) && self.device.has_more(is_about_to_sleep)
    }

    fn take_from_ring(
        &mut self,
        server: &ServerState,
        now: Instant,
        ring: u16,
        turn_left: &mut usize,
        say: &dyn Fn(&str),
    ) -> bool {
        if !self.device.may_take(ring) {
            return false;
        }
        self.device.suppress_kicks(ring);
        while *turn_left > 0 {
            if self.is_full(server) {
                return false;
            }
            let slot = self.free_slot();
            let chain = &mut self.slots[slot as usize].chain;
            let taken = self.device.take(ring, chain);
            let cost = 1 + chain.descriptors();
            match taken {
                Taken::Request(head, request) => {
                    self.free.pop();
                    self.begin(now, slot, head, request);
                    if self.export.throttle.is_limited() {
                        // Submit now, so that at most one request more than a turn allows is taken.
                        self.client.submit(server, now);
                    }
                }
                Taken::Completed(status) => {
                    self.completed += 1;
                    self.export.counts.completed_at_once(status == Status::Ok);
                }
                Taken::NoStatus => {
                    self.malformed += 1;
                    self.export.counts.completed_at_once(false);
                    if self.malformed == 1 {
                        say("returned a request without a status descriptor (further ones are not logged)");
                    }
                }
                Taken::Broken(broken) => {
                    say(&format!("queue {ring}: {broken}; queue stopped"));
                    return false;
                }
                // Kicks are off until the worker sleeps: see `poll`.
                Taken::Nothing => return false,
            }
            *turn_left = turn_left.saturating_sub(cost);
            self.cost += 1 + cost as u32 / DESCRIPTORS_PER_COST;
        }
        true
    }

    /// Returns a free slot without occupying it.
    fn free_slot(&mut self) -> u32 {
        if self.free.is_empty() {
            self.free.push(self.slots.len() as u32);
            self.slots.push(Slot::default());
        }
        self.free[self.free.len() - 1]
    }

    fn begin(&mut self, now: Instant, slot: u32, head: Head, request: Request) {
        let is_write_back = self.device.is_write_back();
        let (token, chain) = (u64::from(slot), &self.slots[slot as usize].chain);
        self.export.counts.began();
        let mut pending = Pending {
            head,
            began: now,
            kind: Kind::Flush,
            bytes: 0,
            needs_final_flush: false,
            parts_left: 1,
            result: Ok(()),
        };
        match request {
            Request::Read { offset, bytes } => {
                (pending.kind, pending.bytes) = (Kind::Read, bytes);
                self.held_bytes += bytes as usize;
                self.client.push(Io::read(offset, self.pool.take_over_limit(bytes as usize), token));
            }
            Request::Write { offset, bytes } => {
                (pending.kind, pending.bytes) = (Kind::Write, bytes);
                let mut buffer = self.pool.take_over_limit(bytes as usize);
                if chain.gather(self.device.memory(), HEADER_BYTES, &mut buffer) {
                    self.held_bytes += bytes as usize;
                    let operation = Operation::Write { durable: !is_write_back };
                    self.client.push(Io::new(operation, offset, buffer, token));
                } else {
                    self.pool.give_back(buffer);
                    (pending.parts_left, pending.result) = (0, Err(Errno::INVAL));
                }
            }
            // With write-through, completed writes are durable already.
            Request::Flush if !is_write_back => pending.parts_left = 0,
            Request::Flush => self.client.push(Io::flush(token)),
            Request::Discard(ranges) => {
                pending.kind = Kind::Discard;
                self.begin_ranges(&mut pending, &ranges, token, |range| Operation::Discard { bytes: bytes_of(range) });
            }
            Request::WriteZeroes(ranges) => {
                pending.kind = Kind::WriteZeroes;
                self.begin_ranges(&mut pending, &ranges, token, |range| Operation::WriteZeroes {
                    bytes: bytes_of(range),
                    may_unmap: range.may_unmap,
                    fast_only: false,
                });
            }
            // The device model has completed it already.
            Request::Id => pending.parts_left = 0,
        }
        self.slots[slot as usize].pending = Some(pending);
        if pending.parts_left == 0 {
            self.finish(now, slot, &[]);
        }
    }

    fn begin_ranges(
        &mut self,
        pending: &mut Pending,
        ranges: &[Range],
        token: u64,
        operation: impl Fn(&Range) -> Operation,
    ) {
        let ranges = ranges.iter().filter(|range| range.sectors > 0);
        pending.parts_left = 0;
        for range in ranges {
            pending.parts_left += 1;
            let offset = range.sector * SECTOR_BYTES;
            self.client.push(Io { operation: operation(range), offset, ..Io::flush(token) });
        }
        pending.needs_final_flush = pending.parts_left > 0 && !self.device.is_write_back();
    }

    /// Flushes completed writes, although no request asks for it.
    pub fn begin_own_flush(&mut self, server: &ServerState, now: Instant) {
        self.own_flush = None;
        self.client.push(Io::flush(OWN_FLUSH));
        self.client.submit(server, now);
    }

    // --- ending ---

    /// A part of a request has ended.
    pub fn completed(&mut self, now: Instant, completion: Completion) {
        let Completion { token, result, buffer } = completion;
        self.client.ended(buffer.len());
        if token == OWN_FLUSH {
            self.own_flush = Some(result);
            return;
        }
        let slot = token as u32;
        self.held_bytes -= buffer.len();
        let Some(pending) = self.slots.get_mut(slot as usize).and_then(|slot| slot.pending.as_mut()) else { return };
        pending.parts_left -= 1;
        // A discard is a hint, which a target may not support.
        let is_hint = pending.kind == Kind::Discard && result == Err(Errno::OPNOTSUPP);
        pending.result = pending.result.and(if is_hint { Ok(()) } else { result });
        if pending.parts_left > 0 {
            return;
        }
        if pending.needs_final_flush && pending.result.is_ok() {
            (pending.needs_final_flush, pending.parts_left) = (false, 1);
            self.client.push(Io::flush(token | FINAL_FLUSH));
            return;
        }
        let has_data = pending.kind == Kind::Read && pending.result.is_ok();
        self.finish(now, slot, if has_data { &buffer } else { &[] });
        self.pool.give_back(buffer);
    }

    /// All parts have ended.
    fn finish(&mut self, now: Instant, slot: u32, data: &[u8]) {
        let Slot { chain, pending } = &mut self.slots[slot as usize];
        let Some(Pending { head, began, kind, bytes, result, .. }) = pending.take() else { return };
        self.free.push(slot);
        self.cost += 1 + bytes / BYTES_PER_COST;
        if self.is_gone {
            self.export.counts.abandoned(1);
            self.device.forget(head);
            return;
        }
        let status = if result.is_ok() { Status::Ok } else { Status::IoError };
        result.err().into_iter().for_each(|errno| self.export.failures.add(errno));
        // A ring that can no longer be written is stopped.
        let status = self.device.finish(head, chain, status, data).unwrap_or(Status::IoError);
        self.completed += 1;
        let ended = match kind {
            Kind::Read => Ended::Read(u64::from(bytes)),
            Kind::Write => Ended::Write(u64::from(bytes)),
            Kind::Flush | Kind::Discard | Kind::WriteZeroes => Ended::Other,
        };
        self.export.counts.ended(ended, (status == Status::Ok).then(|| now.since(began)));
        if status == Status::Ok {
            self.peer.completed(ended);
        }
    }

    /// No more requests are taken, and throttled ones are not submitted: the next server finds them in the in-flight record.
    pub fn stop_taking(&mut self) {
        self.device.stop_all();
        for Io { token, buffer, .. } in self.client.give_up() {
            self.held_bytes -= buffer.len();
            let Some(slot) = self.slots.get_mut(token as u32 as usize) else { continue };
            let Some(pending) = slot.pending.as_mut() else { continue };
            pending.parts_left -= 1;
            pending.needs_final_flush = false;
            if pending.parts_left == 0 {
                self.export.counts.abandoned(1);
                self.device.forget(pending.head);
                slot.pending = None;
                self.free.push(token as u32);
            }
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.export.counts.abandoned(self.in_flight() as u64);
    }
}

fn bytes_of(range: &Range) -> u64 {
    u64::from(range.sectors) * SECTOR_BYTES
}
