//! Sorts the events of a nearly sorted file by time.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use super::event::Event;

/// Maximum buffered events, apart from those of the current read.
const EVENTS_MAX: usize = (1 << 18) - (1 << 10);

/// Sorts events within a window of time. Events of equal time keep their order.
#[derive(Debug)]
pub(crate) struct Sorter {
    /// Events that came in the order of time.
    in_order: VecDeque<Event>,
    /// Events that came after a later one, the earliest on top.
    late: BinaryHeap<Late>,
    /// Number of late events so far.
    late_count: u64,
    window_ns: u64,
    /// Time of the newest line or record of the file.
    newest_ns: u64,
    /// Time of the last returned event.
    last_ns: u64,
    step_back_ns: u64,
}

/// An event that came after a later one.
#[derive(Debug)]
struct Late {
    event: Event,
    /// Its number among the late ones.
    number: u64,
}

impl Late {
    /// The greatest is the earliest, as a heap has the greatest on top.
    fn rank(&self) -> (Reverse<u64>, Reverse<u64>) {
        (Reverse(self.event.time_ns), Reverse(self.number))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Late) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Late) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Late {
    fn eq(&self, other: &Late) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Late {}

impl Sorter {
    pub(crate) fn new(window_ns: u64) -> Sorter {
        Sorter {
            in_order: VecDeque::new(),
            late: BinaryHeap::new(),
            late_count: 0,
            window_ns,
            newest_ns: 0,
            last_ns: 0,
            step_back_ns: 0,
        }
    }

    /// Adds the next event of a file. It may be in the future, such as a completion that is known from the start of its
    /// I/O.
    ///
    /// # Errors
    /// If it comes too late to be sorted: by how many nanoseconds.
    #[inline]
    pub(crate) fn push(&mut self, event: Event) -> Result<(), u64> {
        if event.time_ns < self.last_ns {
            return Err(self.last_ns - event.time_ns);
        }
        if self.in_order.back().is_none_or(|newest| newest.time_ns <= event.time_ns) {
            self.in_order.push_back(event);
        } else {
            self.late.push(Late { event, number: self.late_count });
            self.late_count += 1;
        }
        Ok(())
    }

    /// Whether the next event is a late one. Of equal times those in order came first: a late one came after an even later one.
    #[inline]
    fn is_late_next(&self) -> bool {
        match (self.in_order.front(), self.late.peek()) {
            (Some(in_order), Some(late)) => late.event.time_ns < in_order.time_ns,
            (None, late) => late.is_some(),
            (Some(_), None) => false,
        }
    }

    /// Sets the time that the file has reached: no event older than the window before it is expected.
    #[inline]
    pub(crate) fn advance_to(&mut self, time_ns: u64) {
        if time_ns < self.newest_ns {
            self.step_back_ns = self.step_back_ns.max(self.newest_ns - time_ns);
        }
        self.newest_ns = self.newest_ns.max(time_ns);
    }

    /// The next event, if no earlier one can follow.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let first_ns = match self.is_late_next() {
            true => self.late.peek()?.event.time_ns,
            false => self.in_order.front()?.time_ns,
        };
        let buffered = self.in_order.len() + self.late.len();
        if first_ns.saturating_add(self.window_ns) > self.newest_ns && buffered < EVENTS_MAX {
            return None;
        }
        self.pop_remaining()
    }

    /// The next remaining event after the end of the file.
    #[inline]
    pub(crate) fn pop_remaining(&mut self) -> Option<Event> {
        let event = match self.is_late_next() {
            true => self.late.pop()?.event,
            false => self.in_order.pop_front()?,
        };
        self.last_ns = event.time_ns;
        Some(event)
    }

    /// Time of the last returned event.
    pub(crate) const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Largest step of time back in the file, in nanoseconds.
    pub(crate) const fn step_back_ns(&self) -> u64 {
        self.step_back_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::block::event::Action;

    fn event(time_ns: u64, sector: u64) -> Event {
        Event { time_ns, sector, ..Event::new(Action::Queue) }
    }

    proptest! {
        /// Whatever the order of the lines, and however far they are from it: as a stable sort.
        #[test]
        fn events_come_out_as_a_stable_sort_has_them(times in prop::collection::vec(0..50_u64, 0..200)) {
            let mut sorter = Sorter::new(50);
            let mut sorted = Vec::new();
            for (number, time_ns) in (0..).zip(&times) {
                sorter.advance_to(*time_ns);
                sorter.push(event(*time_ns, number)).unwrap();
                while let Some(event) = sorter.pop() {
                    sorted.push((event.time_ns, event.sector));
                }
            }
            while let Some(event) = sorter.pop_remaining() {
                sorted.push((event.time_ns, event.sector));
            }
            let mut expected: Vec<(u64, u64)> = times.iter().copied().zip(0..).collect();
            expected.sort_by_key(|(time_ns, _)| *time_ns);
            prop_assert_eq!(sorted, expected);
        }
    }
}
