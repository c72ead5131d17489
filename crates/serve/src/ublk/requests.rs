//! The requests of a device, from the kernel to the engine and back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hoistway_blk::ground::Instant;
use hoistway_engine::{Completion, Errno, Operation, Request as Io};
use hoistway_ublk::{BadDescriptor, Request, UblkQueue};

use crate::export::clients::Client;
use crate::export::counts::Ended;
use crate::export::exports::LiveExport;
use crate::memory::pool::{DataPosition, Pool};
use crate::server::server_state::ServerState;
use crate::server::throttled_client::ThrottledClient;

/// Maximum bytes that are copied from the kernel in a turn, while other connections wait.
const TURN_BYTES_MAX: usize = 512 << 10;
/// What a request costs of that beside its data.
const REQUEST_COST_BYTES: usize = 4 << 10;

/// The requests of a device. The kernel has their data until there is memory for it.
pub struct Requests {
    export: Arc<LiveExport>,
    /// The device's client entry.
    peer: Arc<Client>,
    pub queue: UblkQueue,
    pub client: ThrottledClient,
    pool: Pool,
    /// In-flight requests by tag.
    pending: Vec<Option<Pending>>,
    in_flight: u32,
    /// Tags of requests that have not begun.
    waiting: VecDeque<u16>,
    /// Bytes of the buffers of in-flight requests.
    held_bytes: usize,
    /// Requests that have completed.
    pub done: u64,
    /// Requests that were refused, and the last of them.
    pub bad: u64,
    pub last_bad: Option<BadDescriptor>,
    /// The cost of what has been done since the last turn, in [`REQUEST_COST_BYTES`].
    pub cost: u32,
}

#[derive(Clone, Copy)]
struct Pending {
    /// When it was taken.
    began: Instant,
    kind: Kind,
    bytes: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Discard,
    Other,
}

impl Requests {
    pub fn new(
        export: Arc<LiveExport>,
        peer: Arc<Client>,
        queue: UblkQueue,
        client: ThrottledClient,
        pool: Pool,
    ) -> Requests {
        export.counts.connections.fetch_add(1, Relaxed);
        Requests {
            export,
            peer,
            pending: vec![None; usize::from(queue.depth())],
            waiting: VecDeque::with_capacity(usize::from(queue.depth())),
            queue,
            client,
            pool,
            in_flight: 0,
            held_bytes: 0,
            done: 0,
            bad: 0,
            last_bad: None,
            cost: 0,
        }
    }

    /// Whether the device has been stopped and all requests have completed.
    pub fn is_finished(&self) -> bool {
        self.queue.is_gone() && self.in_flight == 0
    }

    /// Takes new requests, submits them, and returns completed ones to the kernel. Returns whether there is more to do at once.
    pub fn advance(&mut self, server: &ServerState, now: Instant) -> bool {
        while let Some(tag) = self.queue.take() {
            self.waiting.push_back(tag);
        }
        let is_more = self.begin_waiting(server, now);
        if self.waiting.is_empty() {
            self.pool.account().stop_waiting();
        }
        self.client.submit(server, now);
        let is_all_sent = self.queue.submit();
        self.peer.set_in_flight(self.in_flight + self.waiting.len() as u32);
        is_more || !is_all_sent
    }

    /// Begins waiting requests as far as limits, memory and the turn allow. Returns whether the turn ended it.
    fn begin_waiting(&mut self, server: &ServerState, now: Instant) -> bool {
        let mut turn_left = TURN_BYTES_MAX;
        while let Some(&tag) = self.waiting.front() {
            if turn_left == 0 {
                return true;
            }
            // A completion, the throttle or free memory makes it continue.
            if self.held_bytes >= server.limits.held_bytes || self.client.is_throttled() {
                return false;
            }
            let held_before = self.held_bytes;
            match self.queue.request(tag) {
                Ok(request) if !self.begin(now, tag, request) => return false,
                Ok(_) => {}
                Err(bad) => self.refuse(tag, bad),
            }
            self.waiting.pop_front();
            turn_left = turn_left.saturating_sub(REQUEST_COST_BYTES + self.held_bytes - held_before);
            if self.export.throttle.is_limited() {
                // Submit now, so that at most one request more than the limits allow is taken.
                self.client.submit(server, now);
            }
        }
        false
    }

