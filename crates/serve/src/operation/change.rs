//! Changes of a running server: its exports, and the settings of its queue. A change applies completely or not at all.

use std::sync::{Arc, PoisonError};

use hoistway_engine::Engine;
use hoistway_nbd::Export;

use crate::export::clients::Client;
use crate::export::disk::{DefaultScheduler, Disk};
use crate::export::exports::{ExportLayout, Exports, LiveExport};
use crate::export::spec::{Placed, check_names, check_overlaps};
use crate::guest::GuestListener;
use crate::operation::control::ExportState;
use crate::server::ServerError;
use crate::server::server_state::{ServerState, Withdrawn};
use crate::ublk::UblkDevice;

/// The desired state of a server.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its exports, in their order.
    pub exports: Vec<Placed>,
    /// The scheduler of all disks; `None` for the default of each.
    pub scheduler: Option<String>,
    /// Files of the queues, such as `nr_requests`, or tunables as `SCHEDULER.NAME`, and their values. All others get back the
    /// value that they had when the scheduler was set.
    pub settings: Vec<(String, String)>,
}

fn export_layout(placed: &Placed, engine: &Engine) -> Result<ExportLayout, ServerError> {
    let Placed { spec, volume, .. } = placed;
    let volume = engine.volumes().into_iter().nth(*volume).ok_or(std::io::ErrorKind::NotFound);
    let volume = volume.map_err(std::io::Error::from)?;
    let range = spec.range(volume.bytes(), u64::from(volume.block_bytes()))?;
    if volume.is_read_only() && !spec.read_only {
        let name = &spec.name;
        return Err(ServerError::Refused(format!(
            "export {name:?}: its target was opened read-only (expected read-only)"
        )));
    }
    let description = Export {
        description: spec.description.clone(),
        read_only: spec.read_only,
        rotational: volume.is_rotational(),
        block_bytes_min: 1,
        block_bytes_preferred: volume.preferred_block_bytes().max(4096),
        ..Export::new(&spec.name, range.end - range.start)
    };
    Ok(ExportLayout { description, range, block_bytes: volume.block_bytes() })
}

/// An export before and after a change.
enum Step {
    /// It stays, with this size.
    KeepExport(Arc<LiveExport>, u64),
    AddExport(Box<ExportLayout>),
}

impl ServerState {
    /// Offers these exports and no others. Existing ones continue with the new weights, priorities and limits.
    ///
    /// # Errors
    /// If one of them is invalid, or is a different part of the target than before: then nothing has changed.
    pub fn replace_exports(&self, exports: &[Placed]) -> Result<(), ServerError> {
        self.carry_out(exports, self.plan(exports)?)
    }

    fn plan(&self, exports: &[Placed]) -> Result<Vec<Step>, ServerError> {
        let specs: Vec<_> = exports.iter().map(|placed| placed.spec.clone()).collect();
        check_names(&specs)?;
        let disks = self.disks();
        for Placed { spec, disk, volume, .. } in exports {
            // Its file may have become longer.
            let grown = disks[*disk].engine.grow_volume(*volume);
            grown.map_err(|why| ServerError::Refused(format!("export {:?}: {why}", spec.name)))?;
        }
        let layout = |placed: &Placed| export_layout(placed, &disks[placed.disk].engine);
        let ranges =
            exports.iter().map(|placed| Ok((&placed.spec, (placed.disk, placed.volume), layout(placed)?.range)));
        check_overlaps(&ranges.collect::<Result<Vec<_>, ServerError>>()?)?;
        let current = self.exports();
        let step = |placed: &Placed| {
            let layout = layout(placed)?;
            let Some(export) = current.named(&placed.spec.name) else { return Ok(Step::AddExport(Box::new(layout))) };
            if !export.is_compatible_with(placed, &layout) {
                let name = &placed.spec.name;
                return Err(ServerError::Refused(format!(
                    "export {name:?}: path, offset, description, vhost-user, ublk and read-only cannot change while the server runs"
                )));
            }
            Ok(Step::KeepExport(Arc::clone(export), layout.description.size_bytes))
        };
        exports.iter().map(step).collect()
    }

