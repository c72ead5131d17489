//! The channel of a worker: it runs connections, and sleeps until one of them or the target needs it.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{self, Duration};

use hoistway_blk::ground::Instant;
use hoistway_engine::{Command, Ended, IoChannel, Segments, Started, Wake};
use rustc_hash::FxHashMap;

use super::busy_poll::BusyPoll;
use super::inbox::{Inbox, Inboxes};
use super::poller::{Poller, Watched};
use super::{Next, Ready, SharedConnection, Watch, lock};

/// How the poller reports the eventfd and the wrapped channel.
const EVENT_FD: u64 = u64::MAX - 1;
const EVENT_LOOP_TOKEN: u64 = u64::MAX - 2;
/// Loops of a busy worker between two polls of the sockets, each of which is a system call, unless their connections cost more than a round
/// before.
const LOOPS_BETWEEN_POLLS: u32 = 4;
/// The cost of connections that run in a round, of which there is at least one. Then the target has its turn, and the sockets are polled.
const ROUND_COST_MAX: u32 = 64;
/// How far the cost of a connection that has been idle may be below that of the last one that ran: it goes first for that much.
const IDLE_CREDIT: u64 = 64;
/// A worker wakes up this long before a timeout, because wake-ups are late.
const WAKE_MARGIN: Duration = Duration::from_micros(60);

pub struct EventLoopChannel {
    target_channel: Box<dyn IoChannel>,
    inboxes: Inboxes,
    worker: usize,
    poller: Arc<dyn Poller>,
    connections: FxHashMap<u64, Registration>,
    /// Connections that share memory with their client.
    polled: Vec<u64>,
    busy_poll: BusyPoll,
    /// When connections are due to run.
    due: BTreeSet<(Instant, u64)>,
    events: Vec<(u64, Ready)>,
    /// Connections that wait for their turn, by the cost of what has been done for each.
    ready: BTreeSet<(u64, u64)>,
    /// The cost of the last connection that ran, which only grows: others are not far below it.
    cost_floor: u64,
    /// Reused allocation.
    due_numbers: Vec<u64>,
    loops: u32,
    /// The cost of what ran since the sockets were polled.
    cost_since_poll: u32,
    /// Whether the wrapped channel has signaled a completion since it was last reaped.
    has_completions: bool,
    /// Whether the worker sleeps in the wrapped channel, which watches the poller, while commands are there. Otherwise it sleeps in
    /// the poller, which takes a system call less.
    sleeps_in_target: bool,
}

struct Registration {
    connection: SharedConnection,
    run_at: Instant,
    /// Its readiness so far, if it waits for its turn.
    waiting: Option<Ready>,
    /// The cost of what has been done for it, beside that of others.
    cost: u64,
}

impl EventLoopChannel {
    pub fn new(
        mut target_channel: Box<dyn IoChannel>,
        inboxes: Inboxes,
        worker: usize,
        poller: Arc<dyn Poller>,
        busy_poll_max: Duration,
    ) -> io::Result<Self> {
        let event_fd = &inboxes.of(worker).event_fd;
        poller.add(event_fd.descriptor.as_fd(), EVENT_FD, Watched::UntilTaken)?;
        target_channel.wake_instead(Arc::clone(event_fd) as Arc<dyn Wake>);
        // A worker that polls busily does not sleep soon after commands have been started.
        let poller_descriptor = poller.descriptor().filter(|_| busy_poll_max.is_zero());
        let sleeps_in_target = poller_descriptor.map_or(Ok(false), |descriptor| target_channel.watch(descriptor))?;
        if !sleeps_in_target && let Some(descriptor) = target_channel.descriptor()? {
            // Edge-triggered, so that it need not be drained.
            poller.add(descriptor, EVENT_LOOP_TOKEN, Watched::EachTime)?;
        }
        Ok(EventLoopChannel {
            target_channel,
            inboxes,
            worker,
            poller,
            connections: FxHashMap::default(),
            polled: Vec::new(),
            busy_poll: BusyPoll::new(busy_poll_max),
            due: BTreeSet::new(),
            ready: BTreeSet::new(),
            cost_floor: 0,
            events: Vec::new(),
            due_numbers: Vec::new(),
            loops: 0,
            cost_since_poll: 0,
            has_completions: false,
            sleeps_in_target,
        })
    }

    fn inbox(&self) -> &Inbox {
        self.inboxes.of(self.worker)
    }

