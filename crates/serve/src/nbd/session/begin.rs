//! Received requests: each is split into as many engine requests (parts) as needed.

use hoistway_blk::ground::Instant;
use hoistway_engine::{Buffer, Errno, Operation, Request as Io};
use hoistway_nbd::{Command, Extent, Refusal, Request};

use super::{Chunk, Pending, Receiving, STEP_BYTES, Session, TURN_COST_MAX, token_of};
use crate::memory::pool::DataPosition;
use crate::nbd::outbox::Outbox;

/// Shorter reads are not checked for holes, because finding holes has a cost, too.
const READ_WITH_HOLES_BYTES: u64 = 32 << 10;
/// Requests without data may exceed the engine's maximum of 2^32 - 1 sectors.
const PART_BYTES_MAX: u64 = 1 << 40;
/// Maximum extents in a block-status reply; finding each takes a system call of one or two microseconds.
const EXTENTS_AT_ONCE: usize = 128;

impl Session {
    /// Begins a request. Returns false if there is no memory for it; then nothing has changed.
    pub(super) fn begin_request(&mut self, now: Instant, request: Request, outbox: &mut Outbox) -> bool {
        let Request { offset, length, .. } = request;
        if !self.reserve_reply() {
            return false;
        }
        match request.command {
            Command::Read { unfragmented } => {
                // Limits apply to the requested bytes, including holes: with limits a read is one whole request.
                let may_skip_holes = !unfragmented && !self.export.throttle.is_limited();
                if self.has_chunks && may_skip_holes && length >= READ_WITH_HOLES_BYTES {
                    return self.begin_read_with_holes(now, request, outbox);
                }
                let Some(buffer) = self.pool.take(self.position_of(offset, length)) else { return false };
                let slot = self.add_pending(now, request, 1, Vec::new());
                self.read_part(slot, 0, offset, buffer);
            }
            Command::Write { .. } => {
                let position = self.position_of(offset, length);
                let (buffer, charged) = if let Some(kept) = self.pool.take_kept(position) {
                    (kept, position.len)
                } else {
                    let first = position.len.min(STEP_BYTES);
                    if !self.pool.account().take(position.footprint() - position.len + first) {
                        return false;
                    }
                    (self.pool.allocate_charged(position), first)
                };
                self.held_bytes += position.len;
                self.receiving = Some(Receiving { request, buffer, filled: 0, charged, active_at: now });
            }
            Command::Flush => {
                let slot = self.add_pending(now, request, 1, Vec::new());
                self.client.push(Io::flush(token_of(slot, 0)));
            }
            Command::Trim { fua } => self.begin_parts(now, request, fua, |bytes| Operation::Discard { bytes }),
            Command::WriteZeroes { fua, no_hole, fast } => self.begin_parts(now, request, fua, |bytes| {
                Operation::WriteZeroes { bytes, may_unmap: !no_hole, fast_only: fast }
            }),
            // A hint: the data will be read when it is needed. The range has been checked.
            Command::Cache => {
                self.export.counts.completed_at_once(true);
                self.completed += 1;
                self.spent += 1;
                outbox.header(|out| self.writer.done(request.origin(), out));
                self.reply_ends(outbox);
            }
            Command::BlockStatus { one } => self.reply_with_block_status(request, one, outbox),
        }
        true
    }

    pub(super) fn begin_write(&mut self, now: Instant, request: Request, buffer: Buffer) {
        let durable = matches!(request.command, Command::Write { fua: true });
        let slot = self.add_pending(now, request, 1, Vec::new());
        let operation = Operation::Write { durable };
        self.client.push(Io::new(operation, request.offset, buffer, token_of(slot, 0)));
    }

    /// Begins a request without data, which may exceed the engine's maximum. A request that must be durable is followed by a
    /// flush, after all of its parts have completed.
    fn begin_parts(&mut self, now: Instant, request: Request, fua: bool, operation: impl Fn(u64) -> Operation) {
        let Request { offset, length, .. } = request;
        let parts = length.div_ceil(PART_BYTES_MAX) as u32;
        let slot = self.add_pending(now, request, parts + u32::from(fua), Vec::new());
        for part in 0..u64::from(parts) {
            let begin = part * PART_BYTES_MAX;
            let bytes = (length - begin).min(PART_BYTES_MAX);
            let token = token_of(slot, part as u32);
            self.client.push(Io::new(operation(bytes), offset + begin, Buffer::EMPTY, token));
        }
    }

