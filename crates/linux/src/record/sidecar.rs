//! The sidecar `NAME.host.json`: facts about the host that blktrace files do not contain (RP26 in docs/recordings.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::target::Target;
use crate::root::Root;

/// The name and version of the file's format.
const FORMAT: &str = "hoistway-recording-host/1";
/// The suffix of the file, after the name of the recording.
pub const ENDING: &str = ".host.json";

/// The host of a recording.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedHost {
    /// `hoistway-recording-host/1`.
    pub format: String,
    /// Release of the kernel.
    pub kernel: String,
    /// CPUs that were online.
    pub cpus: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// The device.
    pub device: RecordedDevice,
    /// The scheduler at the start of the recording; `None` if the device has no request queue.
    pub scheduler: Option<String>,
    /// Its tunables, from `queue/iosched`.
    pub tunables: BTreeMap<String, String>,
    /// The other files of `queue/`.
    pub queue: BTreeMap<String, String>,
    /// Start of the recording, seconds since 1970.
    pub begun_s: u64,
    /// Duration, seconds; 0 while the recording is running, or if it was killed.
    pub seconds: f64,
    /// I/Os.
    pub ios: u64,
    /// Events that were lost.
    pub lost: u64,
    /// CPU time of the recorder per I/O, us.
    pub cpu_us_per_io: f64,
    /// The tasks in the recording, by pid.
    pub tasks: Vec<RecordedTask>,
    /// Files of the cgroups of these tasks, by the path of the cgroup: weights and limits.
    pub cgroups: BTreeMap<String, BTreeMap<String, String>>,
    /// File systems on block devices.
    pub mounts: Vec<Mount>,
}

/// The device of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedDevice {
    /// Its name in `/sys/block`.
    pub name: String,
    /// Its device number, such as `8,0`.
    pub number: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its model, if it reports one.
    pub model: Option<String>,
    /// Tags of each hardware queue.
    pub hw_queue_tags: Vec<u32>,
}

/// A task.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedTask {
    /// Its pid.
    pub pid: u32,
    /// The kernel's name of the task.
    pub name: String,
    /// I/Os that it queued.
    pub ios: u64,
    /// Class and level of the I/O priority of its requests, such as `rt:4`; `None` if it set none, or if the kernel (before
    /// 6.11) does not report it.
    pub io_priority: Option<String>,
    /// Its nice value; `None` if the task exited before it could be read.
    pub nice: Option<i32>,
    /// Its scheduling policy, as the kernel's number.
    pub policy: Option<u32>,
    /// Its cgroup for I/O.
    pub cgroup: Option<String>,
}

/// A mounted file system.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Mount {
    /// The mounted device.
    pub source: String,
    /// The mount point.
    pub target: String,
    /// Its type.
    pub file_system: String,
    /// Options of the mount and of the file system.
    pub options: String,
}

impl RecordedHost {
    /// Reads the facts about the host before the recording starts.
    pub(crate) fn read(root: &Root, target: &Target, cpus: u32) -> RecordedHost {
        let disk = format!("sys/block/{}", target.name);
        let text = |path: &str| root.read(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let scheduler =
            text(&format!("{disk}/queue/scheduler")).and_then(|text| active_scheduler(&text).map(str::to_owned));
        let queue = files(root, &format!("{disk}/queue"), |name| name != "scheduler");
        RecordedHost {
            format: FORMAT.to_owned(),
            kernel: text("proc/sys/kernel/osrelease").unwrap_or_default(),
            cpus,
            memory_bytes: memory_bytes(root),
            device: RecordedDevice {
                name: target.name.clone(),
                number: target.number.to_string(),
                bytes: text(&format!("{disk}/size")).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) * 512,
                model: text(&format!("{disk}/device/model")),
                hw_queue_tags: hw_queue_tags(root, &disk),
            },
            scheduler: scheduler.filter(|_| !target.has_no_requests),
            tunables: files(root, &format!("{disk}/queue/iosched"), |_| true),
            queue,
            mounts: mounts(&root.read("proc/self/mountinfo").unwrap_or_default()),
            ..RecordedHost::default()
        }
    }

    /// `nr_requests` of the queue.
    #[must_use]
    pub fn nr_requests(&self) -> Option<u32> {
        self.queue.get("nr_requests")?.parse().ok()
    }

