//! The pattern of a process's I/Os, as data.
//!
//! Used by: `generator`, `plan`, `description`; crates `fio`, `calibrate`, `program`.
//! Tests: `crates/load/tests/bounds.rs`, `crates/load/tests/regions.rs`.

mod check;

use std::sync::Arc;

use hoistway_blk::bio::IoPriority;
use serde::{Deserialize, Serialize};

/// The pattern of generated I/Os: everything about them except the position of the files.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pattern {
    /// The directions.
    pub direction: Direction,
    /// Percentage of reads in a mix.
    pub read_percent: u8,
    /// Block sizes of reads, writes and trims.
    pub sizes: [Sizes; 3],
    /// The order of offsets.
    pub offsets: Offsets,
    /// The amount of I/O, and the part of a file that it covers.
    pub volume: Volume,
    /// Zones that are used in turn.
    pub zones: Option<Strided>,
    /// How the next of several files is chosen.
    pub service: FileService,
    /// Maximum open files: the next file is opened when one is done; 0 for all.
    pub open_files: u64,
    /// Shares of the I/Os that have their own priority.
    pub priorities: Arc<[PriorityRule]>,
    /// Written data is read back at the end of each pass, or after this many writes.
    pub verify_backlog: Option<u64>,
    /// Writes between two flushes, for two independent counters (fsync, fdatasync); 0 for no flushes.
    pub sync_every: [u32; 2],
    /// Mixed into the seed of the run, if given.
    pub seed: Option<i64>,
}

impl Default for Pattern {
    /// Reads a whole file once, from one end to the other, in blocks of 4 KiB.
    fn default() -> Self {
        Pattern {
            direction: Direction::Read,
            read_percent: 50,
            sizes: [const { Sizes::Fixed(4096) }; 3],
            offsets: Offsets::default(),
            volume: Volume::default(),
            zones: None,
            service: FileService::default(),
            open_files: 0,
            priorities: Arc::new([]),
            verify_backlog: None,
            sync_every: [0; 2],
            seed: None,
        }
    }
}

impl Pattern {
    /// One pass over a whole file, from start to end, in blocks of this size.
    #[must_use]
    pub fn new(direction: Direction, block_bytes: u32) -> Pattern {
        Pattern { direction, sizes: [(); 3].map(|()| Sizes::Fixed(block_bytes)), ..Pattern::default() }
    }

    /// Reads a whole file once, from one end to the other, in blocks of this size.
    #[must_use]
    pub fn read(block_bytes: u32) -> Pattern {
        Pattern::new(Direction::Read, block_bytes)
    }

    /// Writes a whole file once, from one end to the other, in blocks of this size.
    #[must_use]
    pub fn write(block_bytes: u32) -> Pattern {
        Pattern::new(Direction::Write, block_bytes)
    }

    /// The same pattern at random offsets: each block once.
    #[must_use]
    pub fn random(self) -> Pattern {
        Pattern { offsets: Offsets::Random(Random::default()), ..self }
    }

    /// The sizes of the directions that occur.
    pub(crate) fn active_sizes(&self) -> impl Iterator<Item = &Sizes> {
        self.direction.lanes().iter().map(|&lane| &self.sizes[lane])
    }

    /// The block size, if all I/Os have the same.
    pub(crate) fn fixed_size(&self) -> Option<u32> {
        let mut sizes = self.active_sizes().map(|sizes| match sizes {
            Sizes::Fixed(bytes) => Some(*bytes),
            _ => None,
        });
        let first = sizes.next()??;
        sizes.all(|size| size == Some(first)).then_some(first)
    }

    /// The random offsets, if the pattern is random.
    pub(crate) fn random_offsets(&self) -> Option<&Random> {
        match &self.offsets {
            Offsets::Sequential { .. } => None,
            Offsets::Random(random) => Some(random),
        }
    }

    /// The alignment of random offsets of a direction, in bytes.
    pub(crate) fn align_bytes(&self, lane: usize) -> u64 {
        let own = self.random_offsets().and_then(|random| random.align_bytes[lane]);
        own.unwrap_or_else(|| u64::from(self.sizes[lane].min()))
    }
}

/// The directions of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// Reads and writes, by [`Pattern::read_percent`].
    Mixed,
    /// Each range is trimmed, then written.
    TrimWrite,
}

