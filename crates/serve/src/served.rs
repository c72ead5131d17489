//! Exports, and what all connections of a server share.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use hoistway_blk::bio::IoPriority;
use hoistway_blk::ground::Nanos;
use hoistway_engine::{Context, Engine, Errno, Group, Volume};
use hoistway_nbd::Export;
use rustls::ServerConfig;

use crate::event_loop::Inboxes;
use crate::export_throttle::ExportThrottle;
use crate::latency::Latency;
use crate::memory::Memory;

/// An export of a running server.
pub struct Served {
    /// As clients see it.
    pub export: Export,
    /// Which of the target's volumes it is on.
    pub volume: usize,
    /// Which bytes of that.
    pub range: Range<u64>,
    /// Bytes of a block of the target.
    pub block_bytes: u32,
    /// All its connections together.
    pub group: Group,
    /// Changes while the server runs.
    settings: Mutex<Settings>,
    /// Its limits.
    pub throttle: ExportThrottle,
    /// Whether it has been withdrawn: its connections are closed.
    is_withdrawn: AtomicBool,
    /// What it has done.
    pub counts: Counts,
}

/// What of an export can change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Its share, beside those of others: 1 to 1000.
    pub weight: u16,
    /// Its class and level.
    pub ioprio: IoPriority,
}

/// Statistics of an export: successful requests, and bytes.
#[derive(Default, Debug)]
pub struct Counts {
    /// Reads.
    pub reads: AtomicU64,
    /// Bytes read.
    pub read_bytes: AtomicU64,
    /// Writes.
    pub writes: AtomicU64,
    /// Bytes written.
    pub written_bytes: AtomicU64,
    /// Anything else.
    pub others: AtomicU64,
    /// Requests of all kinds that failed.
    pub errors: AtomicU64,
    /// Latency of reads, from receiving the request to its reply being ready.
    pub read_latency: Latency,
    /// Latency of writes, from receiving all of their data.
    pub write_latency: Latency,
    /// Latency of the others.
    pub other_latency: Latency,
    /// Clients at present.
    pub connections: AtomicU64,
    /// In-flight requests.
    pub in_flight: AtomicU64,
    /// In-flight requests that the limits hold back.
    pub held_back: AtomicU64,
}

/// A request that has ended: its kind and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// A read.
    Read(u64),
    /// A write.
    Write(u64),
    /// Anything else.
    Other,
}

impl Counts {
    /// Counts a new request.
    #[inline]
    pub fn began(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// Counts a request that was replied to at once, successfully or not.
    pub fn at_once(&self, is_ok: bool) {
        if is_ok { &self.others } else { &self.errors }.fetch_add(1, Relaxed);
    }

    /// A connection with this many in-flight requests has ended.
    pub fn abandoned(&self, requests: u64) {
        self.in_flight.fetch_sub(requests, Relaxed);
    }

    /// Counts a request that has ended, with its latency, or `None` if it failed.
    pub fn ended(&self, what: Ended, took: Option<Nanos>) {
        self.in_flight.fetch_sub(1, Relaxed);
        let Some(took) = took else {
            self.errors.fetch_add(1, Relaxed);
            return;
        };
        let (requests, latency) = match what {
            Ended::Read(bytes) => {
                self.read_bytes.fetch_add(bytes, Relaxed);
                (&self.reads, &self.read_latency)
            }
            Ended::Write(bytes) => {
                self.written_bytes.fetch_add(bytes, Relaxed);
                (&self.writes, &self.write_latency)
            }
            Ended::Other => (&self.others, &self.other_latency),
        };
        requests.fetch_add(1, Relaxed);
        latency.count(took);
    }
}

impl Served {
    /// A new one on these bytes of a volume with blocks of this size.
    #[must_use]
    pub fn new(
        export: Export,
        volume: usize,
        (range, block_bytes): (Range<u64>, u32),
        group: Group,
        settings: Settings,
    ) -> Served {
        Served {
            export,
            volume,
            range,
            block_bytes,
            group,
            settings: Mutex::new(settings),
            throttle: ExportThrottle::new(),
            is_withdrawn: AtomicBool::new(false),
            counts: Counts::default(),
        }
    }

    /// Whether it has been withdrawn.
    #[inline]
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Relaxed)
    }

    /// Withdraws it. Its connections notice when they are notified.
    pub fn withdraw(&self) {
        self.is_withdrawn.store(true, Relaxed);
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> Settings {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes them.
    pub fn set(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// The I/O context of its clients.
    #[must_use]
    pub fn context(&self) -> Context {
        Context { ioprio: self.settings().ioprio, group: self.group }
    }

    /// Its part of the target.
    ///
    /// # Errors
    /// If the target does not have it.
    pub fn on<'a>(&self, engine: &'a Engine) -> Result<Volume<'a>, Errno> {
        let volume = engine.volumes().into_iter().nth(self.volume).ok_or(Errno::NOSPC)?;
        let part = volume.part(self.range.clone())?;
        Ok(if self.export.read_only { part.read_only() } else { part })
    }
}

