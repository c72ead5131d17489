//! The parameters of a [`Flash`](super::Flash) drive in a preset.

use hoistway_blk::request::Arbitration;
use serde::{Deserialize, Serialize};

/// The `[flash]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashParameters {
    /// Time from the submission until the command is at the drive, us.
    pub host_to_device_us: f64,
    /// Time from the drive's completion until the host sees it, us.
    pub device_to_host_us: f64,
    /// Maximum commands that the drive works on at a time. Others wait in the submission queues, which are served in
    /// turn. Without it the only limit is the number of driver tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetches_commands: Option<u32>,
    /// Maximum data of writes that the drive holds, from the front end to their acknowledgement, kibibytes (1024 bytes). A write
    /// that finds no room waits, and all commands fetched after it wait behind it, reads too. Without it there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds_write_kib: Option<u32>,
    /// Time that a command with up to 4 KiB occupies the front end, us.
    pub command_us: f64,
    /// Front-end transfer rate of a read beyond 4 KiB, megabytes (10^6 bytes) per second.
    pub read_mb_per_s: f64,
    /// Front-end transfer rate of a write beyond 4 KiB, megabytes (10^6 bytes) per second.
    pub write_mb_per_s: f64,
    /// Time from when a write is in the buffer until it is acknowledged, us.
    pub acknowledge_us: f64,
    /// Time from then until the host sees it, us; without it `device_to_host_us`, which may be longer because a read
    /// transfers data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_to_host_us: Option<f64>,
    /// Independent units of flash: dies, or planes if those are independent.
    pub dies: u32,
    /// Time to read a piece from a die, us.
    pub read_us: f64,
    /// The time is drawn uniformly from plus or minus this percentage.
    pub read_jitter_percent: f64,
    /// A read is split into pieces of this many kibibytes (1024 bytes), each on a separate die.
    pub read_piece_kib: u32,
    /// Additional die time for each piece of a read of more than 4 KiB, us.
    pub large_read_us: f64,
    /// How far the drive reads ahead where reads follow each other, kibibytes (1024 bytes), at most 64 pieces. Without it it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_kib: Option<u32>,
    /// Size of the write buffer, kibibytes (1024 bytes).
    pub buffer_kib: u32,
    /// Data that a die programs at a time, kibibytes (1024 bytes).
    pub program_kib: u32,
    /// Time of a program, us.
    pub program_us: f64,
    /// The time is drawn uniformly from plus or minus this percentage.
    pub program_jitter_percent: f64,
    /// How the die of the next program is chosen.
    pub placement: Placement,
    /// Cost of a read that interrupts the program of its die, us. Without it, the read waits. With the placement `striped` a read
    /// interrupts only while less data waits for the flash than the buffer holds, and no program of a write that waits for its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_suspend_us: Option<f64>,
    /// The amplified part of a program is garbage collection. It follows the data, in steps of this time: a read that comes during a step
    /// waits for its end before it interrupts the program. Without it reads interrupt that part at once, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection_step_us: Option<f64>,
    /// Factor for the time of programs with randomly written data, because garbage collection writes, too. Without it,
    /// and without `translation`, this is part of `program_us`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_write_amplification: Option<f64>,
    /// Flash that was erased before the load, gigabytes (10^9 bytes): as long as less was written nothing is collected. Without it the drive
    /// has long been written over at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased_gb: Option<f64>,
    /// Whether a read waits until the last write with FUA that reached the buffer before it is in the flash. If not, a read
    /// waits only for its die.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fua_blocks_reads: bool,
    /// Whether a step of collection waits until no read is in the drive, while more than a quarter of the store is free; needs `collection`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gc_defers: bool,
    /// Whether pages that are written more than three times as often as the mean go to blocks of their own; needs `translation`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub heat_placement: bool,
    /// Size of a page of flash, kibibytes (1024 bytes): a write that covers a part of one reads the page first and programs all of it. Without
    /// it such a write costs no more than its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_page_kib: Option<u32>,
    /// Time of a flush after everything before it is programmed, us.
    pub flush_us: f64,
    /// Time that a discard or write-zeroes occupies the front end, us.
    pub discard_us: f64,
    /// The arbitration between submission queues; without it, one command each in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arbitration: Option<ArbitrationParameters>,
    /// How data is dealt to dies on arrival; given if, and only if, the placement is `striped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub striping: Option<StripingParameters>,
    /// A page map with garbage collection; without it, the amplification is a constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation: Option<TranslationParameters>,
    /// Flash in faster single-bit mode, which is emptied later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCacheParameters>,
    /// Garbage collection that alternates with programs; only with the placement `striped`. Without it, it is part of
    /// `program_us`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<CollectionParameters>,
    /// Stretches in which the dies do no work for the host. Without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall: Option<StallParameters>,
}

