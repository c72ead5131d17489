//! The current controller: ten rounds a second, depths by the percentiles of latencies. Rules: KY-16 to KY-19.
//!
//! While the device keeps its targets nothing is throttled. When one domain's device latency misses its target the
//! *other* domains, those whose own total latency is well, lose tokens; a domain whose total latency is bad gains
//! some at any time.

use crate::ground::time::{Hz, Now, Tick};

use super::domain::{DOMAINS, Domain};
use super::histogram::{FIRST_BAD, Histogram, Kind, MEASURED, Sums};

/// A percentile that a round has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencyReading {
    /// The bucket it lies in: 0 to 3 keep the target, each a quarter of it wide; 4 to 6 miss it; 7 is anything slower.
    pub bucket: u8,
    /// Samples in the histogram.
    pub samples: u32,
}

/// What one round of the current controller has read and done, by [`Domain`]; nothing about [`Domain::Other`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ControllerRound {
    /// 90th percentiles of the time in the device.
    pub io: [Option<LatencyReading>; DOMAINS],
    /// 99th percentiles of the time since allocation.
    pub total: [Option<LatencyReading>; DOMAINS],
    /// Depths that have changed, tokens.
    pub depths: [Option<u32>; DOMAINS],
}

/// Samples that make a percentile at once.
const SAMPLES_ENOUGH: u32 = 500;

/// The domains it steers, in the order in which it looks at them.
const STEERED: [Domain; MEASURED] = [Domain::Read, Domain::Write, Domain::Discard];

/// What the controller remembers between rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Percentiles {
    /// Samples that no percentile has used up.
    pub(super) sums: Sums,
    /// The total latency of a domain, as a bucket, when it was last read in good times: taken in bad times for want of
    /// a newer one.
    remembered: [Option<u8>; MEASURED],
    /// When too few samples have to do, ticks. One for both histograms of a domain, so that the first one uses
    /// it up.
    deadline: [Option<Tick>; MEASURED],
    last_round: ControllerRound,
}

impl Percentiles {
    /// What the last round did.
    pub(super) fn last_round(&self) -> ControllerRound {
        self.last_round
    }

    /// One round over what is in `sums`. `depths` are the present depths and the largest ones; the new ones are
    /// returned.
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

    /// A percentile of one histogram, which is then empty, unless more samples are worth waiting for.
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
