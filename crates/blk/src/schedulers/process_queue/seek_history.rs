//! Seek history: the last 32 requests of a process, one bit each, set where the request was a seek. What counts as a
//! seek, and how many make a process seeky, is the scheduler's business.
//!
//! Rules: `cfq.md` 8.2.

/// The register: the youngest request is the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeekHistory(u32);

impl SeekHistory {
    /// Notes the next request.
    pub(crate) fn push(&mut self, is_seek: bool) {
        self.0 = self.0 << 1 | u32::from(is_seek);
    }

    /// How many of the last 32 requests were seeks.
    pub(crate) fn seeks(self) -> u32 {
        self.0.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seek_is_forgotten_after_thirty_two_requests() {
        let mut history = SeekHistory::default();
        history.push(true);
        for _ in 0..31 {
            history.push(false);
            assert_eq!(history.seeks(), 1);
        }
        history.push(false);
        assert_eq!(history.seeks(), 0);
    }
}
