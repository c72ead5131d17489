//! The whole engine in one thread and in virtual time, under faults that a seed decides: rings that err, transfer short, refuse
//! and stall; clients that cancel, depart and come back; schedulers that change. A seed that fails reproduces the failure.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hoistway_blk::{Instant, Limits, SCHEDULERS, Sector};

use crate::backend::{Backend, FileStation, Shape, Station, VolumeShape};
use crate::client::Client;
use crate::clock::Clock;
use crate::config::Config;
use crate::context::Context;
use crate::engine::Engine;
use crate::memory::Buffer;
use crate::request::{Completion, Errno, Operation, Request};
use crate::ring::{Job, Ring, What};
use crate::wake::{Parker, Wake};
use crate::worker::{Stepped, Worker};

const WORKERS: usize = 3;
const BLOCK: usize = 512;
const BLOCKS: u64 = 256;
const CLIENTS: usize = 5;

#[derive(Clone)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The time, as the test tells it.
#[derive(Default)]
struct TestClock(Arc<AtomicU64>);

impl Clock for TestClock {
    fn now(&self) -> Instant {
        Instant(self.0.load(Relaxed))
    }
}

/// A file in memory, and what may go wrong with it.
struct FaultyRing {
    content: Arc<Mutex<Vec<u8>>>,
    random: Random,
    /// Jobs under way: how many looks they take, and what they answer then.
    under_way: Vec<(u64, u64, i32)>,
    parker: Arc<Parker>,
}

#[allow(unsafe_code)]
impl Ring for FaultyRing {
    unsafe fn push(&mut self, tag: u64, job: Job<'_>) -> bool {
        if self.random.one_in(20) {
            return false;
        }
        let answer = match self.random.below(40) {
            0 => -5,
            1 => -28,
            2 => -4,
            3 => -11,
            _ => self.carry_out(job),
        };
        // Now and then one stalls for long.
        let looks = if self.random.one_in(50) { 3000 } else { self.random.below(20) };
        self.under_way.push((looks, tag, answer));
        true
    }

    fn reap(&mut self, results: &mut Vec<(u64, i32)>) {
        self.under_way.retain_mut(|(looks, tag, answer)| {
            if *looks == 0 {
                results.push((*tag, *answer));
                return false;
            }
            *looks -= 1;
            true
        });
    }

    fn sleep(&mut self, _: Option<Duration>) {
        unreachable!("nobody sleeps in one thread");
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.parker) as Arc<dyn Wake>
    }
}

impl FaultyRing {
    /// Does a job, or the beginning of one.
    #[allow(unsafe_code)]
    fn carry_out(&mut self, job: Job<'_>) -> i32 {
        let mut content = self.content.lock().unwrap();
        let at = job.at as usize;
        let (list, is_write) = match job.what {
            What::Read(list) => (list, false),
            What::Write(list, _) => (list, true),
            What::Sync => return 0,
            // This file system cannot zero without writing, and sometimes not punch either.
            What::Zero(_) => return -95,
            What::Punch(bytes) => {
                content[at..at + bytes as usize].fill(0);
                return 0;
            }
        };
        let whole: usize = list.iter().map(|segment| segment.len).sum();
        let most = if self.random.one_in(5) { 1 + self.random.below(whole as u64) as usize } else { whole };
        let mut done = 0;
        for segment in list {
            let len = segment.len.min(most - done);
            // SAFETY: the segments of a job stay where they are until it has come back.
            let bytes = unsafe { std::slice::from_raw_parts_mut(segment.start, len) };
            let there = &mut content[at + done..at + done + len];
            if is_write {
                there.copy_from_slice(bytes)
            } else {
                bytes.copy_from_slice(there)
            }
            done += len;
        }
        done as i32
    }
}

/// A target of such rings.
struct Faulty {
    shape: Shape,
    content: Arc<Mutex<Vec<u8>>>,
    seed: u64,
}

impl Faulty {
    fn new(seed: u64) -> Self {
        let limits = Limits {
            capacity: Sector(BLOCKS),
            max_write_zeroes_sectors: 64,
            write_cache: true,
            fua: seed.is_multiple_of(2),
            ..Limits::new(1, 1, 16, 2560, 4)
        };
        let volumes = vec![VolumeShape { first: Sector(0), sectors: BLOCKS, read_only: false }];
        let shape = Shape { volumes, limits, hw_queues_max: 2, queue_depth: 4, host_wide_tags: false };
        Faulty { shape, content: Arc::new(Mutex::new(vec![0; BLOCKS as usize * BLOCK])), seed }
    }
}

