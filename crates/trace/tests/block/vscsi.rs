//! Records of virtual SCSI disks.

use hoistway_trace::block::{Action, Event, Flags, Flights, Input, Recording, Step};
use proptest::prelude::*;

use crate::support::{all, path, read};

/// An I/O: command, length in bytes, first sector, time and response in microseconds.
type Io = (u16, u32, u64, u64, u64);

fn of_version_1(number: u32, (command, bytes, sector, time_us, _): Io) -> Vec<u8> {
    let mut record = Vec::new();
    [number, bytes, 1].iter().for_each(|word| record.extend(word.to_le_bytes()));
    [command, 0x0100].iter().for_each(|short| record.extend(short.to_le_bytes()));
    [sector, time_us].iter().for_each(|long| record.extend(long.to_le_bytes()));
    record
}

fn of_version_2(number: u32, (command, bytes, sector, time_us, response_us): Io, length: usize) -> Vec<u8> {
    let mut record = Vec::new();
    [command, 0x0200].iter().for_each(|short| record.extend(short.to_le_bytes()));
    [number, bytes, 1].iter().for_each(|word| record.extend(word.to_le_bytes()));
    [sector, time_us, response_us].iter().for_each(|long| record.extend(long.to_le_bytes()));
    record.resize(length, 0);
    record
}

fn file(ios: &[Io], record: impl Fn(u32, Io) -> Vec<u8>) -> Vec<u8> {
    (1..).zip(ios).flat_map(|(number, io)| record(number, *io)).collect()
}

const IOS: [Io; 6] = [
    (0x28, 4096, 800, 1_000_000, 250),
    (0x2a, 8192, 1600, 1_000_100, 90),
    (0x12, 36, 0, 1_000_150, 5),
    (0x8a, 512, 1 << 33, 1_000_200, 40),
    (0x35, 0, 0, 1_000_300, 1_000),
    (0x28, 0, 0, 1_000_400, 1),
];

fn queued(events: &[Event]) -> Vec<(Flags, u64, u32, u64)> {
    let queued = events.iter().filter(|event| event.action == Action::Queue);
    queued.map(|event| (event.flags, event.sector, event.bytes, event.time_ns)).collect()
}

#[test]
fn both_versions_are_the_same_ios_and_the_second_has_their_completions() {
    let flush = Flags::WRITE | Flags::FLUSH | Flags::SYNC;
    let expected = vec![
        (Flags::READ, 800, 4096, 1_000_000_000),
        (Flags::WRITE, 1600, 8192, 1_000_100_000),
        (Flags::WRITE, 1 << 33, 512, 1_000_200_000),
        (flush, 0, 0, 1_000_300_000),
    ];
    let files = [
        file(&IOS, of_version_1),
        file(&IOS, |n, io| of_version_2(n, io, 40)),
        file(&IOS, |n, io| of_version_2(n, io, 48)),
    ];
    for (number, bytes) in files.iter().enumerate() {
        let (events, losses) = read(bytes).unwrap();
        assert_eq!(queued(&events), expected, "file {number}");
        assert_eq!((losses.unknown_actions, losses.empty_ios), (1, 1), "an inquiry and a read of nothing");
        let mut flights = Flights::new(false);
        let mut took_ns = Vec::new();
        for event in &events {
            flights.take(event, &mut |step, flight| {
                if step == Step::Completed {
                    took_ns.push((flight.queue_ns, event.time_ns - flight.queue_ns));
                }
            });
        }
        took_ns.sort_unstable();
        let took_ns: Vec<u64> = took_ns.into_iter().map(|(_, took_ns)| took_ns).collect();
        assert_eq!(took_ns, if number == 0 { vec![] } else { vec![250_000, 90_000, 40_000, 1_000_000] });
    }
}

#[test]
fn a_record_that_makes_no_sense_is_refused_with_its_place() {
    let good: Vec<Io> = (0..100).map(|n| (0x28, 4096, n * 8, 1_000_000 + n, 50)).collect();
    let mut bytes = file(&good, of_version_1);
    bytes.truncate(32 * 90 + 7);
    assert_eq!(read(&bytes).unwrap().1.truncated, 1);
    bytes[32 * 80 + 15] = 2;
    let error = read(&bytes).unwrap_err().to_string();
    assert_eq!(
        error,
        "test: record 81 at byte 2560: this is not a record: its version, command or length is invalid (expected records of \
         version 1, of 32 bytes each)"
    );
}

#[test]
fn a_file_is_opened_by_its_content() {
    let (events, losses) = all(Recording::open(&path("vscsi.bin")).unwrap()).unwrap();
    assert_eq!((events.len(), losses), (80, Default::default()));
}

#[test]
fn a_file_of_a_few_records_is_recognised_and_zeroes_are_not() {
    let open = |bytes: Vec<u8>| Recording::read(Input::new("x", Box::new(std::io::Cursor::new(bytes))).unwrap());
    assert_eq!(open(file(&IOS[..4], of_version_1)).unwrap().format().to_string(), "records of vSCSI");
    assert!(open(vec![0; 4096]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn records_of_any_content_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..1600) {
        let good: Vec<Io> = (0..40).map(|n| (0x2a, 4096, n * 8, 1_000_000 + n, 50)).collect();
        let mut file = file(&good, |n, io| of_version_2(n, io, 40));
        let end = (at + bytes.len()).min(file.len());
        file[at..end].copy_from_slice(&bytes[..end - at]);
        if let Err(error) = read(&file) {
            prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error);
        }
    }
}