impl Direction {
    /// The directions in use: 0 for reads, 1 for writes, 2 for trims.
    #[must_use]
    pub fn lanes(self) -> &'static [usize] {
        match self {
            Direction::Read => &[0],
            Direction::Write => &[1],
            Direction::Trim => &[2],
            Direction::Mixed => &[0, 1],
            // The write repeats the range of the trim.
            Direction::TrimWrite => &[2],
        }
    }
}

/// The block sizes of one direction, in bytes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// Always the same.
    Fixed(u32),
    /// `min` plus a draw from `max`, rounded down to a multiple of `step` and limited to `max`: fio's rule, which is
    /// uniform over the multiples if `min` divides `max`.
    Range {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
        /// Sizes are multiples of this; it divides `min`.
        step: u32,
    },
    /// Sizes with their shares, which add up to 100 %.
    Split(Arc<[Share]>),
}

/// A size and its share of the I/Os.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The size.
    pub bytes: u32,
    /// Its share.
    pub percent: f64,
}

impl Share {
    /// The shares above 0: an unused size must not affect anything.
    pub(crate) fn drawn(shares: &[Share]) -> impl Iterator<Item = &Share> {
        shares.iter().filter(|share| share.percent > 0.0)
    }
}

impl Sizes {
    /// The smallest that is drawn.
    #[must_use]
    pub fn min(&self) -> u32 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Range { min, .. } => *min,
            Sizes::Split(shares) => Share::drawn(shares).map(|share| share.bytes).min().unwrap_or(0),
        }
    }

    /// The largest that is drawn.
    #[must_use]
    pub fn max(&self) -> u32 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Range { max, .. } => *max,
            Sizes::Split(shares) => Share::drawn(shares).map(|share| share.bytes).max().unwrap_or(0),
        }
    }
}

/// The order of offsets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Offsets {
    /// Each I/O follows the previous one.
    Sequential {
        /// Gap between two I/Os in bytes; backwards if negative.
        skip_bytes: i64,
    },
    /// Random offsets.
    Random(Random),
}

impl Default for Offsets {
    fn default() -> Self {
        Offsets::Sequential { skip_bytes: 0 }
    }
}

/// How offsets are drawn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Random {
    /// Alignment of reads, writes and trims, if it is not the smallest block.
    pub align_bytes: [Option<u64>; 3],
    /// Percentage of reads, writes and trims at random offsets; the others continue the last I/O.
    pub percent: [u8; 3],
    /// I/Os per random offset, at least 1.
    pub every: u32,
    /// The offsets of the I/Os between two random offsets.
    pub sequencer: Sequencer,
    /// Whether each block is visited once in a pass; requires a uniform distribution and the default alignment.
    pub map: bool,
    /// The random generator.
    pub generator: RandomGenerator,
    /// The distribution over the region.
    pub distribution: Distribution,
    /// Whether each pass repeats the order of the first.
    pub repeats: bool,
}

impl Default for Random {
    fn default() -> Self {
        Random {
            align_bytes: [None; 3],
            percent: [100; 3],
            every: 1,
            sequencer: Sequencer::Sequential,
            map: true,
            generator: RandomGenerator::Tausworthe,
            distribution: Distribution::Uniform,
            repeats: true,
        }
    }
}

impl Random {
    /// Whether each block is visited once in a pass. As in fio, this is not possible with a skewed distribution or an
    /// explicit alignment.
    #[must_use]
    pub fn has_map(&self) -> bool {
        self.map && self.distribution == Distribution::Uniform && self.align_bytes == [None; 3]
    }
}

/// The offsets of the I/Os between two random offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sequencer {
    /// Each follows the previous one.
    #[default]
    Sequential,
    /// Each has the same offset.
    Identical,
}

/// The generator of random offsets; fio's two tausworthe generators differ only in range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RandomGenerator {
    /// Independent draws, or a permutation of all blocks.
    #[default]
    Tausworthe,
    /// A shift register: each block once; a block number is often half of the previous one.
    Lfsr,
}

/// How random offsets are distributed over the region.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// All blocks equally often.
    #[default]
    Uniform,
    /// Some blocks more often than others.
    Skewed {
        /// The distribution of ranks.
        popularity: Popularity,
        /// Position of the hottest block, as a fraction of the region; random if not given.
        centre: Option<f64>,
    },
    /// By zones, for reads, writes and trims.
    Zoned([Arc<[Zone]>; 3]),
}

