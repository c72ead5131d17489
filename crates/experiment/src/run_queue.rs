//! Which run begins next.

use crate::observer::RunObserver;
use crate::runner::{RunEnd, RunOrder, Runner};

/// The runs that have not begun: repeat by repeat, so that all schedulers have had their first run before any has its second. In parallel,
/// the longest of a repeat begin first, so that no core waits long at the end of a round.
pub(crate) struct RunQueue<'a, R> {
    runner: &'a R,
    observer: &'a dyn RunObserver,
    is_parallel: bool,
    repeats: &'a [u32],
    /// Runs of a repeat.
    of_repeat: usize,
    /// Of the last repeat that has begun, those that have not.
    waiting: Vec<usize>,
    /// The first run of the next repeat.
    next: usize,
    /// Behind the last run of the round.
    pub(crate) end: usize,
    /// What each row took when it ran last, s.
    seconds: Vec<Option<f64>>,
    /// Whether no other run is to begin.
    is_over: bool,
}

impl<'a, R: Runner> RunQueue<'a, R> {
    /// Of all runs of the order; none is to begin before [`extend`](Self::extend).
    pub(crate) fn new(runner: &'a R, order: &RunOrder<'a>, observer: &'a dyn RunObserver) -> Self {
        let RunOrder { repeats, is_parallel } = *order;
        let of_repeat = repeats.iter().take_while(|repeat| **repeat == 0).count().max(1);
        let seconds = vec![None; of_repeat];
        let waiting = Vec::with_capacity(of_repeat);
        Self { runner, observer, is_parallel, repeats, of_repeat, waiting, next: 0, end: 0, seconds, is_over: false }
    }

    /// Runs of the repeats that have begun.
    pub(crate) fn begun(&self) -> usize {
        self.next
    }

    /// Whether no other run is to begin, however many there may be.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Sets how many runs there are in all.
    pub(crate) fn extend(&mut self, runs: usize) {
        self.end = self.repeats.len().min(runs);
    }

    /// The run to begin.
    pub(crate) fn next(&mut self) -> Option<usize> {
        if self.waiting.is_empty() && self.next < self.end && !self.is_over {
            let repeat = self.repeats[self.next];
            self.is_over = repeat > 0 && !self.observer.goes_on(repeat);
            if !self.is_over {
                let end = self.end.min(self.next + self.of_repeat);
                // The last one is taken first.
                self.waiting.extend((self.next..end).rev());
                self.next = end;
            }
        }
        if self.is_parallel {
            let length = |number: &usize| match self.seconds[number % self.of_repeat] {
                Some(seconds) => (seconds, 0),
                // One that has not ended yet takes longer than the others.
                None => (f64::INFINITY, self.runner.expected_length(*number)),
            };
            let longer = |a: &usize, b: &usize| {
                let (a, b) = (length(a), length(b));
                a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
            };
            // Of equals the last, which is the first by number.
            let longest = (0..self.waiting.len()).max_by(|a, b| longer(&self.waiting[*a], &self.waiting[*b]))?;
            return Some(self.waiting.remove(longest));
        }
        self.waiting.pop()
    }

    /// Notes what a run came to.
    pub(crate) fn ended(&mut self, number: usize, outcome: &RunEnd<R::Error>) {
        match outcome {
            Ok(Some(outcome)) => self.seconds[number % self.of_repeat] = Some(outcome.run.wall_seconds),
            Ok(None) => {}
            Err(_) => {
                self.is_over = true;
                self.waiting.clear();
            }
        }
    }
}
