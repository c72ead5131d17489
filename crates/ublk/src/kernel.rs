//! The interface to the kernel: io_uring commands, and the memory with the descriptors of requests.
//!
//! Used by: `device`, `queue`.
//! Tests: below.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use io_uring::register::Restriction;
use io_uring::types::{Fd, Fixed};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::layout::{DESCRIPTOR_BYTES, control_command, io_command};

/// The ring for control commands. They are carried out with the rights that the process had when it was opened, which a process that has
/// dropped them keeps only for that: the ring takes nothing but commands for the control device.
pub struct ControlRing {
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    personality: u16,
}

/// The only file of the control ring.
const CONTROL: Fixed = Fixed(0);
/// The flag of an entry for a registered file (`IOSQE_FIXED_FILE`).
const FIXED_FILE: u8 = 1;

impl ControlRing {
    pub fn new(control: OwnedFd) -> io::Result<ControlRing> {
        let ring: IoUring<squeue::Entry128, cqueue::Entry> = IoUring::builder().setup_r_disabled().build(2)?;
        let submitter = ring.submitter();
        submitter.register_files(&[control.as_raw_fd()])?;
        let personality = submitter.register_personality()?;
        // No registration is allowed later, either.
        submitter.register_restrictions(&mut [
            Restriction::sqe_op(opcode::UringCmd80::CODE),
            Restriction::sqe_flags_allowed(FIXED_FILE),
            Restriction::sqe_flags_required(FIXED_FILE),
        ])?;
        submitter.register_enable_rings()?;
        Ok(ControlRing { ring, personality })
    }

    /// Carries out a command for a device and waits for its end.
    pub fn run(&mut self, operation: u32, device: u32, structure: &mut [u8], data: u64) -> io::Result<()> {
        let address = if structure.is_empty() { 0 } else { structure.as_mut_ptr().expose_provenance() as u64 };
        let command = control_command(device, address, structure.len() as u16, data);
        let entry = opcode::UringCmd80::new(CONTROL, operation).cmd(command).build();
        // SAFETY: the command may read and write `structure`, which is borrowed until this function has seen its completion; it returns only
        // after that. The ring has the file.
        unsafe { self.carry_out(entry.personality(self.personality)) }
    }

    /// Sends an entry and waits for its end.
    ///
    /// # Safety
    /// What it refers to must stay as it is until this returns.
    unsafe fn carry_out(&mut self, entry: squeue::Entry128) -> io::Result<()> {
        // SAFETY: as the caller promises.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        loop {
            // An interrupted wait, or a kernel that is short of memory: the entry is still in the ring or the command is running.
            let _ = self.ring.submit_and_wait(1);
            if let Some(entry) = self.ring.completion().next() {
                let result = entry.result();
                return if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) };
            }
        }
    }
}

/// The ring for the commands that fetch requests. The thread that fetches first must be the only one to use it.
pub struct QueueRing {
    ring: IoUring,
    device: OwnedFd,
    /// Whether entries have been pushed that the kernel has not seen.
    has_pushed: bool,
}

impl QueueRing {
    /// A ring for `depth` requests of a device.
    pub fn new(device: OwnedFd, depth: u16) -> io::Result<QueueRing> {
        // A command that fails at once does not keep the following ones from being sent.
        let ring = IoUring::builder().setup_submit_all().build(u32::from(depth))?;
        Ok(QueueRing { ring, device, has_pushed: false })
    }

    /// The device.
    pub fn device(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    /// Readable when a command has completed.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring's descriptor is open as long as the ring, which is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    /// Adds a command for the request with this tag, to be sent by [`submit`](Self::submit).
    pub fn push(&mut self, operation: u32, tag: u16, result: i32) {
        let entry = opcode::UringCmd16::new(Fd(self.device.as_raw_fd()), operation).cmd(io_command(tag, result));
        let entry = entry.build().user_data(u64::from(tag));
        self.has_pushed = true;
        loop {
            // SAFETY: the command has no address of this process, and its descriptor is open as long as the ring.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return;
            }
            // A ring has room for one command of each request: it is full only of commands that the kernel has not seen.
            self.submit();
        }
    }

    /// Sends the commands. Returns whether the kernel took all of them; if it is short of memory, the others stay in the ring for the next
    /// call.
    pub fn submit(&mut self) -> bool {
        if self.has_pushed {
            let _ = self.ring.submit();
            self.has_pushed = !self.ring.submission().is_empty();
        }
        !self.has_pushed
    }

