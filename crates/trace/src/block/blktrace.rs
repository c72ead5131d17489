//! blktrace's binary records, versions 7 and 8, in either byte order: one file for each CPU, or one merged stream.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use hoistway_blk::bio::IoPriority;

use super::error::{Losses, Position, ReadError};
use super::event::{Action, Device, Event, Flags, Payload};
use super::header::{
    HAS_CGROUP, HEADER_BYTES_MAX, Header, NOTIFY, NOTIFY_MESSAGE, NOTIFY_PROCESS, NOTIFY_TIMESTAMP, layout, read_number,
};
use super::input::Input;
use super::lanes::{Disorder, Lanes};
use super::names::Names;
use super::sorter::Sorter;

/// What ftrace's `trace` file begins with while its tracer `blk` writes binary records.
const TRACER_HEAD: &[u8] = b"# tracer: blk\n#\n";
/// Events of several CPUs in one file may be so far from their order.
const WINDOW_NS: u64 = 1_000_000_000;

/// Whether bytes begin as a recording does: with the magic number and a version that is known.
pub(crate) fn is_recording(head: &[u8]) -> bool {
    let head = head.strip_prefix(TRACER_HEAD).unwrap_or(head);
    head.first_chunk().is_some_and(|magic| layout(*magic).is_some())
}

/// One file.
#[derive(Debug)]
struct BinaryFile {
    input: Input,
    lanes: Lanes,
    records: u64,
    /// The error after the events that have been read; returned by the next call.
    failure: Option<ReadError>,
}

impl BinaryFile {
    fn new(mut input: Input, is_one_of_many: bool) -> Result<BinaryFile, ReadError> {
        if input.fill(TRACER_HEAD.len())?.starts_with(TRACER_HEAD) {
            input.consume(TRACER_HEAD.len());
        }
        Ok(BinaryFile { input, lanes: Lanes::new(is_one_of_many), records: 0, failure: None })
    }

    fn error(&self, message: String, expected: &str) -> ReadError {
        let position = Position::Record { number: self.records, byte: self.input.position() };
        ReadError::at(self.input.name(), position, message, expected)
    }

    /// Reads the next events into an empty block, which stays empty at the end of the file. An error is kept until the
    /// events before it have been returned.
    fn read_block(&mut self, block: &mut Block, names: &mut Names, losses: &mut Losses) -> Result<(), ReadError> {
        block.clear();
        while block.is_empty() {
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            let bytes = self.input.fill(HEADER_BYTES_MAX)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let mut offset = 0;
            // Length of the first record that is incomplete in the buffer.
            let mut needed = 0;
            let mut disorder = None;
            while !block.is_full() {
                let Some(header) = Header::read(&bytes[offset..]) else { break };
                let (payload_offset, length) = (header.header_bytes(), header.header_bytes() + header.payload_bytes);
                let Some(record) = bytes.get(offset..offset + length) else {
                    needed = length;
                    break;
                };
                self.records += 1;
                // Notes have no sequence number, but messages that were recorded through ftrace.
                if (header.category & NOTIFY == 0 || header.sequence != 0)
                    && let Err(error) = self.lanes.check(&header, losses)
                {
                    disorder = Some(error);
                    break;
                }
                decode_record(&header, &record[payload_offset..], block, names, losses);
                offset += length;
            }
            self.input.consume(offset);
            if let Some(Disorder { message, expected }) = disorder {
                self.failure = Some(self.error(message, expected));
            } else if offset == 0 && needed == 0 {
                return self.check_trailing_bytes(losses);
            } else if offset == 0 && self.input.fill(needed)?.len() < needed {
                losses.truncated += 1;
                self.input.consume_all();
                return Ok(());
            }
        }
        Ok(())
    }

