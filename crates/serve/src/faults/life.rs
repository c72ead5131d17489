//! A server under test, on one thread and in virtual time, from its start to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hoistway_blk::ground::{Instant, Nanos};
use hoistway_blk::queue::SCHEDULERS;
use hoistway_engine::faults::{Disk as FaultyDisk, FaultyTarget, ManualClock, Random};
use hoistway_engine::{Clock as _, Config, Engine, Null, StepOutcome, Worker};
use rustls::ServerConfig;

use super::client::BLOCK;
use super::streams::{ClientEnd, Streams, Watch};
use crate::event_loop::{EventLoop, Inboxes};
use crate::export::clients::Peer;
use crate::export::disk::Disk;
use crate::export::spec::ExportSpec;
use crate::export::spec::Placed;
use crate::memory::EXTRA_BYTES;
use crate::nbd::listener::admit;
use crate::server::disks::{LOBBY_WORKERS, lobby_config};
use crate::server::server_state::{ServerLimits, ServerState};
use crate::stream::socket::Socket;

const WORKERS: usize = 3;

/// The least that the longest request needs, and 256 KiB for all else, so that clients wait for memory often.
const MEMORY_BYTES: usize = EXTRA_BYTES + (256 << 10);
/// Limits low enough to be reached often.
pub const SERVER_LIMITS: ServerLimits = ServerLimits {
    connections: 10,
    connections_per_peer: usize::MAX,
    in_flight: 8,
    held_bytes: 64 << 10,
    memory_bytes: MEMORY_BYTES,
};

/// A running server.
pub struct ServerRun {
    pub server: Arc<ServerState>,
    workers: Vec<Worker>,
    streams: Streams,
    clock: ManualClock,
    /// Whether the log has reported an internal error.
    has_internal_error: Arc<AtomicBool>,
    /// Steps of workers so far.
    pub steps: u64,
}

/// An offered export.
#[derive(Clone, Debug)]
pub struct Offered {
    pub name: &'static str,
    /// The first block (of `BLOCK` bytes) on the disk.
    pub first: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// Further settings as in `--export`, each with a leading comma.
    pub settings: String,
}

impl Offered {
    fn placed(&self) -> Placed {
        let Offered { name, first, blocks, settings } = self;
        let text = format!("name={name},offset={},size={}{settings}", first * BLOCK, blocks * BLOCK);
        Placed::on_target(ExportSpec::parse(&text).unwrap())
    }
}

impl ServerRun {
    /// Starts a server on this disk. I/O to the first export never fails.
    pub fn begin(
        disk: &FaultyDisk,
        exports: &[Offered],
        clock: &ManualClock,
        tls: &Arc<ServerConfig>,
        random: &mut Random,
    ) -> ServerRun {
        let (streams, inboxes) = (Streams::default(), Inboxes::with_room(LOBBY_WORKERS + WORKERS));
        let (lobby, of_disk) = (inboxes.open(LOBBY_WORKERS).unwrap(), inboxes.open(WORKERS).unwrap());
        let sound = exports[0].first * BLOCK..(exports[0].first + exports[0].blocks) * BLOCK;
        let target = FaultyTarget::new(disk.clone(), random.below(1 << 32), sound);
        let watched = streams.clone();
        let make_poller = || {
            let watched = watched.clone();
            Box::new(move || Ok(Arc::new(Watch::new(watched.clone())) as _))
        };
        let lobby_loop =
            EventLoop::with(Box::new(Null::new(1)), inboxes.clone(), make_poller()).from_worker(lobby.start);
        let event_loop = EventLoop::with(Box::new(target), inboxes.clone(), make_poller()).from_worker(of_disk.start);
        let config = Config {
            workers: WORKERS,
            scheduler: SCHEDULERS[random.below(SCHEDULERS.len() as u64) as usize].into(),
            requests_per_worker: 6,
            turn_bytes: 2048,
            ..Config::default()
        };
        let (lobby, mut workers) = Engine::prepare(&lobby_config(), lobby_loop, clock.clone()).unwrap();
        let (engine, workers_of_disk) = Engine::prepare(&config, event_loop, clock.clone()).unwrap();
        workers.extend(workers_of_disk);
        let disk = Disk::new("disk".to_owned(), None, engine, of_disk, inboxes.clone());
        let has_internal_error = Arc::new(AtomicBool::new(false));
        let log = {
            let has_internal_error = Arc::clone(&has_internal_error);
            Box::new(move |_, line: &str| {
                has_internal_error.store(has_internal_error.load(Relaxed) || line.contains("internal error"), Relaxed)
            })
        };
        let server = Arc::new(ServerState::new(lobby, inboxes, SERVER_LIMITS, log));
        server.add_disk(disk);
        *server.tls.lock().unwrap() = Some(Arc::clone(tls));
        let run = ServerRun { server, workers, streams, clock: clock.clone(), has_internal_error, steps: 0 };
        run.offer(exports);
        run
    }

    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Replaces the offered exports.
    pub fn offer(&self, exports: &[Offered]) {
        let placed: Vec<_> = exports.iter().map(Offered::placed).collect();
        self.server.replace_exports(&placed).unwrap();
    }

