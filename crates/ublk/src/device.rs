//! A device: added, started, stopped, deleted.
//!
//! Used by: crate `serve`.
//! Tests: below.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::disk::{Disk, QUEUE_DEPTH_MAX, TRANSFER_BYTES_MAX};
use crate::error::UblkError;
use crate::kernel::ControlRing;
use crate::layout::{
    ADD_DEV, CONTROL_PATH, DEL_DEV, DEL_DEV_ASYNC, DeviceInfo, F_CMD_IOCTL_ENCODE, F_USER_COPY, GET_DEV_INFO,
    INFO_BYTES, SET_PARAMS, START_DEV, STATE_DEAD, STOP_DEV,
};
use crate::leftovers::{self, Holder};
use crate::queue::UblkQueue;

/// The largest number of a device.
pub const DEVICE_NUMBER_MAX: u32 = (1 << 20) - 1;

const DEVICES: &str = "/dev";
/// How long to wait for the kernel to release the device of a killed server.
const RELEASE_MAX: Duration = Duration::from_secs(5);
const RELEASE_STEP: Duration = Duration::from_millis(50);

/// Which device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceNumber {
    /// The kernel chooses.
    Any,
    /// `/dev/ublkbN`.
    Given(u32),
}

/// A device of this process. Dropping it stops and deletes it: its [`UblkQueue`] has to be dropped before,
/// or be served.
pub struct Device {
    ring: ControlRing,
    number: u32,
    /// Whether it has been deleted.
    is_deleted: bool,
}

impl Device {
    /// Adds a device with a queue of `depth` requests (at most [`QUEUE_DEPTH_MAX`]). A device of that number that a killed server left is replaced;
    /// without a number, all such devices of Hoistway are deleted first.
    ///
    /// # Errors
    /// If the kernel has no driver or an old one, the process no right, or another process the number.
    pub fn add(number: DeviceNumber, disk: &Disk, depth: u16) -> Result<(Device, UblkQueue), UblkError> {
        let depth = depth.clamp(1, QUEUE_DEPTH_MAX);
        let control =
            open(CONTROL_PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| match errno {
                Errno::NOENT | Errno::NODEV | Errno::NXIO => UblkError::NoDriver,
                Errno::ACCESS | Errno::PERM => UblkError::NotPermitted,
                _ => UblkError::System { what: CONTROL_PATH.to_owned(), why: errno.into() },
            })?;
        let mut ring = ControlRing::new(control).map_err(UblkError::system("io_uring"))?;
        let info = match number {
            DeviceNumber::Any => {
                delete_leftovers(&mut ring);
                add(&mut ring, number, depth)?
            }
            DeviceNumber::Given(given) => make_room_and_add(&mut ring, given, depth)?,
        };
        // From here on it is deleted on errors.
        let mut device = Device { ring, number: info.number, is_deleted: false };
        if info.flags & F_USER_COPY == 0 {
            return Err(UblkError::OldDriver);
        }
        let mut parameters = disk.parameters();
        let set = device.ring.run(SET_PARAMS, device.number, &mut parameters, 0);
        set.map_err(|why| UblkError::System { what: format!("parameters of {}", device.path()), why })?;
        let path = character_device(device.number);
        let opened = open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(io::Error::from);
        let queue = opened.and_then(|opened| UblkQueue::new(opened, disk, info.depth));
        let queue = queue.map_err(UblkError::system(path.display().to_string()))?;
        Ok((device, queue))
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{DEVICES}/ublkb{}", self.number)
    }

    /// Makes it appear, once its [`UblkQueue`] fetches requests: the kernel reads its partition table first.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn start(&mut self) -> Result<(), UblkError> {
        let started = self.ring.run(START_DEV, self.number, &mut [], u64::from(std::process::id()));
        started.map_err(|why| UblkError::System { what: format!("cannot start {}", self.path()), why })
    }

    /// Makes it disappear. The kernel first writes what its file systems have in memory, and waits for all requests: the queue has to
    /// be served meanwhile. Then the queue [is gone](UblkQueue::is_gone).
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn stop(&mut self) -> Result<(), UblkError> {
        let stopped = self.ring.run(STOP_DEV, self.number, &mut [], 0);
        stopped.map_err(|why| UblkError::System { what: format!("cannot stop {}", self.path()), why })
    }

    /// Deletes it. Its number is free once the queue has been dropped and nobody has it mounted or open. Before 6.9 the kernel waits for that
    /// here.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn delete(mut self) -> Result<(), UblkError> {
        self.is_deleted = true;
        let deleted = delete(&mut self.ring, self.number);
        deleted.map_err(|why| UblkError::System { what: format!("cannot delete {}", self.path()), why })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if !self.is_deleted {
            // There is nobody to report an error to.
            let _ = self.ring.run(STOP_DEV, self.number, &mut [], 0);
            let _ = delete(&mut self.ring, self.number);
        }
    }
}

