//! Where workers meet clients: a station that waits for sockets, too.
//!
//! A worker sleeps in its [`Station`] and nowhere else. So whoever is to be served on the worker's own thread, without another
//! thread to be woken in between, has to be waited for there: [`Lobby`] wraps a target, and each of its stations watches the
//! sockets of its worker's visitors beside what the station inside has to tell. It knows nothing of what they say.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hoistway_blk::{Instant, Sector};
use hoistway_engine::{Backend, Command, Ended, Extent, Segments, Shape, Started, Station, Wake};
use rustc_hash::FxHashMap;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

/// Events that one look takes.
const EVENTS: usize = 64;
/// What the bell and the station inside are called among the events.
const BELL: u64 = u64::MAX;
const INSIDE: u64 = u64::MAX - 1;
const ALARM: u64 = u64::MAX - 2;
/// Sleeps that last longer are rounded up to whole ms by epoll, and nobody minds.
const EXACT_MAX: Duration = Duration::from_millis(100);
/// Loops of a busy worker between two looks at the sockets: a look is a system call.
const LOOPS_BETWEEN_LOOKS: u32 = 4;
/// How long before a moment that it waits for a worker is awake.
const WATCH: Duration = Duration::from_micros(60);

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
}

/// Has descriptors watched for a visitor.
#[derive(Debug)]
pub struct Watch {
    epoll: Arc<OwnedFd>,
    number: u64,
}

impl Watch {
    /// From now on the visitor is attended to whenever something comes there: told each time, so that nobody has to take it.
    ///
    /// # Errors
    /// If the descriptor is watched already or cannot be, or the system has no room for it.
    pub fn add(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        Ok(epoll::add(&self.epoll, descriptor, epoll::EventData::new_u64(self.number), flags)?)
    }

    /// No longer. A descriptor that others have, too, has to be removed before it is closed.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) {
        // One that is not watched need not be removed.
        let _ = epoll::delete(&self.epoll, descriptor);
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

/// The door of each worker, through which visitors come.
#[derive(Clone)]
pub struct Doors(Arc<[Door]>);

struct Door {
    bell: Arc<Bell>,
    inside: Mutex<Waiting>,
    /// Whether there is anything in `inside`: a hint, the lock decides.
    has_news: AtomicBool,
    /// Visitors that have been let in and not left.
    visitors: AtomicUsize,
    /// Commands at the target that this worker started. Only it writes this.
    at_target: AtomicUsize,
}

#[derive(Default)]
struct Waiting {
    arriving: Vec<(u64, SharedVisitor)>,
    called: Vec<u64>,
    all_called: bool,
    last_number: u64,
}

impl Door {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
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

/// What wakes a worker out of its sleep among sockets.
struct Bell {
    descriptor: OwnedFd,
    /// Whether the worker sleeps, or is about to.
    sleeps: AtomicBool,
    /// Whether somebody rang while it did not.
    rung: AtomicBool,
}

impl Bell {
    fn new() -> io::Result<Bell> {
        let descriptor = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Bell { descriptor, sleeps: AtomicBool::new(false), rung: AtomicBool::new(false) })
    }

    /// The worker is about to sleep. Answers whether it may: nobody has rung since it was last up. `SeqCst`, here and in
    /// [`wake`](Wake::wake): either this sees that it was rung, or the other sees that the worker sleeps.
    fn may_sleep(&self) -> bool {
        self.sleeps.store(true, SeqCst);
        !self.rung.load(SeqCst)
    }

    fn is_up(&self) {
        self.sleeps.store(false, SeqCst);
        self.rung.store(false, SeqCst);
    }

