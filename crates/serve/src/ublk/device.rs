//! Devices of exports: added, served, removed.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hoistway_nbd::Export;
use hoistway_ublk::{DISK_BLOCK_BYTES_MIN, Device, DeviceNumber, Disk, QUEUE_DEPTH_MAX, UblkError, UblkQueue};
use rustix::event::PollFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use super::connection::UblkConnection;
use crate::event_loop::Connection;
use crate::export::clients::Peer;
use crate::ground::stop::Stop;
use crate::server::ServerError;
use crate::server::served_device::ServedDevice;
use crate::server::server_state::ServerState;

/// The user whose disk a device is: only root can open it, unless root changes that.
const ROOT: u32 = 0;

/// A device of an export that nobody can open yet. Dropping it deletes it.
pub struct UblkDevice {
    // Before the device: the kernel deletes a device once its queue is closed.
    queue: UblkQueue,
    device: Device,
    /// The name of the export.
    export: String,
}

impl UblkDevice {
    /// A device of an export on a target with blocks of this size.
    pub(crate) fn add(
        server: &ServerState,
        number: DeviceNumber,
        description: &Export,
        block_bytes: u32,
    ) -> Result<UblkDevice, ServerError> {
        let disk = disk(description, block_bytes);
        let depth = server.limits.in_flight.min(u32::from(QUEUE_DEPTH_MAX)) as u16;
        let export = description.name.clone();
        let added = Device::add(number, &disk, depth);
        let (device, queue) = added.map_err(|why| refused(&export, &why))?;
        Ok(UblkDevice { queue, device, export })
    }
}

fn disk(description: &Export, block_bytes: u32) -> Disk {
    Disk {
        bytes: description.size_bytes,
        block_bytes: block_bytes.max(DISK_BLOCK_BYTES_MIN),
        preferred_block_bytes: description.block_bytes_preferred,
        read_only: description.read_only,
        rotational: description.rotational,
    }
}

fn refused(export: &str, why: &UblkError) -> ServerError {
    ServerError::Refused(format!("export {export:?}: ublk: {why}"))
}

impl ServerState {
    /// Adds the device of an export, if it has one.
    ///
    /// # Errors
    /// If there is no such export, or the kernel has no driver, refuses, or has another device of that number.
    pub fn add_device(&self, export: &str) -> Result<Option<UblkDevice>, ServerError> {
        let export = self.find(export)?;
        let Some(number) = export.placed().spec.ublk else { return Ok(None) };
        UblkDevice::add(self, number, &export.description(), export.block_bytes).map(Some)
    }

    /// Serves a device until its export is removed, its client is disconnected or the server drains. When this returns it can be
    /// opened.
    ///
    /// # Errors
    /// If the limits or the `clients=` of its export do not allow it, or the system refuses: then it has been deleted.
    pub fn serve_device(self: &Arc<Self>, added: UblkDevice) -> Result<(), ServerError> {
        // Dropped in reverse order: the queue before the device.
        let mut device = added.device;
        let (queue, export_name) = (added.queue, added.export);
        let place = device.path();
        let export = self.find(&export_name)?;
        let admission = self.admit(Peer::unix(&place, Some(ROOT))).filter(|admission| admission.refusal().is_none());
        let Some(admission) = admission else {
            return Err(ServerError::Refused(format!("export {export_name:?}: ublk: too many clients are connected")));
        };
        if !export.access().allows(admission.client()) {
            return Err(ServerError::Refused(format!(
                "export {export_name:?}: ublk: its clients= does not have user:root, whose disk the device is"
            )));
        }
        let (disconnected, disconnect_guard) = pipe_with(PipeFlags::CLOEXEC).map_err(std::io::Error::from)?;
        let stop = Stop::new()?;
        let (fetches, is_fetching) = sync_channel(1);
        let mut connection: Weak<Mutex<dyn Connection>> = Weak::<Mutex<UblkConnection>>::new();
        self.inboxes.add(export.disk.least_loaded_worker(), |id| {
            let new = UblkConnection::begin(admission, id, export, queue, (stop.clone(), fetches, disconnect_guard));
            let new: Arc<Mutex<dyn Connection>> = new;
            connection = Arc::downgrade(&new);
            new
        });
        // If the worker drops the connection, its reason is in the log.
        if is_fetching.recv().is_err() {
            return Err(ServerError::Refused(format!("export {export_name:?}: ublk: {place} is not served")));
        }
        device.start().map_err(|why| refused(&export_name, &why))?;
        self.info(format_args!("export {export_name:?} is {place}"));
        let (server, thread_stop) = (Arc::clone(self), stop.clone());
        let thread = std::thread::Builder::new().name("ublk".into());
        let thread = thread.spawn(move || {
            remove_when_stopped(&server, device, &thread_stop, &connection, &disconnected);
        })?;
        self.devices().push(ServedDevice { export: export_name, place, stop, thread });
        Ok(())
    }

    /// The paths of the devices.
    #[must_use]
    pub fn device_places(&self) -> Vec<String> {
        self.devices().iter().map(|device| device.place.clone()).collect()
    }

    /// Removes the devices of exports for which this holds, and waits for that: their file systems are written and their requests complete
    /// first.
    pub(crate) fn remove_devices(&self, is_selected: impl Fn(&str) -> bool) {
        let devices = std::mem::take(&mut *self.devices());
        let (removed, others): (Vec<_>, Vec<_>) = devices.into_iter().partition(|device| is_selected(&device.export));
        self.devices().extend(others);
        removed.iter().for_each(|device| device.stop.stop());
        for device in removed {
            // A thread that panicked has ended, too.
            let _ = device.thread.join();
        }
    }

    /// Removes all devices. To be called when the server has drained: then none is in use any more.
    pub fn remove_all_devices(&self) {
        self.remove_devices(|_| true);
    }

    fn devices(&self) -> MutexGuard<'_, Vec<ServedDevice>> {
        self.ublk_devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a device is to be removed, or its connection has ended, and removes it.
fn remove_when_stopped(
    server: &ServerState,
    mut device: Device,
    stop: &Stop,
    connection: &Weak<Mutex<dyn Connection>>,
    disconnected: &OwnedFd,
) {
    let is_connected = || connection.strong_count() > 0;
    while !stop.is_stopped() && is_connected() {
        stop.wait_or(disconnected.as_fd());
    }
    let place = device.path();
    // The kernel refuses it if somebody else has stopped the device.
    if let Err(why) = device.stop()
        && is_connected()
    {
        server.warn(format_args!("{why}"));
    }
    while is_connected() {
        Stop::wait(None, disconnected.as_fd(), PollFlags::IN, None);
    }
    match device.delete() {
        Ok(()) => server.info(format_args!("{place}: removed")),
        Err(why) => server.warn(format_args!("{why}")),
    }
    server.forget_withdrawn();
}
