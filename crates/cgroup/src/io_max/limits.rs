//! The rate limits of a group, and their text form.

use std::fmt;

use hoistway_blk::bio::Direction;

/// The limits of a group on one device; `None` is `max`, no limit.
///
/// ```
/// use hoistway_cgroup::IoMax;
///
/// let mut limits = IoMax::default();
/// limits.update("wiops=120 rbps=2097152").unwrap();
/// assert_eq!(limits.to_string(), "rbps=2097152 wbps=max riops=max wiops=120");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IoMax {
    /// Bytes read per second.
    pub rbps: Option<u64>,
    /// Bytes written per second.
    pub wbps: Option<u64>,
    /// Read operations per second.
    pub riops: Option<u32>,
    /// Write operations per second, discards included.
    pub wiops: Option<u32>,
}

/// Why a write to `io.max` was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IoMaxError {
    /// Not one of the four keys (EINVAL).
    UnknownKey(String),
    /// Not `key=number` or `key=max` (EINVAL). Numbers are decimal, without sign or size suffix.
    Malformed(String),
    /// A limit of 1, which the kernel considers a mistake (EINVAL).
    TooSmall(String),
    /// A limit of 0, or one that does not fit into 64 bits (ERANGE).
    Range(String),
}

/// The rate limits of a group in one direction; `None` is no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Bytes per second.
    pub bps: Option<u64>,
    /// Operations per second.
    pub iops: Option<u64>,
}

impl Rate {
    /// Whether nothing is limited.
    pub fn is_unlimited(self) -> bool {
        self.bps.is_none() && self.iops.is_none()
    }
}

impl IoMax {
    /// Parses the text written to `io.max` after the device number: any of `rbps=`, `wbps=`, `riops=`, `wiops=` in any
    /// order, each with a decimal number above 1 or `max`. Keys that are not named keep their value; of a repeated key
    /// the last value counts. Source: CG-9 to CG-14.
    ///
    /// # Errors
    /// If one of the settings is rejected. Then none is applied.
    pub fn update(&mut self, text: &str) -> Result<(), IoMaxError> {
        let mut updated = *self;
        for setting in text.split_ascii_whitespace() {
            updated.set(setting)?;
        }
        *self = updated;
        Ok(())
    }

    fn set(&mut self, setting: &str) -> Result<(), IoMaxError> {
        let malformed = || IoMaxError::Malformed(setting.to_owned());
        let (key, value) = setting.split_once('=').ok_or_else(malformed)?;
        let limit = match value {
            "max" => None,
            digits if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                let limit = digits.parse::<u64>().map_err(|_| IoMaxError::Range(setting.to_owned()))?;
                // The kernel checks for 0 before it checks the key.
                if limit == 0 {
                    return Err(IoMaxError::Range(setting.to_owned()));
                }
                Some(limit)
            }
            _ => return Err(malformed()),
        };
        // The kernel stores `max` as the largest number.
        let bps = limit.filter(|&limit| limit < u64::MAX);
        let iops = limit.and_then(|limit| u32::try_from(limit).ok()).filter(|&limit| limit < u32::MAX);
        match key {
            "rbps" | "wbps" | "riops" | "wiops" if limit == Some(1) => {
                return Err(IoMaxError::TooSmall(setting.to_owned()));
            }
            "rbps" => self.rbps = bps,
            "wbps" => self.wbps = bps,
            "riops" => self.riops = iops,
            "wiops" => self.wiops = iops,
            _ => return Err(IoMaxError::UnknownKey(key.to_owned())),
        }
        Ok(())
    }

    /// The limits of one direction.
    pub(super) fn rate(&self, direction: Direction) -> Rate {
        let (bps, iops) = match direction {
            Direction::Read => (self.rbps, self.riops),
            Direction::Write => (self.wbps, self.wiops),
        };
        Rate { bps, iops: iops.map(u64::from) }
    }
}

