//! What the readers make of recordings.

use std::io::Cursor;

use hoistway_blk::bio::PriorityClass;
use hoistway_trace::block::{Action, Event, Flags, Input, Names, Recording};
use proptest::prelude::*;

use crate::support::{all, bytes, events, path, read};

/// Counts of the actions that blkparse's summary and btt have, too.
fn count(events: &[Event], action: Action) -> usize {
    events.iter().filter(|event| event.action == action).count()
}

#[test]
fn a_set_and_its_merged_stream_are_the_same_events() {
    let of_set = events("smp.blktrace.1.gz");
    assert_eq!(of_set.len(), 1562);
    assert_eq!(of_set, events("smp.blktrace.0.gz"), "any member names the set");
    let mut merged = events("smp.merged.bin.gz");
    // blkparse subtracts the time of the first event.
    let start_ns = of_set[0].time_ns - merged[0].time_ns;
    merged.iter_mut().for_each(|event| event.time_ns += start_ns);
    assert_eq!(of_set, merged);
}

#[test]
fn blkparse_text_equals_the_records_except_for_unprinted_fields() {
    for (text, records) in [
        ("smp.blkparse.txt.gz", "smp.blktrace.0.gz"),
        ("linux-6.1.blkparse.txt.gz", "linux-6.1.blktrace.0.gz"),
        ("synthetic.blkparse.txt.gz", "synthetic.blktrace.0.gz"),
    ] {
        let (printed, mut recorded) = (events(text), events(records));
        let start_ns = recorded[0].time_ns;
        for event in &mut recorded {
            event.time_ns -= start_ns;
            event.cgroup = 0;
            event.flags = event.flags.without(Flags::PASSTHROUGH);
            let has_no_sector = matches!(event.action, Action::Plug | Action::Unplug | Action::UnplugScheduled);
            if has_no_sector || (event.bytes == 0 && event.action != Action::Complete) {
                event.sector = 0;
            }
            // Of a split only the places are printed, and they say how long the first part is.
            if event.action == Action::Requeue {
                event.error = 0;
            }
        }
        for (line, (one, other)) in printed.iter().zip(&recorded).enumerate() {
            if one.action == Action::Split {
                assert_eq!((one.sector, one.payload), (other.sector, other.payload), "{text}: event {line}");
            } else {
                assert_eq!(one, other, "{text}: event {line}");
            }
        }
        assert_eq!(printed.len(), recorded.len(), "{text}");
    }
}

#[test]
fn messages_with_cgroup_ids_are_counted_and_no_events() {
    let (events, losses) = all(Recording::open(&path("bfqm.blktrace.0")).unwrap()).unwrap();
    assert_eq!((events.len(), losses.messages, losses.bfq_messages, losses.lost_events), (42, 77, 77, 0));
}

#[test]
fn a_recording_through_ftrace_has_all_of_its_events_and_names() {
    let mut recording = Recording::open(&path("sqlite-commits.blktrace.0.gz")).unwrap();
    let mut events = Vec::new();
    while let Some(event) = recording.next_event().unwrap() {
        events.push(event);
    }
    assert_eq!((events.len(), count(&events, Action::Queue), recording.losses().lost_events), (11_075, 2_365, 0));
    let names: Vec<&str> = recording.names().all().into_iter().map(|(_, name)| name).collect();
    assert!(names.contains(&"python3") && names.contains(&"jbd2/loop0-8"), "{names:?}");
    assert!(events.is_sorted_by_key(|event| event.time_ns));
}

#[test]
fn a_merged_stream_of_others_is_read_whole() {
    let events = events("blktrace-viewer.bin.gz");
    assert_eq!([Action::Remap, Action::Queue, Action::Complete].map(|action| count(&events, action)), [963; 3]);
    assert_eq!(count(&events, Action::Insert), 0);
}

#[test]
fn the_kernels_own_text_has_no_sequence_numbers() {
    let events = events("ftrace-blk-tracer-classic.txt");
    assert_eq!((events.len(), events[0].time_ns, events[6].pid), (14, 13_162_227_664, 0));
}

/// The same record in version 8.
fn as_version_8(old: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(old[at..at + 4].try_into().unwrap());
    let mut new = Vec::new();
    new.extend((word(0) & !0xff | 8).to_le_bytes());
    new.extend(&old[4..28]);
    new.extend(word(32).to_le_bytes());
    new.extend((u64::from(word(28) & 0xffff) | u64::from(word(28) >> 16) << 32).to_le_bytes());
    new.extend(&old[36..48]);
    new.extend([0; 12]);
    new
}

/// The same header of version 7 in the other byte order.
fn swapped(old: &[u8]) -> Vec<u8> {
    let mut new = Vec::new();
    let mut at = 0;
    for bytes in [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2] {
        new.extend(old[at..at + bytes].iter().rev());
        at += bytes;
    }
    new
}

