//! The expected latency of a request, by kind and size: a base for small requests plus a slope for each further KiB, both learned
//! from completions (ADIOS-10 to ADIOS-14).

use crate::ground::time::{Instant, Nanos};

/// Sectors of a small request, 4 KiB. For each KiB beyond that, the slope is added.
const SMALL_SECTORS: u32 = 8;
/// Sectors of a KiB.
const SECTORS_PER_KIB: u64 = 2;
/// Samples after which base and slope are updated.
const UPDATE_SAMPLES: u32 = 1024;
/// Time after which they are updated, however few samples there are.
const UPDATE_INTERVAL: Nanos = Nanos::from_millis(100);
/// Of this many small samples, the slowest is taken as an outlier.
const SAMPLES_PER_OUTLIER: u32 = 100;
/// A value written by the user weighs as much as this many samples.
const WRITTEN_WEIGHT: u64 = 1024;
/// Maximum predicted latency of a request, ns.
pub(super) const LATENCY_MAX_NS: u64 = 10_000_000_000;
/// Maximum slope, ns for each KiB.
pub(super) const SLOPE_MAX_NS_PER_KIB: u64 = 1_000_000_000;
/// Buckets for each octave of latencies.
const BUCKETS_PER_OCTAVE: u32 = 4;
const BUCKETS: usize = 64 * BUCKETS_PER_OCTAVE as usize;

/// How fast old samples lose their weight in a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decay {
    /// Old samples decay after this many thousand requests,
    pub(super) kreqs: u64,
    /// or after this many GB of 10^9 bytes.
    pub(super) gbytes: u64,
    /// The fraction that is removed is 1 / this.
    pub(super) resist: u64,
}

/// The model of one kind of request.
#[derive(Clone, Debug)]
pub(super) struct LatencyModel {
    base_ns: u64,
    slope_ns_per_kib: u64,
    /// Small requests: their number and the sum of their latencies, without outliers.
    small: (u64, u128),
    large: LargeSums,
    /// Small samples since the last computation, by latency: their number and the sum of their latencies.
    fresh: Box<[(u32, u64); BUCKETS]>,
    fresh_small: u32,
    fresh_samples: u32,
    updated_at: Instant,
    /// Requests and sectors since the last decay.
    since_decay: (u64, u64),
}

/// Sums over larger requests, with x the sectors beyond a small one and y the latency.
#[derive(Clone, Copy, Default, Debug)]
struct LargeSums {
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
            large: LargeSums::default(),
            fresh: Box::new([(0, 0); BUCKETS]),
            fresh_small: 0,
            fresh_samples: 0,
            updated_at: Instant::ZERO,
            since_decay: (0, 0),
        }
    }
}

/// The bucket of a latency: `BUCKETS_PER_OCTAVE` of them for each octave.
fn bucket(latency_ns: u64) -> usize {
    let octave = latency_ns.max(1).ilog2();
    let step = if octave < 2 { 0 } else { (latency_ns >> (octave - 2)) as u32 % BUCKETS_PER_OCTAVE };
    (octave * BUCKETS_PER_OCTAVE + step) as usize
}

impl LatencyModel {
    /// The expected latency of a request of this many sectors, ns.
    #[inline]
    pub(super) fn predict(&self, sectors: u32) -> u64 {
        (self.base_ns + self.slope_ns_per_kib * u64::from(sectors.saturating_sub(SMALL_SECTORS)) / SECTORS_PER_KIB)
            .min(LATENCY_MAX_NS)
    }

    /// Latency of a small request, ns.
    pub(super) fn base_ns(&self) -> u64 {
        self.base_ns
    }

    /// What each KiB beyond a small request adds to its latency, ns.
    pub(super) fn slope_ns_per_kib(&self) -> u64 {
        self.slope_ns_per_kib
    }

    /// Replaces the base. The new one weighs as much as [`WRITTEN_WEIGHT`] samples.
    pub(super) fn set_base_ns(&mut self, base_ns: u64) {
        self.base_ns = base_ns;
        self.small = (WRITTEN_WEIGHT, u128::from(WRITTEN_WEIGHT) * u128::from(base_ns));
    }

    /// Replaces the slope. The new one weighs as much as [`WRITTEN_WEIGHT`] samples of 8 KiB.
    pub(super) fn set_slope_ns_per_kib(&mut self, slope: u64) {
        self.slope_ns_per_kib = slope;
        let (count, x) = (u128::from(WRITTEN_WEIGHT), u128::from(SMALL_SECTORS));
        let y = u128::from(self.base_ns) + u128::from(slope) * x / u128::from(SECTORS_PER_KIB);
        self.large = LargeSums { x: count * x, xx: count * x * x, xy: count * x * y };
    }

    /// Adds the latency of a completed request.
    #[inline]
    pub(super) fn learn(&mut self, now: Instant, sectors: u32, latency_ns: u64, decay: &Decay) {
        if sectors <= SMALL_SECTORS {
            let (count, sum) = &mut self.fresh[bucket(latency_ns)];
            *count += 1;
            *sum += latency_ns;
            self.fresh_small += 1;
        } else {
            let (x, y) = (u128::from(sectors - SMALL_SECTORS), u128::from(latency_ns));
            self.large = LargeSums { x: self.large.x + x, xx: self.large.xx + x * x, xy: self.large.xy + x * y };
        }
        self.since_decay.0 += 1;
        self.since_decay.1 += u64::from(sectors);
        self.fresh_samples += 1;
        if self.fresh_samples >= UPDATE_SAMPLES || now.since(self.updated_at) >= UPDATE_INTERVAL {
            self.update(now, decay);
        }
    }

