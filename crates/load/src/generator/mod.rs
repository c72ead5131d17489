//! Generates the I/Os of a process.
//!
//! Used by: `process`; crate `sim`.
//! Tests: `crates/load/src/generator/` (in its files), `crates/load/tests/bounds.rs`, `crates/load/tests/files.rs`.
//!
//! It does not reproduce fio's random numbers, only their distribution: which blocks are visited and how often, the
//! shares of directions and sizes, and the rules by which a job continues, wraps around and ends (tried with fio 3.33).
//! Everything random comes from one seed, with a stream for each process and purpose. No I/O allocates memory, except
//! with [`unvisited`], which remembers visited blocks.

mod files;
mod grid;
mod lane;
mod lfsr;
mod order;
mod permutation;
mod priorities;
mod ranks;
mod recorded;
mod sizes;
mod skew;
mod strided;
mod unvisited;
mod verify;
mod zones;

use hoistway_blk::bio::{IoPriority, Op};

use crate::io::{Io, lane_of};
use crate::plan::Region;
use crate::stream::{Purpose, Stream, splitmix};
use crate::{
    Amount, Direction, IoPlan, LoadError, Offsets, Pattern, Pause, Process, RandomGenerator, Replay, Sequencer,
};

use files::Files;
use grid::{grid, share_order};
use lane::{DirectionState, SharedPosition};
use order::Order;
use priorities::Priorities;
use recorded::Recorded;
use strided::Zones;
use verify::Verify;

/// Yields the I/Os of one process in the order in which it issues them.
#[derive(Debug)]
pub struct Generator {
    /// Its position in the current file.
    cursor: Cursor,
    direction: Direction,
    /// A draw of 32 bits below this is a read.
    read_below: u64,
    direction_stream: Stream,
    issued_bytes: u64,
    issued_ios: u64,
    bytes_max: u64,
    ios_max: u64,
    passes: Passes,
    /// The last pass has ended.
    ended: bool,
    writes: u64,
    sync_every: [u32; 2],
    sync_due: bool,
    last_was_sync: bool,
    /// How a sync as the last I/O is detected.
    sync_detection: SyncDetection,
    /// State that only complex jobs need.
    extra: Option<Box<ComplexJobState>>,
}

/// Which order determines whether the last I/O was a sync; no sync is due directly after a sync (tried with fio 3.33).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SyncDetection {
    /// The order of issue: for a process with one I/O in flight.
    Issued,
    /// The order of completion, where a sync completes as soon as it is issued.
    ReapedOrSync,
    /// The order of completion.
    Reaped,
}

/// Several files, priorities of single I/Os, a recording, and verify reads.
#[derive(Debug, Default)]
struct ComplexJobState {
    files: Option<Files>,
    priorities: Option<Priorities>,
    recorded: Option<Recorded>,
    verify: Option<Verify>,
}

/// The position of a process in one of its files.
#[derive(Debug)]
struct Cursor {
    /// Reads, writes, trims.
    lanes: [DirectionState; 3],
    position: SharedPosition,
    /// The trimmed range that must be written next.
    trimmed: Option<Io>,
    /// Index of the device among the process's devices.
    device: u8,
}

impl Cursor {
    #[inline]
    fn io(&self, op: Op, (offset_bytes, bytes): (u64, u32)) -> Io {
        Io { op, file: self.device, priority: IoPriority::UNSET, bytes, offset_bytes }
    }

    /// Begins a new pass.
    fn restart(&mut self) {
        self.lanes.iter_mut().for_each(DirectionState::restart);
        self.position.restart();
        self.trimmed = None;
    }
}

