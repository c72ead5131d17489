//! The memory for the data of requests and replies: one pool for all clients, with a bound.
//!
//! Used by: `nbd`, `ublk`, `guest`, `server`; the program `hoistway-serve`.
//! Tests: below, `crates/serve/src/memory/pool.rs`, `crates/serve/tests/memory.rs`.
//!
//! A client may hold as much memory as is free at that moment. So a few clients may have much, and many share what there is, but some
//! memory always stays free for a client that holds little (dynamic thresholds, as switches share their buffers), beside a part that only
//! such clients may take. A client that needs more waits.
//!
//! One waiting client at a time may exceed the limit by one request: otherwise clients that hold parts of long requests could wait
//! for each other forever.

pub(crate) mod pool;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hoistway_engine::TRANSFER_BYTES_MAX;

use crate::event_loop::{ConnectionId, Inboxes};

/// What one waiting client may take beyond the limit: the longest request, with room around its data.
pub const EXTRA_BYTES: usize = TRANSFER_BYTES_MAX as usize + (1 << 20);
/// A part of the memory is for clients that hold little: one divided by this, for those that hold no more than this.
const SMALL_FRACTION: usize = 8;
const SMALL_BYTES: usize = 64 << 10;
/// Number of clients that are notified when memory becomes free. Each of them notifies more when it returns memory.
const NOTIFIED: usize = 2;

/// The memory of all clients.
pub struct Memory {
    limit: usize,
    used: AtomicUsize,
    /// Whether a client waits; a hint, checked again under the lock.
    has_waiters: AtomicBool,
    /// Whether a client waits or is favoured; also a hint.
    is_contended: AtomicBool,
    waiting: Mutex<Waiting>,
    inboxes: Inboxes,
}

#[derive(Default)]
struct Waiting {
    /// First come, first served.
    clients: VecDeque<ConnectionId>,
    /// The client that may exceed the limit.
    favoured: Option<ConnectionId>,
}

impl Memory {
    /// A pool of at most this many bytes, of which 33 MiB are reserved for one client at a time.
    #[must_use]
    pub fn new(bytes: usize, inboxes: Inboxes) -> Arc<Memory> {
        let limit = bytes.saturating_sub(EXTRA_BYTES);
        Arc::new(Memory {
            limit,
            used: AtomicUsize::new(0),
            has_waiters: AtomicBool::new(false),
            is_contended: AtomicBool::new(false),
            waiting: Mutex::default(),
            inboxes,
        })
    }

    /// Bytes that clients hold within the limit.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Bytes that they may hold.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.limit + EXTRA_BYTES
    }

    /// Whether memory is so short that unneeded buffers should be freed.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.has_waiters.load(Relaxed) || self.used.load(Relaxed) > self.limit / 2
    }

    /// Whether a client waits for memory.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        self.has_waiters.load(Relaxed)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes memory for a client that holds `within_limit` bytes within the limit.
    fn take(&self, within_limit: usize, bytes: usize) -> bool {
        let is_small = within_limit + bytes <= SMALL_BYTES;
        let limit = if is_small { self.limit } else { self.limit - self.limit / SMALL_FRACTION };
        let fits = |used: usize| (used + bytes + within_limit + bytes <= limit).then_some(used + bytes);
        self.used.fetch_update(SeqCst, Relaxed, fits).is_ok()
    }

    /// The same, but may exceed the limit if no other client does. Otherwise the client waits.
    #[cold]
    fn take_or_wait(&self, id: ConnectionId, within_limit: usize, extra: usize, bytes: usize) -> Taken {
        let waiting = &mut *self.waiting();
        // Set before the retry, so that memory that becomes free from now on is noticed.
        self.is_contended.store(true, SeqCst);
        let taken = if self.take(within_limit, bytes) {
            Taken::Within
        } else if waiting.favoured.is_none_or(|favoured| favoured == id) && extra + bytes <= EXTRA_BYTES {
            waiting.favoured = Some(id);
            Taken::Beyond
        } else {
            Taken::Nothing
        };
        match taken {
            Taken::Within | Taken::Beyond => waiting.clients.retain(|&other| other != id),
            Taken::Nothing if !waiting.clients.contains(&id) => waiting.clients.push_back(id),
            Taken::Nothing => {}
        }
        self.hint(waiting);
        taken
    }

    fn hint(&self, waiting: &Waiting) {
        self.has_waiters.store(!waiting.clients.is_empty(), SeqCst);
        self.is_contended.store(!waiting.clients.is_empty() || waiting.favoured.is_some(), SeqCst);
    }

    /// Memory has become free.
    fn freed(&self, id: ConnectionId, has_extra: bool) {
        if self.is_contended.load(SeqCst) {
            self.notify_waiters(id, has_extra);
        }
    }

    /// Notifies waiting clients. A client that no longer exceeds the limit is not favoured any more.
    #[cold]
    fn notify_waiters(&self, id: ConnectionId, has_extra: bool) {
        let waiting = &mut *self.waiting();
        waiting.favoured.take_if(|favoured| *favoured == id && !has_extra);
        for _ in 0..NOTIFIED {
            let Some(next) = waiting.clients.pop_front() else { break };
            // At the end of the queue, so that others are notified next time if there is not enough memory for this
            // client.
            waiting.clients.push_back(next);
            self.inboxes.notify(next);
        }
        self.hint(waiting);
    }

    /// A client has disconnected, or no longer waits.
    fn forget(&self, id: ConnectionId, has_extra: bool) {
        self.waiting().clients.retain(|&other| other != id);
        self.notify_waiters(id, has_extra);
    }
}

