//! What lies before a driver that takes bios as they are: dm, md, brd, and loop in old kernels (`legacy-queue.md` 1,
//! `block-layer.md` 2.1, 22.2 and 28.2).
//!
//! Bios are checked, announced and handed over. There is no request, hence no plug, merge, elevator, tag or limit, and no
//! accounting; nothing waits, so nothing is frozen either. Bios are not split: that is done for requests, and a driver
//! that must cut does so itself. `io.max` is above this queue as it is above all others: a
//! [`Throttle`](crate::Throttle) sees a bio first.
//!
//! A stacking driver keeps what it makes of a bio and submits it to the devices below once [`BioQueue::submit`] has
//! returned. So it is in the kernel, where a task's nested bios wait in a list for the outer one, and stacks of any depth
//! take no more of it.

mod attributes;
#[cfg(test)]
mod tests;

use crate::bio::{Bio, BioFlags, Status};
use crate::check::{Checked, check_bio};
use crate::kernel::{Generation, Kernel};
use crate::limits::Limits;
use crate::merge::{MergeRules, NoMerges};
use crate::probe::{Event, Probe};
use crate::queue::Cx;
use crate::time::Now;

/// A driver that takes bios.
pub trait BioDriver {
    /// Takes a bio. What has ended at once comes back; anything else the driver's owner ends later, with
    /// [`BioQueue::complete`].
    fn submit_bio(&mut self, now: Now, bio: Bio) -> Option<(Bio, Status)>;
}

/// The queue of a device whose driver takes bios. It is not a [`Front`](crate::Front): that is the choice of a
/// scheduler's name, and here there is none to choose.
///
/// ```
/// use hoistway_blk::{Bio, BioDriver, BioQueue, CpuId, Cx, Effect, Effects, Kernel, Limits, NoProbe, Now, Op, Sector, Status};
///
/// /// Memory: done at once.
/// struct RamDisk;
///
/// impl BioDriver for RamDisk {
///     fn submit_bio(&mut self, _: Now, bio: Bio) -> Option<(Bio, Status)> {
///         Some((bio, Status::Ok))
///     }
/// }
///
/// let queue = BioQueue::new(Kernel::DEFAULT, Limits { capacity: Sector(1000), ..Limits::default() });
/// let (mut effects, now) = (Effects::new(), Now::default());
/// let mut cx = Cx { now, cpu: CpuId(0), driver: &mut RamDisk, effects: &mut effects, probe: &mut NoProbe };
/// queue.submit(&mut cx, Bio::new(Op::Read, Sector(992), 8));
/// queue.submit(&mut cx, Bio::new(Op::Read, Sector(993), 8));
/// for expected in [Status::Ok, Status::IoError] {
///     assert!(matches!(effects.pop(), Some(Effect::EndBio { status, .. }) if status == expected));
/// }
/// ```
pub struct BioQueue {
    generation: Generation,
    /// The limits now. Nothing merges here.
    rules: MergeRules,
    /// Those of the device.
    device: Limits,
    takes_nowait: bool,
}

impl BioQueue {
    /// A queue before a driver that may have to wait, and so refuses [`BioFlags::NOWAIT`].
    #[must_use]
    pub fn new(kernel: Kernel, limits: Limits) -> Self {
        let generation = kernel.generation();
        let rules = MergeRules::new(&generation, limits.clone(), NoMerges::Nothing);
        BioQueue { generation, rules, device: limits, takes_nowait: false }
    }

    /// The same before a driver that never waits.
    #[must_use]
    pub fn with_nowait(self) -> Self {
        BioQueue { takes_nowait: true, ..self }
    }

    /// What the driver should not be sent more of at once; whether it cuts is its own affair.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.rules.limits
    }

    /// Hands a bio to the driver, or ends it because it cannot be.
    pub fn submit<D: BioDriver, P: Probe>(&self, cx: &mut Cx<'_, D, P>, mut bio: Bio) {
        if bio.flags.contains(BioFlags::NOWAIT) && !self.takes_nowait {
            return cx.effects.end_bio(bio, Status::NotSupported);
        }
        // Before there were hardware queues for polling the flag meant nothing.
        if let Checked::Ends(status) = check_bio(&self.rules.limits, !self.generation.queue_types, &mut bio) {
            return cx.effects.end_bio(bio, status);
        }
        cx.probe.event(cx.now, cx.cpu, Event::Queue(&bio));
        if let Some((bio, status)) = cx.driver.submit_bio(cx.now, bio) {
            self.complete(cx, bio, status);
        }
    }

    /// A bio that the driver had kept has ended.
    pub fn complete<D, P: Probe>(&self, cx: &mut Cx<'_, D, P>, bio: Bio, status: Status) {
        cx.probe.event(cx.now, cx.cpu, Event::BioComplete(&bio, status));
        cx.effects.end_bio(bio, status);
    }
}
