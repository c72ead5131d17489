//! A worker's station in the lobby: where it attends to visitors, and sleeps.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{self, Duration};

use hoistway_blk::Instant;
use hoistway_engine::{Command, Ended, Segments, Started, Station, Wake};
use rustc_hash::FxHashMap;
use rustix::event::{Timespec, epoll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use super::doors::{Door, Doors};
use super::patience::Patience;
use super::{Ready, SharedVisitor, Stay, Visitor, Watch};

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

pub struct LobbyStation {
    inside: Box<dyn Station>,
    doors: Doors,
    worker: usize,
    epoll: Arc<OwnedFd>,
    /// Rings in the set: epoll's own timeouts are whole ms.
    alarm: OwnedFd,
    visitors: FxHashMap<u64, Seated>,
    /// Those of them that can be peeked at.
    peeked: Vec<u64>,
    patience: Patience,
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
    pub fn new(mut inside: Box<dyn Station>, doors: Doors, worker: usize, looks_on: Duration) -> io::Result<Self> {
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
            peeked: Vec::new(),
            patience: Patience::new(looks_on),
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

    /// Looks whether something has come that nobody tells of. Answers whether it has.
    fn peek(&mut self, is_about_to_sleep: bool) -> bool {
        let mut any = false;
        for &number in &self.peeked {
            let Some(seated) = self.visitors.get(&number) else { continue };
            let mut visitor = lock(&seated.visitor);
            let has_some = catch_unwind(AssertUnwindSafe(|| visitor.peek(is_about_to_sleep))).unwrap_or_else(|_| {
                visitor.panicked();
                true
            });
            if has_some {
                any = true;
                self.events.push((number, Ready::default()));
            }
        }
        any
    }

    /// Looks on for as long as that has paid lately. Answers whether something came.
    fn look_on(&mut self, begin: time::Instant, most: Option<Duration>) -> bool {
        let most = most.map_or(self.patience.now(), |most| most.min(self.patience.now()));
        // Who shares memory only is seen there; anybody else, and the end of a command, by a system call.
        let must_ask = self.peeked.len() < self.visitors.len() || self.door().at_target.load(Relaxed) > 0;
        while begin.elapsed() < most {
            if self.door().bell.is_rung() || self.peek(false) {
                return true;
            }
            if must_ask {
                self.look(Some(Duration::ZERO));
                if !self.events.is_empty() || self.has_rung_inside {
                    return true;
                }
            }
            std::hint::spin_loop();
        }
        false
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
        if lock(&visitor).can_be_peeked_at() {
            self.peeked.push(number);
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
            self.peeked.retain(|&other| other != number);
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
            self.peek(false);
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
        let begin = time::Instant::now();
        if !self.has_rung_inside && !self.look_on(begin, most) && self.door().bell.may_sleep() && !self.peek(true) {
            self.look(most);
        }
        self.patience.waited(begin.elapsed());
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
