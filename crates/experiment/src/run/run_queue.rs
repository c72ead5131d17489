//! The queue of runs that have not begun, and the order in which they begin.

use crate::comparison::observer::RunObserver;
use crate::run::runner::{RunEnd, RunOrder, Runner};

/// The runs that have not begun. Repeats begin in order, so every scheduler has its first run before any has its second. With parallel
/// runs, the longest of a repeat begin first, so no core is idle for long at the end of a round.
pub(crate) struct RunQueue<'a, R> {
    runner: &'a R,
    observer: &'a dyn RunObserver,
    is_parallel: bool,
    repeats: &'a [u32],
    /// Runs per repeat.
    runs_per_repeat: usize,
    /// Runs of the current repeat that have not begun.
    waiting: Vec<usize>,
    /// The first run of the next repeat.
    next: usize,
    /// End of the round: the number after its last run.
    pub(crate) end: usize,
    /// Duration of the most recent run of each row, s.
    seconds: Vec<Option<f64>>,
    /// Whether no more runs may begin.
    is_over: bool,
}

impl<'a, R: Runner> RunQueue<'a, R> {
    /// A queue of all runs of the order; none begins before [`extend`](Self::extend).
    pub(crate) fn new(runner: &'a R, order: &RunOrder<'a>, observer: &'a dyn RunObserver) -> Self {
        let RunOrder { repeats, is_parallel } = *order;
        let runs_per_repeat = repeats.iter().take_while(|repeat| **repeat == 0).count().max(1);
        let seconds = vec![None; runs_per_repeat];
        let waiting = Vec::with_capacity(runs_per_repeat);
        Self {
            runner,
            observer,
            is_parallel,
            repeats,
            runs_per_repeat,
            waiting,
            next: 0,
            end: 0,
            seconds,
            is_over: false,
        }
    }

    /// Number of runs in the repeats that have begun.
    pub(crate) fn begun(&self) -> usize {
        self.next
    }

    /// Whether no more runs may begin, even after [`extend`](Self::extend).
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Sets the total number of runs.
    pub(crate) fn extend(&mut self, runs: usize) {
        self.end = self.repeats.len().min(runs);
    }

    /// The next run to begin.
    pub(crate) fn next(&mut self) -> Option<usize> {
        if self.waiting.is_empty() && self.next < self.end && !self.is_over {
            let repeat = self.repeats[self.next];
            self.is_over = repeat > 0 && !self.observer.goes_on(repeat);
            if !self.is_over {
                let end = self.end.min(self.next + self.runs_per_repeat);
                // Runs are taken from the end.
                self.waiting.extend((self.next..end).rev());
                self.next = end;
            }
        }
        if self.is_parallel {
            let length = |number: &usize| match self.seconds[number % self.runs_per_repeat] {
                Some(seconds) => (seconds, 0),
                // A row whose earlier run has not ended yet takes longer than the others.
                None => (f64::INFINITY, self.runner.expected_length(*number)),
            };
            let by_length = |a: &usize, b: &usize| {
                let (a, b) = (length(a), length(b));
                a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
            };
            // max_by returns the last of equal runs, which has the lowest number.
            let longest = (0..self.waiting.len()).max_by(|a, b| by_length(&self.waiting[*a], &self.waiting[*b]))?;
            return Some(self.waiting.remove(longest));
        }
        self.waiting.pop()
    }

    /// Records the outcome of a run.
    pub(crate) fn ended(&mut self, number: usize, outcome: &RunEnd<R::Error>) {
        match outcome {
            Ok(Some(outcome)) => self.seconds[number % self.runs_per_repeat] = Some(outcome.run.wall_seconds),
            Ok(None) => {}
            Err(_) => {
                self.is_over = true;
                self.waiting.clear();
            }
        }
    }
}
