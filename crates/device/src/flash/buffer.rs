//! The write buffer and its way to the flash: data is collected until it fills a program, and leaves the buffer when the
//! program is done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hoistway_blk::{Instant, Nanos, SECTOR_BYTES};

use super::dies::Dies;
use super::parameters::{FlashParameters, SlcCacheParameters};
use super::translation::Translation;
use crate::model::Command;
use crate::random::{Random, UniformTime, from_ms, from_us};
use crate::streams::Streams;

#[derive(Clone, Debug)]
pub(super) struct Drain {
    /// Bytes that the buffer still takes.
    room: u64,
    /// Bytes in it that are in no program yet.
    collected: u64,
    /// How many of those were written at random.
    collected_random: u64,
    program_bytes: u64,
    program: UniformTime,
    /// Programs under way, the first to end first.
    programs: BinaryHeap<Reverse<Program>>,
    /// Bytes that have ever been put into the buffer.
    put: u64,
    /// So many of them are to be programmed even if they fill no program.
    forced: u64,
    streams: Streams,
    amplification: Amplification,
    slc: Option<Slc>,
    pause: Option<Pause>,
    stall: Option<Stall>,
}

/// A program under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Program {
    ends: Instant,
    die: u32,
    /// How long the programs of the die had been suspended when `ends` was right.
    suspended: Nanos,
    bytes: u64,
    /// Bytes that had ever been put into the buffer before its own.
    from: u64,
}

/// How much more a die must program than the host has written.
#[derive(Clone, Debug)]
enum Amplification {
    /// It is part of the program time.
    None,
    /// Data that was written at random counts so many times.
    OfRandom(f64),
    /// What the page map says.
    Mapped(Box<Translation>),
}

#[derive(Clone, Debug)]
struct Slc {
    bytes: f64,
    used: f64,
    /// When `used` was right.
    counted_at: Instant,
    fold_bytes_per_ns: f64,
    program: UniformTime,
}

#[derive(Clone, Debug)]
struct Pause {
    /// Bytes between two pauses; drawn as times are.
    after: UniformTime,
    command_bytes: u64,
    /// Bytes until the next pause.
    left: u64,
    lasts: UniformTime,
    until: Instant,
}

#[derive(Clone, Debug)]
struct Stall {
    bytes: UniformTime,
    left: u64,
    lasts: Nanos,
}

impl Drain {
    pub(super) fn new(parameters: &FlashParameters, capacity_pages: u64, random: &mut Random) -> Drain {
        let around = |us: f64| UniformTime::around(from_us(us), parameters.program_jitter_percent);
        let slc = |slc: &SlcCacheParameters| Slc {
            bytes: slc.gb * 1e9,
            used: 0.0,
            counted_at: Instant::ZERO,
            fold_bytes_per_ns: slc.fold_mb_per_s / 1e3,
            program: around(slc.program_us),
        };
        let amplification = match (&parameters.translation, parameters.random_write_amplification) {
            (Some(translation), _) => {
                Amplification::Mapped(Box::new(Translation::new(translation, capacity_pages, random)))
            }
            (None, Some(times)) => Amplification::OfRandom(times),
            (None, None) => Amplification::None,
        };
        let stall = parameters.stall.as_ref().map(|stall| {
            // Bytes are drawn as times are.
            let bytes = UniformTime::around(Nanos((stall.every_gb * 1e9) as u64), 50.0);
            Stall { bytes, left: bytes.draw(random).0, lasts: from_ms(stall.lasts_ms) }
        });
        let pause = parameters.drain_pause.as_ref().map(|pause| {
            let after = UniformTime::around(Nanos((pause.after_mb * 1e6) as u64), pause.after_jitter_percent);
            Pause {
                after,
                command_bytes: (pause.command_kib * 1024.0) as u64,
                left: after.draw(random).0,
                lasts: UniformTime::around(from_ms(pause.lasts_ms), pause.jitter_percent),
                until: Instant::ZERO,
            }
        });
        Drain {
            room: u64::from(parameters.buffer_kib) * 1024,
            collected: 0,
            collected_random: 0,
            program_bytes: u64::from(parameters.program_kib) * 1024,
            program: around(parameters.program_us),
            programs: BinaryHeap::new(),
            put: 0,
            forced: 0,
            streams: Streams::default(),
            amplification,
            slc: parameters.slc_cache.as_ref().map(slc),
            pause,
            stall,
        }
    }

    #[inline]
    pub(super) fn room(&self) -> u64 {
        self.room
    }

