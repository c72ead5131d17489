//! Which I/Os a process makes up, as data.

mod check;

use std::sync::Arc;

use hoistway_blk::bio::IoPriority;
use serde::{Deserialize, Serialize};

/// Which I/Os a process makes up: everything about them but where its files lie.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pattern {
    /// What it does.
    pub direction: Direction,
    /// Percentage of reads in a mix.
    pub read_percent: u8,
    /// Block sizes of reads, writes and trims.
    pub sizes: [Sizes; 3],
    /// Where an I/O goes.
    pub offsets: Offsets,
    /// How much is done, and in which part of a file.
    pub volume: Volume,
    /// Zones that are used one after the other.
    pub zones: Option<Strided>,
    /// Which of several files is next.
    pub service: FileService,
    /// Files that are in use at a time: another one comes when one is done; 0 for all.
    pub open_files: u64,
    /// Shares of the I/Os that have a priority of their own.
    pub priorities: Arc<[PriorityRule]>,
    /// What was written is read again at the end of each pass, or when there are so many writes to check.
    pub verify_backlog: Option<u64>,
    /// A flush after each so many writes, by two counts; 0 for none.
    pub sync_every: [u32; 2],
    /// Mixed into the seed of the run.
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
    /// Goes over a whole file once, from one end to the other, in blocks of this size.
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

    /// The same at random: each block once.
    #[must_use]
    pub fn random(self) -> Pattern {
        Pattern { offsets: Offsets::Random(Random::default()), ..self }
    }

    /// The sizes of the directions that occur.
    pub(crate) fn active_sizes(&self) -> impl Iterator<Item = &Sizes> {
        self.direction.lanes().iter().map(|&lane| &self.sizes[lane])
    }

    /// The block size, if there is only one.
    pub(crate) fn fixed_size(&self) -> Option<u32> {
        let mut sizes = self.active_sizes().map(|sizes| match sizes {
            Sizes::Fixed(bytes) => Some(*bytes),
            _ => None,
        });
        let first = sizes.next()??;
        sizes.all(|size| size == Some(first)).then_some(first)
    }

    /// Its random offsets, if they are.
    pub(crate) fn random_offsets(&self) -> Option<&Random> {
        match &self.offsets {
            Offsets::Sequential { .. } => None,
            Offsets::Random(random) => Some(random),
        }
    }

    /// What random offsets of a direction are multiples of, in bytes.
    pub(crate) fn align_bytes(&self, lane: usize) -> u64 {
        let own = self.random_offsets().and_then(|random| random.align_bytes[lane]);
        own.unwrap_or_else(|| u64::from(self.sizes[lane].min()))
    }
}

/// What a process does.
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
    /// The directions that occur: 0 for reads, 1 for writes, 2 for trims.
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
    /// `min` plus a draw from `max`, rounded down to a multiple of `step` and cut to `max`: fio's rule, which
    /// is even over the multiples if `min` divides `max`.
    Range {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
        /// What sizes are multiples of; it divides `min`.
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
    /// Those of which there is anything: nothing may depend on a size that no I/O has.
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

/// Where an I/O goes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Offsets {
    /// Behind the last one.
    Sequential {
        /// Bytes between two I/Os, backwards if negative.
        skip_bytes: i64,
    },
    /// Anywhere.
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
    /// What offsets of reads, writes and trims are multiples of, if it is not the smallest block.
    pub align_bytes: [Option<u64>; 3],
    /// Percentage of reads, writes and trims that go anywhere; the others continue the last.
    pub percent: [u8; 3],
    /// I/Os from one new offset to the next, at least 1.
    pub every: u32,
    /// What those between two new offsets do.
    pub sequencer: Sequencer,
    /// Whether each block is visited once in a pass: with an even distribution and without an alignment of its own.
    pub map: bool,
    /// Where draws come from.
    pub generator: RandomGenerator,
    /// How they are distributed over the region.
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
    /// Whether each block is visited once in a pass. As in fio, a skewed distribution or an alignment of its own leaves no
    /// room for that.
    #[must_use]
    pub fn has_map(&self) -> bool {
        self.map && self.distribution == Distribution::Uniform && self.align_bytes == [None; 3]
    }
}

/// What the I/Os between two new random offsets do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sequencer {
    /// Each follows the one before.
    #[default]
    Sequential,
    /// Each repeats the offset.
    Identical,
}