    /// Classifies the bytes after the last complete record: a truncated record, or no record at all.
    #[cold]
    fn check_trailing_bytes(&mut self, losses: &mut Losses) -> Result<(), ReadError> {
        self.records += 1;
        let rest = self.input.fill(HEADER_BYTES_MAX)?;
        let is_known = rest.first_chunk().is_none_or(|magic| layout(*magic).is_some());
        if is_known && rest.len() < HEADER_BYTES_MAX {
            losses.truncated += 1;
            self.input.consume_all();
            return Ok(());
        }
        let magic = u32::from_le_bytes(*rest.first_chunk().unwrap_or(&[0; 4]));
        let message = format!("this is not a record: its magic number is {magic:#010x}");
        Err(self.error(message, "0x65617407 or 0x65617408, in either byte order"))
    }
}

/// Events that were read at once.
#[derive(Debug)]
struct Block {
    events: Box<[Event]>,
    /// The next one.
    next: usize,
    end: usize,
}

impl Block {
    const EVENTS: usize = 256;

    fn new() -> Block {
        Block { events: vec![Event::new(Action::Queue); Block::EVENTS].into(), next: 0, end: 0 }
    }

    fn clear(&mut self) {
        (self.next, self.end) = (0, 0);
    }

    const fn is_empty(&self) -> bool {
        self.end == self.next
    }

    const fn is_full(&self) -> bool {
        self.end == Block::EVENTS
    }

    fn remaining(&self) -> &[Event] {
        &self.events[self.next..self.end]
    }
}

/// Decodes a record. An event is written into the block field by field: building a value and copying it would stall on
/// store forwarding of each field.
#[inline]
fn decode_record(header: &Header, payload: &[u8], block: &mut Block, names: &mut Names, losses: &mut Losses) {
    let (cgroup, payload) = match payload.split_first_chunk() {
        Some((id, rest)) if header.code & HAS_CGROUP != 0 => {
            (if header.is_big_endian { u64::from_be_bytes(*id) } else { u64::from_le_bytes(*id) }, rest)
        }
        _ => (0, payload),
    };
    let code = header.code & !HAS_CGROUP;
    if header.category & NOTIFY != 0 {
        return decode_notify(code, header.pid, payload, names, losses);
    }
    let Some(action) = Action::from_code(code) else {
        losses.unknown_actions += 1;
        return;
    };
    let event = &mut block.events[block.end];
    block.end += 1;
    event.time_ns = header.time_ns;
    event.sector = header.sector;
    event.bytes = header.bytes;
    event.pid = header.pid;
    event.device = Device::from_number(header.device);
    event.cpu = header.cpu;
    event.error = header.error;
    event.action = action;
    event.flags = Flags::from_category(header.category).without_read_if_empty(header.bytes);
    event.priority = IoPriority::UNSET;
    event.cgroup = cgroup;
    event.payload = decode_payload(action, payload);
}

/// Decodes the additional data of an event, which is big endian.
#[inline]
fn decode_payload(action: Action, payload: &[u8]) -> Payload {
    let be_u64 = |offset: usize| payload.get(offset..offset + 8).map_or(0, |bytes| read_number::<8, true>(bytes, 0));
    let be_u32 =
        |offset: usize| payload.get(offset..offset + 4).map_or(0, |bytes| read_number::<4, true>(bytes, 0) as u32);
    match action {
        Action::Unplug | Action::UnplugScheduled => Payload::Requests(be_u64(0)),
        Action::Split => Payload::Rest(be_u64(0)),
        // The device that the record is about comes first in it, as it is in the header.
        Action::Remap => Payload::From { device: Device::from_number(be_u32(0)), sector: be_u64(8) },
        _ => Payload::None,
    }
}

#[cold]
fn decode_notify(code: u16, pid: u32, payload: &[u8], names: &mut Names, losses: &mut Losses) {
    match code {
        NOTIFY_PROCESS => {
            let end = payload.iter().position(|&byte| byte == 0).unwrap_or(payload.len());
            names.learn(pid, &payload[..end]);
        }
        NOTIFY_TIMESTAMP => {}
        NOTIFY_MESSAGE => {
            losses.messages += 1;
            losses.bfq_messages += u64::from(payload.starts_with(b"bfq"));
        }
        _ => losses.unknown_actions += 1,
    }
}