    fn carry_out(&self, exports: &[Placed], steps: Vec<Step>) -> Result<(), ServerError> {
        let (before, disks) = (self.exports(), self.disks());
        let (mut after, mut shrunk) = (Vec::new(), Vec::new());
        for (placed, step) in exports.iter().zip(steps) {
            let spec = &placed.spec;
            let export = match step {
                Step::KeepExport(export, bytes) => {
                    if bytes < export.size_bytes() {
                        // Their part of the target may become another export's.
                        shrunk.push(export.name.clone());
                    }
                    export.resize(bytes);
                    export.disk.engine.set_weight(export.group, spec.settings.weight)?;
                    export.set(spec.settings);
                    export
                }
                Step::AddExport(layout) => {
                    let disk = Arc::clone(&disks[placed.disk]);
                    let group = disk.engine.add_group(spec.settings.weight)?;
                    Arc::new(LiveExport::new(placed, disk, *layout, group))
                }
            };
            export.throttle.set_limits(self.now(), spec.limits);
            export.set_access(spec.access.clone());
            after.push(export);
        }
        for disk in &disks {
            disk.shares.set_exports(after.iter().filter(|export| Arc::ptr_eq(&export.disk, disk)).count());
        }
        let is_gone = |export: &&Arc<LiveExport>| !after.iter().any(|other| Arc::ptr_eq(other, export));
        let gone: Vec<_> = before.live.iter().filter(is_gone).cloned().collect();
        *self.exports.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(Exports::of(after));
        gone.iter().for_each(|export| export.withdraw());
        let gone_names: Vec<_> = gone.iter().map(|export| export.name.clone()).collect();
        let is_gone = |name: &str| gone_names.iter().any(|gone| gone == name);
        self.stop_guests(is_gone);
        self.disconnect(|client| client.export().is_some_and(|export| shrunk.iter().any(|name| name == export)));
        let withdrawn = gone.iter().map(|export| Withdrawn {
            export: Arc::downgrade(export),
            disk: Arc::clone(&export.disk),
            group: export.group,
        });
        self.withdrawn.lock().unwrap_or_else(PoisonError::into_inner).extend(withdrawn);
        drop((before, gone));
        self.forget_withdrawn();
        self.disconnect_disallowed();
        // Throttled requests may be allowed earlier, priorities change, and connections of withdrawn exports have to
        // end.
        self.inboxes.notify_all();
        self.remove_devices(is_gone);
        Ok(())
    }

    /// Creates the sockets for guests of new exports.
    fn bind_guest_sockets(&self, exports: &[Placed]) -> Result<Vec<GuestListener>, ServerError> {
        let current = self.exports();
        let is_new = |placed: &&Placed| current.named(&placed.spec.name).is_none();
        let access = self.guest_access.get().copied().unwrap_or_default();
        let listen = |placed: &Placed| {
            let path = placed.spec.vhost_user.as_ref()?;
            Some(GuestListener::new(path, access, &placed.spec.name))
        };
        exports.iter().filter(is_new).filter_map(listen).collect()
    }

    /// Adds the block devices of new exports.
    fn add_new_devices(&self, exports: &[Placed], steps: &[Step]) -> Result<Vec<UblkDevice>, ServerError> {
        let add = |(placed, step): (&Placed, &Step)| match (step, placed.spec.ublk) {
            (Step::AddExport(layout), Some(number)) => {
                Some(UblkDevice::add(self, number, &layout.description, layout.block_bytes))
            }
            _ => None,
        };
        exports.iter().zip(steps).filter_map(add).collect()
    }

    /// The current exports.
    fn placed(&self) -> Vec<Placed> {
        self.exports().live.iter().map(|export| export.placed()).collect()
    }

    fn change_exports(self: &Arc<Self>, exports: &[Placed]) -> Result<(), ServerError> {
        let steps = self.plan(exports)?;
        let guests = self.bind_guest_sockets(exports)?;
        let devices = self.add_new_devices(exports, &steps)?;
        self.carry_out(exports, steps)?;
        guests.into_iter().try_for_each(|listener| self.serve_guests(listener))?;
        devices.into_iter().try_for_each(|device| self.serve_device(device))
    }

