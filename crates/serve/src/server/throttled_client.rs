//! The engine's client of a connection, behind the limits and the share of its export.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hoistway_blk::bio::Op;
use hoistway_blk::ground::Instant;
use hoistway_engine::{Client, Context, Errno, Handler, Operation, Request};

use crate::event_loop::ConnectionId;
use crate::export::exports::LiveExport;
use crate::export::shares::{ShareId, Shares, cost};
use crate::server::server_state::ServerState;

/// The engine's client of a connection, behind the limits and the share of its export.
pub struct ThrottledClient {
    export: Arc<LiveExport>,
    id: ConnectionId,
    client: Client,
    /// The I/O context of this client in the engine.
    context: Context,
    /// Requests that have been pushed.
    batch: Vec<Request>,
    /// Requests that the throttle allows.
    allowed: Vec<Request>,
    /// Requests to be submitted to the engine.
    ready: Vec<Request>,
    /// Throttled requests by number.
    throttled: VecDeque<(u16, Request)>,
    last_number: u16,
    shares: Arc<Shares>,
    member: ShareId,
    /// Requests that wait for the share of the export, by number.
    waiting_for_share: VecDeque<(u16, Request)>,
    /// The cost of requests in flight that count for the share, and of those that have ended since the last turn.
    shared_cost: u64,
    ended_cost: u64,
    /// When the next throttled request of the export is allowed.
    release_at: Instant,
}

impl ThrottledClient {
    /// A client of an export for a connection, on its worker, with at most `depth` requests in flight.
    ///
    /// # Errors
    /// If the disk does not have the export's range, or the worker is another disk's.
    pub fn open(
        export: Arc<LiveExport>,
        id: ConnectionId,
        depth: u32,
        handler: impl Handler + 'static,
    ) -> Result<ThrottledClient, Errno> {
        let context = export.context();
        let worker = export.disk.index_of_worker(id.worker).ok_or(Errno::INVAL)?;
        let client = export.part()?.client_on(worker, context, depth, handler);
        let shares = Arc::clone(&export.disk.shares);
        let member = shares.join(&export.name);
        Ok(ThrottledClient {
            export,
            id,
            client,
            context,
            batch: Vec::new(),
            allowed: Vec::new(),
            ready: Vec::new(),
            throttled: VecDeque::new(),
            last_number: 0,
            shares,
            member,
            waiting_for_share: VecDeque::new(),
            shared_cost: 0,
            ended_cost: 0,
            release_at: Instant::NEVER,
        })
    }

    /// Adds a request, to be sent with the next [`submit`](Self::submit).
    #[inline]
    pub fn push(&mut self, request: Request) {
        self.batch.push(request);
    }

    /// A request with this many bytes of data has completed.
    #[inline]
    pub fn ended(&mut self, bytes: usize) {
        self.ended_cost = (self.ended_cost + cost(bytes)).min(self.shared_cost);
    }

    /// Submits the pushed requests that the limits and the share of the export allow.
    pub fn submit(&mut self, server: &ServerState, now: Instant) {
        if !self.batch.is_empty() {
            if self.export.throttle.is_limited() {
                self.throttle(server, now);
            } else {
                self.allowed.append(&mut self.batch);
            }
        }
        if self.ended_cost > 0 || !self.waiting_for_share.is_empty() || !self.allowed.is_empty() && self.shares.is_on()
        {
            self.share(now);
        } else {
            self.ready.append(&mut self.allowed);
        }
        // Requests that the engine has no room for stay until others have completed. If the engine has stopped, they are dropped with the
        // connection.
        if !self.ready.is_empty() {
            let _ = self.client.submit_all(&mut self.ready);
        }
    }

