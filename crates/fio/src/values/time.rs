//! Parses times.

use hoistway_blk::ground::Nanos;

use super::Refusal;
use super::number::leading_number;
use crate::error::quoted;

/// The unit of a time without a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimeUnit {
    Seconds,
    Milliseconds,
    Microseconds,
}

/// A time: a number and an optional unit d, h, m, s, ms or us. A number without a unit is in `unit`.
pub(crate) fn time(text: &str, unit: TimeUnit) -> Result<Nanos, Refusal> {
    const EXPECTED: &str = "expected a number with one unit of d, h, m, s, ms, us";
    let (number, suffix) = leading_number(text).map_err(|e| e.with_hint(EXPECTED))?;
    let factor_ns: u64 = match suffix.to_ascii_lowercase().as_str() {
        "" => match unit {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Microseconds => 1_000,
        },
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        "d" => 86_400 * 1_000_000_000,
        rest => {
            let hint = if rest.contains(|c: char| c.is_ascii_digit()) && !rest.starts_with('.') {
                "expected one number and one unit, such as 90m; fio would drop what follows the first unit"
            } else {
                EXPECTED
            };
            return Err(Refusal::new(format!("{} is not a time", quoted(text))).with_hint(hint));
        }
    };
    let span_ns = number.checked_mul(factor_ns).filter(|&ns| ns <= MAX_NS);
    span_ns.map(Nanos).ok_or_else(|| Refusal::new(format!("{} is longer than ten years", quoted(text))))
}

/// Ten years, ns: far longer than any run, and sums of times do not overflow.
const MAX_NS: u64 = 3_653 * 86_400 * 1_000_000_000;

/// Parses a delay in seconds, or a range `low-high` of delays.
pub(crate) fn delay_range(text: &str) -> Result<(Nanos, Nanos), Refusal> {
    let (low, high) = match text.split_once('-') {
        Some((low, high)) => (time(low.trim(), TimeUnit::Seconds)?, time(high.trim(), TimeUnit::Seconds)?),
        None => {
            let both = time(text, TimeUnit::Seconds)?;
            (both, both)
        }
    };
    Ok((low.min(high), low.max(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_is_minutes_and_a_bare_number_has_the_unit_of_its_option() {
        assert_eq!(time("30", TimeUnit::Seconds), Ok(Nanos::from_secs(30)));
        assert_eq!(time("30", TimeUnit::Microseconds), Ok(Nanos::from_micros(30)));
        assert_eq!(time("2m", TimeUnit::Microseconds), Ok(Nanos::from_secs(120)));
        assert_eq!(time("500MSEC", TimeUnit::Seconds), Ok(Nanos::from_millis(500)));
    }

    #[test]
    fn times_of_two_units_and_fractions_are_refused() {
        for text in ["1h30m", "1.5s", "5x", "", "s", "99999999d"] {
            assert!(time(text, TimeUnit::Seconds).is_err(), "{text}");
        }
        assert!(time("1h30m", TimeUnit::Seconds).unwrap_err().hint.unwrap().contains("90m"));
    }

    #[test]
    fn a_delay_may_be_a_range() {
        assert_eq!(delay_range("0-100ms"), Ok((Nanos::ZERO, Nanos::from_millis(100))));
        assert_eq!(delay_range("5"), Ok((Nanos::from_secs(5), Nanos::from_secs(5))));
    }
}
