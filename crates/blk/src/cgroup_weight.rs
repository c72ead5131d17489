//! The weights of a cgroup as its files hold them: what can be written to them, what is refused, and what they show
//! (`cgroup-io.md` 2 and 3, `cfq.md` 21, `bfq.md` 5.3).
//!
//! A cgroup has one set of files for all devices; schedulers are one for each device. So the files are values of their own,
//! and whoever writes one [tells](CgroupWeight::tell) the scheduler of every device what its weight is now.

use std::fmt;
use std::str::FromStr;

use crate::attributes::AttributeError;
use crate::elevator::{PolicyCx, Scheduler};
use crate::ids::CgroupId;

/// A device as cgroup files name it, `8:16`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeviceNumber {
    /// The number of its driver.
    pub major: u32,
    /// Its number there.
    pub minor: u32,
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = AttributeError;

    fn from_str(text: &str) -> Result<Self, AttributeError> {
        let (major, minor) = text.split_once(':').ok_or(AttributeError::Invalid)?;
        Ok(DeviceNumber { major: number(major)?, minor: number(minor)? })
    }
}

/// Whose weights, and by which version of the cgroup interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WeightInterface {
    /// cfq's `blkio.weight` and its kin: 10 to 1000, 500 by default; the root's 1000.
    CfqV1,
    /// cfq's `io.weight`: 1 to 10000, 100 by default.
    CfqV2,
    /// bfq's `blkio.bfq.weight`: 1 to 1000, 100 by default.
    BfqV1,
    /// bfq's `io.bfq.weight`, the same.
    BfqV2,
}

/// Which of a cgroup's weights a file holds, and in which form.
#[derive(Clone, Copy)]
enum File {
    /// A number for all devices.
    Default(Which),
    /// A line for each device that has a number of its own.
    Devices(Which),
    /// Both.
    Both,
}

#[derive(Clone, Copy)]
enum Which {
    /// Against its siblings.
    Own,
    /// Of its own tasks against its child groups.
    Leaf,
}

/// A weight: for all devices, and for some of them another.
#[derive(Clone, Debug)]
struct Weight {
    default: u16,
    /// Ascending.
    devices: Vec<(DeviceNumber, u16)>,
}

impl Weight {
    fn on(&self, device: DeviceNumber) -> u16 {
        self.devices.iter().find(|&&(other, _)| other == device).map_or(self.default, |&(_, weight)| weight)
    }

    fn set_on(&mut self, device: DeviceNumber, weight: Option<u16>) {
        self.devices.retain(|&(other, _)| other != device);
        self.devices.extend(weight.map(|weight| (device, weight)));
        self.devices.sort_unstable();
    }

    fn device_lines(&self) -> String {
        self.devices.iter().map(|(device, weight)| format!("{device} {weight}\n")).collect()
    }
}

/// The weight files of one cgroup.
///
/// ```
/// use hoistway_blk::{CgroupId, CgroupWeight, WeightInterface};
///
/// let mut files = CgroupWeight::new(WeightInterface::BfqV2, CgroupId(1));
/// files.write("io.bfq.weight", "300").unwrap();
/// files.write("io.bfq.weight", "8:16 700").unwrap();
/// assert_eq!(files.read("io.bfq.weight").unwrap(), "default 300\n8:16 700\n");
/// ```
#[derive(Clone, Debug)]
pub struct CgroupWeight {
    interface: WeightInterface,
    cgroup: CgroupId,
    own: Weight,
    leaf: Weight,
}

impl CgroupWeight {
    /// The files of a new cgroup.
    #[must_use]
    pub fn new(interface: WeightInterface, cgroup: CgroupId) -> Self {
        let default = match (interface, cgroup == CgroupId::ROOT) {
            (WeightInterface::CfqV1, false) => 500,
            (WeightInterface::CfqV1, true) => 1000,
            (WeightInterface::CfqV2, true) => 200,
            (WeightInterface::CfqV2 | WeightInterface::BfqV1 | WeightInterface::BfqV2, _) => 100,
        };
        let weight = Weight { default, devices: Vec::new() };
        CgroupWeight { interface, cgroup, own: weight.clone(), leaf: weight }
    }

    /// The file of a name, if this cgroup has it. The root has no siblings: cfq's `blkio.weight` is that of its tasks there,
    /// and the others do not exist.
    fn file(&self, name: &str) -> Result<File, AttributeError> {
        let is_root = self.cgroup == CgroupId::ROOT;
        let own = if is_root { Which::Leaf } else { Which::Own };
        match (self.interface, name) {
            (WeightInterface::CfqV1, "blkio.weight") => Ok(File::Default(own)),
            (WeightInterface::CfqV1, "blkio.weight_device") => Ok(File::Devices(own)),
            (WeightInterface::CfqV1, "blkio.leaf_weight") => Ok(File::Default(Which::Leaf)),
            (WeightInterface::CfqV1, "blkio.leaf_weight_device") => Ok(File::Devices(Which::Leaf)),
            (WeightInterface::CfqV2, "io.weight") if !is_root => Ok(File::Both),
            (WeightInterface::BfqV1, "blkio.bfq.weight") if !is_root => Ok(File::Default(own)),
            (WeightInterface::BfqV1, "blkio.bfq.weight_device") if !is_root => Ok(File::Devices(own)),
            (WeightInterface::BfqV2, "io.bfq.weight") if !is_root => Ok(File::Both),
            _ => Err(AttributeError::Unknown),
        }
    }

