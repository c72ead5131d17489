//! What is written is read again as it was.

use std::path::Path;

use hoistway_blk::bio::IoPriority;
use hoistway_trace::block::{Action, BlktraceWriter, CpuFile, Device, Event, Flags, Names, Payload, Recording};
use proptest::prelude::*;

use crate::support::{all, path, read};

const CPUS: u32 = 3;

fn event() -> impl Strategy<Value = Event> {
    let place = (0u64..1 << 40, 0u32..64);
    let what = (0usize..Action::ALL.len(), any::<u16>(), any::<u64>());
    let who = (0u32..5, 0u32..CPUS, 0u32..1 << 20, any::<u16>());
    (place, what, who).prop_map(|((sector, sectors), (action, flags, number), (pid, cpu, minor, error))| {
        let (action, bytes) = (Action::ALL[action], sectors * 512);
        let flags = Flags::from_category(flags);
        // An I/O with data has a direction, and one without is no read.
        let flags = match (bytes, flags.has(Flags::WRITE)) {
            (0, _) => flags.without(Flags::READ),
            (_, false) => flags | Flags::READ,
            (_, true) => flags,
        };
        let payload = match action {
            Action::Unplug | Action::UnplugScheduled => Payload::Requests(number),
            Action::Split => Payload::Rest(number),
            Action::Remap => Payload::From { device: Device { major: 8, minor }, sector: number },
            _ => Payload::None,
        };
        let device = Device { major: 8, minor: 16 };
        let (priority, cgroup) = (IoPriority::UNSET, 0);
        Event { time_ns: 0, sector, bytes, pid, device, cpu, error, action, flags, priority, cgroup, payload }
    })
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((event(), 1u64..1_000_000), 1..60).prop_map(|pairs| {
        let mut now_ns = 0;
        let timed = pairs.into_iter().map(|(event, gap_ns)| {
            now_ns += gap_ns;
            Event { time_ns: now_ns, ..event }
        });
        timed.collect()
    })
}

/// Writes events as a set of files.
fn write(events: &[Event], names: &Names, folder: &Path) {
    let mut writer = BlktraceWriter::new((0..CPUS).map(|_| Vec::new()).collect());
    events.iter().for_each(|event| writer.write(event, names).unwrap());
    for (cpu, bytes) in writer.finish().unwrap().into_iter().enumerate() {
        std::fs::write(folder.join(format!("x.blktrace.{cpu}")), bytes).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn events_are_the_same_after_they_were_written_and_read(events in events()) {
        let folder = tempfile::tempdir().unwrap();
        let mut names = Names::default();
        names.learn(1, b"one");
        write(&events, &names, folder.path());
        let mut recording = Recording::open(&folder.path().join("x.blktrace.1")).unwrap();
        for event in &events {
            prop_assert_eq!(recording.next_event().unwrap(), Some(*event));
        }
        prop_assert_eq!(recording.next_event().unwrap(), None);
        let has_it = events.iter().any(|event| event.pid == 1);
        prop_assert_eq!(recording.names().get(1), has_it.then_some("one"));
        prop_assert_eq!(recording.losses().lost_events, 0);
    }
}

#[test]
fn a_real_recording_is_the_same_after_it_was_written_and_read() {
    let mut recording = Recording::open(&path("sqlite-commits.blktrace.0.gz")).unwrap();
    let mut events = Vec::new();
    while let Some(event) = recording.next_event().unwrap() {
        events.push(event);
    }
    let folder = tempfile::tempdir().unwrap();
    write(&events, recording.names(), folder.path());
    assert_eq!(all(Recording::open(folder.path()).unwrap()).unwrap().0, events);
}

#[test]
fn lost_events_are_read_as_lost() {
    let device = Device { major: 8, minor: 16 };
    let event = |time_ns| Event { time_ns, device, pid: 7, cpu: 1, ..Event::new(Action::Queue) };
    let mut file = CpuFile::new(Vec::new(), 1, device);
    file.time_of_day(5, std::time::Duration::new(1_700_000_000, 5)).unwrap();
    file.name(6, 7, b"a name that is too long").unwrap();
    file.event(&event(6)).unwrap();
    file.lost(6, 40).unwrap();
    file.event(&event(8)).unwrap();
    // No gap is so large that it looks like a step back.
    file.lost(8, u64::MAX).unwrap();
    file.event(&event(9)).unwrap();
    let (events, losses) = read(file.get_mut()).unwrap();
    assert_eq!(events.iter().map(|event| event.time_ns).collect::<Vec<_>>(), [6, 8, 9]);
    assert_eq!((losses.lost_events, losses.messages, losses.unknown_actions), (40 + (1 << 30), 2, 0));
}
