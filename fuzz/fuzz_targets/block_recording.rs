//! No recording of block I/O, in whatever format, makes its readers panic, and its events are in the order of time.

#![no_main]

use std::io::Cursor;

use hoistway_trace::block::{Flights, Input, Recording};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let input = Input::new("fuzz", Box::new(Cursor::new(bytes.to_vec())));
    let Ok(mut recording) = input.and_then(Recording::read) else { return };
    let (mut flights, mut last_ns, mut in_flight) = (Flights::new(false), 0, 0i64);
    loop {
        match recording.next_event() {
            Ok(Some(event)) => {
                assert!(last_ns <= event.time_ns, "not in the order of time");
                last_ns = event.time_ns;
                flights.take(&event, &mut |step, _| {
                    use hoistway_trace::block::Step;
                    match step {
                        Step::Queued => in_flight += 1,
                        Step::Completed | Step::GivenUp | Step::Refused => in_flight -= 1,
                        Step::Submitted { .. } | Step::Inserted | Step::Issued | Step::Transferred => {}
                    }
                });
                assert_eq!(in_flight, flights.in_flight() as i64);
            }
            Ok(None) => return,
            Err(error) => {
                assert_eq!(error.to_string().lines().count(), 1, "not one message: {error}");
                return;
            }
        }
    }
});
