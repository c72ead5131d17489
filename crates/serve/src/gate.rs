//! Between a visitor and the engine: what it submits goes when its export's limits let it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hoistway_blk::{Instant, Op};
use hoistway_engine::{Client, Context, Errno, Handler, Operation, Request};

use crate::lobby::VisitorId;
use crate::quota::Ticket;
use crate::served::{Served, Site};

/// The engine's client of a visitor, behind the limits of its export.
pub struct Gate {
    served: Arc<Served>,
    id: VisitorId,
    client: Client,
    /// Whose I/O it is, as the engine has been told.
    context: Context,
    /// What has come.
    batch: Vec<Request>,
    /// What may go to the engine: the export's limits let it.
    admitted: Vec<Request>,
    /// What waits for its turn under the export's limits, by the number of its ticket.
    kept: VecDeque<(u16, Request)>,
    last_ticket: u16,
    /// When somebody's turn comes.
    released_at: Instant,
}

impl Gate {
    /// For a visitor, on the worker where it is, that has at most `depth` requests unanswered.
    ///
    /// # Errors
    /// If the target does not have what the export says.
    pub fn open(
        site: &Site,
        served: Arc<Served>,
        id: VisitorId,
        depth: u32,
        handler: impl Handler + 'static,
    ) -> Result<Gate, Errno> {
        let context = served.context();
        let client = served.on(&site.engine)?.client_on(id.worker, context, depth, handler);
        Ok(Gate {
            served,
            id,
            client,
            context,
            batch: Vec::new(),
            admitted: Vec::new(),
            kept: VecDeque::new(),
            last_ticket: 0,
            released_at: Instant::NEVER,
        })
    }

    /// Adds a request, which goes with the next [`submit`](Self::submit).
    #[inline]
    pub fn push(&mut self, request: Request) {
        self.batch.push(request);
    }

    /// Submits what has come, as far as the export's limits let it.
    pub fn submit(&mut self, site: &Site, now: Instant) {
        if !self.batch.is_empty() {
            if self.served.quota.is_limited() {
                self.wait_for_a_turn(site, now);
            } else {
                self.admitted.append(&mut self.batch);
            }
        }
        // What the engine has no room for stays, and goes when something of it has ended. If it has stopped there is nobody to
        // answer to.
        if !self.admitted.is_empty() {
            let _ = self.client.submit_all(&mut self.admitted);
        }
    }

    /// Lets those go whose turn has come, of this visitor, and calls those of others.
    /// What of the export has changed holds for what comes.
    pub fn release(&mut self, site: &Site, now: Instant) {
        let context = self.served.context();
        if context != self.context {
            self.context = context;
            self.client.set_context(context);
        }
        if !self.kept.is_empty() {
            self.look_when(site, now);
        }
    }

    /// When it has to be [released](Self::release) next.
    #[must_use]
    pub fn released_at(&self) -> Instant {
        self.released_at
    }

    /// Whether something waits for its turn.
    #[must_use]
    pub fn keeps_any(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Gives back what waits for its turn.
    pub fn give_up(&mut self) -> impl Iterator<Item = Request> + use<> {
        self.served.counts.held_back.fetch_sub(self.kept.len() as u64, Relaxed);
        self.released_at = Instant::NEVER;
        std::mem::take(&mut self.kept).into_iter().map(|(_, request)| request)
    }

    /// Keeps what has to wait.
    fn wait_for_a_turn(&mut self, site: &Site, now: Instant) {
        for request in self.batch.drain(..) {
            let op = match request.operation {
                Operation::Read => Op::Read,
                Operation::Write { .. } => Op::Write,
                Operation::WriteZeroes { .. } => Op::WriteZeroes,
                Operation::Discard { .. } => Op::Discard,
                // Has no length to be limited by.
                Operation::Flush => {
                    self.admitted.push(request);
                    continue;
                }
            };
            self.last_ticket = self.last_ticket.wrapping_add(1);
            let ticket = Ticket { visitor: self.id, slot: u32::from(self.last_ticket) };
            if self.served.quota.admits(now, op, request.bytes(), ticket) {
                self.admitted.push(request);
            } else {
                self.kept.push_back((self.last_ticket, request));
                self.served.counts.held_back.fetch_add(1, Relaxed);
            }
        }
        self.look_when(site, now);
    }

    fn look_when(&mut self, site: &Site, now: Instant) {
        let turns = self.served.quota.turns(now, self.id);
        for ticket in turns.own {
            if let Some(at) = self.kept.iter().position(|&(kept, _)| u32::from(kept) == ticket)
                && let Some((_, request)) = self.kept.remove(at)
            {
                self.served.counts.held_back.fetch_sub(1, Relaxed);
                self.admitted.push(request);
            }
        }
        turns.others.into_iter().for_each(|visitor| site.doors.call(visitor));
        self.released_at = if self.kept.is_empty() { Instant::NEVER } else { turns.next };
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.served.counts.held_back.fetch_sub(self.kept.len() as u64, Relaxed);
        self.served.quota.forget(self.id);
    }
}
