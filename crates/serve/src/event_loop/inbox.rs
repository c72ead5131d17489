//! The inboxes of the workers, through which any thread adds and notifies connections.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hoistway_engine::Wake as _;

use super::event_fd::EventFd;
use super::{ConnectionId, SharedConnection};

/// The inbox of each worker.
#[derive(Clone)]
pub struct Inboxes(Arc<Shared>);

struct Shared {
    inboxes: Box<[Inbox]>,
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
        let inbox = |_| {
            let event_fd = Arc::new(EventFd::new()?);
            Ok(Inbox {
                event_fd,
                messages: Mutex::default(),
                has_messages: AtomicBool::new(false),
                connections: AtomicUsize::new(0),
                at_target: AtomicUsize::new(0),
            })
        };
        let inboxes = (0..workers).map(inbox).collect::<io::Result<_>>()?;
        Ok(Inboxes(Arc::new(Shared { inboxes, is_empty: Condvar::new(), is_empty_lock: Mutex::default() })))
    }

    /// The inbox of a worker.
    pub(super) fn of(&self, worker: usize) -> &Inbox {
        &self.0.inboxes[worker]
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

    /// The worker with the fewest connections.
    #[must_use]
    pub fn least_loaded(&self) -> usize {
        let count = |worker: &usize| self.of(*worker).connections.load(Relaxed);
        (0..self.0.inboxes.len()).min_by_key(count).unwrap_or(0)
    }

    /// Connections of all workers.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.0.inboxes.iter().map(|inbox| inbox.connections.load(SeqCst)).sum()
    }

    /// Commands at the target.
    #[must_use]
    pub fn at_target(&self) -> usize {
        self.0.inboxes.iter().map(|inbox| inbox.at_target.load(Relaxed)).sum()
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

    /// Makes a connection run soon; one that has been dropped is ignored.
    pub fn notify(&self, id: ConnectionId) {
        self.of(id.worker).change(|messages| messages.notified.push(id.number));
    }

    /// Makes all connections run soon.
    pub fn notify_all(&self) {
        self.0.inboxes.iter().for_each(|inbox| inbox.change(|messages| messages.all_notified = true));
    }
}
