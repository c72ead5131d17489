//! A guest at its worker: kicked, it goes on; and whoever has a message for it waits here until nothing is in the way.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use hoistway_blk::{Instant, SECTOR_BYTES};
use hoistway_engine::{Completion, TRANSFER_BYTES_MAX};
use hoistway_vhost::{Device, Disk, Limits, Problem, QUEUES_MAX};

use super::requests::Requests;
use crate::gate::Gate;
use crate::lobby::{Ready, SharedVisitor, Stay, Visitor, VisitorId, Watch};
use crate::served::{Served, Site};

/// Requests that the engine has of one of ours: each of its ranges is one.
const PARTS: u32 = 33;

/// A guest.
pub struct Guest {
    pub site: Arc<Site>,
    served: Arc<Served>,
    id: VisitorId,
    /// Who it is, for the log.
    name: String,
    inside: Mutex<Inside>,
    /// Told when requests have ended.
    ended: Condvar,
}

/// What of a guest its worker and its messages share.
pub struct Inside {
    /// `None` if it could not even begin, or is over.
    pub requests: Option<Requests>,
    pub watch: Option<Watch>,
    /// Nothing more is taken; it leaves when what is under way has ended.
    is_leaving: bool,
}

impl Guest {
    pub fn new(site: Arc<Site>, served: Arc<Served>, id: VisitorId, name: String) -> Arc<Guest> {
        let guest = Arc::new(Guest {
            served,
            id,
            name,
            inside: Mutex::new(Inside { requests: None, watch: None, is_leaving: false }),
            ended: Condvar::new(),
            site,
        });
        let depth = guest.site.bounds.in_flight * PARTS + 1;
        let served = &guest.served;
        match Gate::open(&guest.site, Arc::clone(served), id, depth, guest.handler()) {
            Ok(gate) => {
                let limits = Limits { data_bytes_max: TRANSFER_BYTES_MAX as u32 };
                guest.lock().requests = Some(Requests::new(
                    Arc::clone(served),
                    Device::new(disk(served), limits),
                    gate,
                    guest.site.engine.buffers(),
                ));
                served.counts.connections.fetch_add(1, Relaxed);
                guest.say(&format!("begins on export {:?}", served.export.name));
            }
            Err(errno) => guest.say(&format!("{errno}")),
        }
        guest
    }

    /// It as its worker has it. `leaves` is closed when it has left.
    pub fn seat(self: &Arc<Self>, socket: UnixStream, leaves: OwnedFd) -> SharedVisitor {
        Arc::new(Mutex::new(Seat { guest: Arc::clone(self), socket, _leaves: leaves }))
    }

    pub fn say(&self, what: &str) {
        self.site.say(format_args!("{}: {what}", self.name));
    }

    pub fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has its worker look after it.
    pub fn call(&self) {
        self.site.doors.call(self.id);
    }