impl Process {
    /// The I/Os of the process with this number in its load, on devices whose sizes in bytes are given by their index
    /// in [`Process::files`]. The same seed gives the same I/Os on any machine.
    ///
    /// # Errors
    /// If its region does not fit on a device, or is smaller than the smallest block of a direction.
    pub fn generator(
        &self,
        number: u32,
        seed: u64,
        device_bytes: impl Fn(usize) -> u64,
    ) -> Result<Generator, LoadError> {
        let generator = self.plan.generator(number, seed, &device_bytes);
        generator.map_err(|error| error.in_process(&self.name, self.plan.origin.as_ref()))
    }
}

impl IoPlan {
    fn generator(&self, process: u32, seed: u64, device_bytes: &dyn Fn(usize) -> u64) -> Result<Generator, LoadError> {
        self.check()?;
        if let Some(replay) = &self.replay {
            replay.summary.check(device_bytes)?;
            return Ok(Generator::for_replay(replay, &self.pattern, process, seed, device_bytes));
        }
        // A single file, the usual case, needs no list.
        if let [file] = *self.files {
            return Ok(Generator::new(&self.pattern, &[self.region(file, device_bytes)?], process, seed));
        }
        let regions: Result<Vec<_>, _> = self.files.iter().map(|file| self.region(*file, device_bytes)).collect();
        Ok(Generator::new(&self.pattern, &regions?, process, seed))
    }
}

impl Generator {
    /// For a process with these regions, one for each of its files: at least one.
    pub(crate) fn new(job: &Pattern, regions: &[Region], process: u32, seed: u64) -> Generator {
        let mut generator = Generator::for_regions(job, regions, process, seed);
        if let Some(backlog) = job.verify_backlog {
            let follower = Generator::for_regions(job, regions, process, seed);
            let verify = Verify::new(follower, backlog, job.volume.loops);
            generator.extra.get_or_insert_default().verify = Some(verify);
        }
        generator
    }

    /// For a process that replays a recording.
    pub(crate) fn for_replay(
        replay: &Replay,
        job: &Pattern,
        process: u32,
        seed: u64,
        device_bytes: &dyn Fn(usize) -> u64,
    ) -> Generator {
        // A replay has no region.
        let empty_region = Region { start: 0, bytes: 0, file_bytes: 0, offset: 0, room_bytes: 0, device: 0 };
        let mut generator = Generator::for_regions(job, &[empty_region], process, seed);
        let records_seed = Stream::new(seed, u64::from(process), Purpose::Records).bits();
        generator.extra.get_or_insert_default().recorded = Some(Recorded::new(replay, records_seed, device_bytes));
        generator
    }

    fn for_regions(job: &Pattern, regions: &[Region], process: u32, seed: u64) -> Generator {
        // The seeds of job and run must not be interchangeable: a seed of 1 in run 2 differs from a seed of 2 in run 1.
        let seed = job.seed.map_or(seed, |own| splitmix(splitmix(seed) ^ own as u64));
        let process = u64::from(process);
        let (bytes_max, ios_max) = limits(job, regions);
        let is_single_file = regions.len() == 1;
        let mut cursors = regions.iter().enumerate().map(|(number, region)| {
            // The first file has the same random numbers as a single file.
            let seed = if number == 0 { seed } else { splitmix(seed ^ (number as u64) << 20) };
            cursor(job, *region, seed, process, is_single_file)
        });
        let first = cursors.next().expect("a process has a file");
        let files = (!is_single_file).then(|| Files::new(job, cursors.collect(), seed, process));
        let has_priorities = !job.priorities.is_empty();
        let priorities =
            has_priorities.then(|| Priorities::new(&job.priorities, Stream::new(seed, process, Purpose::Priority)));
        let is_simple = files.is_none() && priorities.is_none();
        Generator {
            cursor: first,
            direction: job.direction,
            read_below: (u64::from(job.read_percent) << 32) / 100,
            direction_stream: Stream::new(seed, process, Purpose::Direction),
            issued_bytes: 0,
            issued_ios: 0,
            bytes_max,
            ios_max,
            passes: Passes::new(job, total_bytes(regions)),
            ended: false,
            writes: 0,
            sync_every: job.sync_every,
            sync_due: false,
            last_was_sync: false,
            sync_detection: SyncDetection::Issued,
            extra: (!is_simple).then(|| Box::new(ComplexJobState { files, priorities, ..ComplexJobState::default() })),
        }
    }

