//! Completions of the streams of a recorded program, which other streams wait for (RP6, RP18).

use std::collections::VecDeque;

use hoistway_blk::ground::Instant;

/// Number of completion times that are kept. Older ones are long past for every stream that still counts them.
const COMPLETION_TIMES_KEPT: usize = 1024;

/// The completions of one stream.
#[derive(Default)]
pub(super) struct Completions {
    count: u64,
    /// Whether no more completions will come.
    has_ended: bool,
    /// The times of the most recent completions.
    recent: VecDeque<Instant>,
    /// Processes that wait for a number of completions: the number and the process.
    waiting: Vec<(u64, u32)>,
}

impl Completions {
    /// Adds completions. Processes that waited for them are added to `released`.
    pub(super) fn add(&mut self, now: Instant, ios: u32, released: &mut Vec<u32>) {
        for _ in 0..ios {
            if self.recent.len() == COMPLETION_TIMES_KEPT {
                self.recent.pop_front();
            }
            self.recent.push_back(now);
        }
        self.count += u64::from(ios);
        self.release(released);
    }

    /// The stream has ended: releases all processes that still wait for it.
    pub(super) fn end(&mut self, released: &mut Vec<u32>) {
        self.has_ended = true;
        self.release(released);
    }

    fn release(&mut self, released: &mut Vec<u32>) {
        let count = if self.has_ended { u64::MAX } else { self.count };
        self.waiting.retain(|&(needed, process)| {
            if needed <= count {
                released.push(process);
            }
            needed > count
        });
    }

    /// The time of completion number `count`, if it has been reached.
    pub(super) fn reached(&self, count: u64) -> Option<Instant> {
        if count == 0 {
            return Some(Instant::ZERO);
        }
        if count > self.count {
            return self.has_ended.then(|| self.recent.back().copied().unwrap_or_default());
        }
        let from_the_end = usize::try_from(self.count - count).unwrap_or(usize::MAX);
        self.recent.get((self.recent.len() - 1).saturating_sub(from_the_end)).copied()
    }

    /// A process waits for completion number `count`.
    pub(super) fn wait(&mut self, count: u64, process: u32) {
        if !self.waiting.contains(&(count, process)) {
            self.waiting.push((count, process));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_count_is_that_of_the_completion_that_reached_it() {
        let (mut completions, mut released) = (Completions::default(), Vec::new());
        completions.add(Instant(10), 1, &mut released);
        completions.add(Instant(20), 2, &mut released);
        let reached: Vec<_> = (0..=4).map(|count| completions.reached(count)).collect();
        assert_eq!(reached, [Some(Instant(0)), Some(Instant(10)), Some(Instant(20)), Some(Instant(20)), None]);
    }

    #[test]
    fn a_process_is_released_when_its_count_is_reached_or_the_stream_ends() {
        let (mut completions, mut released) = (Completions::default(), Vec::new());
        completions.wait(2, 7);
        completions.wait(5, 8);
        completions.add(Instant(10), 1, &mut released);
        assert!(released.is_empty());
        completions.add(Instant(11), 1, &mut released);
        assert_eq!(released, [7]);
        completions.end(&mut released);
        assert_eq!((released, completions.reached(5)), (vec![7, 8], Some(Instant(11))));
    }

    #[test]
    fn counts_far_behind_are_taken_for_the_oldest_that_is_remembered() {
        let (mut completions, mut released) = (Completions::default(), Vec::new());
        (0..5_000).for_each(|at| completions.add(Instant(at), 1, &mut released));
        assert_eq!(completions.reached(5_000), Some(Instant(4_999)));
        assert_eq!(completions.reached(1), Some(Instant(5_000 - COMPLETION_TIMES_KEPT as u64)));
    }
}