    /// Waits until this holds. Answers `false` if the guest leaves before.
    pub fn wait<'a>(
        &self,
        inside: MutexGuard<'a, Inside>,
        holds: impl Fn(&Requests) -> bool,
    ) -> (MutexGuard<'a, Inside>, bool) {
        let is_to_wait = |inside: &mut Inside| {
            !inside.is_leaving && inside.requests.as_ref().is_some_and(|requests| !holds(requests))
        };
        let inside = self.ended.wait_while(inside, is_to_wait).unwrap_or_else(PoisonError::into_inner);
        let has_stayed = !inside.is_leaving && inside.requests.is_some();
        (inside, has_stayed)
    }

    /// The front end has gone, or cannot be understood: nothing is given back to a guest that may not be there.
    pub fn hang_up(&self) {
        self.leave(true);
        self.call();
    }

    fn leave(&self, is_gone: bool) {
        let inside = &mut *self.lock();
        if let Some(requests) = &mut inside.requests {
            requests.is_gone |= is_gone;
            if !inside.is_leaving {
                requests.leave();
            }
        }
        inside.is_leaving = true;
        self.ended.notify_all();
    }

    /// What the engine tells of the ends of requests.
    fn handler(self: &Arc<Self>) -> impl FnMut(&mut Vec<Completion>) + Send + 'static {
        let me: Weak<Guest> = Arc::downgrade(self);
        move |batch: &mut Vec<Completion>| {
            let Some(guest) = me.upgrade() else { return };
            // As in the lobby: a panic ends this guest only.
            if catch_unwind(AssertUnwindSafe(|| guest.completed(batch))).is_err() {
                guest.end_after_panic();
            }
        }
    }

    fn completed(&self, batch: &mut Vec<Completion>) {
        let inside = &mut *self.lock();
        let Some(requests) = &mut inside.requests else { return };
        let (now, until) = (self.site.engine.now(), requests.gate.released_at());
        batch.drain(..).for_each(|completion| requests.completed(now, completion));
        let is_more = requests.advance(&self.site, now, &|what| self.say(what));
        // It is the lobby that knows when a guest wants to be attended to, and that lets go of it.
        if is_more || inside.is_leaving || requests.gate.released_at() != until {
            self.call();
        }
        self.ended.notify_all();
    }

    fn end_after_panic(&self) {
        self.say("a bug of ours; this guest's disk is gone, others go on");
        self.lock().requests = None;
        self.hang_up();
    }

    /// Does what can be done now.
    fn attend(&self, now: Instant) -> Stay {
        if self.site.is_draining() || self.served.is_withdrawn() {
            self.leave(false);
        }
        let inside = &mut *self.lock();
        let Some(requests) = &mut inside.requests else { return Stay::Over };
        requests.gate.release(&self.site, now);
        if requests.advance(&self.site, now, &|what| self.say(what)) {
            self.call();
        }
        if inside.is_leaving && requests.unanswered() == 0 {
            return Stay::Over;
        }
        Stay::Until(requests.gate.released_at())
    }

    fn left(&self) {
        let inside = &mut *self.lock();
        if let Some(requests) = inside.requests.take() {
            self.served.counts.connections.fetch_sub(1, Relaxed);
            let malformed = match requests.malformed {
                0 => String::new(),
                malformed => format!(", {malformed} malformed"),
            };
            self.say(&format!("ended after {} requests{malformed}", requests.answered));
            inside.watch.iter().for_each(|watch| unwatch(watch, &requests.device));
        }
        inside.is_leaving = true;
        self.ended.notify_all();
    }
}

fn disk(served: &Served) -> Disk {
    let export = &served.export;
    Disk {
        sectors: export.size_bytes / SECTOR_BYTES,
        block_bytes: export.block_bytes_min,
        preferred_block_bytes: export.block_bytes_preferred,
        read_only: export.read_only,
        queues: QUEUES_MAX,
        id: Disk::id(if export.name.is_empty() { "hoistway" } else { &export.name }),
    }
}

fn unwatch(watch: &Watch, device: &Device) {
    (0..device.rings().len() as u8).filter_map(|ring| device.kick(ring)).for_each(|kick| watch.remove(kick));
}

/// A guest's place in the lobby.
struct Seat {
    guest: Arc<Guest>,
    socket: UnixStream,
    _leaves: OwnedFd,
}

impl Visitor for Seat {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn seated(&mut self, watch: Watch) {
        let inside = &mut *self.guest.lock();
        if let Some(requests) = &inside.requests {
            let device = &requests.device;
            let mut kicks = (0..device.rings().len() as u8).filter_map(|ring| device.kick(ring));
            if let Err(error) = kicks.try_for_each(|kick| watch.add(kick)) {
                // It came before there was anybody to refuse it.
                self.guest.say(&format!("{}; closed", Problem::Bell(error)));
                inside.is_leaving = true;
            }
        }
        inside.watch = Some(watch);
    }

    fn attend(&mut self, now: Instant, _: Ready) -> Stay {
        self.guest.attend(now)
    }

    fn panicked(&self) {
        self.guest.end_after_panic();
    }

    fn can_be_peeked_at(&self) -> bool {
        true
    }

    fn peek(&mut self, is_about_to_sleep: bool) -> bool {
        let guest = &self.guest;
        guest.lock().requests.as_mut().is_some_and(|requests| requests.peek(&guest.site, is_about_to_sleep))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.guest.left();
        // Whoever waits for messages there is told.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}
