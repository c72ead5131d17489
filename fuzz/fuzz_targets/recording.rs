//! No file, gzip'd or not, makes the reader of recordings panic or take more memory than it was allowed.

#![no_main]

use hoistway_trace::iosched::{Limits, Trace};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { line_bytes: 1 << 14, events: 1 << 12, bytes: 1 << 20 };

fuzz_target!(|bytes: &[u8]| {
    match Trace::read_limited(bytes, "fuzz", LIMITS) {
        Ok(trace) => assert!(trace.events.windows(2).all(|pair| pair[0].t <= pair[1].t), "not in the order of time"),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "not one message: {error}"),
    }
});
