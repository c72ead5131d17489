//! The event loops of the workers.
//!
//! Used by: `server`, `export`, `nbd`, `ublk`, `guest` and others; the program `hoistway-serve`.
//! Tests: `crates/serve/src/event_loop/busy_poll.rs`, `crates/serve/tests/event_loop.rs`, `crates/serve/tests/life.rs`.
//!
//! A worker sleeps only in its [`IoChannel`]. To serve a connection on the worker's thread without waking another thread, its
//! socket has to be polled there: [`EventLoop`] wraps a target, and each of its channels polls the sockets of its worker's
//! connections together with the completions of the wrapped channel. It is independent of any protocol.

mod busy_poll;
mod channel;
mod completion;
mod event_fd;
mod inbox;
mod poller;

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hoistway_blk::ground::{Instant, Sector};
use hoistway_engine::{Backend, Buffer, Completion, Extent, FileSpec, IoChannel, OpenError, Shape, VolumeShape};

use channel::EventLoopChannel;
pub(crate) use completion::completion_handler;
pub use inbox::Inboxes;
use poller::Epoll;
pub(crate) use poller::{Poller, Watched};

/// Why a connection runs. Readiness is edge-triggered: it is reported once, when it starts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ready {
    /// There may be something to receive, or the end of the stream.
    pub to_receive: bool,
    /// There may be room to send.
    pub to_send: bool,
    /// The peer has closed its side: nothing follows what has been received.
    pub has_hung_up: bool,
    /// The peer has closed both sides, or the socket is broken: nothing can be sent any more.
    pub has_left: bool,
}

/// What a connection does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It waits for its socket, a notification, or this time ([`Instant::NEVER`] for none).
    Wait(Instant),
    /// It continues on this worker: its socket is watched there from now on, and it runs there at once.
    Move(usize),
    /// It is dropped.
    Close,
}

/// A connection that a worker's thread serves.
pub trait Connection: Send {
    /// Its socket.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// It has been registered, and can have descriptors other than its socket polled.
    fn registered(&mut self, _watch: Watch) {}

    /// Its socket is ready, it has been notified, or its time has come. Other connections wait meanwhile.
    fn run(&mut self, now: Instant, ready: Ready) -> Next;

    /// What it does next, as the last run or completion has left it.
    fn next(&self) -> Next {
        Next::Wait(Instant::NEVER)
    }

    /// Requests of its client of the engine have completed. It runs soon if what it does next has changed.
    fn completed(&mut self, _now: Instant, _batch: &mut Vec<Completion>) {}

    /// It is on another worker now.
    fn moved(&mut self, _id: ConnectionId) {}

    /// It panicked, is over, and will be dropped.
    fn panicked(&mut self);

    /// The cost of what has been done for it since the last call, on this thread: each unit takes about a microsecond. Connections that
    /// wait take their turns by it.
    fn take_cost(&mut self) -> u32 {
        1
    }

    /// Whether it can be [polled](Self::poll): it shares memory with its client, which does not have to signal while the worker
    /// polls. It runs once, however many of its descriptors are ready.
    fn is_polled(&self) -> bool {
        false
    }

    /// Whether its client has written new data to the shared memory. If the worker is about to sleep, the client has to signal from
    /// now on; otherwise it need not.
    fn poll(&mut self, _is_about_to_sleep: bool) -> bool {
        false
    }
}

/// Polls further descriptors for a connection.
#[derive(Debug)]
pub struct Watch {
    poller: Arc<dyn Poller>,
    number: u64,
}

impl Watch {
    /// From now on the connection runs whenever the descriptor is signaled (edge-triggered, so it need not be read).
    ///
    /// # Errors
    /// If the descriptor is polled already or cannot be, or the system is out of memory.
    pub fn add(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.poller.add(descriptor, self.number, Watched::EachTime)
    }

    /// Stops polling it. A descriptor that has been duplicated must be removed before it is closed.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) {
        self.poller.remove(descriptor);
    }
}

/// A connection, shared by its event loop and its completion handler on the same thread.
pub type SharedConnection = Arc<Mutex<dyn Connection>>;

fn lock(connection: &SharedConnection) -> MutexGuard<'_, dyn Connection + 'static> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Identifies a connection: its worker, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnectionId {
    /// Its worker.
    pub worker: usize,
    /// Its number there; never reused.
    pub number: u64,
}

/// A target whose workers also serve connections.
pub struct EventLoop {
    target: Box<dyn Backend>,
    inboxes: Inboxes,
    /// The number of its first worker among those of all targets.
    first_worker: usize,
    poller: MakePoller,
    busy_poll_max: Duration,
}

/// Makes the poller of a worker.
type MakePoller = Box<dyn Fn() -> io::Result<Arc<dyn Poller>> + Send + Sync>;

impl EventLoop {
    /// Wraps this target; there are as many inboxes as there will be workers.
    #[must_use]
    pub fn around(target: Box<dyn Backend>, inboxes: Inboxes) -> EventLoop {
        EventLoop::with(target, inboxes, Box::new(|| Ok(Arc::new(Epoll::new()?))))
    }

    /// The same with a custom poller.
    pub(crate) fn with(target: Box<dyn Backend>, inboxes: Inboxes, poller: MakePoller) -> EventLoop {
        EventLoop { target, inboxes, first_worker: 0, poller, busy_poll_max: Duration::ZERO }
    }

    /// Its workers have the inboxes from this number on; otherwise the first ones.
    #[must_use]
    pub fn from_worker(mut self, first: usize) -> EventLoop {
        self.first_worker = first;
        self
    }

    /// An idle worker busy-polls for at most this time before it sleeps, and only while polling pays off.
    #[must_use]
    pub fn busy_polling(mut self, max: Duration) -> EventLoop {
        self.busy_poll_max = max;
        self
    }
}

impl Backend for EventLoop {
    fn shape(&self) -> &Shape {
        self.target.shape()
    }

    fn volumes(&self) -> Vec<VolumeShape> {
        self.target.volumes()
    }

    fn open(&self, file: &FileSpec) -> Result<(usize, Vec<String>), OpenError> {
        self.target.open(file)
    }

    fn grow(&self, volume: usize) -> Result<(), OpenError> {
        self.target.grow(volume)
    }

    fn close(&self, volume: usize) {
        self.target.close(volume);
        // Idle workers release the file, too.
        self.inboxes.notify_all();
    }

    fn channel(&self, worker: usize) -> io::Result<Box<dyn IoChannel>> {
        let (target_channel, poller) = (self.target.channel(worker)?, (self.poller)()?);
        let (inboxes, worker) = (self.inboxes.clone(), self.first_worker + worker);
        Ok(Box::new(EventLoopChannel::new(target_channel, inboxes, worker, poller, self.busy_poll_max)?))
    }

    fn buffer(&self, len: usize) -> Buffer {
        self.target.buffer(len)
    }

    fn extents(&self, range: Range<Sector>, extents_max: usize) -> io::Result<Vec<Extent>> {
        self.target.extents(range, extents_max)
    }

    fn extents_of_read(&self, range: Range<Sector>) -> io::Result<Vec<Extent>> {
        self.target.extents_of_read(range)
    }
}