    /// Counts a write that the drive has fetched. Answers whether it is part of no sequential stream.
    #[inline]
    pub(super) fn count(&mut self, command: &Command) -> bool {
        if let Some(pause) = &mut self.pause {
            let bytes = pause.command_bytes + u64::from(command.sectors) * SECTOR_BYTES;
            pause.left = pause.left.saturating_sub(bytes);
        }
        match &mut self.amplification {
            Amplification::None => false,
            Amplification::OfRandom(_) => !self.streams.continues(command.sector, command.sectors),
            Amplification::Mapped(translation) => {
                translation.write(command.sector.0, command.sectors);
                false
            }
        }
    }

    /// Whether everything stops now that so much more is written, and for how long.
    #[inline]
    pub(super) fn stall(&mut self, bytes: u64, random: &mut Random) -> Option<Nanos> {
        let stall = self.stall.as_mut()?;
        if stall.left > bytes {
            stall.left -= bytes;
            return None;
        }
        stall.left = stall.bytes.draw(random).0;
        Some(stall.lasts)
    }

    /// Puts data into the buffer; it must have room.
    #[inline]
    pub(super) fn put(&mut self, bytes: u64, is_random: bool) {
        self.room -= bytes;
        self.put += bytes;
        self.collected += bytes;
        if is_random {
            self.collected_random += bytes;
        }
    }

    /// Begins the programs that are due and can begin.
    #[inline]
    pub(super) fn start_programs(&mut self, at: Instant, dies: &mut Dies, random: &mut Random) {
        while self.is_due() && self.start_program(at, dies, random) {}
    }

    /// Whether there is a program to begin.
    #[inline]
    fn is_due(&self) -> bool {
        self.collected >= self.program_bytes || self.put - self.collected < self.forced
    }

    /// Begins a program, if one can begin.
    fn start_program(&mut self, at: Instant, dies: &mut Dies, random: &mut Random) -> bool {
        if let Some(pause) = &mut self.pause {
            if pause.until > at {
                return false;
            }
            if pause.left == 0 {
                pause.left = pause.after.draw(random).0;
                pause.until = at + pause.lasts.draw(random);
                return false;
            }
        }
        let bytes = self.collected.min(self.program_bytes);
        let time = self.program_time(at, bytes, random);
        let Some((die, ends)) = dies.program(at, time, random) else { return false };
        let (suspended, from) = (dies.suspended(die), self.put - self.collected);
        self.collected_random -= self.random_share(bytes);
        self.collected -= bytes;
        self.programs.push(Reverse(Program { ends, die, suspended, bytes, from }));
        true
    }

    /// How much of the next program's bytes was written at random, if it is mixed evenly.
    fn random_share(&self, bytes: u64) -> u64 {
        if self.collected_random == 0 || self.collected_random == self.collected {
            // All of one kind, as mostly.
            return bytes.min(self.collected_random);
        }
        (u128::from(self.collected_random) * u128::from(bytes)).div_ceil(u128::from(self.collected)) as u64
    }

    fn program_time(&mut self, at: Instant, bytes: u64, random: &mut Random) -> Nanos {
        let times = match &self.amplification {
            Amplification::None => 1.0,
            Amplification::OfRandom(times) => 1.0 + (times - 1.0) * self.random_share(bytes) as f64 / bytes as f64,
            Amplification::Mapped(translation) => translation.amplification(),
        };
        if let Some(slc) = &mut self.slc {
            let folded = at.since(slc.counted_at).0 as f64 * slc.fold_bytes_per_ns;
            slc.used = (slc.used - folded).max(0.0);
            slc.counted_at = at;
            if slc.used + bytes as f64 <= slc.bytes {
                slc.used += bytes as f64;
                return slc.program.draw(random);
            }
        }
        let time = self.program.draw(random);
        if times == 1.0 { time } else { Nanos((time.0 as f64 * times) as u64) }
    }

    /// When the next program ends or can begin.
    #[inline]
    pub(super) fn next_event(&self, dies: &Dies) -> Option<Instant> {
        let ends = self.programs.peek().map(|Reverse(program)| program.ends);
        if !self.is_due() {
            return ends;
        }
        // It waits for the end of a pause or for an idle die.
        let paused = self.pause.as_ref().map_or(Instant::ZERO, |pause| pause.until);
        let begins = paused.max(dies.next_start());
        Some(ends.map_or(begins, |ends| ends.min(begins)))
    }

    /// Ends the programs that are done at `at`, and begins what can begin.
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
            self.room += program.bytes;
        }
        self.start_programs(at, dies, random);
    }

    /// Makes everything that is in the buffer go to the flash. Answers how far that is, for [`Drain::is_past`].
    pub(super) fn force(&mut self, at: Instant, dies: &mut Dies, random: &mut Random) -> u64 {
        self.forced = self.put;
        self.start_programs(at, dies, random);
        self.forced
    }

    /// Whether everything up to there is in the flash.
    pub(super) fn is_past(&self, put: u64) -> bool {
        self.put - self.collected >= put && self.programs.iter().all(|Reverse(program)| program.from >= put)
    }
}