    /// A client connects.
    pub fn connect(&self, random: &mut Random) -> ClientEnd {
        let capacity = 1 + random.below(16 << 10) as usize;
        let (near, far) = self.streams.pair(capacity, Random::new(random.below(1 << 32)));
        admit(&self.server, Socket::of(near), Peer::unix("memory", None), false);
        far
    }

    /// One worker makes a step, and time advances.
    pub fn step(&mut self, random: &mut Random) {
        // Rarely a long pause, and very rarely one beyond the timeouts of connections (10 s).
        let pause_ns_max = if random.one_in(3000) { 300_000_000 } else { 20_000 };
        let pause_ns = if random.one_in(40_000) { 11_000_000_000 } else { 1 + random.below(pause_ns_max) };
        self.clock.advance(Nanos(pause_ns));
        self.steps += 1;
        let worker = random.below(self.workers.len() as u64) as usize;
        assert!(self.workers[worker].step() != StepOutcome::Stopped, "a worker stopped before the server did");
        assert!(!self.has_internal_error.load(Relaxed), "the log reports an internal error");
    }

    /// Changes the scheduler or its number of requests.
    pub fn change_queue(&self, random: &mut Random) {
        let (file, text) = match random.one_in(2) {
            true => ("scheduler", SCHEDULERS[random.below(SCHEDULERS.len() as u64) as usize].to_owned()),
            false => ("nr_requests", (4 + random.below(28)).to_string()),
        };
        self.server.disks()[0].engine.begin_to_set_attribute(file, &text).unwrap();
    }

    /// Runs until the target has had no command for 1000 steps, which is long enough for requests of disconnected clients to end.
    pub fn settle(&mut self, random: &mut Random) {
        let mut quiet = 0;
        for _ in 0..400_000 {
            quiet = if self.at_target() == 0 { quiet + 1 } else { 0 };
            if quiet == 1000 {
                return;
            }
            self.step(random);
            self.clock.advance(Nanos::from_micros(50));
        }
        panic!("{} commands never end", self.at_target());
    }

    fn at_target(&self) -> usize {
        self.server.disks()[0].at_target()
    }

    /// Stops the server, whose clients must all have disconnected, and checks that nothing remains.
    pub fn end(self, random: &mut Random) {
        let ServerRun { server, mut workers, clock, .. } = self;
        for export in &server.exports().live {
            let counts = [&export.counts.connections, &export.counts.in_flight, &export.counts.held_back];
            assert_eq!(counts.map(|count| count.load(Relaxed)), [0; 3], "{}", export.name);
        }
        server.disks()[0].engine.stop();
        server.lobby.stop();
        for _ in 0..200_000 {
            clock.advance(Nanos::from_micros(50));
            let worker = random.below(workers.len() as u64) as usize;
            if workers[worker].step() == StepOutcome::Stopped {
                drop(workers.swap_remove(worker));
            }
            if workers.is_empty() {
                assert!(Arc::try_unwrap(server).is_ok(), "a connection outlived its worker");
                return;
            }
        }
        panic!("{} workers did not stop", workers.len());
    }
}
