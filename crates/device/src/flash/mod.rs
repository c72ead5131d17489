//! A detailed SSD model: submission queues, a front end, a write buffer, and dies that each do one operation at a time.
//!
//! Used by: `preset`.
//! Tests: below, `crates/device/src/flash/` (in its files), `crates/device/tests/samsung_980pro/cliffs.rs`.
//!
//! 1. **Submission queues** ([`arbiter`]): the drive works on a limited number of commands; others wait there.
//! 2. **Front end**: one serial stage that every command occupies for the time of its data transfer.
//! 3. **Reads** are split into pieces and wait at the dies that hold them. Where they follow each other the drive reads ahead ([`ahead`]).
//! 4. **Write buffer** ([`writes`], [`buffer`]): a write is acknowledged when it is in the buffer; a full buffer makes
//!    writes wait, first come, first served. Waiting writes still count as commands that the drive works on.
//! 5. **Dies**: the buffer is drained in programs. A die serves reads and programs first come, first served; a program
//!    may go to any die or only to an idle one, and a read may suspend it. Alternatively data is dealt to dies on
//!    arrival ([`stripes`]). In some drives a write with FUA keeps later reads waiting until it is in the flash.
//! 6. **Translation** ([`translation`]): a scaled page map with greedy garbage collection computes the write
//!    amplification of each page. Without it the amplification is a constant.
//! 7. **Collection** ([`collection`]): dies make room for programs when nothing waits for them; once there is no room left,
//!    all of them do so instead of programming.
//!
//! Time inside the drive is ahead of the host's time by the time that a command takes to reach the drive, so a
//! submission settles everything up to its arrival at once. Later internal events are a single alarm, set only if a
//! command waits for one: a read costs a few additions and, if the number of commands is limited, a small heap.
//!
//! The mechanisms were found by fitting the published tables (habr NVMe, ICPE'24); the presets contain the numbers.

mod ahead;
mod arbiter;
mod buffer;
mod collection;
mod dies;
mod parameters;
mod stripes;
mod translation;
mod writes;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES};
use hoistway_blk::request::QueueClass;

use crate::model::{Command, Device, Refusal, Schedule, Shape};
use crate::random::{Random, from_us};

use ahead::ReadAhead;
use arbiter::Arbiter;
use buffer::WriteBuffer;
use dies::Dies;
pub use parameters::{
    ArbitrationParameters, CollectionParameters, FlashParameters, Placement, SlcCacheParameters, StallParameters,
    StripingParameters, TranslationParameters,
};
use writes::{Unacknowledged, Waiting};

/// Sectors whose transfer is part of [`FlashParameters::command_us`]: 4 KiB.
const INCLUDED_SECTORS: u32 = 8;

/// The model.
#[derive(Clone, Debug)]
pub struct Flash {
    shape: Shape,
    inbound: Nanos,
    outbound: Nanos,
    /// The same for a write.
    write_outbound: Nanos,
    command: Nanos,
    /// Front-end time of each sector of a read beyond 4 KiB, in 1/65536 ns.
    read_sector_fixed_ns: u64,
    /// The same for a write.
    write_sector_fixed_ns: u64,
    acknowledge: Nanos,
    large_piece: Nanos,
    piece_sectors: u64,
    ahead: Option<ReadAhead>,
    flush: Nanos,
    discard: Nanos,
    arbiter: Arbiter,
    /// Maximum commands that the drive works on at a time, and the current number.
    fetch_limit: Option<u32>,
    fetched: u32,
    /// When commands leave the drive, for those where this is known.
    leaving: BinaryHeap<Reverse<Instant>>,
    /// The same for writes, with the sectors that each then frees.
    leaving_writes: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Maximum sectors of writes that the drive holds at a time, and the current number.
    held_limit: Option<u32>,
    held_sectors: u32,
    /// Fetched commands behind a write that finds no room, in the order of their fetching.
    blocked: VecDeque<Command>,
    /// When the front end has completed all its work.
    front_end_free_at: Instant,
    dies: Dies,
    buffer: WriteBuffer,
    /// Writes that are not completely in the buffer.
    waiting: VecDeque<Waiting>,
    /// If data is dealt to dies: writes of at least this many bytes are acknowledged only when they are in the flash.
    write_through_bytes: Option<u64>,
    /// Writes that were dealt to dies but may not be acknowledged yet.
    unacknowledged: VecDeque<Unacknowledged>,
    /// Sectors of a page of flash, if a write that covers a part of one reads it first.
    write_page_sectors: Option<u64>,
    /// Flushes and writes with FUA that wait for programs.
    barriers: VecDeque<Barrier>,
    /// Whether reads wait for writes with FUA.
    fua_blocks_reads: bool,
    /// The position of the last write with FUA that waits for programs, if reads wait for it.
    blocked_up_to: Option<u64>,
    /// Reads that wait for writes with FUA.
    blocked_reads: VecDeque<BlockedRead>,
    /// The number of the current alarm; earlier ones are ignored.
    alarm: u32,
    alarm_at: Option<Instant>,
    random: Random,
}

