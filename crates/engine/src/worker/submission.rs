//! Submission: the clients of a worker take turns.
//!
//! A client submits until its submitter sleeps, there is no free slot, or its turn is over: a target in memory copies data on the
//! worker's thread, while other clients wait. The rest of a long request goes first in the next turn.

use hoistway_blk::bio::{Bio, Op};
use hoistway_blk::ground::{SECTOR_BYTES, Sector};

use super::Worker;
use super::member::Unfit;
use crate::backend::Zeroing;
use crate::request::{Completion, Request};

/// Factor for the sectors that a client may discard, or zero as a hole, in a turn.
const ZEROED_PER_WRITTEN: u32 = 16;

impl Worker {
    /// Continues the first of the members that had more to submit than their last turn allowed. One in a step: the others, and those with
    /// new requests, wait for no more than its turn.
    pub(super) fn resume_deferred_member(&mut self) -> bool {
        let Some(client) = self.next_turn.pop_front() else { return false };
        if let Some(member) = self.members[client as usize].as_mut() {
            member.is_deferred = false;
        }
        self.enqueue(client);
        true
    }

    /// A member has more to submit than its turn allows.
    fn defer(&mut self, client: u32) {
        if let Some(member) = self.members[client as usize].as_mut()
            && !std::mem::replace(&mut member.is_deferred, true)
        {
            self.next_turn.push_back(client);
        }
    }

    /// Submits what a member has, until its submitter sleeps or its turn is over.
    pub(super) fn submit(&mut self, client: u32) {
        let Some(member) = self.members[client as usize].as_mut() else { return };
        member.is_enqueued = false;
        if member.submitter.is_parked() {
            self.calls.make_progress(&self.shared, &mut member.submitter);
            if member.submitter.is_parked() {
                return;
            }
            member.partially_submitted = None;
        }
        if member.rest.is_some() {
            return self.submit_rest(client);
        }
        if !member.parts.is_empty() && self.submit_parts(client) {
            return;
        }
        let Some(member) = self.members[client as usize].as_mut() else { return };
        // Plugging a single request gains nothing.
        let is_batch = member.backlog.len() > 1;
        if is_batch {
            member.submitter.plug();
        }
        let mut sectors_left = i64::from(self.turn_sectors);
        while let Some(member) = self.members[client as usize].as_mut()
            && !member.backlog.is_empty()
        {
            if sectors_left <= 0 {
                self.defer(client);
                break;
            }
            if self.in_flight.is_full() {
                self.wait_for_slot(client);
                break;
            }
            let Some(request) = member.backlog.pop_front() else { break };
            sectors_left -= (request.buffer.len() as u64 / SECTOR_BYTES) as i64;
            if self.submit_one(client, request) {
                break;
            }
        }
        if is_batch && let Some(member) = self.members[client as usize].as_mut() {
            self.calls.unplug(&self.shared, &mut member.submitter);
        }
    }

    pub(super) fn wait_for_slot(&mut self, client: u32) {
        if !self.slot_waiters.contains(&client) {
            self.slot_waiters.push(client);
        }
    }

    /// Submits a request. Returns whether the member's next ones have to wait.
    #[inline]
    fn submit_one(&mut self, client: u32, request: Request) -> bool {
        let Some(member) = self.members[client as usize].as_mut() else { return false };
        let (bio, zeroing) = match member.bio(&request) {
            Ok(bio) => bio,
            Err(Unfit::Refused(errno)) => {
                let completion = Completion { token: request.token, result: Err(errno), buffer: request.buffer };
                self.complete(client, completion);
                return false;
            }
            Err(Unfit::Unaligned) => {
                self.begin_locked(client, request);
                return self.submit_parts(client);
            }
        };
        if !self.fences.is_empty() && self.fences.must_wait_for_fence(&bio) {
            // It waits for its lock, like the requests that set the fences.
            self.begin_locked(client, request);
            return self.submit_parts(client);
        }
        self.submit_bio(client, false, request, (bio, zeroing))
    }

    /// Submits a bio. Returns whether its submitter has to wait.
    #[inline]
    pub(super) fn submit_bio(
        &mut self,
        client: u32,
        is_part: bool,
        mut request: Request,
        (mut bio, zeroing): (Bio, Zeroing),
    ) -> bool {
        let Some(member) = self.members[client as usize].as_mut() else { return false };
        let address = request.buffer.address();
        let local = self.in_flight.begin(client, is_part, request.token, request.buffer, &bio);
        let slot = self.shared.slots.range_of(self.index).start + local as u32;
        self.shared.slots.set(slot, address, bio.sector.0, zeroing);
        bio.owner = u64::from(slot);
        member.in_flight += 1;
        self.submit_piece(client, local as u32, bio)
    }

    /// Submits as much of a bio as a turn allows. Returns whether the member's next ones have to wait.
    #[inline]
    fn submit_piece(&mut self, client: u32, local: u32, mut bio: Bio) -> bool {
        let Some(member) = self.members[client as usize].as_mut() else { return false };
        let sectors_max = match bio.op {
            Op::Read | Op::Write => self.turn_sectors,
            // Zeroes that must not become a hole are written like data.
            Op::WriteZeroes if !self.shared.slots.zeroing(&bio).may_unmap => self.turn_sectors,
            _ => self.turn_sectors.saturating_mul(ZEROED_PER_WRITTEN),
        };
        if bio.sectors > sectors_max {
            let rest = Bio {
                sector: Sector(bio.sector.0 + u64::from(sectors_max)),
                sectors: bio.sectors - sectors_max,
                ..bio
            };
            bio.sectors = sectors_max;
            member.rest = Some(rest);
            self.defer(client);
        }
        let Some(member) = self.members[client as usize].as_mut() else { return false };
        self.calls.submit(&self.shared, &mut member.submitter, bio);
        member.partially_submitted = member.submitter.is_parked().then_some(local);
        member.partially_submitted.is_some() || member.rest.is_some()
    }

    /// Continues a long request, which uses up the turn.
    #[cold]
    fn submit_rest(&mut self, client: u32) {
        let Some(member) = self.members[client as usize].as_mut() else { return };
        let Some(rest) = member.rest.take() else { return };
        let (_, local) = self.shared.slots.worker_and_index(rest.owner as u32);
        if !self.submit_piece(client, local as u32, rest) {
            self.defer(client);
        }
    }
}
