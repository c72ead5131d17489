//! State that the processes of a running load share: phases, balances, steady-state checks, and results.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hoistway_blk::ground::{Instant, Nanos};
use hoistway_load::Load;
use hoistway_load::process::{Flows, Phases, RunningProcess, STEADY_SAMPLE, SteadyStates, Step};
use hoistway_measure::ProcessResult;

/// One run of a load, shared by its processes and by callers that observe or cancel it.
pub struct LoadRun {
    processes: Vec<SharedProcessState>,
    state: Mutex<State>,
    /// Notified when processes have started or exited.
    changed: Condvar,
    is_cancelled: AtomicBool,
    ios: AtomicU64,
}

/// The state of one process that is shared without the lock.
struct SharedProcessState {
    start_delay: Nanos,
    ramp: Nanos,
    has_steady_check: bool,
    /// Whether it must stop submitting.
    is_ended: AtomicBool,
    /// I/Os and bytes so far, if it has a steady-state check.
    ios: AtomicU64,
    bytes: AtomicU64,
}

struct State {
    phases: Phases,
    flows: Flows,
    steady: SteadyStates,
    /// When the next sample of a steady-state check is due.
    samples: Vec<(Instant, u32)>,
    /// When each process starts, if known.
    starts: Vec<Option<Instant>>,
    /// Processes that have exited, and when.
    exited: Vec<Option<(RunningProcess, Instant)>>,
}

impl LoadRun {
    /// A load that has not begun.
    #[must_use]
    pub fn new(load: &Load) -> Self {
        let count = load.processes.len();
        let shared = |process: &hoistway_load::Process| SharedProcessState {
            start_delay: process.schedule.start_delay,
            ramp: process.schedule.ramp,
            has_steady_check: process.steady_state.is_some(),
            is_ended: AtomicBool::new(false),
            ios: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        };
        LoadRun {
            processes: load.processes.iter().map(shared).collect(),
            state: Mutex::new(State {
                phases: Phases::new(&load.processes),
                flows: Flows::new(&load.processes),
                steady: SteadyStates::new(&load.processes),
                samples: Vec::new(),
                starts: vec![None; count],
                exited: (0..count).map(|_| None).collect(),
            }),
            changed: Condvar::new(),
            is_cancelled: AtomicBool::new(false),
            ios: AtomicU64::new(0),
        }
    }

    /// Ends the run early. Its measurements until then are the result.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Relaxed);
    }

    /// Whether the run was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Relaxed)
    }

    /// I/Os completed so far.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.ios.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // --- called by processes ---

    pub(super) fn count_ios(&self, ios: u64) {
        self.ios.fetch_add(ios, Relaxed);
    }

    /// Whether a process must stop submitting.
    pub(super) fn is_ended(&self, number: u32) -> bool {
        self.is_cancelled() || self.processes[number as usize].is_ended.load(Relaxed)
    }

    /// When a process starts, if known.
    pub(super) fn start_of(&self, number: u32) -> Option<Instant> {
        self.lock().starts[number as usize]
    }

    /// The next step of a process in a balance.
    pub(super) fn next_of_dependent(&self, process: &mut RunningProcess, now: Instant) -> Step {
        let mut state = self.lock();
        let step = process.next(now, &mut state.flows);
        // Held processes poll, so releases are ignored.
        while state.flows.pop_released().is_some() {}
        step
    }

    /// A process has had its turn.
    pub(super) fn publish_progress(&self, number: u32, process: &RunningProcess) {
        let shared = &self.processes[number as usize];
        if shared.has_steady_check {
            let (ios, bytes) = process.done();
            shared.ios.store(ios, Relaxed);
            shared.bytes.store(bytes, Relaxed);
        }
    }

    /// A process has exited: some processes end with it, others start.
    pub(super) fn exited(&self, number: u32, process: RunningProcess, now: Instant) {
        self.publish_progress(number, &process);
        let mut state = self.lock();
        state.exited[number as usize] = Some((process, now));
        state.flows.leave(number);
        for other in state.phases.exited(number) {
            self.processes[other as usize].is_ended.store(true, Relaxed);
        }
        self.start_processes(&mut state, now);
        self.changed.notify_all();
    }

    // --- called by the thread that waits for the results ---

    /// Starts the first processes.
    pub(super) fn start(&self, now: Instant) {
        self.start_processes(&mut self.lock(), now);
    }

    fn start_processes(&self, state: &mut State, now: Instant) {
        for number in state.phases.start() {
            let shared = &self.processes[number as usize];
            let start = now + shared.start_delay;
            state.starts[number as usize] = Some(start);
            if let Some((watched, at)) = state.steady.begin(number, start + shared.ramp) {
                state.samples.push((at, watched));
            }
        }
    }

    /// Waits until all processes have exited, takes steady-state samples meanwhile, and returns the results.
    pub(super) fn wait(&self, clock: impl Fn() -> Instant) -> Vec<ProcessResult> {
        let mut state = self.lock();
        while state.phases.is_running() {
            let now = clock();
            self.take_samples(&mut state, now);
            state = match state.samples.iter().map(|&(at, _)| at).min() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let time = Duration::from_nanos(at.since(now).0);
                    self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        let State { exited, steady, .. } = &mut *state;
        let result = |(number, (process, end)): (u32, (RunningProcess, Instant))| {
            process.into_result(end, steady.document(number))
        };
        (0..).zip(exited.drain(..).flatten()).map(result).collect()
    }

    fn take_samples(&self, state: &mut State, now: Instant) {
        let due: Vec<(Instant, u32)> = state.samples.extract_if(.., |&mut (at, _)| at <= now).collect();
        for (at, watched) in due {
            let members = state.steady.members(watched);
            if members.iter().all(|&member| state.exited[member as usize].is_some()) {
                continue;
            }
            let done = members.iter().map(|&member| &self.processes[member as usize]);
            let done = done.fold((0, 0), |(ios, bytes), process| {
                (ios + process.ios.load(Relaxed), bytes + process.bytes.load(Relaxed))
            });
            if !state.steady.sample(watched, done) {
                state.samples.push((at + STEADY_SAMPLE, watched));
                continue;
            }
            for &member in state.steady.members(watched) {
                self.processes[member as usize].is_ended.store(true, Relaxed);
            }
        }
    }
}

impl std::fmt::Debug for LoadRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadRun")
            .field("processes", &self.processes.len())
            .field("ios", &self.ios())
            .finish_non_exhaustive()
    }
}