/// A flush, or a write with FUA: it ends when everything in the buffer at its arrival is in the flash.
#[derive(Clone, Copy, Debug)]
struct Barrier {
    tag: u32,
    /// The position returned by [`WriteBuffer::force`].
    position: u64,
    /// The sectors of a write with FUA; 0 for a flush.
    sectors: u32,
}

/// A read that waits until writes with FUA before it are in the flash.
#[derive(Clone, Copy, Debug)]
struct BlockedRead {
    /// The position of the last of these writes.
    position: u64,
    /// When it has passed the front end.
    arrived_at: Instant,
    command: Command,
}

/// Front-end time of a sector in 1/65536 ns.
fn sector_fixed_ns(mb_per_s: f64) -> u64 {
    (SECTOR_BYTES as f64 * 1e3 / mb_per_s * 65_536.0).round() as u64
}

impl Flash {
    /// An idle drive of this shape. `seed` determines all its random numbers.
    #[must_use]
    pub fn new(shape: Shape, parameters: &FlashParameters, seed: u64) -> Flash {
        let mut random = Random::from_seed(seed);
        let capacity_pages = shape.capacity_sectors.div_ceil(8);
        Flash {
            inbound: from_us(parameters.host_to_device_us),
            outbound: from_us(parameters.device_to_host_us),
            write_outbound: from_us(parameters.write_to_host_us.unwrap_or(parameters.device_to_host_us)),
            command: from_us(parameters.command_us),
            read_sector_fixed_ns: sector_fixed_ns(parameters.read_mb_per_s),
            write_sector_fixed_ns: sector_fixed_ns(parameters.write_mb_per_s),
            acknowledge: from_us(parameters.acknowledge_us),
            large_piece: from_us(parameters.large_read_us),
            piece_sectors: u64::from(parameters.read_piece_kib) * 2,
            ahead: parameters
                .read_ahead_kib
                .map(|kib| ReadAhead::new(u64::from(kib / parameters.read_piece_kib.max(1)))),
            flush: from_us(parameters.flush_us),
            discard: from_us(parameters.discard_us),
            arbiter: Arbiter::new(shape.hw_queues, parameters.arbitration.as_ref()),
            fetch_limit: parameters.fetches_commands,
            fetched: 0,
            leaving: BinaryHeap::new(),
            leaving_writes: BinaryHeap::new(),
            held_limit: parameters.holds_write_kib.map(|kib| kib * 2),
            held_sectors: 0,
            blocked: VecDeque::new(),
            front_end_free_at: Instant::ZERO,
            dies: Dies::new(parameters),
            buffer: WriteBuffer::new(parameters, capacity_pages, &mut random),
            waiting: VecDeque::new(),
            write_through_bytes: parameters
                .striping
                .as_ref()
                .map(|striping| u64::from(striping.write_through_kib) * 1024),
            unacknowledged: VecDeque::new(),
            write_page_sectors: parameters.write_page_kib.map(|kib| u64::from(kib) * 2),
            barriers: VecDeque::new(),
            fua_blocks_reads: parameters.fua_blocks_reads,
            blocked_up_to: None,
            blocked_reads: VecDeque::new(),
            alarm: 0,
            alarm_at: None,
            random,
            shape,
        }
    }

