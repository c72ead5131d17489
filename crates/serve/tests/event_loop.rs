//! Connections on a worker's thread do not affect each other.

use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hoistway_blk::ground::{Instant, Nanos};
use hoistway_engine::{Config, Engine, Memory};
use hoistway_serve::{Connection, ConnectionId, EventLoop, Inboxes, Next, Ready, Watch};

/// Sends back what it receives; a `!` makes it panic, and a `?` leave.
struct Echo {
    stream: UnixStream,
    /// Says something of its own accord at this moment.
    until: Instant,
}

impl Connection for Echo {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn run(&mut self, now: Instant, _: Ready) -> Next {
        let mut bytes = [0; 64];
        while let Ok(count) = self.stream.read(&mut bytes) {
            assert!(!bytes[..count].contains(&b'!'), "as it was asked to");
            if count == 0 || bytes[..count].contains(&b'?') {
                return Next::Close;
            }
            self.stream.write_all(&bytes[..count]).unwrap();
        }
        if self.until <= now {
            self.until = Instant::NEVER;
            self.stream.write_all(b"now").unwrap();
        }
        Next::Wait(self.until)
    }

    fn panicked(&mut self) {}
}

fn enter(inboxes: &Inboxes, until: Instant) -> UnixStream {
    enter_one_of(inboxes, 1, until)
}

/// The same for the least loaded of these workers.
fn enter_one_of(inboxes: &Inboxes, workers: usize, until: Instant) -> UnixStream {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    inboxes.add(inboxes.least_loaded(0..workers), |_| Arc::new(Mutex::new(Echo { stream: near, until })));
    far
}

fn engine(workers: usize) -> (Engine, Inboxes) {
    engine_busy_polling(workers, Duration::ZERO)
}

fn engine_busy_polling(workers: usize, most: Duration) -> (Engine, Inboxes) {
    let inboxes = Inboxes::new(workers).unwrap();
    let config = Config { workers, busy_poll_time: Nanos::ZERO, ..Config::default() };
    let event_loop = EventLoop::around(Box::new(Memory::new(1 << 20)), inboxes.clone()).busy_polling(most);
    (Engine::start(&config, event_loop).unwrap(), inboxes)
}

fn echoes(far: &mut UnixStream) -> bool {
    let mut answer = [0; 5];
    far.write_all(b"hello").is_ok() && far.read_exact(&mut answer).is_ok() && answer == *b"hello"
}

#[test]
fn a_panic_ends_one_connection_only() {
    let (_engine, inboxes) = engine(1);
    let (mut calm, mut wild) = (enter(&inboxes, Instant::NEVER), enter(&inboxes, Instant::NEVER));
    assert!(echoes(&mut calm) && echoes(&mut wild));
    wild.write_all(b"!").unwrap();
    assert_eq!(wild.read(&mut [0; 8]).unwrap(), 0, "its socket is closed");
    assert!(echoes(&mut calm) && echoes(&mut enter(&inboxes, Instant::NEVER)));
}

#[test]
fn closed_connections_are_not_counted_and_workers_stay_balanced() {
    let (_engine, inboxes) = engine(2);
    let mut connections: Vec<_> = (0..10).map(|_| enter_one_of(&inboxes, 2, Instant::NEVER)).collect();
    assert!(connections.iter_mut().all(echoes));
    assert_eq!(inboxes.connections(), 10);
    for far in &mut connections[..4] {
        far.write_all(b"?").unwrap();
        assert_eq!(far.read(&mut [0; 8]).unwrap(), 0);
    }
    while inboxes.connections() != 6 {
        std::thread::yield_now();
    }
    assert!(connections[4..].iter_mut().all(echoes));
}

#[test]
fn a_connection_runs_when_its_time_has_come_though_nothing_happens() {
    let (engine, inboxes) = engine(1);
    let moment = engine.now() + Nanos::from_millis(30);
    let mut far = enter(&inboxes, moment);
    let mut said = [0; 3];
    far.read_exact(&mut said).unwrap();
    assert_eq!(said, *b"now");
    assert!(engine.now() >= moment);
}