    /// Reads the text of the file.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<RecordedHost, String> {
        let host: RecordedHost = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if host.format == FORMAT {
            Ok(host)
        } else {
            Err(format!("its format is \"{}\" (expected \"{FORMAT}\")", host.format))
        }
    }
}

/// The name in brackets in a file `scheduler`.
fn active_scheduler(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(name, _)| name)
}

/// Size of the memory, bytes.
pub(crate) fn memory_bytes(root: &Root) -> u64 {
    let info = root.read("proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> = total.and_then(|text| text.trim().trim_end_matches(" kB").trim().parse().ok());
    kib.unwrap_or(0) << 10
}

fn hw_queue_tags(root: &Root, disk: &str) -> Vec<u32> {
    let mut queues: Vec<u32> =
        root.names(&format!("{disk}/mq")).unwrap_or_default().iter().filter_map(|name| name.parse().ok()).collect();
    queues.sort_unstable();
    let tags = |queue: &u32| root.read(&format!("{disk}/mq/{queue}/nr_tags")).ok()?.trim().parse().ok();
    queues.iter().filter_map(tags).collect()
}

/// The selected files of a folder with their contents; unreadable ones are left out.
pub(crate) fn files(root: &Root, folder: &str, is_selected: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let names = root.names(folder).unwrap_or_default().into_iter().filter(|name| is_selected(name));
    let read = |name: String| Some((root.read(&format!("{folder}/{name}")).ok()?.trim().to_owned(), name));
    names.filter_map(read).map(|(text, name)| (name, text)).collect()
}

/// File systems on block devices, from the text of `mountinfo`.
fn mounts(text: &str) -> Vec<Mount> {
    text.lines()
        .filter_map(|line| {
            let (mount_fields, fs_fields) = line.split_once(" - ")?;
            let mount_fields: Vec<&str> = mount_fields.split(' ').collect();
            let mut fs_fields = fs_fields.split(' ');
            let (file_system, source, fs_options) = (fs_fields.next()?, fs_fields.next()?, fs_fields.next()?);
            // File systems without a device have major number 0; so has btrfs, whose source is its device.
            let is_on_device = !mount_fields.get(2)?.starts_with("0:") || source.starts_with("/dev/");
            let mut options: Vec<&str> = mount_fields.get(5)?.split(',').collect();
            options.extend(
                fs_options.split(',').filter(|option| !mount_fields[5].split(',').any(|other| other == *option)),
            );
            is_on_device.then(|| Mount {
                source: source.to_owned(),
                target: (*mount_fields.get(4).unwrap_or(&"")).to_owned(),
                file_system: file_system.to_owned(),
                options: options.join(","),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_charge_is_in_brackets() {
        for (text, name) in [
            ("none [mq-deadline] kyber bfq", Some("mq-deadline")),
            ("[none]", Some("none")),
            ("none", None),
            ("[", None),
        ] {
            assert_eq!(active_scheduler(text), name, "{text}");
        }
    }

    #[test]
    fn file_systems_without_a_device_are_left_out() {
        let text = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
            23 22 0:21 / /proc rw - proc proc rw\n\
            24 22 0:40 /sub /data rw,noatime - btrfs /dev/sdb1 rw,compress=zstd:1\n\
            broken line\n25 22 8:1 - \n";
        let found = mounts(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((&*found[0].target, &*found[0].options), ("/", "rw,relatime,discard"));
        assert_eq!((&*found[1].source, &*found[1].file_system), ("/dev/sdb1", "btrfs"));
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let tunables = [("read_expire".to_owned(), "500".to_owned())].into();
        let queue = [("nr_requests".to_owned(), "64".to_owned())].into();
        let tasks = vec![RecordedTask { pid: 7, nice: Some(-5), ..RecordedTask::default() }];
        let host =
            RecordedHost { format: FORMAT.to_owned(), tunables, queue, tasks, seconds: 1.5, ..RecordedHost::default() };
        let text = serde_json::to_string(&host).unwrap();
        assert_eq!(RecordedHost::parse(&text), Ok(host.clone()));
        assert_eq!(host.nr_requests(), Some(64));
        assert!(RecordedHost::parse("{}").unwrap_err().contains("format"));
        assert!(RecordedHost::parse("{\"format\": 7}").unwrap_err().contains("line 1"));
    }
}
