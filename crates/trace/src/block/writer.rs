//! Writes events as blktrace files, version 7, little endian, for blkparse and btt.

use std::io::{self, Write};
use std::time::Duration;

use rustc_hash::FxHashSet;

use super::event::{Action, Device, Event, Flags, Payload};
use super::header::{HEADER_BYTES, MAGIC, NOTIFY, NOTIFY_MESSAGE, NOTIFY_PROCESS, NOTIFY_TIMESTAMP};
use super::names::Names;

/// Payload length of a process-name record, in bytes.
const NAME_BYTES: usize = 16;
/// Category of request events.
const FS: u16 = 0x0100;

/// The file of one CPU. Priorities and cgroups are omitted: the format has no priorities, and blkparse rejects events
/// with cgroups.
#[derive(Debug)]
pub struct CpuFile<W> {
    file: W,
    cpu: u32,
    device: Device,
    /// Number of the last event.
    sequence: u32,
}

impl<W: Write> CpuFile<W> {
    /// The file of a CPU. `device` is used in records that do not concern an event.
    pub fn new(file: W, cpu: u32, device: Device) -> CpuFile<W> {
        CpuFile { file, cpu, device, sequence: 0 }
    }

    /// Appends an event of this CPU.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let (payload, length) = payload(event);
        let action = u32::from(category(event)) << 16 | event.action as u32;
        self.file.write_all(&header(event, action, self.sequence, length))?;
        self.file.write_all(&payload[..length])
    }

    /// Writes the name of a task; to be called before its first event.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn name(&mut self, time_ns: u64, pid: u32, name: &[u8]) -> io::Result<()> {
        let mut payload = [0; NAME_BYTES];
        // The last byte is the terminating NUL.
        let length = name.len().min(NAME_BYTES - 1);
        payload[..length].copy_from_slice(&name[..length]);
        self.write_notify(NOTIFY_PROCESS, time_ns, pid, &payload)
    }

    /// Writes the time of day at a time of the recording's clock.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn time_of_day(&mut self, time_ns: u64, since_epoch: Duration) -> io::Result<()> {
        let mut payload = [0; 8];
        payload[..4].copy_from_slice(&(since_epoch.as_secs() as u32).to_le_bytes());
        payload[4..].copy_from_slice(&since_epoch.subsec_nanos().to_le_bytes());
        self.write_notify(NOTIFY_TIMESTAMP, time_ns, 0, &payload)
    }

    /// Records that events were lost here, with a message and a gap in the sequence numbers.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn lost(&mut self, time_ns: u64, events: u64) -> io::Result<()> {
        // Readers interpret a larger step as a backward one.
        let step = events.min(1 << 30) as u32;
        self.sequence = self.sequence.wrapping_add(step);
        self.write_notify(NOTIFY_MESSAGE, time_ns, 0, format!("{events} events lost").as_bytes())
    }

    /// The file itself.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.file
    }

    fn write_notify(&mut self, code: u16, time_ns: u64, pid: u32, payload: &[u8]) -> io::Result<()> {
        let (cpu, device) = (self.cpu, self.device);
        let note = Event { time_ns, pid, cpu, device, ..Event::new(Action::Queue) };
        let action = u32::from(NOTIFY) << 16 | u32::from(code);
        self.file.write_all(&header(&note, action, 0, payload.len()))?;
        self.file.write_all(payload)
    }
}

/// The files of a recording, one for each CPU, with the events of all of them in the order of time.
#[derive(Debug)]
pub struct BlktraceWriter<W> {
    files: Vec<CpuFile<W>>,
    named_pids: FxHashSet<u32>,
}

impl<W: Write> BlktraceWriter<W> {
    /// A writer with one file for each CPU, from 0 on.
    #[must_use]
    pub fn new(files: Vec<W>) -> BlktraceWriter<W> {
        let mut writer = BlktraceWriter { files: Vec::new(), named_pids: FxHashSet::default() };
        files.into_iter().for_each(|file| writer.add(file));
        writer
    }

    /// Number of CPUs with files.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.files.len()
    }

    /// Adds the file of the next CPU.
    pub fn add(&mut self, file: W) {
        self.files.push(CpuFile::new(file, self.files.len() as u32, Device::default()));
    }

    /// Writes an event to the file of its CPU, preceded by the name of its task if it is the task's first event.
    ///
    /// # Errors
    /// If it cannot be written, or its CPU has no file.
    pub fn write(&mut self, event: &Event, names: &Names) -> io::Result<()> {
        let Some(file) = self.files.get_mut(event.cpu as usize) else {
            return Err(io::Error::other(format!("there is no file for CPU {}", event.cpu)));
        };
        if let Some(name) = names.get(event.pid).filter(|_| self.named_pids.insert(event.pid)) {
            file.device = event.device;
            file.name(event.time_ns, event.pid, name.as_bytes())?;
        }
        file.event(event)
    }

    /// Flushes buffered events and returns the files.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn finish(self) -> io::Result<Vec<W>> {
        let flushed = self.files.into_iter().map(|CpuFile { mut file, .. }| file.flush().map(|()| file));
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

/// The category bits of an event. The kernel sets "read" on everything that is not a write.
fn category(event: &Event) -> u16 {
    let direction = if event.flags.has(Flags::WRITE) { 0 } else { Flags::READ.bits() };
    let action_bits = match event.action {
        Action::Insert => 0x0010 | FS,
        Action::Requeue => 0x0020 | FS,
        Action::Issue => 0x0040 | FS,
        Action::Complete => 0x0080 | FS,
        Action::Split | Action::Bounce => 0,
        _ => 0x0010,
    };
    let flags = event.flags.bits();
    // A passthrough command is not a file-system request.
    let action_bits = if event.flags.has(Flags::PASSTHROUGH) { action_bits & !FS } else { action_bits };
    flags | direction | action_bits
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
