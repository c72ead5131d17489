//! The expected latency of a request, by kind and size: a base for small requests plus a slope for each further KiB, both learned
//! from completions (ADIOS-10 to ADIOS-14).

use crate::ground::time::{Instant, Nanos};

/// Sectors of a small request, 4 KiB. For each KiB beyond that, the slope is added.
const SMALL: u32 = 8;
/// Sectors of a KiB.
const KIB: u64 = 2;
/// Samples after which base and slope are computed anew.
const RENEWED_AFTER: u32 = 1024;
/// Time after which they are computed anew, however few samples there are.
const RENEWED_EVERY: Nanos = Nanos::from_millis(100);
/// Of this many small samples, the slowest is taken as an outlier.
const OUTLIER: u32 = 100;
/// A value written by the user weighs as much as this many samples.
const WRITTEN_COUNTS: u64 = 1024;
/// No request is expected to take longer, ns.
pub(super) const MOST_NS: u64 = 10_000_000_000;
/// No KiB is expected to take longer, ns.
pub(super) const MOST_NS_PER_KIB: u64 = 1_000_000_000;
/// Buckets for each octave of latencies.
const STEPS: u32 = 4;
const BUCKETS: usize = 64 * STEPS as usize;

/// How fast a model forgets old samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forgetting {
    /// It forgets after this many thousand requests,
    pub(super) kreqs: u64,
    /// or after this many GB of 10^9 bytes.
    pub(super) gbytes: u64,
    /// The fraction that it forgets is 1 / this.
    pub(super) resist: u64,
}

/// The model of one kind of request.
#[derive(Clone, Debug)]
pub(super) struct LatencyModel {
    base_ns: u64,
    slope_ns_per_kib: u64,
    /// Small requests: their number and the sum of their latencies, without outliers.
    small: (u64, u128),
    large: Large,
    /// Small samples since the last computation, by latency: their number and the sum of their latencies.
    fresh: Box<[(u32, u64); BUCKETS]>,
    fresh_small: u32,
    fresh_samples: u32,
    renewed: Instant,
    /// Requests and sectors since it last forgot.
    since_forgot: (u64, u64),
}

/// Sums over larger requests, with x the sectors beyond a small one and y the latency.
#[derive(Clone, Copy, Default, Debug)]
struct Large {
    x: u128,
    xx: u128,
    xy: u128,
}

impl Default for LatencyModel {
    fn default() -> Self {
        LatencyModel {
            base_ns: 0,
            slope_ns_per_kib: 0,
            small: (0, 0),
            large: Large::default(),
            fresh: Box::new([(0, 0); BUCKETS]),
            fresh_small: 0,
            fresh_samples: 0,
            renewed: Instant::ZERO,
            since_forgot: (0, 0),
        }
    }
}

/// The bucket of a latency: `STEPS` of them for each octave.
fn bucket(latency_ns: u64) -> usize {
    let octave = latency_ns.max(1).ilog2();
    let step = if octave < 2 { 0 } else { (latency_ns >> (octave - 2)) as u32 % STEPS };
    (octave * STEPS + step) as usize
}

impl LatencyModel {
    /// The expected latency of a request of this many sectors, ns.
    #[inline]
    pub(super) fn predict(&self, sectors: u32) -> u64 {
        (self.base_ns + self.slope_ns_per_kib * u64::from(sectors.saturating_sub(SMALL)) / KIB).min(MOST_NS)
    }

    /// Latency of a small request, ns.
    pub(super) fn base_ns(&self) -> u64 {
        self.base_ns
    }

    /// What each KiB beyond a small request adds to its latency, ns.
    pub(super) fn slope_ns_per_kib(&self) -> u64 {
        self.slope_ns_per_kib
    }

    /// Replaces the base. The new one weighs as much as [`WRITTEN_COUNTS`] samples.
    pub(super) fn set_base_ns(&mut self, base_ns: u64) {
        self.base_ns = base_ns;
        self.small = (WRITTEN_COUNTS, u128::from(WRITTEN_COUNTS) * u128::from(base_ns));
    }