#[test]
fn versions_and_byte_orders_are_the_same_events() {
    let old = bytes("smp.merged.bin.gz");
    let (mut version_8, mut big_endian) = (Vec::new(), Vec::new());
    let mut rest = &old[..];
    while !rest.is_empty() {
        let payload = usize::from(u16::from_le_bytes([rest[46], rest[47]]));
        version_8.extend(as_version_8(&rest[..48]));
        version_8.extend(&rest[48..48 + payload]);
        big_endian.extend(swapped(&rest[..48]));
        big_endian.extend(&rest[48..48 + payload]);
        rest = &rest[48 + payload..];
    }
    let expected = read(&old).unwrap().0;
    assert_eq!(read(&version_8).unwrap().0, expected);
    assert_eq!(read(&big_endian).unwrap().0, expected);
}

#[test]
fn the_order_of_events_of_several_cpus_is_mended_within_a_second() {
    let old = bytes("smp.merged.bin.gz");
    let mut records = Vec::new();
    let mut rest = &old[..];
    while !rest.is_empty() {
        let length = 48 + usize::from(u16::from_le_bytes([rest[46], rest[47]]));
        records.push(&rest[..length]);
        rest = &rest[length..];
    }
    // All of CPU 1 within the first second comes before all of CPU 0.
    let time = |record: &[u8]| u64::from_le_bytes(record[8..16].try_into().unwrap());
    let cpu = |record: &[u8]| record[40];
    let (early, late): (Vec<&[u8]>, Vec<&[u8]>) = records.iter().partition(|record| time(record) < 1_000_000_000);
    let of = |number: u8| early.iter().filter(move |record| cpu(record) == number).copied();
    let mixed: Vec<u8> = of(1).chain(of(0)).chain(late.iter().copied()).flatten().copied().collect();
    let (events, losses) = read(&mixed).unwrap();
    let count = |events: &[Event]| events.len();
    assert_eq!(count(&events), 1562);
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    assert!(losses.step_back_ns > 0);
}

