//! Sorts the events of a nearly sorted file by time.

use std::collections::VecDeque;

use super::event::Event;

/// Maximum buffered events, apart from those of the current read.
const EVENTS_MAX: usize = (1 << 18) - (1 << 10);

/// Sorts events within a window of time. Events of equal time keep their order.
#[derive(Debug)]
pub(crate) struct Sorter {
    buffered: VecDeque<Event>,
    window_ns: u64,
    /// Time of the newest line or record of the file.
    newest_ns: u64,
    /// Time of the last returned event.
    last_ns: u64,
    step_back_ns: u64,
}

impl Sorter {
    pub(crate) fn new(window_ns: u64) -> Sorter {
        Sorter { buffered: VecDeque::new(), window_ns, newest_ns: 0, last_ns: 0, step_back_ns: 0 }
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
        let mut index = self.buffered.len();
        while index > 0 && self.buffered[index - 1].time_ns > event.time_ns {
            index -= 1;
        }
        if index == self.buffered.len() {
            self.buffered.push_back(event);
        } else {
            self.buffered.insert(index, event);
        }
        Ok(())
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
        let first = self.buffered.front()?;
        if first.time_ns.saturating_add(self.window_ns) > self.newest_ns && self.buffered.len() < EVENTS_MAX {
            return None;
        }
        self.pop_remaining()
    }

    /// The next remaining event after the end of the file.
    #[inline]
    pub(crate) fn pop_remaining(&mut self) -> Option<Event> {
        let event = self.buffered.pop_front()?;
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