impl Distribution {
    /// Whether the distribution is valid.
    ///
    /// # Errors
    /// The value that is out of range.
    pub fn check(&self) -> Result<(), crate::LoadError> {
        check::distribution(self)
    }
}

/// The distribution of draws over ranks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Popularity {
    /// Rank k, from 1 on, is drawn in proportion to k^-theta.
    Zipf {
        /// Above 0, at most 100, and not 1.
        theta: f64,
    },
    /// A share `h` of the ranks gets 1 - `h` of the draws, and likewise within that share (fio's parameter).
    Pareto {
        /// Above 0 and below 1.
        h: f64,
    },
    /// Normal: ranks in the middle are more frequent. fio's distribution is a normal one with a standard deviation of a
    /// twelfth of all ranks, plus a uniform draw with a width of `spread_percent` of the ranks, at most half of them
    /// (tried with fio 3.33).
    Normal {
        /// Below 100.
        spread_percent: f64,
    },
}

/// A part of the region and its share of the I/Os.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Share of the I/Os.
    pub access_percent: f64,
    /// Its length.
    pub extent: Extent,
}

/// Length of a zone. Each begins at the end of the previous one.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Percentage of the region.
    Percent(f64),
    /// Bytes.
    Bytes(u64),
}

/// An amount of a file: bytes, or a percentage of its size, which is known only when the device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percentage of the file.
    Percent(u8),
}

impl Amount {
    /// Zero bytes.
    pub const ZERO: Amount = Amount::Bytes(0);

    /// The part for each of `files` files, in whole sectors; a percentage applies to each file anyway.
    #[must_use]
    pub fn part_of(self, files: u64) -> Amount {
        match self {
            Amount::Bytes(bytes) if files > 1 => Amount::Bytes((bytes / files) & !511),
            other => other,
        }
    }

    /// The amount in bytes for a file of `whole` bytes.
    #[must_use]
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

/// The amount of I/O, and the part of each file that it covers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Volume {
    /// The part of the files that is used, divided among them; also the amount of I/O if `io_size` is not given. With
    /// `file_bytes`, a number of bytes is only the amount of I/O. `None` for all of them.
    pub size: Option<Amount>,
    /// The amount of I/O; beyond `size` the job starts over.
    pub io_size: Option<Amount>,
    /// Start of the part.
    pub offset: Amount,
    /// Added to `offset` [`IoPlan::increments`](crate::IoPlan::increments) times.
    pub offset_increment: Amount,
    /// Size of each file, if given: minimum and maximum.
    pub file_bytes: Option<(u64, u64)>,
    /// I/Os after which the job ends; 0 for no limit.
    pub number_ios: u64,
    /// Number of repetitions of the whole job, at least 1.
    pub loops: u64,
    /// The job continues until its time is over, whatever the number of repetitions.
    pub time_based: bool,
}

impl Default for Volume {
    fn default() -> Self {
        Volume {
            size: None,
            io_size: None,
            offset: Amount::ZERO,
            offset_increment: Amount::ZERO,
            file_bytes: None,
            number_ios: 0,
            loops: 1,
            time_based: false,
        }
    }
}

/// Zones of the region that are used in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strided {
    /// Bytes to transfer in a zone before the next one begins.
    pub zone_bytes: u64,
    /// Length of a zone.
    pub range_bytes: u64,
    /// Bytes from the end of a zone to the start of the next.
    pub skip_bytes: u64,
}

/// How the next of several files is chosen.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FileService {
    /// In order, each for `ios` I/Os at a time.
    RoundRobin {
        /// At least 1.
        ios: u32,
    },
    /// In order, each until it is done.
    Sequential,
    /// At random, each for `ios` I/Os.
    Random {
        /// At least 1.
        ios: u32,
    },
    /// At random, some files more often than others.
    Skewed(Popularity),
}

impl Default for FileService {
    fn default() -> Self {
        FileService::RoundRobin { ios: 1 }
    }
}

impl FileService {
    /// Whether files are chosen forever, so that each starts over by itself.
    pub(crate) fn never_ends(self) -> bool {
        matches!(self, FileService::Skewed(_))
    }
}

/// A share of the I/Os of a direction that have their own priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorityRule {
    /// 0 for reads, 1 for writes.
    pub lane: usize,
    /// Only I/Os of this size in bytes; 0 for all.
    pub bytes: u64,
    /// Their share.
    pub percent: u8,
    /// Their priority.
    pub priority: IoPriority,
}