    /// Occupies the front end from `at` on for a transfer. Returns when it is done.
    #[inline]
    fn pass_front_end(&mut self, at: Instant, sectors: u32, sector_fixed_ns: u64) -> Instant {
        let extra_sectors = u128::from(sectors.saturating_sub(INCLUDED_SECTORS));
        let extra_ns = (extra_sectors * u128::from(sector_fixed_ns)) >> 16;
        let begin = self.front_end_free_at.max(at);
        self.front_end_free_at = begin + self.command + Nanos(extra_ns as u64);
        self.front_end_free_at
    }

    /// The drive fetches a command at `at`. Commands leave the fetch stage in order, so one behind a write without room waits with it.
    #[inline]
    fn fetch(&mut self, at: Instant, command: Command, schedule: &mut Schedule) {
        self.fetched += u32::from(self.fetch_limit.is_some());
        if self.blocked.is_empty() && self.has_room(&command) {
            self.begin(at, command, schedule);
        } else {
            self.blocked.push_back(command);
        }
    }

    /// Whether the command is no write, or its data has room beside that of other writes.
    #[inline]
    fn has_room(&self, command: &Command) -> bool {
        let fits = |limit| self.held_sectors == 0 || self.held_sectors + command.sectors <= limit;
        command.op != Op::Write || self.held_limit.is_none_or(fits)
    }

    /// The drive starts working on a command at `at`.
    #[inline]
    fn begin(&mut self, at: Instant, command: Command, schedule: &mut Schedule) {
        let tag = command.tag;
        match command.op {
            _ if !self.shape.holds(&command) => {
                let end = self.pass_front_end(at, 0, 0);
                self.record_leaving(end, 0);
                schedule.end(end + self.outbound, tag, Status::IoError);
            }
            Op::Read => {
                let transferred_at = self.pass_front_end(at, command.sectors, self.read_sector_fixed_ns);
                match self.blocked_up_to {
                    Some(position) => {
                        self.blocked_reads.push_back(BlockedRead { position, arrived_at: transferred_at, command });
                    }
                    None => self.end_read(transferred_at, &command, schedule),
                }
            }
            Op::Write => {
                let ready = self.pass_front_end(at, command.sectors, self.write_sector_fixed_ns);
                self.held_sectors += self.held_limit.map_or(0, |_| command.sectors);
                let bytes = u64::from(command.sectors) * SECTOR_BYTES;
                let is_random = self.buffer.record_write(&command);
                let (ready, unbuffered) = self.complete_pages(ready, &command);
                self.waiting.push_back(Waiting { tag, fua: command.fua, is_random, bytes, unbuffered, ready });
                self.fill_buffer(at, schedule);
            }
            Op::Discard | Op::WriteZeroes => {
                let begin = self.front_end_free_at.max(at);
                self.front_end_free_at = begin + self.discard.max(self.command);
                self.record_leaving(self.front_end_free_at, 0);
                schedule.complete(self.front_end_free_at + self.acknowledge + self.outbound, tag);
            }
            Op::Flush => {
                let at = self.pass_front_end(at, 0, 0);
                self.barrier(at, tag, 0, schedule);
            }
        }
    }

    /// A read whose command has arrived takes its pieces from the dies.
    #[inline]
    fn end_read(&mut self, at: Instant, command: &Command, schedule: &mut Schedule) {
        let done = self.read(at, command);
        self.record_leaving(done, 0);
        schedule.complete(done + self.outbound, command.tag);
    }

    /// When all pieces of a read have arrived.
    #[inline]
    fn read(&mut self, at: Instant, command: &Command) -> Instant {
        let (first, sectors) = (command.sector.0, u64::from(command.sectors.max(1)));
        let end = first + sectors;
        let (first_piece, last_piece) = (first / self.piece_sectors, (end - 1) / self.piece_sectors);
        let extra = if command.sectors > INCLUDED_SECTORS { self.large_piece } else { Nanos::ZERO };
        let may_suspend = self.write_through_bytes.is_none() || !self.buffer.is_full();
        let mut flash = |piece| self.dies.read(piece, at, extra, may_suspend, &mut self.random);
        match &mut self.ahead {
            Some(ahead) => ahead.read((first, end), (first_piece, last_piece), at, flash),
            None => (first_piece..=last_piece).fold(at, |done, piece| done.max(flash(piece))),
        }
    }