/// Where random offsets come from; fio's two tausworthe generators differ only in range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RandomGenerator {
    /// Independent draws, or a permutation of all blocks.
    #[default]
    Tausworthe,
    /// A shift register: each block once, a block number is often half of the one before.
    Lfsr,
}

/// How random offsets are distributed over the region.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// All blocks alike.
    #[default]
    Uniform,
    /// Some blocks more often than others.
    Skewed {
        /// How much more often.
        popularity: Popularity,
        /// Where the hottest lies: a fraction of the region. Anywhere if it is not given.
        centre: Option<f64>,
    },
    /// By zones, for reads, writes and trims.
    Zoned([Arc<[Zone]>; 3]),
}

impl Distribution {
    /// Whether it is one.
    ///
    /// # Errors
    /// What is out of range.
    pub fn check(&self) -> Result<(), crate::LoadError> {
        check::distribution(self)
    }
}

/// How draws are divided among ranks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Popularity {
    /// Rank k, from 1 on, is drawn in proportion to k^-theta.
    Zipf {
        /// Above 0, at most 100, and not 1.
        theta: f64,
    },
    /// A share of `h` of the ranks gets 1 - `h` of the draws, and so on within it (fio's parameter).
    Pareto {
        /// Above 0 and below 1.
        h: f64,
    },
    /// Those in the middle more often than others. fio's bell has a standard deviation of a twelfth of all ranks, to
    /// which an even draw is added that is as wide as `spread_percent` of them, at most half (tried with fio 3.33).
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

/// Length of a zone. Each begins where the one before it ends.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Of the region.
    Percent(f64),
    /// In bytes.
    Bytes(u64),
}

/// An amount of a file: bytes, or a share of its size that is known only when the device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// In bytes.
    Bytes(u64),
    /// Of the file.
    Percent(u8),
}

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount::Bytes(0);

    /// What falls on each of so many files, in whole sectors; a percentage is of each anyway.
    #[must_use]
    pub fn part_of(self, files: u64) -> Amount {
        match self {
            Amount::Bytes(bytes) if files > 1 => Amount::Bytes((bytes / files) & !511),
            other => other,
        }
    }

    /// The amount in bytes, of a file of `whole` bytes.
    #[must_use]
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

/// How much is done, and in which part of each file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Volume {
    /// The part of the files that is used, divided among them, and what is done if `io_size` does not say it. With
    /// `file_bytes` a number of bytes is only what is done. Without it, all of them.
    pub size: Option<Amount>,
    /// How much is done; what is more than `size` begins again.
    pub io_size: Option<Amount>,
    /// Where the part begins.
    pub offset: Amount,
    /// Added to `offset`, as often as [`IoPlan::increments`](crate::IoPlan::increments) says.
    pub offset_increment: Amount,
    /// Size of each file, if it is given; the least and the most.
    pub file_bytes: Option<(u64, u64)>,
    /// I/Os after which it ends; 0 for no limit.
    pub number_ios: u64,
    /// How often all of it is done, at least 1.
    pub loops: u64,
    /// It goes on until its time is over, however often all of it is done.
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

/// Zones of the region that are used one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strided {
    /// Bytes to move in a zone before the next one begins.
    pub zone_bytes: u64,
    /// Length of a zone.
    pub range_bytes: u64,
    /// Bytes from the end of a zone to the start of the next.
    pub skip_bytes: u64,
}

/// Which of several files is next.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FileService {
    /// One file after the other, each for so many I/Os at a time.
    RoundRobin {
        /// At least 1.
        ios: u32,
    },
    /// Each file until it is done.
    Sequential,
    /// One at random, for so many I/Os.
    Random {
        /// At least 1.
        ios: u32,
    },
    /// Some files more often than others.
    Skewed(Popularity),
}

impl Default for FileService {
    fn default() -> Self {
        FileService::RoundRobin { ios: 1 }
    }
}

impl FileService {
    /// Whether files are drawn for ever, so that each goes round by itself.
    pub(crate) fn never_ends(self) -> bool {
        matches!(self, FileService::Skewed(_))
    }
}

/// A share of the I/Os of a direction has a priority of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorityRule {
    /// 0 for reads, 1 for writes.
    pub lane: usize,
    /// Only I/Os of this size; 0 for all.
    pub bytes: u64,
    /// Their share.
    pub percent: u8,
    /// Their priority.
    pub priority: IoPriority,
}