/// Has itself called whenever it is attended to, as one that has more to do than one turn allows, this many times each
/// time.
struct Called {
    stream: UnixStream,
    inboxes: Inboxes,
    id: ConnectionId,
    times: u32,
    attended: Arc<AtomicU32>,
}

impl Called {
    /// Returns how often it has been attended to.
    fn enter(inboxes: &Inboxes, times: u32) -> Arc<AtomicU32> {
        let (stream, _) = UnixStream::pair().unwrap();
        let attended = Arc::<AtomicU32>::default();
        let (counted, inbox) = (Arc::clone(&attended), inboxes.clone());
        inboxes.add(0, |id| Arc::new(Mutex::new(Called { stream, inboxes: inbox, id, times, attended: counted })));
        attended
    }
}

impl Connection for Called {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn run(&mut self, _: Instant, _: Ready) -> Next {
        // Several times not for ever, should that come to be more and more often.
        if self.attended.fetch_add(1, SeqCst) < 1 << 20 || self.times == 1 {
            (0..self.times).for_each(|_| self.inboxes.notify(self.id));
        }
        Next::Wait(Instant::NEVER)
    }

    fn panicked(&mut self) {}
}

#[test]
fn a_connection_that_keeps_notifying_itself_does_not_starve_others() {
    let (_engine, inboxes) = engine(1);
    let mut calm = enter(&inboxes, Instant::NEVER);
    assert!(echoes(&mut calm));
    Called::enter(&inboxes, 1);
    calm.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert!((0..20).all(|_| echoes(&mut calm)));
}

#[test]
fn repeated_notifications_of_a_connection_are_handled_once() {
    let (_engine, inboxes) = engine(1);
    let [once, twice] = [1, 2].map(|times| Called::enter(&inboxes, times));
    while once.load(SeqCst) < 1000 {
        std::thread::yield_now();
    }
    // It came later, and what has happened since is not counted in the same moment.
    let twice = twice.load(SeqCst);
    assert!(twice < 100_000, "{twice}");
}

/// Wants to be attended to at once, always.
struct Restless(UnixStream);

impl Connection for Restless {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn run(&mut self, now: Instant, _: Ready) -> Next {
        Next::Wait(now)
    }

    fn panicked(&mut self) {}
}

#[test]
fn a_connection_that_always_has_work_does_not_starve_others() {
    let (_engine, inboxes) = engine(1);
    let (near, _far) = UnixStream::pair().unwrap();
    inboxes.add(0, |_| Arc::new(Mutex::new(Restless(near))));
    assert!(echoes(&mut enter(&inboxes, Instant::NEVER)));
}

/// Counts how often it is attended to, and has a event_fd watched beside its socket.
struct Listening {
    stream: UnixStream,
    event_fd: Arc<OwnedFd>,
    attended: Arc<AtomicU32>,
    watch: Option<Watch>,
}

impl Connection for Listening {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn registered(&mut self, watch: Watch) {
        watch.add(self.event_fd.as_fd()).unwrap();
        self.watch = Some(watch);
    }

    fn run(&mut self, _: Instant, _: Ready) -> Next {
        self.attended.fetch_add(1, SeqCst);
        Next::Wait(Instant::NEVER)
    }

    fn panicked(&mut self) {}
}

#[test]
fn a_connection_runs_whenever_its_eventfd_is_signaled_though_it_is_not_drained() {
    let (_engine, inboxes) = engine(1);
    let (near, _far) = UnixStream::pair().unwrap();
    let event_fd = Arc::new(rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap());
    let attended = Arc::new(AtomicU32::new(0));
    let connection =
        Listening { stream: near, event_fd: Arc::clone(&event_fd), attended: Arc::clone(&attended), watch: None };
    inboxes.add(0, |_| Arc::new(Mutex::new(connection)));
    for _ in 0..100 {
        let before = attended.load(SeqCst);
        rustix::io::write(&event_fd, &1_u64.to_ne_bytes()).unwrap();
        while attended.load(SeqCst) == before {
            std::thread::yield_now();
        }
    }
}

