//! The target of `calibrate device` and `verify`: a device or file of this machine, and the disks below it.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use hoistway_experiment::KernelOption;
use hoistway_experiment::real::made;
use hoistway_linux::Root;
use hoistway_linux::apply::{Applier, Restored, TemporaryQueues, Udevadm, is_setuid};
use hoistway_linux::below::{self, Below};
use hoistway_linux::dump::System;
use hoistway_linux::host::{Device, Host};

/// Whether the target may be written, and where the journal is.
#[derive(Args, Debug)]
pub(crate) struct TargetOptions {
    /// Also write: name the target again. A file must not exist yet, or an earlier run must have created it; the data of a device
    /// is lost.
    #[arg(long, value_name = "TARGET")]
    pub(crate) writes: Option<PathBuf>,
    /// The folder of the journal that restores the scheduler after a killed run.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/hoistway")]
    pub(crate) journal: PathBuf,
}

/// The measured target.
pub(crate) struct Target {
    root: Root,
    /// The path after resolving links.
    pub(crate) path: PathBuf,
    pub(crate) below: Below,
    pub(crate) host: Host,
}

impl Target {
    /// Opens a target; creates a file of this many bytes if it may be written and does not exist. `None` if that was interrupted.
    pub(crate) fn open(
        path: &Path,
        options: &TargetOptions,
        bytes: u64,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Target>> {
        ensure!(!is_setuid(), "hoistway: runs setuid (expected to be run by root itself)");
        let name = path.display();
        let is_new = !path.exists();
        let is_name = path.components().count() == 1 && Path::new("/dev").join(path).exists();
        ensure!(!is_new || !is_name, "{name}: is the name of a device (expected /dev/{name}, or ./{name} for a file)");
        if let Some(named_again) = &options.writes {
            let is_same =
                if is_new { named_again == path } else { named_again.canonicalize().ok() == path.canonicalize().ok() };
            ensure!(is_same, "--writes {}: is not the target (expected {name})", named_again.display());
            if is_new && !made::make(path, bytes, is_interrupted).map_err(|why| anyhow!("{name}: {why}"))? {
                return Ok(None);
            }
        }
        let path = path
            .canonicalize()
            .with_context(|| format!("{name}: cannot be found (expected a block device or a file)"))?;
        let root = Root::open(Path::new("/")).context("/")?;
        let below = Below::of(&root, &path)
            .with_context(|| format!("{name}: cannot be measured (expected a block device or a file)"))?;
        if options.writes.is_some() {
            if below.is_device {
                // The kernel does not open a device exclusively if it is mounted or has devices on top of it.
                let exclusive = OpenOptions::new().write(true).custom_flags(O_EXCL).open(&path);
                exclusive.with_context(|| {
                    format!("--writes {name}: cannot be written (expected a device that is not in use)")
                })?;
            } else {
                let expected = "expected a file that does not exist, or one that a run created";
                ensure!(made::is_made(&path), "--writes {name}: no run created this file ({expected})");
            }
        }
        let host = System::open(None, false)?.host()?;
        Ok(Some(Target { root, path, below, host }))
    }

    /// The disk below, if there is exactly one.
    pub(crate) fn disk(&self) -> Option<&Device> {
        match self.below.disks.as_slice() {
            [name] => self.host.device(name),
            _ => None,
        }
    }

    /// The running kernel, and the release that stands for it in simulations.
    pub(crate) fn kernel(&self) -> Result<KernelOption> {
        let release = &self.host.kernel.release;
        release.parse().map_err(|why: String| anyhow!("the running kernel {release}: {why}"))
    }

    /// The schedulers that are available on all disks below.
    pub(crate) fn schedulers(&self) -> Vec<String> {
        let mut disks = self.below.disks.iter().map(|name| self.available(name));
        let mut common = disks.next().unwrap_or_default();
        disks.for_each(|available| common.retain(|name| available.contains(name)));
        common
    }

    fn available(&self, disk: &str) -> Vec<String> {
        let scheduler = self.host.device(disk).and_then(|device| device.scheduler.as_ref());
        scheduler.map(|scheduler| scheduler.available.clone()).unwrap_or_default()
    }

    /// Sectors transferred by the disks below.
    pub(crate) fn sectors(&self) -> Option<u64> {
        let sectors: Option<Vec<u64>> = self.below.disks.iter().map(|disk| below::sectors(&self.root, disk)).collect();
        sectors.filter(|sectors| !sectors.is_empty()).map(|sectors| sectors.iter().sum())
    }

    /// Opens the journal, and rolls back the changes of a killed run. Fails if this user may not write a journal.
    pub(crate) fn applier(&self, journal: &Path) -> Result<(Applier<'_>, Vec<Restored>)> {
        let applier = Applier::open(&self.root, &self.root, journal, Udevadm::find("udevadm"))?;
        let restored = applier.recover()?;
        Ok((applier, restored))
    }

    /// Begins to set the queues of the disks below, until they are restored.
    pub(crate) fn queues<'a>(&'a self, applier: &'a Applier<'_>) -> Result<TemporaryQueues<'a>> {
        Ok(applier.begin_queues(&self.host, &self.below.disks)?)
    }

    /// The active scheduler of a disk.
    fn active(&self, disk: &str) -> String {
        let content = self.root.read(&format!("sys/block/{disk}/queue/scheduler")).unwrap_or_default();
        let active = content.split_whitespace().find_map(|name| name.strip_prefix('[')?.strip_suffix(']'));
        active.unwrap_or_default().to_owned()
    }

    /// Whether all disks below have this scheduler.
    pub(crate) fn has_scheduler(&self, scheduler: &str) -> bool {
        self.below.disks.iter().all(|disk| self.active(disk) == scheduler)
    }
}

/// open(2) flag: fails for a device that is mounted or that another program has opened exclusively.
const O_EXCL: i32 = 0o200;
