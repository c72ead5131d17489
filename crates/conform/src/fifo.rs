//! The simple policies that tell hard decisions from easy ones, and the process that was served last.

use hoistway_blk::Sector;
use hoistway_trace::iosched::RqNumber;

use crate::score::Score;

/// A request inside the scheduler as the baselines see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) rq: RqNumber,
    pub(crate) sector: Sector,
    pub(crate) sectors: u32,
    pub(crate) pid: u32,
}

/// What is inside, in the order of arrival, and where the kernel served last.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    pub(crate) inside: Vec<Candidate>,
    last_end: Sector,
    last_pid: Option<u32>,
}

impl Baseline {
    pub(crate) fn candidate(&mut self, rq: RqNumber) -> Option<&mut Candidate> {
        self.inside.iter_mut().find(|candidate| candidate.rq == rq)
    }

    pub(crate) fn remove(&mut self, rq: RqNumber) -> Option<Candidate> {
        let at = self.inside.iter().position(|candidate| candidate.rq == rq)?;
        Some(self.inside.remove(at))
    }

    /// Whether a decision for `kernel` is hard: several candidates, and neither the oldest request nor a one-way
    /// sweep from the end of the last one is right.
    fn is_hard(&self, kernel: RqNumber) -> bool {
        let ahead = self.inside.iter().filter(|candidate| candidate.sector >= self.last_end);
        let sweep = ahead.min_by_key(|candidate| candidate.sector);
        let sweep = sweep.or_else(|| self.inside.iter().min_by_key(|candidate| candidate.sector));
        self.inside.len() > 1
            && self.inside.first().is_some_and(|oldest| oldest.rq != kernel)
            && sweep.is_some_and(|sweep| sweep.rq != kernel)
    }

    /// Scores one question and makes the kernel's choice the last one served.
    pub(crate) fn judge(&mut self, score: &mut Score, kernel: Option<RqNumber>, ours: Option<RqNumber>) {
        score.questions += 1;
        if kernel.is_none() || ours.is_none() {
            score.null.0 += 1;
            score.null.1 += u64::from(kernel.is_none() && ours.is_none());
        }
        let Some(rq) = kernel else { return };
        let same = ours == kernel;
        score.dispatches += 1;
        score.all += u64::from(same);
        if self.is_hard(rq) {
            score.hard.0 += 1;
            score.hard.1 += u64::from(same);
        }
        let pid = |rq| self.inside.iter().find(|candidate| candidate.rq == rq).map(|candidate| candidate.pid);
        let (kernels, our_pid) = (pid(rq), ours.and_then(pid));
        if self.last_pid.is_some() && (kernels != self.last_pid || our_pid != self.last_pid) {
            score.switch.0 += 1;
            score.switch.1 += u64::from(kernels == our_pid);
        }
        if let Some(given) = self.remove(rq) {
            self.last_end = given.sector + given.sectors;
            self.last_pid = Some(given.pid);
        }
    }
}
