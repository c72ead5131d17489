//! The dies: each does one operation at a time, first come, first served.

use hoistway_blk::ground::{Instant, Nanos};

use super::parameters::{FlashParameters, Placement};
use crate::random::{Random, UniformTime, from_us};

/// How long reads may keep programs and urgent collection from the dies (assumed: no drive holds writes up for as long as reads come).
pub(super) const HELD_UP_MAX: Nanos = Nanos::from_millis(10);

#[derive(Clone, Debug)]
pub(super) struct Dies {
    dies: Vec<Die>,
    read: UniformTime,
    /// The cost of a read that interrupts a program; `None` if reads cannot interrupt.
    suspend: Option<Nanos>,
    /// The time of a step of collection, which no read interrupts.
    step: Option<Nanos>,
    placement: Placement,
    /// No die is idle before this time; computed only when a program is placed.
    none_idle_before: Instant,
    /// Until when all dies do nothing.
    stalled_until: Instant,
    /// When the last read that has begun ends.
    reads_until: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Die {
    /// When it has completed all assigned operations.
    free_at: Instant,
    /// When it has completed all reads and what no read interrupts; only used if reads interrupt programs.
    read_free_at: Instant,
    /// When it would have completed its programs and collection if there were no reads.
    programmed_at: Instant,
    /// Total time of interruptions of its programs, and at which total the present ones are interrupted no more.
    suspended: Nanos,
    suspended_max: Nanos,
    /// The time of its program without interruptions, and the part of it that is collection.
    program: Nanos,
    collection: Nanos,
}

impl Die {
    /// Assigns it an operation at `at`, which reads may interrupt for [`HELD_UP_MAX`].
    #[inline]
    fn assign(&mut self, at: Instant, time: Nanos) {
        self.free_at = self.free_at.max(at) + time;
        self.programmed_at = self.programmed_at.max(at) + time;
        self.suspended_max = self.suspended + HELD_UP_MAX;
    }

    /// How long a read that comes while the program runs waits for the end of a step of collection, if there is one just then.
    #[cold]
    fn wait_for_step(&self, step: Nanos, random: &mut Random) -> Nanos {
        let is_collecting = random.below(self.program.0.max(1)) < self.collection.0;
        if is_collecting { Nanos(random.below(step.0.max(1))) } else { Nanos::ZERO }
    }
}

impl Dies {
    pub(super) fn new(parameters: &FlashParameters) -> Dies {
        Dies {
            dies: vec![Die::default(); parameters.dies as usize],
            read: UniformTime::around(from_us(parameters.read_us), parameters.read_jitter_percent),
            suspend: parameters.program_suspend_us.map(from_us),
            step: parameters.collection_step_us.map(from_us),
            placement: parameters.placement,
            none_idle_before: Instant::ZERO,
            stalled_until: Instant::ZERO,
            reads_until: Instant::ZERO,
        }
    }

    /// Reads a piece from the die determined by its number. Returns when it is done.
    #[inline]
    pub(super) fn read(
        &mut self,
        piece: u64,
        at: Instant,
        extra: Nanos,
        may_suspend: bool,
        random: &mut Random,
    ) -> Instant {
        let done = self.read_on_die(piece, at, extra, may_suspend, random);
        self.reads_until = self.reads_until.max(done);
        done
    }

    /// From then on no read that has begun is in the dies.
    #[inline]
    pub(super) fn reads_until(&self) -> Instant {
        self.reads_until
    }

