//! State that all connections of a server share.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use hoistway_blk::ground::Instant;
use hoistway_engine::{DiskId, Engine, FileSpec, Group};
use rustls::ServerConfig;

use crate::event_loop::Inboxes;
use crate::export::clients::Clients;
use crate::export::disk::Disk;
use crate::export::exports::{Exports, LiveExport};
use crate::export::files::OpenFiles;
use crate::ground::log::{Level, Lines, Log, PERIOD};
use crate::memory::Memory;
use crate::server::ServerError;
use crate::server::guest_socket::{GuestSocket, SocketAccess};
use crate::server::served_device::ServedDevice;

/// Limits of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerLimits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections of an address or user at a time.
    pub connections_per_peer: usize,
    /// In-flight requests of a connection; 1 to 65535.
    pub in_flight: u32,
    /// Bytes of requests and replies that a connection may hold. One request is always accepted, however long.
    pub held_bytes: usize,
    /// Bytes of requests and replies of all connections together.
    pub memory_bytes: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            connections: 1024,
            connections_per_peer: usize::MAX,
            in_flight: 128,
            held_bytes: 64 << 20,
            memory_bytes: 1 << 30,
        }
    }
}

/// Opens the disk that the file of an export is on, and starts it by [`ServerState::start_disk`]. Returns its number.
pub type StartDisk = Box<dyn Fn(&ServerState, &FileSpec, DiskId) -> Result<usize, ServerError> + Send + Sync>;

/// A withdrawn export.
pub(crate) struct Withdrawn {
    pub(crate) export: Weak<LiveExport>,
    /// Its disk, and its group there.
    pub(crate) disk: Arc<Disk>,
    pub(crate) group: Group,
}

/// Maximum log lines about clients per level in [`PERIOD`].
const CLIENT_LINES_MAX: u32 = 200;

/// State that all connections of a server share.
pub struct ServerState {
    /// The lobby: its only worker serves connections until they have chosen an export, so that no disk delays them, and they delay no
    /// client of a disk. Its target is nothing.
    pub(crate) lobby: Engine,
    /// The disks so far, by number; none is removed.
    pub(crate) disks: RwLock<Vec<Arc<Disk>>>,
    /// Starts further disks.
    pub(crate) start_disk: OnceLock<StartDisk>,
    /// Held during a change by a control request or a reload.
    changes: Mutex<()>,
    /// The exports; replaced as a whole.
    pub(crate) exports: Mutex<Arc<Exports>>,
    /// Withdrawn exports that may still have connections.
    pub(crate) withdrawn: Mutex<Vec<Withdrawn>>,
    /// Files that exports are on.
    pub(crate) files_open: OpenFiles,
    /// Inboxes of the workers: they take new connections and wake existing ones.
    pub inboxes: Inboxes,
    /// The TLS configuration for new connections, if there is one.
    pub(crate) tls: Mutex<Option<Arc<ServerConfig>>>,
    /// Limits.
    pub limits: ServerLimits,
    /// The memory of all connections.
    pub memory: Arc<Memory>,
    /// Connected clients.
    pub(crate) connected: Clients,
    /// Whether the server drains.
    pub is_draining: AtomicBool,
    /// Rate limit of log lines about failures to accept.
    pub(crate) accept_failures: Mutex<Lines>,
    /// Rate limits of log lines about clients, by level.
    client_lines: [Mutex<Lines>; 3],
    /// Sockets for guests, with the threads that serve them.
    pub(crate) guest_sockets: Mutex<Vec<GuestSocket>>,
    /// Block devices of this machine, with the threads that remove them.
    pub(crate) ublk_devices: Mutex<Vec<ServedDevice>>,
    /// Owner and mode of guests' sockets that are created later.
    pub(crate) guest_access: OnceLock<SocketAccess>,
    /// Receives log lines.
    pub log: Log,
}

