//! Records of virtual SCSI disks, as written by vscsiStats: versions 1 and 2, little endian, without a file header.

use hoistway_blk::bio::IoPriority;

use super::error::{Losses, Position, ReadError};
use super::event::{Action, Device, Event, Flags, Payload};
use super::input::Input;
use super::sorter::Sorter;

/// Records are nearly sorted: an I/O may be this far out of order, ns.
const WINDOW_NS: u64 = 1_000_000_000;
/// Number of records examined by format detection.
const RECORDS_TESTED: usize = 64;
/// With fewer records the format is not recognised.
const RECORDS_MIN: usize = 4;
/// Largest plausible time between successive records, in microseconds: a day.
const STEP_US_MAX: u64 = 86_400_000_000;
/// Largest plausible I/O, in bytes.
const LENGTH_MAX: u32 = 256 << 20;

/// A version of the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// Version 1.
    V1,
    /// Version 2, with response times. The record length depends on the compiler of the program that wrote it.
    V2 {
        /// Length of a record in bytes.
        bytes: usize,
    },
}

impl Layout {
    const ALL: [Layout; 3] = [Layout::V1, Layout::V2 { bytes: 40 }, Layout::V2 { bytes: 48 }];

    const fn bytes(self) -> usize {
        match self {
            Layout::V1 => 32,
            Layout::V2 { bytes } => bytes,
        }
    }

    const fn version(self) -> u16 {
        match self {
            Layout::V1 => 1,
            Layout::V2 { .. } => 2,
        }
    }
}

/// A record.
struct Record {
    version: u16,
    command: u16,
    bytes: u32,
    sector: u64,
    time_us: u64,
    response_us: Option<u64>,
}

impl Record {
    fn decode(bytes: &[u8], layout: Layout) -> Record {
        let u16_at = |offset: usize| u16::from_le_bytes(*bytes[offset..].first_chunk().expect("within the record"));
        let u32_at = |offset: usize| u32::from_le_bytes(*bytes[offset..].first_chunk().expect("within the record"));
        let u64_at = |offset: usize| u64::from_le_bytes(*bytes[offset..].first_chunk().expect("within the record"));
        let (sector, time_us) = (u64_at(16), u64_at(24));
        match layout {
            Layout::V1 => {
                let (version, command) = (u16_at(14) >> 8, u16_at(12));
                Record { version, command, bytes: u32_at(4), sector, time_us, response_us: None }
            }
            Layout::V2 { .. } => {
                let (version, command, response_us) = (u16_at(2) >> 8, u16_at(0), Some(u64_at(32)));
                Record { version, command, bytes: u32_at(8), sector, time_us, response_us }
            }
        }
    }

    fn command(&self) -> Command {
        match self.command {
            0x08 | 0x28 | 0x88 | 0xa8 => Command::Read,
            0x0a | 0x2a | 0x2e | 0x8a | 0x8e | 0xaa => Command::Write,
            0x35 | 0x91 => Command::Flush,
            _ => Command::Other,
        }
    }

    /// Whether its fields are plausible for an I/O or a command without data.
    fn is_plausible(&self, layout: Layout) -> bool {
        let moves_data = matches!(self.command(), Command::Read | Command::Write);
        let length_fits = if moves_data { self.bytes.is_multiple_of(512) } else { true };
        self.version == layout.version()
            && self.command <= 0xff
            && length_fits
            && self.bytes <= LENGTH_MAX
            && self.response_us.is_none_or(|us| us < STEP_US_MAX)
    }
}

/// The kind of a SCSI command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    Read,
    Write,
    Flush,
    /// Any other command, which is counted and omitted.
    Other,
}

