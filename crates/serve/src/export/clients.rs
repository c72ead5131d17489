//! Connected clients, their number per peer, and disconnect requests.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hoistway_blk::ground::Instant;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::event_loop::ConnectionId;
use crate::export::counts::Ended;

/// The peer that clients are counted by, for limits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// The address of a machine.
    Address(IpAddr),
    /// A user of this machine.
    User(u32),
    /// Unknown.
    Unknown,
}

/// The peer of a client.
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

    /// A process of this machine; `user` if the system reports it. `how` precedes it in the log.
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
    /// The number of the client, counted from 1.
    pub number: u64,
    /// Its name in the log.
    pub name: String,
    /// The peer.
    pub peer: Peer,
    since: Instant,
    /// Its connection. Under a lock, so that either a disconnect request finds the new worker of a connection, or that worker sees the
    /// request.
    id: Mutex<Option<ConnectionId>>,
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

/// A client as shown to an administrator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClientState {
    /// Its number, by which it can be disconnected.
    pub number: u64,
    /// The peer.
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
    /// The client with this number from this peer.
    pub(crate) fn new(number: u64, peer: Peer, since: Instant) -> Client {
        Client {
            number,
            name: format!("client {number} ({})", peer.name),
            peer,
            since,
            id: Mutex::default(),
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
        *self.id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has chosen this export.
    pub fn opened(&self, export: &str) {
        let _ = self.export.set(export.to_owned());
    }

    /// Its export, once it has chosen one.
    #[must_use]
    pub fn export(&self) -> Option<&str> {
        self.export.get().map(String::as_str)
    }

    /// The client has presented a certificate with these DNS names.
    pub fn presented(&self, names: Vec<String>) {
        let _ = self.certificate.set(names);
    }

    /// DNS names of its certificate.
    #[must_use]
    pub fn certificate(&self) -> &[String] {
        self.certificate.get().map_or(&[], Vec::as_slice)
    }

    /// Sets the connection that serves the client, which may change its worker.
    pub fn set_connection(&self, id: ConnectionId) {
        *self.id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
    }

    /// Whether its connection is to end.
    #[inline]
    #[must_use]
    pub fn is_to_disconnect(&self) -> bool {
        self.is_to_disconnect.load(Relaxed)
    }

    /// Counts a request. Only called by the thread that serves the client.
    #[inline]
    pub fn completed(&self, ended: Ended) {
        let add = |count: &AtomicU64, increment: u64| count.store(count.load(Relaxed) + increment, Relaxed);
        match ended {
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

    /// Sets the number of requests in flight.
    #[inline]
    pub fn set_in_flight(&self, requests: u32) {
        self.in_flight.store(u64::from(requests), Relaxed);
    }

    /// The client as shown to an administrator.
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

/// The connected clients.
#[derive(Default)]
pub(crate) struct Connected {
    /// Clients so far.
    pub(crate) number: u64,
    /// The served clients, by number.
    pub(crate) clients: BTreeMap<u64, Arc<Client>>,
    /// The number of them per origin.
    pub(crate) clients_by_origin: FxHashMap<Origin, usize>,
    /// The number of clients that are being refused.
    pub(crate) refused_clients: usize,
}

impl Clients {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Connected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
