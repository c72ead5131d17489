//! Quality of service: which latencies mean that the device is saturated, and how fast device time may pass.

use std::fmt;

use hoistway_blk::ground::Nanos;

/// A percentage in steps of 0.01 %.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Percent(pub u32);

impl Percent {
    /// 100 %.
    pub const WHOLE: Percent = Percent(10_000);

    /// A number with at most two decimals, as the kernel reads it.
    pub(super) fn parse(text: &str) -> Option<Percent> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_decimal = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_decimal(whole) || !is_decimal(fraction) || fraction.len() > 2 {
            return None;
        }
        let hundredths = fraction.parse::<u32>().ok()? * if fraction.len() == 1 { 10 } else { 1 };
        whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(hundredths).map(Percent)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// The content of `io.cost.qos`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoCostQos {
    /// Whether io.cost holds bios at all.
    pub is_enabled: bool,
    /// Whether the parameters are the kernel's (`ctrl=auto`).
    pub is_automatic: bool,
    /// Share of reads that should be faster than [`read_latency_us`](Self::read_latency_us); 0: they are not looked at.
    pub read_percentile: Percent,
    /// Microseconds.
    pub read_latency_us: u32,
    /// Share of writes that should be faster than [`write_latency_us`](Self::write_latency_us); 0: likewise.
    pub write_percentile: Percent,
    /// Microseconds.
    pub write_latency_us: u32,
    /// The slowest device time, in percent of the model.
    pub rate_min: Percent,
    /// The fastest device time, in percent of the model.
    pub rate_max: Percent,
}

/// Bounds of the period in which device time is adapted, IC-12.
const PERIOD_LATENCY_MIN: Nanos = Nanos::from_millis(5);
const PERIOD_MAX: Nanos = Nanos::from_millis(1000);

impl IoCostQos {
    /// The parameters of `ctrl=auto`: those of the example in the kernel's documentation (IC-5).
    pub const AUTOMATIC: IoCostQos = IoCostQos {
        is_enabled: false,
        is_automatic: true,
        read_percentile: Percent(9_500),
        read_latency_us: 75_000,
        write_percentile: Percent(9_500),
        write_latency_us: 150_000,
        rate_min: Percent(5_000),
        rate_max: Percent(15_000),
    };

    /// The latencies that are looked at, by direction.
    pub(super) fn latency(&self, is_write: bool) -> Option<(Percent, Nanos)> {
        let (percentile, us) = match is_write {
            false => (self.read_percentile, self.read_latency_us),
            true => (self.write_percentile, self.write_latency_us),
        };
        (percentile.0 > 0).then(|| (percentile, Nanos::from_micros(u64::from(us))))
    }

    /// The period in which latencies are judged: twice the longest latency that is looked at (IC-12).
    pub(super) fn period(&self) -> Nanos {
        let latencies = [false, true].into_iter().filter_map(|is_write| self.latency(is_write));
        let longest = latencies.map(|(_, latency)| latency).max().unwrap_or(Nanos::ZERO);
        Nanos(longest.max(PERIOD_LATENCY_MIN).0 * 2).min(PERIOD_MAX)
    }
}

impl Default for IoCostQos {
    fn default() -> Self {
        IoCostQos::AUTOMATIC
    }
}

impl fmt::Display for IoCostQos {
    /// A line of `io.cost.qos`, without the device number in front.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ctrl = if self.is_automatic { "auto" } else { "user" };
        write!(f, "enable={} ctrl={ctrl}", u8::from(self.is_enabled))?;
        write!(f, " rpct={} rlat={}", self.read_percentile, self.read_latency_us)?;
        write!(f, " wpct={} wlat={}", self.write_percentile, self.write_latency_us)?;
        write!(f, " min={} max={}", self.rate_min, self.rate_max)
    }
}