    fn recorded(&self) -> Option<&Recorded> {
        self.extra.as_ref()?.recorded.as_ref()
    }

    /// Switches to [`reaped`](Self::reaped) for detecting syncs, if the job syncs: for a process with several I/Os in flight, which
    /// sleeps in a sync or queues it.
    pub(crate) fn follow_reaping(&mut self, sleeps_in_sync: bool) {
        if self.sync_every != [0, 0] {
            self.sync_detection = if sleeps_in_sync { SyncDetection::ReapedOrSync } else { SyncDetection::Reaped };
        }
    }

    /// The process has reaped an I/O.
    #[inline]
    pub(crate) fn reaped(&mut self, op: Op) {
        match self.sync_detection {
            SyncDetection::Issued => {}
            SyncDetection::ReapedOrSync => self.last_was_sync &= op == Op::Flush,
            SyncDetection::Reaped => self.last_was_sync = op == Op::Flush,
        }
    }

    /// In a replay, the pause before the last I/O, as used by [`Pacer::due`](crate::Pacer::due).
    #[must_use]
    pub fn pause(&self) -> Option<Pause> {
        self.recorded()?.pause
    }

    /// Whether it ended because its recording differed from what was read when the load was made.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.recorded().is_some_and(|recorded| recorded.has_failed)
    }

    /// The next I/O, or `None` when the job has done its work. A `time_based` job never ends.
    #[expect(clippy::should_implement_trait, reason = "`Iterator` is implemented and calls this")]
    #[inline]
    pub fn next(&mut self) -> Option<Io> {
        if self.extra.is_some() {
            return self.next_of_complex_job();
        }
        let op = self.next_op()?;
        self.issue(op)
    }

    /// The next I/O of a job with several files, priorities of single I/Os, a recording, or verify reads.
    #[inline(never)]
    fn next_of_complex_job(&mut self) -> Option<Io> {
        let extra = self.extra.as_mut()?;
        if let Some(recorded) = &mut extra.recorded {
            let mut io = recorded.next()?;
            extra.priorities.as_mut().into_iter().for_each(|priorities| priorities.draw(&mut io));
            return Some(io);
        }
        if extra.verify.is_none() {
            return self.next_in_files();
        }
        if let Some(io) = self.next_verify_read() {
            return Some(io);
        }
        match self.next_in_files() {
            Some(io) => {
                let verify = self.extra.as_mut().and_then(|extra| extra.verify.as_mut());
                verify.into_iter().for_each(|verify| verify.issued(io.op));
                Some(io)
            }
            // The end of the job may be detected only now.
            None => self.next_verify_read(),
        }
    }

    /// The next verify read, if one is due.
    fn next_verify_read(&mut self) -> Option<Io> {
        let (bytes, ios, is_over) = (self.issued_bytes, self.issued_ios, self.is_over());
        self.extra.as_mut()?.verify.as_mut()?.next(bytes, ios, is_over)
    }

    fn next_in_files(&mut self) -> Option<Io> {
        if self.is_over() {
            return None;
        }
        if let Some(files) = self.extra.as_mut().and_then(|extra| extra.files.as_mut()) {
            files.pick(&mut self.cursor);
        }
        // As in fio, the file is chosen first: a flush goes to the file whose turn it is.
        let op = self.next_op()?;
        let mut io = self.issue(op)?;
        if let Some(priorities) = self.extra.as_mut().and_then(|extra| extra.priorities.as_mut()) {
            priorities.draw(&mut io);
        }
        Some(io)
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.issued_bytes >= self.bytes_max || self.issued_ios >= self.ios_max || self.ended
    }

    /// The kind of the next I/O, drawn at random in a mix; `None` at the end of the job.
    #[inline(always)]
    fn next_op(&mut self) -> Option<Op> {
        if self.is_over() {
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
            Direction::TrimWrite if self.cursor.trimmed.is_some() => Op::Write,
            Direction::TrimWrite => Op::Discard,
        })
    }

    /// The next I/O, of the kind that [`Generator::next_op`] drew. `None` if the job ends because the rest of its
    /// region is too small.
    #[inline(always)]
    fn issue(&mut self, op: Op) -> Option<Io> {
        let Some(lane) = lane_of(op) else {
            self.last_was_sync |= self.sync_detection != SyncDetection::Reaped;
            let priority = IoPriority::UNSET;
            return Some(Io { op: Op::Flush, file: self.cursor.device, priority, bytes: 0, offset_bytes: 0 });
        };
        match self.cursor.trimmed.take() {
            Some(trimmed) => Some(self.count(Io { op, ..trimmed })),
            None => match self.cursor.position.next(&mut self.cursor.lanes[lane]) {
                Some(extent) => Some(self.count(self.cursor.io(op, extent))),
                None => self.issue_after_end_of_file(op),
            },
        }
    }

    /// Counts an I/O.
    #[inline(always)]
    fn count(&mut self, io: Io) -> Io {
        self.last_was_sync &= self.sync_detection != SyncDetection::Issued;
        if self.direction == Direction::TrimWrite && io.op == Op::Discard {
            // As in fio, only writes count.
            self.cursor.trimmed = Some(io);
        } else {
            self.issued_ios += 1;
            self.issued_bytes += u64::from(io.bytes);
        }
        if self.sync_every != [0, 0] && io.op == Op::Write {
            self.writes += 1;
            // It remains due until the next write: in a mix fio flushes again after each read in between.
            self.sync_due = self.sync_every.iter().any(|&n| n > 0 && self.writes.is_multiple_of(u64::from(n)));
        }
        io
    }

    /// The file is done: continues with another file if there is one, or starts over.
    #[cold]
    fn issue_after_end_of_file(&mut self, op: Op) -> Option<Io> {
        let is_single_file = self.extra.as_ref().is_none_or(|extra| extra.files.is_none());
        if is_single_file && self.passes.has_next_pass(self.direction, self.cursor.position.random, self.issued_bytes) {
            if self.passes.restarts_all(self.direction, self.cursor.position.random) {
                self.cursor.lanes.iter_mut().for_each(DirectionState::restart);
            }
            if self.direction == Direction::TrimWrite {
                // As in fio, the limit applies to each pass.
                self.ios_max = self.ios_max.saturating_add(self.issued_ios);
            }
            let extent = self.cursor.position.start_pass(&mut self.cursor.lanes[lane_of(op)?])?;
            return Some(self.count(self.cursor.io(op, extent)));
        }
        // Each file is tried twice: before its end and after starting over.
        let tries = self.extra.as_ref().and_then(|extra| extra.files.as_ref()).map_or(0, |files| 2 * files.count() + 1);
        for _ in 0..tries {
            let files = self.extra.as_mut().and_then(|extra| extra.files.as_mut());
            let (passes, direction, issued) = (&mut self.passes, self.direction, self.issued_bytes);
            let has_next_pass = || direction != Direction::TrimWrite || passes.has_next_pass(direction, false, issued);
            if !files.is_some_and(|files| files.pick_after_the_end(&mut self.cursor, has_next_pass)) {
                break;
            }
            if let Some(trimmed) = self.cursor.trimmed.take() {
                return Some(self.count(Io { op: Op::Write, ..trimmed }));
            }
            // Each file has its own alternation of trims and writes.
            let op = if self.direction == Direction::TrimWrite { Op::Discard } else { op };
            let lane = lane_of(op)?;
            if let Some(extent) = self.cursor.position.next(&mut self.cursor.lanes[lane]) {
                return Some(self.count(self.cursor.io(op, extent)));
            }
        }
        self.ended = true;
        None
    }
}