    fn refuse(&mut self, tag: u16, bad: BadDescriptor) {
        let errno = if matches!(bad, BadDescriptor::Operation(_)) { Errno::OPNOTSUPP } else { Errno::INVAL };
        self.queue.commit(tag, Err(errno.0));
        self.export.counts.completed_at_once(false);
        self.bad += 1;
        self.last_bad = Some(bad);
    }

    /// Begins a request. Returns `false` if there is no memory for it now.
    fn begin(&mut self, now: Instant, tag: u16, request: Request) -> bool {
        let token = u64::from(tag);
        let (kind, bytes, io) = match request {
            Request::Read { offset, bytes } => {
                let Some(buffer) = self.pool.take(self.position(offset, bytes)) else { return false };
                (Kind::Read, bytes, Io::read(offset, buffer, token))
            }
            Request::Write { offset, bytes, durable } => {
                let Some(mut buffer) = self.pool.take(self.position(offset, bytes)) else { return false };
                if self.queue.read_data(tag, &mut buffer).is_err() {
                    // The device has been stopped.
                    self.pool.give_back(buffer);
                    self.queue.commit(tag, Err(Errno::IO.0));
                    self.export.counts.completed_at_once(false);
                    return true;
                }
                (Kind::Write, bytes, Io::new(Operation::Write { durable }, offset, buffer, token))
            }
            Request::Flush => (Kind::Other, 0, Io::flush(token)),
            Request::Discard { offset, bytes } => (Kind::Discard, 0, Io::discard(offset, u64::from(bytes), token)),
            Request::WriteZeroes { offset, bytes, may_unmap } => {
                let operation = Operation::WriteZeroes { bytes: u64::from(bytes), may_unmap, fast_only: false };
                (Kind::Other, 0, Io { operation, offset, ..Io::flush(token) })
            }
        };
        self.export.counts.began();
        self.in_flight += 1;
        self.held_bytes += bytes as usize;
        self.pending[usize::from(tag)] = Some(Pending { began: now, kind, bytes });
        self.client.push(io);
        true
    }

    fn position(&self, offset: u64, bytes: u32) -> DataPosition {
        DataPosition::new(offset, bytes as usize, self.export.block_bytes)
    }

    /// A request has ended.
    pub fn completed(&mut self, now: Instant, completion: Completion) {
        let Completion { token, result, buffer } = completion;
        let tag = token as u16;
        self.client.ended(buffer.len());
        let Some(Pending { began, kind, bytes }) = self.pending[usize::from(tag)].take() else { return };
        self.in_flight -= 1;
        self.held_bytes -= bytes as usize;
        self.cost += 1 + bytes / REQUEST_COST_BYTES as u32;
        let result = match (kind, result) {
            (Kind::Read, Ok(())) => self.queue.write_data(tag, &buffer).map_err(|_| Errno::IO),
            // A discard is a hint, which a target may not support.
            (Kind::Discard, Err(Errno::OPNOTSUPP)) => Ok(()),
            (_, result) => result,
        };
        self.pool.give_back(buffer);
        result.err().into_iter().for_each(|errno| self.export.failures.add(errno));
        self.queue.commit(tag, result.map(|()| bytes).map_err(|errno| errno.0));
        self.done += 1;
        let ended = match kind {
            Kind::Read => Ended::Read(u64::from(bytes)),
            Kind::Write => Ended::Write(u64::from(bytes)),
            Kind::Discard | Kind::Other => Ended::Other,
        };
        self.export.counts.ended(ended, result.is_ok().then(|| now.since(began)));
        if result.is_ok() {
            self.peer.completed(ended);
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.export.counts.connections.fetch_sub(1, Relaxed);
        self.export.counts.abandoned(u64::from(self.in_flight));
    }
}
