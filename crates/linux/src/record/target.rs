//! The device to record: finds the disk of a name or path.

use hoistway_trace::block::Device;
use rustix::fs::{FileType, OFlags};

use super::error::RecordError;
use crate::below::{disk_of, folder_of};
use crate::root::Root;

/// A disk to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Its name in `/sys/block`.
    pub name: String,
    /// Its major and minor number.
    pub number: Device,
    /// The partition that was given, if any.
    pub partition: Option<String>,
    /// The devices below it, if it is stacked.
    pub lies_on: Vec<String>,
    /// Whether it is bio-based, and so has no scheduler.
    pub has_no_requests: bool,
}

const EXPECTED: &str = "a block device, such as nvme0n1 or /dev/sda";

impl Target {
    /// The disk with this name or device path.
    ///
    /// # Errors
    /// If there is no such device.
    pub(crate) fn find(root: &Root, requested: &str) -> Result<Target, RecordError> {
        let folder = folder(root, requested)?;
        let refuse = |problem: &str| RecordError::new(requested, problem, EXPECTED);
        let disk = disk_of(root, &folder);
        let partition = folder.strip_prefix(disk).filter(|name| !name.is_empty());
        let partition = partition.map(|name| name.trim_start_matches('/').to_owned());
        let name = disk.rsplit('/').next().unwrap_or(disk).to_owned();
        let number = number(root, disk).ok_or_else(|| refuse("sysfs does not show its number"))?;
        let lies_on = root.names(&format!("{disk}/slaves")).unwrap_or_default();
        let has_no_requests = !root.has_folder(&format!("{disk}/mq"));
        Ok(Target { name, number, partition, lies_on, has_no_requests })
    }

    /// Whether the disk is below the device with this number: the disk itself, a partition of it, or a device stacked on it.
    pub(crate) fn is_below(&self, root: &Root, number: Device) -> bool {
        let Ok(folder) = root.resolved(&format!("sys/dev/block/{}:{}", number.major, number.minor)) else {
            return false;
        };
        self.is_below_folder(root, &folder, 0)
    }

    fn is_below_folder(&self, root: &Root, folder: &str, depth: u32) -> bool {
        const DEPTH_MAX: u32 = 16;
        if folder.split('/').any(|name| name == self.name) {
            return true;
        }
        let below = root.names(&format!("{folder}/slaves")).unwrap_or_default();
        depth < DEPTH_MAX
            && below.iter().any(|name| {
                let folder = root.resolved(&format!("{folder}/slaves/{name}"));
                folder.is_ok_and(|folder| self.is_below_folder(root, &folder, depth + 1))
            })
    }
}

/// The folder of a device in sysfs.
fn folder(root: &Root, requested: &str) -> Result<String, RecordError> {
    let refuse = |problem: String, expected: String| RecordError::new(requested, problem, expected);
    if !requested.contains('/')
        && let Ok(folder) = root.resolved(&format!("sys/class/block/{requested}"))
    {
        return Ok(folder);
    }
    let path = if requested.contains('/') { requested.to_owned() } else { format!("dev/{requested}") };
    let file = root.open_file(&path, OFlags::PATH).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let known = root.names("sys/block").unwrap_or_default();
            refuse("no such device".to_owned(), format!("one of {}", known.join(", ")))
        }
        _ => refuse(error.to_string(), EXPECTED.to_owned()),
    })?;
    let stat = rustix::fs::fstat(&file).map_err(|error| refuse(error.to_string(), EXPECTED.to_owned()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => {
            folder_of(root, stat.st_rdev).map_err(|_| refuse("sysfs does not list it".to_owned(), EXPECTED.to_owned()))
        }
        _ => {
            let name = |folder: String| folder.rsplit('/').next().map(str::to_owned);
            let expected = match folder_of(root, stat.st_dev).ok().and_then(name) {
                Some(device) => format!("its underlying device, {device}"),
                None => EXPECTED.to_owned(),
            };
            Err(refuse("is not a block device".to_owned(), expected))
        }
    }
}

/// The number in a device's file `dev`, such as `8:0`.
fn number(root: &Root, folder: &str) -> Option<Device> {
    let text = root.read(&format!("{folder}/dev")).ok()?;
    Device::parse(&text.trim().replace(':', ","))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn root() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let disk = |path: &str, name: &str, number: &str| {
            let device_folder = folder.path().join("sys/devices").join(path);
            fs::create_dir_all(&device_folder).unwrap();
            fs::write(device_folder.join("dev"), format!("{number}\n")).unwrap();
            for (links, link) in [("class/block", name), ("dev/block", number)] {
                let links = folder.path().join("sys").join(links);
                fs::create_dir_all(&links).unwrap();
                symlink(format!("../../devices/{path}"), links.join(link)).unwrap();
            }
            device_folder
        };
        fs::create_dir(disk("pci/block/sda", "sda", "8:0").join("mq")).unwrap();
        fs::write(disk("pci/block/sda/sda2", "sda2", "8:2").join("partition"), "2\n").unwrap();
        let mapper = disk("virtual/block/dm-0", "dm-0", "254:0");
        fs::create_dir(mapper.join("slaves")).unwrap();
        symlink("../../../../pci/block/sda/sda2", mapper.join("slaves/sda2")).unwrap();
        disk("virtual/block/loop0", "loop0", "7:0");
        fs::create_dir(folder.path().join("dev")).unwrap();
        fs::write(folder.path().join("dev/file"), "").unwrap();
        let root = Root::open(folder.path()).unwrap();
        (folder, root)
    }

    #[test]
    fn a_partition_stands_for_its_disk() {
        let (_folder, root) = root();
        let disk = Target::find(&root, "sda").unwrap();
        assert_eq!((&*disk.name, disk.number, disk.has_no_requests), ("sda", Device { major: 8, minor: 0 }, false));
        let partition = Target::find(&root, "sda2").unwrap();
        assert_eq!(partition, Target { partition: Some("sda2".to_owned()), ..disk });
    }

    #[test]
    fn a_device_without_requests_names_its_lower_devices() {
        let (_folder, root) = root();
        let mapper = Target::find(&root, "dm-0").unwrap();
        assert!(mapper.has_no_requests && mapper.lies_on == ["sda2"]);
    }

    #[test]
    fn devices_stacked_on_a_disk_are_known() {
        let (_folder, root) = root();
        let disk = Target::find(&root, "sda").unwrap();
        let is_below = |major, minor| disk.is_below(&root, Device { major, minor });
        assert!(is_below(8, 0) && is_below(8, 2) && is_below(254, 0));
        assert!(!is_below(7, 0) && !is_below(9, 9));
    }

    #[test]
    fn an_invalid_record_target_is_refused() {
        let (_folder, root) = root();
        for (requested, problem) in [("sdz", "no such device"), ("/dev/file", "not a block device"), ("../sda", "sda")]
        {
            let error = Target::find(&root, requested).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("expected"), "{error}");
        }
    }
}