impl Iterator for Generator {
    type Item = Io;

    #[inline]
    fn next(&mut self) -> Option<Io> {
        Generator::next(self)
    }
}

/// Number of passes over the region, for a job with one file, or one with several files that trims and writes (tried
/// with fio 3.33).
#[derive(Debug)]
struct Passes {
    done: u64,
    loops: u64,
    time_based: bool,
    /// Total bytes to transfer, if given.
    bytes: Option<u64>,
    /// The largest block of all directions, including unused ones.
    block_bytes_max: u64,
}

impl Passes {
    fn new(job: &Pattern, whole_bytes: u64) -> Passes {
        Passes {
            done: 0,
            loops: job.volume.loops,
            time_based: job.volume.time_based,
            bytes: job.volume.io_size.map(|size| size.of(whole_bytes)),
            block_bytes_max: job.sizes.iter().map(|sizes| u64::from(sizes.max())).max().unwrap_or(0),
        }
    }

    /// Whether another pass follows one that has ended, given the bytes of all passes so far. None follows if less than a
    /// block is left.
    fn has_next_pass(&mut self, direction: Direction, is_random: bool, issued_bytes: u64) -> bool {
        self.done += 1;
        if direction == Direction::Mixed {
            // With a random order each direction has its own passes; otherwise it does if a number of bytes ends them.
            return self.bytes.is_some() || if is_random { self.loops > 1 } else { self.done < self.loops };
        }
        // Trims count only here.
        let moved = if direction == Direction::TrimWrite { issued_bytes.saturating_mul(2) } else { issued_bytes };
        self.time_based
            || self.done < self.loops
            || self.bytes.is_some_and(|bytes| bytes >= moved.saturating_add(self.block_bytes_max))
    }
}

