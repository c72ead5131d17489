//! The estimator of the device's peak rate. Rules: BFQ-52 to BFQ-56.

use super::config::{LONG_AGO, MS, REFERENCE_RATE};

/// Fractional bits of a rate in sectors per microsecond.
pub(super) const RATE_SHIFT: u32 = 16;
/// A higher rate is taken as a measurement error.
const RATE_MAX: u64 = 20 << RATE_SHIFT;
/// Samples that a window needs.
const SAMPLES_MIN: u32 = 32;
/// Time that a window needs, ns.
const INTERVAL_MIN: u64 = 300 * MS;
/// Time at which a window is evaluated, ns.
const INTERVAL: u64 = 1000 * MS;
/// A window ends if nothing was dispatched for this long and the device is empty, ns.
const SILENCE: u64 = 100 * MS;
/// A dispatch within this time after a completion continues a stream, ns.
const CONTINUES: u64 = 2 * MS;
/// If the largest request was served more slowly than this (sectors/us, fixed point), the device was not busy.
const LAZY_RATE: u64 = 64;

/// A dispatch as the estimator sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Nanosecond clock.
    pub now: u64,
    /// Length, sectors.
    pub sectors: u64,
    /// Whether it is near the end of the request before.
    pub near: bool,
    /// Requests in the device before it.
    pub in_driver: u32,
}

/// What a sample or a completion did to the estimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RateEvent {
    /// The peak rate has changed.
    pub updated: bool,
    /// The window started anew.
    pub reset: bool,
}

/// The estimator.
#[derive(Clone, Debug)]
pub(super) struct PeakRate {
    /// The estimate, sectors per microsecond in fixed point.
    pub rate: u64,
    /// Time of the last completion of the device, ns.
    pub last_completion: u64,
    first_dispatch: u64,
    last_dispatch: u64,
    /// Dispatches in the window.
    pub samples: u32,
    /// Of these, those that continue a stream.
    pub sequential: u32,
    /// Sectors dispatched in the window.
    pub sectors: u64,
    /// The largest recent request, sectors.
    largest: u64,
}

impl PeakRate {
    /// The initial estimate: two thirds of the reference.
    pub fn new(rotational: bool) -> Self {
        PeakRate {
            rate: reference_rate(rotational) * 2 / 3,
            last_completion: LONG_AGO,
            first_dispatch: LONG_AGO,
            last_dispatch: LONG_AGO,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
        }
    }

    /// A request is dispatched.
    pub fn dispatched(&mut self, sample: Sample) -> RateEvent {
        let mut event = RateEvent::default();
        if self.samples == 0 {
            self.restart(sample);
            event.reset = true;
        } else if sample.now.wrapping_sub(self.last_dispatch) > SILENCE && sample.in_driver == 0 {
            event.updated = self.evaluate(self.last_dispatch.wrapping_sub(self.first_dispatch));
            self.restart(sample);
            event.reset = true;
        } else {
            self.samples += 1;
            let streams = sample.in_driver > 0 || sample.now.wrapping_sub(self.last_completion) < CONTINUES;
            self.sequential += u32::from(streams && sample.near);
            self.sectors += sample.sectors;
            self.largest = if self.samples.is_multiple_of(SAMPLES_MIN) {
                sample.sectors
            } else {
                self.largest.max(sample.sectors)
            };
            let interval = sample.now.wrapping_sub(self.first_dispatch);
            if interval >= INTERVAL {
                event.updated = self.evaluate(interval);
                self.restart(sample);
                event.reset = true;
            }
        }
        self.last_dispatch = sample.now;
        event
    }

    /// A request has completed.
    pub fn completed(&mut self, now: u64) -> RateEvent {
        let mut event = RateEvent::default();
        let gap_us = now.wrapping_sub(self.last_completion) / 1000;
        if gap_us > CONTINUES / 1000 && (self.largest << RATE_SHIFT) / gap_us < LAZY_RATE {
            event.updated = self.evaluate(self.last_dispatch.wrapping_sub(self.first_dispatch));
            self.samples = 0;
            event.reset = true;
        }
        self.last_completion = now;
        event
    }

    fn restart(&mut self, sample: Sample) {
        self.first_dispatch = sample.now;
        self.samples = 1;
        self.sequential = 0;
        self.sectors = sample.sectors;
        self.largest = sample.sectors;
    }

    /// Evaluates the window, whose dispatches span `interval` ns. Returns whether the estimate was updated.
    fn evaluate(&mut self, interval: u64) -> bool {
        if self.samples < SAMPLES_MIN || interval < INTERVAL_MIN {
            return false;
        }
        let interval = interval.max(self.last_completion.wrapping_sub(self.first_dispatch));
        let rate = (self.sectors << RATE_SHIFT) / (interval / 1000);
        if (self.sequential < 3 * self.samples / 4 && rate <= self.rate) || rate > RATE_MAX {
            return false;
        }
        let mut weight = 9 * u64::from(self.sequential) / u64::from(self.samples);
        weight = (u128::from(weight) * u128::from(interval) / 1_000_000_000).min(8) as u64;
        let divisor = 10 - weight;
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
        true
    }
}

/// The reference rate of a kind of device.
pub(super) fn reference_rate(rotational: bool) -> u64 {
    REFERENCE_RATE[usize::from(!rotational)]
}
