//! The whole server on one thread and in virtual time, under faults that a seed determines: clients, with and without TLS, that disconnect
//! in mid-request, never read, or send garbage; a target that fails, stalls, transfers short and vanishes; changes of exports, limits and
//! schedulers; restarts and power cuts. A failing seed reproduces the failure.

mod book;
mod client;
mod life;
mod streams;
mod wire;
mod world;

use std::panic::catch_unwind;

use hoistway_blk::ground::Nanos;
use hoistway_engine::faults::{Disk, ManualClock, Random};

use life::{Offered, ServerRun};
use wire::TlsSides;
use world::World;

/// Restarts of a server in one history, and random actions in each.
const RESTARTS: u64 = 3;
const STEPS: u64 = 6000;

/// Runs one history, given by its seed. Returns the number of completed requests, the number of those over TLS, a digest of the
/// replies, and the steps of workers.
fn history(seed: u64) -> (u64, u64, u64, u64) {
    let mut world = World::new(seed);
    for life in 0..RESTARTS {
        world.make_progress(STEPS);
        match (seed + life) % 3 {
            0 => world.restart(),
            _ => world.cut_the_power(),
        }
    }
    world.make_progress(STEPS);
    world.end()
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn under_any_fault_each_client_gets_one_reply_and_durable_data_survives() {
    let (first, seeds, begin) = (number("HOISTWAY_SEED", 0), number("HOISTWAY_SEEDS", 8), std::time::Instant::now());
    let (mut answers, mut in_tls, mut all_steps) = (0, 0, 0);
    for seed in first..first + seeds {
        let came = catch_unwind(|| history(seed));
        let (completed, tls_replies, _, steps) =
            came.unwrap_or_else(|_| panic!("HOISTWAY_SEED={seed} HOISTWAY_SEEDS=1 fails again"));
        assert!(completed > 200, "seed {seed}: {completed} replies are too few");
        (answers, in_tls, all_steps) = (answers + completed, in_tls + tls_replies, all_steps + steps);
    }
    assert!(in_tls > 0, "no reply came by TLS");
    println!("{seeds} histories, {all_steps} steps, {answers} replies, {in_tls} by TLS, in {:?}", begin.elapsed());
}

/// Time is virtual, and nothing else depends on chance.
#[test]
fn the_same_seed_is_the_same_history() {
    assert_eq!(history(7), history(7));
}

#[test]
fn a_client_that_stops_in_the_middle_of_a_write_is_disconnected_after_30_s() {
    let (clock, mut random, tls) = (ManualClock::default(), Random::new(1), TlsSides::new());
    let offered = [Offered { name: "a", first: 0, blocks: 64, settings: String::new() }];
    let mut life = ServerRun::begin(&Disk::new(64), &offered, &clock, &tls.server, &mut random);
    let mut client = life.connect(&mut random);
    let mut sent = b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x07\0\0\0\x01a\0\0".to_vec();
    // The header of a write of 8 KiB, and 512 bytes of it.
    sent.extend(b"\x25\x60\x95\x13\0\0\0\x01abcdefgh\0\0\0\0\0\0\0\0\0\0\x20\0");
    sent.extend([7; 512]);
    let mut settle = |client: &mut streams::ClientEnd, passes: Nanos| {
        clock.advance(passes);
        for _ in 0..500 {
            let count = client.send(&sent);
            sent.drain(..count);
            life.step(&mut random);
            client.receive(usize::MAX, &mut Vec::new());
        }
        assert!(sent.is_empty());
        client.has_ended()
    };
    assert!(!settle(&mut client, Nanos::ZERO));
    assert!(!settle(&mut client, Nanos::from_secs(25)));
    assert!(settle(&mut client, Nanos::from_secs(6)));
}