    fn weight(&self, which: Which) -> &Weight {
        match which {
            Which::Own => &self.own,
            Which::Leaf => &self.leaf,
        }
    }

    fn weight_mut(&mut self, which: Which) -> &mut Weight {
        match which {
            Which::Own => &mut self.own,
            Which::Leaf => &mut self.leaf,
        }
    }

    /// What a file shows.
    ///
    /// # Errors
    /// If the cgroup has no such file.
    pub fn read(&self, name: &str) -> Result<String, AttributeError> {
        Ok(match self.file(name)? {
            File::Default(which) => format!("{}\n", self.weight(which).default),
            File::Devices(which) => self.weight(which).device_lines(),
            File::Both => format!("default {}\n{}", self.own.default, self.own.device_lines()),
        })
    }

    /// Writes a file: a number; or a device and its number, `default` for none of its own; or, where one file holds both,
    /// any of `W`, `default W`, `MAJOR:MINOR W` and `MAJOR:MINOR default`.
    ///
    /// # Errors
    /// If the cgroup has no such file, the text is none of these (EINVAL), or the weight is out of range (ERANGE).
    pub fn write(&mut self, name: &str, text: &str) -> Result<(), AttributeError> {
        let file = self.file(name)?;
        let mut words = text.split_ascii_whitespace();
        match (file, words.next(), words.next(), words.next()) {
            (File::Default(which), Some(weight), None, None) => {
                self.weight_mut(which).default = self.in_range(weight)?;
            }
            (File::Both, Some(weight), None, None) | (File::Both, Some("default"), Some(weight), None) => {
                self.own.default = self.in_range(weight)?;
            }
            (File::Devices(_) | File::Both, Some(device), Some(weight), None) => {
                let which = if let File::Devices(which) = file { which } else { Which::Own };
                let device = device.parse()?;
                let weight = if self.removes(weight) { None } else { Some(self.in_range(weight)?) };
                self.weight_mut(which).set_on(device, weight);
            }
            _ => return Err(AttributeError::Invalid),
        }
        Ok(())
    }

    /// Whether a device loses its own weight by this text.
    fn removes(&self, weight: &str) -> bool {
        weight == "default" || (self.interface == WeightInterface::CfqV1 && weight == "0")
    }

    fn in_range(&self, text: &str) -> Result<u16, AttributeError> {
        let (min, max) = match self.interface {
            WeightInterface::CfqV1 => (10, 1000),
            WeightInterface::CfqV2 => (1, 10_000),
            WeightInterface::BfqV1 | WeightInterface::BfqV2 => (1, 1000),
        };
        let weight = number(text)?;
        u16::try_from(weight).ok().filter(|weight| (min..=max).contains(weight)).ok_or(AttributeError::Range)
    }

    /// The weight against its siblings on a device.
    #[must_use]
    pub fn on(&self, device: DeviceNumber) -> u16 {
        self.own.on(device)
    }

    /// The weight of its own tasks against its child groups on a device: cfq's alone.
    #[must_use]
    pub fn leaf_on(&self, device: DeviceNumber) -> u16 {
        self.leaf.on(device)
    }

    /// Tells the scheduler of a device, which applies it as it applies any change: at the next activation.
    pub fn tell(&self, policy: &mut dyn Scheduler, cx: &mut PolicyCx<'_>, device: DeviceNumber) {
        if self.cgroup != CgroupId::ROOT {
            policy.weight_changed(cx, self.cgroup, self.on(device));
        }
        if self.interface == WeightInterface::CfqV1 {
            policy.leaf_weight_changed(cx, self.cgroup, self.leaf_on(device));
        }
    }
}

