//! tracefs: checks, and a tracing instance that is removed when dropped.

use std::fs::File;
use std::io::{self, ErrorKind, Write};

use rustix::fs::OFlags;

use super::error::RecordError;
use super::events::{Decoder, KINDS, Kind};
use super::format::{Format, PageLayout};
use crate::root::Root;

/// Possible mount points of tracefs.
const MOUNT_POINTS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
/// Prefix of the instances of recordings; the process ID follows.
const PREFIX: &str = "hoistway-";
/// Fill level of a buffer that wakes its reader, percent.
const WAKE_PERCENT: &str = "25";

const LOCKDOWN: &str = "sys/kernel/security/lockdown";

/// The mount point of tracefs.
///
/// # Errors
/// If it is not mounted, access is denied, or the kernel has no block events.
pub(crate) fn find(root: &Root) -> Result<&'static str, RecordError> {
    let lockdown = root.read(LOCKDOWN).unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        let expected = "lockdown mode integrity or none: see lockdown= on the kernel's command line, and Secure Boot in the firmware";
        return Err(RecordError::new(
            format!("/{LOCKDOWN}"),
            "the kernel is locked down for confidentiality",
            expected,
        ));
    }
    for mount_point in MOUNT_POINTS {
        match root.names(&format!("{mount_point}/events")) {
            Ok(_) => return check_events(root, mount_point),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(permission_error(mount_point)),
            Err(_) => {}
        }
    }
    let [mount_point, _] = MOUNT_POINTS;
    match root.names(mount_point) {
        Ok(_) => {
            let expected = format!("a mounted tracefs: mount -t tracefs tracefs /{mount_point}");
            Err(RecordError::new(format!("/{mount_point}"), "tracefs is not mounted", expected))
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(permission_error(mount_point)),
        Err(_) => {
            let expected = "a kernel with CONFIG_EVENT_TRACING, or a container that sees /sys of its host";
            Err(RecordError::new(format!("/{mount_point}"), "the kernel has no tracefs", expected))
        }
    }
}

fn check_events(root: &Root, mount_point: &'static str) -> Result<&'static str, RecordError> {
    let has_event = |kind: &Kind| root.has_folder(&format!("{mount_point}/events/block/{}", kind.name));
    let missing: Vec<_> =
        KINDS.iter().filter(|kind| kind.is_required && !has_event(kind)).map(|kind| kind.name).collect();
    if missing.is_empty() {
        return Ok(mount_point);
    }
    let problem = format!("the kernel has no events {}", missing.join(", "));
    Err(RecordError::new(format!("/{mount_point}/events/block"), problem, "a kernel with CONFIG_BLK_DEV_IO_TRACE"))
}

fn permission_error(mount_point: &str) -> RecordError {
    let expected = "root (sudo hoistway record ...), or a user with access to tracefs: \
                    mount -o remount,mode=770,gid=GROUP on it, and CAP_PERFMON";
    RecordError::new(format!("/{mount_point}"), "permission denied", expected)
}

/// The process ID in the name of an instance.
fn owner_pid(instance: &str) -> Option<u32> {
    instance.strip_prefix(PREFIX)?.parse().ok()
}

/// Removes instances whose processes have ended. Returns their names.
pub(crate) fn remove_stale_instances(root: &Root, mount_point: &str) -> Vec<String> {
    let instances = root.names(&format!("{mount_point}/instances")).unwrap_or_default();
    let is_stale = |instance: &String| {
        owner_pid(instance).is_some_and(|pid| {
            // Process IDs are reused, so check the name. The kernel refuses to remove an instance in use.
            pid == std::process::id()
                || root.read(&format!("proc/{pid}/comm")).map_or(true, |name| name.trim() != "hoistway")
        })
    };
    let stale = instances.into_iter().filter(is_stale);
    stale.filter(|instance| root.remove_folder(&format!("{mount_point}/instances/{instance}")).is_ok()).collect()
}

/// A tracefs instance with its own buffers, removed when dropped.
#[derive(Debug)]
pub(crate) struct Instance<'a> {
    root: &'a Root,
    folder: String,
}

