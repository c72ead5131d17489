//! When data is programmed, and when it leaves the write buffer.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::Sector;

use super::*;
use crate::flash::parameters::{CollectionParameters, StallParameters, StripingParameters};
use crate::preset::{Parameters, Preset};

const PROGRAM: u64 = 32 << 10;
const PROGRAM_NS: u64 = 1_000_000;

/// Two dies whose programs take 1 ms and hold 32 KiB, and a buffer of 128 KiB.
fn parameters(change: impl FnOnce(&mut FlashParameters)) -> FlashParameters {
    let preset = Preset::builtin("usb-stick").unwrap();
    let Parameters::Flash(mut parameters) = preset.parameters().clone() else { unreachable!() };
    (parameters.program_us, parameters.program_jitter_percent) = (1000.0, 0.0);
    parameters.random_write_amplification = None;
    change(&mut parameters);
    *parameters
}

struct Drive {
    buffer: WriteBuffer,
    dies: Dies,
    random: Random,
}

impl Drive {
    fn new(change: impl FnOnce(&mut FlashParameters)) -> Drive {
        let (parameters, mut random) = (parameters(change), Random::from_seed(1));
        Drive { buffer: WriteBuffer::new(&parameters, 1 << 20, &mut random), dies: Dies::new(&parameters), random }
    }

    fn start(&mut self, at_ns: u64) {
        self.buffer.start_programs(Instant(at_ns), &mut self.dies, &mut self.random);
    }

    fn advance(&mut self, at_ns: u64) {
        self.buffer.advance(Instant(at_ns), &mut self.dies, &mut self.random);
    }

    /// A write that is acknowledged when it is in the flash: dealt in units.
    fn put_large(&mut self, bytes: u64) {
        self.buffer.put_write_through(0, bytes, true, &self.dies, &mut self.random);
    }

    fn next(&self) -> Option<u64> {
        self.buffer.next_event(&self.dies).map(|at| at.0)
    }
}

#[test]
fn data_leaves_the_buffer_when_its_program_is_done_and_waits_until_it_fills_one() {
    let mut drive = Drive::new(|_| {});
    drive.buffer.put(PROGRAM - 512, false);
    drive.start(0);
    assert_eq!(drive.next(), None, "half a program is no program");
    drive.buffer.put(PROGRAM + 512, false);
    drive.start(0);
    assert_eq!((drive.next(), drive.buffer.room()), (Some(PROGRAM_NS), 2 * PROGRAM), "both dies are at work");
    drive.buffer.put(2 * PROGRAM, false);
    assert_eq!((drive.buffer.room(), drive.buffer.total_put_bytes()), (0, 4 * PROGRAM));
    assert!(drive.buffer.may_acknowledge(4 * PROGRAM) && !drive.buffer.may_acknowledge(4 * PROGRAM + 1));
    drive.start(10);
    drive.advance(PROGRAM_NS - 1);
    assert_eq!(drive.buffer.room(), 0);
    drive.advance(PROGRAM_NS);
    assert_eq!((drive.buffer.room(), drive.next()), (2 * PROGRAM, Some(2 * PROGRAM_NS)), "and the next two begin");
    drive.advance(2 * PROGRAM_NS);
    assert_eq!((drive.buffer.room(), drive.next()), (4 * PROGRAM, None));
}

#[test]
fn forced_data_is_programmed_in_a_partial_program_and_later_data_is_not() {
    let mut drive = Drive::new(|_| {});
    drive.buffer.put(512, false);
    let until = drive.buffer.force(Instant(0), &mut drive.dies, &mut drive.random);
    assert_eq!((until, drive.buffer.is_programmed(until), drive.next()), (512, false, Some(PROGRAM_NS)));
    drive.buffer.put(512, false);
    drive.start(0);
    assert_eq!(drive.buffer.programs.len(), 1);
    drive.advance(PROGRAM_NS);
    assert!(drive.buffer.is_programmed(512) && !drive.buffer.is_programmed(513));
    assert_eq!(drive.next(), None);
}

