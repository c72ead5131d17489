//! No profile of a virtual disk makes the reader panic; what is refused is refused in one line.

#![no_main]

use hoistway_sim::VirtualDisk;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match VirtualDisk::from_toml(text, "fuzz.toml") {
        Ok(disk) => assert!(disk.queue_depth > 0 && disk.hw_queues > 0 && disk.wake_ns[0] <= disk.wake_ns[1]),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "not one message: {error}"),
    }
});