    /// Whether commands have completed.
    pub fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// The tag and the result of a command that has completed.
    pub fn take(&mut self) -> Option<(u16, i32)> {
        self.ring.completion().next().map(|entry| (entry.user_data() as u16, entry.result()))
    }
}

/// The descriptors of requests, which the kernel writes.
pub struct Descriptors {
    start: NonNull<u8>,
    bytes: usize,
    depth: u16,
}

// SAFETY: the memory belongs to no thread; it is only read, one whole descriptor at a time.
unsafe impl Send for Descriptors {}

impl Descriptors {
    /// Maps the descriptors of queue 0 of a device.
    pub fn map(device: BorrowedFd<'_>, depth: u16) -> io::Result<Descriptors> {
        let bytes = (usize::from(depth) * DESCRIPTOR_BYTES).next_multiple_of(rustix::param::page_size());
        // SAFETY: a new mapping, which overlaps no other memory of the process.
        let start = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED | MapFlags::POPULATE, device, 0)
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Descriptors { start, bytes, depth })
    }

    /// A copy of the descriptor of the request with this tag.
    pub fn read(&self, tag: u16) -> [u8; DESCRIPTOR_BYTES] {
        assert!(tag < self.depth, "a tag of this queue");
        let mut descriptor = [0; DESCRIPTOR_BYTES];
        for (index, word) in descriptor.chunks_exact_mut(8).enumerate() {
            // SAFETY: the descriptor is within the mapping, whose start is aligned to a page and which lives as long as this. Another
            // process cannot write it, and the kernel does so only before it completes the command that fetches the request; the read
            // is volatile because the compiler knows neither.
            let value = unsafe {
                self.start.add(usize::from(tag) * DESCRIPTOR_BYTES + index * 8).cast::<u64>().read_volatile()
            };
            word.copy_from_slice(&value.to_ne_bytes());
        }
        descriptor
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn descriptors_are_read_by_their_tag() {
        let path = std::env::temp_dir().join(format!("hoistway-ublk-{}", std::process::id()));
        let mut file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (0..4096_u32 * 2).for_each(|index| file.write_all(&[(index / 24) as u8]).unwrap());
        let descriptors = Descriptors::map(file.as_fd(), 200).unwrap();
        assert_eq!((descriptors.read(0), descriptors.read(1), descriptors.read(199)), ([0; 24], [1; 24], [199; 24]));
        assert!(std::panic::catch_unwind(|| descriptors.read(200)).is_err());
    }

    #[test]
    fn the_rights_that_are_kept_are_for_commands_of_the_control_device_only() {
        let file = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        let other = file.try_clone().unwrap();
        let Ok(mut ring) = ControlRing::new(file.into()) else {
            // A sandbox without io_uring.
            return;
        };
        let errno = |result: io::Result<()>| result.unwrap_err().raw_os_error().unwrap();
        let refused = rustix::io::Errno::ACCESS.raw_os_error();
        // The kernel takes it, but this file knows no commands.
        assert_ne!(errno(ring.run(0, 0, &mut [], 0)), refused);
        let personality = ring.personality;
        let open = || opcode::OpenAt::new(Fd(-100), c"/etc/hostname".as_ptr()).build();
        let command = opcode::UringCmd80::new(Fd(other.as_raw_fd()), 0).build();
        for entry in [open().into(), squeue::Entry128::from(open()).personality(personality), command] {
            // SAFETY: the path is static, and so is all that the others refer to.
            assert_eq!(errno(unsafe { ring.carry_out(entry) }), refused);
        }
    }

    #[test]
    fn a_file_that_is_no_device_fails_each_command() {
        let file = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        let Ok(mut ring) = QueueRing::new(file.into(), 4) else {
            // A sandbox without io_uring.
            return;
        };
        (0..8).for_each(|tag| ring.push(crate::layout::FETCH_REQ, tag % 4, 0));
        assert!(ring.submit());
        let mut results = Vec::new();
        while let Some(result) = ring.take() {
            results.push(result);
        }
        assert_eq!(results.len(), 8);
        assert!(results.iter().all(|&(_, result)| result < 0), "{results:?}");
    }
}
