//! The cost of a request through the whole engine: random reads and writes of 4 KiB, 128 in flight per worker.
//!
//! ```text
//! cargo bench -p hoistway-benches --bench engine -- null memory file:PATH clients techniques    # or some of them
//! ```
//! Schedulers are measured in turn, so that all run under the same conditions. The output is the median of the rounds, and the
//! fastest and slowest, of wall-clock time, and of CPU time of all threads, which is more reliable on a shared machine.

mod techniques;

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant as WallClock};

use hoistway_blk::ground::Instant;
use hoistway_blk::queue::SCHEDULERS;
use hoistway_engine::{
    Backend, Buffer, Completion, Config, Context, Engine, FileSpec, Files, Memory, Null, Request, Resident, Turn,
    completions,
};

const BLOCK: usize = 4096;
const DEPTH: usize = 128;
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(400);

/// Number of I/Os and duration of each client that has ended.
#[derive(Default)]
struct Done(Mutex<Vec<(u64, u64)>>, Condvar);

/// Keeps its depth, and counts I/Os.
struct Load {
    done: Arc<Done>,
    depth: usize,
    blocks: u64,
    state: u64,
    buffers: Vec<Buffer>,
    ios: u64,
    start: Option<Instant>,
    is_over: bool,
    in_flight: usize,
    writes: bool,
}

impl Load {
    fn new(done: &Arc<Done>, depth: usize, bytes: u64, seed: u64, writes: bool) -> Self {
        Load {
            done: Arc::clone(done),
            depth,
            blocks: bytes / BLOCK as u64,
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            buffers: (0..depth).map(|_| Buffer::zeroed(BLOCK)).collect(),
            ios: 0,
            start: None,
            is_over: false,
            in_flight: 0,
            writes,
        }
    }

    fn next(&mut self, buffer: Buffer) -> Request {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let offset = (self.state >> 8) % self.blocks * BLOCK as u64;
        if self.writes && self.state & 1 == 0 {
            Request::write(offset, buffer, 0)
        } else {
            Request::read(offset, buffer, 0)
        }
    }
}

impl Resident for Load {
    fn turn(&mut self, now: Instant, ended: &mut Vec<Completion>, requests: &mut Vec<Request>) -> Turn {
        let start = *self.start.get_or_insert(now);
        self.ios += ended.len() as u64;
        self.in_flight -= ended.len();
        self.buffers.extend(ended.drain(..).map(|answer| answer.buffer));
        self.is_over |= now.since(start).0 > ROUND.as_nanos() as u64;
        if !self.is_over {
            while self.in_flight < self.depth
                && let Some(buffer) = self.buffers.pop()
            {
                let request = self.next(buffer);
                requests.push(request);
                self.in_flight += 1;
            }
            return Turn::By(Instant::NEVER);
        }
        if self.in_flight > 0 {
            return Turn::By(Instant::NEVER);
        }
        self.done.0.lock().unwrap().push((self.ios, now.since(start).0));
        self.done.1.notify_all();
        Turn::Detached
    }
}

fn cpu_time_ns() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// ns per request of all workers together: wall-clock time and CPU time.
fn round(config: &Config, depth: usize, writes: bool, backend: Box<dyn Backend>) -> [f64; 2] {
    let workers = config.workers;
    let engine = Engine::start(config, backend).unwrap();
    let done: Arc<Done> = Arc::default();
    let volume = engine.volume();
    let cpu_ns = cpu_time_ns();
    for worker in 0..workers {
        volume.settle(Context::default(), worker, Load::new(&done, depth, volume.bytes(), worker as u64 + 1, writes));
    }
    let ended = done.1.wait_while(done.0.lock().unwrap(), |ended| ended.len() < workers).unwrap();
    let ios: u64 = ended.iter().map(|(ios, _)| ios).sum();
    let time = ended.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
    [time as f64, cpu_time_ns() - cpu_ns].map(|ns| ns / ios as f64)
}