/// Where memory was taken from.
enum Taken {
    Within,
    Beyond,
    Nothing,
}

/// The memory that one client holds. Dropping it returns the memory; the engine drops the last reference, when the last
/// request has completed.
pub struct Account {
    memory: Arc<Memory>,
    id: ConnectionId,
    /// Bytes within the limit.
    within_limit: AtomicUsize,
    /// Bytes beyond the limit.
    extra: AtomicUsize,
}

impl Account {
    /// The account of a connection, which is notified when memory that it waits for may be free.
    #[must_use]
    pub fn new(memory: Arc<Memory>, id: ConnectionId) -> Arc<Account> {
        Arc::new(Account { memory, id, within_limit: AtomicUsize::new(0), extra: AtomicUsize::new(0) })
    }

    /// The pool.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Whether it holds no more than is free.
    #[must_use]
    pub fn is_within(&self) -> bool {
        self.within_limit.load(Relaxed) <= self.memory.limit.saturating_sub(self.memory.used())
    }

    /// Takes memory. If it returns false the client has to wait, and will be notified.
    #[must_use]
    pub fn take(&self, bytes: usize) -> bool {
        let (within_limit, extra) = (self.within_limit.load(Relaxed), self.extra.load(Relaxed));
        let taken = match self.memory.take(within_limit, bytes) {
            true => Taken::Within,
            false => self.memory.take_or_wait(self.id, within_limit, extra, bytes),
        };
        match taken {
            Taken::Within => self.within_limit.store(within_limit + bytes, Relaxed),
            Taken::Beyond => self.extra.store(extra + bytes, Relaxed),
            Taken::Nothing => return false,
        }
        true
    }

    /// It needs no more memory than it has.
    pub fn stop_waiting(&self) {
        if self.memory.is_contended.load(SeqCst) {
            self.memory.forget(self.id, self.extra.load(Relaxed) > 0);
        }
    }

    /// Takes memory even if none is free.
    pub fn take_over_limit(&self, bytes: usize) {
        self.memory.used.fetch_add(bytes, SeqCst);
        self.within_limit.fetch_add(bytes, Relaxed);
    }

    /// Returns memory, first the part beyond the limit.
    pub fn give_back(&self, bytes: usize) {
        let extra = self.extra.load(Relaxed);
        let from_extra = bytes.min(extra);
        if from_extra > 0 {
            self.extra.store(extra - from_extra, Relaxed);
        }
        let rest = bytes - from_extra;
        self.within_limit.fetch_sub(rest, Relaxed);
        self.memory.used.fetch_sub(rest, SeqCst);
        self.memory.freed(self.id, extra > from_extra);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(*self.within_limit.get_mut(), SeqCst);
        if self.memory.is_contended.load(SeqCst) {
            self.memory.forget(self.id, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn memory(mib: usize) -> Arc<Memory> {
        Memory::new(mib * MIB + EXTRA_BYTES, Inboxes::new(1).unwrap())
    }

    fn account(memory: &Arc<Memory>, number: u64) -> Arc<Account> {
        Account::new(Arc::clone(memory), ConnectionId { worker: 0, number })
    }

    #[test]
    fn greedy_clients_leave_memory_for_one_that_needs_little() {
        let memory = memory(100);
        let greedy: Vec<_> = (0..50).map(|number| account(&memory, number)).collect();
        for _ in 0..1000 {
            greedy.iter().for_each(|client| {
                let _ = client.take(64 << 10);
            });
        }
        assert!(memory.used() <= memory.bytes());
        assert!(account(&memory, 99).take(64 << 10), "{} are used", memory.used());
        drop(greedy);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn clients_with_long_requests_do_not_wait_for_each_other() {
        let memory = memory(10);
        let clients: Vec<_> = (0..4).map(|number| account(&memory, number)).collect();
        let mut held = [0; 4];
        let mut done = 0;
        // Each client takes 8 MiB in steps, and returns them when it has all.
        for round in 0..1000 {
            let at = round % 4;
            if clients[at].take(MIB) {
                held[at] += 1;
            }
            if held[at] == 8 {
                clients[at].give_back(8 * MIB);
                (held[at], done) = (0, done + 1);
            }
        }
        assert!(done > 20, "{done}");
        assert!(memory.used() <= memory.bytes());
    }

    #[test]
    fn only_one_client_goes_beyond_the_limit_and_by_one_request() {
        let memory = memory(0);
        let (one, other) = (account(&memory, 1), account(&memory, 2));
        assert!(one.take(20 * MIB) && !one.take(20 * MIB) && !other.take(1));
        one.give_back(10 * MIB);
        assert!(!other.take(1));
        one.give_back(10 * MIB);
        assert!(other.take(20 * MIB) && !one.take(1));
        drop(other);
        assert!(one.take(1));
        assert_eq!(memory.used(), 0);
    }
}
