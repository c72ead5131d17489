//! An SSD in parts: submission queues, a front end, a write buffer, and dies that each do one thing at a time.
//!
//! 1. **Submission queues** ([`arbiter`]): the drive works on a limited number of commands; the rest waits there.
//! 2. **Front end**: one serial stage that every command passes, for as long as its data takes.
//! 3. **Reads** are split into pieces and wait at the dies that hold them.
//! 4. **Write buffer** ([`buffer`]): a write is acknowledged when it is in; a full buffer makes writes wait, first come,
//!    first served. Waiting writes keep their place among the commands that the drive works on.
//! 5. **Dies**: the buffer is drained in programs. A die serves reads and programs first come, first served; a program
//!    may be given to any die or only to an idle one, and a read may suspend it.
//! 6. **Translation** ([`translation`]): a scaled page map with greedy garbage collection tells how much each page that
//!    the host writes makes the drive write. Without it the amplification is a constant.
//! 7. **Pauses**: the drain stops, or everything does, after so much was written.
//!
//! Time inside the drive runs ahead of the host's by the way of a command to it, so that a submission settles at once
//! everything up to its arrival. What happens later without the host is one alarm, set only if somebody waits for it: a
//! read costs some sums and, if the number of commands is limited, a small heap.
//!
//! The mechanisms were found by fitting the published tables (habr NVMe, ICPE'24); the presets hold the numbers.

mod arbiter;
mod buffer;
mod dies;
mod parameters;
mod translation;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hoistway_blk::{Instant, Nanos, Op, SECTOR_BYTES, Status};

use crate::model::{Command, Device, Refusal, Schedule, Shape};
use crate::random::{Random, from_us};

use arbiter::Arbiter;
use buffer::Drain;
use dies::Dies;
pub use parameters::{
    ArbitrationParameters, DrainPauseParameters, FlashParameters, Placement, SlcCacheParameters, StallParameters,
    TranslationParameters,
};

/// Sectors whose transfer is part of [`FlashParameters::command_us`]: 4 KiB.
const INCLUDED_SECTORS: u32 = 8;

/// A write that comes through the front end within this time is taken to be there: an alarm saved.
const SOON: Nanos = Nanos::from_micros(10);

/// The model.
#[derive(Clone, Debug)]
pub struct Flash {
    shape: Shape,
    inbound: Nanos,
    outbound: Nanos,
    command: Nanos,
    /// Front-end time of each sector of a read beyond 4 KiB, in 1/65536 ns.
    read_sector_fixed_ns: u64,
    /// The same of a write.
    write_sector_fixed_ns: u64,
    acknowledge: Nanos,
    large_read: Nanos,
    piece_sectors: u64,
    flush: Nanos,
    discard: Nanos,
    arbiter: Arbiter,
    /// Commands that the drive works on at a time, and how many it does.
    fetches: Option<u32>,
    fetched: u32,
    /// When commands leave the drive, of those for which that is known.
    leaving: BinaryHeap<Reverse<Instant>>,
    /// When the front end has finished everything that it was given.
    front_free: Instant,
    dies: Dies,
    drain: Drain,
    /// Writes of which not all is in the buffer.
    waiting: VecDeque<Waiting>,
    /// Flushes and writes with FUA that wait for programs.
    barriers: VecDeque<Barrier>,
    /// The alarm that counts; earlier ones are void.
    alarm: u32,
    alarm_at: Option<Instant>,
    random: Random,
}

/// A write of which not all is in the buffer.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    tag: u32,
    fua: bool,
    is_random: bool,
    /// What is not yet in the buffer, bytes.
    left: u64,
    /// When its data has passed the front end.
    ready: Instant,
}

/// A flush, or a write with FUA: ends when what was in the buffer when it came is in the flash.
#[derive(Clone, Copy, Debug)]
struct Barrier {
    tag: u32,
    /// How far that is, as [`Drain::force`] has said.
    put: u64,
}

/// Front-end time of a sector in 1/65536 ns.
fn sector_fixed_ns(mb_per_s: f64) -> u64 {
    (SECTOR_BYTES as f64 * 1e3 / mb_per_s * 65_536.0).round() as u64
}

impl Flash {
    /// A drive of this shape, idle. Everything random in it is drawn from `seed`.
    #[must_use]
    pub fn new(shape: Shape, parameters: &FlashParameters, seed: u64) -> Flash {
        let mut random = Random::from_seed(seed);
        let capacity_pages = shape.capacity_sectors.div_ceil(8);
        Flash {
            inbound: from_us(parameters.host_to_device_us),
            outbound: from_us(parameters.device_to_host_us),
            command: from_us(parameters.command_us),
            read_sector_fixed_ns: sector_fixed_ns(parameters.read_mb_per_s),
            write_sector_fixed_ns: sector_fixed_ns(parameters.write_mb_per_s),
            acknowledge: from_us(parameters.acknowledge_us),
            large_read: from_us(parameters.large_read_us),
            piece_sectors: u64::from(parameters.read_piece_kib) * 2,
            flush: from_us(parameters.flush_us),
            discard: from_us(parameters.discard_us),
            arbiter: Arbiter::new(shape.hw_queues, parameters.arbitration.as_ref()),
            fetches: parameters.fetches_commands,
            fetched: 0,
            leaving: BinaryHeap::new(),
            front_free: Instant::ZERO,
            dies: Dies::new(parameters),
            drain: Drain::new(parameters, capacity_pages, &mut random),
            waiting: VecDeque::new(),
            barriers: VecDeque::new(),
            alarm: 0,
            alarm_at: None,
            random,
            shape,
        }
    }