impl ServerState {
    /// A server without disks and exports. The engine of the lobby, over nothing, has the first of these inboxes.
    pub(crate) fn new(lobby: Engine, inboxes: Inboxes, limits: ServerLimits, log: Log) -> ServerState {
        ServerState {
            lobby,
            disks: RwLock::default(),
            start_disk: OnceLock::new(),
            changes: Mutex::default(),
            exports: Mutex::default(),
            withdrawn: Mutex::default(),
            files_open: OpenFiles::default(),
            tls: Mutex::default(),
            memory: Memory::new(limits.memory_bytes, inboxes.clone()),
            inboxes,
            limits,
            connected: Clients::default(),
            is_draining: AtomicBool::new(false),
            accept_failures: Mutex::new(Lines::at_most(1)),
            client_lines: std::array::from_fn(|_| Mutex::new(Lines::at_most(CLIENT_LINES_MAX))),
            guest_sockets: Mutex::default(),
            ublk_devices: Mutex::default(),
            guest_access: OnceLock::new(),
            log,
        }
    }

    /// Serializes changes of a running server: each is based on the state that it reads first, and must be the only one until
    /// it is complete.
    pub fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time on the clock that all of its workers share.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Instant {
        self.lobby.now()
    }

    /// The disks, by number.
    #[must_use]
    pub fn disks(&self) -> Vec<Arc<Disk>> {
        self.disks.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The current exports.
    #[must_use]
    pub fn exports(&self) -> Arc<Exports> {
        Arc::clone(&self.exports.lock().unwrap_or_else(PoisonError::into_inner))
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

    /// Starts draining: requests in flight complete, throttled ones are refused, no more are read, and each connection then
    /// closes. Before that it reports the log lines dropped so far, as nothing may be logged later that would report them.
    pub(crate) fn drain(&self) {
        let dropped_lines = self
            .client_lines
            .iter()
            .map(|lines| lines.lock().unwrap_or_else(PoisonError::into_inner).take_dropped_lines());
        self.log_dropped_lines(dropped_lines.sum());
        self.is_draining.store(true, Relaxed);
        self.inboxes.notify_all();
    }

    /// Whether the server drains.
    #[inline]
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Relaxed)
    }

    /// Logs something that an operator may want to know.
    pub fn info(&self, message: std::fmt::Arguments<'_>) {
        (self.log)(Level::Info, &message.to_string());
    }

    /// Logs something about a client, unless there were too many recently.
    pub fn info_of_client(&self, message: std::fmt::Arguments<'_>) {
        self.log_of_client(Level::Info, message);
    }

    /// Logs a warning about a client, unless there were too many recently.
    pub fn warn_of_client(&self, message: std::fmt::Arguments<'_>) {
        self.log_of_client(Level::Warning, message);
    }

    fn log_of_client(&self, level: Level, message: std::fmt::Arguments<'_>) {
        let lines = &self.client_lines[level as usize];
        let logged = lines.lock().unwrap_or_else(PoisonError::into_inner).count(std::time::Instant::now());
        let Some(dropped_lines) = logged else { return };
        self.log_dropped_lines(dropped_lines);
        (self.log)(level, &message.to_string());
    }

    fn log_dropped_lines(&self, lines: u64) {
        if lines > 0 {
            self.warn(format_args!(
                "left out {lines} lines about clients (at most {CLIENT_LINES_MAX} of a level in {} s)",
                PERIOD.as_secs()
            ));
        }
    }

    /// Logs a failure of an export's disk, unless there was one of its kind recently.
    #[inline]
    pub(crate) fn log_failure(&self, export: &LiveExport) {
        if let Some((errno, left_out)) = export.failures.take() {
            let more = if left_out > 0 { format!(" ({left_out} more before it)") } else { String::new() };
            let (name, disk) = (&export.name, &export.disk.name);
            self.error(format_args!("export {name:?}: a request failed on {disk}: {errno}{more}"));
        }
    }

    /// Writes a warning to the log.
    pub fn warn(&self, message: std::fmt::Arguments<'_>) {
        (self.log)(Level::Warning, &message.to_string());
    }

    /// Writes an error to the log.
    pub fn error(&self, message: std::fmt::Arguments<'_>) {
        (self.log)(Level::Error, &message.to_string());
    }
}
