//! blktrace's binary records, versions 7 and 8, in either byte order: one file for each CPU, or one merged stream.
//!
//! Layout: a header of 48 bytes (version 7) or 64 bytes (version 8), then the payload. Numbers are in the byte order of the
//! recording machine, numbers in payloads big endian.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hoistway_blk::bio::IoPriority;

use super::error::{Losses, Place, ReadError};
use super::event::{Action, Device, Event, Flags, Payload};
use super::input::Input;
use super::names::Names;
use super::order::Order;

/// The magic number without its version.
pub(crate) const MAGIC: u32 = 0x6561_7400;
/// Category of records that are no events of the device.
pub(crate) const NOTIFY: u16 = 0x0400;
/// Bit of an action's code: the payload begins with the id of a cgroup.
pub(crate) const HAS_CGROUP: u16 = 0x100;
/// Notify: the name of a process.
pub(crate) const NOTIFY_PROCESS: u16 = 0;
/// Notify: time of day.
pub(crate) const NOTIFY_TIMESTAMP: u16 = 1;
/// Notify: a message.
pub(crate) const NOTIFY_MESSAGE: u16 = 2;
/// Bytes of a header of version 7.
pub(crate) const HEADER_BYTES: usize = 48;
const HEADER_BYTES_MAX: usize = 64;
/// What ftrace's `trace` file begins with while its tracer `blk` writes binary records.
const TRACER_HEAD: &[u8] = b"# tracer: blk\n#\n";
/// Events of several CPUs in one file may be so far from their order.
const WINDOW_NS: u64 = 1_000_000_000;

/// Whether bytes begin as a recording does: with the magic number and a version that is known.
pub(crate) fn is_recording(head: &[u8]) -> bool {
    let head = head.strip_prefix(TRACER_HEAD).unwrap_or(head);
    head.first_chunk().is_some_and(|magic| layout(*magic).is_some())
}

/// Version and whether the byte order is the other one.
fn layout(magic: [u8; 4]) -> Option<(u8, bool)> {
    let is_known = |number: u32| number & !0xff == MAGIC && matches!(number & 0xff, 7 | 8);
    let (little, big) = (u32::from_le_bytes(magic), u32::from_be_bytes(magic));
    if is_known(little) { Some((little as u8, false)) } else { is_known(big).then_some((big as u8, true)) }
}

/// The order of one CPU's records.
#[derive(Debug)]
struct Lane {
    device: u32,
    cpu: u32,
    /// Of the last event; 0 before the first one.
    sequence: u32,
    time_ns: u64,
    /// The lowest and the highest number, those of messages included.
    seen: (u32, u32),
}

/// A header in this machine's numbers.
struct Header {
    version: u8,
    is_big_endian: bool,
    sequence: u32,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    code: u16,
    category: u16,
    pid: u32,
    device: u32,
    cpu: u32,
    error: u16,
    payload_bytes: usize,
}

impl Header {
    /// None if the magic number is wrong, or there are too few bytes.
    #[inline]
    fn read(bytes: &[u8]) -> Option<Header> {
        let (version, is_big_endian) = layout(*bytes.first_chunk()?)?;
        if version == 7 {
            let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
            Some(if is_big_endian { Header::version_7::<true>(bytes) } else { Header::version_7::<false>(bytes) })
        } else {
            let bytes: &[u8; HEADER_BYTES_MAX] = bytes.first_chunk()?;
            Some(if is_big_endian { Header::version_8::<true>(bytes) } else { Header::version_8::<false>(bytes) })
        }
    }

    #[inline]
    fn version_7<const BIG: bool>(bytes: &[u8; HEADER_BYTES]) -> Header {
        let action = number::<4, BIG>(bytes, 28) as u32;
        Header {
            version: 7,
            is_big_endian: BIG,
            sequence: number::<4, BIG>(bytes, 4) as u32,
            time_ns: number::<8, BIG>(bytes, 8),
            sector: number::<8, BIG>(bytes, 16),
            bytes: number::<4, BIG>(bytes, 24) as u32,
            code: action as u16,
            category: (action >> 16) as u16,
            pid: number::<4, BIG>(bytes, 32) as u32,
            device: number::<4, BIG>(bytes, 36) as u32,
            cpu: number::<4, BIG>(bytes, 40) as u32,
            error: number::<2, BIG>(bytes, 44) as u16,
            payload_bytes: number::<2, BIG>(bytes, 46) as usize,
        }
    }

    #[inline]
    fn version_8<const BIG: bool>(bytes: &[u8; HEADER_BYTES_MAX]) -> Header {
        let action = number::<8, BIG>(bytes, 32);
        Header {
            version: 8,
            is_big_endian: BIG,
            sequence: number::<4, BIG>(bytes, 4) as u32,
            time_ns: number::<8, BIG>(bytes, 8),
            sector: number::<8, BIG>(bytes, 16),
            bytes: number::<4, BIG>(bytes, 24) as u32,
            code: action as u16,
            category: (action >> 32) as u16,
            pid: number::<4, BIG>(bytes, 28) as u32,
            device: number::<4, BIG>(bytes, 40) as u32,
            cpu: number::<4, BIG>(bytes, 44) as u32,
            error: number::<2, BIG>(bytes, 48) as u16,
            payload_bytes: number::<2, BIG>(bytes, 50) as usize,
        }
    }

