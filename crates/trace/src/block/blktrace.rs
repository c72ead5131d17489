//! blktrace's binary records, versions 7 and 8, in either byte order: one file for each CPU, or one merged stream.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use hoistway_blk::bio::IoPriority;

use super::error::{Losses, Place, ReadError};
use super::event::{Action, Device, Event, Flags, Payload};
use super::header::{
    HAS_CGROUP, HEADER_BYTES_MAX, Header, NOTIFY, NOTIFY_MESSAGE, NOTIFY_PROCESS, NOTIFY_TIMESTAMP, layout, number,
};
use super::input::Input;
use super::lanes::{Disorder, Lanes};
use super::names::Names;
use super::order::Order;

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
    /// What is wrong behind the events that have been read.
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
        let place = Place::Record { number: self.records, byte: self.input.position() };
        ReadError::at(self.input.name(), place, message, expected)
    }

    /// Reads the next events into an empty block, which stays empty at the end of the file. What is wrong is an error when the events
    /// before it have been read.
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
            let mut at = 0;
            // Bytes of the first record that is not all there.
            let mut needed = 0;
            let mut disorder = None;
            while !block.is_full() {
                let Some(header) = Header::read(&bytes[at..]) else { break };
                let (head, length) = (header.header_bytes(), header.header_bytes() + header.payload_bytes);
                let Some(record) = bytes.get(at..at + length) else {
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
                take(&header, &record[head..], block, names, losses);
                at += length;
            }
            self.input.consume(at);
            if let Some(Disorder { message, expected }) = disorder {
                self.failure = Some(self.error(message, expected));
            } else if at == 0 && needed == 0 {
                return self.ending(losses);
            } else if at == 0 && self.input.fill(needed)?.len() < needed {
                losses.truncated += 1;
                self.input.consume_all();
                return Ok(());
            }
        }
        Ok(())
    }

    /// What is behind the last whole record.
    #[cold]
    fn ending(&mut self, losses: &mut Losses) -> Result<(), ReadError> {
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

    fn left(&self) -> &[Event] {
        &self.events[self.next..self.end]
    }
}

/// Takes in a record. An event goes into the block field by field: a value that is written so and then copied as a whole would wait
/// for each of its fields.
#[inline]
fn take(header: &Header, payload: &[u8], block: &mut Block, names: &mut Names, losses: &mut Losses) {
    let (cgroup, payload) = match payload.split_first_chunk() {
        Some((id, rest)) if header.code & HAS_CGROUP != 0 => {
            (if header.is_big_endian { u64::from_be_bytes(*id) } else { u64::from_le_bytes(*id) }, rest)
        }
        _ => (0, payload),
    };
    let code = header.code & !HAS_CGROUP;
    if header.category & NOTIFY != 0 {
        return note(code, header.pid, payload, names, losses);
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
    event.flags = Flags::from_category(header.category).of_bytes(header.bytes);
    event.priority = IoPriority::UNSET;
    event.cgroup = cgroup;
    event.payload = payload_of(action, payload);
}

/// What an event has besides, in big endian.
#[inline]
fn payload_of(action: Action, payload: &[u8]) -> Payload {
    let big = |at: usize| payload.get(at..at + 8).map_or(0, |bytes| number::<8, true>(bytes, 0));
    let device = |at: usize| payload.get(at..at + 4).map_or(0, |bytes| number::<4, true>(bytes, 0) as u32);
    match action {
        Action::Unplug | Action::UnplugScheduled => Payload::Requests(big(0)),
        Action::Split => Payload::Rest(big(0)),
        // The device that the record is about comes first in it, as it is in the header.
        Action::Remap => Payload::From { device: Device::from_number(device(0)), sector: big(8) },
        _ => Payload::None,
    }
}

#[cold]
fn note(code: u16, pid: u32, payload: &[u8], names: &mut Names, losses: &mut Losses) {
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
    /// The file that the next event is of, unless that comes after the first of `others`.
    current: usize,
    /// Time and file of the next event of each other file that has one, the earliest first; of equal times that of the first file.
    others: BinaryHeap<Reverse<(u64, usize)>>,
    /// Of a single file: events of several CPUs may be in it.
    order: Order,
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
        let order = Order::new(WINDOW_NS);
        Ok(Blktrace { files, current: 0, others: BinaryHeap::new(), order, is_started: false })
    }

    #[inline]
    pub(crate) fn next(&mut self, names: &mut Names, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        if self.files.len() == 1 {
            return self.next_of_one(names, losses);
        }
        loop {
            let (_, block) = &mut self.files[self.current];
            if let Some(&event) = block.left().first() {
                let at = (event.time_ns, self.current);
                if self.others.peek().is_none_or(|other| at <= other.0) {
                    block.next += 1;
                    return Ok(Some(event));
                }
            }
            if !self.select(names, losses)? {
                return Ok(None);
            }
        }
    }

    /// Goes to the file that has the next event; false if there is none.
    fn select(&mut self, names: &mut Names, losses: &mut Losses) -> Result<bool, ReadError> {
        if !self.is_started {
            self.is_started = true;
            for (at, (file, block)) in self.files.iter_mut().enumerate().skip(1) {
                file.read_block(block, names, losses)?;
                self.others.extend(block.left().first().map(|event| Reverse((event.time_ns, at))));
            }
        }
        let (file, block) = &mut self.files[self.current];
        if block.is_empty() {
            file.read_block(block, names, losses)?;
        }
        let own = block.left().first().map(|event| Reverse((event.time_ns, self.current)));
        match (own, self.others.peek_mut()) {
            (Some(own), Some(mut first)) => {
                if own < *first {
                    self.current = std::mem::replace(&mut *first, own).0.1;
                }
                Ok(true)
            }
            (None, Some(first)) => {
                self.current = PeekMut::pop(first).0.1;
                Ok(true)
            }
            (own, None) => Ok(own.is_some()),
        }
    }

    fn next_of_one(&mut self, names: &mut Names, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        let Some((file, block)) = self.files.first_mut() else { return Ok(None) };
        loop {
            if let Some(event) = self.order.pop() {
                return Ok(Some(event));
            }
            file.lanes.earliest_ns = self.order.last_ns();
            file.read_block(block, names, losses)?;
            if block.is_empty() {
                losses.step_back_ns = self.order.step_back_ns();
                return Ok(self.order.pop_any());
            }
            for event in block.left() {
                self.order.reached(event.time_ns);
                self.order.push(*event).expect("a file's events are not before those that were handed on");
            }
        }
    }
}
