//! What a server offers, and what all its connections have in common.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use hoistway_blk::{IoPriority, Nanos};
use hoistway_engine::{Context, Engine, Errno, Group, Volume};
use hoistway_nbd::Export;
use rustls::ServerConfig;

use crate::latency::Latency;
use crate::lobby::Doors;
use crate::quota::Quota;

/// An export of a running server.
pub struct Served {
    /// As clients see it.
    pub export: Export,
    /// Which of the target's volumes it is on.
    pub volume: usize,
    /// Which bytes of that.
    pub range: Range<u64>,
    /// All its connections together.
    pub group: Group,
    /// Changes while the server runs.
    settings: Mutex<Settings>,
    /// Its limits.
    pub quota: Quota,
    /// Whether it is no longer offered: its clients are sent away.
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

/// What an export has done, in requests that were answered without an error, and bytes.
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
    /// Requests of all kinds that were answered with an error.
    pub errors: AtomicU64,
    /// How long reads took, from when they had come to when their answers could go.
    pub read_latency: Latency,
    /// The same of writes, from when all of their data had come.
    pub write_latency: Latency,
    /// The same of the others.
    pub other_latency: Latency,
    /// Clients at present.
    pub connections: AtomicU64,
    /// Requests that have come and not ended.
    pub in_flight: AtomicU64,
    /// Those of them that wait for their turn under the limits.
    pub held_back: AtomicU64,
}

/// A request that has ended: what it was, and its bytes.
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
    /// A request has come.
    #[inline]
    pub fn began(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// One was answered as it came, well or with an error.
    pub fn at_once(&self, is_ok: bool) {
        if is_ok { &self.others } else { &self.errors }.fetch_add(1, Relaxed);
    }

    /// So many will not be answered: whose they were has gone.
    pub fn abandoned(&self, requests: u64) {
        self.in_flight.fetch_sub(requests, Relaxed);
    }

    /// One has ended, after so long, or with an error.
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
    /// One that has done nothing yet.
    #[must_use]
    pub fn new(export: Export, volume: usize, range: Range<u64>, group: Group, settings: Settings) -> Served {
        Served {
            export,
            volume,
            range,
            group,
            settings: Mutex::new(settings),
            quota: Quota::new(),
            is_withdrawn: AtomicBool::new(false),
            counts: Counts::default(),
        }
    }

    /// Whether it is no longer offered.
    #[inline]
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Relaxed)
    }

    /// It is no longer offered. Its clients notice when they are called.
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

    /// Whose I/O that of its clients is.
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
    /// Requests of a connection that have not been answered; 1 to 65535.
    pub in_flight: u32,
    /// Bytes that a connection holds for its requests and answers. One request is always taken, however long.
    pub held_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { connections: 1024, in_flight: 128, held_bytes: 64 << 20 }
    }
}

/// Told of what happens, one line each.
pub type Log = Box<dyn Fn(&str) + Send + Sync>;

/// What there is to connect to at a time; the first answers to the empty name, too.
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

/// What all connections have in common.
pub struct Site {
    /// The block layer at work.
    pub engine: Engine,
    /// What there is to connect to; replaced as a whole.
    pub(crate) offer: Mutex<Arc<Offer>>,
    /// Exports that are no longer offered and that somebody may still be at.
    pub(crate) withdrawn: Mutex<Vec<Arc<Served>>>,
    /// What the files of the queue held when the scheduler was new.
    pub(crate) defaults: Mutex<Vec<(String, String)>>,
    /// Where connections come in.
    pub doors: Doors,
    /// What TLS is spoken with, if it is; replaced for those who come later.
    pub(crate) tls: Mutex<Option<Arc<ServerConfig>>>,
    /// Bounds.
    pub bounds: Bounds,
    /// Clients so far.
    pub clients: AtomicU64,
    /// Whether the server ends: nothing new is begun.
    pub is_draining: AtomicBool,
    /// Whoever wants to know.
    pub log: Log,
}

impl Site {
    /// One that offers nothing yet, over an engine whose workers have these doors.
    pub(crate) fn new(engine: Engine, doors: Doors, bounds: Bounds, log: Log) -> Site {
        Site {
            engine,
            offer: Mutex::default(),
            withdrawn: Mutex::default(),
            defaults: Mutex::default(),
            tls: Mutex::default(),
            doors,
            bounds,
            clients: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
            log,
        }
    }

    /// What there is to connect to at present.
    #[must_use]
    pub fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What TLS is spoken with, if it is.
    #[must_use]
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whoever comes from now on has TLS with these certificates.
    pub fn set_tls(&self, config: Arc<ServerConfig>) {
        *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = Some(config);
    }

    /// The server ends: what clients have under way is answered, nothing new is begun.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Relaxed);
        self.doors.call_all();
    }

    /// Whether the server ends.
    #[inline]
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Relaxed)
    }

    /// Names a client that comes from `peer`, for the log. `None` if there are as many as may be: then it is turned away, which
    /// the log has.
    #[must_use]
    pub fn name_client(&self, peer: &str) -> Option<String> {
        let name = format!("client {} ({peer})", self.clients.fetch_add(1, Relaxed) + 1);
        if self.doors.visitors() >= self.bounds.connections {
            self.say(format_args!("{name}: turned away, {} are connected", self.bounds.connections));
            return None;
        }
        self.say(format_args!("{name}: connected"));
        Some(name)
    }

    /// Tells what happened.
    pub fn say(&self, what: std::fmt::Arguments<'_>) {
        (self.log)(&what.to_string());
    }
}
