//! The text of `io.cost.qos` and `io.cost.model` (IC-4 to IC-6).

use std::fmt;

use super::model::IoCostModel;
use super::qos::{IoCostQos, Percent};

/// The range of the bounds of the rate, percent.
const RATE_BOUNDS: (Percent, Percent) = (Percent(100), Percent(1_000_000));

/// The content of both files of a device.
///
/// ```
/// use hoistway_cgroup::IoCostSettings;
///
/// let mut settings = IoCostSettings::default();
/// settings.update("enable=1 rpct=95 rlat=5000 min=50").unwrap();
/// assert_eq!(
///     settings.qos.to_string(),
///     "enable=1 ctrl=user rpct=95.00 rlat=5000 wpct=95.00 wlat=150000 min=50.00 max=150.00"
/// );
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IoCostSettings {
    /// `io.cost.qos`.
    pub qos: IoCostQos,
    /// `io.cost.model`.
    pub model: IoCostModel,
}

/// Why a write to `io.cost.qos` or `io.cost.model` was refused (EINVAL).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IoCostError {
    /// The setting, as it was written.
    setting: String,
    /// Where it begins in the text, counted in characters from 1.
    position: usize,
    /// What was expected.
    expected: &'static str,
}

/// The file that a key belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum File {
    Qos,
    Model,
    /// `ctrl` is in both.
    Either,
}

fn file_of(key: &str) -> Option<File> {
    match key {
        "enable" | "rpct" | "rlat" | "wpct" | "wlat" | "min" | "max" => Some(File::Qos),
        "ctrl" => Some(File::Either),
        "model" => Some(File::Model),
        _ if IoCostModel::KEYS.contains(&key) => Some(File::Model),
        _ => None,
    }
}

impl IoCostSettings {
    /// Checks that a setting belongs to the file of this name, `qos` or `model`.
    ///
    /// # Errors
    /// If it belongs to the other file.
    pub fn check_file(file: &str, setting: &str) -> Result<(), IoCostError> {
        let is_of_model = matches!(setting.split('=').next().and_then(file_of), Some(File::Model));
        if is_of_model != (file == "model") {
            let expected = if is_of_model { "is a setting of io.cost.model" } else { "is no setting of io.cost.model" };
            return Err(IoCostError { setting: setting.to_owned(), position: 1, expected });
        }
        Ok(())
    }

    /// Applies the text of a write to either file after the device number, or to both at once: settings in any order. A `ctrl` in a
    /// text for both files belongs to the file of the setting after it, and if another `ctrl` or nothing follows, to that of the one
    /// before it. Parameters that are not named keep their value; naming one means `ctrl=user`.
    ///
    /// # Errors
    /// If one of the settings is refused. Then none is applied.
    pub fn update(&mut self, text: &str) -> Result<(), IoCostError> {
        let mut updated = *self;
        let words: Vec<(usize, &str)> = words(text).collect();
        let file = |index: usize| words.get(index).and_then(|(_, word)| file_of(word.split('=').next()?));
        let mut min_and_max = 0;
        for (index, &(position, setting)) in words.iter().enumerate() {
            let refuse = |expected| IoCostError { setting: setting.to_owned(), position, expected };
            let (key, value) = setting.split_once('=').ok_or_else(|| refuse("expected KEY=VALUE"))?;
            let file = match file(index) {
                Some(File::Either) => {
                    let is_known = |&file: &File| file != File::Either;
                    let before = || (0..index).rev().find_map(|index| file(index).filter(is_known));
                    file(index + 1).filter(is_known).or_else(before).unwrap_or(File::Qos)
                }
                Some(file) => file,
                None => return Err(refuse(EXPECTED_KEYS)),
            };
            match file {
                File::Model => updated.model.set(key, value),
                _ => updated.qos.set(key, value),
            }
            .map_err(refuse)?;
            if matches!(key, "min" | "max") {
                min_and_max = index;
            }
        }
        if updated.qos.rate_min > updated.qos.rate_max {
            let (position, setting) = words[min_and_max];
            return Err(IoCostError { setting: setting.to_owned(), position, expected: "expected min up to max" });
        }
        *self = updated;
        Ok(())
    }
}