#[test]
fn random_data_keeps_the_die_busy_behind_its_program_in_proportion_to_its_share() {
    let takes = |random: u64, sequential: u64| {
        let mut drive = Drive::new(|parameters| parameters.random_write_amplification = Some(5.0));
        drive.buffer.put(random, true);
        drive.buffer.put(sequential, false);
        drive.start(0);
        assert_eq!(drive.next(), Some(PROGRAM_NS), "then it is in the flash");
        let busy_ns = (0..drive.dies.count()).map(|die| drive.dies.free_at(die).0).max();
        // The rest of each kind is programmed separately.
        drive.buffer.force(Instant(0), &mut drive.dies, &mut drive.random);
        drive.advance(60 * PROGRAM_NS);
        assert_eq!((drive.buffer.collected, drive.buffer.collected_random), (0, 0));
        busy_ns
    };
    assert_eq!(takes(0, PROGRAM), Some(PROGRAM_NS));
    assert_eq!(takes(PROGRAM, 0), Some(5 * PROGRAM_NS));
    assert_eq!(takes(PROGRAM / 2, PROGRAM / 2), Some(3 * PROGRAM_NS));
    assert!(takes(PROGRAM / 2, PROGRAM).is_some_and(|ns| ns.abs_diff(PROGRAM_NS * 7 / 3) < 1000), "a third of it");
}

#[test]
fn only_writes_that_continue_no_stream_count_as_random() {
    let mut drive = Drive::new(|parameters| parameters.random_write_amplification = Some(5.0));
    let mut is_random = |sector| {
        drive.buffer.record_write(&Command {
            tag: 0,
            queue: 0,
            op: Op::Write,
            sector: Sector(sector),
            sectors: 8,
            fua: false,
        })
    };
    assert_eq!([is_random(800), is_random(808), is_random(5000), is_random(816)], [true, false, true, false]);
    let mut other = Drive::new(|_| {});
    let command = Command { tag: 0, queue: 0, op: Op::Write, sector: Sector(8), sectors: 8, fua: false };
    assert!(!other.buffer.record_write(&command), "where it makes no difference it is not looked at");
}

#[test]
fn the_fast_flash_takes_programs_until_it_is_full_and_again_as_it_is_tidied_up() {
    let slc = SlcCacheParameters { gb: 2.0 * PROGRAM as f64 / 1e9, program_us: 100.0, fold_mb_per_s: 32.768 };
    let mut drive = Drive::new(|parameters| (parameters.slc_cache, parameters.dies) = (Some(slc), 1));
    drive.buffer.put(4 * PROGRAM, false);
    let mut ends = Vec::new();
    let mut now = 0;
    drive.start(0);
    while let Some(at) = drive.next() {
        ends.push(at - now);
        now = at;
        drive.advance(at);
    }
    // Folding frees a tenth of a program in 100 us, and a whole one in 1 ms.
    assert_eq!(ends, [100_000, 100_000, PROGRAM_NS, 100_000]);
}

/// Dies for large writes in units of 8 KiB, four to a program.
fn striped(dies: u32, collection: Option<CollectionParameters>) -> Drive {
    let striping = StripingParameters { write_through_kib: 64, write_through_unit_kib: 8 };
    Drive::new(|parameters| {
        (parameters.striping, parameters.dies, parameters.collection) = (Some(striping), dies, collection);
    })
}

const UNIT: u64 = PROGRAM / 4;

#[test]
fn data_dealt_to_a_die_is_programmed_together() {
    let mut drive = striped(1, None);
    drive.buffer.put(PROGRAM / 2, false);
    drive.start(0);
    assert_eq!(drive.next(), None, "half a program is not dealt");
    drive.buffer.put(PROGRAM / 2, false);
    drive.start(0);
    assert_eq!((drive.next(), drive.buffer.programs.len()), (Some(PROGRAM_NS), 1));
    let first = drive.buffer.total_put_bytes();
    // Six units wait for the die, four of which it programs together.
    drive.put_large(6 * UNIT);
    drive.start(10);
    assert!(!drive.buffer.is_programmed(first) && drive.buffer.is_programmed(0));
    drive.advance(PROGRAM_NS);
    assert!(drive.buffer.is_programmed(first) && !drive.buffer.is_programmed(first + 1));
    assert_eq!((drive.next(), drive.buffer.stripes.as_ref().unwrap().bytes()), (Some(2 * PROGRAM_NS), 2 * UNIT));
    drive.advance(2 * PROGRAM_NS);
    assert!(drive.buffer.is_programmed(first + 4 * UNIT) && !drive.buffer.is_programmed(first + 4 * UNIT + 1));
    drive.advance(3 * PROGRAM_NS);
    assert!(drive.buffer.is_programmed(10 * UNIT) && !drive.buffer.is_programmed(10 * UNIT + 1));
    assert_eq!(drive.next(), None);
}

