//! Where a completion runs (`block-layer.md` 18, `queue/rq_affinity`).

use super::Queue;
use crate::ids::CpuId;
use crate::request::Rq;
use crate::sharing::Sharing;

/// `queue/rq_affinity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Affinity {
    /// 0: where the interrupt came.
    Interrupted = 0,
    /// 1: there, if it shares a cache with the submitter's CPU.
    #[default]
    SameCache = 1,
    /// 2: on the submitter's CPU.
    Submitter = 2,
}

/// Where and how a completion runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionPlace {
    /// On the interrupted CPU, in the interrupt.
    Interrupt,
    /// On the interrupted CPU, in its softirq.
    Softirq,
    /// On another CPU, which is sent an interrupt.
    Redirected(CpuId),
}

impl CompletionPlace {
    /// The CPU that it runs on.
    #[inline]
    #[must_use]
    pub fn cpu(self, interrupted: CpuId) -> CpuId {
        if let CompletionPlace::Redirected(cpu) = self { cpu } else { interrupted }
    }
}

impl Affinity {
    /// What a number means that is written to the file; most mean nothing.
    pub fn numbered(number: u32) -> Option<Affinity> {
        [Affinity::Interrupted, Affinity::SameCache, Affinity::Submitter]
            .into_iter()
            .find(|&rule| rule as u32 == number)
    }

    /// Whether a completion that came on `cpu` goes to the CPU of its submitter.
    #[inline]
    pub fn redirects(self, submitter: CpuId, cpu: CpuId, share_cache: impl Fn(CpuId, CpuId) -> bool) -> bool {
        match self {
            Affinity::Interrupted => false,
            Affinity::SameCache => submitter != cpu && !share_cache(submitter, cpu),
            Affinity::Submitter => submitter != cpu,
        }
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Where the completion of a request runs whose interrupt came on `cpu`. `share_cache` knows the machine.
    #[inline]
    pub fn completion_place(&self, rq: &Rq, cpu: CpuId, share_cache: impl Fn(CpuId, CpuId) -> bool) -> CompletionPlace {
        if rq.ctx == cpu && self.hctxs[rq.hctx.index()].cpus().len() == 1 {
            return CompletionPlace::Interrupt;
        }
        if self.affinity.redirects(rq.ctx, cpu, share_cache) {
            CompletionPlace::Redirected(rq.ctx)
        } else if self.hctxs.len() == 1 {
            // Keeps the time with interrupts off short.
            CompletionPlace::Softirq
        } else {
            CompletionPlace::Interrupt
        }
    }
}