    /// Occupies the front end from `at` on for a transfer. Answers when it is through.
    #[inline]
    fn pass_front(&mut self, at: Instant, sectors: u32, sector_fixed_ns: u64) -> Instant {
        let beyond = u128::from(sectors.saturating_sub(INCLUDED_SECTORS));
        let beyond_ns = (beyond * u128::from(sector_fixed_ns)) >> 16;
        let begin = self.front_free.max(at);
        self.front_free = begin + self.command + Nanos(beyond_ns as u64);
        self.front_free
    }

    /// The drive begins to work on a command at `at`.
    #[inline]
    fn fetch(&mut self, at: Instant, command: Command, schedule: &mut Schedule) {
        self.fetched += u32::from(self.fetches.is_some());
        let tag = command.tag;
        match command.op {
            _ if !self.shape.holds(&command) => {
                let end = self.pass_front(at, 0, 0);
                self.leave(end);
                schedule.end(end + self.outbound, tag, Status::IoError);
            }
            Op::Read => {
                let through = self.pass_front(at, command.sectors, self.read_sector_fixed_ns);
                let done = self.read(through, &command);
                self.leave(done);
                schedule.complete(done + self.outbound, tag);
            }
            Op::Write => {
                let ready = self.pass_front(at, command.sectors, self.write_sector_fixed_ns);
                let bytes = u64::from(command.sectors) * SECTOR_BYTES;
                let is_random = self.drain.count(&command);
                if let Some(stall) = self.drain.stall(bytes, &mut self.random) {
                    self.front_free += stall;
                    self.dies.stall(ready, stall);
                }
                self.waiting.push_back(Waiting { tag, fua: command.fua, is_random, left: bytes, ready });
                self.fill_buffer(at, schedule);
            }
            Op::Discard | Op::WriteZeroes => {
                let begin = self.front_free.max(at);
                self.front_free = begin + self.discard.max(self.command);
                self.leave(self.front_free);
                schedule.complete(self.front_free + self.acknowledge + self.outbound, tag);
            }
            Op::Flush => {
                let at = self.pass_front(at, 0, 0);
                self.barrier(at, tag, schedule);
            }
        }
    }

    /// When all pieces of a read are there.
    #[inline]
    fn read(&mut self, at: Instant, command: &Command) -> Instant {
        let (first, sectors) = (command.sector.0, u64::from(command.sectors.max(1)));
        let pieces = first / self.piece_sectors..=(first + sectors - 1) / self.piece_sectors;
        let mut done = at;
        for piece in pieces {
            done = done.max(self.dies.read(piece, at, &mut self.random));
        }
        if command.sectors > INCLUDED_SECTORS { done + self.large_read } else { done }
    }

    /// A command leaves the drive at `at`.
    #[inline]
    fn leave(&mut self, at: Instant) {
        if self.fetches.is_some() {
            self.leaving.push(Reverse(at));
        }
    }

    /// Puts into the buffer what has come and fits, and drains it.
    fn fill_buffer(&mut self, at: Instant, schedule: &mut Schedule) {
        let mut drained_at = at;
        while let Some(write) = self.waiting.front_mut()
            && write.ready <= at + SOON
        {
            drained_at = at.max(write.ready);
            let fits = write.left.min(self.drain.room());
            self.drain.put(fits, write.is_random);
            write.left -= fits;
            if write.left > 0 {
                break;
            }
            let Waiting { tag, fua, ready, .. } = *write;
            self.waiting.pop_front();
            let at = at.max(ready);
            if fua {
                self.barrier(at, tag, schedule);
            } else {
                self.leave(at);
                schedule.complete(at + self.acknowledge + self.outbound, tag);
            }
        }
        self.drain.start_programs(drained_at, &mut self.dies, &mut self.random);
    }

    /// When a write for which the buffer has room comes through the front end.
    #[inline]
    fn next_ready(&self) -> Option<Instant> {
        let write = self.waiting.front()?;
        (self.drain.room() > 0 || write.left == 0).then_some(write.ready)
    }

    /// A flush, or a write with FUA that is in the buffer. Where a power cut loses nothing the buffer is as good as
    /// flash.
    fn barrier(&mut self, at: Instant, tag: u32, schedule: &mut Schedule) {
        if self.shape.write_cache {
            let put = self.drain.force(at, &mut self.dies, &mut self.random);
            if !self.drain.is_past(put) {
                self.barriers.push_back(Barrier { tag, put });
                return;
            }
        }
        self.end_barrier(at, tag, schedule);
    }

