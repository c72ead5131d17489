//! The files of `/sys/block/DEV/queue/` that both kinds of queue have, as text, with the kernel's parsing, clamping and errors
//! (BL-105 to BL-108). Files that nothing here depends on (`add_random`, ...) do not exist, nor do those of io.cost and
//! io.latency, which are no files of a queue.
//!
//! Used by: `queue`, `kit`; crates `engine`, `experiment`, `legacy`, `sim`, `linux` and others.
//! Tests: `crates/blk/src/queue/tests/attributes.rs`.

use std::fmt;

use crate::bio::limits::Limits;
use crate::ground::kernel::{Generation, SysfsGeneration};
use crate::ground::time::Nanos;
use crate::ground::tunables::StoreError;
use crate::request::merge::{MergeRules, Merging};

/// Why a file could not be read or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttributeError {
    /// There is no such file (ENOENT).
    Unknown,
    /// It can only be read (EACCES).
    ReadOnly,
    /// The kernel refuses the value (EINVAL).
    Invalid,
    /// The number cannot be represented (ERANGE).
    Range,
    /// It can only be changed while the queue is [frozen and empty](crate::queue::Queue::is_drained) (EBUSY; the kernel waits).
    Busy,
    /// A new scheduler could not be created.
    Failed(String),
}

impl fmt::Display for AttributeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeError::Unknown => f.write_str("no such file (ENOENT)"),
            AttributeError::ReadOnly => f.write_str("can only be read (EACCES)"),
            AttributeError::Invalid => f.write_str("invalid value (EINVAL)"),
            AttributeError::Range => f.write_str("number out of range (ERANGE)"),
            AttributeError::Busy => f.write_str("the queue is in use (EBUSY)"),
            AttributeError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for AttributeError {}

impl From<StoreError> for AttributeError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unknown => AttributeError::Unknown,
            StoreError::Invalid => AttributeError::Invalid,
            StoreError::Range => AttributeError::Range,
        }
    }
}

/// The files that can be written, except the scheduler's own in `iosched/`.
pub const WRITABLE_ATTRIBUTES: [&str; 12] = [
    "scheduler",
    "nr_requests",
    "async_depth",
    "nomerges",
    "rq_affinity",
    "io_timeout",
    "rotational",
    "write_cache",
    "max_sectors_kb",
    "discard_max_bytes",
    "wbt_lat_usec",
    "read_ahead_kb",
];

/// The files that can only be read.
pub const READ_ONLY_ATTRIBUTES: [&str; 12] = [
    "fua",
    "max_hw_sectors_kb",
    "max_segments",
    "max_discard_segments",
    "io_poll",
    "logical_block_size",
    "hw_sector_size",
    "physical_block_size",
    "chunk_sectors",
    "discard_granularity",
    "discard_max_hw_bytes",
    "write_zeroes_max_bytes",
];

/// A page of memory: the smallest `max_sectors_kb`.
const PAGE_KIB: u32 = 4;
const SECTOR: u64 = crate::ground::ids::SECTOR_BYTES;

/// Parses a number as the files of `queue/` do: decimal digits, 32 bits.
pub fn number(text: &str) -> Result<u32, AttributeError> {
    let digits = text.trim();
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(AttributeError::Invalid);
    }
    digits.parse().map_err(|_| AttributeError::Invalid)
}

/// Parses a timeout in milliseconds; 0 is not valid.
pub fn timeout(text: &str) -> Result<Nanos, AttributeError> {
    match number(text)? {
        0 => Err(AttributeError::Invalid),
        ms => Ok(Nanos::from_millis(u64::from(ms))),
    }
}

/// The content, without a newline, of a file that depends only on limits and merge rules. `device`: the limits of the hardware.
pub fn show(rules: &MergeRules, device: &Limits, file: &str) -> Option<String> {
    let limits = &rules.limits;
    let bytes = |sectors: u32| (u64::from(sectors) * SECTOR).to_string();
    Some(match file {
        "nomerges" => (rules.merging as u8).to_string(),
        "read_ahead_kb" => rules.read_ahead_kib.to_string(),
        "rotational" => u8::from(limits.rotational).to_string(),
        "write_cache" => if limits.write_cache { "write back" } else { "write through" }.into(),
        "fua" => u8::from(limits.fua && limits.write_cache).to_string(),
        "max_sectors_kb" => (limits.max_sectors / 2).to_string(),
        "max_hw_sectors_kb" => (limits.max_hw_sectors / 2).to_string(),
        "max_discard_segments" => limits.max_discard_segments.to_string(),
        "max_segments" => limits.max_segments.to_string(),
        "logical_block_size" | "hw_sector_size" => bytes(limits.logical_block),
        "physical_block_size" => bytes(limits.physical_block),
        "chunk_sectors" => limits.chunk_sectors.to_string(),
        "discard_granularity" => bytes(limits.discard_granularity),
        "discard_max_bytes" => bytes(limits.max_discard_sectors),
        "discard_max_hw_bytes" => bytes(device.max_discard_sectors),
        "write_zeroes_max_bytes" => bytes(limits.max_write_zeroes_sectors),
        _ => return None,
    })
}

/// Writes a file that only limits and merge rules depend on.
pub fn store(
    rules: &mut MergeRules,
    device: &Limits,
    generation: &Generation,
    file: &str,
    text: &str,
) -> Result<(), AttributeError> {
    let clamps = generation.sysfs == SysfsGeneration::Clamping;
    match file {
        "nomerges" => {
            rules.merging = match number(text)? {
                0 => Merging::Full,
                2 => Merging::Off,
                _ => Merging::Simple,
            }
        }
        // Whole pages.
        "read_ahead_kb" => rules.read_ahead_kib = number(text)? / PAGE_KIB * PAGE_KIB,
        "rotational" => rules.limits.rotational = number(text)? != 0,
        "write_cache" => {
            let is_on = match text.trim() {
                "write back" => true,
                "write through" | "none" => false,
                _ => return Err(AttributeError::Invalid),
            };
            rules.limits.write_cache = is_on && (device.write_cache || !clamps);
        }
        "max_sectors_kb" => {
            let kib = number(text)?;
            let kib_max = rules.limits.max_hw_sectors / 2;
            if kib < PAGE_KIB || (kib > kib_max && !clamps) {
                return Err(AttributeError::Invalid);
            }
            let block = rules.limits.logical_block.max(1);
            let sectors = kib.min(kib_max).saturating_mul(2);
            rules.limits.max_sectors = (sectors - sectors % block).max(block);
        }
        "discard_max_bytes" => {
            let bytes: u64 = text.trim().parse().map_err(|_| AttributeError::Invalid)?;
            let granularity = u64::from(rules.limits.discard_granularity.max(1)) * SECTOR;
            if !bytes.is_multiple_of(granularity) {
                return Err(AttributeError::Invalid);
            }
            let sectors = u32::try_from(bytes / SECTOR).unwrap_or(u32::MAX);
            rules.limits.max_discard_sectors = sectors.min(device.max_discard_sectors);
        }
        file if READ_ONLY_ATTRIBUTES.contains(&file) => return Err(AttributeError::ReadOnly),
        _ => return Err(AttributeError::Unknown),
    }
    Ok(())
}