    fn header_bytes(&self) -> usize {
        if self.version == 7 { HEADER_BYTES } else { HEADER_BYTES_MAX }
    }
}

/// A number of `COUNT` bytes at a place.
#[inline]
fn number<const COUNT: usize, const BIG: bool>(bytes: &[u8], at: usize) -> u64 {
    let mut whole = [0; 8];
    if BIG {
        whole[8 - COUNT..].copy_from_slice(&bytes[at..at + COUNT]);
        u64::from_be_bytes(whole)
    } else {
        whole[..COUNT].copy_from_slice(&bytes[at..at + COUNT]);
        u64::from_le_bytes(whole)
    }
}

/// One file.
#[derive(Debug)]
struct BinaryFile {
    input: Input,
    lanes: Vec<Lane>,
    /// Index of the lane of the last record.
    lane: usize,
    records: u64,
    /// Whether its records have to be in the order of time whichever CPU they are of.
    is_one_of_many: bool,
    time_ns: u64,
}

impl BinaryFile {
    fn new(mut input: Input) -> Result<BinaryFile, ReadError> {
        if input.fill(TRACER_HEAD.len())?.starts_with(TRACER_HEAD) {
            input.consume(TRACER_HEAD.len());
        }
        Ok(BinaryFile { input, lanes: Vec::new(), lane: 0, records: 0, is_one_of_many: false, time_ns: 0 })
    }

    fn error(&self, message: String, expected: &str) -> ReadError {
        let place = Place::Record { number: self.records, byte: self.input.position() };
        ReadError::at(self.input.name(), place, message, expected)
    }