/// What a connection shares with its client.
#[derive(Default)]
struct Board {
    has_more: AtomicBool,
    wants_to_be_called: AtomicBool,
    attended: AtomicU32,
}

struct Peeked {
    stream: UnixStream,
    board: Arc<Board>,
}

impl Connection for Peeked {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn run(&mut self, _: Instant, _: Ready) -> Next {
        self.board.wants_to_be_called.store(false, SeqCst);
        if self.board.has_more.swap(false, SeqCst) {
            self.board.attended.fetch_add(1, SeqCst);
        }
        Next::Wait(Instant::NEVER)
    }

    fn panicked(&mut self) {}

    fn is_polled(&self) -> bool {
        true
    }

    fn poll(&mut self, is_about_to_sleep: bool) -> bool {
        if is_about_to_sleep {
            self.board.wants_to_be_called.store(true, SeqCst);
        }
        self.board.has_more.load(SeqCst)
    }
}

#[test]
fn a_polled_connection_needs_signals_only_while_its_worker_sleeps_and_nothing_is_missed() {
    for most in [Duration::ZERO, Duration::from_micros(50), Duration::from_millis(5)] {
        let (_engine, inboxes) = engine_busy_polling(1, most);
        let (near, _far) = UnixStream::pair().unwrap();
        let board: Arc<Board> = Arc::default();
        let mut id = None;
        inboxes.add(0, |its| {
            id = Some(its);
            Arc::new(Mutex::new(Peeked { stream: near, board: Arc::clone(&board) }))
        });
        for n in 0..2000 {
            board.has_more.store(true, SeqCst);
            if board.wants_to_be_called.load(SeqCst) {
                inboxes.notify(id.unwrap());
            }
            while board.attended.load(SeqCst) == n {
                std::thread::yield_now();
            }
        }
    }
}

/// Notes that it ran, at a cost; the first one then blocks its worker for a while.
struct Costly {
    stream: UnixStream,
    cost: u32,
    ran: Arc<Mutex<Vec<u32>>>,
    gate: Option<Receiver<()>>,
}

impl Connection for Costly {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn run(&mut self, _: Instant, _: Ready) -> Next {
        let mut byte = [0];
        if self.stream.read(&mut byte).is_ok_and(|count| count == 1) {
            self.ran.lock().unwrap().push(self.cost);
            self.gate.take().iter().for_each(|gate| gate.recv().unwrap());
        }
        Next::Wait(Instant::NEVER)
    }

    fn panicked(&mut self) {}

    fn take_cost(&mut self) -> u32 {
        self.cost
    }
}

/// The costs of the connections that ran, in order: each of these has something to do `times` times, always, and a cheap one that was idle
/// comes when the worker is in the middle of that.
#[test]
fn a_connection_that_costs_little_runs_next_however_many_wait_that_cost_more() {
    let (_engine, inboxes) = engine(1);
    let ran = Arc::<Mutex<Vec<u32>>>::default();
    let enter_costly = |cost, gate| {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        inboxes.add(0, |_| Arc::new(Mutex::new(Costly { stream: near, cost, ran: Arc::clone(&ran), gate })));
        far
    };
    let wait_for = |count: usize| {
        while ran.lock().unwrap().len() < count {
            std::thread::yield_now();
        }
    };
    let mut costly: Vec<_> = (0..10).map(|_| enter_costly(500, None)).collect();
    let mut cheap = enter_costly(1, None);
    for far in costly.iter_mut().chain([&mut cheap]) {
        far.write_all(b"x").unwrap();
    }
    wait_for(11);
    let (open, gate) = channel();
    let mut blocks = enter_costly(2, Some(gate));
    blocks.write_all(b"x").unwrap();
    wait_for(12);
    // The worker is held up: when it continues, all of these are ready, the cheap one last.
    costly.iter_mut().for_each(|far| far.write_all(b"x").unwrap());
    cheap.write_all(b"x").unwrap();
    open.send(()).unwrap();
    wait_for(23);
    assert_eq!(ran.lock().unwrap()[12], 1, "{ran:?}");
}
