//! Clients on their own parts of a disk, beside a model of what must be there.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use hoistway_engine::{
    Backend, Buffer, Client, Completion, Completions, Config, Context, Engine, FileSpec, Files, Memory, Operation,
    Request, completions,
};

const BLOCK: u64 = 4096;
/// Blocks of each client's part.
const BLOCKS: u64 = 64;
const DEPTH: u32 = 16;

/// A pinned generator: the same seed, the same requests.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A client, what its part of the disk must hold, and which blocks are being touched.
struct Peer {
    client: Client,
    completions: Completions,
    random: Random,
    blocks: Vec<u8>,
    /// Blocks of in-flight requests, by token, and what a read of them must find.
    in_flight: Vec<Option<(u64, u64)>>,
    busy: Vec<bool>,
    completed: u64,
}

impl Peer {
    fn new(engine: &Engine, index: u64, seed: u64) -> Peer {
        let start = index * BLOCKS * BLOCK;
        let part = engine.volume().part(start..start + BLOCKS * BLOCK).unwrap();
        let (handler, completions) = completions();
        Peer {
            client: part.client(Context::default(), DEPTH, handler),
            completions,
            random: Random(seed + (index + 1) * 0x9E37_79B9),
            blocks: vec![0; BLOCKS as usize],
            in_flight: (0..DEPTH).map(|_| None).collect(),
            busy: vec![false; BLOCKS as usize],
            completed: 0,
        }
    }

    /// A request for blocks that no other one is touching.
    fn next(&mut self) -> Option<Request> {
        let token = self.in_flight.iter().position(Option::is_none)?;
        let (first, count) = (self.random.below(BLOCKS), 1 + self.random.below(8));
        let count = count.min(BLOCKS - first);
        let range = first as usize..(first + count) as usize;
        if self.busy[range.clone()].iter().any(|&busy| busy) {
            return None;
        }
        let (offset, bytes) = (first * BLOCK, count * BLOCK);
        let fill = 1 + self.random.below(255) as u8;
        let mut buffer = Buffer::zeroed(bytes as usize);
        let mut request = match self.random.below(20) {
            0 => Request::flush(0),
            1 => Request::write_zeroes(offset, bytes, 0),
            2 => Request::discard(offset, bytes, 0),
            3..=10 => {
                buffer.fill(fill);
                let durable = self.random.below(8) == 0;
                Request { operation: Operation::Write { durable }, ..Request::write(offset, buffer, 0) }
            }
            _ => Request::read(offset, buffer, 0),
        };
        let content = match request.operation {
            Operation::Write { .. } => Some(fill),
            Operation::WriteZeroes { .. } | Operation::Discard { .. } => Some(0),
            Operation::Read | Operation::Flush => None,
        };
        if request.operation == Operation::Flush {
            self.in_flight[token] = Some((0, 0));
        } else {
            self.busy[range.clone()].fill(true);
            self.in_flight[token] = Some((first, count));
        }
        if let Some(content) = content {
            self.blocks[range].fill(content);
        }
        request.token = token as u64;
        Some(request)
    }

    fn check(&mut self, completion: &Completion) {
        let Completion { token, result, buffer } = completion;
        assert_eq!(*result, Ok(()));
        let (first, count) = self.in_flight[*token as usize].take().expect("each request is completed once");
        for block in first..first + count {
            self.busy[block as usize] = false;
            let within = ((block - first) * BLOCK) as usize;
            // Of a write it is what was written.
            if let Some(read) = buffer.get(within..within + BLOCK as usize) {
                let expected = self.blocks[block as usize];
                assert!(read.iter().all(|&byte| byte == expected), "block {block} is not {expected}");
            }
        }
        self.completed += 1;
    }

    /// Keeps it busy with this many requests.
    fn work(&mut self, requests: u64) {
        let (mut submitted, mut ended) = (0, Vec::new());
        while self.completed < requests {
            let mut batch = Vec::new();
            for _ in 0..1 + self.random.below(8) {
                if submitted < requests
                    && let Some(request) = self.next()
                {
                    batch.push(request);
                    submitted += 1;
                }
            }
            assert_eq!(self.client.submit_all(&mut batch), Ok(true), "there is room for what is not completed");
            if self.client.uncompleted_requests() > 0 || self.completed < submitted {
                assert!(self.completions.wait(&mut ended));
                ended.drain(..).for_each(|completion| self.check(&completion));
            }
        }
        assert_eq!(self.client.uncompleted_requests(), 0);
    }
}

/// Clients on threads of their own, and a thread that keeps writing files of the queue.
fn beside_the_model(
    (scheduler, workers, requests): (&str, usize, u64),
    backend: impl Backend + 'static,
    writes: &[(&str, &str)],
) {
    let config = Config {
        workers,
        scheduler: scheduler.into(),
        queue_depth: Some(8),
        requests_per_worker: 24,
        ..Config::default()
    };
    let engine = Engine::start(&config, backend).unwrap();
    let is_finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|index| {
                scope.spawn({
                    let engine = &engine;
                    move || Peer::new(engine, index, 7).work(requests)
                })
            })
            .collect();
        let administrator = scope.spawn(|| {
            let mut round = writes.iter().cycle();
            while !is_finished.load(Relaxed) {
                let Some((file, text)) = round.next() else { return };
                engine.set_attribute(file, text).unwrap();
                thread::sleep(Duration::from_millis(10));
            }
        });
        clients.into_iter().for_each(|client| client.join().unwrap());
        is_finished.store(true, Relaxed);
        administrator.join().unwrap();
    });
}

/// A file of holes, without a name, on the file system of the build: tmpfs cannot do everything.
fn file() -> (tempfile::NamedTempFile, Files) {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.as_file().set_len(4 * BLOCKS * BLOCK).unwrap();
    let files = Files::open(&[FileSpec::new(file.path())]).unwrap();
    (file, files)
}

fn disk() -> Memory {
    Memory::new(4 * BLOCKS * BLOCK)
}

#[test]
fn clients_read_back_their_writes_under_every_scheduler() {
    for scheduler in hoistway_blk::queue::SCHEDULERS {
        for workers in 1..=3 {
            beside_the_model((scheduler, workers, 3000), disk(), &[]);
        }
    }
}

#[test]
fn clients_read_back_their_writes_from_a_file() {
    for scheduler in hoistway_blk::queue::SCHEDULERS {
        let (_file, files) = file();
        beside_the_model((scheduler, 2, 500), files, &[]);
    }
}

#[test]
fn clients_read_back_their_writes_without_io_uring() {
    let (_file, files) = file();
    beside_the_model(("mq-deadline", 2, 500), files.without_io_uring(), &[]);
}

const CHANGES: &[(&str, &str)] = &[
    ("scheduler", "bfq"),
    ("nr_requests", "4"),
    ("iosched/slice_idle", "0"),
    ("scheduler", "kyber"),
    ("nr_requests", "64"),
    ("scheduler", "mq-deadline"),
    ("iosched/fifo_batch", "1"),
    ("nomerges", "2"),
    ("scheduler", "none"),
    ("nomerges", "0"),
];

#[test]
fn nothing_is_lost_while_schedulers_and_numbers_of_requests_change() {
    beside_the_model(("none", 2, 20_000), disk(), CHANGES);
    let (_file, files) = file();
    beside_the_model(("none", 2, 2000), files, CHANGES);
}