impl<'a> Instance<'a> {
    /// Creates an instance that is not recording yet.
    ///
    /// # Errors
    /// If access is denied, or there is not enough memory.
    pub(crate) fn create(root: &'a Root, mount_point: &str, buffer_kib: u64) -> Result<Instance<'a>, RecordError> {
        let folder = format!("{mount_point}/instances/{PREFIX}{}", std::process::id());
        root.make_folder(&folder).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => permission_error(mount_point),
            ErrorKind::AlreadyExists => {
                RecordError::new(format!("/{folder}"), "this process is already recording", "one recording at a time")
            }
            _ => RecordError::io(format!("/{folder}"), &error, "a kernel with tracefs instances, and free memory"),
        })?;
        let instance = Instance { root, folder };
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &buffer_kib.to_string()).map_err(|error| RecordError {
            expected: "enough free memory for the buffer of each CPU: try a smaller --buffer".to_owned(),
            ..error
        })?;
        // Older kernels lack this file; then reading only costs more CPU time.
        let _ = instance.write("buffer_percent", WAKE_PERCENT);
        let _ = instance.write("options/record-cmd", "0");
        Ok(instance)
    }

    /// Enables the events of a device. Returns the decoder for their records.
    ///
    /// # Errors
    /// If the kernel rejects an event, or its description is not supported.
    pub(crate) fn enable_events(&self, mut decoder: Decoder, device: u32) -> Result<Decoder, RecordError> {
        for kind in KINDS {
            let event = format!("events/block/{}", kind.name);
            if !self.root.has_folder(&format!("{}/{event}", self.folder)) {
                continue;
            }
            let location = format!("/{}/{event}/format", self.folder);
            let text = self.read(&format!("{event}/format"))?;
            let expected = "the event description of a kernel from Linux 4.19 to 7.3";
            let Some(format) = Format::parse(&text) else {
                return Err(RecordError::new(location, "does not describe an event", expected));
            };
            let missing_field = |field| {
                RecordError::new(location, format!("the field {field} is missing or has an unknown size"), expected)
            };
            decoder.add(kind, &format).map_err(missing_field)?;
            if kind.has_device() {
                self.write(&format!("{event}/filter"), &format!("dev == {device}"))?;
            }
            self.write(&format!("{event}/enable"), "1")?;
        }
        Ok(decoder)
    }

    /// The layout of ring-buffer pages.
    ///
    /// # Errors
    /// If the kernel's description is not supported.
    pub(crate) fn page_layout(&self, mount_point: &str) -> Result<PageLayout, RecordError> {
        let file = format!("{mount_point}/events/header_page");
        let expected = "the page format of a kernel from Linux 4.19 to 7.3";
        let text = self.root.read(&file).map_err(|error| RecordError::io(format!("/{file}"), &error, expected))?;
        PageLayout::parse(&text)
            .ok_or_else(|| RecordError::new(format!("/{file}"), "unrecognised ring-buffer page format", expected))
    }

    /// The pages of a CPU's buffer: reading is non-blocking and removes them.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub(crate) fn pages(&self, cpu: u32) -> Result<File, RecordError> {
        let file = format!("{}/per_cpu/cpu{cpu}/trace_pipe_raw", self.folder);
        self.root
            .open_file(&file, OFlags::RDONLY | OFlags::NONBLOCK)
            .map_err(|error| RecordError::io(format!("/{file}"), &error, "a readable per-CPU buffer"))
    }

    /// Starts or stops recording.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn record(&self, is_on: bool) -> Result<(), RecordError> {
        self.write("tracing_on", if is_on { "1" } else { "0" })
    }

    /// Events lost in its buffers, according to the kernel.
    pub(crate) fn lost(&self) -> u64 {
        let cpus = self.root.names(&format!("{}/per_cpu", self.folder)).unwrap_or_default();
        cpus.iter().map(|cpu| lost(&self.read(&format!("per_cpu/{cpu}/stats")).unwrap_or_default())).sum()
    }

    fn read(&self, file: &str) -> Result<String, RecordError> {
        let path = format!("{}/{file}", self.folder);
        self.root.read(&path).map_err(|error| RecordError::io(format!("/{path}"), &error, "a readable file"))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), RecordError> {
        let path = format!("{}/{file}", self.folder);
        let write = || -> io::Result<()> { self.root.open_file(&path, OFlags::WRONLY)?.write_all(text.as_bytes()) };
        write().map_err(|error| {
            RecordError::io(format!("/{path}"), &error, format!("a kernel that accepts \"{text}\" there"))
        })
    }
}

