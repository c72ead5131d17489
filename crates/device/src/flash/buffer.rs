//! The write buffer: data is collected until it fills a program, or is dealt to dies in units, and leaves the buffer when
//! its program is done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hoistway_blk::ground::{Instant, Nanos};

use super::collection::Collection;
use super::dies::{Dies, HELD_UP_MAX};
use super::parameters::{FlashParameters, SlcCacheParameters};
use super::stripes::Stripes;
use super::translation::Translation;
use crate::model::Command;
use crate::random::{Random, UniformTime, from_ms, from_us};
use crate::streams::Streams;

#[derive(Clone, Debug)]
pub(super) struct WriteBuffer {
    /// Size of the buffer.
    buffer_bytes: u64,
    /// Bytes in it that are not in a program yet.
    collected: u64,
    /// The randomly written part of the collected bytes.
    collected_random: u64,
    program_bytes: u64,
    /// Data waiting for the die that it was dealt to; `None` if any die takes the next data.
    stripes: Option<Stripes>,
    program: UniformTime,
    /// Running programs, ordered by end.
    programs: BinaryHeap<Reverse<ProgramOperation>>,
    /// Total bytes ever put into the buffer.
    total_put: u64,
    /// The part of `total_put` that has reached the flash.
    programmed: u64,
    /// Bytes up to this total must be programmed even if they do not fill a program.
    forced_up_to: u64,
    /// Since when a program is due for which no die was idle.
    held_up_since: Option<Instant>,
    /// Up to this time programs wait for no idle die.
    takes_turns_until: Instant,
    streams: Streams,
    amplification: Amplification,
    /// Bytes that are erased already: programs of these need no collection.
    erased_bytes: u64,
    slc: Option<SlcCache>,
    collection: Option<Collection>,
    stall: Option<Stall>,
}

/// Stretches in which the dies do nothing else.
#[derive(Clone, Debug)]
struct Stall {
    every_bytes: u64,
    lasts: Nanos,
    /// Bytes to program before the next one.
    remaining: u64,
}

/// A running program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ProgramOperation {
    /// When its data is in the flash; the die may go on with collection.
    ends: Instant,
    die: u32,
    /// Total suspension of the die's programs when `ends` was computed.
    suspended: Nanos,
    bytes: u64,
    /// Total bytes put into the buffer before its own.
    start: u64,
}

/// How much more a die must program than the host writes.
#[derive(Clone, Debug)]
enum Amplification {
    /// Included in the program time.
    None,
    /// A factor for data that was written at random.
    RandomWrites(f64),
    /// Computed by the page map.
    Mapped(Box<Translation>),
}

#[derive(Clone, Debug)]
struct SlcCache {
    bytes: f64,
    used: f64,
    /// When `used` was last updated.
    counted_at: Instant,
    fold_bytes_per_ns: f64,
    program: UniformTime,
}

impl WriteBuffer {
    pub(super) fn new(parameters: &FlashParameters, capacity_pages: u64, random: &mut Random) -> WriteBuffer {
        let jittered = |us: f64| UniformTime::around(from_us(us), parameters.program_jitter_percent);
        let slc = |slc: &SlcCacheParameters| SlcCache {
            bytes: slc.gb * 1e9,
            used: 0.0,
            counted_at: Instant::ZERO,
            fold_bytes_per_ns: slc.fold_mb_per_s / 1e3,
            program: jittered(slc.program_us),
        };
        let amplification = match (&parameters.translation, parameters.random_write_amplification) {
            (Some(translation), _) => Amplification::Mapped(Box::new(Translation::new(
                translation,
                parameters.heat_placement,
                capacity_pages,
                random,
            ))),
            (None, Some(factor)) => Amplification::RandomWrites(factor),
            (None, None) => Amplification::None,
        };
        WriteBuffer {
            buffer_bytes: u64::from(parameters.buffer_kib) * 1024,
            collected: 0,
            collected_random: 0,
            program_bytes: u64::from(parameters.program_kib) * 1024,
            stripes: Stripes::new(parameters),
            program: jittered(parameters.program_us),
            programs: BinaryHeap::new(),
            total_put: 0,
            programmed: 0,
            forced_up_to: 0,
            held_up_since: None,
            takes_turns_until: Instant::ZERO,
            streams: Streams::default(),
            amplification,
            erased_bytes: (parameters.erased_gb.unwrap_or(0.0) * 1e9) as u64,
            slc: parameters.slc_cache.as_ref().map(slc),
            collection: parameters
                .collection
                .as_ref()
                .map(|section| Collection::new(section, parameters.program_jitter_percent, parameters.gc_defers)),
            stall: parameters.stall.as_ref().map(|stall| {
                let every_bytes = (stall.every_mb * 1e6) as u64;
                Stall { every_bytes, lasts: from_ms(stall.lasts_ms), remaining: every_bytes }
            }),
        }
    }

