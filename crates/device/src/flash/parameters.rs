//! What a [`Flash`](super::Flash) drive is made of, as a preset says it.

use serde::{Deserialize, Serialize};

/// The `[flash]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashParameters {
    /// From the submission until the command is at the drive, us.
    pub host_to_device_us: f64,
    /// From the drive's completion until the host sees it, us.
    pub device_to_host_us: f64,
    /// Commands that the drive works on at a time. The rest waits in the submission queues, which are served in turn.
    /// Without it there is no limit but the tags of the driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetches_commands: Option<u32>,
    /// While it holds so much data of writes that have not ended, kibibytes (1024 bytes), it fetches no command, reads
    /// included. Without it there is no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetches_write_kib: Option<u32>,
    /// Time that a command with up to 4 KiB occupies the front end, us.
    pub command_us: f64,
    /// What a longer read occupies the front end for beyond that: megabytes (10^6 bytes) a second.
    pub read_mb_per_s: f64,
    /// What a longer write occupies the front end for beyond that: megabytes (10^6 bytes) a second.
    pub write_mb_per_s: f64,
    /// From the moment that a write is in the buffer until it is acknowledged, us.
    pub acknowledge_us: f64,
    /// From then until the host sees it, us; without it `device_to_host_us`, which may be longer because a read brings data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_to_host_us: Option<f64>,
    /// Units of flash that work independently of each other: dies, or planes where those do.
    pub dies: u32,
    /// Time in which a die reads a piece, us.
    pub read_us: f64,
    /// It is drawn uniformly from plus or minus this much of itself, percent.
    pub read_jitter_percent: f64,
    /// A read is split into pieces of so many kibibytes (1024 bytes), each on a die of its own.
    pub read_piece_kib: u32,
    /// How much longer a die needs for each piece of a read of more than 4 KiB, us.
    pub large_read_us: f64,
    /// Write buffer, kibibytes (1024 bytes).
    pub buffer_kib: u32,
    /// What a die programs at a time, kibibytes (1024 bytes).
    pub program_kib: u32,
    /// Time in which it does, us.
    pub program_us: f64,
    /// It is drawn uniformly from plus or minus this much of itself, percent.
    pub program_jitter_percent: f64,
    /// Which die gets the next program.
    pub placement: Placement,
    /// A read interrupts the program of its die, which costs so much, us. Without it, the read waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_suspend_us: Option<f64>,
    /// Programs of data that was written at random take so many times as long, because garbage collection writes, too.
    /// Without it, and without `translation`, that is part of `program_us`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_write_amplification: Option<f64>,
    /// Time of a flush once everything before it is programmed, us.
    pub flush_us: f64,
    /// Time that a discard or write-zeroes occupies the front end, us.
    pub discard_us: f64,
    /// How submission queues take turns; without it, one command each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arbitration: Option<ArbitrationParameters>,
    /// How data is dealt to dies as it comes; there if, and only if, the placement is `striped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub striping: Option<StripingParameters>,
    /// A page map with garbage collection; without it, the amplification is a constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation: Option<TranslationParameters>,
    /// Flash that is programmed faster, one bit a cell, and tidied up later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCacheParameters>,
    /// Garbage collection that takes turns with programs; only where the placement is `striped`. Without it, it is part of
    /// `program_us`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<CollectionParameters>,
}

/// Which die gets the next program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Any, at random; it waits there in the die's queue together with reads, first come, first served.
    AnyDie,
    /// An idle one, at random; if there is none, the next that becomes idle. Reads that wait for a die go first.
    IdleDie,
    /// That which the data was dealt to as it came in: see [`StripingParameters`].
    Striped,
}

/// How data is dealt to dies: the `[flash.striping]` section. Each unit goes to a die at random and waits there if the die is
/// busy; what waits for the same die is programmed together, up to [`FlashParameters::program_kib`]. That takes data of writes
/// which wait for the buffer, too, so [`FlashParameters::buffer_kib`] is how much may be acknowledged before it is
/// in the flash.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StripingParameters {
    /// A unit, kibibytes (1024 bytes).
    pub unit_kib: u32,
    /// Random writes of so many kibibytes (1024 bytes) and more are acknowledged only when they are in the flash.
    pub write_through_kib: u32,
    /// A unit of those, kibibytes (1024 bytes).
    pub write_through_unit_kib: u32,
}

/// Weighted round robin with an urgent class (NVMe): the `[flash.arbitration]` section. Hardware queues belong to the
/// classes in the order of their numbers; those that are left are of low priority.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArbitrationParameters {
    /// So many hardware queues go before all others.
    pub urgent_queues: u32,
    /// The next so many are of high priority.
    pub high_queues: u32,
    /// The next so many are of medium priority.
    pub medium_queues: u32,
    /// Commands of the high class in each round.
    pub high_weight: u32,
    /// Commands of the medium class in each round.
    pub medium_weight: u32,
    /// Commands of the low class in each round.
    pub low_weight: u32,
}

/// The page map: the `[flash.translation]` section.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranslationParameters {
    /// Flash beyond the capacity, percent of the capacity.
    pub over_provisioning_percent: f64,
    /// One page of so many is really mapped, the others are taken to fare alike.
    pub scale: u32,
    /// Pages of 4 KiB in an erase block of the scaled map.
    pub block_pages: u32,
    /// Whether the drive begins filled and written over at random, as after a long test, or filled in order.
    pub preconditioned: bool,
}

/// Flash that is programmed faster: the `[flash.slc_cache]` section.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCacheParameters {
    /// Its size, gigabytes (10^9 bytes).
    pub gb: f64,
    /// Time in which a die programs there what takes `program_us` elsewhere, us.
    pub program_us: f64,
    /// How fast it is emptied in the background: megabytes (10^6 bytes) a second.
    pub fold_mb_per_s: f64,
}

/// Free flash as a store: the `[flash.collection]` section. Each program takes one from it, however little it holds; a die for
/// which nothing waits frees one at a time until the store is full. Once it is empty no program begins until it is full again,
/// and all dies collect. A read waits for what its die does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionParameters {
    /// How many programs the store has room for.
    pub programs: u32,
    /// Time in which a die frees the flash of one, us; drawn as that of a program is.
    pub step_us: f64,
}
