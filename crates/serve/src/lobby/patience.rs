//! How long to look on before sleeping. To be woken takes longer than most I/Os over memory, but who looks on has the CPU for
//! nothing: so it is done for as long as it would have paid the last time, and not at all once nothing came for long.

use std::time::Duration;

/// Where it begins, and what is worth the while of trying.
const LEAST: Duration = Duration::from_micros(4);

/// How long, at present.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    now: Duration,
    most: Duration,
}

impl Patience {
    /// None at first, and never more than this.
    pub fn new(most: Duration) -> Self {
        Patience { now: Duration::ZERO, most }
    }

    /// How long to look on.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Something came after so long, looked for or slept through.
    pub fn waited(&mut self, time: Duration) {
        if time > self.most {
            self.now = Duration::ZERO;
        } else if time > self.now {
            self.now = (self.now * 2).max(LEAST).min(self.most);
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
    fn who_is_asked_often_looks_on_longer_and_longer_and_who_is_left_alone_no_more() {
        let mut patience = Patience::new(us(50));
        assert_eq!(patience.now(), us(0));
        let mut seen = Vec::new();
        for _ in 0..6 {
            patience.waited(us(40));
            seen.push(patience.now());
        }
        assert_eq!(seen, [4, 8, 16, 32, 50, 50].map(us), "until it is long enough for what comes, or there is no more");
        patience.waited(us(3));
        assert_eq!(patience.now(), us(50), "what comes soon is no reason to change");
        patience.waited(us(51));
        assert_eq!(patience.now(), us(0));
    }

    #[test]
    fn without_any_it_stays_so() {
        let mut patience = Patience::new(us(0));
        patience.waited(us(0));
        patience.waited(us(1));
        assert_eq!(patience.now(), us(0));
    }
}