fn told(name: &str, figures: &[[f64; 2]]) {
    let of = |index: usize| {
        let mut all: Vec<f64> = figures.iter().map(|figure| figure[index]).collect();
        all.sort_by(f64::total_cmp);
        format!("{:5.0} ({:.0} to {:.0})", all[all.len() / 2], all[0], all[all.len() - 1])
    };
    println!("{name:32} ns a request {:22} CPU ns {}", of(0), of(1));
}

fn compare(target: &str, depth: usize, writes: bool, backend: &dyn Fn() -> Box<dyn Backend>) {
    for workers in [1, 2] {
        let mut figures = vec![Vec::new(); SCHEDULERS.len()];
        for _ in 0..ROUNDS {
            for (scheduler, figures) in SCHEDULERS.iter().zip(&mut figures) {
                let config = Config { workers, scheduler: (*scheduler).into(), ..Config::default() };
                figures.push(round(&config, depth, writes, backend()));
            }
        }
        for (scheduler, figures) in SCHEDULERS.iter().zip(figures) {
            told(&format!("{target} {scheduler} {workers} worker(s)"), &figures);
        }
    }
}

/// Contention options for a scheduler's lock, one by one and together.
fn techniques() {
    let all = techniques::COMPARED;
    for (scheduler, workers) in [("mq-deadline", 1), ("mq-deadline", 2), ("bfq", 1), ("bfq", 2)] {
        let mut figures = vec![Vec::new(); all.len()];
        for _ in 0..ROUNDS {
            for ((_, contention_options), figures) in all.iter().zip(&mut figures) {
                let config = Config {
                    workers,
                    scheduler: scheduler.into(),
                    contention_options: *contention_options,
                    ..Config::default()
                };
                figures.push(round(&config, DEPTH, true, Box::new(Null::new(1 << 30))));
            }
        }
        for ((name, _), figures) in all.iter().zip(figures) {
            told(&format!("{scheduler} {workers}, {name}"), &figures);
        }
    }
}

/// From another thread and back, through mailboxes: one request at a time, then batches.
fn clients() {
    for depth in [1, 32] {
        let engine = Engine::start(&Config::default(), Null::new(1 << 30)).unwrap();
        let (handler, completions) = completions();
        let client = engine.volume().client(Context::default(), depth, handler);
        let mut figures = Vec::new();
        for _ in 0..ROUNDS {
            let cpu_ns = cpu_time_ns();
            let (begin, mut ended, mut requests, mut ios) = (WallClock::now(), Vec::new(), Vec::new(), 0u32);
            requests.extend((0..depth).map(|_| Request::read(0, Buffer::zeroed(BLOCK), 0)));
            while begin.elapsed() < ROUND {
                client.submit_all(&mut requests).unwrap();
                assert!(completions.wait(&mut ended));
                ios += ended.len() as u32;
                requests.extend(ended.drain(..).map(|answer| Request::read(0, answer.buffer, 0)));
            }
            let spent = [begin.elapsed().as_nanos() as f64, cpu_time_ns() - cpu_ns];
            figures.push(spent.map(|ns| ns / f64::from(ios)));
            while client.uncompleted_requests() > 0 && completions.wait(&mut ended) {}
        }
        told(&format!("null none, a client of depth {depth}"), &figures);
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|argument| argument == name);
    if is_wanted("null") {
        compare("null", DEPTH, true, &|| Box::new(Null::new(1 << 30)));
    }
    if is_wanted("memory") {
        compare("memory", DEPTH, true, &|| Box::new(Memory::new(64 << 20)));
    }
    if is_wanted("clients") {
        clients();
    }
    if is_wanted("techniques") {
        techniques();
    }
    // Only reads: the file may contain any data.
    for path in wanted.iter().filter_map(|argument| argument.strip_prefix("file:")) {
        let spec = FileSpec { read_only: true, ..FileSpec::new(path) };
        compare(path, 32, false, &|| Box::new(Files::open(std::slice::from_ref(&spec)).unwrap()));
    }
}