    /// Sorts the allowed requests into those that go now and those that wait for the share of the export.
    fn share(&mut self, now: Instant) {
        let mut shares = self.shares.locked();
        let ended = std::mem::take(&mut self.ended_cost);
        self.shared_cost -= ended;
        shares.ended(self.member, ended);
        if !self.allowed.is_empty() {
            shares.mark_busy(now, self.member, self.export.settings().weight);
        }
        for request in self.allowed.drain(..) {
            self.last_number = self.last_number.wrapping_add(1);
            let cost = cost(request.buffer.len());
            if shares.admit(self.member, self.id, self.last_number, cost) {
                self.shared_cost += cost;
                self.ready.push(request);
            } else {
                self.waiting_for_share.push_back((self.last_number, request));
            }
        }
        for number in shares.release(self.id) {
            let index = self.waiting_for_share.iter().position(|&(waiting, _)| waiting == number);
            if let Some((_, request)) = index.and_then(|index| self.waiting_for_share.remove(index)) {
                self.shared_cost += cost(request.buffer.len());
                self.ready.push(request);
            }
        }
    }

    /// Submits this connection's throttled requests that are now allowed and notifies other connections that have some. Picks up
    /// changed settings of the export.
    pub fn release(&mut self, server: &ServerState, now: Instant) {
        let context = self.export.context();
        if context != self.context {
            self.context = context;
            self.client.set_context(context);
        }
        if !self.throttled.is_empty() {
            self.take_released(server, now);
        }
    }

    /// When [`release`](Self::release) has to be called next.
    #[must_use]
    pub fn release_at(&self) -> Instant {
        self.release_at
    }

    /// Whether any request is throttled.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        !self.throttled.is_empty()
    }

    /// Returns the throttled requests, which will not be submitted. Those that wait for the share of the export are.
    pub fn give_up(&mut self) -> impl Iterator<Item = Request> + use<> {
        self.export.counts.held_back.fetch_sub(self.throttled.len() as u64, Relaxed);
        self.release_at = Instant::NEVER;
        self.ready.extend(self.waiting_for_share.drain(..).map(|(_, request)| request));
        let _ = self.client.submit_all(&mut self.ready);
        std::mem::take(&mut self.throttled).into_iter().map(|(_, request)| request)
    }

    /// Sorts the pushed requests into allowed and throttled ones.
    fn throttle(&mut self, server: &ServerState, now: Instant) {
        for request in self.batch.drain(..) {
            let op = match request.operation {
                Operation::Read => Op::Read,
                Operation::Write { .. } => Op::Write,
                Operation::WriteZeroes { .. } => Op::WriteZeroes,
                Operation::Discard { .. } => Op::Discard,
                // A flush has no length to be limited by.
                Operation::Flush => {
                    self.allowed.push(request);
                    continue;
                }
            };
            self.last_number = self.last_number.wrapping_add(1);
            if self.export.throttle.allows(now, op, request.bytes(), self.id, self.last_number) {
                self.allowed.push(request);
            } else {
                self.throttled.push_back((self.last_number, request));
                self.export.counts.held_back.fetch_add(1, Relaxed);
            }
        }
        self.take_released(server, now);
    }

    fn take_released(&mut self, server: &ServerState, now: Instant) {
        let released = self.export.throttle.release(now, self.id);
        for number in released.own {
            if let Some(index) = self.throttled.iter().position(|&(throttled, _)| throttled == number)
                && let Some((_, request)) = self.throttled.remove(index)
            {
                self.export.counts.held_back.fetch_sub(1, Relaxed);
                self.allowed.push(request);
            }
        }
        released.others.into_iter().for_each(|connection| server.inboxes.notify(connection));
        self.release_at = if self.throttled.is_empty() { Instant::NEVER } else { released.next };
    }
}

impl Drop for ThrottledClient {
    fn drop(&mut self) {
        self.export.counts.held_back.fetch_sub(self.throttled.len() as u64, Relaxed);
        self.export.throttle.forget(self.id);
        self.shares.leave(self.member, self.id, self.shared_cost);
    }
}