/// Room for this many programs, freed in 3 ms each.
fn collection(programs: u32) -> Option<CollectionParameters> {
    Some(CollectionParameters { programs, step_us: 3000.0, step_programs: 1 })
}

/// When programs of a unit each begin, in ms, if one unit always waits.
fn begins(drive: &mut Drive, programs: usize) -> Vec<u64> {
    let (mut at, mut begins) = (0, Vec::new());
    while begins.len() < programs {
        if drive.buffer.collected == 0 {
            drive.put_large(UNIT);
        }
        drive.advance(at);
        if drive.buffer.collected == 0 {
            begins.push(at / PROGRAM_NS);
            drive.put_large(UNIT);
        }
        at = drive.next().unwrap();
    }
    begins
}

#[test]
fn without_free_flash_programming_waits_until_the_store_is_full() {
    // The one die is never idle, so nothing is freed until both programs are taken: two steps of 3 ms.
    assert_eq!(begins(&mut striped(1, collection(2)), 5), [0, 1, 8, 9, 16]);
    assert_eq!(begins(&mut striped(1, None), 5), [0, 1, 2, 3, 4]);
}

#[test]
fn a_program_takes_as_much_free_flash_if_it_holds_little() {
    let programmed = |units: u64| {
        let mut drive = striped(1, collection(2));
        for program in 0..2 {
            drive.put_large(units * UNIT);
            drive.advance(program * PROGRAM_NS);
        }
        drive.put_large(units * UNIT);
        drive.advance(2 * PROGRAM_NS);
        assert!(drive.buffer.is_collecting() && drive.buffer.programs.is_empty());
        drive.buffer.programmed
    };
    assert_eq!([programmed(1), programmed(4)], [2 * UNIT, 8 * UNIT]);
}

#[test]
fn an_idle_die_frees_flash_and_a_die_for_which_something_waits_does_not() {
    let mut drive = striped(1, collection(8));
    drive.put_large(2 * UNIT);
    drive.start(0);
    let free = |drive: &Drive| drive.buffer.collection.as_ref().unwrap().next_event(&drive.dies).map(|at| at.0);
    assert_eq!((drive.next(), free(&drive)), (Some(PROGRAM_NS), None), "the die is at work");
    drive.put_large(UNIT);
    drive.advance(PROGRAM_NS);
    assert_eq!(free(&drive), None, "there is more to program");
    drive.advance(2 * PROGRAM_NS);
    assert_eq!(free(&drive), Some(5 * PROGRAM_NS));
    drive.advance(5 * PROGRAM_NS);
    assert_eq!(free(&drive), Some(8 * PROGRAM_NS));
    drive.advance(8 * PROGRAM_NS);
    assert_eq!((free(&drive), drive.next()), (None, None), "the store is full");
}

#[test]
fn a_step_waits_for_reads_if_it_is_deferred_until_a_quarter_of_the_store_is_left() {
    let free_at = |defers: bool, programs: u32| {
        let striping = StripingParameters { write_through_kib: 64, write_through_unit_kib: 8 };
        let mut drive = Drive::new(|parameters| {
            (parameters.striping, parameters.dies, parameters.collection) = (Some(striping), 8, collection(8));
            (parameters.gc_defers, parameters.read_us, parameters.read_jitter_percent) = (defers, 100_000.0, 0.0);
        });
        // A read keeps one of the dies for 100 ms.
        drive.dies.read(0, Instant(0), Nanos::ZERO, false, &mut drive.random);
        let mut at = 0;
        let collection = |drive: &Drive| drive.buffer.collection.clone().unwrap();
        while collection(&drive).is_idle() && collection(&drive).used() < programs {
            drive.put_large(UNIT);
            drive.start(at);
            at += PROGRAM_NS;
            drive.advance(at);
        }
        while collection(&drive).is_idle() {
            at = drive.next().unwrap();
            drive.advance(at);
        }
        at / PROGRAM_NS
    };
    let [now, deferred, low] = [free_at(false, 3), free_at(true, 3), free_at(true, 7)];
    assert!(now < 10 && low < 20, "{now} {low}");
    assert_eq!(deferred, 100, "when the read has ended");
}

