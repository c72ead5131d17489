//! What a process has under way, and how many more it may submit.

use hoistway_blk::{Instant, Op};
use hoistway_engine::{Buffer, Buffers, Completion};
use hoistway_load::Process;

/// I/Os under way, as many as the depth allows.
pub struct Window {
    slots: Vec<Slot>,
    free: Vec<u32>,
    in_flight: u32,
    /// The queue was full and now drains to `depth_low`.
    is_draining: bool,
    /// The flush that the process sleeps in, beside whatever is under way: until it has ended nothing is submitted, and nothing else is
    /// looked at.
    sleeps_in: Option<u32>,
    depth_low: u32,
    batch: u32,
    complete_min: u32,
}

/// An I/O under way, or memory for one.
pub struct Slot {
    pub op: Op,
    pub bytes: u32,
    pub offset_bytes: u64,
    pub created: Instant,
    /// Used again and again; empty while its I/O is under way.
    pub buffer: Buffer,
}

impl Window {
    /// Of a process whose blocks have at most so many bytes.
    pub fn new(process: &Process, block_bytes: u32, buffers: &Buffers) -> Self {
        let depth = process.issue.depth.max(1);
        let slot = |_| Slot {
            op: Op::Read,
            bytes: 0,
            offset_bytes: 0,
            created: Instant::ZERO,
            buffer: noise(buffers.zeroed(block_bytes as usize)),
        };
        Window {
            slots: (0..depth).map(slot).collect(),
            free: (0..depth).rev().collect(),
            in_flight: 0,
            is_draining: false,
            sleeps_in: None,
            depth_low: process.issue.depth_low.unwrap_or(depth).min(depth),
            batch: process.issue.batch.clamp(1, depth),
            complete_min: process.issue.complete_min,
        }
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// How many I/Os may be submitted at once now.
    pub fn room(&mut self) -> u32 {
        let depth = self.slots.len() as u32;
        if self.in_flight >= depth {
            self.is_draining = self.depth_low < depth;
        } else if self.in_flight <= self.depth_low {
            self.is_draining = false;
        }
        if self.is_draining || self.sleeps_in.is_some() { 0 } else { (depth - self.in_flight).min(self.batch) }
    }

    /// The process sleeps until this I/O has ended.
    pub fn sleep_in(&mut self, index: u32) {
        self.sleeps_in = Some(index);
    }

    /// Whether these ends are worth looking at.
    pub fn wants(&self, ended: &[Completion]) -> bool {
        match self.sleeps_in {
            Some(index) => ended.iter().any(|end| end.token == u64::from(index)),
            None => !ended.is_empty() && ended.len() as u32 >= self.complete_min.clamp(1, self.in_flight.max(1)),
        }
    }

    /// An I/O begins. `None` if there is no slot.
    pub fn begin(&mut self) -> Option<(u32, &mut Slot)> {
        let index = self.free.pop()?;
        self.in_flight += 1;
        Some((index, &mut self.slots[index as usize]))
    }

    /// An I/O has ended.
    pub fn end(&mut self, index: u32) -> &mut Slot {
        self.in_flight -= 1;
        self.free.push(index);
        self.sleeps_in = self.sleeps_in.filter(|&flush| flush != index);
        &mut self.slots[index as usize]
    }
}

/// Fills a buffer with bytes that no storage can compress.
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
