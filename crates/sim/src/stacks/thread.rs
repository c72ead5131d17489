//! The thread of a stacked device: what it has to submit, and the disks that it submits to.
//!
//! Used by: `layers`, `simulation`.
//! Tests: `crates/sim/tests/stacks.rs`.

use std::collections::VecDeque;

use hoistway_blk::bio::Bio;

use crate::disk::SimulatedDisk;
use crate::identity::Sleeper;
use crate::submitter::Submitter;

/// What a thread has to do for its layer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Assignment {
    /// Pass a bio, as a part of this join, through the layer.
    Descend(Bio, u32),
    /// Pass an encrypted bio, as a part of this join, on to the member.
    Pass(Bio, u32),
}

/// A disk that a thread submits to.
pub(crate) struct ThreadDisk {
    pub(crate) disk: u32,
    pub(crate) submitter: Submitter,
}

/// A thread.
pub(crate) struct Thread {
    pub(super) inbox: VecDeque<Assignment>,
    /// Bios for disks.
    pub(super) pending: VecDeque<(u32, Bio)>,
    pub(crate) disks: Vec<ThreadDisk>,
    /// Whether its next run is scheduled.
    pub(crate) is_woken: bool,
}

impl Thread {
    /// The thread of the layer with this number, over these disks.
    pub(super) fn new(number: u32, bottom: &[u32], disks: &[SimulatedDisk]) -> Thread {
        let waiter = Sleeper::StackThread(number).waiter();
        let thread_disk =
            |&disk: &u32| ThreadDisk { disk, submitter: Submitter::new(&disks[disk as usize].queue, waiter) };
        Thread {
            inbox: VecDeque::new(),
            pending: VecDeque::new(),
            disks: bottom.iter().map(thread_disk).collect(),
            is_woken: false,
        }
    }

    /// The disk for which a request it sleeps, or the next one, whose bio has then begun; `None` if there is nothing to
    /// submit.
    pub(crate) fn next_disk(&mut self) -> Option<&mut ThreadDisk> {
        if let Some(parked) = self.disks.iter().position(|disk| disk.submitter.is_parked()) {
            return self.disks.get_mut(parked);
        }
        let (disk, bio) = self.pending.pop_front()?;
        let next = self.disks.iter_mut().find(|other| other.disk == disk)?;
        next.submitter.begin(bio);
        Some(next)
    }

    /// Whether it sleeps for a request of a disk.
    pub(super) fn is_parked(&self) -> bool {
        self.disks.iter().any(|disk| disk.submitter.is_parked())
    }

    /// A disk with plugged requests, for which it does not sleep.
    pub(crate) fn next_plugged(&mut self) -> Option<&mut ThreadDisk> {
        self.disks.iter_mut().find(|disk| disk.submitter.is_plugged() && !disk.submitter.is_parked())
    }
}