impl Passes {
    /// Whether all directions start a new pass when one of them has reached its end.
    fn restarts_all(&self, direction: Direction, is_random: bool) -> bool {
        direction == Direction::Mixed && !is_random && self.bytes.is_none()
    }
}

/// The start of a file.
fn cursor(job: &Pattern, region: Region, seed: u64, process: u64, is_only: bool) -> Cursor {
    let (skip, every, sequencer) = match &job.offsets {
        Offsets::Sequential { skip_bytes } => (*skip_bytes, 1, Sequencer::Sequential),
        Offsets::Random(random) => (0, random.every, random.sequencer),
    };
    let order_bytes = job.zones.map_or(region.bytes, |zones| zones.range_bytes);
    Cursor {
        lanes: [0, 1, 2].map(|i| DirectionState::new(job, i, order_bytes, seed, process)),
        position: SharedPosition {
            random: job.random_offsets().is_some(),
            orders: orders(job, order_bytes, seed, process, is_only),
            start_bytes: region.start,
            // Tried with fio 3.33: zones continue beyond the region, up to the end of the device.
            region_bytes: if job.zones.is_some() { region.room_bytes } else { region.bytes },
            room_bytes: region.room_bytes,
            file_bytes: region.file_bytes,
            offset: region.offset,
            zones: job.zones.map(|zones| Box::new(Zones::new(zones, job.direction == Direction::TrimWrite))),
            skip,
            wraps: match job.zones {
                Some(_) => job.volume.time_based || job.volume.io_size.is_some(),
                None if is_only => job.volume.time_based,
                None => files::cycles_each_file(job),
            },
            every,
            run_left: 0,
            sequencer,
            order_stream: Stream::new(seed, process, Purpose::Order),
        },
        trimmed: None,
        device: region.device,
    }
}

/// Bytes of all regions.
fn total_bytes(regions: &[Region]) -> u64 {
    regions.iter().fold(0, |sum: u64, region| sum.saturating_add(region.bytes))
}