#[test]
fn zstd_is_recognised_by_its_content() {
    // A frame with one raw block, as the format's description has it: magic, descriptor, window, block header, content.
    let text = b"  8,0    1        1     0.000000000   100  Q   R 8 + 8 [a]\n  8,0    1        2     0.000000300   100  C   R 8 + 8 [0]\n";
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    frame.extend(&((text.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    frame.extend(text);
    let (events, _) = read(&frame).unwrap();
    assert_eq!(events.iter().map(|event| event.sector).collect::<Vec<_>>(), [8, 8]);
}

#[test]
fn text_of_ftrace_has_the_ios_of_the_records_and_priorities_besides() {
    let events = events("ftrace-6.18.txt.gz");
    let counts =
        [Action::Queue, Action::GetRequest, Action::BackMerge, Action::Insert, Action::Issue, Action::Complete];
    // The same job as that of smp.blktrace, recorded another time: only what does not hang on timing is the same.
    let recorded = crate::support::events("smp.blktrace.0.gz");
    assert_eq!(count(&events, Action::Queue), count(&recorded, Action::Queue));
    assert!(counts.iter().all(|action| count(&events, *action) > 0));
    let of =
        |class| events.iter().filter(|event| event.priority.class() == class && event.action == Action::Issue).count();
    assert!(of(PriorityClass::BestEffort) > 0 && of(PriorityClass::RealTime) > 0);
}

#[test]
fn text_of_trace_cmd_and_perf_is_read_as_that_of_ftrace() {
    for (name, ios) in [("trace-cmd-report.txt.gz", 24), ("perf-script.txt.gz", 24), ("ftrace-6.1.txt.gz", 28)] {
        let events = events(name);
        assert!(count(&events, Action::Queue) >= ios, "{name}: {}", count(&events, Action::Queue));
        assert!(events.iter().any(|event| event.action == Action::Complete && event.bytes > 0), "{name}");
    }
}

#[test]
fn the_tracer_blk_prints_the_same_in_both_of_its_layouts() {
    let (mut classic, normal) = (events("ftrace-blk-tracer-classic.txt"), events("ftrace-blk-tracer.txt"));
    for (one, other) in classic.iter_mut().zip(&normal) {
        assert!(one.time_ns.abs_diff(other.time_ns) < 1000, "the other has microseconds");
        one.time_ns = other.time_ns;
    }
    assert_eq!(classic, normal);
}

#[test]
fn names_of_tasks_may_have_brackets_dashes_and_blanks() {
    let text = "  my [x] a-b-77 (  76) [001] d..1.  1.000001: block_bio_queue: 8,0 WS 8 + 8 [my [x] a-b]\n\
                CPU:1 [LOST 12 EVENTS]\n\
                sh  9 [000] 1.000002000: block:block_rq_issue: 8,0 W 4096 () 8 + 8 0x3,0,7 [sh]\n";
    let (events, losses) = read(text.as_bytes()).unwrap();
    let told: Vec<_> = events.iter().map(|event| (event.pid, event.cpu, event.time_ns, event.priority.0)).collect();
    assert_eq!(told, [(77, 1, 1_000_001_000, 0), (9, 0, 1_000_002_000, 3 << 13 | 7)]);
    assert_eq!(losses.lost_events, 12);
}

#[test]
fn control_characters_in_names_are_written_as_linux_writes_them() {
    let line = "  8,0    0        1     0.000000000     7  Q   R 8 + 8 [a\tb\u{1b}c]\n";
    let input = Input::new("test", Box::new(Cursor::new(line.as_bytes().to_vec()))).unwrap();
    let mut recording = Recording::read(input).unwrap();
    assert!(recording.next_event().unwrap().is_some());
    assert_eq!(recording.names().get(7), Some(r"a\011b\033c"));
    let mut names = Names::default();
    names.learn(1, b"two\nlines");
    assert_eq!(names.get(1), Some(r"two\nlines"));
}

/// A message of a scheduler as ftrace records it, with the id of a cgroup and a number.
fn message(sequence: u32, time_ns: u64, like: &[u8]) -> Vec<u8> {
    let mut record = like[..48].to_vec();
    record[4..8].copy_from_slice(&sequence.to_le_bytes());
    record[8..16].copy_from_slice(&time_ns.to_le_bytes());
    record[28..32].copy_from_slice(&0x0400_0102u32.to_le_bytes());
    record[46..48].copy_from_slice(&15u16.to_le_bytes());
    record.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    record.extend(b"bfq 100");
    record
}

proptest! {
    /// blkparse writes messages before the events around them, with the times that they had.
    #[test]
    fn messages_count_wherever_they_are_in_a_merged_stream(
        is_message in prop::collection::vec(any::<bool>(), 2..60),
        is_lost in prop::collection::vec(0..8u8, 60),
        ahead in 0usize..60,
    ) {
        let like = bytes("smp.merged.bin.gz");
        let at = like.windows(4).rposition(|magic| magic == [7, b't', b'a', b'e']).unwrap();
        let like = &like[at..];
        let numbers: Vec<u32> = (1..=is_message.len() as u32).collect();
        let is_there = |number: &u32| is_lost[*number as usize - 1] > 0 || *number == 1 || *number as usize == numbers.len();
        let (mut messages, mut events) = (Vec::new(), Vec::new());
        for number in numbers.iter().copied().filter(is_there) {
            if is_message[number as usize - 1] {
                messages.push(message(number, 1 << 40, like));
            } else {
                let mut event = like[..48].to_vec();
                event[4..8].copy_from_slice(&number.to_le_bytes());
                event[8..16].copy_from_slice(&u64::from(number).to_le_bytes());
                event[46..48].copy_from_slice(&[0, 0]);
                events.push(event);
            }
        }
        let ahead = ahead.min(messages.len());
        let stream = [&messages[..ahead], &events[..], &messages[ahead..]].concat().concat();
        let (read, losses) = read(&stream).unwrap();
        prop_assert_eq!(read.len(), events.len());
        prop_assert_eq!(losses.bfq_messages, messages.len() as u64);
        prop_assert_eq!(losses.lost_events, numbers.iter().filter(|number| !is_there(number)).count() as u64);
    }
}

#[test]
fn the_latency_format_of_ftrace_has_the_same_events() {
    let events = events("ftrace-latency-format.txt");
    let last_read = &events[events.len() - 7..];
    let letters: Vec<_> = last_read.iter().map(|event| event.action.letters()).collect();
    assert_eq!(letters.join(" "), "Q G P U I D C");
    let times: Vec<_> = last_read.iter().map(|event| event.time_ns / 1000).collect();
    assert_eq!(times, [41_463, 41_465, 41_466, 41_467, 41_468, 41_470, 41_555]);
    assert!(last_read.iter().all(|event| event.cpu == 1) && last_read[0].pid == 304, "{last_read:?}");
}

#[test]
fn clocks_that_count_no_time_are_refused_with_the_line() {
    let line = |time: &str| format!("dd-300 [000] ..... {time}: block_rq_issue: 8,0 R 4096 () 8 + 8 be,0,4 [dd]\n");
    assert_eq!(read(line("12.000009").as_bytes()).unwrap().0[0].time_ns, 12_000_009_000);
    let error = read((line("12.000009") + &line("9")).as_bytes()).unwrap_err().to_string();
    assert!(
        error.starts_with("test: line 2: the time 9 is a count of the clock counter or x86-tsc (expected "),
        "{error}"
    );
    let text = (line("4000000000000") + &line("4000000000003")).into_bytes();
    let input = Input::new("test", Box::new(Cursor::new(text))).unwrap();
    let mut recording = Recording::read(input).unwrap().with_clock_hz(2_000_000_000.try_into().unwrap());
    let times: Vec<u64> = std::iter::from_fn(|| recording.next_event().unwrap()).map(|event| event.time_ns).collect();
    assert_eq!(times, [2_000_000_000_000, 2_000_000_000_001]);
}
