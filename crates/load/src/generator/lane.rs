//! Offsets of the I/Os of one direction.

use super::grid::share_order;
use super::order::Order;
use super::sizes::Draw;
use super::strided::Zones;
use crate::stream::{Purpose, Stream};
use crate::{Pattern, Sequencer, Sizes};

/// One direction. As in fio, each direction has its own position: a sequential mix both reads and writes the whole
/// region.
#[derive(Clone, Debug)]
pub(super) struct DirectionState {
    sizes: Draw,
    size_stream: Stream,
    /// The smallest block, and whether it is the only size.
    bytes_min: u64,
    is_fixed: bool,
    /// Alignment of random offsets.
    align: u64,
    /// Index of the track's order that it uses.
    order: usize,
    percent_random: u8,
    /// The last I/O, relative to the region; both 0 before the first.
    last_start: u64,
    last_end: u64,
    /// The number of the zone visit of that I/O.
    visit: u32,
}

impl DirectionState {
    /// Begins a new pass.
    pub(super) fn restart(&mut self) {
        (self.last_start, self.last_end) = (0, 0);
    }
}

impl DirectionState {
    pub(super) fn new(job: &Pattern, lane: usize, region_bytes: u64, seed: u64, process: u64) -> DirectionState {
        let lanes = job.direction.lanes();
        let shared = share_order(job, region_bytes);
        DirectionState {
            sizes: Draw::new(&job.sizes[lane]),
            size_stream: Stream::numbered(seed, process, Purpose::Size as u64 + lane as u64),
            bytes_min: u64::from(job.sizes[lane].min()),
            is_fixed: matches!(job.sizes[lane], Sizes::Fixed(_)),
            align: job.align_bytes(lane),
            order: if shared { 0 } else { lanes.iter().position(|&l| l == lane).unwrap_or(0) },
            percent_random: job.random_offsets().map_or(0, |random| random.percent[lane]),
            last_start: 0,
            last_end: 0,
            visit: 0,
        }
    }
}

/// The next offset of a random job.
enum NextOffset {
    /// This offset.
    At(u64),
    /// An offset to be drawn.
    Anywhere,
    /// The pass ends.
    Nowhere,
}

/// State that all directions share.
#[derive(Clone, Debug)]
pub(super) struct SharedPosition {
    pub(super) random: bool,
    pub(super) orders: Vec<Order>,
    pub(super) start_bytes: u64,
    pub(super) region_bytes: u64,
    /// Bytes from the start of the region to the end of the device, or to the end of the process's own file.
    pub(super) room_bytes: u64,
    /// Size of the whole file that contains the region, and the region's start in it.
    pub(super) file_bytes: u64,
    pub(super) offset: u64,
    pub(super) zones: Option<Box<Zones>>,
    /// Bytes between sequential I/Os, backwards if negative.
    pub(super) skip: i64,
    /// Whether the region starts over by itself at its end.
    pub(super) wraps: bool,
    /// I/Os per random offset.
    pub(super) every: u32,
    /// I/Os left at the current random offset.
    pub(super) run_left: u32,
    pub(super) sequencer: Sequencer,
    pub(super) order_stream: Stream,
}

impl SharedPosition {
    /// Begins a new pass.
    pub(super) fn restart(&mut self) {
        self.run_left = 0;
        self.orders.iter_mut().for_each(Order::restart);
        self.zones.as_mut().into_iter().for_each(|zones| zones.restart());
    }

    /// Offset on the device and length of the next I/O; `None` if the region is done.
    #[inline]
    pub(super) fn next(&mut self, direction: &mut DirectionState) -> Option<(u64, u32)> {
        if self.zones.is_some() {
            return self.next_in_zone(direction);
        }
        let start = if self.random { self.random_start(direction)? } else { self.sequential_start(direction)? };
        Some(self.io_at(direction, start))
    }

    /// The same at the start of a new pass.
    pub(super) fn start_pass(&mut self, direction: &mut DirectionState) -> Option<(u64, u32)> {
        let start = match self.orders.get_mut(direction.order) {
            Some(order) => {
                order.restart();
                order.next()? * direction.align
            }
            None => 0,
        };
        Some(self.io_at(direction, start))
    }

    #[inline(always)]
    fn io_at(&mut self, direction: &mut DirectionState, start: u64) -> (u64, u32) {
        let mut bytes = direction.sizes.draw(self.region_bytes.saturating_sub(start), &mut direction.size_stream);
        if self.random {
            bytes = self.orders[direction.order].length_at(start, bytes);
        }
        direction.last_start = start;
        direction.last_end = start + u64::from(bytes);
        (self.start_bytes + start, bytes)
    }

