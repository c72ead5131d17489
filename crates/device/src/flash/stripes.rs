//! Data that waits for the die that it was dealt to.
//!
//! With the placement `striped`, data is dealt to the dies in units on arrival, whether a die is busy or not: small writes as whole
//! programs, large ones in smaller units. A die that becomes free programs the data waiting for it together, up to a whole program;
//! a program takes equally long if it holds less. So throughput still grows with outstanding data when most dies are busy.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hoistway_blk::ground::Instant;

use super::dies::Dies;
use super::parameters::FlashParameters;
use crate::random::Random;

#[derive(Clone, Debug)]
pub(super) struct Stripes {
    /// A program: small writes are dealt in whole ones.
    unit_bytes: u64,
    /// A unit of writes that are acknowledged only when they are in the flash.
    write_through_unit_bytes: u64,
    /// For each die the waiting units, oldest first.
    queues: Vec<VecDeque<Unit>>,
    /// Dies with waiting units, and when they become free, as far as known.
    ready: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Bytes waiting for dies.
    bytes: u64,
    /// Writes that are acknowledged only when they are in the flash, in order of arrival.
    write_throughs: VecDeque<WriteThrough>,
    /// Number of the first of them.
    first_number: u32,
    /// When the last write removed from the list was acknowledged.
    acknowledged: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Unit {
    bytes: u64,
    /// Total bytes put into the buffer before it.
    start: u64,
    /// The number of its write, if that is acknowledged late.
    write_through: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct WriteThrough {
    tag: u32,
    bytes: u64,
    /// Units waiting for their dies.
    units: u32,
    /// When the others are in the flash.
    done: Instant,
}

/// The next program of a die.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) die: u32,
    pub(super) bytes: u64,
    /// Total bytes put into the buffer before its oldest data.
    pub(super) start: u64,
    units: usize,
    /// Whether a write waits for its end.
    pub(super) is_awaited: bool,
}

impl Stripes {
    /// `None` if data is not dealt to dies.
    pub(super) fn new(parameters: &FlashParameters) -> Option<Stripes> {
        let striping = parameters.striping.as_ref()?;
        Some(Stripes {
            unit_bytes: u64::from(parameters.program_kib) * 1024,
            write_through_unit_bytes: u64::from(striping.write_through_unit_kib) * 1024,
            queues: vec![VecDeque::new(); parameters.dies as usize],
            ready: BinaryHeap::with_capacity(parameters.dies as usize),
            bytes: 0,
            write_throughs: VecDeque::new(),
            first_number: 0,
            acknowledged: Instant::ZERO,
        })
    }

    #[inline]
    pub(super) fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    /// Bytes waiting for dies.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Deals a unit, or part of one, to a die. `start` is the total of bytes put into the buffer before it.
    pub(super) fn deal(&mut self, bytes: u64, start: u64, dies: &Dies, random: &mut Random) {
        self.deal_unit(Unit { bytes, start, write_through: None }, dies, random);
    }

    /// Deals a write that is acknowledged only when it is in the flash.
    pub(super) fn deal_write_through(&mut self, tag: u32, bytes: u64, start: u64, dies: &Dies, random: &mut Random) {
        let units = bytes.div_ceil(self.write_through_unit_bytes);
        let number = self.first_number.wrapping_add(self.write_throughs.len() as u32);
        self.write_throughs.push_back(WriteThrough { tag, bytes, units: units as u32, done: Instant::ZERO });
        for unit in 0..units {
            let offset = unit * self.write_through_unit_bytes;
            let bytes = (bytes - offset).min(self.write_through_unit_bytes);
            self.deal_unit(Unit { bytes, start: start + offset, write_through: Some(number) }, dies, random);
        }
    }

    fn deal_unit(&mut self, unit: Unit, dies: &Dies, random: &mut Random) {
        let die = random.below(self.queues.len() as u64) as u32;
        let queue = &mut self.queues[die as usize];
        if queue.is_empty() {
            self.ready.push(Reverse((dies.free_at(die), die)));
        }
        queue.push_back(unit);
        self.bytes += unit.bytes;
    }

    /// When the next die with waiting units may become free.
    #[inline]
    pub(super) fn next_start(&self) -> Option<Instant> {
        self.ready.peek().map(|&Reverse((at, _))| at)
    }

    /// The units waiting for a die that is free at `at`: as much as fits into a program, and at least one unit. Units that begin
    /// before `forced_up_to` do not wait for an idle die but take their turn behind the reads that it already has: reads that keep
    /// coming would hold up a flush for ever.
    pub(super) fn next_batch(
        &mut self,
        at: Instant,
        program_bytes: u64,
        forced_up_to: u64,
        dies: &Dies,
    ) -> Option<Batch> {
        while let Some(mut next) = self.ready.peek_mut()
            && next.0.0 <= at
        {
            let die = next.0.1;
            let free_at = dies.free_at(die);
            let queue = &self.queues[die as usize];
            let start = queue.front()?.start;
            if free_at > at && start >= forced_up_to {
                // Reads have occupied the die meanwhile.
                next.0.0 = free_at;
                continue;
            }
            let mut batch = Batch { die, bytes: 0, start, units: 0, is_awaited: false };
            for unit in queue {
                if batch.units > 0 && batch.bytes + unit.bytes > program_bytes {
                    break;
                }
                batch.bytes += unit.bytes;
                batch.units += 1;
                batch.is_awaited |= unit.write_through.is_some();
            }
            return Some(batch);
        }
        None
    }

    /// The next batch is being programmed and will be done at `ends`.
    pub(super) fn begin(&mut self, batch: &Batch, ends: Instant) {
        let queue = &mut self.queues[batch.die as usize];
        for unit in queue.drain(..batch.units) {
            let Some(number) = unit.write_through else { continue };
            let write = &mut self.write_throughs[number.wrapping_sub(self.first_number) as usize];
            write.units -= 1;
            write.done = write.done.max(ends);
        }
        self.bytes -= batch.bytes;
        self.ready.pop();
        if !queue.is_empty() {
            self.ready.push(Reverse((ends, batch.die)));
        }
    }

    /// The next write whose time of acknowledgement is known, which is when it and those before it are in the flash: its tag,
    /// size and time.
    #[inline]
    pub(super) fn pop_end(&mut self) -> Option<(u32, u64, Instant)> {
        let &WriteThrough { tag, bytes, units: 0, done } = self.write_throughs.front()? else { return None };
        self.write_throughs.pop_front();
        self.first_number = self.first_number.wrapping_add(1);
        self.acknowledged = self.acknowledged.max(done);
        Some((tag, bytes, self.acknowledged))
    }

    /// Whether a write waits for a die.
    #[inline]
    pub(super) fn has_waiting_write_through(&self) -> bool {
        !self.write_throughs.is_empty()
    }

    /// Whether no data up to this total waits for a die.
    pub(super) fn has_dealt(&self, position: u64) -> bool {
        self.queues.iter().all(|queue| queue.front().is_none_or(|unit| unit.start >= position))
    }
}
