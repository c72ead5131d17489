//! Finds the disks below a device or a file.
//!
//! Used by: `record`; crate `hoistway`.
//! Tests: `crates/linux/tests/host.rs`.

use std::io;
use std::path::Path;

use rustix::fs::{FileType, OFlags};

use crate::root::Root;

/// The file system type of tmpfs.
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// Maximum depth of a stack of devices.
const DEPTH_MAX: u32 = 16;

/// The queues that I/O to a device or a file passes through.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Below {
    /// The underlying disks that have a request queue, and so a scheduler, by their names in `/sys/block`.
    pub disks: Vec<String>,
    /// Whether it is a file on tmpfs, without an underlying disk.
    pub is_in_memory: bool,
    /// Whether it is a block device.
    pub is_device: bool,
    /// The file whose page cache serves the reads, if any: the backing file of a loop device without direct I/O.
    pub cached_by: Option<String>,
    /// Bytes of holes in a file: reading them does not reach the disk.
    pub hole_bytes: u64,
}

impl Below {
    /// The disks below the device or file at `path`. Links in the path are followed below the root.
    ///
    /// # Errors
    /// If it does not exist, or is neither a file nor a block device.
    pub fn of(root: &Root, path: &Path) -> io::Result<Below> {
        let file = root.open_file(&path.to_string_lossy(), OFlags::PATH)?;
        let stat = rustix::fs::fstat(&file)?;
        let mut below = Below::default();
        let number = match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => {
                below.is_device = true;
                stat.st_rdev
            }
            FileType::RegularFile => {
                below.is_in_memory = is_in_memory(root, path);
                let [size, blocks] = [stat.st_size, stat.st_blocks].map(|number| u64::try_from(number).unwrap_or(0));
                below.hole_bytes = size.saturating_sub(blocks.saturating_mul(512));
                stat.st_dev
            }
            _ => return Err(io::Error::other("neither a file nor a block device")),
        };
        if let Ok(folder) = folder_of(root, number) {
            below.add(root, &folder, 0);
        }
        below.disks.sort();
        below.disks.dedup();
        below.cached_by = below.disks.iter().find_map(|disk| page_cache_file(root, disk));
        Ok(below)
    }

    /// Adds the disk of this sysfs folder if it has a request queue, otherwise those below it.
    fn add(&mut self, root: &Root, folder: &str, depth: u32) {
        let disk = disk_of(root, folder);
        if root.has_folder(&format!("{disk}/mq")) {
            self.disks.push(disk.rsplit('/').next().unwrap_or(disk).to_owned());
            return;
        }
        for name in root.names(&format!("{disk}/slaves")).unwrap_or_default() {
            if let Ok(slave) = root.resolved(&format!("{disk}/slaves/{name}"))
                && depth < DEPTH_MAX
            {
                self.add(root, &slave, depth + 1);
            }
        }
    }
}

/// The folder in sysfs of the device with this number.
pub(crate) fn folder_of(root: &Root, number: u64) -> io::Result<String> {
    root.resolved(&format!("sys/dev/block/{}:{}", rustix::fs::major(number), rustix::fs::minor(number)))
}

/// The folder of the disk that a folder belongs to: for a partition, its parent.
pub(crate) fn disk_of<'a>(root: &Root, folder: &'a str) -> &'a str {
    let is_partition = root.read(&format!("{folder}/partition")).is_ok();
    folder.rsplit_once('/').filter(|_| is_partition).map_or(folder, |(parent, _)| parent)
}

/// Sectors of 512 bytes that a disk has read and written since it appeared; `None` if unknown.
#[must_use]
pub fn sectors(root: &Root, disk: &str) -> Option<u64> {
    let text = root.read(&format!("sys/block/{disk}/stat")).ok()?;
    let numbers: Vec<u64> = text.split_whitespace().map_while(|number| number.parse().ok()).collect();
    Some(numbers.get(2)? + numbers.get(6)?)
}

fn is_in_memory(root: &Root, path: &Path) -> bool {
    // A descriptor opened with O_PATH is enough for this call.
    let file = root.open_file(&path.to_string_lossy(), OFlags::PATH);
    file.is_ok_and(|file| rustix::fs::fstatfs(&file).is_ok_and(|fs| fs.f_type as u64 == TMPFS_MAGIC))
}

/// The backing file of a loop device if its page cache serves reads.
fn page_cache_file(root: &Root, disk: &str) -> Option<String> {
    let file = root.read(&format!("sys/block/{disk}/loop/backing_file")).ok()?;
    let is_direct = root.read(&format!("sys/block/{disk}/loop/dio")).is_ok_and(|text| text.trim() == "1");
    let file = file.trim_end_matches('\n');
    (!is_direct && !is_in_memory(root, Path::new(file))).then(|| file.to_owned())
}