impl Backend for Faulty {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn station(&self, worker: usize) -> io::Result<Box<dyn Station>> {
        let random = Random::new(self.seed * 31 + worker as u64);
        let content = Arc::clone(&self.content);
        let ring = FaultyRing { content, random, under_way: Vec::new(), parker: Arc::default() };
        Ok(Box::new(FileStation::new(ring, self.shape.volumes.clone().into())))
    }
}

/// What a client knows of its part of the disk: each block holds one of the fills that may be there.
struct Peer {
    client: Option<Client>,
    answers: Arc<Mutex<Vec<Completion>>>,
    next_token: u64,
    /// By token: first block, blocks, and what they hold if it goes well.
    under_way: BTreeMap<u64, (u64, u64, Option<u8>)>,
    /// What each block may hold: more than one value after an error.
    may_hold: Vec<Vec<u8>>,
    answered: u64,
}

/// Blocks of each client.
const OWN: u64 = BLOCKS / CLIENTS as u64;

struct World {
    engine: Engine,
    workers: Vec<Worker>,
    time: Arc<AtomicU64>,
    random: Random,
    peers: Vec<Peer>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let config = Config {
            workers: WORKERS,
            scheduler: SCHEDULERS[random.below(4) as usize].into(),
            requests_per_worker: 6,
            ..Config::default()
        };
        let time: Arc<AtomicU64> = Arc::default();
        let clock = Box::new(TestClock(Arc::clone(&time)));
        let (engine, workers) = Engine::prepare(&config, Arc::new(Faulty::new(seed)), clock).unwrap();
        let peer = |_| Peer {
            client: None,
            answers: Arc::default(),
            next_token: 0,
            under_way: BTreeMap::new(),
            may_hold: vec![vec![0]; OWN as usize],
            answered: 0,
        };
        World { engine, workers, time, random, peers: (0..CLIENTS).map(peer).collect() }
    }

    fn attach(&mut self, index: usize) {
        let start = index as u64 * OWN * BLOCK as u64;
        let part = self.engine.volume().part(start..start + OWN * BLOCK as u64).unwrap();
        let peer = &mut self.peers[index];
        peer.answers = Arc::default();
        let answers = Arc::clone(&peer.answers);
        let told = move |batch: &mut Vec<Completion>| answers.lock().unwrap().append(batch);
        peer.client = Some(part.client(Context::default(), 12, told));
    }

    /// Somebody does something.
    fn act(&mut self) {
        let index = self.random.below(CLIENTS as u64) as usize;
        if self.peers[index].client.is_none() {
            return self.attach(index);
        }
        match self.random.below(200) {
            0 => self.depart(index),
            1..=10 => {
                let peer = &self.peers[index];
                if let (Some(client), Some(token)) = (&peer.client, peer.under_way.keys().next()) {
                    client.cancel(*token);
                }
            }
            11 => {
                let scheduler = SCHEDULERS[self.random.below(4) as usize];
                self.change("scheduler", scheduler);
            }
            12 => {
                let count = (4 + self.random.below(28)).to_string();
                self.change("nr_requests", &count);
            }
            _ => self.submit(index),
        }
    }

    /// As [`Engine::set_attribute`], which would wait for the workers that this thread runs.
    fn change(&mut self, file: &str, text: &str) {
        use crate::worker::{Change, Message};
        let change = Change { file: file.into(), text: text.into(), reply: Arc::default() };
        self.engine.post(0, Message::Change(change));
    }

    /// A client goes, with I/O under way: what that did, nobody knows.
    fn depart(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        peer.client = None;
        for (_, (first, count, fill)) in std::mem::take(&mut peer.under_way) {
            if let Some(fill) = fill {
                peer.may_hold[first as usize..(first + count) as usize].iter_mut().for_each(|block| block.push(fill));
            }
        }
        // It may still be under way when the next client comes, who must not meet it: it waits, as a server would.
        for _ in 0..20_000 {
            self.step();
        }
    }

    fn submit(&mut self, index: usize) {
        let random = &mut self.random;
        let (first, count) = (random.below(OWN), 1 + random.below(12));
        let count = count.min(OWN - first);
        let peer = &mut self.peers[index];
        let touches = |&(other, len, _): &(u64, u64, Option<u8>)| first < other + len && other < first + count;
        if peer.under_way.values().any(touches) {
            return;
        }
        let (offset, bytes) = (first * BLOCK as u64, count * BLOCK as u64);
        let fill = 1 + random.below(255) as u8;
        let mut buffer = Buffer::zeroed(bytes as usize);
        let token = peer.next_token;
        let (request, fill) = match random.below(12) {
            0 => (Request::flush(token), None),
            1 => (Request::discard(offset, bytes, token), Some(0)),
            2 => {
                let (may_unmap, fast_only) = (random.one_in(2), random.one_in(4));
                let operation = Operation::WriteZeroes { bytes, may_unmap, fast_only };
                (Request { operation, offset, ..Request::flush(token) }, Some(0))
            }
            3..=6 => {
                buffer.fill(fill);
                let operation = Operation::Write { durable: random.one_in(4) };
                (Request { operation, ..Request::write(offset, buffer, token) }, Some(fill))
            }
            _ => (Request::read(offset, buffer, token), None),
        };
        let place = if request.operation == Operation::Flush { (0, 0, None) } else { (first, count, fill) };
        let Some(client) = &peer.client else { return };
        if client.submit(request).is_ok() {
            peer.next_token += 1;
            peer.under_way.insert(token, place);
        }
    }

    /// One worker does a step, and time goes on.
    fn step(&mut self) -> Option<usize> {
        let worker = self.random.below(self.workers.len() as u64) as usize;
        self.time.fetch_add(1 + self.random.below(20_000), Relaxed);
        (self.workers[worker].step() == Stepped::Home).then_some(worker)
    }

    fn check(&mut self) {
        for peer in &mut self.peers {
            for completion in peer.answers.lock().unwrap().drain(..) {
                let place = peer.under_way.remove(&completion.token);
                let (first, count, fill) = place.expect("a request is answered once, and only if there is one");
                peer.answered += 1;
                for block in first..first + count {
                    let may_hold = &mut peer.may_hold[block as usize];
                    match (completion.result, fill) {
                        (Ok(()), Some(fill)) => *may_hold = vec![fill],
                        // It was not even begun.
                        (Err(Errno::CANCELED), Some(_)) if count == 1 => {}
                        (Err(_), Some(fill)) => may_hold.push(fill),
                        (Ok(()), None) => {
                            let within = (block - first) as usize * BLOCK;
                            let read = &completion.buffer[within..within + BLOCK];
                            // A write that failed may have got through in part.
                            assert!(read.iter().all(|byte| may_hold.contains(byte)), "{read:?} is not of {may_hold:?}");
                        }
                        (Err(_), None) => {}
                    }
                }
            }
        }
    }
}

