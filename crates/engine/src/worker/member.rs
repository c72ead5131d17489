//! A client from its worker's point of view.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Release};

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Op};
use hoistway_blk::caller::Submitter;
use hoistway_blk::ground::{Instant, IoContextId, SECTOR_BYTES, Sector, Threads};
use hoistway_blk::queue::Queue;

use crate::backend::Zeroing;
use crate::context::Context;
use crate::handler::Handler;
use crate::request::{Completion, Errno, Operation, Request, TRANSFER_BYTES_MAX};
use crate::resident::Resident;
use crate::worker::ranges::Part;

/// The receiver of completions.
pub enum Sink {
    Handler(Box<dyn Handler>),
    Resident(Box<dyn Resident>),
}

/// Why a request is not submitted unchanged.
pub enum Unfit {
    /// It fails.
    Refused(Errno),
    /// It does not consist of whole blocks.
    Unaligned,
}

/// A client on its worker. It submits one bio at a time, as a process does.
pub struct Member {
    pub submitter: Submitter<Queue<Threads>>,
    pub context: Context,
    pub io_context: IoContextId,
    /// Start of its volume on the target, in bytes.
    pub first_byte: u64,
    /// The length of its volume.
    pub bytes: u64,
    pub read_only: bool,
    /// Bytes of a logical block; a power of two.
    pub block_bytes: u64,
    /// Requests that the queue has not seen.
    pub backlog: VecDeque<Request>,
    /// Parts of unaligned requests; they go before the backlog.
    pub parts: VecDeque<Part>,
    /// The slot of the request that its submitter is waiting with.
    pub partially_submitted: Option<u32>,
    /// The rest of a long request after its turn.
    pub rest: Option<Bio>,
    /// Slots in use.
    pub in_flight: u32,
    /// Completions that the handler has not received yet.
    pub done: Vec<Completion>,
    /// When it wants its next turn, if it is a resident.
    pub next_turn_at: Instant,
    pub sink: Sink,
    /// Uncompleted requests; not used for residents.
    pub uncompleted_requests: Arc<AtomicU32>,
    pub has_departed: bool,
    /// Whether it waits for its next turn, which new requests do not bring forward.
    pub is_deferred: bool,
    /// Whether it is on the worker's list of members with something to submit.
    pub is_enqueued: bool,
    /// Whether it is on the worker's list of members with completions.
    pub has_completions: bool,
}

impl Member {
    /// Makes the bio of a request, without its owner.
    ///
    /// # Errors
    /// If the volume does not support the operation, or the request does not consist of whole blocks.
    #[inline]
    pub fn bio(&self, request: &Request) -> Result<(Bio, Zeroing), Unfit> {
        let bytes = request.bytes();
        let is_flush = request.operation == Operation::Flush;
        if self.read_only && !matches!(request.operation, Operation::Read | Operation::Flush) {
            return Err(Unfit::Refused(Errno::PERM));
        }
        if !is_flush && bytes == 0 || (request.buffer.len() as u64) > TRANSFER_BYTES_MAX {
            return Err(Unfit::Refused(Errno::INVAL));
        }
        if request.offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(Unfit::Refused(Errno::NOSPC));
        }
        // A flush ignores its offset.
        let first = self.first_byte + request.offset;
        if (first | bytes) & (self.block_bytes - 1) != 0 && !is_flush {
            return Err(Unfit::Unaligned);
        }
        let sectors = u32::try_from(bytes / SECTOR_BYTES).map_err(|_| Unfit::Refused(Errno::INVAL))?;
        Ok(self.bio_of(request, Sector(first / SECTOR_BYTES), sectors))
    }

    /// The bio for these sectors of the target.
    #[inline]
    pub fn bio_of(&self, request: &Request, first: Sector, sectors: u32) -> (Bio, Zeroing) {
        let mut zeroing = Zeroing::default();
        let (op, flags) = match request.operation {
            Operation::Read => (Op::Read, BioFlags::NONE),
            // Flags as for direct I/O of a process, which waits for it and submits more.
            Operation::Write { durable: false } => (Op::Write, BioFlags::SYNC.with(BioFlags::IDLE)),
            Operation::Write { durable: true } => (Op::Write, BioFlags::SYNC.with(BioFlags::IDLE).with(BioFlags::FUA)),
            Operation::Flush => (Op::Write, BioFlags::PREFLUSH),
            Operation::Discard { .. } => (Op::Discard, BioFlags::NONE),
            Operation::WriteZeroes { may_unmap, fast_only, .. } => {
                zeroing = Zeroing { may_unmap, fast_only };
                (Op::WriteZeroes, BioFlags::SYNC)
            }
        };
        let bio = Bio {
            flags,
            ioprio: if request.ioprio == IoPriority::UNSET { self.context.ioprio } else { request.ioprio },
            io_context: self.io_context,
            cgroup: self.context.group.0,
            ..Bio::new(op, first, sectors)
        };
        (bio, zeroing)
    }

    /// Adds requests to its backlog, and leaves an empty list. Copies nothing if there was no backlog, the usual case.
    pub fn add(&mut self, requests: &mut Vec<Request>) {
        if self.backlog.is_empty() {
            let memory = std::mem::replace(&mut self.backlog, std::mem::take(requests).into());
            *requests = memory.into();
        } else {
            self.backlog.extend(requests.drain(..));
        }
    }

    /// Whether there is anything to submit.
    pub fn has_requests(&self) -> bool {
        !self.backlog.is_empty() || !self.parts.is_empty()
    }

    /// Whether it has left and nothing of it remains.
    pub fn is_done(&self) -> bool {
        self.has_departed && self.in_flight == 0 && !self.submitter.is_parked()
    }

    /// One of its requests has completed.
    pub fn complete(&mut self, completion: Completion) {
        if !self.has_departed {
            self.done.push(completion);
        }
    }

    /// Passes its completions to the handler.
    pub fn notify(&mut self) {
        if let Sink::Handler(handler) = &mut self.sink {
            let completions = self.done.len() as u32;
            // Counted first: the handler may submit the same number again.
            self.uncompleted_requests.fetch_sub(completions, Release);
            handler.completed(&mut self.done);
            self.done.clear();
        }
    }
}