/// The layout in which the beginning of a file is plausible, if any.
pub(crate) fn detect_layout(head: &[u8]) -> Option<Layout> {
    Layout::ALL.into_iter().find(|&layout| {
        let mut last_us: Option<u64> = None;
        let (mut records, mut ios) = (0, 0);
        for bytes in head.chunks_exact(layout.bytes()).take(RECORDS_TESTED) {
            let record = Record::decode(bytes, layout);
            let is_near = last_us.is_none_or(|last_us| record.time_us.abs_diff(last_us) < STEP_US_MAX);
            if !record.is_plausible(layout) || !is_near {
                return false;
            }
            last_us = Some(record.time_us);
            records += 1;
            ios += usize::from(record.command() != Command::Other);
        }
        records >= RECORDS_MIN && 2 * ios > records
    })
}

/// Reader of vSCSI records.
#[derive(Debug)]
pub(crate) struct Vscsi {
    input: Input,
    layout: Layout,
    sorter: Sorter,
    records: u64,
    is_at_end: bool,
}

impl Vscsi {
    pub(crate) fn new(mut input: Input) -> Result<Vscsi, ReadError> {
        let head = input.fill(RECORDS_TESTED * 48)?;
        let Some(layout) = detect_layout(head) else {
            return Err(ReadError::file(input.name(), "these are not vSCSI records", "records of version 1 or 2"));
        };
        Ok(Vscsi { input, layout, sorter: Sorter::new(WINDOW_NS), records: 0, is_at_end: false })
    }

    pub(crate) fn next(&mut self, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        loop {
            if let Some(event) = if self.is_at_end { self.sorter.pop_remaining() } else { self.sorter.pop() } {
                return Ok(Some(event));
            }
            if self.is_at_end {
                losses.step_back_ns = self.sorter.step_back_ns();
                return Ok(None);
            }
            self.read_record(losses)?;
        }
    }

    fn read_record(&mut self, losses: &mut Losses) -> Result<(), ReadError> {
        let (length, byte) = (self.layout.bytes(), self.input.position());
        let bytes = self.input.fill(length)?;
        if bytes.len() < length {
            losses.truncated += u64::from(!bytes.is_empty());
            self.is_at_end = true;
            return Ok(());
        }
        let record = Record::decode(bytes, self.layout);
        self.input.consume(length);
        self.records += 1;
        let position = Position::Record { number: self.records, byte };
        if !record.is_plausible(self.layout) {
            let message = "this is not a record: its version, command or length is invalid";
            let expected = format!("records of version {}, of {length} bytes each", self.layout.version());
            return Err(ReadError::at(self.input.name(), position, message, expected));
        }
        let (flags, completion_flags) = match record.command() {
            Command::Read => (Flags::READ, Flags::READ),
            Command::Write => (Flags::WRITE, Flags::WRITE),
            Command::Flush => (Flags::WRITE | Flags::FLUSH | Flags::SYNC, Flags::WRITE | Flags::SYNC),
            Command::Other => {
                losses.unknown_actions += 1;
                return Ok(());
            }
        };
        let is_flush = record.command() == Command::Flush;
        if record.bytes == 0 && !is_flush {
            losses.empty_ios += 1;
            return Ok(());
        }
        let queued = Event {
            time_ns: record.time_us.saturating_mul(1000),
            sector: if is_flush { 0 } else { record.sector },
            bytes: if is_flush { 0 } else { record.bytes },
            pid: 0,
            device: Device { major: 259, minor: 0 },
            cpu: 0,
            error: 0,
            action: Action::Queue,
            flags,
            priority: IoPriority::UNSET,
            cgroup: 0,
            payload: Payload::None,
        };
        let completed = record.response_us.map(|response_us| Event {
            time_ns: queued.time_ns.saturating_add(response_us * 1000),
            action: Action::Complete,
            flags: completion_flags,
            ..queued
        });
        self.sorter.advance_to(queued.time_ns);
        for event in [Some(queued), completed].into_iter().flatten() {
            self.sorter.push(event).map_err(|late_ns| {
                let message = format!("the time goes back by {late_ns} ns");
                ReadError::at(self.input.name(), position, message, "records that are sorted by time to within 1 s")
            })?;
        }
        Ok(())
    }
}