    /// Adds an export, with a socket for its guest and a block device if it has them.
    ///
    /// # Errors
    /// If the name exists already, it does not fit on its volume, it cannot listen, or the kernel refuses to add the device: then nothing has
    /// changed. If the kernel refuses to start the device, the export stays without it.
    pub fn add_export(self: &Arc<Self>, export: Placed) -> Result<(), ServerError> {
        let mut exports = self.placed();
        exports.push(export);
        self.change_exports(&exports)
    }

    /// Removes an export: requests in flight complete, its clients are disconnected, and its block device and the socket for its guest
    /// are removed.
    ///
    /// # Errors
    /// If there is no export with that name.
    pub fn remove_export(self: &Arc<Self>, name: &str) -> Result<(), ServerError> {
        self.find(name)?;
        let mut exports = self.placed();
        exports.retain(|placed| placed.spec.name != name);
        self.change_exports(&exports)
    }

    /// Changes the size of an export. Clients see the new size when they reconnect; if the export shrinks they are
    /// disconnected.
    ///
    /// # Errors
    /// If there is no export with that name, or it would not fit: then nothing has changed.
    pub fn resize_export(self: &Arc<Self>, name: &str, bytes: u64) -> Result<(), ServerError> {
        self.find(name)?;
        let mut exports = self.placed();
        exports.iter_mut().filter(|placed| placed.spec.name == name).for_each(|placed| placed.spec.size = Some(bytes));
        self.change_exports(&exports)
    }

