//! What clients see, and the checks of it.

use std::sync::atomic::Ordering::Relaxed;

use hoistway_blk::ground::Nanos;

use super::super::client::{BLOCK, ClientReply, ClientRequest};
use super::super::life::SERVER_LIMITS;
use super::{BURST, LIMIT, LONGEST, Role, Slot, World};

impl World {
    /// Sends and receives some bytes.
    pub(super) fn exchange(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let (role, export) = (slot.role, slot.export);
        let Some(client) = &mut slot.client else { return };
        client.send(&mut self.random);
        let mut answers = Vec::new();
        // Even a client that never reads has to learn its export first, or it could not send requests.
        if role != Role::Silent && !(role == Role::NotReading && client.is_ready()) {
            if role == Role::Noisy && client.is_ready() {
                client.far.receive(usize::MAX, &mut Vec::new());
            } else {
                client.receive(&mut self.random, &mut answers);
            }
        }
        self.tls_replies += if client.is_in_tls() { answers.len() as u64 } else { 0 };
        answers.into_iter().for_each(|answer| self.check(role, export, answer));
        if self.slots[index].client.as_ref().is_some_and(|client| client.far.has_ended()) {
            self.ended(index);
        }
    }

    fn check(&mut self, role: Role, export: usize, ClientReply { request, submitted_at, result, status }: ClientReply) {
        self.completed += 1;
        let sum = result
            .as_ref()
            .map_or_else(|&error| u64::from(error), |data| data.iter().map(|&byte| u64::from(byte)).sum());
        self.digest = self.digest.wrapping_mul(31).wrapping_add(sum);
        // Whether the disk was missing at some time between request and reply.
        let may_err = role != Role::Undisturbed || self.removed_at.is_some() || submitted_at <= self.reinserted_at;
        let has_no_disk = self.removed_at.is_some_and(|since| submitted_at > since);
        let (is_within, book) = (self.is_within(export, request), &mut self.content_models[export]);
        match (&result, request) {
            (Err(error), _) if !is_within => assert!([22, 28].contains(error), "{request:?}: {error}"),
            (Ok(_), _) if !is_within => panic!("{request:?} reaches beyond the end, and went well"),
            (Err(error), _) if !may_err => panic!("{request:?} of a calm client failed: {error}"),
            (Err(error), _) => {
                assert!([5, 28, 95, 108].contains(error), "{request:?}: {error}");
                if let Some((fill, _)) = request.change() {
                    book.may_have_changed(request.place(), fill, self.stamp);
                }
            }
            (
                Ok(_),
                ClientRequest::Read { .. }
                | ClientRequest::Write { .. }
                | ClientRequest::Zeroes { .. }
                | ClientRequest::Status { .. },
            ) if has_no_disk => {
                panic!("{request:?} went well without a disk")
            }
            (Ok(_), ClientRequest::Status { .. }) => {
                let zeroes: Vec<u64> = status
                    .into_iter()
                    .flat_map(|(blocks, reads_zeroes)| blocks.filter(move |_| reads_zeroes))
                    .collect();
                let unexpected = zeroes.into_iter().find(|&block| !book.may_hold(block, 0));
                assert!(unexpected.is_none(), "block {unexpected:?} of export {export} is no hole: {book:?}");
            }
            (Ok(data), ClientRequest::Read { place: (first, _), .. }) => {
                for (block, bytes) in (first..).zip(data.chunks(BLOCK as usize)) {
                    let unexpected = bytes.iter().find(|&&byte| !book.may_hold(block, byte));
                    assert!(unexpected.is_none(), "block {block} of export {export} holds {unexpected:?}: {book:?}");
                }
            }
            (Ok(_), ClientRequest::Flush) => book.flushed(submitted_at),
            // A trim is a hint, which may have no effect.
            (Ok(_), ClientRequest::Trim { place, .. }) => book.may_have_changed(place, 0, self.stamp),
            (Ok(_), request) => {
                if let Some((fill, is_durable)) = request.change() {
                    book.changed(request.place(), fill, self.stamp, is_durable);
                }
            }
        }
    }

    /// The server has closed a connection.
    fn ended(&mut self, index: usize) {
        let slot = &self.slots[index];
        let Some(client) = &slot.client else { return };
        let waited = self.life.now().since(slot.since);
        let is_late = waited >= Nanos::from_secs(9) && !client.is_ready();
        if matches!(slot.role, Role::Undisturbed | Role::Busy) && !slot.may_be_closed && !is_late {
            assert!(client.is_disconnecting, "the server closed {client:?}, which did nothing wrong");
            assert_eq!(client.abandoned().count(), 0, "{client:?} was not answered before it was closed");
        }
        self.forget_in_flight_outcomes(index);
    }

    /// Waits until all requests have completed, then checks everything.
    pub(super) fn quiesce(&mut self) {
        let (since, before) = self.limited_since;
        let (reads, reads_max) =
            (self.reads("limited") - before, LIMIT * self.life.now().since(since).0 / 1_000_000_000 + BURST);
        assert!(reads <= reads_max, "{reads} reads where {reads_max} are allowed");
        for round in 0.. {
            assert!(round < 400_000, "a request never completes");
            let index = self.random.below(self.slots.len() as u64) as usize;
            self.stamp += 1;
            self.exchange(index);
            self.life.step(&mut self.random);
            self.clock.advance(Nanos::from_micros(20));
            let waits = |slot: &Slot| {
                let client = slot.client.as_ref().filter(|_| matches!(slot.role, Role::Undisturbed | Role::Busy));
                client.is_some_and(|client| !client.in_flight.is_empty())
            };
            if round % 16 == 0 && !self.slots.iter().any(waits) {
                break;
            }
        }
        self.life.settle(&mut self.random);
        self.stamp += 1;
        self.content_models.iter_mut().for_each(|book| book.resolve_unknown_outcomes(self.stamp));
        self.check_disk_content();
        self.check_memory_bounds();
        self.limited_since = (self.life.now(), self.reads("limited"));
    }

    fn reads(&self, export: &str) -> u64 {
        self.life.server.exports().named(export).unwrap().counts.reads.load(Relaxed)
    }

    pub(super) fn check_disk_content(&self) {
        let bytes = self.disk.content();
        for (export, book) in self.exports.iter().zip(&self.content_models).filter(|(export, _)| export.name != "noisy")
        {
            for block in 0..export.blocks {
                let from = ((export.first + block) * BLOCK) as usize;
                let unexpected = bytes[from..from + BLOCK as usize].iter().find(|&&byte| !book.may_hold(block, byte));
                assert!(unexpected.is_none(), "block {block} of export {} holds {unexpected:?}: {book:?}", export.name);
            }
        }
    }

    fn check_memory_bounds(&self) {
        // A client that never reads has requests in its socket, in the server, and in flight.
        let bytes = LONGEST * BLOCK;
        let reads_max = self.non_reading_clients
            * (((16 << 10) + SERVER_LIMITS.held_bytes as u64) / bytes + u64::from(SERVER_LIMITS.in_flight) + 1);
        let reads = self.reads("deaf");
        assert!(reads <= reads_max, "{reads} reads for {} who never listen", self.non_reading_clients);
    }
}
