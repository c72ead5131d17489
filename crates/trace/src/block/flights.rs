//! In-flight table: matches request events to bios, and so turns events into I/Os.
//!
//! A bio is queued (Q), gets a request or is merged into one (G, M, F), is issued (D) and completes (C) together with the other
//! bios of its request, in one or several pieces. Bios are found by device and first sector: a request is a chain of bios, each of
//! which starts where the previous one ends. A split bio (X) consists of several parts, and completes when all of them have.

use hoistway_blk::bio::IoPriority;
use rustc_hash::FxHashMap;

use super::event::{Action, Device, Event, Flags, Payload};

/// Maximum in-flight I/Os; if exceeded, the older half is given up as lost.
const FLIGHTS_MAX: usize = 1 << 18;
/// Maximum in-flight I/Os at one sector; if exceeded, the oldest is given up as lost.
const CHAIN_MAX: usize = 64;
const NONE: u32 = u32::MAX;
/// EAGAIN, the error of a NOWAIT bio, as printed in text and as it may appear in a binary record.
const EAGAIN: [u16; 2] = [11, 11u16.wrapping_neg()];

/// One I/O: a bio, or a request if the recording has no bios.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flight {
    /// Number in the in-flight table; reused after completion.
    pub id: u32,
    /// Time of its submission.
    pub queue_ns: u64,
    /// When its last part got a request or was merged, so that its task could continue. [`Flight::queue_ns`] until that is known.
    pub submitted_ns: u64,
    /// When its request was inserted into a scheduler or software queue, if it was and this bio is the request's first.
    pub insert_ns: Option<u64>,
    /// When its last part was issued to the driver, if it was.
    pub issue_ns: Option<u64>,
    /// Whether it was merged into the request of another.
    pub is_merged: bool,
    /// Whether it was split.
    pub is_split: bool,
    /// First sector.
    pub sector: u64,
    /// Length in bytes; 0 for a flush.
    pub bytes: u32,
    /// Direction and modifiers.
    pub flags: Flags,
    /// Pid of the submitting task.
    pub pid: u32,
    /// The device.
    pub device: Device,
    /// Its priority; some formats give it only for the request.
    pub priority: IoPriority,
    /// Its cgroup; 0 if unknown.
    pub cgroup: u64,
    /// Parts that have not completed.
    parts: u32,
}

impl Flight {
    /// Adopts the priority of its request.
    fn adopt_priority(&mut self, priority: IoPriority) {
        if self.priority == IoPriority::UNSET {
            self.priority = priority;
        }
    }
}

/// A step in the life of an I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It was submitted.
    Queued,
    /// It, or a further part of it, got a request or was merged.
    Submitted {
        /// Time since its submission, or since the previous part, ns.
        blocked_ns: u64,
    },
    /// Its request was inserted into a scheduler or software queue.
    Inserted,
    /// It, or a part of it, was issued to the driver.
    Issued,
    /// The data transfer of it, or of a part, has completed.
    Transferred,
    /// All of it has completed.
    Completed,
    /// Its completion is considered lost.
    GivenUp,
    /// It failed with EAGAIN before it got a request, because its task did not want to wait. It does not count as an I/O: the task
    /// submits another bio later.
    Refused,
}

/// Counts of matched and unmatched events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Submitted I/Os.
    pub queued: u64,
    /// Completed I/Os.
    pub completed: u64,
    /// Bios that failed with EAGAIN; not counted in `queued`.
    pub refused: u64,
    /// Merged bios.
    pub merged: u64,
    /// Splits.
    pub split: u64,
    /// Requests that the driver requeued.
    pub requeued: u64,
    /// Issued requests without a known I/O.
    pub issued_unknown: u64,
    /// Completed requests without a known I/O: submitted before the recording began, or lost.
    pub completed_unknown: u64,
    /// I/Os that were given up because too many were in flight.
    pub given_up: u64,
    /// Passthrough commands, which are omitted.
    pub passthrough: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum State {
    Queued,
    Submitted,
    Issued,
    /// The data has completed; the flush after it has not.
    Flushing,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    flight: u32,
    start: u64,
    end: u64,
    state: State,
    /// The previous part with the same start.
    older: u32,
}