    fn read_part(&mut self, slot: u32, part: u32, offset: u64, buffer: Buffer) {
        self.held_bytes += buffer.len();
        self.client.push(Io::read(offset, buffer, token_of(slot, part)));
    }

    /// The position of a request's data on the target.
    fn position_of(&self, offset: u64, length: u64) -> DataPosition {
        DataPosition::new(self.export.first_byte + offset, length as usize, self.export.block_bytes)
    }

    fn begin_read_with_holes(&mut self, now: Instant, request: Request, outbox: &mut Outbox) -> bool {
        let extents = self.extents_of_read(request).unwrap_or_default();
        // At most one per block of a read.
        self.spent += extents.len() as u32;
        let mut chunks = Vec::new();
        if extents.iter().any(|extent| extent.hole) {
            let mut offset = request.offset;
            for extent in extents {
                let data = (!extent.hole).then(Buffer::default);
                // It is a part of a request, so its length fits.
                chunks.push(Chunk { offset, length: extent.length as u32, data });
                offset += extent.length;
            }
        }
        let parts: Vec<_> = match chunks.is_empty() {
            true => vec![(0, request.offset, request.length)],
            false => {
                let data = chunks.iter().enumerate().filter(|(_, chunk)| chunk.data.is_some());
                data.map(|(index, chunk)| (index as u32, chunk.offset, u64::from(chunk.length))).collect()
            }
        };
        let positions: Vec<_> = parts.iter().map(|&(_, offset, length)| self.position_of(offset, length)).collect();
        if !self.pool.account().take(positions.iter().map(|position| position.footprint()).sum()) {
            return false;
        }
        let slot = self.add_pending(now, request, parts.len() as u32, chunks);
        for (&(part, offset, _), &position) in parts.iter().zip(&positions) {
            let kept = self.pool.take_kept(position);
            if kept.is_some() {
                // That buffer has been charged before.
                self.pool.account().give_back(position.footprint());
            }
            let buffer = kept.unwrap_or_else(|| self.pool.allocate_charged(position));
            self.read_part(slot, part, offset, buffer);
        }
        if parts.is_empty() {
            self.finish(now, slot, None, outbox);
        }
        true
    }

    fn reply_with_block_status(&mut self, request: Request, one: bool, outbox: &mut Outbox) {
        // Two extents are enough, since adjacent extents of one kind are merged.
        let extents = self.extents(request, if one { 2 } else { EXTENTS_AT_ONCE });
        self.spent = TURN_COST_MAX;
        match extents {
            Ok(extents) => {
                self.export.counts.completed_at_once(true);
                self.completed += 1;
                let (origin, length) = (request.origin(), request.length);
                outbox.header(|out| self.writer.block_status(origin, length, one, extents, out));
                self.reply_ends(outbox);
            }
            Err(error) => {
                let refusal = Refusal::from_errno(error.raw_os_error().unwrap_or(Errno::IO.0));
                self.refuse(request.origin(), refusal, outbox);
            }
        }
    }

    /// Data and holes of a range, in order and without gaps; at most `extents_max` extents.
    fn extents(&self, request: Request, extents_max: usize) -> std::io::Result<Vec<Extent>> {
        let Request { offset, length, .. } = request;
        let extents = self.export.part()?.extents(offset..offset + length, extents_max)?;
        Ok(extents.into_iter().map(extent_of).collect())
    }

    /// Data and holes of a read. If finding holes takes too long, the rest counts as data.
    fn extents_of_read(&self, request: Request) -> std::io::Result<Vec<Extent>> {
        let Request { offset, length, .. } = request;
        let extents = self.export.part()?.extents_of_read(offset..offset + length)?;
        Ok(extents.into_iter().map(extent_of).collect())
    }

    fn add_pending(&mut self, now: Instant, request: Request, parts: u32, chunks: Vec<Chunk>) -> u32 {
        self.in_flight += 1;
        self.peer.set_in_flight(self.in_flight);
        self.export.counts.began();
        self.spent += 1;
        let pending = Pending { request, began: now, parts_left: parts, result: Ok(()), chunks };
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
}

fn extent_of(extent: hoistway_engine::Extent) -> Extent {
    Extent { length: extent.bytes, hole: extent.is_hole, zero: extent.is_hole }
}
