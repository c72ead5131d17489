//! Unaligned requests: those that do not consist of whole blocks.
//!
//! A read is extended to all blocks that it touches. A write reads the blocks that it changes in part, changes them, and writes
//! all of its blocks; write-zeroes does the same for its first and last block. A discard skips blocks that it covers only in part.
//!
//! No other write may come between the read and the write. So the request locks its blocks, and each worker sets a fence around
//! them: it replies when it has no write to these blocks in flight, and a new write has to take a lock, too. A discard takes no
//! lock: discarded blocks may read as before.

use std::ops::Range;

use hoistway_blk::bio::IoPriority;
use hoistway_blk::ground::{SECTOR_BYTES, Sector};

use super::ranges::{Fence, Lock, Part, RangeLocks};
use super::{Message, Worker};
use crate::memory::Buffer;
use crate::request::{Completion, Errno, Operation, Request};

/// Parts of an unaligned request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// Its first block.
    Head,
    /// Its last block.
    Tail,
    /// All of its blocks, or all that it covers completely.
    Whole,
}

const PIECES: [Piece; 3] = [Piece::Head, Piece::Tail, Piece::Whole];

/// A request that does not consist of whole blocks, or needs a lock for another reason.
struct UnalignedRequest {
    client: u32,
    token: u64,
    operation: Operation,
    ioprio: IoPriority,
    /// Its bytes on the target.
    bytes: Range<u64>,
    /// The blocks that it touches, in bytes.
    blocks: Range<u64>,
    block_bytes: u64,
    /// The data, as a window in memory for all blocks.
    buffer: Buffer,
    /// The client's buffer, if the data had to be copied.
    original: Option<Buffer>,
    /// The first and last block, if they are changed in part; if there is only one block, only the first.
    edges: [Option<Buffer>; 2],
    /// Workers that have not set their fence, or parts that have not completed.
    pending: u32,
    is_last_phase: bool,
    /// For a write-zeroes, whether the blocks that it covers completely have been zeroed, or are being zeroed.
    is_inner_zeroed: bool,
    result: Result<(), Errno>,
}

/// The unaligned requests of a worker's clients, by number.
#[derive(Default)]
pub struct Unaligned {
    ops: Vec<Option<Box<UnalignedRequest>>>,
    count: usize,
}

impl Unaligned {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn add(&mut self, op: UnalignedRequest) -> u32 {
        self.count += 1;
        let free = self.ops.iter().position(Option::is_none).unwrap_or(self.ops.len());
        if free == self.ops.len() {
            self.ops.push(None);
        }
        self.ops[free] = Some(Box::new(op));
        free as u32
    }

    fn remove(&mut self, number: u32) -> Option<Box<UnalignedRequest>> {
        let op = self.ops[number as usize].take();
        self.count -= usize::from(op.is_some());
        op
    }
}

impl UnalignedRequest {
    fn is_write(&self) -> bool {
        matches!(self.operation, Operation::Write { .. } | Operation::WriteZeroes { .. })
    }

    /// Whether it covers its first and its last block only in part.
    fn partial_edges(&self) -> [bool; 2] {
        let is_single = self.blocks.end - self.blocks.start == self.block_bytes;
        let (head, tail) = (self.bytes.start > self.blocks.start, self.bytes.end < self.blocks.end);
        if is_single { [head || tail, false] } else { [head, tail] }
    }

    /// The blocks of a part.
    fn blocks_of(&self, piece: Piece) -> Range<u64> {
        let Range { start, end } = self.blocks;
        match piece {
            Piece::Head => start..start + self.block_bytes,
            Piece::Tail => end - self.block_bytes..end,
            Piece::Whole => start..end,
        }
    }

    /// Copies the unchanged bytes of its edge blocks to the memory around its data.
    fn complete_blocks(&mut self) {
        let (before, len) = (self.buffer.margins().0, self.buffer.len());
        let [head, tail] = std::mem::take(&mut self.edges);
        let all = (self.blocks.end - self.blocks.start) as usize;
        let mut whole = std::mem::take(&mut self.buffer).window(0, all);
        if let Some(head) = &head {
            whole[..before].copy_from_slice(&head[..before]);
            if all == head.len() {
                whole[before + len..].copy_from_slice(&head[before + len..]);
            }
        }
        if let Some(tail) = &tail {
            let within = tail.len() - (all - before - len);
            whole[before + len..].copy_from_slice(&tail[within..]);
        }
        self.buffer = whole;
    }