    /// Free bytes in the buffer.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        (self.programmed + self.buffer_bytes).saturating_sub(self.total_put)
    }

    /// Total bytes ever put into the buffer.
    #[inline]
    pub(super) fn total_put_bytes(&self) -> u64 {
        self.total_put
    }

    /// Whether the buffer has room for everything up to this total, so that it may be acknowledged.
    #[inline]
    pub(super) fn may_acknowledge(&self, position: u64) -> bool {
        position <= self.programmed + self.buffer_bytes
    }

    /// Whether a write waits for the die that it was dealt to.
    #[inline]
    pub(super) fn has_waiting_write_through(&self) -> bool {
        self.stripes.as_ref().is_some_and(Stripes::has_waiting_write_through)
    }

    /// The data that is dealt to dies.
    #[inline]
    pub(super) fn stripes(&mut self) -> Option<&mut Stripes> {
        self.stripes.as_mut()
    }

    /// Counts a write that the drive has fetched. Returns whether it is outside of any sequential stream.
    #[inline]
    pub(super) fn record_write(&mut self, command: &Command) -> bool {
        match &mut self.amplification {
            // If data is dealt to dies, the streams decide which writes may be acknowledged early.
            Amplification::None if self.stripes.is_some() => !self.streams.continues(command.sector, command.sectors),
            Amplification::None => false,
            Amplification::RandomWrites(_) => !self.streams.continues(command.sector, command.sectors),
            Amplification::Mapped(translation) => {
                translation.write(command.sector.0, command.sectors);
                false
            }
        }
    }

    /// Puts data into the buffer, which must have room unless data is dealt to dies.
    #[inline]
    pub(super) fn put(&mut self, bytes: u64, is_random: bool) {
        self.total_put += bytes;
        self.collected += bytes;
        if is_random {
            self.collected_random += bytes;
        }
    }

    /// Adds a write that is acknowledged when it is in the flash, and deals it to dies.
    pub(super) fn put_write_through(
        &mut self,
        tag: u32,
        bytes: u64,
        is_random: bool,
        dies: &Dies,
        random: &mut Random,
    ) {
        let start = self.total_put;
        self.put(bytes, is_random);
        if let Some(stripes) = &mut self.stripes {
            stripes.deal_write_through(tag, bytes, start, dies, random);
        }
    }

    /// Starts the programs that are due and can start.
    #[inline]
    pub(super) fn start_programs(&mut self, at: Instant, dies: &mut Dies, random: &mut Random) {
        if self.stripes.is_some() {
            self.deal(dies, random);
        }
        while self.is_due() && !self.is_collecting() {
            if !self.start_program(at, dies, random) && !self.force_if_held_up(at, dies) {
                break;
            }
        }
        if let Some(collection) = &mut self.collection {
            collection.start(at, dies, random);
        }
    }

    /// Whether more data waits for the flash than the buffer holds.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.total_put > self.programmed + self.buffer_bytes
    }

    /// Whether programs wait for garbage collection.
    #[inline]
    fn is_collecting(&self) -> bool {
        self.collection.as_ref().is_some_and(Collection::is_urgent)
    }

    /// Deals full units to dies, and partial ones that must be programmed.
    fn deal(&mut self, dies: &Dies, random: &mut Random) {
        let Some(stripes) = &mut self.stripes else { return };
        let mut undealt = self.collected - stripes.bytes();
        while undealt >= stripes.unit_bytes() || (undealt > 0 && self.total_put - undealt < self.forced_up_to) {
            let bytes = undealt.min(stripes.unit_bytes());
            stripes.deal(bytes, self.total_put - undealt, dies, random);
            undealt -= bytes;
        }
    }

    /// Whether a program should start.
    #[inline]
    fn is_due(&self) -> bool {
        match &self.stripes {
            Some(stripes) => stripes.bytes() > 0,
            None => self.collected >= self.program_bytes || self.is_forced(),
        }
    }

    /// Whether a flush waits for the next data that is in no program.
    #[inline]
    fn is_forced(&self) -> bool {
        self.total_put - self.collected < self.forced_up_to
    }

    /// No die is idle for the next program. Reads that keep coming might leave none idle for ever, so data that was held up for
    /// [`HELD_UP_MAX`] takes its turn for twice as long, like data that a flush waits for. Returns whether it may now start.
    #[cold]
    fn force_if_held_up(&mut self, at: Instant, dies: &Dies) -> bool {
        let held_up = dies.held_up(at, &mut self.held_up_since);
        if held_up >= HELD_UP_MAX {
            self.takes_turns_until = at + held_up + held_up;
        }
        let is_forced = at < self.takes_turns_until && self.forced_up_to < self.total_put;
        if is_forced {
            self.forced_up_to = self.total_put;
        }
        is_forced
    }

    /// Starts a program if possible. Returns whether one started.
    fn start_program(&mut self, at: Instant, dies: &mut Dies, random: &mut Random) -> bool {
        let program =
            if self.stripes.is_some() { self.start_batch(at, dies, random) } else { self.start_next(at, dies, random) };
        let Some(program) = program else { return false };
        self.held_up_since = None;
        let random_bytes = self.random_share(program.bytes);
        self.collected_random -= random_bytes;
        self.collected -= program.bytes;
        self.programs.push(Reverse(program));
        if self.erased_bytes > 0 {
            self.erased_bytes = self.erased_bytes.saturating_sub(program.bytes);
            return true;
        }
        if let Some(collection) = &mut self.collection {
            collection.consume(random_bytes, program.bytes);
        }
        if let Some(stall) = &mut self.stall {
            stall.remaining = stall.remaining.saturating_sub(program.bytes);
            if stall.remaining == 0 {
                stall.remaining = stall.every_bytes;
                dies.stall(at, stall.lasts);
            }
        }
        true
    }

    /// Starts a program of the next data on any die.
    #[inline]
    fn start_next(&mut self, at: Instant, dies: &mut Dies, random: &mut Random) -> Option<ProgramOperation> {
        let bytes = self.collected.min(self.program_bytes);
        let (time, collection, in_slc) = self.program_time(at, bytes, random);
        let (die, ends) = dies.program(at, (time, collection), self.is_forced(), random)?;
        self.charge_slc(bytes, in_slc);
        Some(ProgramOperation {
            ends,
            die,
            suspended: dies.suspended(die),
            bytes,
            start: self.total_put - self.collected,
        })
    }

    /// Starts a program of data that waits for its die.
    fn start_batch(&mut self, at: Instant, dies: &mut Dies, random: &mut Random) -> Option<ProgramOperation> {
        let batch = self.stripes.as_mut()?.next_batch(at, self.program_bytes, self.forced_up_to, dies)?;
        let (time, _, in_slc) = self.program_time(at, batch.bytes, random);
        let ends =
            if batch.is_awaited { dies.occupy(batch.die, at, time) } else { dies.program_on(batch.die, at, time) };
        self.charge_slc(batch.bytes, in_slc);
        self.stripes.as_mut()?.begin(&batch, ends);
        let suspended = dies.suspended(batch.die);
        Some(ProgramOperation { ends, die: batch.die, suspended, bytes: batch.bytes, start: batch.start })
    }

    /// The random part of the next program's bytes, assuming an even mix.
    fn random_share(&self, bytes: u64) -> u64 {
        if self.collected_random == 0 || self.collected_random == self.collected {
            // All data is of one kind, the usual case.
            return bytes.min(self.collected_random);
        }
        (u128::from(self.collected_random) * u128::from(bytes)).div_ceil(u128::from(self.collected)) as u64
    }

    /// Accounts for a program that has started, in the fast flash or not.
    fn charge_slc(&mut self, bytes: u64, in_slc: bool) {
        if let Some(slc) = self.slc.as_mut().filter(|_| in_slc) {
            slc.used += bytes as f64;
        }
    }

    /// The duration of a program that starts now, the part of it that is collection behind its data, and whether the fast flash has room for it.
    fn program_time(&mut self, at: Instant, bytes: u64, random: &mut Random) -> (Nanos, Nanos, bool) {
        let factor = match &self.amplification {
            Amplification::None => 1.0,
            Amplification::RandomWrites(_) if self.erased_bytes > 0 => 1.0,
            Amplification::RandomWrites(factor) => {
                1.0 + (factor - 1.0) * self.random_share(bytes) as f64 / bytes as f64
            }
            Amplification::Mapped(translation) => translation.amplification(),
        };
        if let Some(slc) = &mut self.slc {
            let folded = at.since(slc.counted_at).0 as f64 * slc.fold_bytes_per_ns;
            slc.used = (slc.used - folded).max(0.0);
            slc.counted_at = at;
            if slc.used + bytes as f64 <= slc.bytes {
                return (slc.program.draw(random), Nanos::ZERO, true);
            }
        }
        let time = self.program.draw(random);
        let amplified = if factor == 1.0 { time } else { Nanos((time.0 as f64 * factor) as u64) };
        // With a page map every program moves its share of old data first, as the calibration of such drives assumes.
        let follows = matches!(self.amplification, Amplification::RandomWrites(_));
        (amplified, if follows { Nanos(amplified.0.saturating_sub(time.0)) } else { Nanos::ZERO }, false)
    }

    /// When the next program ends or can start.
    #[inline]
    pub(super) fn next_event(&self, dies: &Dies) -> Option<Instant> {
        if self.total_put == 0 {
            // Nothing was written yet.
            return None;
        }
        let ends = self.programs.peek().map(|Reverse(program)| program.ends);
        let step = self.collection.as_ref().and_then(|collection| collection.next_event(dies));
        let begins = (self.is_due() && !self.is_collecting()).then(|| match &self.stripes {
            // It waits for an idle die.
            Some(stripes) => stripes.next_start().unwrap_or_default(),
            None => dies.next_start(),
        });
        [ends, step, begins].into_iter().flatten().min()
    }

    /// Ends the programs that are done at `at`, and starts those that can start.
    pub(super) fn advance(&mut self, at: Instant, dies: &mut Dies, random: &mut Random) {
        while let Some(&Reverse(mut program)) = self.programs.peek()
            && program.ends <= at
        {
            self.programs.pop();
            let suspended = dies.suspended(program.die);
            if suspended > program.suspended {
                program.ends += Nanos(suspended.0 - program.suspended.0);
                program.suspended = suspended;
                self.programs.push(Reverse(program));
                continue;
            }
            self.programmed += program.bytes;
        }
        if let Some(collection) = &mut self.collection {
            collection.advance(at);
        }
        self.start_programs(at, dies, random);
    }

    /// Forces everything in the buffer to the flash. Returns the position for [`WriteBuffer::is_programmed`].
    pub(super) fn force(&mut self, at: Instant, dies: &mut Dies, random: &mut Random) -> u64 {
        self.forced_up_to = self.total_put;
        self.start_programs(at, dies, random);
        self.forced_up_to
    }

    /// Whether everything up to this total is in the flash.
    pub(super) fn is_programmed(&self, position: u64) -> bool {
        let (dealt, is_dealt_past) =
            self.stripes.as_ref().map_or((0, true), |stripes| (stripes.bytes(), stripes.has_dealt(position)));
        self.total_put - self.collected + dealt >= position
            && is_dealt_past
            && self.programs.iter().all(|Reverse(program)| program.start >= position)
    }
}

#[cfg(test)]
mod tests;
