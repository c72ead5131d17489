//! The inboxes of the workers, through which any thread adds and notifies connections.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hoistway_engine::Wake as _;

use super::event_fd::EventFd;
use super::{ConnectionId, SharedConnection, lock};

/// The inbox of each worker.
#[derive(Clone)]
pub struct Inboxes(Arc<Shared>);

struct Shared {
    /// Those of the workers so far, and room for more.
    inboxes: Box<[OnceLock<Inbox>]>,
    /// How many there are. Held while more are made.
    workers: Mutex<usize>,
    /// Notified when the last connection has been dropped.
    is_empty: Condvar,
    /// Held while `is_empty` is notified, so that a waiter that has just looked at the counts does not miss it.
    is_empty_lock: Mutex<()>,
}

pub struct Inbox {
    pub(super) event_fd: Arc<EventFd>,
    messages: Mutex<Messages>,
    /// Whether there is anything in `messages`: a hint, checked again under the lock.
    pub(super) has_messages: AtomicBool,
    /// Connections that have been added and not dropped.
    pub(super) connections: AtomicUsize,
    /// Commands at the target that this worker started. Only this worker writes it.
    pub(super) at_target: AtomicUsize,
}

#[derive(Default)]
pub struct Messages {
    pub(super) added: Vec<(u64, SharedConnection)>,
    pub(super) notified: Vec<u64>,
    pub(super) all_notified: bool,
    last_number: u64,
}

impl Inbox {
    pub(super) fn lock(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Messages)) {
        change(&mut self.lock());
        self.has_messages.store(true, Relaxed);
        self.event_fd.wake();
    }
}

impl Inboxes {
    /// One for each worker.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    pub fn new(workers: usize) -> io::Result<Inboxes> {
        let inboxes = Inboxes::with_room(workers);
        inboxes.open(workers)?;
        Ok(inboxes)
    }

    /// None yet, with room for those of this many workers.
    #[must_use]
    pub fn with_room(workers: usize) -> Inboxes {
        Inboxes(Arc::new(Shared {
            inboxes: (0..workers).map(|_| OnceLock::new()).collect(),
            workers: Mutex::default(),
            is_empty: Condvar::new(),
            is_empty_lock: Mutex::default(),
        }))
    }

    /// Makes those of further workers, and returns the numbers of these workers.
    ///
    /// # Errors
    /// If the system refuses a descriptor, or there is no room for them.
    pub fn open(&self, workers: usize) -> io::Result<Range<usize>> {
        let mut count = self.0.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let range = *count..*count + workers;
        let room = self.0.inboxes.get(range.clone());
        let room =
            room.ok_or_else(|| io::Error::other("too many workers (expected fewer disks, or fewer --workers)"))?;
        let descriptors = (0..workers).map(|_| EventFd::new()).collect::<io::Result<Vec<_>>>()?;
        for (place, event_fd) in room.iter().zip(descriptors) {
            let inbox = Inbox {
                event_fd: Arc::new(event_fd),
                messages: Mutex::default(),
                has_messages: AtomicBool::new(false),
                connections: AtomicUsize::new(0),
                at_target: AtomicUsize::new(0),
            };
            // The place is empty, because only the holder of this lock fills places.
            let _ = place.set(inbox);
        }
        *count = range.end;
        Ok(range)
    }

    /// The inbox of a worker.
    #[inline]
    pub(super) fn of(&self, worker: usize) -> &Inbox {
        self.0.inboxes[worker].get().expect("a worker has an inbox before it has a number")
    }

    fn all(&self) -> impl Iterator<Item = &Inbox> {
        self.0.inboxes.iter().map_while(OnceLock::get)
    }

    /// Connections of a worker have been dropped.
    pub(super) fn dropped(&self, worker: usize, connections: usize) {
        self.of(worker).connections.fetch_sub(connections, SeqCst);
        if self.connections() == 0 {
            let _guard = self.0.is_empty_lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.is_empty.notify_all();
        }
    }

    /// Waits until there are no connections, but no longer than `timeout`. Returns how many there are.
    #[must_use]
    pub fn wait_until_empty(&self, timeout: Duration) -> usize {
        let guard = self.0.is_empty_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.is_empty.wait_timeout_while(guard, timeout, |()| self.connections() > 0);
        drop(waited);
        self.connections()
    }

    /// The one of these workers with the fewest connections.
    #[must_use]
    pub fn least_loaded(&self, workers: Range<usize>) -> usize {
        let first = workers.start;
        workers.min_by_key(|&worker| self.of(worker).connections.load(Relaxed)).unwrap_or(first)
    }

    /// Connections of all workers.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.all().map(|inbox| inbox.connections.load(SeqCst)).sum()
    }

    /// Commands at the target that these workers started.
    #[must_use]
    pub fn at_target(&self, workers: Range<usize>) -> usize {
        workers.map(|worker| self.of(worker).at_target.load(Relaxed)).sum()
    }

    /// Adds a connection; `connection` makes it with its number. It runs for the first time at once.
    pub fn add(&self, worker: usize, connection: impl FnOnce(ConnectionId) -> SharedConnection) {
        let inbox = self.of(worker);
        let number = {
            let mut messages = inbox.lock();
            messages.last_number += 1;
            messages.last_number
        };
        let connection = connection(ConnectionId { worker, number });
        inbox.connections.fetch_add(1, Relaxed);
        inbox.change(|messages| messages.added.push((number, connection)));
    }

    /// Moves a connection to another worker.
    pub(super) fn hand_over(&self, from: usize, to: usize, connection: SharedConnection) {
        self.add(to, |id| {
            lock(&connection).moved(id);
            connection
        });
        // Only now, so that the connection is counted all the time.
        self.dropped(from, 1);
    }

    /// Makes a connection run soon; one that has been dropped is ignored.
    pub fn notify(&self, id: ConnectionId) {
        self.of(id.worker).change(|messages| messages.notified.push(id.number));
    }

    /// Makes all connections run soon.
    pub fn notify_all(&self) {
        self.all().for_each(|inbox| inbox.change(|messages| messages.all_notified = true));
    }
}