const EXPECTED_KEYS: &str = "expected enable, ctrl, rpct, rlat, wpct, wlat, min or max of io.cost.qos, or ctrl, model, rbps, \
                             rseqiops, rrandiops, wbps, wseqiops or wrandiops of io.cost.model";

/// The words of a text, with their positions in characters from 1.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_ascii_whitespace().map(move |word| {
        let offset = word.as_ptr() as usize - text.as_ptr() as usize;
        (text[..offset].chars().count() + 1, word)
    })
}

impl IoCostQos {
    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        let percentile = || {
            let percent = Percent::parse(value).filter(|&percent| percent <= Percent::WHOLE);
            percent.ok_or("expected a percentile from 0 to 100 with at most two decimals")
        };
        let microseconds =
            || decimal::<u32>(value).ok_or("expected a number of microseconds, up to 4294967295, without unit");
        let bound = || {
            let percent = Percent::parse(value).filter(|percent| (RATE_BOUNDS.0..=RATE_BOUNDS.1).contains(percent));
            percent.ok_or("expected a percentage from 1 to 10000 with at most two decimals")
        };
        match key {
            "enable" => match value {
                "0" => self.is_enabled = false,
                "1" => self.is_enabled = true,
                _ => return Err("expected 0 or 1"),
            },
            "ctrl" => match value {
                "auto" => *self = IoCostQos { is_enabled: self.is_enabled, ..IoCostQos::AUTOMATIC },
                "user" => self.is_automatic = false,
                _ => return Err("expected auto or user"),
            },
            "rpct" => self.read_percentile = percentile()?,
            "rlat" => self.read_latency_us = microseconds()?,
            "wpct" => self.write_percentile = percentile()?,
            "wlat" => self.write_latency_us = microseconds()?,
            "min" => self.rate_min = bound()?,
            _ => self.rate_max = bound()?,
        }
        self.is_automatic &= matches!(key, "enable" | "ctrl");
        Ok(())
    }
}

impl IoCostModel {
    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match (key, value) {
            ("ctrl", "auto") => *self = IoCostModel::default(),
            ("ctrl", "user") | ("model", "linear") => {}
            ("ctrl", _) => return Err("expected auto or user"),
            ("model", _) => return Err("expected linear, the only model"),
            _ => {
                let figure = decimal::<u64>(value).filter(|&figure| figure > 0);
                let figure = figure.ok_or("expected a number of at least 1 per second, without unit")?;
                let index = IoCostModel::KEYS.iter().position(|&other| other == key);
                if let Some(index) = index {
                    self.figures[index] = Some(figure);
                }
            }
        }
        Ok(())
    }
}

/// A number of decimal digits.
fn decimal<N: std::str::FromStr>(text: &str) -> Option<N> {
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_decimal { text.parse().ok() } else { None }
}

impl fmt::Display for IoCostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IoCostError { setting, position, expected } = self;
        write!(f, "io.cost: \"{setting}\" at character {position}: {expected} (EINVAL)")
    }
}