/// Bounds of what a server takes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Connections at a time.
    pub connections: usize,
    /// In-flight requests of a connection; 1 to 65535.
    pub in_flight: u32,
    /// Bytes of requests and replies that a connection may hold. One request is always accepted, however long.
    pub held_bytes: usize,
    /// Bytes of requests and replies of all connections together.
    pub memory_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { connections: 1024, in_flight: 128, held_bytes: 64 << 20, memory_bytes: 1 << 30 }
    }
}

/// How important a log line is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// The server does not do what it should.
    Error,
    /// A client or the system did not do what it should.
    Warning,
    /// Anything else: connections, changes, start and end.
    Info,
}

/// Receives log lines.
pub type Log = Box<dyn Fn(Level, &str) + Send + Sync>;

/// The exports at a time; the empty name also selects the first.
#[derive(Default)]
pub struct Offer {
    /// The exports.
    pub served: Vec<Arc<Served>>,
    /// The same as clients see them, in the same order.
    pub exports: Vec<Export>,
}

impl Offer {
    /// Of these.
    #[must_use]
    pub fn of(served: Vec<Arc<Served>>) -> Offer {
        let exports = served.iter().map(|served| served.export.clone()).collect();
        Offer { served, exports }
    }

    /// The export of this very name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Arc<Served>> {
        self.served.iter().find(|served| served.export.name == name)
    }
}

/// Failures of one kind, of which one in [`FAILURE_PERIOD`] is logged.
#[derive(Default)]
pub(crate) struct Failures {
    logged_at: Option<std::time::Instant>,
    unlogged: u64,
}

/// How often failures of one kind are logged.
const FAILURE_PERIOD: std::time::Duration = std::time::Duration::from_secs(10);

impl Failures {
    /// Counts a failure. Returns how many were not logged before this one, or `None` if this one is not to be logged.
    pub(crate) fn count(&mut self, now: std::time::Instant) -> Option<u64> {
        if self.logged_at.is_some_and(|at| now.duration_since(at) < FAILURE_PERIOD) {
            self.unlogged += 1;
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

/// What all connections of a server share.
pub struct Site {
    /// The block layer at work.
    pub engine: Engine,
    /// The exports; replaced as a whole.
    pub(crate) offer: Mutex<Arc<Offer>>,
    /// Withdrawn exports that may still have connections.
    pub(crate) withdrawn: Mutex<Vec<Arc<Served>>>,
    /// Contents of the queue's files when the scheduler was set.
    pub(crate) defaults: Mutex<Vec<(String, String)>>,
    /// Inboxes of the workers, for new connections.
    pub inboxes: Inboxes,
    /// The TLS configuration for new connections, if there is one.
    pub(crate) tls: Mutex<Option<Arc<ServerConfig>>>,
    /// Bounds.
    pub bounds: Bounds,
    /// The memory of all connections.
    pub memory: Arc<Memory>,
    /// Clients so far.
    pub clients: AtomicU64,
    /// Whether the server drains.
    pub is_draining: AtomicBool,
    /// Limits how often failures to accept are logged.
    pub(crate) accept_failures: Mutex<Failures>,
    /// Receives log lines.
    pub log: Log,
}

impl Site {
    /// One without exports, over an engine whose workers have these inboxes.
    pub(crate) fn new(engine: Engine, inboxes: Inboxes, bounds: Bounds, log: Log) -> Site {
        Site {
            engine,
            offer: Mutex::default(),
            withdrawn: Mutex::default(),
            defaults: Mutex::default(),
            tls: Mutex::default(),
            memory: Memory::new(bounds.memory_bytes, inboxes.clone()),
            inboxes,
            bounds,
            clients: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
            accept_failures: Mutex::default(),
            log,
        }
    }

    /// The present exports.
    #[must_use]
    pub fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The TLS configuration, if there is one.
    #[must_use]
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the TLS configuration of new connections.
    pub fn set_tls(&self, config: Arc<ServerConfig>) {
        *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = Some(config);
    }

    /// Starts draining: in-flight requests complete, new ones are refused.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Relaxed);
        self.inboxes.notify_all();
    }

    /// Whether the server drains.
    #[inline]
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Relaxed)
    }

    /// Names a client from `peer` for the log. `None` if there are too many connections: the client is refused, which
    /// is logged.
    #[must_use]
    pub fn name_client(&self, peer: &str) -> Option<String> {
        let name = format!("client {} ({peer})", self.clients.fetch_add(1, Relaxed) + 1);
        if self.inboxes.connections() >= self.bounds.connections {
            self.warn(format_args!(
                "{name}: refused, {} clients are connected already (see --max-connections)",
                self.bounds.connections
            ));
            return None;
        }
        self.say(format_args!("{name}: connected"));
        Some(name)
    }

    /// Writes a log line.
    pub fn say(&self, what: std::fmt::Arguments<'_>) {
        (self.log)(Level::Info, &what.to_string());
    }

    /// Writes a warning to the log.
    pub fn warn(&self, what: std::fmt::Arguments<'_>) {
        (self.log)(Level::Warning, &what.to_string());
    }

    /// Writes an error to the log.
    pub fn error(&self, what: std::fmt::Arguments<'_>) {
        (self.log)(Level::Error, &what.to_string());
    }
}
