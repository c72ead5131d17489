//! Virtual disks: what the guest sees, the costs of the host's I/O thread, and the latency of the host's workers.
//!
//! Used by: `io_thread`, `guests`; crates `experiment`, `hoistway`.
//! Tests: below, `crates/sim/tests/guests.rs`.
//!
//! A profile is a TOML file, as host profiles are; the built-in ones are compiled in, and a user's own file goes through
//! the same code.

use std::collections::BTreeMap;

use hoistway_device::Shape;
use serde::{Deserialize, Serialize};

use crate::profile::{Format, ProfileError, ValueKind};

const FORMAT: Format = Format {
    what: "virtual disk",
    keys: &[
        ("name", ValueKind::Text, true),
        ("description", ValueKind::Text, true),
        ("hw_queues", ValueKind::Count(1, 1024), true),
        ("queue_depth", ValueKind::Count(1, 4096), true),
        ("max_segments", ValueKind::Count(1, 1024), true),
        ("rotational", ValueKind::Flag, true),
        ("write_cache", ValueKind::Flag, true),
        ("wake_ns", ValueKind::Span, true),
        ("submit_ns", ValueKind::Time, true),
        ("complete_ns", ValueKind::Time, true),
        ("worker_ns", ValueKind::Span, true),
        ("sources", ValueKind::Sources, false),
    ],
    builtin: &[("virtio-blk", include_str!("../virtual_disks/virtio-blk.toml"))],
};

/// Largest transfer, in sectors, of a disk that limits only segments.
const MAX_SECTORS: u32 = 1 << 16;

/// A kind of virtual disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualDisk {
    /// Name on the command line.
    pub name: String,
    /// Description for users.
    pub description: String,
    /// Hardware queues that the guest sees.
    pub hw_queues: u16,
    /// Depth of each hardware queue, in requests.
    pub queue_depth: u32,
    /// Maximum segments of a request.
    pub max_segments: u16,
    /// Whether the guest sees it as rotational.
    pub rotational: bool,
    /// Whether the guest sees a volatile write cache, so that it sends flushes.
    pub write_cache: bool,
    /// Wake-up time of a sleeping I/O thread, after a command or a completion on the host, `[least, most]`, ns.
    pub wake_ns: [u64; 2],
    /// Time of the I/O thread to take a command and submit it on the host, ns.
    pub submit_ns: u64,
    /// Time of the I/O thread to signal a completion to the guest, ns.
    pub complete_ns: u64,
    /// Time from scheduling a worker of the host's queue until it runs, `[least, most]`, ns. The host profile describes the
    /// guests, so it is given here.
    pub worker_ns: [u64; 2],
    /// Sources of the figures, by key.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

impl VirtualDisk {
    /// The default profile.
    pub const DEFAULT: &str = "virtio-blk";

    /// Parses a profile. `file_name` is used only in errors.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn from_toml(text: &str, file_name: &str) -> Result<VirtualDisk, ProfileError> {
        FORMAT.read(text, file_name)
    }

    /// The built-in profile of this name.
    ///
    /// # Errors
    /// [`ProfileError::NotBuiltIn`] if there is none; the error lists those that exist.
    pub fn builtin(name: &str) -> Result<VirtualDisk, ProfileError> {
        FORMAT.builtin(name)
    }

    /// The names of the built-in profiles.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        FORMAT.builtin.iter().map(|(name, _)| *name)
    }

    /// The shape that a guest sees if `disks` virtual disks share a device of the host equally.
    #[must_use]
    pub fn shape(&self, lower: &Shape, disks: usize) -> Shape {
        Shape {
            capacity_sectors: image_sectors(lower, disks),
            hw_queues: self.hw_queues,
            queue_depth: self.queue_depth,
            host_wide_tags: false,
            wants_no_scheduler: false,
            scsi: false,
            rotational: self.rotational,
            write_cache: self.write_cache,
            fua: false,
            max_sectors: MAX_SECTORS,
            max_segments: self.max_segments,
            arbitration: None,
            transport: None,
            ..lower.clone()
        }
    }
}

/// Sectors of each image if this many are placed on a device back to back, in whole physical blocks.
pub(crate) fn image_sectors(lower: &Shape, disks: usize) -> u64 {
    let block = u64::from(lower.physical_block_bytes / 512).max(1);
    lower.capacity_sectors / disks.max(1) as u64 / block * block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_virtual_disks_are_readable_and_cite_a_source_per_figure() {
        for name in VirtualDisk::builtin_names() {
            let disk = VirtualDisk::builtin(name).unwrap();
            assert_eq!(disk.name, name);
            let figures = FORMAT
                .keys
                .iter()
                .map(|(key, ..)| *key)
                .filter(|key| !["name", "description", "sources"].contains(key));
            for key in figures {
                assert!(disk.sources.contains_key(key), "{name}: {key}");
            }
        }
    }

    #[test]
    fn an_error_names_its_line_and_what_was_expected() {
        let right = include_str!("../virtual_disks/virtio-blk.toml");
        let refused =
            |from: &str, to: &str| VirtualDisk::from_toml(&right.replace(from, to), "my.toml").unwrap_err().to_string();
        assert_eq!(
            refused("rotational = true", "rotational = 1"),
            "my.toml:9: `rotational` is 1; expected true or false"
        );
        assert_eq!(
            refused("queue_depth = 256", "queue_depth = 0"),
            "my.toml:7: `queue_depth` is 0; expected a whole number from 1 to 4096"
        );
        assert!(refused("submit_ns = 3000\n", "").starts_with("my.toml:1: `submit_ns` is missing; expected"));
        assert!(
            refused("hw_queues = 1", "cpus = 1")
                .starts_with("my.toml:6: `cpus` is not a key of a virtual disk profile")
        );
    }

    #[test]
    fn images_share_the_device_in_whole_blocks() {
        let disk = VirtualDisk::builtin(VirtualDisk::DEFAULT).unwrap();
        let lower = hoistway_device::Preset::builtin("null").unwrap().shape().clone();
        let lower = Shape { capacity_sectors: 8 * 100 + 5, physical_block_bytes: 4096, ..lower };
        let shape = disk.shape(&lower, 3);
        assert_eq!(shape.capacity_sectors, 33 * 8);
        assert_eq!((shape.hw_queues, shape.queue_depth, shape.rotational), (1, 256, true));
    }
}
