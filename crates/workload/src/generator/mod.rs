//! The I/Os of a process, one after the other.
//!
//! fio's own numbers are not reproduced, only their distribution: which blocks are visited and how often, the
//! shares of directions and sizes, and the rules by which a job runs on, wraps around and ends (tried with fio
//! 3.33). Everything random comes from one seed, with a stream for each process and purpose; nothing is
//! allocated for an I/O.

mod lane;
mod lfsr;
mod order;
mod permutation;
mod sizes;
mod skew;
mod stream;

use hoistway_blk::Op;

use crate::IoPlan;
use crate::plan::{JobPlan, Region};
use crate::settings::{Direction, Modifier};
use crate::values::Amount;

use lane::{Lane, Track};
pub(crate) use order::RandomGenerator;
use order::{Order, OrderRule};
pub(crate) use sizes::Sizes;
pub(crate) use skew::Distribution;
pub(crate) use stream::{Purpose, Stream, splitmix};

/// One I/O of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// [`Op::Read`], [`Op::Write`], [`Op::Discard`] (a trim), or [`Op::Flush`]: an fsync, for which the process
    /// waits until the I/Os before it are done. To the block layer it goes as an empty write with PREFLUSH.
    pub op: Op,
    /// First byte on the device; 0 for a flush.
    pub offset_bytes: u64,
    /// Length; 0 for a flush.
    pub bytes: u32,
}

/// Yields the I/Os of one process in the order in which it issues them.
#[derive(Clone, Debug)]
pub struct Generator {
    /// Reads, writes, trims.
    lanes: [Lane; 3],
    track: Track,
    direction: Direction,
    /// A draw of 32 bits below this is a read.
    read_below: u64,
    direction_stream: Stream,
    /// The range that was trimmed and must now be written.
    trimmed: Option<Io>,
    issued_bytes: u64,
    issued_ios: u64,
    bytes_max: u64,
    ios_max: u64,
    /// Passes end, rather than wrap around.
    ended: bool,
    writes: u64,
    sync_every: [u32; 2],
    sync_due: bool,
    last_was_sync: bool,
}

/// The lane of an operation: reads 0, writes 1, trims 2; none for a flush.
#[inline]
pub(crate) fn lane_of(op: Op) -> Option<usize> {
    // A table, because the direction of a mix is a coin toss that no branch can foresee.
    const LANES: [u8; 10] = [0, 1, 3, 2, 3, 3, 3, 3, 3, 1];
    let lane = usize::from(LANES[op as usize]);
    (lane < 3).then_some(lane)
}

impl Generator {
    pub(crate) fn new(plan: &IoPlan, region: Region, seed: u64) -> Generator {
        let job = &*plan.job;
        let seed = match job.rand_seed {
            Some(own) if !job.rand_repeat => splitmix(seed) ^ splitmix(own as u64),
            _ => seed,
        };
        let process = u64::from(plan.process);
        let (bytes_max, ios_max) = limits(job, region);
        Generator {
            lanes: [0, 1, 2].map(|i| Lane::new(job, i, region.bytes, seed, process)),
            track: Track {
                random: job.random,
                orders: orders(job, region.bytes, seed, process),
                start_bytes: region.start,
                region_bytes: region.bytes,
                skip: if let Modifier::Skip(bytes) = job.modifier { bytes } else { 0 },
                wraps: job.time_based || job.loops > 1 || job.io_size.is_some(),
                every: if let Modifier::Every(n) = job.modifier { n } else { 1 },
                run_left: 0,
                sequencer: job.sequencer,
                order_stream: Stream::new(seed, process, Purpose::Order),
            },
            direction: job.direction,
            read_below: (u64::from(job.read_percent) << 32) / 100,
            direction_stream: Stream::new(seed, process, Purpose::Direction),
            trimmed: None,
            issued_bytes: 0,
            issued_ios: 0,
            bytes_max,
            ios_max,
            ended: false,
            writes: 0,
            sync_every: job.sync_every,
            sync_due: false,
            last_was_sync: false,
        }
    }

    /// The next I/O, or `None` when the job has done its work. A job that is `time_based` goes on for ever.
    #[expect(clippy::should_implement_trait, reason = "`Iterator` is implemented and calls this")]
    #[inline]
    pub fn next(&mut self) -> Option<Io> {
        let op = self.next_op()?;
        self.issue(op)
    }

