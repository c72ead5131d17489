//! Completion affinity: the CPU on which a completion runs (BL-92, BL-94, `queue/rq_affinity`).

use std::sync::atomic::Ordering::Relaxed;

use super::{Device, Queue};
use crate::ground::ids::CpuId;
use crate::ground::sharing::{Sharing, Word};
use crate::request::Rq;

/// `queue/rq_affinity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Affinity {
    /// 0: on the interrupted CPU.
    Interrupted = 0,
    /// 1: on the interrupted CPU if it shares a cache with the submitter's CPU; otherwise on the submitter's CPU.
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
    /// On another CPU, which gets an IPI.
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
    /// The meaning of a number written to the file; `None` for other numbers.
    #[inline]
    pub fn from_number(number: u64) -> Option<Affinity> {
        match number {
            0 => Some(Affinity::Interrupted),
            1 => Some(Affinity::SameCache),
            2 => Some(Affinity::Submitter),
            _ => None,
        }
    }

    /// Whether a completion that interrupted `cpu` is redirected to the submitter's CPU.
    #[inline]
    pub fn redirects(self, submitter: CpuId, cpu: CpuId, share_cache: impl Fn(CpuId, CpuId) -> bool) -> bool {
        match self {
            Affinity::Interrupted => false,
            Affinity::SameCache => submitter != cpu && !share_cache(submitter, cpu),
            Affinity::Submitter => submitter != cpu,
        }
    }
}

impl<Sh: Sharing> Device<Sh> {
    #[inline]
    pub(super) fn affinity(&self) -> Affinity {
        Affinity::from_number(self.affinity.load(Relaxed)).unwrap_or_default()
    }

    /// Writes the file. Other numbers have no effect.
    pub(super) fn set_affinity(&self, number: u32) {
        if Affinity::from_number(number.into()).is_some() {
            self.affinity.store(number.into(), Relaxed);
        }
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Where the completion of a request runs if `cpu` was interrupted. `share_cache` describes the machine.
    #[inline]
    pub fn completion_place(&self, rq: &Rq, cpu: CpuId, share_cache: impl Fn(CpuId, CpuId) -> bool) -> CompletionPlace {
        let device = &self.device;
        if rq.ctx == cpu && device.hctxs[rq.hctx.index()].cpus().len() == 1 {
            return CompletionPlace::Interrupt;
        }
        if device.affinity().redirects(rq.ctx, cpu, share_cache) {
            CompletionPlace::Redirected(rq.ctx)
        } else if device.hctxs.len() == 1 {
            // Shortens the time with interrupts disabled.
            CompletionPlace::Softirq
        } else {
            CompletionPlace::Interrupt
        }
    }
}