    #[inline]
    fn read_on_die(
        &mut self,
        piece: u64,
        at: Instant,
        extra: Nanos,
        may_suspend: bool,
        random: &mut Random,
    ) -> Instant {
        // Fibonacci hashing: neighbours are on different dies, and no stride always hits the same die.
        let hash = (piece ^ (piece >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        let number = (mixed * self.dies.len() as u64) >> 32;
        let die = &mut self.dies[number as usize];
        let read = self.read.draw(random) + extra;
        let may_suspend = may_suspend && die.suspended <= die.suspended_max;
        let Some(suspend) = self.suspend.filter(|_| may_suspend) else {
            die.free_at = die.free_at.max(at) + read;
            die.read_free_at = die.free_at;
            return die.free_at;
        };
        let mut begin = die.read_free_at.max(at);
        if let Some(step) = self.step
            && die.read_free_at <= at
            && die.free_at > at
        {
            begin = die.free_at.min(at + die.wait_for_step(step, random));
        }
        let mut duration = read;
        if die.free_at > begin {
            duration += suspend;
            die.suspended += duration;
            die.free_at += duration;
        } else {
            die.free_at = begin + duration;
        }
        die.read_free_at = begin + duration;
        die.read_free_at
    }

    /// Assigns a program to a die at `at`, and then the collection that makes room for the next one, which is a part of `time`. Returns
    /// the die and when the data is in the flash, or `None` if all dies are busy and an idle one is required. If a flush waits for the
    /// program and no die is idle, it takes its turn at the die that is free first, since reads that keep coming might leave none idle.
    pub(super) fn program(
        &mut self,
        at: Instant,
        (time, collection): (Nanos, Nanos),
        is_forced: bool,
        random: &mut Random,
    ) -> Option<(u32, Instant)> {
        let number = match self.placement {
            Placement::AnyDie => random.below(self.dies.len() as u64) as usize,
            // Data dealt to dies uses `program_on` instead.
            Placement::IdleDie | Placement::Striped => match self.idle_die(at, random) {
                Some(idle) => idle,
                None if is_forced => self.first_free_die(),
                None => return None,
            },
        };
        let die = &mut self.dies[number];
        die.assign(at, time);
        (die.program, die.collection) = (time, collection);
        let programmed_at = Instant(die.free_at.0 - collection.0);
        if is_forced {
            // Reads that keep coming would hold up what a flush waits for, so they wait for the end of this program.
            die.read_free_at = programmed_at;
        }
        Some((number as u32, programmed_at))
    }

    /// Assigns a program to this die at `at`. Returns when it is done.
    pub(super) fn program_on(&mut self, die: u32, at: Instant, time: Nanos) -> Instant {
        let die = &mut self.dies[die as usize];
        die.assign(at, time);
        die.free_at
    }

    /// The same for an operation that no read interrupts.
    pub(super) fn occupy(&mut self, die: u32, at: Instant, time: Nanos) -> Instant {
        let end = self.program_on(die, at, time);
        self.dies[die as usize].read_free_at = end;
        end
    }

    /// All dies do nothing for this time after their current operations.
    pub(super) fn stall(&mut self, at: Instant, time: Nanos) {
        for die in 0..self.count() {
            self.stalled_until = self.stalled_until.max(self.occupy(die, at, time));
        }
    }

    /// How long it is that something waits for an idle die that only reads keep busy; `since` is when it began to.
    pub(super) fn held_up(&self, at: Instant, since: &mut Option<Instant>) -> Nanos {
        let since = since.get_or_insert(at);
        let idle_without_reads = self.dies.iter().map(|die| die.programmed_at).min().unwrap_or_default();
        *since = (*since).max(self.stalled_until).max(idle_without_reads);
        at.since(*since)
    }

    pub(super) fn count(&self) -> u32 {
        self.dies.len() as u32
    }

    /// When this die will have completed all assigned operations.
    pub(super) fn free_at(&self, die: u32) -> Instant {
        self.dies[die as usize].free_at
    }

    /// A die that is idle at `at`.
    fn idle_die(&mut self, at: Instant, random: &mut Random) -> Option<usize> {
        if self.none_idle_before > at {
            return None;
        }
        let idle = self.dies.iter().filter(|die| die.free_at <= at).count() as u64;
        if idle == 0 {
            self.none_idle_before = self.dies.iter().map(|die| die.free_at).min().unwrap_or_default();
            return None;
        }
        let nth_idle = random.below(idle) as usize;
        self.dies.iter().enumerate().filter(|(_, die)| die.free_at <= at).nth(nth_idle).map(|(number, _)| number)
    }

    /// The die that is free first.
    fn first_free_die(&self) -> usize {
        let first_free = self.dies.iter().enumerate().min_by_key(|(_, die)| die.free_at);
        first_free.map_or(0, |(number, _)| number)
    }

    /// Total time of interruptions of this die's programs.
    #[inline]
    pub(super) fn suspended(&self, die: u32) -> Nanos {
        self.dies[die as usize].suspended
    }

    /// No die will accept a program before this time.
    #[inline]
    pub(super) fn next_start(&self) -> Instant {
        self.none_idle_before
    }
}
