//! The text of `io.latency` for one device (IL-1).

use std::fmt;
use std::str::FromStr;

use hoistway_blk::ground::Nanos;

/// The latency target of a cgroup on one device, as `io.latency` holds it after the device number.
///
/// ```
/// use hoistway_cgroup::IoLatencyTarget;
///
/// let target: IoLatencyTarget = "target=2000".parse().unwrap();
/// assert_eq!((target.us, target.to_string()), (2000, "target=2000".to_owned()));
/// assert!("target=2ms".parse::<IoLatencyTarget>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IoLatencyTarget {
    /// The latency that the group should not exceed, us; 0 for no target.
    pub us: u32,
}

/// Why a write to `io.latency` was refused (EINVAL).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IoLatencyError {
    /// The setting, as it was written.
    setting: String,
    /// Where it begins in the text, counted in characters from 1.
    position: usize,
    /// What was expected.
    expected: &'static str,
}

impl IoLatencyTarget {
    /// The target as a duration; `None` if there is none.
    #[must_use]
    pub fn duration(self) -> Option<Nanos> {
        (self.us > 0).then(|| Nanos::from_micros(u64::from(self.us)))
    }
}

impl FromStr for IoLatencyTarget {
    type Err = IoLatencyError;

    fn from_str(text: &str) -> Result<Self, IoLatencyError> {
        let refuse = |setting: &str, expected| {
            let offset = setting.as_ptr() as usize - text.as_ptr() as usize;
            let position = text[..offset].chars().count() + 1;
            IoLatencyError { setting: setting.to_owned(), position, expected }
        };
        let mut words = text.split_ascii_whitespace();
        let Some(setting) = words.next() else { return Err(refuse(text, "expected target=MICROSECONDS")) };
        let digits = setting.strip_prefix("target=").ok_or_else(|| refuse(setting, "expected target=MICROSECONDS"))?;
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let number = if is_number { digits.parse().ok() } else { None };
        let us = number.ok_or_else(|| {
            refuse(setting, "expected a number of microseconds, up to 4294967295, without unit; 0 for no target")
        })?;
        match words.next() {
            Some(other) => Err(refuse(other, "expected nothing after target=MICROSECONDS")),
            None => Ok(IoLatencyTarget { us }),
        }
    }
}

impl fmt::Display for IoLatencyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "target={}", self.us)
    }
}

impl fmt::Display for IoLatencyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at character {}: {}", self.setting, self.position, self.expected)
    }
}

impl std::error::Error for IoLatencyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back() {
        for text in ["target=0", "target=1", "target=75000", "target=4294967295"] {
            assert_eq!(text.parse::<IoLatencyTarget>().unwrap().to_string(), text);
        }
        assert_eq!(IoLatencyTarget { us: 0 }.duration(), None);
        assert_eq!(IoLatencyTarget { us: 5 }.duration(), Some(Nanos(5000)));
    }

    #[test]
    fn anything_else_is_refused_with_its_position() {
        for (text, words) in [
            ("", "\"\" at character 1: expected target=MICROSECONDS"),
            ("2000", "\"2000\" at character 1: expected target=MICROSECONDS"),
            ("target=", "\"target=\" at character 1: expected a number of microseconds"),
            ("  target=2ms", "\"target=2ms\" at character 3: expected a number of microseconds"),
            ("target=-1", "up to 4294967295"),
            ("target=4294967296", "up to 4294967295"),
            ("target=5 x=1", "\"x=1\" at character 10: expected nothing"),
        ] {
            let error = text.parse::<IoLatencyTarget>().expect_err(text).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
