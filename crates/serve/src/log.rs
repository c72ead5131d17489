//! Log lines: how important they are, and how many of one kind are written.

use std::time::{Duration, Instant};

/// How important a log line is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// The server does not do what it should.
    Error,
    /// A client or the system did not do what it should.
    Warning,
    /// Anything else: connections, changes, start and end.
    Info,
}

/// Receives log lines.
pub type Log = Box<dyn Fn(Level, &str) + Send + Sync>;

/// How often lines of one kind are counted anew.
const PERIOD: Duration = Duration::from_secs(10);

/// Lines of one kind, of which a number is logged in each [`PERIOD`].
#[derive(Debug)]
pub(crate) struct Lines {
    most: u32,
    began: Option<Instant>,
    logged: u32,
    left_out: u64,
}

impl Lines {
    /// At most this many in a period.
    pub(crate) fn at_most(most: u32) -> Lines {
        Lines { most, began: None, logged: 0, left_out: 0 }
    }

    /// Counts a line. Returns how many were left out before this one, or `None` if this one is to be left out.
    pub(crate) fn count(&mut self, now: Instant) -> Option<u64> {
        if self.began.is_none_or(|began| now.duration_since(began) >= PERIOD) {
            (self.began, self.logged) = (Some(now), 0);
        }
        if self.logged >= self.most {
            self.left_out += 1;
            return None;
        }
        self.logged += 1;
        Some(self.take_left_out())
    }

    /// How many were left out since this was asked last.
    pub(crate) fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_lines_are_logged_in_a_period_and_the_others_are_counted() {
        let (mut lines, now) = (Lines::at_most(2), Instant::now());
        assert_eq!([0, 1, 9].map(|s| lines.count(now + Duration::from_secs(s))), [Some(0), Some(0), None]);
        assert_eq!(lines.count(now + Duration::from_secs(9)), None);
        assert_eq!(lines.count(now + PERIOD), Some(2));
        assert_eq!(lines.count(now + PERIOD), Some(0));
    }
}
