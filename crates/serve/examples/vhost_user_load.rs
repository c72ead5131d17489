//! Loads a vhost-user-blk server, ours or another, as a guest with one queue would: random reads of 4 KiB at the given
//! depth, waiting for interrupts. Prints the reads per second.
//!
//! `cargo run --profile server -p hoistway-serve --example vhost_user_load -- SOCKET DEPTH SECONDS`
#![allow(dead_code, reason = "the tests' client, of which a load needs a part")]

#[path = "../tests/guest/client.rs"]
mod client;
#[path = "../tests/guest/memory.rs"]
mod memory;
#[path = "../tests/guest/ring.rs"]
mod ring;

use std::path::Path;
use std::time::{Duration, Instant};

use client::{Client, Data, OK, Options, READ};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, depth, seconds] = &arguments[..] else {
        eprintln!("expected SOCKET DEPTH SECONDS");
        std::process::exit(2);
    };
    let (Ok(depth), Ok(seconds)) = (depth.parse::<u16>(), seconds.parse::<u64>()) else {
        eprintln!("DEPTH and SECONDS are numbers");
        std::process::exit(2);
    };
    let mut guest = Client::start(Path::new(socket), Options { size: 256, ..Options::default() });
    let blocks = guest.capacity() / 8;
    let (mut random, mut ended) = (88172645463325252_u64, 0_u64);
    let mut sector = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % blocks * 8
    };
    for slot in 0..depth.min(85) {
        guest.submit(0, slot * 3, READ, sector(), Data::In(4096));
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        let (head, _) = guest.rings[0].next_used();
        assert_eq!(guest.status(0, head), OK);
        ended += 1;
        let before = guest.rings[0].available_index;
        guest.prepare(0, head, READ, sector(), Data::In(4096));
        guest.rings[0].offer_all(&[head]);
        // Every completed read is submitted again before the next kick.
        let mut more = 1;
        while more < depth
            && let Some((head, _)) = guest.rings[0].take_used()
        {
            guest.prepare(0, head, READ, sector(), Data::In(4096));
            guest.rings[0].offer_all(&[head]);
            (more, ended) = (more + 1, ended + 1);
        }
        guest.rings[0].kick_since(before);
    }
    println!("{:.0}", ended as f64 / begin.elapsed().as_secs_f64());
}
