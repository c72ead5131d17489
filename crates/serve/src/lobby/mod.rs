//! Where workers meet clients: a station that waits for sockets, too.
//!
//! A worker sleeps in its [`Station`] and nowhere else. So whoever is to be served on the worker's own thread, without another
//! thread to be woken in between, has to be waited for there: [`Lobby`] wraps a target, and each of its stations watches the
//! sockets of its worker's visitors beside what the station inside has to tell. It knows nothing of what they say.

mod bell;
mod doors;
mod patience;
mod station;
mod waiting;

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hoistway_blk::{Instant, Sector};
use hoistway_engine::{Backend, Buffer, Extent, Shape, Station};

pub use doors::Doors;
use station::LobbyStation;
use waiting::Epoll;
pub(crate) use waiting::{Waiting, Watched};

/// Why a visitor is attended to. Readiness is told once, when it begins.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ready {
    /// There may be something to receive, or the end of the stream.
    pub to_receive: bool,
    /// There may be room to send.
    pub to_send: bool,
    /// The other side has closed: nothing comes behind what has come.
    pub has_hung_up: bool,
}

/// Whether a visitor stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stay {
    /// Until something happens at its socket, somebody calls it, or this moment ([`Instant::NEVER`] for none).
    Until(Instant),
    /// It leaves and is dropped.
    Over,
}

/// Somebody who is served on a worker's thread.
pub trait Visitor: Send {
    /// Its socket.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// It has been let in, and can have more watched than its socket.
    fn seated(&mut self, _watch: Watch) {}

    /// Something happened at its socket, somebody called it, or its moment has come. Others wait meanwhile.
    fn attend(&mut self, now: Instant, ready: Ready) -> Stay;

    /// It panicked and leaves.
    fn panicked(&self);

    /// Whether it can be [peeked at](Self::peek): it shares memory with its client, who need not ring while somebody looks.
    /// However many of its descriptors have rung, it is attended to once then, and told of one of them.
    fn can_be_peeked_at(&self) -> bool {
        false
    }

    /// Whether something has come that it has not been told of. If the worker is about to sleep, it has to be told of what
    /// comes from now on; else it may do without.
    fn peek(&mut self, _is_about_to_sleep: bool) -> bool {
        false
    }
}

/// Has descriptors watched for a visitor.
#[derive(Debug)]
pub struct Watch {
    waiting: Arc<dyn Waiting>,
    number: u64,
}

impl Watch {
    /// From now on the visitor is attended to whenever something comes there: told each time, so that nobody has to take it.
    ///
    /// # Errors
    /// If the descriptor is watched already or cannot be, or the system has no room for it.
    pub fn add(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.waiting.add(descriptor, self.number, Watched::EachTime)
    }

    /// No longer. A descriptor that others have, too, has to be removed before it is closed.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) {
        self.waiting.remove(descriptor);
    }
}

/// A visitor, as its lobby and whoever else serves it on the same thread have it.
pub type SharedVisitor = Arc<Mutex<dyn Visitor>>;

/// The name of a visitor: that of its worker, and its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VisitorId {
    /// Its worker.
    pub worker: usize,
    /// Its own there; never used again.
    pub number: u64,
}

/// A target in front of which visitors are served.
pub struct Lobby {
    inside: Box<dyn Backend>,
    doors: Doors,
    waiting: MakeWaiting,
    looks_on: Duration,
}

/// Makes what a worker waits by.
type MakeWaiting = Box<dyn Fn() -> io::Result<Arc<dyn Waiting>> + Send + Sync>;

impl Lobby {
    /// Around this target, with doors for as many workers as there will be.
    #[must_use]
    pub fn around(inside: Box<dyn Backend>, doors: Doors) -> Lobby {
        Lobby::with(inside, doors, Box::new(|| Ok(Arc::new(Epoll::new()?))))
    }

    /// The same, whose workers wait by these means.
    pub(crate) fn with(inside: Box<dyn Backend>, doors: Doors, waiting: MakeWaiting) -> Lobby {
        Lobby { inside, doors, waiting, looks_on: Duration::ZERO }
    }

    /// A worker without work looks on for so long at most before it sleeps, and only as long as that pays.
    #[must_use]
    pub fn looking_on(mut self, most: Duration) -> Lobby {
        self.looks_on = most;
        self
    }
}

impl Backend for Lobby {
    fn shape(&self) -> &Shape {
        self.inside.shape()
    }

    fn station(&self, worker: usize) -> io::Result<Box<dyn Station>> {
        let (inside, waiting) = (self.inside.station(worker)?, (self.waiting)()?);
        Ok(Box::new(LobbyStation::new(inside, self.doors.clone(), worker, waiting, self.looks_on)?))
    }

    fn buffer(&self, len: usize) -> Buffer {
        self.inside.buffer(len)
    }

    fn extents(&self, range: Range<Sector>, most: usize) -> io::Result<Vec<Extent>> {
        self.inside.extents(range, most)
    }
}