/// The number of bytes and of I/Os after which the job ends.
fn limits(job: &Pattern, regions: &[Region]) -> (u64, u64) {
    let volume = &job.volume;
    if volume.time_based {
        return (u64::MAX, u64::MAX);
    }
    // A remainder smaller than a block stays untouched. Only the sum counts where blocks are drawn independently or in
    // zones.
    let draws_independently =
        job.random_offsets().is_some_and(|random| !random.has_map() && random.generator != RandomGenerator::Lfsr);
    // The same applies where no direction reaches the end of the region: in a sequential mix each begins at its start.
    let is_sequential_mix = regions.len() == 1 && job.direction == Direction::Mixed && job.random_offsets().is_none();
    // Nor do jobs with a skip: they start over in the middle of a block.
    let has_skip = matches!(job.offsets, Offsets::Sequential { skip_bytes } if skip_bytes != 0);
    let ends_by_sum = draws_independently || is_sequential_mix || has_skip || job.zones.is_some();
    let block = job.fixed_size().filter(|_| !ends_by_sum).map_or(1, u64::from);
    // Tried with fio 3.33: if the device continues beyond the region, the last block of a sequential job extends over its
    // end.
    let region_work_bytes = |region: &Region| match region.bytes.checked_next_multiple_of(block) {
        Some(bytes) if bytes <= region.room_bytes && job.random_offsets().is_none() => region.bytes,
        _ => region.bytes / block * block,
    };
    let whole_blocks = || regions.iter().fold(0, |sum: u64, region| sum.saturating_add(region_work_bytes(region)));
    let pass_bytes = match (volume.io_size, volume.file_bytes, volume.size) {
        (Some(Amount::Bytes(bytes)), ..) => bytes,
        (Some(percent), ..) => percent.of(total_bytes(regions)),
        // If the file size is given, the size is the amount of work.
        (None, Some(_), Some(Amount::Bytes(bytes))) => bytes.min(whole_blocks()),
        (None, ..) => whole_blocks(),
    };
    let ios = if volume.number_ios == 0 { u64::MAX } else { volume.number_ios.saturating_mul(volume.loops) };
    (pass_bytes.saturating_mul(volume.loops), ios)
}

/// Whether I/Os are cut short at visited blocks: with a random map, and blocks of several sizes shared by all directions.
fn shortens_at_visited_blocks(job: &Pattern, region_bytes: u64) -> bool {
    let Some(random) = job.random_offsets() else { return false };
    let lanes = job.direction.lanes();
    // Some of these I/Os reach visited blocks.
    let is_fully_random =
        job.zones.is_none() && random.every == 1 && lanes.iter().all(|&lane| random.percent[lane] == 100);
    random.has_map()
        && random.generator == RandomGenerator::Tausworthe
        && is_fully_random
        && job.fixed_size().is_none()
        && share_order(job, region_bytes)
}

/// The random orders of the lanes: a common one, or one for each.
fn orders(job: &Pattern, region_bytes: u64, seed: u64, process: u64, is_only: bool) -> Vec<Order> {
    let Some(random) = job.random_offsets() else { return Vec::new() };
    // Tried with fio 3.33: with several files or zones no pass repeats another.
    let same_passes = random.repeats && !job.volume.time_based && is_only && job.zones.is_none();
    let order = |lane, seed| Order::new(random, same_passes, lane, grid(job, lane, region_bytes), seed, process);
    let lanes = job.direction.lanes();
    if shortens_at_visited_blocks(job, region_bytes) {
        let grid = grid(job, lanes[0], region_bytes);
        return vec![Order::unvisited(grid, seed, process)];
    }
    if share_order(job, region_bytes) {
        return vec![order(lanes[0], seed)];
    }
    lanes.iter().map(|&lane| order(lane, splitmix(seed ^ lane as u64))).collect()
}
