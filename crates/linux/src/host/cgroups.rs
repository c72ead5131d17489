//! How cgroups control block I/O: the hierarchies and their settings. Source of the rules: `docs/rules/cgroup.md`.

use serde::Serialize;

use super::Unreadable;
use super::mounts::Mounts;
use crate::root::Root;

/// The hierarchy of cgroups that controls block I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hierarchy {
    /// Version 2 with its controller `io`.
    V2,
    /// Version 1 with its controller `blkio`.
    V1,
    /// Version 1 with its controller `blkio`; version 2 is also mounted and controls other resources.
    Hybrid,
    /// Version 2 is mounted, but no hierarchy has a controller for block I/O.
    WithoutIo,
    /// No cgroups are mounted.
    None,
}

/// A setting of a cgroup that is not the default.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CgroupSetting {
    /// The cgroup; `/` is the root.
    pub cgroup: String,
    /// The file, such as `io.max`.
    pub file: String,
    /// The device that the setting applies to, such as `8:0`; `None` for all devices.
    pub device: Option<String>,
    /// The value.
    pub value: String,
}

/// Cgroups of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cgroups {
    /// Which hierarchy controls block I/O.
    pub hierarchy: Hierarchy,
    /// Its mount point.
    pub mounted_on: Option<String>,
    /// All settings that differ from the default, by cgroup.
    pub settings: Vec<CgroupSetting>,
}

/// A file of a cgroup, with its default contents.
struct File {
    name: &'static str,
    default: &'static [&'static str],
}

const fn file(name: &'static str, default: &'static [&'static str]) -> File {
    File { name, default }
}

const V2: [File; 7] = [
    file("io.max", &[]),
    file("io.latency", &[]),
    file("io.weight", &["default 100"]),
    file("io.bfq.weight", &["default 100", "100"]),
    file("io.prio.class", &["no-change"]),
    file("io.cost.qos", &[]),
    file("io.cost.model", &[]),
];

const V1: [File; 11] = [
    file("blkio.weight", &["500"]),
    file("blkio.weight_device", &[]),
    file("blkio.leaf_weight", &["500"]),
    file("blkio.leaf_weight_device", &[]),
    file("blkio.bfq.weight", &["100"]),
    file("blkio.bfq.weight_device", &["default 100"]),
    file("blkio.prio.class", &["no-change"]),
    file("blkio.throttle.read_bps_device", &[]),
    file("blkio.throttle.write_bps_device", &[]),
    file("blkio.throttle.read_iops_device", &[]),
    file("blkio.throttle.write_iops_device", &[]),
];

/// Maximum number of cgroups that are read.
const CGROUPS_MAX: usize = 20_000;
const DEPTH_MAX: usize = 32;

/// The hierarchy that controls block I/O.
pub(crate) struct IoHierarchy {
    kind: Hierarchy,
    /// Its mount point.
    pub(crate) mounted_on: Option<String>,
    files: &'static [File],
}

impl IoHierarchy {
    /// Finds the hierarchy below this root.
    pub(crate) fn find(root: &Root) -> Self {
        Self::read(root, &Mounts::read(root))
    }

    /// Whether a file of a cgroup contains settings for block I/O.
    pub(crate) fn is_setting(&self, file: &str) -> bool {
        self.files.iter().any(|known| known.name == file)
    }

    fn read(root: &Root, mounts: &Mounts) -> Self {
        let v1 = mounts.point_of("cgroup", Some("blkio")).map(str::to_owned);
        let v2 = mounts.point_of("cgroup2", None).map(str::to_owned);
        let has_io = |point: &String| {
            let controllers = root.read(&format!("{point}/cgroup.controllers"));
            controllers.is_ok_and(|text| text.split_whitespace().any(|controller| controller == "io"))
        };
        let (kind, mounted_on, files) = match (v1, v2) {
            (_, Some(point)) if has_io(&point) => (Hierarchy::V2, Some(point), &V2[..]),
            (Some(point), None) => (Hierarchy::V1, Some(point), &V1[..]),
            (Some(point), Some(_)) => (Hierarchy::Hybrid, Some(point), &V1[..]),
            (None, Some(point)) => (Hierarchy::WithoutIo, Some(point), &[][..]),
            (None, None) => (Hierarchy::None, None, &[][..]),
        };
        Self { kind, mounted_on, files }
    }
}

impl Cgroups {
    pub(super) fn read(root: &Root, mounts: &Mounts, unreadable: &mut Unreadable) -> Self {
        let IoHierarchy { kind: hierarchy, mounted_on, files } = IoHierarchy::read(root, mounts);
        let mut cgroups = Cgroups { hierarchy, mounted_on, settings: Vec::new() };
        if let Some(folder) = cgroups.mounted_on.as_ref().filter(|_| !files.is_empty())
            && let Ok(folder) = root.below(folder)
        {
            let mount_point = cgroups.mounted_on.clone().unwrap_or_default();
            let mount_point = mount_point.trim_start_matches('/');
            let mut reader = Reader { files, mount_point, settings: &mut cgroups.settings, cgroups_read: 0 };
            reader.read(&folder, "/", 0, unreadable);
        }
        cgroups
    }
}

struct Reader<'a> {
    files: &'a [File],
    /// The mount point of the hierarchy.
    mount_point: &'a str,
    settings: &'a mut Vec<CgroupSetting>,
    cgroups_read: usize,
}

impl Reader<'_> {
    fn read(&mut self, folder: &Root, cgroup: &str, depth: usize, unreadable: &mut Unreadable) {
        self.cgroups_read += 1;
        let Ok(names) = folder.names("") else { return };
        for file in self.files.iter().filter(|file| names.iter().any(|name| name == file.name)) {
            let cgroup_path = format!("{}{}", self.mount_point, cgroup.trim_end_matches('/'));
            let Some(text) = unreadable.read(folder, &cgroup_path, file.name) else { continue };
            self.settings.extend(settings(cgroup, file, &text));
        }
        // Both control files and cgroups may have a dot in their names, so control files are recognised by prefix.
        let may_be_cgroup = |name: &&String| {
            !["cgroup.", "io.", "blkio.", "cpu.", "memory.", "pids."].iter().any(|prefix| name.starts_with(prefix))
        };
        for name in names.iter().filter(may_be_cgroup) {
            if depth < DEPTH_MAX
                && self.cgroups_read < CGROUPS_MAX
                && let Ok(below) = folder.below(name)
            {
                self.read(&below, &format!("{}/{name}", cgroup.trim_end_matches('/')), depth + 1, unreadable);
            }
        }
    }
}

/// The settings in the text of a file: a line for all devices, or `MAJ:MIN VALUE`.
fn settings(cgroup: &str, file: &File, text: &str) -> Vec<CgroupSetting> {
    // cfq's default weight of the root cgroup is 1000 (CG-8).
    let is_default = |line: &&str| file.default.contains(line) || (cgroup == "/" && *line == "1000");
    let is_set = |line: &&str| !line.is_empty() && !is_default(line);
    let setting = |line: &str| {
        let (device, value) = match line.split_once(' ') {
            Some((number, value)) if is_number(number) => (Some(number.to_owned()), value),
            Some(("default", value)) => (None, value),
            _ => (None, line),
        };
        CgroupSetting { cgroup: cgroup.to_owned(), file: file.name.to_owned(), device, value: value.trim().to_owned() }
    };
    text.lines().map(str::trim).filter(is_set).map(setting).collect()
}

fn is_number(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    text.split_once(':').is_some_and(|(major, minor)| is_digits(major) && is_digits(minor))
}