    /// A command leaves the drive at `at`; if it is a write, its sectors do.
    #[inline]
    fn record_leaving(&mut self, at: Instant, sectors: u32) {
        if self.fetch_limit.is_some() {
            self.leaving.push(Reverse(at));
        }
        if sectors > 0 && self.held_limit.is_some() {
            self.leaving_writes.push(Reverse((at, sectors)));
        }
    }

    /// When the next command leaves the drive, or the next write frees its room.
    #[inline]
    fn next_left(&self) -> Option<Instant> {
        let left = self.leaving.peek().map(|&Reverse(at)| at);
        match self.leaving_writes.peek() {
            Some(&Reverse((at, _))) => Some(left.map_or(at, |left| left.min(at))),
            None => left,
        }
    }

    /// A flush, or a write with FUA of this many sectors that is in the buffer. If a power cut loses nothing, the buffer counts as flash.
    fn barrier(&mut self, at: Instant, tag: u32, sectors: u32, schedule: &mut Schedule) {
        if self.shape.write_cache {
            let position = self.buffer.force(at, &mut self.dies, &mut self.random);
            self.end_write_throughs(schedule);
            if !self.buffer.is_programmed(position) {
                if self.fua_blocks_reads && sectors > 0 {
                    self.blocked_up_to = Some(position);
                }
                self.barriers.push_back(Barrier { tag, position, sectors });
                return;
            }
        }
        self.end_barrier(at, tag, sectors, schedule);
    }

    fn end_barrier(&mut self, at: Instant, tag: u32, sectors: u32, schedule: &mut Schedule) {
        let end = at + self.flush;
        self.record_leaving(end, sectors);
        schedule.complete(end + self.outbound, tag);
    }

    /// The time of the next internal event that a command waits for.
    #[inline]
    fn next_event(&self) -> Option<Instant> {
        let mut next = None;
        let mut consider = |at: Instant| next = Some(next.map_or(at, |earliest: Instant| earliest.min(at)));
        if (!self.arbiter.is_empty() || !self.blocked.is_empty())
            && let Some(at) = self.next_left()
        {
            consider(at);
        }
        if let Some(at) = self.next_ready() {
            consider(at);
        }
        if (!self.waiting.is_empty() || !self.barriers.is_empty() || self.waits_for_dealt_data())
            && let Some(at) = self.buffer.next_event(&self.dies)
        {
            consider(at);
        }
        next
    }

    /// Processes all internal events up to `to`.
    #[inline]
    fn advance(&mut self, to: Instant, schedule: &mut Schedule) {
        loop {
            let buffer_at = self.buffer.next_event(&self.dies).filter(|&at| at <= to);
            let ready_at = self.next_ready().filter(|&at| at <= to);
            let left_at = self.next_left().filter(|&at| at <= to);
            let Some(at) = [buffer_at, ready_at, left_at].into_iter().flatten().min() else { return };
            // At the same time programs end first, because they make room for data that arrives.
            if buffer_at == Some(at) {
                self.on_buffer_event(at, schedule);
            } else if ready_at == Some(at) {
                self.fill_buffer(at, schedule);
            } else {
                self.on_command_left(at, schedule);
            }
        }
    }

    /// A program has ended, or one can start.
    fn on_buffer_event(&mut self, at: Instant, schedule: &mut Schedule) {
        self.buffer.advance(at, &mut self.dies, &mut self.random);
        while let Some(&Barrier { tag, position, sectors }) = self.barriers.front()
            && self.buffer.is_programmed(position)
        {
            self.barriers.pop_front();
            self.end_barrier(at, tag, sectors, schedule);
        }
        self.unblock_reads(at, schedule);
        self.fill_buffer(at, schedule);
    }

    /// Starts reads whose writes with FUA are in the flash.
    fn unblock_reads(&mut self, at: Instant, schedule: &mut Schedule) {
        if self.blocked_up_to.is_some_and(|position| self.buffer.is_programmed(position)) {
            self.blocked_up_to = None;
        }
        while let Some(&BlockedRead { position, arrived_at, command }) = self.blocked_reads.front()
            && self.buffer.is_programmed(position)
        {
            self.blocked_reads.pop_front();
            self.end_read(at.max(arrived_at), &command, schedule);
        }
    }