/// How the die of the next program is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Any die, at random; the program waits there together with reads, first come, first served.
    AnyDie,
    /// An idle die, at random; if there is none, the next one that becomes idle. Reads that wait for a die go first.
    IdleDie,
    /// The die that the data was dealt to on arrival: see [`StripingParameters`].
    Striped,
}

/// How data is dealt to dies: the `[flash.striping]` section. Small writes are collected into units of
/// [`FlashParameters::program_kib`]. Each unit goes to a random die and waits there if the die is busy; units waiting for the same
/// die are programmed together, up to the same size. This includes data of writes that wait for the buffer, so
/// [`FlashParameters::buffer_kib`] is the amount that may be acknowledged before it is in the flash.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StripingParameters {
    /// Random writes of at least this many kibibytes (1024 bytes) are acknowledged only when they are in the flash.
    pub write_through_kib: u32,
    /// Size of a unit of such writes, kibibytes (1024 bytes).
    pub write_through_unit_kib: u32,
}

/// Weighted round robin with an urgent class (NVMe): the `[flash.arbitration]` section. Until the host assigns them, hardware queues have
/// the classes in the order of their numbers; the remaining ones have low priority.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArbitrationParameters {
    /// Number of hardware queues that go before all others.
    pub urgent_queues: u32,
    /// Number of further hardware queues with high priority.
    pub high_queues: u32,
    /// Number of further hardware queues with medium priority.
    pub medium_queues: u32,
    /// Commands of the high class per round.
    pub high_weight: u32,
    /// Commands of the medium class per round.
    pub medium_weight: u32,
    /// Commands of the low class per round.
    pub low_weight: u32,
    /// Commands that are fetched from a queue before it is the next one's turn; one without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// The largest weight that the host may set; 256 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_max: Option<u16>,
}

impl ArbitrationParameters {
    /// What the host knows of it.
    pub(crate) fn capability(&self) -> Arbitration {
        Arbitration { weight_max: self.weight_max.unwrap_or(256) }
    }
}

/// The page map: the `[flash.translation]` section.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranslationParameters {
    /// Flash beyond the capacity, percent of the capacity.
    pub over_provisioning_percent: f64,
    /// One page out of this many is mapped; the others are assumed to behave the same.
    pub scale: u32,
    /// Pages of 4 KiB in an erase block of the scaled map.
    pub block_pages: u32,
    /// The share of the pages that hold data when the load starts, percent; all without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill_percent: Option<f64>,
    /// Whether the drive starts filled and overwritten at random, as after a long test, or filled in order.
    pub preconditioned: bool,
}

/// Flash that is programmed faster: the `[flash.slc_cache]` section.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCacheParameters {
    /// Its size, gigabytes (10^9 bytes).
    pub gb: f64,
    /// Time of a program there, us; elsewhere it takes `program_us`.
    pub program_us: f64,
    /// Rate at which it is emptied in the background, megabytes (10^6 bytes) per second.
    pub fold_mb_per_s: f64,
}

/// Free flash as a store: the `[flash.collection]` section. Each program takes one unit from it, however little data it holds.
/// One idle die at a time does a step of collection, which frees several units. When the store is empty, no program starts until it
/// is full again, and all dies collect. A read waits for a step on its die.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionParameters {
    /// Capacity of the store in programs.
    pub programs: u32,
    /// Time of a step of collection, us; varies like that of a program.
    pub step_us: f64,
    /// Programs that a step makes room for.
    pub step_programs: u32,
}

/// Rare stretches in which the whole drive does nothing else: the `[flash.stall]` section.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StallParameters {
    /// Data programmed between the beginnings of two of them, megabytes (10^6 bytes).
    pub every_mb: f64,
    /// How long each lasts, ms.
    pub lasts_ms: f64,
}
