//! The files of `/sys/block/DEV/queue/`, as text, with the kernel's parsing, clamping and errors (`block-layer.md` 22.3,
//! 22.4 and 23). Files that nothing here depends on (`read_ahead_kb`, `add_random`, ...) do not exist, and neither do
//! those of wbt, io.cost and io.latency, which are not built.

use std::fmt;

use super::{ChangeError, Queue, SCHEDULERS};
use crate::effects::Effects;
use crate::kernel::SysfsGeneration;
use crate::merge::NoMerges;
use crate::sharing::Sharing;
use crate::time::Now;
use crate::tunables::StoreError;

/// Why a file was not read or written.
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
    /// It can only be changed while the queue is [frozen and empty](Queue::is_drained) (EBUSY; the kernel waits).
    Busy,
    /// A new scheduler could not be made: the queue has none now.
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

impl From<ChangeError> for AttributeError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Busy => AttributeError::Busy,
            ChangeError::Invalid => AttributeError::Invalid,
            ChangeError::Failed(why) => AttributeError::Failed(why.0),
        }
    }
}

/// The files that can be written, the scheduler's own in `iosched/` apart.
pub const WRITABLE: [&str; 8] = [
    "scheduler",
    "nr_requests",
    "nomerges",
    "rq_affinity",
    "rotational",
    "write_cache",
    "max_sectors_kb",
    "discard_max_bytes",
];

/// The files that can only be read.
pub const READ_ONLY: [&str; 10] = [
    "fua",
    "max_hw_sectors_kb",
    "max_segments",
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
const SECTOR: u64 = crate::ids::SECTOR_BYTES;

/// Reads a number as the files of `queue/` do: decimal digits, 32 bits.
fn number(text: &str) -> Result<u32, AttributeError> {
    let digits = text.trim();
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(AttributeError::Invalid);
    }
    digits.parse().map_err(|_| AttributeError::Invalid)
}

impl<Sh: Sharing> Queue<Sh> {
    /// The content of a file, its newline included.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn attribute(&self, file: &str) -> Result<String, AttributeError> {
        let limits = &self.rules.limits;
        let bytes = |sectors: u32| (u64::from(sectors) * SECTOR).to_string();
        let text = match file {
            "scheduler" => self.scheduler_list(),
            "nr_requests" => self.nr_requests().to_string(),
            "nomerges" => (self.rules.nomerges as u8).to_string(),
            "rq_affinity" => (self.affinity as u8).to_string(),
            "rotational" => u8::from(limits.rotational).to_string(),
            "write_cache" => if limits.write_cache { "write back" } else { "write through" }.into(),
            "fua" => u8::from(limits.fua && limits.write_cache).to_string(),
            "max_sectors_kb" => (limits.max_sectors / 2).to_string(),
            "max_hw_sectors_kb" => (limits.max_hw_sectors / 2).to_string(),
            "max_segments" => limits.max_segments.to_string(),
            "logical_block_size" | "hw_sector_size" => bytes(limits.logical_block),
            "physical_block_size" => bytes(limits.physical_block),
            "chunk_sectors" => limits.chunk_sectors.to_string(),
            "discard_granularity" => bytes(limits.discard_granularity),
            "discard_max_bytes" => bytes(limits.max_discard_sectors),
            "discard_max_hw_bytes" => bytes(self.config.limits.max_discard_sectors),
            "write_zeroes_max_bytes" => bytes(limits.max_write_zeroes_sectors),
            other => match other.strip_prefix("iosched/") {
                Some(tunable) => self.elevator.tunable(tunable)?.to_string(),
                None => return Err(AttributeError::Unknown),
            },
        };
        Ok(text + "\n")
    }

    /// The schedulers, the present one in brackets.
    fn scheduler_list(&self) -> String {
        let present = self.elevator.name();
        let show = |name: &str| if name == present { format!("[{name}]") } else { name.to_string() };
        let [none, types @ ..] = SCHEDULERS;
        let types: String = types.iter().map(|name| show(name) + " ").collect();
        if self.generation.sysfs == SysfsGeneration::NoneLast && present != none {
            types + none
        } else {
            format!("{} {types}", show(none))
        }
    }

    /// Writes `text` to a file. Scheduler and number of requests can only be changed while the queue is
    /// [frozen and empty](Self::is_drained), other files at any time.
    ///
    /// # Errors
    /// If the kernel would refuse the text; then nothing has changed.
    pub fn set_attribute(
        &mut self,
        now: Now,
        file: &str,
        text: &str,
        effects: &mut Effects,
    ) -> Result<(), AttributeError> {
        match file {
            "scheduler" => return Ok(self.switch_scheduler(text, effects)?),
            "nr_requests" => return Ok(self.set_nr_requests(number(text)?)?),
            "nomerges" => {
                self.rules.nomerges = match number(text)? {
                    0 => NoMerges::All,
                    2 => NoMerges::Nothing,
                    _ => NoMerges::Cheap,
                }
            }
            "rq_affinity" => self.set_affinity(number(text)?),
            "rotational" => self.rules.limits.rotational = number(text)? != 0,
            "write_cache" => {
                let on = match text.trim() {
                    "write back" => true,
                    "write through" | "none" => false,
                    _ => return Err(AttributeError::Invalid),
                };
                let needs_a_cache = self.generation.sysfs == SysfsGeneration::Clamping;
                self.rules.limits.write_cache = on && (self.config.limits.write_cache || !needs_a_cache);
            }
            "max_sectors_kb" => {
                let kib = number(text)?;
                let most = self.rules.limits.max_hw_sectors / 2;
                if kib < PAGE_KIB || (kib > most && self.generation.sysfs != SysfsGeneration::Clamping) {
                    return Err(AttributeError::Invalid);
                }
                let block = self.rules.limits.logical_block.max(1);
                let sectors = kib.min(most).saturating_mul(2);
                self.rules.limits.max_sectors = (sectors - sectors % block).max(block);
            }
            "discard_max_bytes" => {
                let bytes: u64 = text.trim().parse().map_err(|_| AttributeError::Invalid)?;
                let granularity = u64::from(self.rules.limits.discard_granularity.max(1)) * SECTOR;
                if !bytes.is_multiple_of(granularity) {
                    return Err(AttributeError::Invalid);
                }
                let most = self.config.limits.max_discard_sectors;
                self.rules.limits.max_discard_sectors = u32::try_from(bytes / SECTOR).unwrap_or(u32::MAX).min(most);
            }
            file if READ_ONLY.contains(&file) => return Err(AttributeError::ReadOnly),
            file => {
                let tunable = file.strip_prefix("iosched/").ok_or(AttributeError::Unknown)?;
                self.set_tunable(now, tunable, text, effects)?;
            }
        }
        Ok(())
    }
}
