//! I/Os that were recorded, to be issued again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hoistway_blk::bio::{IoPriority, Op, PriorityClass};
use hoistway_blk::ground::Nanos;
use hoistway_load::{Io, Pacer, Pattern, Pause, PriorityRule, Process, Record, RecordError, Records, Replay, Summary};

const DEVICE: u64 = 1 << 20;
const AT_ONCE: Pause = Pause::After(Nanos::ZERO);

fn record(op: Op, file: u8, offset_bytes: u64, bytes: u32) -> Record {
    let priority = IoPriority::new(PriorityClass::Idle, 0);
    Record { io: Io { op, file, priority, bytes, offset_bytes }, pause: AT_ONCE }
}

fn replay_process(records: impl Records + 'static) -> Process {
    let mut process = Process::new("replay", 0, Pattern::default());
    process.plan.replay = Some(Replay::new(Arc::new(records)).unwrap().into());
    process
}

fn replay_of_list(records: &[Record]) -> Process {
    replay_process(Arc::<[Record]>::from(records))
}

fn summary(records: &[Record]) -> Summary {
    replay_of_list(records).plan.replay.unwrap().summary.clone()
}

#[test]
fn a_replay_repeats_the_recording_except_for_priorities_of_the_pattern() {
    let urgent = IoPriority::new(PriorityClass::RealTime, 3);
    let recorded = [
        record(Op::Read, 0, 4096, 4096),
        record(Op::Write, 0, 0, 8192),
        record(Op::Flush, 0, 0, 0),
        record(Op::Discard, 0, 512, 512),
    ];
    let mut process = replay_of_list(&recorded);
    let issued = |process: &Process| process.generator(0, 1, |_| DEVICE).unwrap().collect::<Vec<Io>>();
    assert_eq!(issued(&process), recorded.map(|record| record.io));
    let rule = PriorityRule { lane: 0, bytes: 4096, percent: 100, priority: urgent };
    process.plan.pattern_mut().priorities = [rule].into();
    assert!(process.plan.has_priorities() && process.plan.is_replay());
    let mut expected = recorded.map(|record| record.io);
    expected[0].priority = urgent;
    assert_eq!(issued(&process), expected);
}

#[test]
fn a_recording_summary_has_the_figures_that_loads_are_judged_by() {
    let (read, write) = (record(Op::Read, 0, 0, 4096), record(Op::Write, 1, 8192, 512));
    let nothing = summary(&[]);
    assert_eq!((nothing.ios, nothing.sizes, nothing.modifies, nothing.flushes), (0, None, false, false));
    let both = summary(&[read, write]);
    assert_eq!((both.ios, both.sizes, both.ends.as_slice()), (2, Some((512, 4096)), &[4096, 8704][..]));
    assert_eq!(summary(&[write, read]).sizes, Some((512, 4096)));
    assert!(both.modifies && !both.has_pauses && !both.flushes);
    assert!(!summary(&[read]).modifies && summary(&[record(Op::Discard, 0, 0, 512)]).modifies);
    let flush = summary(&[record(Op::Flush, 0, 0, 0)]);
    assert!(flush.flushes && !flush.modifies && flush.sizes.is_none());
    assert!(summary(&[Record { pause: Pause::After(Nanos(1)), ..read }]).has_pauses);
    assert!(summary(&[Record { pause: Pause::Until(Nanos::ZERO), ..read }]).has_pauses);
    // Both devices of the recording are the second one of the process.
    assert_eq!(both.on_devices(&[1, 1]).ends, [0, 8704]);
    let plan = |records: &[Record]| {
        let plan = replay_of_list(records).plan;
        (plan.block_bytes_min(), plan.block_bytes_max(), plan.modifies(), plan.flushes(), plan.is_random())
    };
    assert_eq!(plan(&[read, write]), (512, 4096, true, false, true));
    assert_eq!(plan(&[record(Op::Flush, 0, 0, 0)]), (0, 0, false, true, true));
}

#[test]
fn a_recording_of_which_half_begins_where_the_io_before_has_ended_is_sequential() {
    let follows = record(Op::Read, 0, 4096, 4096);
    assert!(!summary(&[record(Op::Read, 0, 0, 4096), follows]).is_random(), "one of two");
    assert!(summary(&[record(Op::Read, 0, 0, 4096), follows, follows]).is_random(), "one of three");
}