    fn end_barrier(&mut self, at: Instant, tag: u32, schedule: &mut Schedule) {
        let end = at + self.flush;
        self.leave(end);
        schedule.complete(end + self.outbound, tag);
    }

    /// When something happens inside that somebody waits for.
    #[inline]
    fn next_event(&self) -> Option<Instant> {
        let mut next = None;
        let mut sooner = |at: Instant| next = Some(next.map_or(at, |known: Instant| known.min(at)));
        if !self.arbiter.is_empty()
            && let Some(&Reverse(at)) = self.leaving.peek()
        {
            sooner(at);
        }
        if let Some(at) = self.next_ready() {
            sooner(at);
        }
        if (!self.waiting.is_empty() || !self.barriers.is_empty())
            && let Some(at) = self.drain.next_event(&self.dies)
        {
            sooner(at);
        }
        next
    }

    /// Everything that happens inside up to `to`.
    #[inline]
    fn advance(&mut self, to: Instant, schedule: &mut Schedule) {
        loop {
            let drain_at = self.drain.next_event(&self.dies).filter(|&at| at <= to);
            let ready_at = self.next_ready().filter(|&at| at <= to);
            let leave_at = self.leaving.peek().map(|&Reverse(at)| at).filter(|&at| at <= to);
            let Some(first) = [drain_at, ready_at, leave_at].into_iter().flatten().min() else { return };
            if drain_at == Some(first) {
                self.drained(first, schedule);
            } else if ready_at == Some(first) {
                self.fill_buffer(first, schedule);
            } else {
                self.left(first, schedule);
            }
        }
    }

    /// A program has ended, or one can begin.
    fn drained(&mut self, at: Instant, schedule: &mut Schedule) {
        self.drain.advance(at, &mut self.dies, &mut self.random);
        while let Some(&Barrier { tag, put }) = self.barriers.front()
            && self.drain.is_past(put)
        {
            self.barriers.pop_front();
            self.end_barrier(at, tag, schedule);
        }
        self.fill_buffer(at, schedule);
    }

    /// A command has left the drive: another one can be fetched.
    fn left(&mut self, at: Instant, schedule: &mut Schedule) {
        self.leaving.pop();
        self.fetched = self.fetched.saturating_sub(1);
        if let Some(command) = self.arbiter.pop() {
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

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let at = now + self.inbound;
        self.advance(at, schedule);
        if self.fetches.is_none_or(|most| self.fetched < most) {
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
    use hoistway_blk::Sector;

    use super::*;
    use crate::preset::{Parameters, Preset};

    /// Sends writes and a flush now and then. At the end of each flush the bytes that were acknowledged before it must be in
    /// the flash.
    #[test]
    fn after_a_flush_everything_acknowledged_before_it_is_in_the_flash() {
        let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
        let Parameters::Flash(parameters) = preset.parameters() else { unreachable!() };
        let mut drive = Flash::new(preset.shape(), parameters, 1);
        let mut random = Random::from_seed(2);
        let mut schedule = Schedule::default();
        // Time, kind (0: submit, 1: alarm, 2: end), tag.
        let mut events = BinaryHeap::from([Reverse((Instant::ZERO, 0, 0_u32))]);
        let mut acknowledged_bytes = 0;
        let mut before_flush = std::collections::BTreeMap::new();
        let mut flushes = 0;
        while let Some(Reverse((now, kind, tag))) = events.pop() {
            let sectors = 8 * (1 + tag % 16);
            match kind {
                0 if tag < 5000 => {
                    let is_flush = tag % 50 == 49;
                    let (op, sectors) = if is_flush { (Op::Flush, 0) } else { (Op::Write, sectors) };
                    if is_flush {
                        before_flush.insert(tag, acknowledged_bytes);
                    }
                    let sector = Sector(random.below(1_000_000) * 8);
                    let command = Command { tag, queue: 0, op, sector, sectors, fua: false };
                    drive.submit(now, command, &mut schedule).unwrap();
                    events.push(Reverse((now + Nanos(random.below(100_000)), 0, tag + 1)));
                }
                0 => {}
                1 => drive.wake(now, tag, &mut schedule),
                _ => match before_flush.remove(&tag) {
                    Some(bytes) => {
                        flushes += 1;
                        // Writes are acknowledged in the order in which they come into the buffer.
                        assert!(drive.drain.is_past(bytes), "flush {tag}: {bytes} bytes");
                    }
                    None => acknowledged_bytes += u64::from(sectors) * SECTOR_BYTES,
                },
            }
            events.extend(schedule.alarms.drain(..).map(|(at, alarm)| Reverse((at, 1, alarm))));
            events.extend(schedule.completions.drain(..).map(|end| Reverse((end.at, 2, end.tag))));
        }
        assert_eq!((flushes, before_flush.len()), (100, 0));
    }
}