/// All files of a recording.
#[derive(Debug)]
pub(crate) struct Blktrace {
    files: Vec<(BinaryFile, Block)>,
    /// Index of the file with the next event, unless the first of `other_files` is earlier.
    current: usize,
    /// Time and file of the next event of each other file that has one, the earliest first; of equal times that of the first file.
    other_files: BinaryHeap<Reverse<(u64, usize)>>,
    /// Sorts the events of a single file, which may hold several CPUs.
    sorter: Sorter,
    is_started: bool,
}

impl Blktrace {
    /// Files of several CPUs, or one file of any.
    ///
    /// # Errors
    /// If one cannot be read.
    pub(crate) fn new(inputs: Vec<Input>) -> Result<Blktrace, ReadError> {
        let is_one_of_many = inputs.len() > 1;
        let file = |input| Ok((BinaryFile::new(input, is_one_of_many)?, Block::new()));
        let files = inputs.into_iter().map(file).collect::<Result<Vec<_>, _>>()?;
        let sorter = Sorter::new(WINDOW_NS);
        Ok(Blktrace { files, current: 0, other_files: BinaryHeap::new(), sorter, is_started: false })
    }

    #[inline]
    pub(crate) fn next(&mut self, names: &mut Names, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        if self.files.len() == 1 {
            return self.next_of_single_file(names, losses);
        }
        loop {
            let (_, block) = &mut self.files[self.current];
            if let Some(&event) = block.remaining().first() {
                let own_key = (event.time_ns, self.current);
                if self.other_files.peek().is_none_or(|other| own_key <= other.0) {
                    block.next += 1;
                    return Ok(Some(event));
                }
            }
            if !self.select_file(names, losses)? {
                return Ok(None);
            }
        }
    }

    /// Selects the file with the next event; returns false if there is none.
    fn select_file(&mut self, names: &mut Names, losses: &mut Losses) -> Result<bool, ReadError> {
        if !self.is_started {
            self.is_started = true;
            for (index, (file, block)) in self.files.iter_mut().enumerate().skip(1) {
                file.read_block(block, names, losses)?;
                self.other_files.extend(block.remaining().first().map(|event| Reverse((event.time_ns, index))));
            }
        }
        let (file, block) = &mut self.files[self.current];
        if block.is_empty() {
            file.read_block(block, names, losses)?;
        }
        let own_next = block.remaining().first().map(|event| Reverse((event.time_ns, self.current)));
        match (own_next, self.other_files.peek_mut()) {
            (Some(own_next), Some(mut earliest_other)) => {
                if own_next < *earliest_other {
                    self.current = std::mem::replace(&mut *earliest_other, own_next).0.1;
                }
                Ok(true)
            }
            (None, Some(earliest_other)) => {
                self.current = PeekMut::pop(earliest_other).0.1;
                Ok(true)
            }
            (own_next, None) => Ok(own_next.is_some()),
        }
    }

    fn next_of_single_file(&mut self, names: &mut Names, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        let Some((file, block)) = self.files.first_mut() else { return Ok(None) };
        loop {
            if let Some(event) = self.sorter.pop() {
                return Ok(Some(event));
            }
            file.lanes.earliest_ns = self.sorter.last_ns();
            file.read_block(block, names, losses)?;
            if block.is_empty() {
                losses.step_back_ns = self.sorter.step_back_ns();
                return Ok(self.sorter.pop_remaining());
            }
            for event in block.remaining() {
                self.sorter.advance_to(event.time_ns);
                self.sorter.push(*event).expect("a file's events are not before those that were handed on");
            }
        }
    }
}
