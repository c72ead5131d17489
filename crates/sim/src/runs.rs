//! The runs of hardware queues that are set: when a worker will run which (`block-layer.md` 14.1).

use hoistway_blk::{HctxId, Instant, Nanos};

/// For each hardware queue of a disk the run that is set, if any.
pub(crate) struct Runs(Vec<Run>);

#[derive(Clone, Copy, Default)]
struct Run {
    setting: u32,
    /// When it is due.
    due: Option<Instant>,
}

impl Runs {
    /// Of so many hardware queues; none is set.
    pub(crate) fn new(hctxs: u16) -> Self {
        Runs(vec![Run::default(); usize::from(hctxs)])
    }

    /// Whether a run must be set that is asked for now. It need not if a worker is on its way already, and so will be there
    /// by `on_its_way`; a run that was delayed for longer is replaced.
    #[inline]
    pub(crate) fn wants(&self, hctx: HctxId, on_its_way: Instant) -> bool {
        self.0[hctx.index()].due.is_none_or(|due| due > on_its_way)
    }

    /// Whether a run must be set when all hardware queues are to run after a delay: one that is set is left alone.
    #[inline]
    pub(crate) fn wants_with_all(&self, hctx: HctxId, delay: Nanos) -> bool {
        delay == Nanos::ZERO || self.0[hctx.index()].due.is_none()
    }

    /// Sets a run instead of one that was set before. Answers the number of the setting.
    #[inline]
    pub(crate) fn set(&mut self, hctx: HctxId, due: Instant) -> u32 {
        let run = &mut self.0[hctx.index()];
        run.setting = run.setting.wrapping_add(1);
        run.due = Some(due);
        run.setting
    }

    /// Takes the run that is due, if `setting` is still the one.
    #[inline]
    pub(crate) fn take(&mut self, hctx: HctxId, setting: u32) -> bool {
        let run = &mut self.0[hctx.index()];
        run.setting == setting && run.due.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HCTX: HctxId = HctxId(1);
    const DELAY: Nanos = Nanos::from_millis(3);

    #[test]
    fn item_70_a_delayed_run_is_postponed_by_a_later_queueing_of_its_queue() {
        let mut runs = Runs::new(2);
        let first = runs.set(HCTX, Instant(3_000_000));
        // A millisecond later the same is asked for again; a worker would be there within 10 us.
        assert!(runs.wants(HCTX, Instant(1_010_000)));
        let second = runs.set(HCTX, Instant(4_000_000));
        assert!(!runs.take(HCTX, first), "the first is void");
        assert!(runs.take(HCTX, second) && !runs.take(HCTX, second), "the second takes place once");
    }

    #[test]
    fn item_70_a_delayed_run_is_not_postponed_by_a_delayed_run_of_all_queues() {
        let mut runs = Runs::new(2);
        let first = runs.set(HCTX, Instant(3_000_000));
        assert!(!runs.wants_with_all(HCTX, DELAY) && runs.wants_with_all(HctxId(0), DELAY));
        assert!(runs.wants_with_all(HCTX, Nanos::ZERO), "a run of all at once does not wait for it");
        assert!(runs.take(HCTX, first));
    }

    #[test]
    fn a_worker_that_is_on_its_way_is_not_called_twice() {
        let mut runs = Runs::new(2);
        let setting = runs.set(HCTX, Instant(5_000));
        assert!(!runs.wants(HCTX, Instant(5_000)));
        assert!(runs.take(HCTX, setting) && runs.wants(HCTX, Instant(5_000)));
    }
}