    /// Polls the sockets, and sleeps until one is ready if `timeout` allows.
    fn poll_sockets(&mut self, timeout: Option<Duration>) {
        let EventLoopChannel { poller, events, inboxes, worker, has_completions, .. } = self;
        let before = events.len();
        poller.wait(timeout, events);
        (self.loops, self.cost_since_poll) = (0, 0);
        // All other events belong to connections.
        let mut index = before;
        while let Some(&(key, _)) = events.get(index) {
            match key {
                EVENT_FD => inboxes.of(*worker).event_fd.drain(),
                EVENT_LOOP_TOKEN => *has_completions = true,
                _ => {
                    index += 1;
                    continue;
                }
            }
            events.remove(index);
        }
    }

    /// Polls shared memory. Returns whether a client has written something.
    fn poll_memory(&mut self, is_about_to_sleep: bool) -> bool {
        let mut has_events = false;
        for &number in &self.polled {
            let Some(registration) = self.connections.get(&number) else { continue };
            let mut connection = lock(&registration.connection);
            let has_some = catch_unwind(AssertUnwindSafe(|| connection.poll(is_about_to_sleep))).unwrap_or_else(|_| {
                connection.panicked();
                true
            });
            if has_some {
                has_events = true;
                self.events.push((number, Ready::default()));
            }
        }
        has_events
    }