    /// Zeroes its bytes in its edge blocks.
    fn zero_edges(&mut self) {
        let UnalignedRequest { bytes, blocks, block_bytes, edges: [head, tail], .. } = self;
        if let Some(head) = head {
            let end = (bytes.end - blocks.start).min(*block_bytes);
            head[(bytes.start - blocks.start) as usize..end as usize].fill(0);
        }
        if let Some(tail) = tail {
            tail[..(bytes.end + *block_bytes - blocks.end) as usize].fill(0);
        }
    }

    /// Returns the client's buffer.
    fn into_buffer(self) -> Buffer {
        if !matches!(self.operation, Operation::Read | Operation::Write { .. }) {
            return self.buffer;
        }
        let (before, len) = (self.bytes.start - self.blocks.start, self.bytes.end - self.bytes.start);
        let data = self.buffer.window(before as usize, len as usize);
        let Some(mut original) = self.original else { return data };
        if self.operation == Operation::Read && self.result.is_ok() {
            original.copy_from_slice(&data);
        }
        original
    }

    /// For a write-zeroes, the blocks that it covers completely.
    fn inner_blocks(&self) -> Range<u64> {
        let [head, tail] = self.partial_edges().map(|is_cut| if is_cut { self.block_bytes } else { 0 });
        self.blocks.start + head..self.blocks.end - tail
    }
}

impl Worker {
    /// Begins an unaligned request, or a write to fenced sectors.
    #[cold]
    pub(super) fn begin_locked(&mut self, client: u32, request: Request) {
        let Some(member) = self.members[client as usize].as_mut() else { return };
        let block_bytes = member.block_bytes;
        let Request { operation, offset, buffer, token, ioprio } = request;
        let start = member.first_byte + offset;
        let end = start + Request::bytes_of(operation, &buffer);
        let (bytes, round_down) = (start..end, |byte: u64| byte & !(block_bytes - 1));
        let blocks = match operation {
            Operation::Discard { .. } => round_down(start + block_bytes - 1)..round_down(end),
            _ => round_down(start)..round_down(end + block_bytes - 1),
        };
        if blocks.is_empty() {
            // A discard of less than a block.
            return self.complete(client, Completion { token, result: Ok(()), buffer });
        }
        if (blocks.end - blocks.start) / SECTOR_BYTES > u64::from(u32::MAX) {
            return self.complete(client, Completion { token, result: Err(Errno::INVAL), buffer });
        }
        member.in_flight += 1;
        let has_data = matches!(operation, Operation::Read | Operation::Write { .. });
        let (buffer, original) =
            if has_data { extend_to_blocks(buffer, &bytes, &blocks, operation) } else { (buffer, None) };
        let op = UnalignedRequest {
            client,
            token,
            operation,
            ioprio,
            bytes,
            blocks,
            block_bytes,
            buffer,
            original,
            edges: [None, None],
            pending: 0,
            is_last_phase: false,
            is_inner_zeroed: false,
            result: Ok(()),
        };
        let (is_write, blocks) = (op.is_write(), op.blocks.clone());
        let number = self.unaligned.add(op);
        if !is_write {
            return self.begin_last_parts(number);
        }
        let lock = Lock { worker: self.index, op: number, blocks, is_held: false };
        let held = self.locks(|locks| locks.add(lock));
        held.into_iter().for_each(|lock| self.fence_on_all_workers(&lock));
    }

