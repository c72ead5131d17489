//! Costs of the running kernel's schedulers, measured with a null device.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hoistway_blk::schedulers::NONE;
use hoistway_engine::{FileSpec, Files};

use super::engine_load::cpu_ns_per_io;

/// A null device of the kernel.
pub(super) struct NullDevice {
    /// Its name, such as `nullb0`.
    pub(super) name: String,
    /// The file that shows and sets its scheduler.
    scheduler: PathBuf,
    device: PathBuf,
    /// The original scheduler, which is restored on drop.
    before: String,
    /// The schedulers that the kernel offers for it.
    pub(super) schedulers: Vec<String>,
}

/// The folders in which the kernel shows its devices.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Devices by name, each a folder with `queue/scheduler`: `/sys/block`.
    pub sys_block: PathBuf,
    /// Their files: `/dev`.
    pub dev: PathBuf,
    /// The CPUs, each a folder such as `cpu0` with `cache/index*`: `/sys/devices/system/cpu`.
    pub sys_cpu: PathBuf,
}

impl Default for Paths {
    fn default() -> Self {
        Paths { sys_block: "/sys/block".into(), dev: "/dev".into(), sys_cpu: "/sys/devices/system/cpu".into() }
    }
}

/// Finds a null device whose scheduler can be set.
///
/// # Errors
/// Why none can be used, and what to do.
pub(super) fn find(paths: &Paths) -> Result<NullDevice, String> {
    let entries = fs::read_dir(&paths.sys_block).map_err(|error| format!("{}: {error}", paths.sys_block.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("nullb"))
        .collect();
    names.sort_unstable();
    let Some(name) = names.first() else {
        return Err("no null device (expected one: as root, modprobe null_blk nr_devices=1 queue_mode=2)".to_owned());
    };
    let scheduler = paths.sys_block.join(name).join("queue/scheduler");
    let shown = fs::read_to_string(&scheduler).map_err(|error| format!("{}: {error}", scheduler.display()))?;
    let (before, schedulers) = parse_schedulers(&shown);
    let before = before.ok_or_else(|| {
        format!("{}: shows no scheduler (expected a null device with queue_mode=2)", scheduler.display())
    })?;
    // Setting the scheduler requires write permission for the file.
    fs::write(&scheduler, &before).map_err(|error| format!("{}: cannot be written: {error}", scheduler.display()))?;
    Ok(NullDevice { device: paths.dev.join(name), name: name.clone(), scheduler, before, schedulers })
}

/// The active scheduler and all available ones, from text such as `none [mq-deadline] kyber`.
fn parse_schedulers(shown: &str) -> (Option<String>, Vec<String>) {
    let without_brackets = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let active = shown.split_whitespace().find(|word| word.starts_with('[')).map(without_brackets);
    // Some kernels show a single scheduler without brackets.
    let active = active.or_else(|| shown.split_whitespace().next().map(without_brackets));
    (active, shown.split_whitespace().map(without_brackets).collect())
}

impl NullDevice {
    /// CPU time of a read under one of its schedulers in ns, for the kernel and the engine together.
    pub(super) fn cpu_ns_per_io(&self, scheduler: &str, length: Duration) -> Result<f64, String> {
        let error_text = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        fs::write(&self.scheduler, scheduler).map_err(|error| error_text(&self.scheduler, &error))?;
        let spec = FileSpec { read_only: true, ..FileSpec::new(&self.device) };
        let files = Files::open(std::slice::from_ref(&spec)).map_err(|error| error.to_string())?;
        cpu_ns_per_io(files, length).map_err(|error| error_text(&self.device, &error))
    }

    /// Whether it offers `none`, the baseline for the other schedulers.
    pub(super) fn has_none(&self) -> bool {
        self.schedulers.iter().any(|name| name == NONE.name)
    }
}

impl Drop for NullDevice {
    fn drop(&mut self) {
        // Cannot fail: the kernel accepted this value before.
        let _ = fs::write(&self.scheduler, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(scheduler: &str) -> (tempfile::TempDir, Paths) {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths { sys_block: folder.path().join("sys"), dev: folder.path().join("dev"), ..Paths::default() };
        fs::create_dir_all(paths.sys_block.join("nullb0/queue")).unwrap();
        fs::create_dir_all(paths.sys_block.join("sda")).unwrap();
        fs::create_dir_all(&paths.dev).unwrap();
        fs::write(paths.sys_block.join("nullb0/queue/scheduler"), scheduler).unwrap();
        fs::write(paths.dev.join("nullb0"), vec![0; 1 << 20]).unwrap();
        (folder, paths)
    }

    #[test]
    fn a_null_device_is_measured_under_its_schedulers_and_left_as_it_was() {
        let (_folder, paths) = kernel("none [mq-deadline] kyber\n");
        let shown = || fs::read_to_string(paths.sys_block.join("nullb0/queue/scheduler")).unwrap();
        let device = find(&paths).unwrap();
        assert_eq!(device.schedulers, ["none", "mq-deadline", "kyber"]);
        assert!(device.has_none());
        assert!(device.cpu_ns_per_io("kyber", Duration::from_millis(2)).unwrap() > 0.0);
        assert_eq!(shown(), "kyber");
        drop(device);
        assert_eq!(shown(), "mq-deadline");
    }

    #[test]
    fn without_a_null_device_the_error_says_how_to_get_one() {
        let (_folder, paths) = kernel("[none]");
        fs::rename(paths.sys_block.join("nullb0"), paths.sys_block.join("vda")).unwrap();
        assert!(find(&paths).err().unwrap().contains("modprobe null_blk"));
        let nowhere = Paths { sys_block: paths.dev.join("nowhere"), ..paths };
        assert!(find(&nowhere).err().unwrap().contains("nowhere: "));
    }
}