    /// The export with this name.
    ///
    /// # Errors
    /// If there is none; as text.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<LiveExport>, ServerError> {
        let exports = self.exports();
        exports.named(name).cloned().ok_or_else(|| {
            let names: Vec<_> = exports.descriptions.iter().map(|export| format!("{:?}", export.name)).collect();
            ServerError::Refused(format!("unknown export {name:?} (expected one of {})", names.join(", ")))
        })
    }

    /// Disconnects clients that may no longer use their export.
    fn disconnect_disallowed(&self) {
        let exports = self.exports();
        let is_disallowed = |client: &Client| {
            client.export().and_then(|name| exports.named(name)).is_some_and(|export| !export.access().allows(client))
        };
        self.disconnect(is_disallowed);
    }

    /// Removes the scheduler's groups of withdrawn exports without connections.
    pub(crate) fn forget_withdrawn(&self) {
        let mut withdrawn = self.withdrawn.lock().unwrap_or_else(PoisonError::into_inner);
        withdrawn.retain(|Withdrawn { export, disk, group }| {
            let is_used = export.strong_count() > 0;
            if !is_used {
                disk.engine.remove_group(*group);
            }
            is_used
        });
    }

    /// Changes the server to this state. Returns a line for each change.
    ///
    /// # Errors
    /// If part of the change is impossible: then nothing has changed, except that an export whose device the kernel does not start stays
    /// without it.
    pub fn change_to(self: &Arc<Self>, wanted: &Wanted) -> Result<Vec<String>, ServerError> {
        let steps = self.plan(&wanted.exports)?;
        let guests = self.bind_guest_sockets(&wanted.exports)?;
        let devices = self.add_new_devices(&wanted.exports, &steps)?;
        let (files_before, exports_before) = (self.files(), self.exports_state());
        self.set_all(wanted.scheduler.as_deref(), &wanted.settings)?;
        self.carry_out(&wanted.exports, steps)?;
        guests.into_iter().try_for_each(|listener| self.serve_guests(listener))?;
        devices.into_iter().try_for_each(|device| self.serve_device(device))?;
        let (files_after, exports_after) = (self.files(), self.exports_state());

        let mut changes: Vec<String> = files_after
            .iter()
            .filter(|file| !files_before.contains(file))
            .map(|(disk, file, value)| format!("{disk}{}={value}", file.trim_start_matches("iosched/")))
            .collect();
        for export in &exports_after {
            let settings = |export: &ExportState| {
                (export.bytes, export.weight, export.ioprio.clone(), export.limits.clone(), export.clients.clone())
            };
            match exports_before.iter().find(|other| other.name == export.name) {
                None => changes.push(format!("export {:?} added", export.name)),
                Some(other) if settings(other) != settings(export) => changes.push(format!(
                    "export {:?} {} bytes weight={} ioprio={} {} clients={}",
                    export.name, export.bytes, export.weight, export.ioprio, export.limits, export.clients
                )),
                Some(_) => {}
            }
        }
        let is_gone = |export: &&ExportState| !exports_after.iter().any(|other| other.name == export.name);
        changes.extend(exports_before.iter().filter(is_gone).map(|export| format!("export {:?} removed", export.name)));
        // The order matters: the empty name selects the first.
        let in_both = |these: &[ExportState], others: &[ExportState]| -> Vec<String> {
            let remains = |export: &&ExportState| others.iter().any(|other| other.name == export.name);
            these.iter().filter(remains).map(|export| format!("{:?}", export.name)).collect()
        };
        let order = in_both(&exports_after, &exports_before);
        if order != in_both(&exports_before, &exports_after) {
            changes.push(format!("exports in the order {}", order.join(", ")));
        }
        Ok(changes)
    }

    /// The scheduler of each disk and the files that depend on it, with their values. With several disks the name of the disk precedes
    /// each.
    fn files(&self) -> Vec<(String, String, String)> {
        let disks = self.disks();
        let prefix = |name: &str| if disks.len() > 1 { format!("{name}: ") } else { String::new() };
        let files = |disk: &Arc<Disk>| {
            let prefix = prefix(&disk.name);
            disk.files().into_iter().map(move |(file, value)| (prefix.clone(), file, value)).collect::<Vec<_>>()
        };
        disks.iter().flat_map(files).collect()
    }

    /// Sets the scheduler of all disks (`None` for the default of each) and the named files; the others get back the value that they had
    /// when the scheduler was set. A tunable is set where its scheduler is.
    ///
    /// # Errors
    /// If a queue rejects a value: then nothing has changed.
    pub fn set_all(&self, scheduler: Option<&str>, settings: &[(String, String)]) -> Result<(), ServerError> {
        let disks = self.disks();
        let schedulers: Vec<DefaultScheduler> = match scheduler {
            Some(name) => vec![DefaultScheduler { name: name.to_owned(), shares: false }; disks.len()],
            None => disks.iter().map(|disk| disk.default_scheduler()).collect(),
        };
        let before: Vec<_> = disks.iter().map(|disk| disk.files()).collect();
        let set = || -> Result<(), String> {
            check_tunables(&schedulers, settings)?;
            for (disk, scheduler) in disks.iter().zip(&schedulers) {
                let is_for_it = |(key, _): &&(String, String)| {
                    key.split_once('.').is_none_or(|(owner, _)| owner == scheduler.name || schedulers.len() == 1)
                };
                let settings: Vec<_> = settings.iter().filter(is_for_it).cloned().collect();
                disk.set_all(&scheduler.name, &settings)?;
            }
            Ok(())
        };
        set().map_err(|why| {
            for (disk, files) in disks.iter().zip(&before) {
                for (file, value) in files {
                    // Cannot fail: the file held this value before.
                    let _ = disk.write(file, value);
                }
            }
            ServerError::Refused(why)
        })?;
        disks.iter().zip(&schedulers).for_each(|(disk, scheduler)| disk.shares.want(scheduler.shares));
        Ok(())
    }
}

/// Checks that each tunable belongs to the scheduler of a disk. With one disk the queue checks it.
fn check_tunables(schedulers: &[DefaultScheduler], settings: &[(String, String)]) -> Result<(), String> {
    if schedulers.len() < 2 {
        return Ok(());
    }
    for (key, _) in settings {
        if let Some((owner, _)) = key.split_once('.')
            && !schedulers.iter().any(|scheduler| scheduler.name == owner)
        {
            return Err(format!("{key}: no disk has the scheduler {owner:?}"));
        }
    }
    Ok(())
}