    /// Replaces the slope. The new one weighs as much as [`WRITTEN_COUNTS`] samples of 8 KiB.
    pub(super) fn set_slope_ns_per_kib(&mut self, slope: u64) {
        self.slope_ns_per_kib = slope;
        let (count, x) = (u128::from(WRITTEN_COUNTS), u128::from(SMALL));
        let y = u128::from(self.base_ns) + u128::from(slope) * x / u128::from(KIB);
        self.large = Large { x: count * x, xx: count * x * x, xy: count * x * y };
    }

    /// Adds the latency of a completed request.
    #[inline]
    pub(super) fn learn(&mut self, now: Instant, sectors: u32, latency_ns: u64, forgetting: &Forgetting) {
        if sectors <= SMALL {
            let (count, sum) = &mut self.fresh[bucket(latency_ns)];
            *count += 1;
            *sum += latency_ns;
            self.fresh_small += 1;
        } else {
            let (x, y) = (u128::from(sectors - SMALL), u128::from(latency_ns));
            self.large = Large { x: self.large.x + x, xx: self.large.xx + x * x, xy: self.large.xy + x * y };
        }
        self.since_forgot.0 += 1;
        self.since_forgot.1 += u64::from(sectors);
        self.fresh_samples += 1;
        if self.fresh_samples >= RENEWED_AFTER || now.since(self.renewed) >= RENEWED_EVERY {
            self.renew(now, forgetting);
        }
    }

    #[cold]
    fn renew(&mut self, now: Instant, forgetting: &Forgetting) {
        self.renewed = now;
        self.fresh_samples = 0;
        self.add_fresh();
        self.forget(forgetting);
        if let Some(base) = self.small.1.checked_div(u128::from(self.small.0)) {
            self.base_ns = base as u64;
        }
        // Least squares with the base given. A negative slope means that size does not matter: 0.
        let Large { x, xx, xy } = self.large;
        let above = xy.saturating_sub(u128::from(self.base_ns) * x);
        if let Some(slope) = (above * u128::from(KIB)).checked_div(xx) {
            self.slope_ns_per_kib = slope.min(u128::from(MOST_NS_PER_KIB)) as u64;
        }
    }

    /// Adds the fresh small samples, except the slowest of each hundred.
    fn add_fresh(&mut self) {
        let mut outliers = self.fresh_small / OUTLIER;
        for (count, sum) in self.fresh.iter_mut().rev() {
            let left_out = outliers.min(*count);
            outliers -= left_out;
            if let Some(mean) = sum.checked_div(u64::from(*count)) {
                self.small.0 += u64::from(*count - left_out);
                self.small.1 += u128::from(*sum - mean * u64::from(left_out));
            }
            (*count, *sum) = (0, 0);
        }
        self.fresh_small = 0;
    }