fn character_device(number: u32) -> PathBuf {
    Path::new(DEVICES).join(format!("ublkc{number}"))
}

fn add(ring: &mut ControlRing, number: DeviceNumber, depth: u16) -> Result<DeviceInfo, UblkError> {
    let wanted = DeviceInfo {
        depth,
        state: STATE_DEAD,
        transfer_bytes_max: TRANSFER_BYTES_MAX,
        number: if let DeviceNumber::Given(number) = number { number } else { u32::MAX },
        process: -1,
        flags: F_CMD_IOCTL_ENCODE | F_USER_COPY,
        server_value: leftovers::server_value(),
    };
    let mut info = wanted.to_bytes();
    match ring.run(ADD_DEV, wanted.number, &mut info, 0) {
        Ok(()) => Ok(DeviceInfo::from_bytes(&info)),
        Err(why) => Err(match why.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::EXIST) => UblkError::InUse { number: wanted.number, server: "another process".to_owned() },
            Some(Errno::PERM | Errno::ACCESS) => UblkError::NotPermitted,
            // The numbers of commands before 6.4 were others.
            Some(Errno::OPNOTSUPP | Errno::NOTTY) => UblkError::OldDriver,
            _ => UblkError::System { what: format!("{CONTROL_PATH}: cannot add a device"), why },
        }),
    }
}

/// What the kernel says about a device, if it exists.
fn info(ring: &mut ControlRing, number: u32) -> Option<DeviceInfo> {
    let mut info = [0; INFO_BYTES];
    ring.run(GET_DEV_INFO, number, &mut info, 0).ok().map(|()| DeviceInfo::from_bytes(&info))
}

fn delete(ring: &mut ControlRing, number: u32) -> io::Result<()> {
    let deleted = ring.run(DEL_DEV_ASYNC, number, &mut [], 0);
    if deleted.as_ref().is_err_and(|why| why.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error())) {
        return ring.run(DEL_DEV, number, &mut [], 0);
    }
    deleted
}

/// Deletes a device that nobody serves.
fn delete_leftover(ring: &mut ControlRing, number: u32) -> io::Result<()> {
    // The kernel may not have stopped it yet, and refuses to stop one that it has.
    let _ = ring.run(STOP_DEV, number, &mut [], 0);
    delete(ring, number)
}

/// Deletes the devices that killed servers of Hoistway left.
fn delete_leftovers(ring: &mut ControlRing) {
    for number in leftovers::numbers_in(Path::new(DEVICES)) {
        let Some(info) = info(ring, number) else { continue };
        if leftovers::holder(&info, &character_device(number)).is_ok_and(|by| by == Holder::Nobody { is_ours: true }) {
            // It costs only a number.
            let _ = delete_leftover(ring, number);
        }
    }
}

/// Adds the device of this number, and first deletes the one that it has if nobody serves that.
fn make_room_and_add(ring: &mut ControlRing, number: u32, depth: u16) -> Result<DeviceInfo, UblkError> {
    let deadline = Instant::now() + RELEASE_MAX;
    loop {
        if let Some(info) = info(ring, number) {
            let path = character_device(number);
            let is_over = Instant::now() >= deadline;
            match leftovers::holder(&info, &path).map_err(UblkError::system(path.display().to_string()))? {
                Holder::Nobody { .. } => delete_leftover(ring, number)
                    .map_err(UblkError::system(format!("cannot delete {}", path.display())))?,
                // The server has been killed, and the kernel has not noticed yet.
                Holder::Server(_) if !leftovers::is_running(info.process) && !is_over => {}
                Holder::Server(server) => return Err(UblkError::InUse { number, server }),
                Holder::Recovery => return Err(UblkError::Recoverable { number }),
                Holder::Closing if is_over => return Err(UblkError::StillOpen { number }),
                Holder::Closing => {}
            }
        }
        match add(ring, DeviceNumber::Given(number), depth) {
            Err(UblkError::InUse { .. }) if Instant::now() < deadline => sleep(RELEASE_STEP),
            Err(UblkError::InUse { .. }) => return Err(UblkError::StillOpen { number }),
            added => return added,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_or_rights_the_reason_is_one_line() {
        let disk =
            Disk { bytes: 1 << 20, block_bytes: 512, preferred_block_bytes: 4096, read_only: false, rotational: false };
        if Path::new(CONTROL_PATH).exists() {
            return;
        }
        let error = Device::add(DeviceNumber::Any, &disk, 128).err().expect("there is no driver").to_string();
        assert!(error.contains("ublk_drv") && error.contains("CONFIG_BLK_DEV_UBLK"), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}
