//! Exports of a fast target share it by weight, if no scheduler was asked for.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::hostile::request;
use crate::running::Running;
use crate::wire::Client;

const READ: u16 = 0;
const BYTES: u32 = 64 << 10;
const EXPORT_BYTES: u64 = 16 << 20;
/// Reads that a client keeps in flight: more than the server lets pass at a time.
const DEPTH: u64 = 48;

/// Reads from an export for a while, with as many reads in flight as there may be. Returns their number.
fn read(server: &Running, export: &str, time: Duration) -> u64 {
    let (mut client, deadline, mut reads) = (Client::at(server, export).unwrap(), Instant::now() + time, 0);
    let request_of = |number: u64| request(0, READ, number, number * u64::from(BYTES) % EXPORT_BYTES, BYTES);
    let first: Vec<u8> = (0..DEPTH).flat_map(request_of).collect();
    client.0.write_all(&first).unwrap();
    let mut reply = vec![0; 16 + BYTES as usize];
    while Instant::now() < deadline {
        client.0.read_exact(&mut reply).unwrap();
        assert_eq!(reply[4..8], [0; 4]);
        client.0.write_all(&request_of(reads + DEPTH)).unwrap();
        reads += 1;
    }
    reads
}

/// The reads of two clients at the same time, of exports with these weights.
fn reads_beside(scheduler: &[&str], weights: [u16; 2]) -> [u64; 2] {
    let exports = [0, 1].map(|number| {
        format!(
            "name=e{number},offset={},size={EXPORT_BYTES},weight={}",
            number * EXPORT_BYTES,
            weights[number as usize]
        )
    });
    let target = ["--target", "mem:32M", "--export", &exports[0], "--export", &exports[1]];
    let server = &Running::start(&[&target[..], scheduler].concat());
    std::thread::scope(|scope| {
        let start = |export| scope.spawn(move || read(server, export, Duration::from_millis(600)));
        ["e0", "e1"].map(start).map(|reader| reader.join().unwrap())
    })
}

#[test]
fn exports_share_a_fast_target_by_weight_unless_a_scheduler_was_asked_for() {
    // Where CPUs are short, a client that does not get one leaves its share to the other: the bounds are wide, and a share has to be kept
    // in one of five rounds. The unit tests of the server's shares check the exact ones.
    let keeps = |scheduler: &[&str], weights, bounds: std::ops::Range<f64>| {
        let mut seen = Vec::new();
        for _ in 0..5 {
            let reads = reads_beside(scheduler, weights);
            let ratio = reads[1] as f64 / reads[0] as f64;
            if bounds.contains(&ratio) {
                return;
            }
            seen.push((reads, ratio));
        }
        panic!("{scheduler:?} {weights:?}: reads and ratio {seen:?}, expected {bounds:?}");
    };
    keeps(&[], [100, 800], 2.0..10.0);
    keeps(&[], [100, 100], 0.6..1.6);
    keeps(&["--scheduler", "none"], [100, 800], 0.5..1.8);
}
