//! Which I/O each event is about.

use hoistway_trace::block::{Event, Flight, Flights, Step};

use crate::support::{events, read};

/// All I/Os that completed, with the times of that.
fn flown(events: &[Event]) -> (Vec<(Flight, u64)>, Flights) {
    let mut flights = Flights::new(false);
    let mut done = Vec::new();
    for event in events {
        flights.take(event, &mut |step, flight| {
            if step == Step::Completed {
                done.push((*flight, event.time_ns));
            }
        });
    }
    (done, flights)
}

#[test]
fn every_io_of_whole_recordings_completes() {
    for name in
        ["smp.blktrace.0.gz", "linux-6.1.blktrace.0.gz", "sqlite-commits.blktrace.0.gz", "blktrace-viewer.bin.gz"]
    {
        let (done, flights) = flown(&events(name));
        let counts = flights.counts();
        assert_eq!((counts.completed, flights.in_flight()), (counts.queued, 0), "{name}");
        assert_eq!((counts.issued_unknown, counts.completed_unknown), (0, 0), "{name}");
        assert_eq!(done.len() as u64, counts.queued, "{name}");
        assert!(
            done.iter()
                .all(|(flight, done_ns)| flight.queue_ns <= flight.submitted_ns && flight.submitted_ns < *done_ns)
        );
    }
}

#[test]
fn a_write_with_fua_completes_when_the_flush_behind_it_has() {
    let text = "\
  8,0    1        1     0.000000000   100  Q FWFS 24 + 8 [a]
  8,0    1        2     0.000000100   100  G FWFS 24 + 8 [a]
  8,0    1        3     0.000000200   100  D  FN [a]
  8,0    1        4     0.000001000     0  C  FN 0 [0]
  8,0    1        5     0.000001100    44  D  WS 24 + 8 [k]
  8,0    1        6     0.000002000     0  C  WS 24 + 8 [0]
  8,0    1        7     0.000002100    44  D  FN [k]
  8,0    1        8     0.000003000     0  C  FN 0 [0]
  8,0    1        9     0.000003100     0  C  WS 24 [0]
";
    let (done, _) = flown(&read(text.as_bytes()).unwrap().0);
    assert_eq!(done.iter().map(|(flight, done_ns)| (flight.bytes, *done_ns)).collect::<Vec<_>>(), [(4096, 3100)]);
}

#[test]
fn a_split_io_is_taken_with_its_last_part_and_completes_with_it() {
    let text = "\
  8,0    1        1     0.000000000   100  Q   R 0 + 24 [a]
  8,0    1        2     0.000000010   100  X   R 0 / 8 [a]
  8,0    1        3     0.000000020   100  G   R 0 + 8 [a]
  8,0    1        4     0.000000030   100  X   R 8 / 16 [a]
  8,0    1        5     0.000000040   100  G   R 8 + 8 [a]
  8,0    1        6     0.000000050   100  G   R 16 + 8 [a]
  8,0    1        7     0.000000060   100  D   R 0 + 8 [a]
  8,0    1        8     0.000000070   100  D   R 8 + 8 [a]
  8,0    1        9     0.000000080   100  D   R 16 + 8 [a]
  8,0    1       10     0.000000090     0  C   R 16 + 8 [0]
  8,0    1       11     0.000000100     0  C   R 0 + 4 [0]
  8,0    1       12     0.000000110     0  C   R 4 + 4 [0]
  8,0    1       13     0.000000120     0  C   R 8 + 8 [0]
";
    let (done, _) = flown(&read(text.as_bytes()).unwrap().0);
    let told: Vec<_> = done.iter().map(|(flight, done_ns)| (flight.bytes, flight.submitted_ns, *done_ns)).collect();
    assert_eq!(told, [(12_288, 50, 120)]);
}

#[test]
fn ios_that_never_complete_are_given_up_and_reported() {
    let line = |number: u64| format!("  8,0 1 {number} 0.{number:09} 100 Q R 8 + 8 [a]\n");
    let text: String = (1..=100).map(line).collect();
    let mut flights = Flights::new(false);
    let mut given_up = 0;
    for event in read(text.as_bytes()).unwrap().0 {
        flights.take(&event, &mut |step, _| given_up += u64::from(step == Step::GivenUp));
    }
    assert_eq!((given_up, flights.counts().given_up, flights.in_flight()), (36, 36, 64));
}

#[test]
fn a_bio_failed_with_eagain_does_not_count_as_an_io() {
    let text = |error: u16| {
        format!(
            "\
  8,0    1        1     0.000000000   100  Q   R 0 + 8 [a]
  8,0    1        2     0.000000100   100  C   R 0 + 8 [{error}]
  8,0    1        3     0.000000200   101  Q   R 0 + 8 [iou-wrk-100]
  8,0    1        4     0.000000300   101  G   R 0 + 8 [iou-wrk-100]
  8,0    1        5     0.000000400   101  D   R 0 + 8 [iou-wrk-100]
  8,0    1        6     0.000000900     0  C   R 0 + 8 [0]
"
        )
    };
    for (error, completed, refused) in [(11, 1, 1), (65_525, 1, 1), (5, 2, 0)] {
        let (done, flights) = flown(&read(text(error).as_bytes()).unwrap().0);
        let counts = flights.counts();
        assert_eq!((counts.queued, counts.completed, counts.refused), (completed, completed, refused), "{error}");
        assert_eq!((done.len() as u64, flights.in_flight()), (completed, 0));
    }
    let (_, flights) =
        flown(&read(text(0).replace("  C   R 0 + 8 [0]\n", "  C   R 0 + 8 [11]\n").as_bytes()).unwrap().0);
    assert_eq!(flights.counts().completed, 1, "what a device refuses was an I/O");
}
