//! Detects whether the device queues commands, from the maximum number of requests it held while enough were available.
//!
//! Rules: CFQ-61.

/// Requests at the device that count as queueing.
const DEPTH_MIN: u32 = 5;
/// Samples before a verdict.
const SAMPLES_MIN: u32 = 50;

/// The detector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DepthDetector {
    /// Whether the device queues, once known.
    pub(super) verdict: Option<bool>,
    /// Maximum requests seen at the device.
    highest: u32,
    /// Number of samples that counted.
    samples: u32,
}

/// The active queue's load during a sample: a queue that is idled for limits the depth itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActiveLoad {
    pub(super) idle_window: bool,
    /// Its requests, waiting and in flight.
    pub(super) requests: u32,
}

impl DepthDetector {
    /// Whether the device queues; assumed while unknown.
    #[inline]
    pub(super) fn queues(self) -> bool {
        self.verdict != Some(false)
    }

    /// Takes a sample at the completion of a request, while others waited or were at the device (the count includes
    /// this one).
    pub(super) fn sample(&mut self, waiting: u32, in_driver: u32, active: Option<ActiveLoad>) {
        self.highest = self.highest.max(in_driver);
        if self.verdict == Some(true) || (waiting <= DEPTH_MIN && in_driver <= DEPTH_MIN) {
            return;
        }
        let limits_depth = |load: ActiveLoad| load.idle_window && load.requests < DEPTH_MIN && in_driver < DEPTH_MIN;
        if active.is_some_and(limits_depth) {
            return;
        }
        self.samples += 1;
        if self.samples > SAMPLES_MIN {
            self.verdict = Some(self.highest >= DEPTH_MIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_queueing_is_detected_at_the_fifty_first_sample() {
        let mut detector = DepthDetector::default();
        for _ in 0..50 {
            detector.sample(7, 1, Some(ActiveLoad { idle_window: false, requests: 1 }));
            assert!(detector.queues(), "unknown counts as queueing");
        }
        detector.sample(7, 1, None);
        assert!(!detector.queues());
        for _ in 0..2 {
            detector.sample(20, 8, None);
        }
        assert!(detector.queues(), "no may still become yes");
        detector.highest = 0;
        detector.sample(20, 1, None);
        assert!(detector.queues(), "yes is final");
    }

    #[test]
    fn a_queue_that_is_waited_for_hides_the_depth_of_the_device() {
        let mut detector = DepthDetector::default();
        for _ in 0..200 {
            detector.sample(7, 1, Some(ActiveLoad { idle_window: true, requests: 1 }));
        }
        assert_eq!((detector.verdict, detector.samples), (None, 0));
        detector.sample(7, 1, Some(ActiveLoad { idle_window: true, requests: 5 }));
        detector.sample(7, 5, Some(ActiveLoad { idle_window: true, requests: 1 }));
        assert_eq!(detector.samples, 2, "enough of its own, or enough in the device");
    }

    #[test]
    fn a_shallow_load_says_nothing() {
        let mut detector = DepthDetector::default();
        for _ in 0..200 {
            detector.sample(0, 1, None);
        }
        assert_eq!(detector.verdict, None);
    }
}