impl Drop for Instance<'_> {
    fn drop(&mut self) {
        // If this fails, the next recording removes the instance.
        let _ = self.root.remove_folder(&self.folder);
    }
}

/// Events that were overwritten or dropped, from the file `stats` of a CPU.
fn lost(stats: &str) -> u64 {
    let counts = stats.lines().filter_map(|line| line.split_once(": "));
    let lost = counts.filter(|(name, _)| matches!(*name, "overrun" | "commit overrun" | "dropped events"));
    lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A root with these folders and files.
    fn root(entries: &[(&str, Option<&str>)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in entries {
            let path = folder.path().join(path);
            match text {
                Some(text) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, text).unwrap();
                }
                None => fs::create_dir_all(path).unwrap(),
            }
        }
        let root = Root::open(folder.path()).unwrap();
        (folder, root)
    }

    fn refusal(entries: &[(&str, Option<&str>)]) -> String {
        let (_folder, root) = root(entries);
        find(&root).unwrap_err().to_string()
    }

    #[test]
    fn a_missing_prerequisite_is_named_with_its_remedy() {
        for (entries, words) in [
            (&[("proc", None)][..], ["no tracefs", "CONFIG_EVENT_TRACING"]),
            (&[("sys/kernel/tracing", None)], ["not mounted", "mount -t tracefs tracefs /sys/kernel/tracing"]),
            (
                &[("sys/kernel/tracing/events", None), (LOCKDOWN, Some("none integrity [confidentiality]\n"))],
                ["locked down for confidentiality", "integrity"],
            ),
            (
                &[
                    ("sys/kernel/tracing/events/block/block_bio_queue", None),
                    ("sys/kernel/tracing/events/block/block_rq_issue", None),
                ],
                ["no events block_getrq, block_rq_complete", "CONFIG_BLK_DEV_IO_TRACE"],
            ),
        ] {
            let refused = refusal(entries);
            assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
        }
    }

    #[test]
    fn tracefs_may_be_in_debugfs() {
        let needed = KINDS.iter().filter(|kind| kind.is_required);
        let paths: Vec<_> = needed.map(|kind| format!("sys/kernel/debug/tracing/events/block/{}", kind.name)).collect();
        let mut entries: Vec<_> = paths.iter().map(|path| (path.as_str(), None)).collect();
        entries.push((LOCKDOWN, Some("none [integrity] confidentiality\n")));
        let (_folder, root) = root(&entries);
        assert_eq!(find(&root), Ok(MOUNT_POINTS[1]));
    }

    #[test]
    fn instances_of_processes_that_are_gone_are_removed() {
        let (_folder, root) = root(&[
            ("t/instances/hoistway-1", None),
            ("t/instances/hoistway-2", None),
            ("t/instances/hoistway-3", None),
            ("t/instances/hoistway-x", None),
            ("t/instances/other-1", None),
            ("proc/2/comm", Some("hoistway\n")),
            ("proc/3/comm", Some("bash\n")),
        ]);
        assert_eq!(remove_stale_instances(&root, "t"), ["hoistway-1", "hoistway-3"]);
        assert_eq!(root.names("t/instances").unwrap(), ["hoistway-2", "hoistway-x", "other-1"]);
    }

    #[test]
    fn every_way_to_lose_an_event_counts() {
        let stats =
            "entries: 531\noverrun: 6209\ncommit overrun: 3\nbytes: 34368\nnow ts: 24708.332332\ndropped events: 20\n";
        assert_eq!((lost(stats), lost("")), (6232, 0));
    }
}