    /// Whether the drive has room for another command.
    #[inline]
    fn can_fetch(&self) -> bool {
        self.fetch_limit.is_none_or(|limit| self.fetched < limit)
    }

    /// A command has left the drive, so others may be fetched.
    fn on_command_left(&mut self, at: Instant, schedule: &mut Schedule) {
        if self.leaving.peek() == Some(&Reverse(at)) {
            self.leaving.pop();
            self.fetched = self.fetched.saturating_sub(1);
        }
        if let Some(&Reverse((freed_at, sectors))) = self.leaving_writes.peek()
            && freed_at == at
        {
            self.leaving_writes.pop();
            self.held_sectors -= sectors;
            while let Some(&command) = self.blocked.front()
                && self.has_room(&command)
            {
                self.blocked.pop_front();
                self.begin(at, command, schedule);
            }
        }
        while self.can_fetch()
            && let Some(command) = self.arbiter.pop()
        {
            self.fetch(at, command, schedule);
        }
    }

    #[inline]
    fn set_alarm(&mut self, now: Instant, schedule: &mut Schedule) {
        let next = self.next_event();
        if next != self.alarm_at {
            self.alarm_at = next;
            self.alarm = self.alarm.wrapping_add(1);
            if let Some(at) = next {
                schedule.alarms.push((at.max(now), self.alarm));
            }
        }
    }
}

impl Device for Flash {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn arbitrate(&mut self, classes: &[QueueClass], weights: Option<[u16; 3]>) {
        if self.shape.arbitration.is_some() {
            self.arbiter.arbitrate(classes, weights);
        }
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let at = now + self.inbound;
        self.advance(at, schedule);
        if self.can_fetch() {
            self.fetch(at, command, schedule);
        } else {
            self.arbiter.push(command);
        }
        self.set_alarm(now, schedule);
        Ok(())
    }

    fn wake(&mut self, now: Instant, alarm: u32, schedule: &mut Schedule) {
        if alarm != self.alarm {
            return;
        }
        self.alarm_at = None;
        self.advance(now, schedule);
        self.set_alarm(now, schedule);
    }
}

#[cfg(test)]
mod tests {
    use hoistway_blk::ground::Sector;

    use super::*;
    use crate::preset::{Parameters, Preset};

    /// Sends writes and occasional flushes. At the end of each flush, the bytes that were in the buffer before it must be in
    /// the flash, which includes everything acknowledged.
    #[test]
    fn after_a_flush_everything_acknowledged_before_it_is_in_the_flash() {
        let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
        let Parameters::Flash(parameters) = preset.parameters() else { unreachable!() };
        let mut drive = Flash::new(preset.shape(), parameters, 1);
        let mut random = Random::from_seed(2);
        let mut schedule = Schedule::default();
        // Time, kind (0: submit, 1: alarm, 2: end), tag.
        let mut events = BinaryHeap::from([Reverse((Instant::ZERO, 0, 0_u32))]);
        let mut before_flush = std::collections::BTreeMap::new();
        let mut flushes = 0;
        while let Some(Reverse((now, kind, tag))) = events.pop() {
            let sectors = 8 * (1 + tag % 16);
            match kind {
                0 if tag < 5000 => {
                    let is_flush = tag % 50 == 49;
                    let (op, sectors) = if is_flush { (Op::Flush, 0) } else { (Op::Write, sectors) };
                    if is_flush {
                        before_flush.insert(tag, drive.buffer.total_put_bytes());
                    }
                    let sector = Sector(random.below(1_000_000) * 8);
                    let command = Command { tag, queue: 0, op, sector, sectors, fua: false };
                    drive.submit(now, command, &mut schedule).unwrap();
                    events.push(Reverse((now + Nanos(random.below(100_000)), 0, tag + 1)));
                }
                0 => {}
                1 => drive.wake(now, tag, &mut schedule),
                _ => {
                    if let Some(bytes) = before_flush.remove(&tag) {
                        flushes += 1;
                        assert!(bytes > 0 && drive.buffer.is_programmed(bytes), "flush {tag}: {bytes} bytes");
                    }
                }
            }
            events.extend(schedule.alarms.drain(..).map(|(at, alarm)| Reverse((at, 1, alarm))));
            events.extend(schedule.completions.drain(..).map(|end| Reverse((end.at, 2, end.tag))));
        }
        assert_eq!((flushes, before_flush.len()), (100, 0));
    }

