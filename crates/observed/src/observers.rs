//! Any number of probes of a run behind one type, so that the simulator is compiled only twice: with and without probes.
//!
//! Used by: crate `experiment`.
//! Tests: `crates/sim/tests/`, `crates/experiment/tests/closed_loop/`.

use hoistway_blk::ground::{CpuId, Now, Waiter};
use hoistway_blk::watch::{Event, Probe};

/// Object-safe form of [`Probe`], implemented for every probe.
pub trait Observer {
    /// The same as [`Probe::enter`].
    fn enter(&mut self, device: u32, submitter: Option<Waiter>);
    /// The same as [`Probe::event`].
    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>);
}

impl<P: Probe> Observer for P {
    fn enter(&mut self, device: u32, submitter: Option<Waiter>) {
        Probe::enter(self, device, submitter);
    }

    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>) {
        Probe::event(self, now, cpu, event);
    }
}

/// The observers of a run.
pub(crate) struct Observers<'a, 'o>(pub(crate) &'a mut [&'o mut dyn Observer]);

impl Probe for Observers<'_, '_> {
    fn enter(&mut self, device: u32, submitter: Option<Waiter>) {
        self.0.iter_mut().for_each(|observer| observer.enter(device, submitter));
    }

    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>) {
        self.0.iter_mut().for_each(|observer| observer.event(now, cpu, event));
    }
}