    fn next(&mut self, names: &mut Names, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        loop {
            let bytes = self.input.fill(HEADER_BYTES_MAX)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            self.records += 1;
            let Some(header) = Header::read(bytes) else { return self.ending(losses) };
            let length = header.header_bytes() + header.payload_bytes;
            let bytes = self.input.fill(length)?;
            if bytes.len() < length {
                losses.truncated += 1;
                let rest = bytes.len();
                self.input.consume(rest);
                return Ok(None);
            }
            let event = event(&header, &bytes[header.header_bytes()..length], names, losses);
            // Notes have no sequence number, but messages that were recorded through ftrace.
            if header.category & NOTIFY == 0 || header.sequence != 0 {
                self.check_order(&header, losses)?;
            }
            self.input.consume(length);
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// What is behind the last whole record.
    #[cold]
    fn ending(&mut self, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        let rest = self.input.fill(HEADER_BYTES_MAX)?;
        let is_known = rest.first_chunk().is_none_or(|magic| layout(*magic).is_some());
        if is_known && rest.len() < HEADER_BYTES_MAX {
            losses.truncated += 1;
            let count = rest.len();
            self.input.consume(count);
            return Ok(None);
        }
        let magic = u32::from_le_bytes(*rest.first_chunk().unwrap_or(&[0; 4]));
        let message = format!("this is no record: its magic number is {magic:#010x}");
        Err(self.error(message, "0x65617407 or 0x65617408, in either byte order"))
    }

    /// Compares with the last record of this CPU. Records of ftrace have no sequence numbers and no CPU. Messages count for the
    /// losses and have no order: blkparse merges them before the events around them, and leaves their times as they were.
    fn check_order(&mut self, header: &Header, losses: &mut Losses) -> Result<(), ReadError> {
        let is_event = header.category & NOTIFY == 0;
        if is_event && self.is_one_of_many && header.time_ns < self.time_ns {
            return Err(self.backwards(header.time_ns, self.time_ns));
        }
        if is_event {
            self.time_ns = header.time_ns;
        }
        if header.sequence == 0 {
            return Ok(());
        }
        let is_its = |lane: &Lane| lane.cpu == header.cpu && lane.device == header.device;
        if !self.lanes.get(self.lane).is_some_and(is_its) {
            let Some(at) = self.lanes.iter().position(is_its) else {
                return self.new_lane(header, is_event);
            };
            self.lane = at;
        }
        let sequence = header.sequence;
        let (last, last_ns) = (self.lanes[self.lane].sequence, self.lanes[self.lane].time_ns);
        let gap = sequence.wrapping_sub(last);
        if is_event && last > 0 && (gap == 0 || gap > u32::MAX / 2) {
            return Err(self
                .error(format!("the sequence number goes from {last} back to {sequence}"), "one recording in a file"));
        }
        if is_event && header.time_ns < last_ns {
            return Err(self.backwards(header.time_ns, last_ns));
        }
        let lane = &mut self.lanes[self.lane];
        let (above, below) = (sequence.wrapping_sub(lane.seen.1), lane.seen.0.wrapping_sub(sequence));
        if (1..=u32::MAX / 2).contains(&above) {
            losses.lost_events += u64::from(above) - 1;
            lane.seen.1 = sequence;
        } else if (1..=u32::MAX / 2).contains(&below) {
            losses.lost_events += u64::from(below) - 1;
            lane.seen.0 = sequence;
        } else {
            // It was missed when a later one came first.
            losses.lost_events = losses.lost_events.saturating_sub(1);
        }
        if is_event {
            (lane.sequence, lane.time_ns) = (sequence, header.time_ns);
        }
        Ok(())
    }

    fn backwards(&self, time_ns: u64, last_ns: u64) -> ReadError {
        let message = format!("the time goes back by {} ns", last_ns - time_ns);
        self.error(message, "records of a CPU in the order of time")
    }

    fn new_lane(&mut self, header: &Header, is_event: bool) -> Result<(), ReadError> {
        const LANES_MAX: usize = 1 << 16;
        if self.lanes.len() == LANES_MAX {
            return Err(self.error(format!("more than {LANES_MAX} CPUs"), "a recording of one machine"));
        }
        self.lane = self.lanes.len();
        let (sequence, time_ns) = if is_event { (header.sequence, header.time_ns) } else { (0, 0) };
        let seen = (header.sequence, header.sequence);
        self.lanes.push(Lane { device: header.device, cpu: header.cpu, sequence, time_ns, seen });
        Ok(())
    }
}

/// The event of a record; none if it is a note or unknown.
#[inline]
fn event(header: &Header, payload: &[u8], names: &mut Names, losses: &mut Losses) -> Option<Event> {
    let (cgroup, payload) = match payload.split_first_chunk() {
        Some((id, rest)) if header.code & HAS_CGROUP != 0 => {
            (if header.is_big_endian { u64::from_be_bytes(*id) } else { u64::from_le_bytes(*id) }, rest)
        }
        _ => (0, payload),
    };
    let code = header.code & !HAS_CGROUP;
    if header.category & NOTIFY != 0 {
        note(code, header.pid, payload, names, losses);
        return None;
    }
    let Some(action) = Action::from_code(code) else {
        losses.unknown_actions += 1;
        return None;
    };
    let big = |at: usize| payload.get(at..at + 8).map_or(0, |bytes| number::<8, true>(bytes, 0));
    let device = |at: usize| payload.get(at..at + 4).map_or(0, |bytes| number::<4, true>(bytes, 0) as u32);
    let payload = match action {
        Action::Unplug | Action::UnplugScheduled => Payload::Requests(big(0)),
        Action::Split => Payload::Rest(big(0)),
        // The device that the record is about comes first in it, as it is in the header.
        Action::Remap => Payload::From { device: Device::from_number(device(0)), sector: big(8) },
        _ => Payload::None,
    };
    Some(Event {
        time_ns: header.time_ns,
        sector: header.sector,
        bytes: header.bytes,
        pid: header.pid,
        device: Device::from_number(header.device),
        cpu: header.cpu,
        error: header.error,
        action,
        flags: Flags::from_category(header.category).of_bytes(header.bytes),
        priority: IoPriority::UNSET,
        cgroup,
        payload,
    })
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
    files: Vec<BinaryFile>,
    /// The next event of each file.
    next: Vec<Option<Event>>,
    /// Times of those, the earliest first; of equal times that of the first file.
    times: BinaryHeap<Reverse<(u64, usize)>>,
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
        let mut files = inputs.into_iter().map(BinaryFile::new).collect::<Result<Vec<_>, _>>()?;
        let is_one_of_many = files.len() > 1;
        files.iter_mut().for_each(|file| file.is_one_of_many = is_one_of_many);
        let next = vec![None; files.len()];
        Ok(Blktrace { files, next, times: BinaryHeap::new(), order: Order::new(WINDOW_NS), is_started: false })
    }

    pub(crate) fn next(&mut self, names: &mut Names, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        if self.files.len() > 1 { self.next_of_many(names, losses) } else { self.next_of_one(names, losses) }
    }

    fn next_of_many(&mut self, names: &mut Names, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        if !self.is_started {
            self.is_started = true;
            for at in 0..self.files.len() {
                self.next[at] = self.files[at].next(names, losses)?;
                self.times.extend(self.next[at].map(|event| Reverse((event.time_ns, at))));
            }
        }
        let Some(mut first) = self.times.peek_mut() else { return Ok(None) };
        let at = first.0.1;
        let event = self.next[at].take();
        self.next[at] = self.files[at].next(names, losses)?;
        match &self.next[at] {
            Some(next) => *first = Reverse((next.time_ns, at)),
            None => drop(std::collections::binary_heap::PeekMut::pop(first)),
        }
        Ok(event)
    }

    fn next_of_one(&mut self, names: &mut Names, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        let Some(file) = self.files.first_mut() else { return Ok(None) };
        loop {
            if let Some(event) = self.order.pop() {
                return Ok(Some(event));
            }
            let Some(event) = file.next(names, losses)? else {
                losses.step_back_ns = self.order.step_back_ns();
                return Ok(self.order.pop_any());
            };
            self.order.reached(event.time_ns);
            if let Err(late_ns) = self.order.push(event) {
                let message = format!("the time goes back by {late_ns} ns");
                return Err(file.error(message, "CPUs that differ by at most 1 s"));
            }
        }
    }
}
