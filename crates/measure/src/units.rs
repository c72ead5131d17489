//! Formats numbers with units for tables and sentences: rates, times and differences with three significant digits.
//!
//! Used by: crates `render`, `experiment`, `program`.
//! Tests: below, `crates/measure/tests/fio_output.rs`.

/// A size: `4 KiB`, `1.5 MiB`.
#[must_use]
pub fn size_in_words(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes >= 1_048_576.0 => (bytes / 1_048_576.0, "MiB"),
        bytes if bytes >= 1024.0 => (bytes / 1024.0, "KiB"),
        bytes => (bytes, "B"),
    };
    if value.fract() == 0.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

/// IOPS: `38.4 k`.
#[must_use]
pub fn rate(per_second: f64) -> String {
    scaled(per_second, 1000.0, ["", " k", " M", " G"])
}

/// Bandwidth: `152 MiB/s`.
#[must_use]
pub fn bandwidth(bytes_per_second: f64) -> String {
    scaled(bytes_per_second, 1024.0, [" B/s", " KiB/s", " MiB/s", " GiB/s"])
}

/// Latency: `1.25 ms`. ASCII writes `us` for microseconds.
#[must_use]
pub fn latency(ns: f64, ascii: bool) -> String {
    scaled(ns, 1000.0, [" ns", if ascii { " us" } else { " µs" }, " ms", " s"])
}

/// Duration in seconds: `2.50 s`.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    // Times that would be shown as about 0.00 s are in ms.
    if seconds.abs() < 0.0995 && seconds != 0.0 {
        format!("{} ms", three_digits(seconds * 1e3))
    } else {
        format!("{} s", three_digits(seconds))
    }
}

/// A difference, given as a fraction: `+12.3%`.
#[must_use]
pub fn difference(fraction: f64) -> String {
    let percent = fraction * 100.0;
    // No sign if the digits show no difference.
    if percent.abs() < 0.05 { "0.0%".to_owned() } else { format!("{percent:+.*}%", decimals_of_difference(percent)) }
}

/// More decimals close to -100 %, so that a decrease of nearly everything is not shown as -100 %.
fn decimals_of_difference(percent: f64) -> usize {
    const MAX: i32 = 6;
    let remaining = percent + 100.0;
    if remaining <= 0.0 || remaining >= 0.05 {
        return decimals(percent);
    }
    (2..=MAX).find(|&decimals| remaining >= 0.5 * 0.1_f64.powi(decimals)).unwrap_or(MAX) as usize
}

/// A factor: `2.4`.
#[must_use]
pub fn times(factor: f64) -> String {
    three_digits(factor)
}

/// A spread, given as a fraction: `±1.2%`.
#[must_use]
pub fn spread(fraction: f64, ascii: bool) -> String {
    let percent = fraction * 100.0;
    format!("{}{percent:.*}%", if ascii { "+-" } else { "±" }, decimals(percent))
}

/// Percentages have one decimal up to 100 and none above.
fn decimals(percent: f64) -> usize {
    usize::from(percent.abs() < 99.95)
}

/// The value in the largest unit that leaves at least 1 before the decimal point; the last unit has no limit.
fn scaled(mut value: f64, step: f64, units: [&str; 4]) -> String {
    let mut unit = 0;
    // Half a unit less, because it would be rounded up to the next step.
    while value >= step - 0.5 && unit < units.len() - 1 {
        value /= step;
        unit += 1;
    }
    format!("{}{}", three_digits(value), units[unit])
}

fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_at_most_one_decimal() {
        assert_eq!([512.0, 4096.0, 1536.0, 2_097_152.0].map(size_in_words), ["512 B", "4 KiB", "1.5 KiB", "2 MiB"]);
    }

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(1.0), "1.00");
        assert_eq!(rate(999.4), "999");
        assert_eq!(rate(999.5), "1.00 k");
        assert_eq!(rate(38_449.0), "38.4 k");
        assert_eq!(rate(2.5e6), "2.50 M");
        assert_eq!(bandwidth(1000.0 * 1024.0), "1000 KiB/s");
        assert_eq!(bandwidth(152.4 * 1048576.0), "152 MiB/s");
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(0.002), "2.00 ms");
        assert_eq!(seconds(0.0994), "99.4 ms");
        assert_eq!(seconds(0.0996), "0.10 s");
        assert_eq!(seconds(2.5), "2.50 s");
        assert_eq!(latency(9.994, false), "9.99 ns");
        assert_eq!(latency(9.996, false), "10.0 ns");
        assert_eq!(latency(1_250_000.0, false), "1.25 ms");
        assert_eq!(latency(45_000.0, false), "45.0 µs");
        assert_eq!(latency(45_000.0, true), "45.0 us");
        assert_eq!(latency(1.7e13, false), "17000 s");
        assert_eq!(seconds(2.0), "2.00 s");
    }

    #[test]
    fn differences_have_a_sign_if_there_is_one() {
        assert_eq!(difference(0.1234), "+12.3%");
        assert_eq!(difference(-0.5), "-50.0%");
        assert_eq!(difference(-0.0004), "0.0%");
        assert_eq!(difference(2.5), "+250%");
        assert_eq!(spread(0.0123, false), "±1.2%");
        assert_eq!(spread(0.0, true), "+-0.0%");
    }

    #[test]
    fn a_difference_close_to_minus_100_percent_is_not_rounded_to_it() {
        assert_eq!(difference(-1.0), "-100%");
        // 75.5 ms -> 16.3 us.
        assert_eq!(difference(16.3 / 75_500.0 - 1.0), "-99.98%");
        assert_eq!(difference(-0.999_94), "-99.99%");
        assert_eq!(difference(-0.999_999_9), "-99.99999%");
        assert_eq!(difference(-0.999_4), "-99.9%");
        assert_eq!(difference(-0.999_51), "-99.95%");
    }
}
