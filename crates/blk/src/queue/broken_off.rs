//! Runs of a hardware queue that were broken off, because their CPU gets the scheduler's lock later than it came for it, as in virtual
//! time: what each has drawn until then, which it sends when it has drawn the rest.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use crate::ground::ids::CpuId;
use crate::ground::sharing::{Lock, Sharing, Word};
use crate::request::Rq;

/// What the runs of one hardware queue have drawn that were broken off.
pub struct BrokenOff<Sh: Sharing> {
    runs: Sh::Lock<Vec<(CpuId, VecDeque<Rq>)>>,
    /// How many there are, to be read without the lock. `Relaxed`: a CPU looks for its own.
    count: Sh::Word,
}

impl<Sh: Sharing> Default for BrokenOff<Sh> {
    fn default() -> Self {
        BrokenOff { runs: Sh::Lock::new(Vec::new()), count: Sh::Word::new(0) }
    }
}

impl<Sh: Sharing> BrokenOff<Sh> {
    /// Whether there is any. Where locks are waited for there never is.
    #[inline]
    pub fn is_any(&self) -> bool {
        !Sh::CONTENDS && self.count.load(Relaxed) != 0
    }

    /// Keeps what the run of a CPU has drawn.
    #[cold]
    pub fn keep(&self, cpu: CpuId, drawn: &mut VecDeque<Rq>) {
        if !drawn.is_empty() {
            self.runs.aside(|runs| {
                runs.push((cpu, std::mem::take(drawn)));
                self.count.store(runs.len() as u64, Relaxed);
            });
        }
    }

    /// Takes back what the run of a CPU has drawn that was broken off first.
    #[cold]
    pub fn take(&self, cpu: CpuId) -> Option<VecDeque<Rq>> {
        self.runs.aside(|runs| {
            let place = runs.iter().position(|(of, _)| *of == cpu)?;
            let (_, drawn) = runs.remove(place);
            self.count.store(runs.len() as u64, Relaxed);
            Some(drawn)
        })
    }
}
