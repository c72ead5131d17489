//! No recording makes a replay panic or run for ever, whatever its events say: they fit together, or there is one error.

#![no_main]

use hoistway_evidence::conform::{NotReplayed, replay};
use hoistway_trace::iosched::{Limits, Trace};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { line_bytes: 1 << 14, events: 1 << 10, bytes: 1 << 18 };

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = Trace::read_limited(bytes, "fuzz", LIMITS) else { return };
    if let Err(NotReplayed::Inconsistent(error)) = replay(&trace) {
        assert!((1..=trace.events.len() as u64 + 1).contains(&error.line), "no line of the file: {error}");
        assert_eq!(error.to_string().lines().count(), 1, "not one message: {error}");
    }
});
