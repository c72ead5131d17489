//! A worker's station in the lobby: where it attends to visitors, and sleeps.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{self, Duration};

use hoistway_blk::Instant;
use hoistway_engine::{Command, Ended, Segments, Started, Station, Wake};
use rustc_hash::FxHashMap;

use super::doors::{Door, Doors};
use super::patience::Patience;
use super::waiting::{Waiting, Watched};
use super::{Ready, SharedVisitor, Stay, Visitor, Watch};

/// What the bell and the station inside are called among what is watched.
const BELL: u64 = u64::MAX - 1;
const INSIDE: u64 = u64::MAX - 2;
/// Loops of a busy worker between two looks at the sockets: a look is a system call.
const LOOPS_BETWEEN_LOOKS: u32 = 4;
/// How long before a moment that it waits for a worker is awake.
const WATCH: Duration = Duration::from_micros(60);

pub struct LobbyStation {
    inside: Box<dyn Station>,
    doors: Doors,
    worker: usize,
    waiting: Arc<dyn Waiting>,
    visitors: FxHashMap<u64, Seated>,
    /// Those of them that can be peeked at.
    peeked: Vec<u64>,
    patience: Patience,
    /// When visitors want to be attended to.
    due: BTreeSet<(Instant, u64)>,
    events: Vec<(u64, Ready)>,
    /// Memory that is used again.
    seats: Vec<u64>,
    /// Rounds of attending so far.
    rounds: u64,
    loops: u32,
    /// Whether something has ended inside since it was asked.
    has_rung_inside: bool,
}

struct Seated {
    visitor: SharedVisitor,
    until: Instant,
    can_be_peeked_at: bool,
    /// The round in which it was attended to last.
    round: u64,
}

impl LobbyStation {
    pub fn new(
        mut inside: Box<dyn Station>,
        doors: Doors,
        worker: usize,
        waiting: Arc<dyn Waiting>,
        looks_on: Duration,
    ) -> io::Result<Self> {
        let bell = &doors.0[worker].bell;
        waiting.add(bell.descriptor.as_fd(), BELL, Watched::UntilTaken)?;
        inside.wake_instead(Arc::clone(bell) as Arc<dyn Wake>);
        if let Some(descriptor) = inside.descriptor()? {
            // Told at each ring, so that nobody has to quieten it.
            waiting.add(descriptor, INSIDE, Watched::EachTime)?;
        }
        Ok(LobbyStation {
            inside,
            doors,
            worker,
            waiting,
            visitors: FxHashMap::default(),
            peeked: Vec::new(),
            patience: Patience::new(looks_on),
            due: BTreeSet::new(),
            events: Vec::new(),
            seats: Vec::new(),
            rounds: 0,
            loops: 0,
            has_rung_inside: false,
        })
    }

    fn door(&self) -> &Door {
        &self.doors.0[self.worker]
    }

    /// Takes what has happened at sockets, and sleeps for it if need be.
    fn look(&mut self, most: Option<Duration>) {
        let LobbyStation { waiting, events, doors, worker, has_rung_inside, .. } = self;
        let before = events.len();
        waiting.look(most, events);
        // What is left are visitors.
        let mut at = before;
        while let Some(&(name, _)) = events.get(at) {
            match name {
                BELL => doors.0[*worker].bell.quieten(),
                INSIDE => *has_rung_inside = true,
                _ => {
                    at += 1;
                    continue;
                }
            }
            events.remove(at);
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
        self.rounds += 1;
        if self.door().has_news.load(Relaxed) {
            self.take_news(now);
        }
        let mut events = std::mem::take(&mut self.events);
        for (number, ready) in events.drain(..) {
            self.attend_one(now, number, ready);
        }
        self.events = events;
        // Each once: one that wants to be attended to at once again has others to wait for.
        let mut due = std::mem::take(&mut self.seats);
        due.extend(self.due.iter().take_while(|&&(until, _)| until <= now).map(|&(_, number)| number));
        for number in due.drain(..) {
            self.attend_one(now, number, Ready::default());
        }
        self.seats = due;
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
        // Each once, however often: who is called again each time, and by others as well, would be called more and more often.
        called.sort_unstable();
        called.dedup();
        for number in called {
            self.attend_one(now, number, Ready::default());
        }
    }

    fn seat(&mut self, number: u64, visitor: SharedVisitor) {
        if self.waiting.add(lock(&visitor).descriptor(), number, Watched::Socket).is_err() {
            // Out of memory or of watches: there is no serving it.
            self.door().visitors.fetch_sub(1, Relaxed);
            return;
        }
        let can_be_peeked_at = lock(&visitor).can_be_peeked_at();
        if can_be_peeked_at {
            self.peeked.push(number);
        }
        lock(&visitor).seated(Watch { waiting: Arc::clone(&self.waiting), number });
        self.visitors.insert(number, Seated { visitor, until: Instant::NEVER, can_be_peeked_at, round: 0 });
    }

    fn attend_one(&mut self, now: Instant, number: u64, ready: Ready) {
        let Some(seated) = self.visitors.get_mut(&number) else { return };
        // Many bells of its own may have rung: whichever did, it looks at all that it shares.
        if seated.can_be_peeked_at && seated.round == self.rounds {
            return;
        }
        seated.round = self.rounds;
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
            // Only now: one visitor who has himself called again and again would keep the others from being seen.
            self.loops = 0;
        }
        self.patience.waited(begin.elapsed());
        self.door().bell.is_up();
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