#[test]
fn a_recording_has_to_fit_its_devices_in_whole_sectors() {
    let fits = |records: &[Record]| {
        let generator = replay_of_list(records).generator(0, 1, |device| if device == 0 { DEVICE } else { 0 });
        generator.map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(fits(&[record(Op::Read, 0, DEVICE - 4096, 4096)]), Ok(()));
    let error = fits(&[record(Op::Read, 0, DEVICE - 4096, 4608)]).unwrap_err();
    assert!(error.contains("the log goes to byte 1049088, but the device has 1048576"), "{error}");
    assert!(fits(&[record(Op::Read, 1, 0, 512)]).is_err(), "the other device has nothing");
    assert_eq!(fits(&[record(Op::Flush, 1, 0, 0)]), Ok(()), "but can be flushed");
    let error = fits(&[record(Op::Read, 0, 512, 512), record(Op::Read, 0, 700, 512)]).unwrap_err();
    assert!(error.contains("the offset 700 is not a multiple of a sector"), "{error}");
}

/// Reads well once, and then yields something else.
#[derive(Debug)]
struct Changed {
    first: Vec<Record>,
    then: Vec<Result<Record, RecordError>>,
    opened: AtomicU32,
}

impl Records for Changed {
    fn open(&self, _: u64) -> Result<Box<dyn Iterator<Item = Result<Record, RecordError>> + Send>, RecordError> {
        Ok(match self.opened.fetch_add(1, Ordering::Relaxed) {
            0 => Box::new(self.first.clone().into_iter().map(Ok)),
            _ => Box::new(self.then.clone().into_iter()),
        })
    }
}

#[test]
fn a_recording_that_has_changed_since_the_load_was_made_ends_the_replay_as_failed() {
    let good = record(Op::Read, 0, 0, 4096);
    let error = RecordError { line: 2, message: "broken".to_owned(), hint: "" };
    let whole = vec![Ok(good), Ok(good)];
    for (then, ios, fails) in [
        (whole.clone(), 2, false),
        ([whole.clone(), vec![Ok(good)]].concat(), 2, false),
        (vec![Ok(good)], 1, true),
        (vec![Ok(good), Err(error)], 1, true),
        (vec![Ok(good), Ok(record(Op::Read, 0, DEVICE, 512))], 1, true),
        (vec![Ok(good), Ok(record(Op::Read, 0, u64::MAX - 511, 512))], 1, true),
        (vec![Ok(good), Ok(record(Op::Read, 1, 0, 512))], 1, true),
        (vec![Ok(record(Op::Read, 0, 100, 512)), Ok(good)], 0, true),
    ] {
        let records = format!("{then:?}");
        let process = replay_process(Changed { first: vec![good, good], then, opened: AtomicU32::new(0) });
        let mut generator = process.generator(0, 1, |_| DEVICE).unwrap();
        assert_eq!((generator.by_ref().count(), generator.has_failed()), (ios, fails), "{records}");
        assert_eq!(generator.next(), None, "{records}");
    }
}

#[test]
fn each_io_has_its_pause_and_time_beyond_it_is_not_made_up_for() {
    let ms = Nanos::from_millis;
    let read = record(Op::Read, 0, 0, 4096);
    let process = replay_of_list(&[
        Record { pause: Pause::After(ms(5)), ..read },
        Record { pause: Pause::Until(ms(30)), ..read },
    ]);
    let mut generator = process.generator(0, 1, |_| DEVICE).unwrap();
    let mut pacer: Pacer = process.pacer(0, 1).expect("there are pauses");
    assert_eq!(generator.pause(), None);
    let mut due = || {
        generator.next();
        generator.pause()
    };
    let first = due();
    assert_eq!(pacer.due(Op::Read, first), ms(5));
    pacer.issued(Op::Read, 4096, ms(7));
    assert_eq!(pacer.due(Op::Write, first), ms(12), "after the one before");
    assert_eq!(pacer.due(Op::Read, due()), ms(30), "from the start");
    assert!(replay_of_list(&[read]).pacer(0, 1).is_none(), "without pauses nothing is waited for");
}
