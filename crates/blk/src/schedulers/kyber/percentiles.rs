//! The current controller: ten rounds a second, depths by the percentiles of latencies. Rules: KY-16 to KY-19.
//!
//! While the device meets its targets nothing is throttled. When the device latency of one domain misses its target,
//! the *other* domains lose tokens, as far as their own total latency is good. A domain whose total latency is bad
//! gains tokens at any time.

use crate::ground::time::{Hz, Now, Tick};

use super::domain::{DOMAINS, Domain};
use super::histogram::{FIRST_BAD, Histogram, Kind, MEASURED, Sums};

/// A percentile that a round has computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencyReading {
    /// The bucket it lies in: 0 to 3 meet the target, each a quarter of it wide; 4 to 6 miss it; 7 is for all slower
    /// requests.
    pub bucket: u8,
    /// Samples in the histogram.
    pub samples: u32,
}

/// What one round of the current controller has computed and changed, by [`Domain`], without [`Domain::Other`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ControllerRound {
    /// 90th percentiles of the time in the device.
    pub io: [Option<LatencyReading>; DOMAINS],
    /// 99th percentiles of the time since allocation.
    pub total: [Option<LatencyReading>; DOMAINS],
    /// Depths that have changed, tokens.
    pub depths: [Option<u32>; DOMAINS],
}

/// With this many samples a percentile is computed at once.
const SAMPLES_ENOUGH: u32 = 500;

/// The domains whose depths it adjusts, in the order in which it handles them.
const STEERED: [Domain; MEASURED] = [Domain::Read, Domain::Write, Domain::Discard];

/// The state of the controller between rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Percentiles {
    /// Samples from which no percentile has been computed yet.
    pub(super) sums: Sums,
    /// The total latency of a domain, as a bucket, when it was last computed in a round in which all targets were met.
    /// It is used in a round in which one was missed, if there is no newer one.
    remembered: [Option<u8>; MEASURED],
    /// When a percentile is computed even from too few samples, ticks. Both histograms of a domain share it, so the
    /// first one uses it up.
    deadline: [Option<Tick>; MEASURED],
    last_round: ControllerRound,
}

impl Percentiles {
    /// What the last round did.
    pub(super) fn last_round(&self) -> ControllerRound {
        self.last_round
    }

    /// Does one round with the samples in `sums`. `depths`: the present and the largest depth of each domain. Returns
    /// the new ones.
    pub(super) fn round(&mut self, now: Now, hz: Hz, depths: [(u32, u32); MEASURED]) -> ControllerRound {
        let mut round = ControllerRound::default();
        let mut congested = false;
        for domain in STEERED {
            let reading = self.read(now, hz, domain, Kind::Io, 90);
            congested |= reading.is_some_and(|reading| reading.bucket >= FIRST_BAD);
            round.io[domain.index()] = reading;
        }
        for domain in STEERED {
            let index = domain.index();
            let reading = self.read(now, hz, domain, Kind::Total, 99);
            round.total[index] = reading;
            let mut bucket = reading.map(|reading| reading.bucket);
            if congested {
                bucket = bucket.or(self.remembered[index]);
                self.remembered[index] = None;
            } else if bucket.is_some() {
                self.remembered[index] = bucket;
            }
            let Some(bucket) = bucket else { continue };
            if congested || bucket >= FIRST_BAD {
                let (depth, depth_max) = depths[index];
                let changed = (depth * (u32::from(bucket) + 1) / u32::from(FIRST_BAD)).clamp(1, depth_max);
                round.depths[index] = (changed != depth).then_some(changed);
            }
        }
        self.last_round = round;
        round
    }

    /// Computes a percentile of one histogram and empties it, unless it waits for more samples.
    fn read(&mut self, now: Now, hz: Hz, domain: Domain, kind: Kind, percent: u32) -> Option<LatencyReading> {
        let histogram = &mut self.sums[domain.index()][kind as usize];
        let samples = histogram.samples();
        if samples == 0 {
            return None;
        }
        let deadline = &mut self.deadline[domain.index()];
        let until = *deadline.get_or_insert(Tick(now.tick.0 + u64::from(hz.0)));
        if samples < SAMPLES_ENOUGH && now.tick < until {
            return None;
        }
        *deadline = None;
        let bucket = histogram.percentile(percent);
        *histogram = Histogram::default();
        Some(LatencyReading { bucket, samples })
    }
}
