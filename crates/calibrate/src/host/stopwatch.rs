//! A meter that measures the time under locks for each site.

use std::cell::Cell;
use std::time::Instant as WallClock;

use hoistway_blk::ground::{Held, Meter, Site};

/// Sections that take longer count as interrupted, ns: no critical section of a scheduler takes this long.
const INTERRUPTED_NS: u64 = 20_000;
/// Maximum nested locks: kyber nests two; one more in reserve.
const NESTED_MAX: usize = 3;

/// A count and a total time in ns.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Tally {
    pub(super) times: u64,
    pub(super) ns: u64,
}

impl Tally {
    fn add(&mut self, ns: u64) {
        self.times += 1;
        self.ns += ns;
    }

    pub(super) fn plus(self, other: Tally) -> Tally {
        Tally { times: self.times + other.times, ns: self.ns + other.ns }
    }

    /// Mean time in ns without the overhead of the clock; `None` if the count is zero.
    pub(super) fn mean_ns(self, clock_ns: f64) -> Option<f64> {
        (self.times > 0).then(|| (self.ns as f64 / self.times as f64 - clock_ns).max(0.0))
    }
}

/// The critical sections of one site, by whether the previous holder of the lock was the same thread (`own`) or another
/// one (`handed`).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sections {
    pub(super) own: Tally,
    pub(super) handed: Tally,
}

impl Sections {
    pub(super) fn both(self) -> Tally {
        self.own.plus(self.handed)
    }
}

/// The meter of one thread.
pub(super) struct Stopwatch {
    begin: WallClock,
    thread: u32,
    /// For each held lock: when it was taken, ns, and the time spent under nested locks, ns.
    open_sections: Cell<[(u64, u64); NESTED_MAX]>,
    depth: Cell<usize>,
    sites: [Cell<Sections>; Site::ALL.len()],
}

impl Stopwatch {
    pub(super) fn new(thread: u32) -> Self {
        Stopwatch {
            begin: WallClock::now(),
            thread,
            open_sections: Cell::default(),
            depth: Cell::new(0),
            sites: Default::default(),
        }
    }

    /// The sections of a site.
    pub(super) fn at(&self, site: Site) -> Sections {
        self.sites[site as usize].get()
    }

    /// Measured time of an empty section, ns.
    pub(super) fn clock_ns() -> f64 {
        const SAMPLES: u32 = 20_000;
        let (watch, held) = (Stopwatch::new(0), Held::default());
        for _ in 0..SAMPLES {
            watch.enter(&held, Site::Elevator);
            watch.leave(&held, Site::Elevator);
        }
        watch.at(Site::Elevator).both().mean_ns(0.0).unwrap_or(0.0)
    }

    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }
}

impl Meter for Stopwatch {
    #[inline]
    fn enter(&self, _: &Held, _: Site) {
        let (mut open_sections, depth) = (self.open_sections.get(), self.depth.get());
        if let Some(section) = open_sections.get_mut(depth) {
            *section = (self.now_ns(), 0);
            self.open_sections.set(open_sections);
        }
        self.depth.set(depth + 1);
    }

    fn try_enter(&self, lock: &Held, site: Site) -> bool {
        self.enter(lock, site);
        true
    }

    #[inline]
    fn leave(&self, lock: &Held, site: Site) {
        let now_ns = self.now_ns();
        let depth = self.depth.get() - 1;
        self.depth.set(depth);
        let mut open_sections = self.open_sections.get();
        let Some(&(entered_ns, nested_ns)) = open_sections.get(depth) else { return };
        let duration_ns = now_ns - entered_ns;
        if depth > 0 {
            open_sections[depth - 1].1 += duration_ns;
            self.open_sections.set(open_sections);
        }
        let previous_thread = lock.by.replace(self.thread);
        if duration_ns < INTERRUPTED_NS {
            let mut sections = self.sites[site as usize].get();
            let is_handed = previous_thread != self.thread && previous_thread != u32::MAX;
            let tally = if is_handed { &mut sections.handed } else { &mut sections.own };
            tally.add(duration_ns.saturating_sub(nested_ns));
            self.sites[site as usize].set(sections);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_sections_are_distinguished_by_site_and_previous_holder() {
        let (one, other, held) = (Stopwatch::new(1), Stopwatch::new(2), Held::default());
        for watch in [&one, &one, &other, &one] {
            watch.enter(&held, Site::Insert);
            watch.leave(&held, Site::Insert);
        }
        let sections = one.at(Site::Insert);
        assert_eq!([sections.own.times, sections.handed.times], [2, 1]);
        assert_eq!(other.at(Site::Insert).handed.times, 1);
        assert_eq!(one.at(Site::Dispatch).both().times, 0);
    }

    #[test]
    fn time_under_an_inner_lock_counts_only_for_that_lock() {
        let (watch, outer, inner) = (Stopwatch::new(0), Held::default(), Held::default());
        watch.enter(&outer, Site::HardwareQueue);
        watch.enter(&inner, Site::SoftwareQueue);
        let begin = WallClock::now();
        while begin.elapsed().as_nanos() < 5000 {}
        watch.leave(&inner, Site::SoftwareQueue);
        watch.leave(&outer, Site::HardwareQueue);
        let ns = |site| watch.at(site).both().ns;
        let both = [Site::HardwareQueue, Site::SoftwareQueue].map(|site| watch.at(site).both().times);
        // If the test is interrupted here, neither is counted.
        if both == [1, 1] {
            assert!(ns(Site::SoftwareQueue) >= 5000 && ns(Site::HardwareQueue) < ns(Site::SoftwareQueue));
        }
    }
}