    /// Forgets a fraction of the old samples after a number of requests or bytes.
    fn forget(&mut self, forgetting: &Forgetting) {
        let (requests, sectors) = self.since_forgot;
        if requests < forgetting.kreqs * 1000 && sectors * 512 < forgetting.gbytes * 1_000_000_000 {
            return;
        }
        self.since_forgot = (0, 0);
        let part = u128::from(forgetting.resist);
        let kept = |sum: u128| sum - sum / part;
        self.small = (kept(u128::from(self.small.0)) as u64, kept(self.small.1));
        let Large { x, xx, xy } = self.large;
        self.large = Large { x: kept(x), xx: kept(xx), xy: kept(xy) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Forgetting = Forgetting { kreqs: 5000, gbytes: 50, resist: 2 };

    /// Requests of some sizes on a device that takes `base` and `slope` for each KiB beyond 4, with noise of a tenth.
    fn of_device(model: &mut LatencyModel, count: u64, base: u64, slope: u64, forgetting: &Forgetting) {
        for n in 0..count {
            let sectors = [8_u64, 8, 16, 64, 256][n as usize % 5];
            let exact = base + slope * (sectors - 8) / 2;
            let noise = exact / 10;
            let latency = exact - noise + (n * 7919 % 21) * noise / 10;
            model.learn(Instant(n * 1_000_000), sectors as u32, latency, forgetting);
        }
    }

    fn is_near(found: u64, exact: u64) -> bool {
        found.abs_diff(exact) * 20 <= exact
    }

    #[test]
    fn a_device_with_a_base_and_a_slope_is_found_within_5_percent_after_1000_requests() {
        for (base, slope) in [(80_000, 300), (250_000, 2000), (2_000_000, 5000)] {
            let mut model = LatencyModel::default();
            assert_eq!(model.predict(64), 0, "nothing is known");
            of_device(&mut model, 1000, base, slope, &LONG);
            assert!(is_near(model.base_ns(), base), "{} instead of {base}", model.base_ns());
            let slope_found = model.slope_ns_per_kib();
            assert!(is_near(slope_found, slope), "{slope_found} instead of {slope} beside {base}");
            assert!(is_near(model.predict(8 + 2 * 100), base + 100 * slope));
            assert_eq!(model.predict(1), model.base_ns(), "a small one is a small one");
        }
    }

    #[test]
    fn the_slowest_of_each_hundred_small_requests_does_not_count() {
        let mut model = LatencyModel::default();
        for n in 0..1024 {
            let latency = if n % 100 == 50 { 90_000_000 } else { 100_000 };
            model.learn(Instant(n), 8, latency, &LONG);
        }
        assert_eq!(model.base_ns(), 100_000);
    }

    #[test]
    fn it_is_renewed_after_1024_samples_or_100_ms() {
        let mut model = LatencyModel::default();
        (0..1023).for_each(|n| model.learn(Instant(n), 8, 5000, &LONG));
        assert_eq!(model.base_ns(), 0);
        model.learn(Instant(1023), 8, 5000, &LONG);
        assert_eq!(model.base_ns(), 5000);
        model.learn(Instant(1023 + 99_999_999), 8, 1_000_000, &LONG);
        assert_eq!(model.base_ns(), 5000);
        model.learn(Instant(1023 + 100_000_000), 8, 1_000_000, &LONG);
        assert!(model.base_ns() > 5000);
    }

    #[test]
    fn the_model_forgets_a_share_after_a_number_of_requests_or_bytes() {
        // 100,000 requests at one speed, then 100,000 at half of it: the more is forgotten, the less the first ones weigh.
        let after = |forgetting: Forgetting, sectors: u32| {
            let mut model = LatencyModel::default();
            for n in 0..200_000_u64 {
                let latency = if n < 100_000 { 100_000 } else { 200_000 };
                model.learn(Instant(n * 10_000), sectors, latency, &forgetting);
            }
            model.predict(sectors)
        };
        let never = Forgetting { kreqs: 100_000, gbytes: 1000, resist: 2 };
        assert!((149_000..=151_000).contains(&after(never, 8)), "all weigh the same");
        let [half, all] = [2, 1].map(|resist| after(Forgetting { kreqs: 10, resist, ..never }, 8));
        assert!(half > 195_000 && all > 199_000, "{half} {all}");
        // 100,000 requests of 128 KiB are 13 GB.
        let bytes = after(Forgetting { gbytes: 1, ..never }, 256);
        assert!(bytes > 195_000 && after(never, 256) < 151_000, "{bytes}");
    }

    #[test]
    fn written_model_values_weigh_as_samples_and_learning_continues() {
        let mut model = LatencyModel::default();
        model.set_base_ns(40_000);
        model.set_slope_ns_per_kib(1000);
        assert_eq!((model.predict(8), model.predict(8 + 20)), (40_000, 50_000));
        (0..1024).for_each(|n| model.learn(Instant(n), 8, 80_000, &LONG));
        assert!((59_000..=61_000).contains(&model.base_ns()), "{}", model.base_ns());
    }

    #[test]
    fn buckets_ascend() {
        let all: Vec<usize> =
            (0..63).flat_map(|octave| [1_u64 << octave, (1 << octave) + (1 << octave) / 2]).map(bucket).collect();
        assert!(all.is_sorted() && bucket(u64::MAX) < BUCKETS && bucket(0) == 0);
    }
}