    /// The kind of the next I/O, drawn at random in a mix; `None` at the end of the job. With
    /// [`Generator::issue`] this is [`Generator::next`] in two halves, for jobs in which the direction depends
    /// on the pace (see [`Pacer::choose`](crate::Pacer::choose)).
    #[inline]
    pub fn next_op(&mut self) -> Option<Op> {
        if self.issued_bytes >= self.bytes_max || self.issued_ios >= self.ios_max || self.ended {
            return None;
        }
        if self.sync_due && !self.last_was_sync {
            return Some(Op::Flush);
        }
        Some(match self.direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
            Direction::Trim => Op::Discard,
            Direction::Mixed => {
                let is_write = self.direction_stream.bits() >> 32 >= self.read_below;
                [Op::Read, Op::Write][usize::from(is_write)]
            }
            Direction::TrimWrite if self.trimmed.is_some() => Op::Write,
            Direction::TrimWrite => Op::Discard,
        })
    }

    /// The next I/O, of the kind that [`Generator::next_op`] drew, or of the other direction of a mix. `None`
    /// if the job ends instead, because what is left of its region is too small.
    #[inline]
    pub fn issue(&mut self, op: Op) -> Option<Io> {
        let Some(lane) = lane_of(op) else {
            self.last_was_sync = true;
            return Some(Io { op: Op::Flush, offset_bytes: 0, bytes: 0 });
        };
        let io = match self.trimmed.take() {
            Some(trimmed) => Io { op, ..trimmed },
            None => {
                let Some((offset_bytes, bytes)) = self.track.next(&mut self.lanes[lane]) else {
                    self.ended = true;
                    return None;
                };
                Io { op, offset_bytes, bytes }
            }
        };
        self.issued_ios += 1;
        self.last_was_sync = false;
        if self.direction == Direction::TrimWrite && op == Op::Discard {
            // As in fio, only the writes count towards the size.
            self.trimmed = Some(io);
        } else {
            self.issued_bytes += u64::from(io.bytes);
        }
        if self.sync_every != [0, 0] && op == Op::Write {
            self.writes += 1;
            // It stays due until the next write: in a mix fio flushes again after each read in between.
            self.sync_due = self.sync_every.iter().any(|&n| n > 0 && self.writes.is_multiple_of(u64::from(n)));
        }
        Some(io)
    }
}

impl Iterator for Generator {
    type Item = Io;

    #[inline]
    fn next(&mut self) -> Option<Io> {
        Generator::next(self)
    }
}

/// How many bytes and I/Os end the job.
fn limits(job: &JobPlan, region: Region) -> (u64, u64) {
    if job.time_based {
        return (u64::MAX, u64::MAX);
    }
    let pass_bytes = match (job.io_size, fixed_size(job)) {
        (Some(Amount::Bytes(bytes)), _) => bytes,
        (Some(percent), _) => percent.of(region.whole),
        // A remainder smaller than a block is not touched.
        (None, Some(block)) => region.bytes - region.bytes % u64::from(block),
        (None, None) => region.bytes,
    };
    let ios = if job.number_ios == 0 { u64::MAX } else { job.number_ios.saturating_mul(job.loops) };
    (pass_bytes.saturating_mul(job.loops), ios)
}

/// The block size, if there is only one.
fn fixed_size(job: &JobPlan) -> Option<u32> {
    let mut sizes = job.direction.lanes().iter().map(|&lane| match job.sizes[lane] {
        Sizes::Fixed(bytes) => Some(bytes),
        _ => None,
    });
    let first = sizes.next()??;
    sizes.all(|size| size == Some(first)).then_some(first)
}

/// The random orders of the lanes. Directions with blocks of the same size and alignment share one, so that
/// each block is either read or written once.
fn orders(job: &JobPlan, region_bytes: u64, seed: u64, process: u64) -> Vec<Order> {
    if !job.random {
        return Vec::new();
    }
    let rule = OrderRule {
        generator: job.random_generator,
        distribution: job.distribution,
        map: job.random_map,
        same_passes: job.rand_repeat && !job.time_based,
    };
    let lanes = job.direction.lanes();
    let grids: Vec<_> = lanes.iter().map(|&lane| lane::grid(job, lane, region_bytes)).collect();
    if grids.windows(2).all(|pair| pair[0] == pair[1]) {
        return grids[..1].iter().map(|grid| Order::new(rule, grid.blocks, seed, process)).collect();
    }
    let orders = lanes.iter().zip(grids);
    orders.map(|(&lane, grid)| Order::new(rule, grid.blocks, splitmix(seed ^ lane as u64), process)).collect()
}