impl std::error::Error for IoCostError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io_cost::model::CostModel;
    use proptest::prelude::*;

    fn settings(text: &str) -> IoCostSettings {
        let mut settings = IoCostSettings::default();
        settings.update(text).expect(text);
        settings
    }

    fn refused(text: &str) -> String {
        let before = settings("enable=1 rlat=7");
        let mut after = before;
        let error = after.update(text).expect_err(text);
        assert_eq!(after, before, "all or nothing");
        error.to_string()
    }

    const MODEL: &str = "model=linear rbps=6 rseqiops=5 rrandiops=4 wbps=3 wseqiops=2 wrandiops=1";

    #[test]
    fn both_files_may_be_written_together_in_any_order() {
        let both = settings(&format!("enable=1 ctrl=auto ctrl=user {MODEL}"));
        assert!(both.qos.is_automatic && both.qos.is_enabled);
        let separate = {
            let mut separate = settings("enable=1");
            separate.update(&format!("ctrl=user {MODEL}")).unwrap();
            separate
        };
        assert_eq!(both, separate);
        let turned = settings("wrandiops=1 wseqiops=2 wbps=3 rrandiops=4 rseqiops=5 rbps=6 model=linear enable=1");
        assert_eq!(both, turned);
        assert_eq!(both.model.resolve(None).unwrap().to_string(), format!("ctrl=user {MODEL}"));
    }

    #[test]
    fn a_ctrl_belongs_to_the_file_of_its_neighbour() {
        let of_qos = settings("rlat=5 rbps=9 ctrl=auto enable=1");
        assert_eq!((of_qos.qos.read_latency_us, of_qos.model.figures[0]), (75_000, Some(9)));
        let of_model = settings("rlat=5 rbps=9 ctrl=auto");
        assert_eq!((of_model.qos.read_latency_us, of_model.model.figures[0]), (5, None));
        assert_eq!(settings("ctrl=auto"), IoCostSettings::default());
    }

    #[test]
    fn a_parameter_makes_the_control_the_users_and_auto_restores_the_defaults() {
        let mut changed = settings("enable=1 max=10000.00 min=1 rpct=0 wpct=100 wlat=0");
        assert_eq!(
            changed.qos.to_string(),
            "enable=1 ctrl=user rpct=0.00 rlat=75000 wpct=100.00 wlat=0 min=1.00 max=10000.00"
        );
        changed.update("enable=0").unwrap();
        assert!(!changed.qos.is_automatic);
        changed.update("ctrl=auto").unwrap();
        assert_eq!(changed.qos, IoCostQos::AUTOMATIC);
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_position_and_nothing_changes() {
        assert_eq!(
            refused("enable=1  rpct=101"),
            "io.cost: \"rpct=101\" at character 11: expected a percentile from 0 to 100 with at most two decimals (EINVAL)"
        );
        for (text, part) in [
            ("enable=2", "0 or 1"),
            ("ctrl=kernel", "auto or user"),
            ("model=cubic", "linear"),
            ("rbps=0", "at least 1"),
            ("rbps=1G", "without unit"),
            ("rlat=5ms", "microseconds"),
            ("rlat=4294967296", "microseconds"),
            ("min=0.99", "1 to 10000"),
            ("max=10000.01", "1 to 10000"),
            ("rpct=95.001", "two decimals"),
            ("min=60 max=50", "min up to max"),
            ("max=40", "min up to max"),
            ("rlat", "KEY=VALUE"),
            ("weight=5", "of io.cost.model"),
            ("RPCT=5", "of io.cost.qos"),
        ] {
            assert!(refused(text).contains(part), "{text}: {}", refused(text));
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(
            percentiles in (0..=10_000_u32, 0..=10_000_u32), latencies in any::<(u32, u32)>(),
            bounds in (100..=1_000_000_u32, 100..=1_000_000_u32), is_enabled in any::<bool>(),
            figures in prop::array::uniform6(1..=u64::MAX),
        ) {
            let qos = IoCostQos {
                is_enabled,
                is_automatic: false,
                read_percentile: Percent(percentiles.0),
                read_latency_us: latencies.0,
                write_percentile: Percent(percentiles.1),
                write_latency_us: latencies.1,
                rate_min: Percent(bounds.0.min(bounds.1)),
                rate_max: Percent(bounds.0.max(bounds.1)),
            };
            let [rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops] = figures;
            let model = CostModel { rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops };
            let read = settings(&format!("{qos} {model}"));
            prop_assert_eq!(read.qos, qos);
            prop_assert_eq!(read.model.resolve(None), Ok(model));
        }
    }
}
