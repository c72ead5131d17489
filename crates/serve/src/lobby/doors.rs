//! The doors of the workers: how visitors come in and are called, from any thread.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hoistway_engine::Wake as _;

use super::bell::Bell;
use super::{SharedVisitor, VisitorId};

/// The door of each worker, through which visitors come.
#[derive(Clone)]
pub struct Doors(pub(super) Arc<[Door]>);

pub struct Door {
    pub(super) bell: Arc<Bell>,
    inside: Mutex<Waiting>,
    /// Whether there is anything in `inside`: a hint, the lock decides.
    pub(super) has_news: AtomicBool,
    /// Visitors that have been let in and not left.
    pub(super) visitors: AtomicUsize,
    /// Commands at the target that this worker started. Only it writes this.
    pub(super) at_target: AtomicUsize,
}

#[derive(Default)]
pub struct Waiting {
    pub(super) arriving: Vec<(u64, SharedVisitor)>,
    pub(super) called: Vec<u64>,
    pub(super) all_called: bool,
    last_number: u64,
}

impl Door {
    pub(super) fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.lock());
        self.has_news.store(true, Relaxed);
        self.bell.wake();
    }
}

impl Doors {
    /// For so many workers.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    pub fn new(workers: usize) -> io::Result<Doors> {
        let door = |_| {
            let bell = Arc::new(Bell::new()?);
            Ok(Door {
                bell,
                inside: Mutex::default(),
                has_news: AtomicBool::new(false),
                visitors: AtomicUsize::new(0),
                at_target: AtomicUsize::new(0),
            })
        };
        (0..workers).map(door).collect::<io::Result<Vec<_>>>().map(|doors| Doors(doors.into()))
    }

    /// The worker with the fewest visitors.
    #[must_use]
    pub fn emptiest(&self) -> usize {
        let count = |worker: &usize| self.0[*worker].visitors.load(Relaxed);
        (0..self.0.len()).min_by_key(count).unwrap_or(0)
    }

    /// Visitors of all workers.
    #[must_use]
    pub fn visitors(&self) -> usize {
        self.0.iter().map(|door| door.visitors.load(Acquire)).sum()
    }

    /// Commands that are at the target.
    #[must_use]
    pub fn at_target(&self) -> usize {
        self.0.iter().map(|door| door.at_target.load(Relaxed)).sum()
    }

    /// Lets somebody in, who is made with the name that it has from now on. Its first attendance comes at once.
    pub fn enter(&self, worker: usize, visitor: impl FnOnce(VisitorId) -> SharedVisitor) {
        let door = &self.0[worker];
        let number = {
            let mut inside = door.lock();
            inside.last_number += 1;
            inside.last_number
        };
        let visitor = visitor(VisitorId { worker, number });
        door.visitors.fetch_add(1, Relaxed);
        door.change(|inside| inside.arriving.push((number, visitor)));
    }

    /// Has a visitor attended to soon; one that has left is not missed.
    pub fn call(&self, id: VisitorId) {
        self.0[id.worker].change(|inside| inside.called.push(id.number));
    }

    /// Has all visitors attended to soon.
    pub fn call_all(&self) {
        self.0.iter().for_each(|door| door.change(|inside| inside.all_called = true));
    }
}