    fn locks<R>(&self, body: impl FnOnce(&mut RangeLocks) -> R) -> R {
        body(&mut self.shared.unaligned.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// A request has its lock: all workers set a fence for it.
    fn fence_on_all_workers(&mut self, lock: &Lock) {
        let sectors = lock.blocks.start / SECTOR_BYTES..lock.blocks.end / SECTOR_BYTES;
        for worker in 0..self.outbox.len() {
            let fence = Fence { worker: lock.worker, op: lock.op, sectors: sectors.clone(), writes: Vec::new() };
            self.outbox[worker].push(Message::Fence(fence));
        }
    }

    pub(super) fn fence(&mut self, mut fence: Fence) {
        let (first, slots) = (self.shared.slots.range_of(self.index).start, &self.shared.slots);
        let overlaps = |&(local, sectors): &(usize, u32)| {
            let start = slots.first_sector(first + local as u32);
            start < fence.sectors.end && fence.sectors.start < start + u64::from(sectors)
        };
        fence.writes = self.in_flight.writes().filter(overlaps).map(|(local, _)| local as u32).collect();
        if fence.writes.is_empty() {
            self.outbox[fence.worker].push(Message::Fenced { op: fence.op });
        }
        self.fences.0.push(fence);
    }

    /// A write has completed that a fence may have waited for.
    #[cold]
    pub(super) fn write_ended(&mut self, local: usize) {
        for fence in &mut self.fences.0 {
            let before = fence.writes.len();
            fence.writes.retain(|&write| write as usize != local);
            if before > 0 && fence.writes.is_empty() {
                self.outbox[fence.worker].push(Message::Fenced { op: fence.op });
            }
        }
    }

    pub(super) fn unfence(&mut self, worker: usize, op: u32) {
        self.fences.0.retain(|fence| (fence.worker, fence.op) != (worker, op));
    }

    /// A worker has no more writes in flight to the blocks of a request.
    pub(super) fn fence_ready_on_worker(&mut self, number: u32) {
        let workers = self.outbox.len() as u32;
        let Some(op) = self.unaligned.ops[number as usize].as_mut() else { return };
        op.pending += 1;
        if op.pending < workers {
            return;
        }
        op.pending = 0;
        let partial_edges = op.partial_edges();
        if partial_edges == [false, false] {
            return self.begin_last_parts(number);
        }
        for (piece, _) in [Piece::Head, Piece::Tail].into_iter().zip(partial_edges).filter(|(_, is_cut)| *is_cut) {
            let op = self.unaligned.ops[number as usize].as_ref();
            let block_bytes = op.map_or(0, |op| op.block_bytes as usize);
            self.add_part(number, piece, Operation::Read, Buffer::zeroed(block_bytes));
        }
    }

    /// Adds a part. The member submits it in its turn.
    fn add_part(&mut self, number: u32, piece: Piece, operation: Operation, buffer: Buffer) {
        let Some(op) = self.unaligned.ops[number as usize].as_mut() else { return };
        op.pending += 1;
        let blocks = match (piece, op.operation) {
            // Its edges are written separately.
            (Piece::Whole, Operation::WriteZeroes { .. }) => op.inner_blocks(),
            _ => op.blocks_of(piece),
        };
        let (first, sectors) = (Sector(blocks.start / SECTOR_BYTES), (blocks.end - blocks.start) / SECTOR_BYTES);
        let token = u64::from(number) << 2 | piece as u64;
        let request = Request { operation, offset: 0, buffer, token, ioprio: op.ioprio };
        let client = op.client;
        if let Some(member) = self.members[client as usize].as_mut() {
            member.parts.push_back(Part { request, first, sectors: sectors as u32 });
        }
        self.enqueue(client);
    }

    /// Adds the last parts of a request.
    fn begin_last_parts(&mut self, number: u32) {
        let Some(op) = self.unaligned.ops[number as usize].as_mut() else { return };
        op.is_last_phase = true;
        match op.operation {
            Operation::Read => {
                let all = (op.blocks.end - op.blocks.start) as usize;
                let buffer = std::mem::take(&mut op.buffer).window(0, all);
                self.add_part(number, Piece::Whole, Operation::Read, buffer);
            }
            Operation::Write { .. } => {
                op.complete_blocks();
                let (operation, buffer) = (op.operation, std::mem::take(&mut op.buffer));
                self.add_part(number, Piece::Whole, operation, buffer);
            }
            Operation::Discard { .. } => {
                let bytes = op.blocks.end - op.blocks.start;
                self.add_part(number, Piece::Whole, Operation::Discard { bytes }, Buffer::EMPTY);
            }
            Operation::WriteZeroes { may_unmap, fast_only, .. } => {
                let inner = op.inner_blocks();
                if !inner.is_empty() && !std::mem::replace(&mut op.is_inner_zeroed, true) {
                    // Its edges follow: a request that is refused because it would take long changes nothing.
                    op.is_last_phase = op.edges.iter().all(Option::is_none);
                    let operation = Operation::WriteZeroes { bytes: inner.end - inner.start, may_unmap, fast_only };
                    return self.add_part(number, Piece::Whole, operation, Buffer::EMPTY);
                }
                op.zero_edges();
                let edges = std::mem::take(&mut op.edges);
                for (piece, edge) in [Piece::Head, Piece::Tail].into_iter().zip(edges) {
                    if let Some(edge) = edge {
                        self.add_part(number, piece, Operation::Write { durable: false }, edge);
                    }
                }
            }
            // A flush has no range, and is never unaligned.
            Operation::Flush => {}
        }
    }

    /// Submits the parts of a member. Returns whether its next requests have to wait.
    #[cold]
    pub(super) fn submit_parts(&mut self, client: u32) -> bool {
        loop {
            let Some(member) = self.members[client as usize].as_mut() else { return true };
            if member.parts.is_empty() {
                return false;
            }
            if self.in_flight.is_full() {
                self.wait_for_slot(client);
                return true;
            }
            let Some(Part { request, first, sectors }) = member.parts.pop_front() else { return false };
            let bio = member.bio_of(&request, first, sectors);
            if self.submit_bio(client, true, request, bio) {
                return true;
            }
        }
    }

    /// A part has completed.
    #[cold]
    pub(super) fn unaligned_part_ended(&mut self, client: u32, completion: Completion) {
        let Completion { token, result, buffer } = completion;
        if let Some(member) = self.members[client as usize].as_mut() {
            member.in_flight -= 1;
        }
        let (number, piece) = ((token >> 2) as u32, PIECES[(token & 3) as usize]);
        let Some(op) = self.unaligned.ops[number as usize].as_mut() else { return };
        op.pending -= 1;
        op.result = op.result.and(result);
        match piece {
            Piece::Head if !op.is_last_phase => op.edges[0] = Some(buffer),
            Piece::Tail if !op.is_last_phase => op.edges[1] = Some(buffer),
            Piece::Whole if !matches!(op.operation, Operation::WriteZeroes { .. }) => op.buffer = buffer,
            _ => {}
        }
        if op.pending > 0 {
            return;
        }
        if op.is_last_phase || op.result.is_err() {
            self.end_unaligned(number);
        } else {
            self.begin_last_parts(number);
        }
    }

    fn end_unaligned(&mut self, number: u32) {
        let Some(op) = self.unaligned.remove(number) else { return };
        if op.is_write() {
            for worker in 0..self.outbox.len() {
                self.outbox[worker].push(Message::Unfence { worker: self.index, op: number });
            }
            let (worker, held) = (self.index, self.locks(|locks| locks.remove(self.index, number)));
            debug_assert!(held.iter().all(|lock| (lock.worker, lock.op) != (worker, number)), "it was removed");
            held.iter().for_each(|lock| self.fence_on_all_workers(lock));
        }
        let (client, token, result) = (op.client, op.token, op.result);
        let completion = Completion { token, result, buffer: op.into_buffer() };
        let Some(member) = self.members[client as usize].as_mut() else { return };
        member.in_flight -= 1;
        let is_disconnecting = member.has_departed;
        self.complete(client, completion);
        if is_disconnecting {
            self.leave_if_done(client);
        }
    }
}

/// Moves the data of a request to memory for all of its blocks. Also returns the client's buffer if it had no room
/// around the data.
fn extend_to_blocks(
    buffer: Buffer,
    bytes: &Range<u64>,
    blocks: &Range<u64>,
    operation: Operation,
) -> (Buffer, Option<Buffer>) {
    let (before, behind) = ((bytes.start - blocks.start) as usize, (blocks.end - bytes.end) as usize);
    let (has_before, has_behind) = buffer.margins();
    if has_before == before && has_behind >= behind {
        return (buffer, None);
    }
    let mut extended = Buffer::zeroed((blocks.end - blocks.start) as usize).window(before, buffer.len());
    if operation != Operation::Read {
        extended.copy_from_slice(&buffer);
    }
    (extended, Some(buffer))
}
