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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::observer::Unobserved;
    use crate::outcome::RunOutcome;
    use crate::runner::in_rounds;

    /// Notes which runs begin, and lets none of them leave anything.
    struct Notes(Mutex<Vec<usize>>);

    impl Runner for Notes {
        type Error = ();

        fn run(&self, number: usize) -> Result<Option<RunOutcome>, ()> {
            self.0.lock().unwrap().push(number);
            if number == 9 { Err(()) } else { Ok(None) }
        }

        fn expected_length(&self, number: usize) -> u32 {
            [0, 2, 0, 5][number % 4]
        }
    }

    #[test]
    fn the_longest_of_a_repeat_begin_first_and_repeats_in_their_order() {
        let repeats = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];
        let begun = |is_parallel, rounds: &[usize]| {
            let notes = Notes(Mutex::default());
            let order = RunOrder { repeats: &repeats, is_parallel };
            let mut rounds = rounds.iter().copied();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            let ended = pool.install(|| in_rounds(&notes, &order, &Unobserved, |_| rounds.next()));
            (notes.0.into_inner().unwrap(), ended.map(|runs| runs.len()))
        };
        assert_eq!(begun(true, &[4, 8]), (vec![3, 1, 0, 2, 7, 5, 4, 6], Ok(8)));
        assert_eq!(begun(true, &[8, 8, 12]), (vec![3, 1, 0, 2, 7, 5, 4, 6], Ok(8)), "no more than before ends it");
        assert_eq!(begun(false, &[8]), (vec![0, 1, 2, 3, 4, 5, 6, 7], Ok(8)));
        assert_eq!(begun(false, &[12]).0[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(begun(false, &[12]).1.is_err());
    }
}