/// The in-flight I/Os of all devices.
#[derive(Debug)]
pub struct Flights {
    flights: Vec<Flight>,
    free_flights: Vec<u32>,
    parts: Vec<Part>,
    free_parts: Vec<u32>,
    /// The newest part at each sector.
    starts: FxHashMap<(u32, u64), u32>,
    counts: Counts,
    /// I/Os that were given up during the current event.
    lost: Vec<Flight>,
    /// Whether the recording has no bios, so that each issued request is an I/O.
    is_request_based: bool,
}

impl Flights {
    /// An empty table; `is_request_based` if the recording has no Q events.
    #[must_use]
    pub fn new(is_request_based: bool) -> Flights {
        Flights {
            flights: Vec::new(),
            free_flights: Vec::new(),
            parts: Vec::new(),
            free_parts: Vec::new(),
            starts: FxHashMap::default(),
            counts: Counts::default(),
            lost: Vec::new(),
            is_request_based,
        }
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of in-flight I/Os.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.len() - self.free_flights.len()
    }

    /// Processes the next event and reports the step of each affected I/O.
    #[inline]
    pub fn take(&mut self, event: &Event, on_step: &mut impl FnMut(Step, &Flight)) {
        if event.flags.has(Flags::PASSTHROUGH) {
            self.counts.passthrough += u64::from(event.action == Action::Issue);
            return;
        }
        match event.action {
            Action::Queue => self.add_io(event, event.sector, on_step),
            Action::GetRequest => self.mark_submitted(event, false, on_step),
            Action::BackMerge | Action::FrontMerge => {
                self.counts.merged += 1;
                self.mark_submitted(event, true, on_step);
            }
            Action::Split => self.split(event),
            Action::Issue => self.issue(event, on_step),
            Action::Requeue => {
                self.counts.requeued += 1;
                self.for_each_part(event, State::Issued, |part| part.state = State::Submitted);
            }
            Action::Complete => self.complete(event, on_step),
            Action::Insert => self.insert(event, on_step),
            _ => {}
        }
        for flight in self.lost.drain(..) {
            self.counts.given_up += 1;
            on_step(Step::GivenUp, &flight);
        }
    }