    fn quieten(&self) {
        let mut count = [0; 8];
        // It may have been quiet already.
        let _ = rustix::io::read(&self.descriptor, &mut count);
    }
}

impl Wake for Bell {
    fn wake(&self) {
        self.rung.store(true, SeqCst);
        if self.sleeps.load(SeqCst) {
            // Full means that it rings.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }
}

/// A target in front of which visitors are served.
pub struct Lobby {
    inside: Box<dyn Backend>,
    doors: Doors,
}

impl Lobby {
    /// Around this target, with doors for as many workers as there will be.
    #[must_use]
    pub fn around(inside: Box<dyn Backend>, doors: Doors) -> Lobby {
        Lobby { inside, doors }
    }
}

impl Backend for Lobby {
    fn shape(&self) -> &Shape {
        self.inside.shape()
    }

    fn station(&self, worker: usize) -> io::Result<Box<dyn Station>> {
        LobbyStation::new(self.inside.station(worker)?, self.doors.clone(), worker)
            .map(|station| Box::new(station) as Box<dyn Station>)
    }

    fn extents(&self, range: Range<Sector>) -> io::Result<Vec<Extent>> {
        self.inside.extents(range)
    }
}

struct LobbyStation {
    inside: Box<dyn Station>,
    doors: Doors,
    worker: usize,
    epoll: Arc<OwnedFd>,
    /// Rings in the set: epoll's own timeouts are whole ms.
    alarm: OwnedFd,
    visitors: FxHashMap<u64, Seated>,
    /// When visitors want to be attended to.
    due: BTreeSet<(Instant, u64)>,
    events: Vec<(u64, Ready)>,
    loops: u32,
    /// Whether something has ended inside since it was asked.
    has_rung_inside: bool,
}

struct Seated {
    visitor: SharedVisitor,
    until: Instant,
}

impl LobbyStation {
    fn new(mut inside: Box<dyn Station>, doors: Doors, worker: usize) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let add = |descriptor: BorrowedFd<'_>, name, edge| {
            let flags = epoll::EventFlags::IN | if edge { epoll::EventFlags::ET } else { epoll::EventFlags::empty() };
            epoll::add(&epoll, descriptor, epoll::EventData::new_u64(name), flags)
        };
        let bell = &doors.0[worker].bell;
        add(bell.descriptor.as_fd(), BELL, false)?;
        inside.wake_instead(Arc::clone(bell) as Arc<dyn Wake>);
        if let Some(descriptor) = inside.descriptor()? {
            // Told at each ring, so that nobody has to quieten it.
            add(descriptor, INSIDE, true)?;
        }
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let alarm = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Told at each ring, too. One for a sleep that ended before costs a look later.
        add(alarm.as_fd(), ALARM, true)?;
        Ok(LobbyStation {
            inside,
            doors,
            worker,
            epoll: Arc::new(epoll),
            alarm,
            visitors: FxHashMap::default(),
            due: BTreeSet::new(),
            events: Vec::new(),
            loops: 0,
            has_rung_inside: false,
        })
    }

    fn door(&self) -> &Door {
        &self.doors.0[self.worker]
    }