impl fmt::Display for IoMax {
    /// All four keys, as a line of `io.max` shows them after the device number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let iops = [self.riops, self.wiops].map(|limit| limit.map(u64::from));
        let limits = [("rbps", self.rbps), (" wbps", self.wbps), (" riops", iops[0]), (" wiops", iops[1])];
        for (key, limit) in limits {
            match limit {
                Some(limit) => write!(f, "{key}={limit}")?,
                None => write!(f, "{key}=max")?,
            }
        }
        Ok(())
    }
}

impl IoMaxError {
    /// The errno that the write returns.
    #[must_use]
    pub const fn errno(&self) -> i32 {
        match self {
            IoMaxError::UnknownKey(_) | IoMaxError::Malformed(_) | IoMaxError::TooSmall(_) => 22,
            IoMaxError::Range(_) => 34,
        }
    }
}

impl fmt::Display for IoMaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoMaxError::UnknownKey(key) => {
                write!(f, "io.max: unknown key \"{key}\" (expected rbps, wbps, riops or wiops; EINVAL)")
            }
            IoMaxError::Malformed(setting) => {
                write!(f, "io.max: \"{setting}\" is not a key with a decimal number or max, as rbps=1048576 (EINVAL)")
            }
            IoMaxError::TooSmall(setting) => write!(f, "io.max: \"{setting}\": the smallest limit is 2 (EINVAL)"),
            IoMaxError::Range(setting) => {
                write!(f, "io.max: \"{setting}\" is out of range (expected 2 or more, or max; ERANGE)")
            }
        }
    }
}

impl std::error::Error for IoMaxError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> i32 {
        let before = IoMax { rbps: Some(7), ..IoMax::default() };
        let mut limits = before;
        let error = limits.update(text).expect_err(text);
        assert_eq!(limits, before, "all or nothing");
        error.errno()
    }

    #[test]
    fn any_subset_of_limits_is_accepted_and_the_others_stay() {
        let mut limits = IoMax::default();
        limits.update("wiops=120  rbps=2097152\n").unwrap();
        assert_eq!(limits.to_string(), "rbps=2097152 wbps=max riops=max wiops=120");
        limits.update("riops=2 rbps=max").unwrap();
        assert_eq!(limits.to_string(), "rbps=max wbps=max riops=2 wiops=120");
        limits.update("").unwrap();
        limits.update("wbps=5 wbps=6").unwrap();
        assert_eq!(limits.to_string(), "rbps=max wbps=6 riops=2 wiops=120");
    }

    #[test]
    fn max_removes_a_limit() {
        let mut limits = IoMax { rbps: Some(9), wbps: Some(9), riops: Some(9), wiops: Some(9) };
        limits.update("rbps=max wbps=max riops=max wiops=max").unwrap();
        assert_eq!(limits, IoMax::default());
    }

    #[test]
    fn printed_limits_read_back() {
        let limits = IoMax { rbps: Some(2), wbps: None, riops: Some(u32::MAX - 1), wiops: None };
        let mut read = IoMax { wbps: Some(3), ..IoMax::default() };
        read.update(&limits.to_string()).unwrap();
        assert_eq!(read, limits);
    }

    #[test]
    fn zero_and_values_beyond_64_bits_are_erange() {
        for text in ["rbps=0", "wiops=0", "rbps=5 wbps=0", "unknown=0", "rbps=18446744073709551616"] {
            assert_eq!(refused(text), 34, "{text}");
        }
    }

    #[test]
    fn one_garbage_unknown_keys_and_size_suffixes_are_einval() {
        for text in ["rbps=1", "riops=1", "rbps", "rbps=", "rbps=fast", "bps=5", "=5", "RBPS=5", "rbps=5 low=7"] {
            assert_eq!(refused(text), 22, "{text}");
        }
        for text in ["rbps=1M", "rbps=1MiB", "rbps=0x10", "rbps=-5", "rbps=+5", "rbps=1.5", "rbps=Max"] {
            assert_eq!(refused(text), 22, "{text}");
        }
    }

    #[test]
    fn an_operation_limit_beyond_32_bits_is_no_limit() {
        let mut limits = IoMax::default();
        limits.update("riops=4294967295 wiops=99999999999 rbps=18446744073709551615").unwrap();
        assert_eq!(limits, IoMax::default());
    }
}
