//! One client writes whole blocks and another a byte in them, over a ring that stalls and transfers short.

use std::sync::{Arc, Mutex};

use hoistway_blk::ground::Nanos;

use super::{Disk, FaultyTarget, ManualClock, Random};
use crate::client::Client;
use crate::config::Config;
use crate::context::Context;
use crate::engine::Engine;
use crate::memory::Buffer;
use crate::request::{Completion, Request};

const BLOCK: usize = 512;
/// The byte of the second block that the second client writes.
const BYTE: usize = BLOCK + 100;
/// The range that both write.
const BYTES: usize = 3 * BLOCK;

type Ended = Arc<Mutex<Vec<Completion>>>;

fn client(engine: &Engine, worker: usize) -> (Client, Ended) {
    let ended = Ended::default();
    let into = Arc::clone(&ended);
    let handler = move |batch: &mut Vec<Completion>| into.lock().unwrap().append(batch);
    (engine.volume().client_on(worker, Context::default(), 4, handler), ended)
}

fn history(seed: u64) -> u32 {
    let mut random = Random::new(seed);
    let target = FaultyTarget::new(Disk::new(8), seed, 0..8 * BLOCK as u64);
    let (config, clock) = (Config { workers: 2, turn_bytes: 2048, ..Config::default() }, ManualClock::default());
    let (engine, mut workers) = Engine::prepare(&config, target, clock.clone()).unwrap();
    let ((blocks, blocks_ended), (bytes, bytes_ended)) = (client(&engine, 0), client(&engine, 1));
    let (mut fill, mut is_reading, mut rounds) = (1_u8, false, 0);
    let whole = |fill: u8| Request::write(0, Buffer::from(&[fill; BYTES][..]), 0);
    blocks.submit(whole(fill)).unwrap();
    bytes.submit(Request::write(BYTE as u64, Buffer::from(&[0xff][..]), 0)).unwrap();
    for _ in 0..40_000 {
        clock.advance(Nanos(1 + random.below(20_000)));
        workers[random.below(2) as usize].step();
        for Completion { result, buffer, .. } in blocks_ended.lock().unwrap().drain(..) {
            assert_eq!(result, Ok(()));
            let next = if is_reading {
                rounds += 1;
                let others = buffer.iter().enumerate().filter(|&(at, &byte)| at != BYTE && byte != fill);
                assert_eq!(others.count(), 0, "a write of whole blocks was lost");
                assert!([fill, 0xff].contains(&buffer[BYTE]));
                fill = fill % 200 + 1;
                whole(fill)
            } else {
                Request::read(0, buffer, 0)
            };
            is_reading = !is_reading;
            blocks.submit(next).unwrap();
        }
        for Completion { result, buffer, .. } in bytes_ended.lock().unwrap().drain(..) {
            assert_eq!(result, Ok(()));
            bytes.submit(Request::write(BYTE as u64, buffer, 0)).unwrap();
        }
    }
    drop((blocks, bytes));
    engine.begin_to_stop();
    while !workers.is_empty() {
        clock.advance(Nanos(1 + random.below(20_000)));
        let worker = random.below(workers.len() as u64) as usize;
        if workers[worker].step() == crate::worker::StepOutcome::Stopped {
            drop(workers.swap_remove(worker));
        }
    }
    rounds
}

#[test]
fn a_byte_that_is_written_takes_no_block_of_another_client_with_it() {
    for seed in 0..8 {
        let rounds = history(seed);
        assert!(rounds > 10, "seed {seed}: {rounds} rounds are too few");
    }
}