    #[cold]
    fn update(&mut self, now: Instant, decay: &Decay) {
        self.updated_at = now;
        self.fresh_samples = 0;
        self.add_fresh();
        self.decay(decay);
        if let Some(base) = self.small.1.checked_div(u128::from(self.small.0)) {
            self.base_ns = base as u64;
        }
        // Least squares with the base given. A negative slope means that size does not matter: 0.
        let LargeSums { x, xx, xy } = self.large;
        let excess = xy.saturating_sub(u128::from(self.base_ns) * x);
        if let Some(slope) = (excess * u128::from(SECTORS_PER_KIB)).checked_div(xx) {
            self.slope_ns_per_kib = slope.min(u128::from(SLOPE_MAX_NS_PER_KIB)) as u64;
        }
    }

    /// Adds the fresh small samples, except the slowest of each hundred.
    fn add_fresh(&mut self) {
        let mut outliers = self.fresh_small / SAMPLES_PER_OUTLIER;
        for (count, sum) in self.fresh.iter_mut().rev() {
            let excluded = outliers.min(*count);
            outliers -= excluded;
            if let Some(mean) = sum.checked_div(u64::from(*count)) {
                self.small.0 += u64::from(*count - excluded);
                self.small.1 += u128::from(*sum - mean * u64::from(excluded));
            }
            (*count, *sum) = (0, 0);
        }
        self.fresh_small = 0;
    }

    /// Removes a fraction of the old samples after a number of requests or bytes.
    fn decay(&mut self, decay: &Decay) {
        let (requests, sectors) = self.since_decay;
        if requests < decay.kreqs * 1000 && sectors * 512 < decay.gbytes * 1_000_000_000 {
            return;
        }
        self.since_decay = (0, 0);
        let divisor = u128::from(decay.resist);
        let decayed = |sum: u128| sum - sum / divisor;
        self.small = (decayed(u128::from(self.small.0)) as u64, decayed(self.small.1));
        let LargeSums { x, xx, xy } = self.large;
        self.large = LargeSums { x: decayed(x), xx: decayed(xx), xy: decayed(xy) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW_DECAY: Decay = Decay { kreqs: 5000, gbytes: 50, resist: 2 };

    /// Requests of some sizes on a device that takes `base` and `slope` for each KiB beyond 4, with noise of a tenth.
    fn learn_from_device(model: &mut LatencyModel, count: u64, base: u64, slope: u64, decay: &Decay) {
        for n in 0..count {
            let sectors = [8_u64, 8, 16, 64, 256][n as usize % 5];
            let exact = base + slope * (sectors - 8) / 2;
            let noise = exact / 10;
            let latency = exact - noise + (n * 7919 % 21) * noise / 10;
            model.learn(Instant(n * 1_000_000), sectors as u32, latency, decay);
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
            learn_from_device(&mut model, 1000, base, slope, &SLOW_DECAY);
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
            model.learn(Instant(n), 8, latency, &SLOW_DECAY);
        }
        assert_eq!(model.base_ns(), 100_000);
    }

    #[test]
    fn it_is_renewed_after_1024_samples_or_100_ms() {
        let mut model = LatencyModel::default();
        (0..1023).for_each(|n| model.learn(Instant(n), 8, 5000, &SLOW_DECAY));
        assert_eq!(model.base_ns(), 0);
        model.learn(Instant(1023), 8, 5000, &SLOW_DECAY);
        assert_eq!(model.base_ns(), 5000);
        model.learn(Instant(1023 + 99_999_999), 8, 1_000_000, &SLOW_DECAY);
        assert_eq!(model.base_ns(), 5000);
        model.learn(Instant(1023 + 100_000_000), 8, 1_000_000, &SLOW_DECAY);
        assert!(model.base_ns() > 5000);
    }

    #[test]
    fn the_model_forgets_a_share_after_a_number_of_requests_or_bytes() {
        // 100,000 requests at one speed, then 100,000 at half of it: the more is forgotten, the less the first ones weigh.
        let after = |decay: Decay, sectors: u32| {
            let mut model = LatencyModel::default();
            for n in 0..200_000_u64 {
                let latency = if n < 100_000 { 100_000 } else { 200_000 };
                model.learn(Instant(n * 10_000), sectors, latency, &decay);
            }
            model.predict(sectors)
        };
        let never = Decay { kreqs: 100_000, gbytes: 1000, resist: 2 };
        assert!((149_000..=151_000).contains(&after(never, 8)), "all weigh the same");
        let [half, all] = [2, 1].map(|resist| after(Decay { kreqs: 10, resist, ..never }, 8));
        assert!(half > 195_000 && all > 199_000, "{half} {all}");
        // 100,000 requests of 128 KiB are 13 GB.
        let bytes = after(Decay { gbytes: 1, ..never }, 256);
        assert!(bytes > 195_000 && after(never, 256) < 151_000, "{bytes}");
    }

    #[test]
    fn written_model_values_weigh_as_samples_and_learning_continues() {
        let mut model = LatencyModel::default();
        model.set_base_ns(40_000);
        model.set_slope_ns_per_kib(1000);
        assert_eq!((model.predict(8), model.predict(8 + 20)), (40_000, 50_000));
        (0..1024).for_each(|n| model.learn(Instant(n), 8, 80_000, &SLOW_DECAY));
        assert!((59_000..=61_000).contains(&model.base_ns()), "{}", model.base_ns());
    }

    #[test]
    fn buckets_ascend() {
        let all: Vec<usize> =
            (0..63).flat_map(|octave| [1_u64 << octave, (1 << octave) + (1 << octave) / 2]).map(bucket).collect();
        assert!(all.is_sorted() && bucket(u64::MAX) < BUCKETS && bucket(0) == 0);
    }
}
