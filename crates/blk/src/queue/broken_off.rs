//! Runs of a hardware queue that were broken off, because their CPU gets the scheduler's lock later than it came for it, as in virtual
//! time: what each has drawn until then, which it sends when it has drawn the rest.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use crate::ground::ids::CpuId;
use crate::ground::sharing::{Lock, Sharing, Word};
use crate::request::Rq;

/// What the runs of one hardware queue have drawn that were broken off. Where locks are waited for there never is any, and no place for it.
pub struct BrokenOff<Sh: Sharing>(Option<Box<Runs<Sh>>>);

struct Runs<Sh: Sharing> {
    runs: Sh::Lock<Vec<(CpuId, VecDeque<Rq>)>>,
    /// How many there are, to be read without the lock. `Relaxed`: a CPU looks for its own.
    count: Sh::Word,
}

impl<Sh: Sharing> Default for BrokenOff<Sh> {
    fn default() -> Self {
        let none = || Box::new(Runs { runs: Sh::Lock::new(Vec::new()), count: Sh::Word::new(0) });
        BrokenOff((!Sh::CONTENDS).then(none))
    }
}

impl<Sh: Sharing> BrokenOff<Sh> {
    /// Whether there is any.
    #[inline]
    pub fn is_any(&self) -> bool {
        !Sh::CONTENDS && self.0.as_ref().is_some_and(|runs| runs.count.load(Relaxed) != 0)
    }

    /// Keeps what the run of a CPU has drawn.
    #[cold]
    pub fn keep(&self, cpu: CpuId, drawn: &mut VecDeque<Rq>) {
        if let Some(Runs { runs, count }) = self.0.as_deref().filter(|_| !drawn.is_empty()) {
            runs.aside(|runs| {
                runs.push((cpu, std::mem::take(drawn)));
                count.store(runs.len() as u64, Relaxed);
            });
        }
    }

    /// Takes back what the run of a CPU has drawn that was broken off first.
    #[cold]
    pub fn take(&self, cpu: CpuId) -> Option<VecDeque<Rq>> {
        let Runs { runs, count } = self.0.as_deref()?;
        runs.aside(|runs| {
            let place = runs.iter().position(|(of, _)| *of == cpu)?;
            let (_, drawn) = runs.remove(place);
            count.store(runs.len() as u64, Relaxed);
            Some(drawn)
        })
    }
}
