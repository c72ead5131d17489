//! Connected clients, how many of each peer, and which are to be disconnected.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hoistway_blk::ground::Instant;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::counts::Ended;
use crate::event_loop::ConnectionId;

/// What clients are counted by, for limits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// The address of a machine.
    Address(IpAddr),
    /// A user of this machine.
    User(u32),
    /// Unknown.
    Unknown,
}

/// Where a client comes from.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What it is counted by.
    pub origin: Origin,
    name: String,
}

impl Peer {
    /// A machine.
    #[must_use]
    pub fn tcp(address: SocketAddr) -> Peer {
        Peer { origin: Origin::Address(address.ip()), name: address.to_string() }
    }

    /// A process of this machine, as far as the system says whose. `how` precedes that in the log.
    #[must_use]
    pub fn unix(how: &str, user: Option<u32>) -> Peer {
        match user {
            Some(user) => Peer { origin: Origin::User(user), name: format!("{how}, user {user}") },
            None => Peer { origin: Origin::Unknown, name: how.to_owned() },
        }
    }
}

/// A connected client.
#[derive(Debug)]
pub struct Client {
    /// How many came before it, and one.
    pub number: u64,
    /// Its name in the log.
    pub name: String,
    /// Where it comes from.
    pub peer: Peer,
    since: Instant,
    id: OnceLock<ConnectionId>,
    export: OnceLock<String>,
    /// DNS names of its certificate.
    certificate: OnceLock<Vec<String>>,
    is_to_disconnect: AtomicBool,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    others: AtomicU64,
    in_flight: AtomicU64,
}

/// A client as it is shown.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClientState {
    /// Its number, by which it can be disconnected.
    pub number: u64,
    /// Where it comes from.
    pub peer: String,
    /// DNS names of its certificate.
    pub certificate: Vec<String>,
    /// Its export, once it has chosen one.
    pub export: Option<String>,
    /// How long it has been connected, s.
    pub connected_s: u64,
    /// Reads that completed without an error.
    pub reads: u64,
    /// Bytes of those.
    pub read_bytes: u64,
    /// Writes that completed without an error.
    pub writes: u64,
    /// Bytes of those.
    pub written_bytes: u64,
    /// Other requests that completed without an error.
    pub others: u64,
    /// Requests at present.
    pub in_flight: u64,
}

impl Client {
    /// The client of this number, from this peer.
    pub(crate) fn new(number: u64, peer: Peer, since: Instant) -> Client {
        Client {
            number,
            name: format!("client {number} ({})", peer.name),
            peer,
            since,
            id: OnceLock::new(),
            export: OnceLock::new(),
            certificate: OnceLock::new(),
            is_to_disconnect: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            others: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
        }
    }

    /// Asks its connection to end. Returns the connection, which is to be notified.
    pub(crate) fn disconnect(&self) -> Option<ConnectionId> {
        self.is_to_disconnect.store(true, Relaxed);
        self.id.get().copied()
    }

    /// It has chosen this export.
    pub fn opened(&self, export: &str) {
        let _ = self.export.set(export.to_owned());
    }

    /// Its export, once it has chosen one.
    #[must_use]
    pub fn export(&self) -> Option<&str> {
        self.export.get().map(String::as_str)
    }

    /// It has presented a certificate with these DNS names.
    pub fn presented(&self, names: Vec<String>) {
        let _ = self.certificate.set(names);
    }

    /// DNS names of its certificate.
    #[must_use]
    pub fn certificate(&self) -> &[String] {
        self.certificate.get().map_or(&[], Vec::as_slice)
    }

    /// It is served by this connection.
    pub fn served_by(&self, id: ConnectionId) {
        let _ = self.id.set(id);
    }

    /// Whether its connection is to end.
    #[inline]
    #[must_use]
    pub fn is_to_disconnect(&self) -> bool {
        self.is_to_disconnect.load(Relaxed)
    }

    /// Counts a request. Only the thread that serves the client does.
    #[inline]
    pub fn completed(&self, what: Ended) {
        let add = |count: &AtomicU64, more: u64| count.store(count.load(Relaxed) + more, Relaxed);
        match what {
            Ended::Read(bytes) => {
                add(&self.reads, 1);
                add(&self.read_bytes, bytes);
            }
            Ended::Write(bytes) => {
                add(&self.writes, 1);
                add(&self.written_bytes, bytes);
            }
            Ended::Other => add(&self.others, 1),
        }
    }

    /// As many requests are in flight now.
    #[inline]
    pub fn set_in_flight(&self, requests: u32) {
        self.in_flight.store(u64::from(requests), Relaxed);
    }

    /// As it is shown.
    pub(crate) fn state(&self, now: Instant) -> ClientState {
        ClientState {
            number: self.number,
            peer: self.peer.name.clone(),
            certificate: self.certificate().to_vec(),
            export: self.export.get().cloned(),
            connected_s: now.since(self.since).0 / 1_000_000_000,
            reads: self.reads.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            writes: self.writes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            others: self.others.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
        }
    }
}

/// The clients of a server.
#[derive(Default)]
pub(crate) struct Clients(Mutex<Connected>);

/// Who is connected now.
#[derive(Default)]
pub(crate) struct Connected {
    /// Clients so far.
    pub(crate) number: u64,
    /// Those that are served, by number.
    pub(crate) clients: BTreeMap<u64, Arc<Client>>,
    /// How many those are of each origin.
    pub(crate) of_origin: FxHashMap<Origin, usize>,
    /// Those that are turned away.
    pub(crate) turned_away: usize,
}

impl Clients {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Connected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