/// Decimal digits and nothing else.
fn number(text: &str) -> Result<u32, AttributeError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AttributeError::Invalid);
    }
    text.parse().map_err(|_| AttributeError::Range)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 16 };
    const OTHER: DeviceNumber = DeviceNumber { major: 8, minor: 0 };

    fn files(interface: WeightInterface) -> CgroupWeight {
        CgroupWeight::new(interface, CgroupId(1))
    }

    #[test]
    fn each_interface_has_its_own_range_and_default() {
        for (interface, file, default, range) in [
            (WeightInterface::CfqV1, "blkio.weight", "500\n", (10, 1000)),
            (WeightInterface::CfqV1, "blkio.leaf_weight", "500\n", (10, 1000)),
            (WeightInterface::CfqV2, "io.weight", "default 100\n", (1, 10_000)),
            (WeightInterface::BfqV1, "blkio.bfq.weight", "100\n", (1, 1000)),
            (WeightInterface::BfqV2, "io.bfq.weight", "default 100\n", (1, 1000)),
        ] {
            let mut files = files(interface);
            assert_eq!(files.read(file).as_deref(), Ok(default), "{file}");
            let (least, most) = range;
            assert_eq!([least, most].map(|weight| files.write(file, &weight.to_string())), [Ok(()), Ok(())], "{file}");
            for weight in [least - 1, most + 1, 65_536, 4_294_967_295_u32] {
                assert_eq!(files.write(file, &weight.to_string()), Err(AttributeError::Range), "{file}: {weight}");
            }
            assert_eq!(files.write(file, "4294967296"), Err(AttributeError::Range), "{file}");
            for text in ["", "-1", "+5", "0x64", "1.5", "many", "100 200 300", "8:16"] {
                assert_eq!(files.write(file, text), Err(AttributeError::Invalid), "{file}: {text:?}");
            }
            assert!(files.read(file).is_ok_and(|shown| shown.trim_start_matches("default ") == format!("{most}\n")));
        }
    }

    #[test]
    fn a_device_may_have_a_weight_of_its_own_and_lose_it_again() {
        for (interface, file) in [(WeightInterface::CfqV2, "io.weight"), (WeightInterface::BfqV2, "io.bfq.weight")] {
            let mut files = files(interface);
            for text in ["8:16 700\n", "8:0 30", "default 200"] {
                files.write(file, text).unwrap();
            }
            assert_eq!(files.read(file).as_deref(), Ok("default 200\n8:0 30\n8:16 700\n"));
            assert_eq!(
                (files.on(DISK), files.on(OTHER), files.on(DeviceNumber { major: 9, minor: 0 })),
                (700, 30, 200)
            );
            files.write(file, "8:16 default").unwrap();
            assert_eq!(files.on(DISK), 200);
            assert_eq!(files.write(file, "8:0 0"), Err(AttributeError::Range));
            for text in ["8 700", "8:x 700", ":16 700", "8:16 fast", "8:16 700 9"] {
                assert_eq!(files.write(file, text), Err(AttributeError::Invalid), "{text:?}");
            }
        }
    }

    #[test]
    fn in_the_first_version_devices_have_files_of_their_own_which_list_only_those_with_a_weight() {
        let mut files = files(WeightInterface::CfqV1);
        files.write("blkio.weight_device", "8:16 700").unwrap();
        files.write("blkio.leaf_weight_device", "8:0 20").unwrap();
        assert_eq!(files.read("blkio.weight_device").as_deref(), Ok("8:16 700\n"));
        assert_eq!(files.read("blkio.leaf_weight_device").as_deref(), Ok("8:0 20\n"));
        assert_eq!((files.on(DISK), files.leaf_on(DISK), files.leaf_on(OTHER)), (700, 500, 20));
        assert_eq!(files.write("blkio.weight_device", "700"), Err(AttributeError::Invalid));
        files.write("blkio.weight_device", "8:16 0").unwrap();
        files.write("blkio.leaf_weight_device", "8:0 default").unwrap();
        assert_eq!((files.on(DISK), files.leaf_on(OTHER)), (500, 500));
        let mut files = CgroupWeight::new(WeightInterface::BfqV1, CgroupId(1));
        files.write("blkio.bfq.weight_device", "8:16 7").unwrap();
        assert_eq!(files.write("blkio.bfq.weight_device", "8:16 0"), Err(AttributeError::Range));
        assert_eq!(files.read("blkio.bfq.weight_device").as_deref(), Ok("8:16 7\n"));
    }

    #[test]
    fn the_root_has_no_siblings() {
        let root = |interface| CgroupWeight::new(interface, CgroupId::ROOT);
        let mut cfq = root(WeightInterface::CfqV1);
        assert_eq!(cfq.read("blkio.weight").as_deref(), Ok("1000\n"));
        cfq.write("blkio.weight", "400").unwrap();
        assert_eq!((cfq.read("blkio.leaf_weight").as_deref(), cfq.leaf_on(DISK)), (Ok("400\n"), 400));
        for (interface, file) in [
            (WeightInterface::CfqV2, "io.weight"),
            (WeightInterface::BfqV1, "blkio.bfq.weight"),
            (WeightInterface::BfqV2, "io.bfq.weight"),
        ] {
            assert_eq!(root(interface).read(file), Err(AttributeError::Unknown));
            assert_eq!(root(interface).write(file, "100"), Err(AttributeError::Unknown));
        }
        assert_eq!(files(WeightInterface::BfqV2).write("io.weight", "100"), Err(AttributeError::Unknown), "io.cost's");
    }
}