    /// Busy-polls for as long as that has recently paid off. Returns whether there was an event.
    fn poll_busily(&mut self, begin: time::Instant, timeout: Option<Duration>) -> bool {
        let timeout = timeout.map_or(self.busy_poll.current(), |timeout| timeout.min(self.busy_poll.current()));
        // Clients without shared memory, and completions, need a system call.
        let needs_system_call = self.polled.len() < self.connections.len() || self.inbox().at_target.load(Relaxed) > 0;
        while begin.elapsed() < timeout {
            if self.inbox().event_fd.is_signaled() || self.poll_memory(false) {
                return true;
            }
            if needs_system_call {
                self.poll_sockets(Some(Duration::ZERO));
                if !self.events.is_empty() || self.has_completions {
                    return true;
                }
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Runs connections that are ready, notified or due: first those for which least has been done, until the round is over.
    fn run_ready(&mut self, now: Instant) {
        if self.inbox().has_messages.load(Relaxed) {
            self.take_messages();
        }
        let mut events = std::mem::take(&mut self.events);
        for (number, ready) in events.drain(..) {
            self.wait_for_turn(number, ready);
        }
        self.events = events;
        let mut due = std::mem::take(&mut self.due_numbers);
        due.extend(self.due.iter().take_while(|&&(run_at, _)| run_at <= now).map(|&(_, number)| number));
        for number in due.drain(..) {
            self.wait_for_turn(number, Ready::default());
        }
        self.due_numbers = due;
        let mut cost = 0;
        while cost < ROUND_COST_MAX
            && let Some((_, number)) = self.ready.pop_first()
        {
            cost += self.run_connection(now, number);
        }
        self.cost_since_poll += cost;
    }

    /// A connection waits for its turn.
    fn wait_for_turn(&mut self, number: u64, ready: Ready) {
        let Some(registration) = self.connections.get_mut(&number) else { return };
        let waiting = registration.waiting.get_or_insert_with(|| {
            registration.cost = registration.cost.max(self.cost_floor.saturating_sub(IDLE_CREDIT));
            self.ready.insert((registration.cost, number));
            Ready::default()
        });
        waiting.to_receive |= ready.to_receive;
        waiting.to_send |= ready.to_send;
        waiting.has_hung_up |= ready.has_hung_up;
        waiting.has_left |= ready.has_left;
    }

    #[cold]
    fn take_messages(&mut self) {
        let (added, mut notified, all_notified) = {
            let mut inbox_state = self.inbox().lock();
            self.inbox().has_messages.store(false, Relaxed);
            let all_notified = std::mem::take(&mut inbox_state.all_notified);
            (std::mem::take(&mut inbox_state.added), std::mem::take(&mut inbox_state.notified), all_notified)
        };
        for (number, connection) in added {
            self.register(number, connection);
            notified.push(number);
        }
        if all_notified {
            notified.extend(self.connections.keys());
        }
        for number in notified {
            self.wait_for_turn(number, Ready::default());
        }
    }

    fn register(&mut self, number: u64, connection: SharedConnection) {
        if self.poller.add(lock(&connection).descriptor(), number, Watched::Socket).is_err() {
            // The system is out of memory or of epoll watches: the connection is closed.
            self.inboxes.dropped(self.worker, 1);
            return;
        }
        if lock(&connection).is_polled() {
            self.polled.push(number);
        }
        lock(&connection).registered(Watch { poller: Arc::clone(&self.poller), number });
        let registration = Registration { connection, run_at: Instant::NEVER, waiting: None, cost: 0 };
        self.connections.insert(number, registration);
    }

    /// Runs a connection. Returns what it has cost.
    fn run_connection(&mut self, now: Instant, number: u64) -> u32 {
        let Some(registration) = self.connections.get_mut(&number) else { return 0 };
        let ready = registration.waiting.take().unwrap_or_default();
        let mut connection = lock(&registration.connection);
        // A panic ends this connection only: state that it shares with others is behind locks, which are released, and the
        // queue is not touched here.
        let next = catch_unwind(AssertUnwindSafe(|| connection.run(now, ready))).unwrap_or_else(|_| {
            connection.panicked();
            Next::Close
        });
        let cost = connection.take_cost().max(1);
        drop(connection);
        self.cost_floor = self.cost_floor.max(registration.cost);
        registration.cost += u64::from(cost);
        let run_at = if let Next::Wait(run_at) = next { run_at } else { Instant::NEVER };
        if registration.run_at != run_at {
            self.due.remove(&(registration.run_at, number));
            registration.run_at = run_at;
            if run_at != Instant::NEVER {
                self.due.insert((run_at, number));
            }
        }
        if matches!(next, Next::Wait(_)) {
            return cost;
        }
        self.polled.retain(|&other| other != number);
        let Some(Registration { connection, .. }) = self.connections.remove(&number) else { return cost };
        if let Next::Move(worker) = next {
            self.poller.remove(lock(&connection).descriptor());
            self.inboxes.hand_over(self.worker, worker, connection);
        } else {
            // Dropping it closes its socket, which removes it from the poller.
            drop(connection);
            self.inboxes.dropped(self.worker, 1);
        }
        cost
    }
}

impl IoChannel for EventLoopChannel {
    #[inline]
    fn start(&mut self, now: Instant, command: &Command, data: Segments<'_>) -> Started {
        let started = self.target_channel.start(now, command, data);
        if started == Started::Queued {
            let at_target = &self.inbox().at_target;
            at_target.store(at_target.load(Relaxed) + 1, Relaxed);
        }
        started
    }

    fn reap(&mut self, now: Instant, ended: &mut Vec<Ended>) {
        self.has_completions = false;
        let before = ended.len();
        self.target_channel.reap(now, ended);
        if ended.len() > before {
            let at_target = &self.inbox().at_target;
            at_target.store(at_target.load(Relaxed).saturating_sub(ended.len() - before), Relaxed);
        }
        self.loops += 1;
        let is_time = self.loops >= LOOPS_BETWEEN_POLLS || self.cost_since_poll >= ROUND_COST_MAX;
        if is_time && self.events.is_empty() {
            self.poll_sockets(Some(Duration::ZERO));
            self.poll_memory(false);
        }
        self.run_ready(now);
    }

    fn next_at(&self) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(Instant::ZERO);
        }
        let due = self.due.first().map(|&(run_at, _)| run_at);
        [due, self.target_channel.next_at()].into_iter().flatten().min()
    }

    fn sleep(&mut self, timeout: Option<Duration>) {
        // The last part of the wait is polled: a wake-up would come late.
        let timeout = timeout.map(|timeout| timeout.saturating_sub(WAKE_MARGIN));
        let begin = time::Instant::now();
        if !self.has_completions
            && !self.poll_busily(begin, timeout)
            && self.inbox().event_fd.may_sleep()
            && !self.poll_memory(true)
        {
            // Only here: a connection that notifies itself again and again must not keep the others from being polled.
            self.loops = 0;
            if self.sleeps_in_target && self.inbox().at_target.load(Relaxed) > 0 {
                self.target_channel.sleep(timeout);
                if self.target_channel.take_readiness() {
                    self.poll_sockets(Some(Duration::ZERO));
                }
            } else {
                self.poll_sockets(timeout);
            }
        }
        self.busy_poll.waited(begin.elapsed());
        self.inbox().event_fd.clear_wakeup();
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.inbox().event_fd) as Arc<dyn Wake>
    }
}

impl Drop for EventLoopChannel {
    fn drop(&mut self) {
        self.inboxes.dropped(self.worker, self.connections.len());
    }
}
