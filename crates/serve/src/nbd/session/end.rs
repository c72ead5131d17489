//! Completed requests: each gets one reply.

use hoistway_blk::ground::Instant;
use hoistway_engine::{Buffer, Completion, Errno, Request as Io};
use hoistway_nbd::{Command, Refusal, Request};

use super::{BYTES_PER_COST, Chunk, FINAL_FLUSH, NeedsFinalFlush as _, Pending, Session, token_of};
use crate::export::counts::Ended;
use crate::nbd::outbox::Outbox;

impl Session {
    /// A part of a request has completed.
    pub fn completed(&mut self, now: Instant, completion: Completion, outbox: &mut Outbox) {
        let Completion { token, result, buffer } = completion;
        let (slot, part) = (token as u32, (token >> 32) as usize);
        let Some(pending) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        self.held_bytes -= buffer.len();
        self.client.ended(buffer.len());
        self.completed_cost += 1 + (buffer.len() as u64 / BYTES_PER_COST) as u32;
        pending.parts_left -= 1;
        // A trim is a hint, which a target may not support.
        let is_hint = matches!(pending.request.command, Command::Trim { .. }) && result == Err(Errno::OPNOTSUPP);
        pending.result = pending.result.and(if is_hint { Ok(()) } else { result });
        let mut single_buffer = None;
        match pending.chunks.get_mut(part) {
            Some(chunk) => chunk.data = Some(buffer),
            None => single_buffer = Some(buffer),
        }
        match pending.parts_left {
            0 => self.finish(now, slot, single_buffer, outbox),
            // Only the flush of a durable request is left.
            1 if pending.request.needs_final_flush() && part != FINAL_FLUSH => {
                if pending.result.is_ok() {
                    self.client.push(Io::flush(token_of(slot, FINAL_FLUSH as u32)));
                } else {
                    self.finish(now, slot, single_buffer, outbox);
                }
            }
            _ => {}
        }
    }

    /// All parts of a request have completed: its reply is ready.
    pub(super) fn finish(&mut self, now: Instant, slot: u32, single_buffer: Option<Buffer>, outbox: &mut Outbox) {
        let Some(Pending { request, began, result, chunks, .. }) = self.slots[slot as usize].take() else { return };
        self.free.push(slot);
        self.in_flight -= 1;
        self.peer.set_in_flight(self.in_flight);
        self.completed += 1;
        let kind = kind(&request);
        self.export.counts.ended(kind, result.is_ok().then(|| now.since(began)));
        if result.is_ok() {
            self.peer.completed(kind);
        }
        let (origin, writer) = (request.origin(), self.writer);
        if let Err(errno) = result {
            self.export.failures.add(errno);
            outbox.header(|out| writer.refused(origin, Refusal::from_errno(errno.0), out));
            single_buffer
                .into_iter()
                .chain(chunks.into_iter().filter_map(|chunk| chunk.data))
                .for_each(|buffer| self.pool.give_back(buffer));
            return self.reply_ends(outbox);
        }
        if !matches!(request.command, Command::Read { .. }) {
            outbox.header(|out| writer.done(origin, out));
            single_buffer.into_iter().for_each(|buffer| self.pool.give_back(buffer));
            return self.reply_ends(outbox);
        }
        if let Some(buffer) = single_buffer {
            outbox.header(|out| writer.data_header(origin, request.offset, request.length as u32, true, out));
            outbox.data(buffer);
        }
        let last = chunks.len().saturating_sub(1);
        for (index, Chunk { offset, length, data }) in chunks.into_iter().enumerate() {
            match data {
                Some(buffer) => {
                    outbox.header(|out| writer.data_header(origin, offset, length, index == last, out));
                    outbox.data(buffer);
                }
                None => outbox.header(|out| writer.hole(origin, offset, length, index == last, out)),
            }
        }
        self.reply_ends(outbox);
    }
}

/// The kind of a request in the statistics.
fn kind(request: &Request) -> Ended {
    match request.command {
        Command::Read { .. } => Ended::Read(request.length),
        Command::Write { .. } => Ended::Write(request.length),
        _ => Ended::Other,
    }
}