    /// Takes what has happened at sockets, and sleeps for it if need be.
    fn look(&mut self, most: Option<Duration>) {
        let mut timeout = most.map(timespec);
        if let Some(most) = most.filter(|most| !most.is_zero() && *most < EXACT_MAX) {
            let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(most) };
            if timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once).is_ok() {
                timeout = None;
            }
        }
        let mut events = [const { MaybeUninit::uninit() }; EVENTS];
        // Interrupted is as good as nothing: whoever sleeps looks again.
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, timeout.as_ref()) else { return };
        for event in events {
            // The structure is packed: its fields are copied out.
            let (flags, name) = (event.flags, event.data.u64());
            match name {
                ALARM => {}
                BELL => self.door().bell.quieten(),
                INSIDE => self.has_rung_inside = true,
                number => {
                    use epoll::EventFlags as F;
                    let to_receive = flags.intersects(F::IN | F::RDHUP | F::HUP | F::ERR);
                    let to_send = flags.intersects(F::OUT | F::HUP | F::ERR);
                    let has_hung_up = flags.intersects(F::RDHUP | F::HUP | F::ERR);
                    self.events.push((number, Ready { to_receive, to_send, has_hung_up }));
                }
            }
        }
    }

    /// Attends to whoever needs it.
    fn attend(&mut self, now: Instant) {
        if self.door().has_news.load(Relaxed) {
            self.take_news(now);
        }
        let mut events = std::mem::take(&mut self.events);
        for (number, ready) in events.drain(..) {
            self.attend_one(now, number, ready);
        }
        self.events = events;
        while let Some(&(until, number)) = self.due.first()
            && until <= now
        {
            self.attend_one(now, number, Ready::default());
        }
    }

    #[cold]
    fn take_news(&mut self, now: Instant) {
        let (arriving, mut called, all_called) = {
            let mut inside = self.door().lock();
            self.door().has_news.store(false, Relaxed);
            let all_called = std::mem::take(&mut inside.all_called);
            (std::mem::take(&mut inside.arriving), std::mem::take(&mut inside.called), all_called)
        };
        for (number, visitor) in arriving {
            self.seat(number, visitor);
            called.push(number);
        }
        if all_called {
            called.extend(self.visitors.keys());
        }
        for number in called {
            self.attend_one(now, number, Ready::default());
        }
    }

    fn seat(&mut self, number: u64, visitor: SharedVisitor) {
        use epoll::EventFlags as F;
        // Told once for each change: what a visitor does not care about now costs nothing.
        let flags = F::IN | F::OUT | F::RDHUP | F::ET;
        let data = epoll::EventData::new_u64(number);
        let added = epoll::add(&self.epoll, lock(&visitor).descriptor(), data, flags);
        if added.is_err() {
            // Out of memory or of watches: there is no serving it.
            self.door().visitors.fetch_sub(1, Relaxed);
            return;
        }
        lock(&visitor).seated(Watch { epoll: Arc::clone(&self.epoll), number });
        self.visitors.insert(number, Seated { visitor, until: Instant::NEVER });
    }

    fn attend_one(&mut self, now: Instant, number: u64, ready: Ready) {
        let Some(seated) = self.visitors.get_mut(&number) else { return };
        let mut visitor = lock(&seated.visitor);
        // A panic is the end of this visitor and of nobody else: what it shares with others is behind locks that do not
        // stay locked, and the queue is not touched in here.
        let stay = catch_unwind(AssertUnwindSafe(|| visitor.attend(now, ready))).unwrap_or_else(|_| {
            visitor.panicked();
            Stay::Over
        });
        drop(visitor);
        let until = if let Stay::Until(until) = stay { until } else { Instant::NEVER };
        if seated.until != until {
            self.due.remove(&(seated.until, number));
            seated.until = until;
            if until != Instant::NEVER {
                self.due.insert((until, number));
            }
        }
        if stay == Stay::Over {
            // Closed with it, the socket leaves the set of those that are watched.
            self.visitors.remove(&number);
            self.door().visitors.fetch_sub(1, Relaxed);
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}

fn lock(visitor: &SharedVisitor) -> MutexGuard<'_, dyn Visitor + 'static> {
    visitor.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Station for LobbyStation {
    #[inline]
    fn start(&mut self, now: Instant, command: &Command, data: Segments<'_>) -> Started {
        let started = self.inside.start(now, command, data);
        if started == Started::Queued {
            let at_target = &self.door().at_target;
            at_target.store(at_target.load(Relaxed) + 1, Relaxed);
        }
        started
    }

    fn reap(&mut self, now: Instant, ended: &mut Vec<Ended>) {
        self.has_rung_inside = false;
        let before = ended.len();
        self.inside.reap(now, ended);
        if ended.len() > before {
            let at_target = &self.door().at_target;
            at_target.store(at_target.load(Relaxed).saturating_sub(ended.len() - before), Relaxed);
        }
        self.loops += 1;
        if self.loops >= LOOPS_BETWEEN_LOOKS && self.events.is_empty() {
            self.loops = 0;
            self.look(Some(Duration::ZERO));
        }
        self.attend(now);
    }

    fn next_at(&self) -> Option<Instant> {
        let due = self.due.first().map(|&(until, _)| until);
        [due, self.inside.next_at()].into_iter().flatten().min()
    }

    fn sleep(&mut self, most: Option<Duration>) {
        // The last moments are waited for awake: to be woken takes longer, and comes late.
        let most = most.map(|most| most.saturating_sub(WATCH));
        if self.door().bell.may_sleep() && !self.has_rung_inside {
            self.look(most);
        }
        self.door().bell.is_up();
        self.loops = 0;
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.door().bell) as Arc<dyn Wake>
    }
}

impl Drop for LobbyStation {
    fn drop(&mut self) {
        self.door().visitors.fetch_sub(self.visitors.len(), Relaxed);
    }
}
