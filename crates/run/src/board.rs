//! Who runs when: phases, who waits for whom, who ends whom; and what has come out so far.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use hoistway_blk::Instant;
use hoistway_load::{Ends, Load, Schedule};
use hoistway_measure::ProcessResult;

/// What the processes of a run share, and whoever watches it.
#[derive(Debug)]
pub struct Board {
    schedules: Vec<Schedule>,
    state: Mutex<State>,
    all_have_ended: Condvar,
    /// Of each process, whether it is to submit nothing any more.
    is_ended: Vec<AtomicBool>,
    is_cancelled: AtomicBool,
    ios: AtomicU64,
}

#[derive(Debug)]
struct State {
    results: Vec<Option<ProcessResult>>,
    /// When each phase began, as far as they have.
    phases: Vec<Instant>,
}

impl Board {
    /// Of a load that has not begun.
    #[must_use]
    pub fn new(load: &Load) -> Self {
        let count = load.processes.len();
        Board {
            schedules: load.processes.iter().map(|process| process.schedule.clone()).collect(),
            state: Mutex::new(State { results: vec![None; count], phases: Vec::new() }),
            all_have_ended: Condvar::new(),
            is_ended: (0..count).map(|_| AtomicBool::new(false)).collect(),
            is_cancelled: AtomicBool::new(false),
            ios: AtomicU64::new(0),
        }
    }

    /// Ends the run early. What was measured until then counts.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Relaxed);
    }

    /// Whether somebody has.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Relaxed)
    }

    /// I/Os that have ended so far.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.ios.load(Relaxed)
    }

    pub(crate) fn count_ios(&self, ios: u64) {
        self.ios.fetch_add(ios, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a process is to submit nothing any more.
    pub(crate) fn is_over(&self, number: usize) -> bool {
        self.is_cancelled() || self.is_ended[number].load(Relaxed)
    }

    /// When a process begins, if that is known.
    pub(crate) fn start_of(&self, number: usize, now: Instant) -> Option<Instant> {
        let own = &self.schedules[number];
        let mut state = self.lock();
        let goes_on = |is_meant: &dyn Fn(&Schedule) -> bool| {
            self.schedules.iter().zip(&state.results).any(|(other, result)| result.is_none() && is_meant(other))
        };
        if goes_on(&|other| other.phase < own.phase)
            || own.wait_for.is_some_and(|job| goes_on(&|other| other.job == job))
        {
            return None;
        }
        let phase = own.phase as usize;
        if state.phases.len() <= phase {
            state.phases.resize(phase + 1, Instant::NEVER);
        }
        // All of a phase begin at once, whoever looks first; but one that waited for others begins now.
        let begin = state.phases[phase].min(now);
        state.phases[phase] = begin;
        Some(if own.wait_for.is_some() { now } else { begin } + own.start_delay)
    }

    /// A process has ended.
    pub(crate) fn ended(&self, number: usize, result: ProcessResult) {
        let own = &self.schedules[number];
        for (other, is_ended) in self.schedules.iter().zip(&self.is_ended) {
            let is_meant = match own.ends {
                None => false,
                Some(Ends::Group) => other.group == own.group,
                Some(Ends::Phase) => other.phase == own.phase,
                Some(Ends::All) => true,
            };
            if is_meant {
                is_ended.store(true, Relaxed);
            }
        }
        let mut state = self.lock();
        state.results[number] = Some(result);
        if state.results.iter().all(Option::is_some) {
            self.all_have_ended.notify_all();
        }
    }

    /// Waits until all processes have ended, and answers what they measured.
    pub(crate) fn wait(&self) -> Vec<ProcessResult> {
        let state = self.lock();
        let are_missing = |state: &mut State| state.results.iter().any(Option::is_none);
        let wait = self.all_have_ended.wait_while(state, are_missing);
        wait.unwrap_or_else(PoisonError::into_inner).results.drain(..).flatten().collect()
    }
}