    #[test]
    fn reads_wait_for_the_write_with_fua_before_them_if_the_drive_blocks_them() {
        let preset = Preset::builtin("Samsung_SSD_970_PRO_512GB").unwrap();
        let Parameters::Flash(parameters) = preset.parameters() else { unreachable!() };
        // When each command of these ends, all submitted at once but for the last, us.
        let ends_of = |blocks: bool, fua: bool| {
            let parameters = FlashParameters { fua_blocks_reads: blocks, ..(**parameters).clone() };
            let mut drive = Flash::new(preset.shape(), &parameters, 1);
            let mut schedule = Schedule::default();
            let command =
                |tag, op, fua| Command { tag, queue: 0, op, sector: Sector(u64::from(tag) * 8000), sectors: 8, fua };
            let read = |tag| command(tag, Op::Read, false);
            for (at, command) in [(0, read(0)), (1, command(1, Op::Write, fua)), (100, read(2)), (5000, read(3))] {
                let now = Instant(at * 1000);
                while let Some(&(due, alarm)) = schedule.alarms.last()
                    && due <= now
                {
                    drive.wake(due, alarm, &mut schedule);
                    schedule.alarms.retain(|&(_, known)| known != alarm);
                }
                drive.submit(now, command, &mut schedule).unwrap();
            }
            let mut ends: Vec<_> = schedule.completions.iter().map(|end| (end.tag, end.at.0 / 1000)).collect();
            ends.sort_unstable();
            ends.into_iter().map(|(_, us)| us).collect::<Vec<_>>()
        };
        let [before, write, after, later] = ends_of(true, true)[..] else { panic!() };
        assert!(before < 150 && write > 1000 && later < 5150, "{before} {write} {later}");
        assert!(
            after > 1000 && after < write + 100,
            "the read of {after} us waits until the program of the write ends"
        );
        for (blocks, fua) in [(false, true), (true, false)] {
            let [_, _, after, _] = ends_of(blocks, fua)[..] else { panic!() };
            assert!(after < 250, "{blocks} {fua}: {after}");
        }
    }

    /// Two large writes, of which only one has room, and a read after them.
    #[test]
    fn a_read_waits_behind_a_write_for_whose_data_the_drive_has_no_room() {
        let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
        let Parameters::Flash(parameters) = preset.parameters() else { unreachable!() };
        let read_us = |holds_write_kib| {
            let mut drive =
                Flash::new(preset.shape(), &FlashParameters { holds_write_kib, ..(**parameters).clone() }, 1);
            let mut schedule = Schedule::default();
            let write = |tag: u32| {
                let sector = Sector(u64::from(tag) * 80_000);
                Command { tag, queue: 0, op: Op::Write, sector, sectors: 128, fua: false }
            };
            let read = Command { tag: 2, queue: 1, op: Op::Read, sector: Sector(8_000_000), sectors: 8, fua: false };
            for command in [write(0), write(1), read] {
                drive.submit(Instant(1000), command, &mut schedule).unwrap();
            }
            while let Some(&(at, alarm)) = schedule.alarms.last() {
                schedule.alarms.clear();
                drive.wake(at, alarm, &mut schedule);
            }
            assert_eq!(schedule.completions.len(), 3, "all commands end");
            schedule.completions.iter().find(|end| end.tag == 2).unwrap().at.0 / 1000
        };
        let (unlimited, with_room, without_room) = (read_us(None), read_us(Some(128)), read_us(Some(64)));
        assert_eq!(unlimited, with_room);
        assert!(unlimited < 300 && without_room > 700, "{unlimited} {without_room}");
        // A write that is larger than the limit has room when nothing else is held.
        assert!(read_us(Some(4)) > 700);
    }
}