/// One history, by its seed. Answers how many requests were answered.
fn history(seed: u64) -> u64 {
    let mut world = World::new(seed);
    for _ in 0..6000 {
        if world.random.one_in(3) {
            world.act();
        }
        world.step();
        world.check();
    }
    // All is answered in the end, whatever went wrong.
    for _ in 0..60_000 {
        world.step();
        world.check();
        if world.peers.iter().all(|peer| peer.under_way.is_empty()) {
            break;
        }
    }
    for (index, peer) in world.peers.iter().enumerate() {
        assert!(peer.under_way.is_empty(), "client {index} waits for {:?}", peer.under_way);
        assert!(peer.client.as_ref().is_none_or(|client| client.unanswered() == 0));
    }
    let answered = world.peers.iter().map(|peer| peer.answered).sum();
    world.engine.tell_all_to_stop();
    for _ in 0..200_000 {
        if let Some(worker) = world.step() {
            drop(world.workers.swap_remove(worker));
        }
        if world.workers.is_empty() {
            return answered;
        }
    }
    panic!("{} workers did not go home", world.workers.len());
}

#[test]
fn whatever_goes_wrong_each_request_is_answered_once_and_data_is_what_was_written() {
    let seeds = std::env::var("HOISTWAY_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let first = std::env::var("HOISTWAY_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first..first + seeds {
        let answered = std::panic::catch_unwind(|| history(seed));
        let answered = answered.unwrap_or_else(|_| panic!("HOISTWAY_SEED={seed} HOISTWAY_SEEDS=1 fails again"));
        assert!(answered > 200, "seed {seed}: {answered} answers are no history");
    }
}

/// Time that is told is time: nothing here reads a clock.
#[test]
fn the_same_seed_is_the_same_history() {
    assert_eq!(history(7), history(7));
}
