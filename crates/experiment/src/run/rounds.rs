//! Carries out all runs of an experiment in rounds, each sized by the results so far.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::comparison::observer::RunObserver;
use crate::outcome::RunOutcome;
use crate::run::run_queue::RunQueue;
use crate::run::runner::{RunEnd, RunOrder, Runner};

/// Carries out all runs of the repeats that the observer wants. Returns their outcomes; `None` for runs that never began.
///
/// # Errors
/// The first run that cannot begin.
pub fn carry_out<R: Runner>(
    runner: &R,
    order: &RunOrder<'_>,
    observer: &dyn RunObserver,
) -> Result<Vec<Option<RunOutcome>>, R::Error> {
    run_in_rounds(runner, order, observer, |ended| ended.is_empty().then_some(order.repeats.len()))
}

/// Carries out runs in rounds: before each, `goes_on` gets the outcomes of all earlier runs and returns the total number of runs wanted.
/// The rounds end when this number does not grow.
pub(crate) fn run_in_rounds<R: Runner>(
    runner: &R,
    order: &RunOrder<'_>,
    observer: &dyn RunObserver,
    mut next_run_count: impl FnMut(&[Option<RunOutcome>]) -> Option<usize>,
) -> Result<Vec<Option<RunOutcome>>, R::Error> {
    let mut queue = RunQueue::new(runner, order, observer);
    let mut outcomes: Vec<Option<RunOutcome>> = Vec::new();
    while let Some(run_count) =
        next_run_count(&outcomes).filter(|run_count| *run_count > queue.begun() && !queue.is_over())
    {
        let from = outcomes.len();
        queue.extend(run_count);
        let round: Vec<OnceLock<RunEnd<R::Error>>> = (from..queue.end).map(|_| OnceLock::new()).collect();
        let shared_queue = Mutex::new(queue);
        let lock = || shared_queue.lock().unwrap_or_else(PoisonError::into_inner);
        let work = || {
            loop {
                let Some(number) = lock().next() else { break };
                let outcome = runner.run(number);
                lock().ended(number, &outcome);
                round[number - from].get_or_init(|| outcome);
            }
        };
        if order.is_parallel {
            rayon_core::broadcast(|_| work());
        } else {
            work();
        }
        queue = shared_queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Runs that never began are missing only if an earlier run failed, which is reported.
        let begun_runs = round.into_iter().take(queue.begun().saturating_sub(from));
        for outcome in begun_runs {
            outcomes.push(outcome.into_inner().unwrap_or(Ok(None))?);
        }
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::comparison::observer::Unobserved;
    use crate::outcome::RunOutcome;

    /// Records the runs that begin, and returns no outcomes.
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
            let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            let ended = pool.install(|| run_in_rounds(&notes, &order, &Unobserved, |_| rounds.next()));
            (notes.0.into_inner().unwrap(), ended.map(|runs| runs.len()))
        };
        assert_eq!(begun(true, &[4, 8]), (vec![3, 1, 0, 2, 7, 5, 4, 6], Ok(8)));
        assert_eq!(begun(true, &[8, 8, 12]), (vec![3, 1, 0, 2, 7, 5, 4, 6], Ok(8)), "no more than before ends it");
        assert_eq!(begun(false, &[8]), (vec![0, 1, 2, 3, 4, 5, 6, 7], Ok(8)));
        assert_eq!(begun(false, &[12]).0[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(begun(false, &[12]).1.is_err());
    }
}
