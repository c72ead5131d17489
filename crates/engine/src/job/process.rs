//! A process on its worker: a [`RunningProcess`] whose I/Os are requests to the engine.

use std::sync::Arc;

use hoistway_blk::bio::{BioFlags, Op};
use hoistway_blk::ground::{Instant, Nanos};
use hoistway_load::process::{Flows, IoInFlight, RunningProcess, Step};
use hoistway_load::{Process, WriteSync};

use super::LoadRun;
use crate::{Buffer, Buffers, Completion, Operation, Request, Resident, Turn};

/// How often a process that waits for others, to start or for its share, checks whether it may continue.
const WAIT_FOR_OTHERS: Nanos = Nanos::from_millis(1);
/// How often any other process checks whether it must end.
const WAIT_FOR_END: Nanos = Nanos::from_millis(50);

/// A process on its worker.
pub(super) struct JobProcess {
    number: u32,
    shared: Arc<LoadRun>,
    description: Process,
    /// `None` once it has exited.
    process: Option<RunningProcess>,
    has_started: bool,
    /// A reused buffer per slot; empty while the slot's I/O is in flight.
    buffers: Vec<Buffer>,
    /// Until then it keeps its CPU busy.
    spins_until: Instant,
    /// The balances of a process that has none.
    no_flows: Flows,
    /// The time of its last turn.
    now: Instant,
}

impl JobProcess {
    pub(super) fn new(
        description: &Process,
        number: u32,
        process: RunningProcess,
        shared: Arc<LoadRun>,
        buffers: &Buffers,
    ) -> Self {
        let block_bytes = description.plan.block_bytes_max() as usize;
        JobProcess {
            number,
            shared,
            description: description.clone(),
            process: Some(process),
            has_started: false,
            buffers: (0..description.issue.depth.max(1)).map(|_| noise(buffers.zeroed(block_bytes))).collect(),
            spins_until: Instant::ZERO,
            no_flows: Flows::default(),
            now: Instant::ZERO,
        }
    }

    /// Starts the process if it is due. Otherwise returns when to check again.
    fn start(&mut self, now: Instant) -> Option<Instant> {
        if self.has_started {
            return None;
        }
        let is_ended = self.shared.is_ended(self.number);
        let start = match self.shared.start_of(self.number) {
            None => return Some(now + WAIT_FOR_OTHERS),
            Some(start) if now < start && !is_ended => return Some(start.min(now + WAIT_FOR_END)),
            Some(start) => start.min(now),
        };
        self.has_started = true;
        self.process.as_mut()?.start_at(&self.description, start);
        None
    }

    /// Takes the completions of its requests.
    fn take_completions(&mut self, ended: &mut Vec<Completion>) {
        let Some(process) = &mut self.process else { return };
        if ended.is_empty() {
            return;
        }
        self.shared.count_ios(ended.len() as u64);
        for Completion { token, result, mut buffer } in ended.drain(..) {
            let slot = token as u32;
            // Flushes and trims have no buffer.
            if buffer.capacity() > 0 {
                buffer.set_len(buffer.capacity());
                self.buffers[slot as usize] = buffer;
            }
            match result {
                Ok(()) => process.ended(slot),
                Err(errno) => process.io_failed(slot, errno.0),
            }
        }
    }

    /// Makes the request for the I/O in a slot.
    fn request(&mut self, slot: u32, io: IoInFlight) -> Request {
        let token = u64::from(slot);
        let mut buffer = || {
            let mut buffer = std::mem::take(&mut self.buffers[slot as usize]);
            buffer.set_len(io.bytes as usize);
            buffer
        };
        let request = match io.op {
            Some(Op::Read) => Request::read(io.offset_bytes, buffer(), token),
            Some(Op::Write) if !io.is_committing => {
                let syncs_writes = self.description.caching.write_sync != WriteSync::None;
                let durable = syncs_writes || io.flags.intersects(BioFlags::FUA.with(BioFlags::PREFLUSH));
                let operation = Operation::Write { durable };
                Request { operation, ..Request::write(io.offset_bytes, buffer(), token) }
            }
            Some(Op::Discard | Op::WriteZeroes) => Request::discard(io.offset_bytes, u64::from(io.bytes), token),
            Some(Op::Flush | Op::Write) | None => Request::flush(token),
        };
        Request { ioprio: io.priority, ..request }
    }

    fn next(&mut self, now: Instant) -> Step {
        match &mut self.process {
            None => Step::Exit,
            Some(process) if process.depends_on_other_processes() => self.shared.next_of_dependent(process, now),
            Some(process) => process.next(now, &mut self.no_flows),
        }
    }

    /// Runs the process until it waits or its system call is complete.
    fn make_progress(&mut self, now: Instant, requests: &mut Vec<Request>) -> Turn {
        loop {
            match self.next(now) {
                Step::Submit(slot) => {
                    let Some(process) = &self.process else { return Turn::Detached };
                    let io = *process.io(slot);
                    requests.push(self.request(slot, io));
                }
                Step::EndCall => {
                    let Some(process) = &mut self.process else { return Turn::Detached };
                    process.call_ended(now);
                    // The next call is a separate turn: requests of one turn go through one plug.
                    if process.has_more_to_do(now) {
                        return Turn::By(now);
                    }
                    return self.next_turn(now, None);
                }
                Step::Wait(alarm) => {
                    let spin = self.process.as_mut().map_or(Nanos::ZERO, RunningProcess::take_spin);
                    self.spins_until = now + spin;
                    return if spin > Nanos::ZERO { Turn::By(now) } else { self.next_turn(now, alarm) };
                }
                Step::Exit => {
                    if let Some(process) = self.process.take() {
                        self.shared.exited(self.number, process, now);
                    }
                    return Turn::Detached;
                }
            }
        }
    }

    /// Its next turn is at this time, unless an I/O completes earlier.
    fn next_turn(&self, now: Instant, alarm: Option<Instant>) -> Turn {
        let Some(process) = &self.process else { return Turn::Detached };
        let check_interval = if process.depends_on_other_processes() { WAIT_FOR_OTHERS } else { WAIT_FOR_END };
        let deadline = if now < process.deadline() { process.deadline() } else { Instant::NEVER };
        Turn::By(alarm.unwrap_or(Instant::NEVER).min(deadline).min(now + check_interval))
    }
}

impl Resident for JobProcess {
    fn turn(&mut self, now: Instant, ended: &mut Vec<Completion>, requests: &mut Vec<Request>) -> Turn {
        self.now = now;
        if let Some(again) = self.start(now) {
            return Turn::By(again);
        }
        self.take_completions(ended);
        if self.shared.is_ended(self.number) {
            self.process.iter_mut().for_each(RunningProcess::end);
        } else if now < self.spins_until {
            // The worker does not sleep, but runs its other processes.
            return Turn::By(now);
        }
        let turn = self.make_progress(now, requests);
        if let Some(process) = &self.process {
            self.shared.publish_progress(self.number, process);
        }
        turn
    }
}

impl Drop for JobProcess {
    fn drop(&mut self) {
        // The engine was stopped while it ran: its results go to the waiting thread.
        if let Some(process) = self.process.take() {
            self.shared.exited(self.number, process, self.now);
        }
    }
}

/// Fills a buffer with incompressible bytes.
fn noise(mut buffer: Buffer) -> Buffer {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for word in buffer.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
    buffer
}
