//! The disk that a file is on: requests to files of one disk compete for it.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{major, makedev, minor};

/// The disk that a file, or a block device, is on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskId {
    /// The number of the disk, or of the file system if it is on no disk that the system names.
    number: u64,
    /// Its name, such as `sda`; `MAJOR:MINOR` if it has none.
    pub name: String,
}

impl DiskId {
    /// The disk of the file at this path. A partition belongs to its disk; a device-mapper, RAID or loop device is a disk of its own, as it
    /// is for Linux.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn of(path: &Path) -> io::Result<DiskId> {
        let metadata = std::fs::metadata(path)?;
        let is_device = metadata.file_type().is_block_device();
        Ok(DiskId::of_device(if is_device { metadata.rdev() } else { metadata.dev() }))
    }

    fn of_device(device: u64) -> DiskId {
        let numbered = || DiskId { number: device, name: format!("{}:{}", major(device), minor(device)) };
        let Ok(folder) = folder_of_device(device).canonicalize() else { return numbered() };
        let disk = match folder.parent() {
            Some(parent) if folder.join("partition").exists() => parent,
            _ => &folder,
        };
        let number = std::fs::read_to_string(disk.join("dev")).ok().and_then(|text| device_number(text.trim()));
        let name = disk.file_name().map(|name| name.to_string_lossy().into_owned());
        number.zip(name).map_or_else(numbered, |(number, name)| DiskId { number, name })
    }
}

/// Parses `MAJOR:MINOR`.
fn device_number(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// The folder of a block device in sysfs.
pub fn folder_of_device(device: u64) -> PathBuf {
    format!("/sys/dev/block/{}:{}", major(device), minor(device)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_file_system_are_on_one_disk_and_a_partition_is_on_its_disk() {
        let folder = tempfile::tempdir().unwrap();
        let disk_of = |name: &str| {
            std::fs::write(folder.path().join(name), "x").unwrap();
            DiskId::of(&folder.path().join(name)).unwrap()
        };
        assert_eq!(disk_of("one"), disk_of("other"));
        assert_ne!(disk_of("one"), DiskId::of(Path::new("/proc/self/stat")).unwrap());
        assert!(DiskId::of(&folder.path().join("none")).is_err());
        // Each partition that this machine has, beside the number of its disk.
        for entry in std::fs::read_dir("/sys/class/block").into_iter().flatten().flatten() {
            let path = entry.path().canonicalize().unwrap();
            let number = |folder: &Path| device_number(std::fs::read_to_string(folder.join("dev")).unwrap().trim());
            if path.join("partition").exists() {
                let disk = path.parent().unwrap();
                let found = DiskId::of_device(number(&path).unwrap());
                let name = disk.file_name().unwrap().to_string_lossy().into_owned();
                assert_eq!(found, DiskId { number: number(disk).unwrap(), name });
            }
        }
    }

    #[test]
    fn a_device_without_a_folder_is_named_by_its_number() {
        let id = DiskId::of_device(makedev(0, 77));
        assert_eq!((id.number, id.name.as_str()), (makedev(0, 77), "0:77"));
        assert_eq!((device_number("8:1"), device_number("8")), (Some(makedev(8, 1)), None));
    }
}
