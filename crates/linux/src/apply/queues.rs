//! Schedulers and their settings on all disks below a target for a measurement, restored at its end.

use super::plan::Plan;
use super::restore::Restored;
use super::snapshot::shown;
use super::temporary::Temporary;
use super::write::PlanError;
use super::{Applier, ApplyError, Persist};
use crate::host::{Host, HostError};
use crate::root::Root;

/// Why the queues of a measurement cannot be set, or were not as they were set.
#[derive(Debug, thiserror::Error)]
pub enum QueuesError {
    /// A disk is not there.
    #[error(transparent)]
    Disk(#[from] HostError),
    /// A value cannot be written.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The journal cannot be used, or the kernel does not accept a value.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Another program has set the scheduler.
    #[error(
        "{disk}: another program set its scheduler to {found} while {scheduler} was measured (expected no other program to do so: `hoistway host {disk}` lists rules and profiles)"
    )]
    Disturbed {
        /// The disk.
        disk: String,
        /// The scheduler that it has.
        found: String,
        /// The scheduler that was measured.
        scheduler: String,
    },
    /// A value from before is not back.
    #[error("{file}: was not restored: {why} (check its value)")]
    NotRestored {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
}

/// The queues of disks, set until this value is dropped or [restored](Self::restore). Meanwhile, udevd applies no rules to these disks.
#[derive(Debug)]
pub struct TemporaryQueues<'a> {
    system: &'a Root,
    host: &'a Host,
    disks: Vec<MeasuredDisk<'a>>,
}

/// A disk whose queue is set.
#[derive(Debug)]
struct MeasuredDisk<'a> {
    name: String,
    changes: Temporary<'a>,
    /// Files outside of `iosched/` that the last setting wrote, with the values from before it.
    before: Vec<(String, String)>,
}

impl Applier<'_> {
    /// Begins to change the queues of these disks. Nothing is written to them yet.
    ///
    /// # Errors
    /// If a journal cannot be written.
    pub fn begin_queues<'a>(&'a self, host: &'a Host, disks: &[String]) -> Result<TemporaryQueues<'a>, ApplyError> {
        let begin = |name: &String| {
            let changes = self.begin_temporary(name)?;
            Ok(MeasuredDisk { name: name.clone(), changes, before: Vec::new() })
        };
        Ok(TemporaryQueues { system: self.system, host, disks: disks.iter().map(begin).collect::<Result<_, _>>()? })
    }
}

impl TemporaryQueues<'_> {
    /// Sets a scheduler, and then these files of `queue/`; all other files have their defaults, or the values from before the measurement.
    ///
    /// # Errors
    /// If a value is not accepted.
    pub fn set(&mut self, scheduler: &str, writes: &[(String, String)]) -> Result<(), QueuesError> {
        let (system, host) = (self.system, self.host);
        for disk in &mut self.disks {
            let device = host.device_called(&disk.name)?;
            let mut write = |files: &[(String, String)]| -> Result<(), QueuesError> {
                if files.is_empty() {
                    return Ok(());
                }
                let plan = Plan::make(system, host, device, files, Persist::No)?;
                disk.changes.set(&plan)?;
                Ok(())
            };
            let set_scheduler = |name: &str| [("scheduler".to_owned(), name.to_owned())];
            write(&disk.before)?;
            // Only a change of the scheduler resets its tunables and the number of requests.
            let available = device.scheduler.iter().flat_map(|scheduler| &scheduler.available);
            if shown(system, &disk.name, "scheduler").as_deref() == Some(scheduler)
                && let Some(other) = available.into_iter().find(|name| *name != scheduler)
            {
                write(&set_scheduler(other))?;
            }
            write(&set_scheduler(scheduler))?;
            let others = writes.iter().map(|(file, _)| file).filter(|file| !is_reset_by_scheduler(file));
            disk.before = others.filter_map(|file| Some((file.clone(), shown(system, &disk.name, file)?))).collect();
            write(writes)?;
        }
        Ok(())
    }

    /// Checks after a measurement that no other program has set another scheduler meanwhile.
    ///
    /// # Errors
    /// If one has.
    pub fn check(&self, scheduler: &str) -> Result<(), QueuesError> {
        for MeasuredDisk { name, .. } in &self.disks {
            let found = shown(self.system, name, "scheduler").unwrap_or_default();
            if found != scheduler {
                return Err(QueuesError::Disturbed { disk: name.clone(), found, scheduler: scheduler.to_owned() });
            }
        }
        Ok(())
    }

    /// A number in a file of `queue/` of the first disk; `None` if it has none.
    #[must_use]
    pub fn number(&self, file: &str) -> Option<u32> {
        shown(self.system, &self.disks.first()?.name, file)?.parse().ok()
    }

    /// The hardware queues of the first disk; `None` if they are unknown.
    #[must_use]
    pub fn hw_queues(&self) -> Option<u16> {
        let device = self.host.device_called(&self.disks.first()?.name).ok()?;
        device.hardware.map(|hardware| hardware.queues)
    }

    /// Restores everything as it was before.
    ///
    /// # Errors
    /// If a value is not back.
    pub fn restore(self) -> Result<(), QueuesError> {
        for disk in self.disks {
            let Restored { kept, .. } = disk.changes.restore()?;
            if let Some(kept) = kept.into_iter().next() {
                return Err(QueuesError::NotRestored { file: kept.file, why: kept.why });
            }
        }
        Ok(())
    }
}

/// Whether a change of the scheduler gives a file its default.
fn is_reset_by_scheduler(file: &str) -> bool {
    file == "nr_requests" || file.starts_with("iosched/")
}
