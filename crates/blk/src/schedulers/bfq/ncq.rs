//! Does the device queue commands? Rules: BFQ-70.

/// This number of requests must be around for a sample to count.
const LOAD_MIN: u32 = 4;
/// This number of samples counts without deciding.
const SAMPLES: u32 = 32;

/// The detector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ncq {
    /// Most requests seen in the device; goes on growing after the verdict.
    pub max_in_driver: u32,
    samples: u32,
    verdict: Option<bool>,
}

impl Ncq {
    /// Notes the requests in the device at a completion, before it is subtracted.
    pub fn note(&mut self, in_driver: u32) {
        self.max_in_driver = self.max_in_driver.max(in_driver);
    }

    /// Counts a sample unless it is already known that the device queues. `thinker` says that the load is that of
    /// a process which does little at a time. Above `threshold` the verdict is yes. Returns whether it was decided.
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