    fn add_io(&mut self, event: &Event, sector: u64, on_step: &mut impl FnMut(Step, &Flight)) {
        if self.in_flight() >= FLIGHTS_MAX {
            self.give_up_half();
        }
        self.counts.queued += 1;
        let flight = Flight {
            id: 0,
            queue_ns: event.time_ns,
            submitted_ns: event.time_ns,
            insert_ns: None,
            issue_ns: None,
            is_merged: false,
            is_split: false,
            sector,
            bytes: event.bytes,
            flags: event.flags,
            pid: event.pid,
            device: event.device,
            priority: event.priority,
            cgroup: event.cgroup,
            parts: 1,
        };
        let id = match self.free_flights.pop() {
            Some(id) => {
                self.flights[id as usize] = flight;
                id
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        };
        self.flights[id as usize].id = id;
        self.add_part(
            event.device,
            Part { flight: id, start: sector, end: event.end(), state: State::Queued, older: NONE },
        );
        on_step(Step::Queued, &self.flights[id as usize]);
    }

    fn add_part(&mut self, device: Device, mut part: Part) {
        let head = self.starts.entry((device.number(), part.start)).or_insert(NONE);
        part.older = *head;
        let number = match self.free_parts.pop() {
            Some(number) => {
                self.parts[number as usize] = part;
                number
            }
            None => {
                self.parts.push(part);
                self.parts.len() as u32 - 1
            }
        };
        *head = number;
        let (mut length, mut oldest) = (1, number);
        while self.parts[oldest as usize].older != NONE {
            oldest = self.parts[oldest as usize].older;
            length += 1;
        }
        if length > CHAIN_MAX {
            self.give_up(self.parts[oldest as usize].flight, oldest);
        }
    }

    /// The newest or oldest part at a sector that passes a test.
    #[inline]
    fn find_part(&self, device: Device, start: u64, is_newest: bool, test: impl Fn(&Part) -> bool) -> Option<u32> {
        let mut number = *self.starts.get(&(device.number(), start))?;
        let mut found = None;
        while number != NONE {
            let part = &self.parts[number as usize];
            if test(part) {
                found = Some(number);
                if is_newest {
                    break;
                }
            }
            number = part.older;
        }
        found
    }

    fn unlink(&mut self, device: Device, number: u32) {
        let Part { start, older, .. } = self.parts[number as usize];
        let key = (device.number(), start);
        let Some(head) = self.starts.get_mut(&key) else { return };
        if *head == number {
            if older == NONE {
                self.starts.remove(&key);
            } else {
                *head = older;
            }
        } else {
            let mut newer = *head;
            while self.parts[newer as usize].older != number {
                newer = self.parts[newer as usize].older;
            }
            self.parts[newer as usize].older = older;
        }
        self.free_parts.push(number);
    }

    /// Gives up the I/O with this part.
    #[cold]
    fn give_up(&mut self, flight: u32, part: u32) {
        if self.flights[flight as usize].parts == 1 {
            self.unlink(self.flights[flight as usize].device, part);
            self.lost.push(self.flights[flight as usize]);
            self.free_flights.push(flight);
        } else {
            self.give_up_if(|other| other.id == flight);
        }
    }

    #[cold]
    fn give_up_half(&mut self) {
        let mut times: Vec<u64> = self.flights.iter().map(|flight| flight.queue_ns).collect();
        let middle = times.len() / 2;
        let median_ns = *times.select_nth_unstable(middle).1;
        self.give_up_if(|flight| flight.queue_ns <= median_ns);
    }

    fn give_up_if(&mut self, is_lost: impl Fn(&Flight) -> bool) {
        let mut is_free = vec![false; self.parts.len()];
        self.free_parts.iter().for_each(|&part| is_free[part as usize] = true);
        for (part, is_free) in is_free.into_iter().enumerate() {
            let flight = self.flights[self.parts[part].flight as usize];
            if !is_free && is_lost(&flight) {
                self.unlink(flight.device, part as u32);
            }
        }
        let mut is_free = vec![false; self.flights.len()];
        self.free_flights.iter().for_each(|&flight| is_free[flight as usize] = true);
        for (flight, is_free) in self.flights.iter().zip(is_free) {
            if !is_free && is_lost(flight) {
                self.lost.push(*flight);
                self.free_flights.push(flight.id);
            }
        }
    }

    /// A part got its request, or was merged into one.
    fn mark_submitted(&mut self, event: &Event, is_merged: bool, on_step: &mut impl FnMut(Step, &Flight)) {
        let end = event.end();
        let matches = |part: &Part| part.state == State::Queued && part.end == end;
        let Some(number) = self.find_part(event.device, event.sector, true, matches) else { return };
        self.parts[number as usize].state = State::Submitted;
        let flight = &mut self.flights[self.parts[number as usize].flight as usize];
        let blocked_ns = event.time_ns - flight.submitted_ns;
        (flight.submitted_ns, flight.is_merged) = (event.time_ns, is_merged);
        on_step(Step::Submitted { blocked_ns }, flight);
    }

    fn split(&mut self, event: &Event) {
        let Payload::Rest(rest) = event.payload else { return };
        let matches = |part: &Part| part.state == State::Queued && part.start < rest && rest < part.end;
        let Some(number) = self.find_part(event.device, event.sector, true, matches) else { return };
        self.counts.split += 1;
        let first = self.parts[number as usize];
        self.parts[number as usize].end = rest;
        let flight = &mut self.flights[first.flight as usize];
        (flight.parts, flight.is_split) = (flight.parts + 1, true);
        self.add_part(event.device, Part { start: rest, ..first });
    }

    /// Changes every part of a request that is in this state.
    fn for_each_part(&mut self, event: &Event, state: State, mut change: impl FnMut(&mut Part)) {
        let (mut sector, end) = (event.sector, event.end());
        while sector < end {
            let Some(number) =
                self.find_part(event.device, sector, false, |part| part.state == state && part.end <= end)
            else {
                return;
            };
            let part = &mut self.parts[number as usize];
            change(part);
            if part.end <= sector {
                return;
            }
            sector = part.end;
        }
    }

    fn issue(&mut self, event: &Event, on_step: &mut impl FnMut(Step, &Flight)) {
        let (mut sector, end) = (event.sector, event.end());
        let mut has_match = false;
        while sector < end {
            let matches = |part: &Part| part.state <= State::Submitted && sector < part.end && part.end <= end;
            let Some(number) = self.find_part(event.device, sector, false, matches) else { break };
            has_match = true;
            let part = &mut self.parts[number as usize];
            part.state = State::Issued;
            sector = part.end;
            let flight = &mut self.flights[part.flight as usize];
            flight.issue_ns = Some(event.time_ns);
            flight.adopt_priority(event.priority);
            on_step(Step::Issued, flight);
        }
        if has_match || (event.bytes == 0 && !self.is_request_based) {
            return;
        }
        if self.is_request_based {
            self.add_io(event, if event.bytes == 0 { 0 } else { event.sector }, on_step);
            let newest = self.starts.get(&(event.device.number(), if event.bytes == 0 { 0 } else { event.sector }));
            if let Some(&number) = newest {
                self.parts[number as usize].state = State::Issued;
                self.flights[self.parts[number as usize].flight as usize].issue_ns = Some(event.time_ns);
            }
        } else {
            self.counts.issued_unknown += 1;
        }
    }

    /// The request that begins with this part is inserted.
    fn insert(&mut self, event: &Event, on_step: &mut impl FnMut(Step, &Flight)) {
        let matches = |part: &Part| part.state == State::Submitted && part.end > part.start;
        let Some(number) = self.find_part(event.device, event.sector, false, matches) else { return };
        let flight = &mut self.flights[self.parts[number as usize].flight as usize];
        flight.insert_ns = Some(event.time_ns);
        flight.adopt_priority(event.priority);
        on_step(Step::Inserted, flight);
    }

    fn complete(&mut self, event: &Event, on_step: &mut impl FnMut(Step, &Flight)) {
        if event.bytes == 0 {
            return self.complete_flush(event, on_step);
        }
        let (mut sector, end) = (event.sector, event.end());
        let mut has_match = false;
        while sector < end {
            // Prefer issued parts; parts that were never issued belong to a device without D events.
            let is_issued = |part: &Part| part.state == State::Issued && part.end > sector;
            let is_unfinished = |part: &Part| part.state <= State::Issued && part.end > sector;
            let found = self.find_part(event.device, sector, false, is_issued);
            let Some(number) = found.or_else(|| self.find_part(event.device, sector, false, is_unfinished)) else {
                break;
            };
            has_match = true;
            let part = self.parts[number as usize];
            if part.state == State::Queued && part.end == end && EAGAIN.contains(&event.error) {
                self.refuse(event, number, on_step);
                break;
            }
            if part.end > end {
                // The rest of the part completes later.
                self.unlink(event.device, number);
                self.add_part(event.device, Part { start: end, ..part });
                break;
            }
            let flight = &mut self.flights[part.flight as usize];
            on_step(Step::Transferred, flight);
            let flags = flight.flags;
            let has_flush_behind = flags.has(Flags::FUA) && !event.flags.has(Flags::FUA);
            if (has_flush_behind || flags.has(Flags::FLUSH)) && !self.is_request_based {
                self.parts[number as usize].state = State::Flushing;
            } else {
                self.complete_part(event, number, on_step);
            }
            sector = part.end;
        }
        self.counts.completed_unknown += u64::from(!has_match);
    }

    /// A bio failed before it got a request: unless it was split, it does not count as an I/O.
    #[cold]
    fn refuse(&mut self, event: &Event, number: u32, on_step: &mut impl FnMut(Step, &Flight)) {
        let id = self.parts[number as usize].flight;
        if self.flights[id as usize].is_split {
            return self.complete_part(event, number, on_step);
        }
        self.unlink(event.device, number);
        (self.counts.queued, self.counts.refused) = (self.counts.queued - 1, self.counts.refused + 1);
        on_step(Step::Refused, &self.flights[id as usize]);
        self.free_flights.push(id);
    }

    /// The completion of a flush, or of the last step of a write with one.
    fn complete_flush(&mut self, event: &Event, on_step: &mut impl FnMut(Step, &Flight)) {
        if event.flags.has(Flags::FLUSH) && !self.is_request_based {
            // The flush request itself; the bios that waited for it have completions of their own.
            return;
        }
        let sector = if self.is_request_based { 0 } else { event.sector };
        let matches = |part: &Part| part.state == State::Flushing || part.start == part.end;
        match self.find_part(event.device, sector, false, matches) {
            Some(number) => self.complete_part(event, number, on_step),
            None => self.counts.completed_unknown += 1,
        }
    }

    fn complete_part(&mut self, event: &Event, number: u32, on_step: &mut impl FnMut(Step, &Flight)) {
        let id = self.parts[number as usize].flight;
        self.unlink(event.device, number);
        let flight = &mut self.flights[id as usize];
        flight.parts -= 1;
        if flight.parts == 0 {
            self.counts.completed += 1;
            on_step(Step::Completed, flight);
            self.free_flights.push(id);
        }
    }
}
