//! Log lines: their levels, and rate limits by kind.

use std::time::{Duration, Instant};

/// The level of a log line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// The server malfunctions.
    Error,
    /// A client or the system malfunctions.
    Warning,
    /// Anything else: connections, changes, start and end.
    Info,
}

/// Receives log lines.
pub type Log = Box<dyn Fn(Level, &str) + Send + Sync>;

/// The period of rate limits.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);

/// Lines of one kind, whose number is limited in each [`PERIOD`].
#[derive(Debug)]
pub(crate) struct Lines {
    lines_max: u32,
    began: Option<Instant>,
    logged: u32,
    dropped_lines: u64,
}

impl Lines {
    /// At most this many lines in a period.
    pub(crate) fn at_most(lines_max: u32) -> Lines {
        Lines { lines_max, began: None, logged: 0, dropped_lines: 0 }
    }

    /// Counts a line. Returns how many were dropped before it, or `None` if it must be dropped.
    pub(crate) fn count(&mut self, now: Instant) -> Option<u64> {
        if self.began.is_none_or(|began| now.duration_since(began) >= PERIOD) {
            (self.began, self.logged) = (Some(now), 0);
        }
        if self.logged >= self.lines_max {
            self.dropped_lines += 1;
            return None;
        }
        self.logged += 1;
        Some(self.take_dropped_lines())
    }

    /// The number of lines dropped since the last call.
    pub(crate) fn take_dropped_lines(&mut self) -> u64 {
        std::mem::take(&mut self.dropped_lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_beyond_the_limit_of_a_period_are_counted_instead() {
        let (mut lines, now) = (Lines::at_most(2), Instant::now());
        assert_eq!([0, 1, 9].map(|s| lines.count(now + Duration::from_secs(s))), [Some(0), Some(0), None]);
        assert_eq!(lines.count(now + Duration::from_secs(9)), None);
        assert_eq!(lines.count(now + PERIOD), Some(2));
        assert_eq!(lines.count(now + PERIOD), Some(0));
    }
}
