//! Devices that a killed server left: `/dev/ublkbN` is gone, but its number is taken until it is deleted.
//!
//! Used by: `device`.
//! Tests: below.

use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::layout::{DeviceInfo, F_USER_RECOVERY};

/// Marks the devices of Hoistway: the upper half of the value that the kernel keeps for a server. The lower half is the process.
const MARK: u64 = 0x484f_4953 << 32;

/// The value that marks a device of this process.
pub fn server_value() -> u64 {
    MARK | u64::from(std::process::id())
}

/// What the number of a device is in use for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Holder {
    /// Nobody: its server has ended.
    Nobody {
        /// Whether the server was Hoistway's.
        is_ours: bool,
    },
    /// A process serves it, or is about to; the text names it.
    Server(String),
    /// It waits for a server of its own kind.
    Recovery,
    /// It is being deleted, which takes until nobody has it open.
    Closing,
}

/// Finds out whether a process serves a device. `info` is the kernel's description of it, `path` its character device, which
/// only one process can open at a time.
pub fn holder(info: &DeviceInfo, path: &Path) -> io::Result<Holder> {
    if info.flags & F_USER_RECOVERY != 0 {
        return Ok(Holder::Recovery);
    }
    let is_ours = info.server_value & !u64::from(u32::MAX) == MARK;
    let owner = if is_ours { info.server_value as i32 } else { info.process };
    match open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::BUSY) if owner > 0 => Ok(Holder::Server(format!("process {owner}"))),
        Err(Errno::BUSY) => Ok(Holder::Server("another process".to_owned())),
        // Its process has added it and not opened it yet.
        Ok(_) if is_ours && is_running(owner) => Ok(Holder::Server(format!("process {owner}"))),
        Ok(_) => Ok(Holder::Nobody { is_ours }),
        Err(Errno::NOENT) => Ok(Holder::Closing),
        Err(error) => Err(error.into()),
    }
}

/// Whether a process runs; one that waits for its parent to notice its end does not.
pub fn is_running(process: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // The name may contain anything, but the state follows the last parenthesis.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// The numbers of the character devices in a folder.
pub fn numbers_in(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("ublkc")?.parse().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(flags: u64, server_value: u64) -> DeviceInfo {
        DeviceInfo { depth: 1, state: 0, transfer_bytes_max: 4096, number: 0, process: -1, flags, server_value }
    }

    #[test]
    fn a_device_is_nobodys_if_it_can_be_opened_and_its_own_server_does_not_run() {
        let openable = Path::new("/dev/null");
        let holder = |info: &DeviceInfo| holder(info, openable).unwrap();
        assert_eq!(holder(&info(0, 0)), Holder::Nobody { is_ours: false });
        // No process has this number: it is above the maximum.
        assert_eq!(holder(&info(0, MARK | 0x7fff_ffff)), Holder::Nobody { is_ours: true });
        let own = format!("process {}", std::process::id());
        assert_eq!(holder(&info(0, server_value())), Holder::Server(own));
        assert_eq!(holder(&info(F_USER_RECOVERY, 0)), Holder::Recovery);
        let elsewhere = |path: &str| super::holder(&info(0, 0), Path::new(path));
        assert_eq!(elsewhere("/nonexistent/ublkc0").unwrap(), Holder::Closing);
        assert!(elsewhere("/dev/null/ublkc0").is_err());
    }

    #[test]
    fn a_process_runs_until_it_has_ended() {
        assert!(is_running(std::process::id() as i32) && !is_running(0x7fff_ffff) && !is_running(-1));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        // It ends soon, and stays a zombie until it is waited for.
        while is_running(child.id() as i32) {
            std::thread::yield_now();
        }
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn numbers_are_those_of_character_devices() {
        let folder = std::env::temp_dir().join(format!("hoistway-ublk-numbers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["ublkc12", "ublkc3", "ublkb4", "ublkc", "ublkc-1", "ublk-control"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        assert_eq!(numbers_in(&folder), [3, 12]);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(numbers_in(&folder), [0; 0]);
    }
}
