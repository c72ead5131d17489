//! What a server offers, and what all its connections have in common.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use hoistway_blk::IoPriority;
use hoistway_engine::{Context, Engine, Errno, Group, Volume};
use hoistway_nbd::Export;

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
    /// Clients at present.
    pub connections: AtomicU64,
}

impl Served {
    /// One that has done nothing yet.
    #[must_use]
    pub fn new(export: Export, volume: usize, range: Range<u64>, group: Group, settings: Settings) -> Served {
        Served { export, volume, range, group, settings: Mutex::new(settings), counts: Counts::default() }
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

/// The names of a scheduler's tunables.
pub type TunableNames = fn(&str) -> Vec<&'static str>;

/// What all connections have in common.
pub struct Site {
    /// The block layer at work.
    pub engine: Engine,
    /// What there is to connect to; the first answers to the empty name, too.
    pub served: Vec<Served>,
    /// The same as clients see it, in the same order.
    pub exports: Vec<Export>,
    /// Their limits.
    pub quota: Quota,
    /// Where connections come in.
    pub doors: Doors,
    /// Bounds.
    pub bounds: Bounds,
    /// Clients so far.
    pub clients: AtomicU64,
    /// Whether the server ends: nothing new is begun.
    pub is_draining: AtomicBool,
    /// Whoever wants to know.
    pub log: Log,
    /// Who knows schedulers.
    pub tunable_names: TunableNames,
}

impl Site {
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
