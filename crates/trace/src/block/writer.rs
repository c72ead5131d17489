//! Events as blktrace's files, version 7, in little endian: what blkparse and btt read.

use std::io::{self, Write};

use rustc_hash::FxHashSet;

use super::blktrace::{HEADER_BYTES, MAGIC, NOTIFY, NOTIFY_PROCESS};
use super::event::{Action, Event, Flags, Payload};
use super::names::Names;

/// Bytes of a process name's record.
const NAME_BYTES: usize = 16;
/// Category of request events.
const FS: u16 = 0x0100;

/// The files of a recording, one for each CPU. The format has no priorities, and blkparse rejects events with cgroups: both are
/// left out.
#[derive(Debug)]
pub struct BlktraceWriter<W> {
    /// The file of each CPU and the number of its last event.
    files: Vec<(W, u32)>,
    named: FxHashSet<u32>,
}

impl<W: Write> BlktraceWriter<W> {
    /// For CPUs from 0 on, each with its file.
    #[must_use]
    pub fn new(files: Vec<W>) -> BlktraceWriter<W> {
        let files = files.into_iter().map(|file| (file, 0)).collect();
        BlktraceWriter { files, named: FxHashSet::default() }
    }

    /// CPUs that have files.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.files.len()
    }

    /// Adds the file of the next CPU.
    pub fn add(&mut self, file: W) {
        self.files.push((file, 0));
    }

    /// Writes an event behind those of its CPU; before it the name of its task, if it is the first of that task.
    ///
    /// # Errors
    /// If it cannot be written, or its CPU has no file.
    pub fn write(&mut self, event: &Event, names: &Names) -> io::Result<()> {
        let Some((file, sequence)) = self.files.get_mut(event.cpu as usize) else {
            return Err(io::Error::other(format!("there is no file for CPU {}", event.cpu)));
        };
        if let Some(name) = names.get(event.pid).filter(|_| self.named.insert(event.pid)) {
            let mut payload = [0; NAME_BYTES];
            // The last byte ends the name.
            let length = name.len().min(NAME_BYTES - 1);
            payload[..length].copy_from_slice(&name.as_bytes()[..length]);
            let action = u32::from(NOTIFY) << 16 | u32::from(NOTIFY_PROCESS);
            let note = Event { sector: 0, bytes: 0, error: 0, ..*event };
            file.write_all(&header(&note, action, 0, NAME_BYTES))?;
            file.write_all(&payload)?;
        }
        *sequence += 1;
        let (payload, length) = payload(event);
        let action = u32::from(category(event)) << 16 | event.action as u32;
        file.write_all(&header(event, action, *sequence, length))?;
        file.write_all(&payload[..length])
    }

    /// Writes what is held back, and returns the files.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn finish(self) -> io::Result<Vec<W>> {
        let flushed = self.files.into_iter().map(|(mut file, _)| file.flush().map(|()| file));
        flushed.collect()
    }
}

fn header(event: &Event, action: u32, sequence: u32, payload_bytes: usize) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&(MAGIC | 7).to_le_bytes());
    bytes[4..8].copy_from_slice(&sequence.to_le_bytes());
    bytes[8..16].copy_from_slice(&event.time_ns.to_le_bytes());
    bytes[16..24].copy_from_slice(&event.sector.to_le_bytes());
    bytes[24..28].copy_from_slice(&event.bytes.to_le_bytes());
    bytes[28..32].copy_from_slice(&action.to_le_bytes());
    bytes[32..36].copy_from_slice(&event.pid.to_le_bytes());
    bytes[36..40].copy_from_slice(&event.device.number().to_le_bytes());
    bytes[40..44].copy_from_slice(&event.cpu.to_le_bytes());
    bytes[44..46].copy_from_slice(&event.error.to_le_bytes());
    bytes[46..48].copy_from_slice(&(payload_bytes as u16).to_le_bytes());
    bytes
}

/// The kernel sets the direction "read" on everything that is no write.
fn category(event: &Event) -> u16 {
    let direction = if event.flags.has(Flags::WRITE) { 0 } else { Flags::READ.bits() };
    let of_action = match event.action {
        Action::Insert => 0x0010 | FS,
        Action::Requeue => 0x0020 | FS,
        Action::Issue => 0x0040 | FS,
        Action::Complete => 0x0080 | FS,
        Action::Split | Action::Bounce => 0,
        _ => 0x0010,
    };
    let flags = event.flags.bits();
    // A passthrough command is none of a file system.
    let of_action = if event.flags.has(Flags::PASSTHROUGH) { of_action & !FS } else { of_action };
    flags | direction | of_action
}

fn payload(event: &Event) -> ([u8; 16], usize) {
    let mut bytes = [0; 16];
    match event.payload {
        Payload::None => return (bytes, 0),
        Payload::Requests(number) | Payload::Rest(number) => bytes[..8].copy_from_slice(&number.to_be_bytes()),
        Payload::From { device, sector } => {
            bytes[..4].copy_from_slice(&device.number().to_be_bytes());
            bytes[4..8].copy_from_slice(&event.device.number().to_be_bytes());
            bytes[8..].copy_from_slice(&sector.to_be_bytes());
            return (bytes, 16);
        }
    }
    (bytes, 8)
}
