//! No host profile makes the reader panic; what is refused is refused in one line.

#![no_main]

use hoistway_sim::Host;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Host::from_toml(text, "fuzz.toml") {
        Ok(host) => assert!(host.wake_ns[0] <= host.wake_ns[1] && host.worker_ns[0] <= host.worker_ns[1]),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "not one message: {error}"),
    }
});