#[test]
fn collection_that_programs_wait_for_begins_when_reads_let_a_die_go() {
    let mut drive = striped(1, collection(1));
    drive.put_large(UNIT);
    drive.start(0);
    drive.put_large(UNIT);
    let read = drive.dies.read(0, Instant(0), Nanos::ZERO, true, &mut drive.random);
    assert!(read.0 > PROGRAM_NS, "it waits for the program");
    drive.advance(PROGRAM_NS);
    assert_eq!(drive.next(), Some(read.0));
    drive.advance(read.0);
    assert_eq!(drive.next(), Some(read.0 + 3 * PROGRAM_NS));
    drive.advance(read.0 + 3 * PROGRAM_NS);
    assert_eq!(drive.buffer.programs.len(), 1);
}

#[test]
fn writes_that_are_acknowledged_when_they_are_in_the_flash_end_in_order_once_their_last_program_is_known() {
    let mut drive = striped(1, None);
    // Four units of 8 KiB are a program: the second write has two units of each of two programs.
    for (tag, kib) in [(7, 16), (8, 32), (9, 16)] {
        drive.buffer.put_write_through(tag, kib << 10, true, &drive.dies, &mut drive.random);
    }
    assert!(drive.buffer.has_waiting_write_through());
    drive.start(0);
    let next_end = |drive: &mut Drive| drive.buffer.stripes().unwrap().pop_end().map(|(tag, _, at)| (tag, at.0));
    assert_eq!(next_end(&mut drive), Some((7, PROGRAM_NS)));
    assert_eq!(next_end(&mut drive), None, "half of it waits");
    drive.advance(PROGRAM_NS);
    let ends = 2 * PROGRAM_NS;
    assert_eq!(next_end(&mut drive), Some((8, ends)));
    assert_eq!(next_end(&mut drive), Some((9, ends)));
    assert!(!drive.buffer.has_waiting_write_through());
}

#[test]
fn one_idle_die_at_a_time_collects_and_a_step_frees_several_programs() {
    let steps = CollectionParameters { programs: 8, step_us: 3000.0, step_programs: 2 };
    let mut drive = striped(2, Some(steps));
    for at in 0..4 {
        drive.put_large(UNIT);
        drive.advance(at * PROGRAM_NS);
    }
    // A second die is idle, but one step at a time is enough while there is free flash.
    let mut ends = Vec::new();
    while let Some(at) = drive.next() {
        drive.advance(at);
        ends.push(at);
    }
    // The first step begins with the second program, and the other one after it.
    assert!(ends.last().is_some_and(|last| (7..10).contains(&(last / PROGRAM_NS))), "{ends:?}");
}

#[test]
fn after_so_much_data_all_dies_stall_and_reads_wait() {
    let stall = StallParameters { every_mb: 2.0 * PROGRAM as f64 / 1e6, lasts_ms: 30.0 };
    let mut drive = Drive::new(|parameters| parameters.stall = Some(stall));
    let mut read_takes_ms = |at: u64| {
        drive.buffer.put(PROGRAM, false);
        drive.start(at);
        let read_ns = drive.dies.read(0, Instant(at), Nanos::ZERO, false, &mut drive.random).0 - at;
        drive.advance(at + 50 * PROGRAM_NS);
        read_ns / PROGRAM_NS
    };
    let takes = [0, 100, 200, 300].map(|ms| read_takes_ms(ms * PROGRAM_NS));
    assert!(takes[0] < 3 && (30..33).contains(&takes[1]) && takes[2] < 3 && (30..33).contains(&takes[3]), "{takes:?}");
}

#[test]
fn a_read_interrupts_a_program_of_acknowledged_data_only() {
    let read_ends = |is_large: bool, may_suspend: bool| {
        let striping = StripingParameters { write_through_kib: 64, write_through_unit_kib: 32 };
        let mut drive = Drive::new(|parameters| {
            (parameters.striping, parameters.dies) = (Some(striping), 1);
            (parameters.program_suspend_us, parameters.read_us) = (Some(10.0), 50.0);
        });
        if is_large {
            drive.put_large(PROGRAM)
        } else {
            drive.buffer.put(PROGRAM, false)
        }
        drive.start(0);
        drive.dies.read(0, Instant(0), Nanos::ZERO, may_suspend, &mut drive.random).0
    };
    assert!(read_ends(false, true) < PROGRAM_NS / 2);
    assert!([(false, false), (true, true)].into_iter().all(|(is_large, may)| read_ends(is_large, may) > PROGRAM_NS));
}
