//! How long to busy-poll before sleeping. A wake-up takes longer than most I/Os over memory, but polling costs CPU time: the worker
//! polls for as long as the last wait lasted, and does not poll after a long wait.

use std::time::Duration;

/// The first and shortest polling time.
const POLL_MIN: Duration = Duration::from_micros(4);

/// The current polling time, adapted to the length of recent waits.
#[derive(Clone, Copy, Debug)]
pub struct BusyPoll {
    current: Duration,
    max: Duration,
}

impl BusyPoll {
    /// Starts without polling; never polls longer than `max`.
    pub fn new(max: Duration) -> Self {
        BusyPoll { current: Duration::ZERO, max }
    }

    /// How long to poll.
    pub fn current(&self) -> Duration {
        self.current
    }

    /// Records a wait of this time, whether polled or slept.
    pub fn waited(&mut self, time: Duration) {
        if time > self.max {
            self.current = Duration::ZERO;
        } else if time > self.current {
            self.current = (self.current * 2).max(POLL_MIN).min(self.max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn it_polls_longer_while_that_pays_and_not_at_all_after_a_long_wait() {
        let mut busy_poll = BusyPoll::new(us(50));
        assert_eq!(busy_poll.current(), us(0));
        let mut seen = Vec::new();
        for _ in 0..6 {
            busy_poll.waited(us(40));
            seen.push(busy_poll.current());
        }
        assert_eq!(seen, [4, 8, 16, 32, 50, 50].map(us), "doubled until it covers the wait or reaches its maximum");
        busy_poll.waited(us(3));
        assert_eq!(busy_poll.current(), us(50), "a short wait changes nothing");
        busy_poll.waited(us(51));
        assert_eq!(busy_poll.current(), us(0));
    }

    #[test]
    fn with_a_maximum_of_zero_it_never_polls() {
        let mut busy_poll = BusyPoll::new(us(0));
        busy_poll.waited(us(0));
        busy_poll.waited(us(1));
        assert_eq!(busy_poll.current(), us(0));
    }
}