    /// The same for a job with zones.
    #[inline(never)]
    fn next_in_zone(&mut self, direction: &mut DirectionState) -> Option<(u64, u32)> {
        let zones = self.zones.as_mut()?;
        let room = self.region_bytes - direction.bytes_min;
        // Tried with fio 3.33: a job enters a zone in which no block fits any more, and ends there.
        if zones.leave_if_done(self.region_bytes - 1) {
            self.run_left = 0;
            self.orders.iter_mut().for_each(Order::restart);
        }
        if direction.visit != zones.visit() {
            direction.visit = zones.visit();
            (direction.last_start, direction.last_end) = (zones.start(), zones.start());
        }
        let start =
            if self.random { self.random_in_zone(direction, room)? } else { self.sequential_in_zone(direction)? };
        let bytes = direction.sizes.draw(self.region_bytes - start, &mut direction.size_stream);
        (direction.last_start, direction.last_end) = (start, start + u64::from(bytes));
        self.zones.as_mut()?.count_transferred(bytes);
        Some((self.start_bytes + start, bytes))
    }

    fn random_in_zone(&mut self, direction: &mut DirectionState, room: u64) -> Option<u64> {
        if (self.every > 1 || direction.percent_random < 100)
            && let NextOffset::At(start) = self.run_next(direction)
        {
            return Some(start);
        }
        // More than any job needs: a truncated zone may have few blocks that fit.
        const DRAWS_MAX: u32 = 1 << 16;
        for _ in 0..DRAWS_MAX {
            let order = &mut self.orders[direction.order];
            let block = match order.next() {
                Some(block) => block,
                None => {
                    order.restart();
                    order.next()?
                }
            };
            let zones = self.zones.as_mut()?;
            let start = zones.start() + block * direction.align;
            if start <= room {
                return Some(start);
            }
            // Tried with fio 3.33: a block that the end of the region cuts off ends the pass.
            if !self.wraps {
                return None;
            }
            zones.restart();
            direction.visit = zones.visit();
            order.restart();
        }
        None
    }

    fn sequential_in_zone(&mut self, direction: &mut DirectionState) -> Option<u64> {
        let zones = self.zones.as_mut()?;
        let start = zones.next_offset(direction.last_end, self.skip);
        if start + direction.bytes_min <= self.region_bytes {
            return Some(start);
        }
        if !self.wraps {
            return None;
        }
        zones.restart();
        direction.visit = zones.visit();
        Some(0)
    }

    #[inline]
    fn random_start(&mut self, direction: &DirectionState) -> Option<u64> {
        if self.every > 1 || direction.percent_random < 100 {
            match self.run_next(direction) {
                NextOffset::At(start) => return Some(start),
                NextOffset::Anywhere => {}
                NextOffset::Nowhere => return None,
            }
        }
        let order = &mut self.orders[direction.order];
        match order.next() {
            Some(block) => Some(block * direction.align),
            None if self.wraps => {
                order.restart();
                order.next().map(|block| block * direction.align)
            }
            None => None,
        }
    }

    /// The next offset of a random job that may continue the last I/O.
    fn run_next(&mut self, direction: &DirectionState) -> NextOffset {
        if self.run_left > 0 {
            self.run_left -= 1;
            if self.sequencer == Sequencer::Identical {
                return NextOffset::At(direction.last_start);
            }
        } else {
            self.run_left = self.every - 1;
            if self.order_stream.percent(direction.percent_random) {
                return NextOffset::Anywhere;
            }
        }
        let start = self.zones.as_ref().map_or(direction.last_end, |zones| zones.next_offset(direction.last_end, 0));
        if self.fits(direction, start) {
            return NextOffset::At(start);
        }
        // Tried with fio 3.33: where the device extends beyond the region, a run that reaches the end of the region ends the pass, or
        // continues at the beginning of the region if the job wraps. At the end of the device the next place is drawn.
        if self.zones.is_some() || start < self.region_bytes || start + direction.bytes_min > self.room_bytes {
            NextOffset::Anywhere
        } else if self.wraps {
            NextOffset::At(0)
        } else {
            self.run_left = self.every - 1;
            NextOffset::Nowhere
        }
    }

    /// Whether an I/O of this lane may start there: all of it lies in the region, or, if its size varies, at least its
    /// start.
    #[inline]
    fn fits(&self, direction: &DirectionState, start: u64) -> bool {
        let end = start + direction.bytes_min;
        end <= self.region_bytes || (direction.is_fixed && start < self.region_bytes && end <= self.room_bytes)
    }

    #[inline]
    fn sequential_start(&mut self, direction: &DirectionState) -> Option<u64> {
        let mut start = direction.last_end;
        if self.skip != 0 && start > 0 {
            start = match start.checked_add_signed(self.skip) {
                Some(start) => start,
                // Backward jobs continue from the end, as in fio even when they do not wrap otherwise.
                None => self.region_bytes.saturating_add_signed(self.skip),
            };
        }
        if self.fits(direction, start) {
            return Some(start);
        }
        if self.wraps || self.skip < 0 {
            return Some(0);
        }
        // Tried with fio 3.33: a job whose skip reaches or passes the end of its file starts over, at a distance from the
        // region's start that equals the region's offset in the file. It is done if its last I/O ended with the region, or if the
        // skip leaves the region but not the file.
        let starts_over = self.skip > 0 && start >= self.file_bytes && direction.last_end < self.region_bytes;
        (starts_over && self.offset + direction.bytes_min <= self.region_bytes).then_some(self.offset)
    }
}
