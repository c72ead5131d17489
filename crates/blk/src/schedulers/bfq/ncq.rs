//! Detects whether the device queues commands (NCQ). Rules: BFQ-70.

/// A sample counts only if there are this many requests, queued or in the device.
const LOAD_MIN: u32 = 4;
/// This many samples are taken before there is an answer.
const SAMPLES: u32 = 32;

/// The detector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ncq {
    /// The largest number of requests seen in the device. It is still updated once `verdict` is known.
    pub max_in_driver: u32,
    samples: u32,
    verdict: Option<bool>,
}

impl Ncq {
    /// Notes the requests in the device at a completion, before it is subtracted.
    pub fn note(&mut self, in_driver: u32) {
        self.max_in_driver = self.max_in_driver.max(in_driver);
    }

    /// Counts a sample, unless it is already known that the device queues. `thinker`: the load comes from a process
    /// that has few requests at a time. Above `threshold` the answer is yes. Returns whether there was an answer.
    pub fn sample(&mut self, load: u32, thinker: bool, threshold: u32) -> bool {
        if self.verdict == Some(true) || load < LOAD_MIN || thinker {
            return false;
        }
        self.samples += 1;
        if self.samples <= SAMPLES {
            return false;
        }
        self.verdict = Some(self.max_in_driver > threshold);
        self.max_in_driver = 0;
        self.samples = 0;
        true
    }

    /// Whether it queues. Undecided counts as yes.
    pub fn queues(&self) -> bool {
        self.verdict != Some(false)
    }
}
