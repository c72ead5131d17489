//! Sensitivity analysis: the effect on a table of changing one unmeasured parameter.

use hoistway_device::{Preset, PresetError};
use hoistway_sim::Host;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::cell::{Cell, median};
use hoistway_experiment::Profile;

/// An unmeasured parameter: for a device its section and key in the preset, such as `shape.hw_queues`; for a host
/// `host.` and the key in its profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown(pub &'static str);

/// Prefix of the keys of a host's parameters.
const HOST_PREFIX: &str = "host.";

/// A change of an unmeasured parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Variation {
    /// The parameter.
    pub unknown: Unknown,
    /// Its new value.
    pub to: To,
}

/// A new value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum To {
    /// A multiple of the profile's value.
    Times(f64),
    /// An absolute value.
    Value(f64),
}

impl To {
    fn apply(self, default_value: f64) -> f64 {
        match self {
            To::Times(factor) => default_value * factor,
            To::Value(value) => value,
        }
    }

    /// Changes a number, or each number of a range. Returns it before and after; for a range the first one.
    fn set(self, value: &mut Value) -> Option<[f64; 2]> {
        let default_value = match value {
            Value::Integer(number) => *number as f64,
            Value::Float(number) => *number,
            Value::Array(range) => {
                let all: Option<Vec<_>> = range.iter_mut().map(|number| self.set(number)).collect();
                return all?.first().copied();
            }
            _ => return None,
        };
        let changed = self.apply(default_value);
        // Some parameters must be integers.
        *value = if changed.fract() == 0.0 { Value::Integer(changed as i64) } else { Value::Float(changed) };
        Some([default_value, changed])
    }
}

/// The cells of a table with one changed parameter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sensitivity {
    /// Section and key of the preset, or `host.` and the key of the host's profile.
    pub key: String,
    /// The value in the profile.
    #[serde(rename = "usual")]
    pub default_value: f64,
    /// The changed value.
    pub value: f64,
    /// The table's cells, in order.
    pub cells: Vec<Cell>,
}

impl Variation {
    /// A built-in device with the change, and the values before and after; `None` if it has no such parameter.
    pub(super) fn changed_preset(self, name: &str) -> Result<Option<(Profile, [f64; 2])>, PresetError> {
        self.changed_device(&Profile::Named(name.to_owned()))
    }

    /// A device with the change, and the values before and after; `None` if it has no such parameter.
    pub(super) fn changed_device(self, device: &Profile) -> Result<Option<(Profile, [f64; 2])>, PresetError> {
        if self.concerns_host() {
            return Ok(None);
        }
        Ok(match device {
            Profile::Named(name) => self.apply(name, &Preset::builtin_toml(name)?, self.unknown.0),
            Profile::Text { name, text } => self.apply(name, text, self.unknown.0),
        })
    }

    /// A host with the change, and the values before and after; `None` if it has no such parameter.
    pub(super) fn changed_host(self, profile: &Profile) -> Option<(Profile, [f64; 2])> {
        let key = self.unknown.0.strip_prefix(HOST_PREFIX)?;
        match profile {
            Profile::Named(name) => self.apply(name, Host::builtin_toml(name).ok()?, key),
            Profile::Text { name, text } => self.apply(name, text, key),
        }
    }

    /// The changed profile of a table's device or host, and the values before and after; `None` if it has no such
    /// parameter.
    pub(super) fn changed_profile(self, table: &super::Table) -> Option<(Profile, [f64; 2])> {
        if self.concerns_host() {
            let named = || Profile::Named("server".to_owned());
            let text =
                |text: &str| Profile::Text { name: format!("the host of {}", table.name), text: text.to_owned() };
            return self.changed_host(&table.host.map_or_else(named, text));
        }
        self.changed_preset(table.device).ok()?
    }

    fn concerns_host(self) -> bool {
        self.unknown.0.starts_with(HOST_PREFIX)
    }

    /// A profile in TOML with a changed value of this key.
    fn apply(self, name: &str, text: &str, key: &str) -> Option<(Profile, [f64; 2])> {
        let mut profile: Table = text.parse().ok()?;
        // A preset's residuals apply only to its original numbers.
        if let Some(Value::Table(calibration)) = profile.get_mut("calibration") {
            calibration.remove("residuals");
        }
        let mut keys = key.split('.');
        let first = profile.get_mut(keys.next()?);
        let value = keys.try_fold(first, |table, key| Some(table?.as_table_mut()?.get_mut(key)))??;
        let values = self.to.set(value)?;
        let name = format!("{name} with {} = {}", self.unknown.0, values[1]);
        Some((Profile::Text { name, text: profile.to_string() }, values))
    }
}

impl Sensitivity {
    /// The median error of all judged cells, as a fraction; `None` if there are none.
    #[must_use]
    pub fn median_error(cells: &[Cell]) -> Option<f64> {
        let judged = cells.iter().filter(|cell| cell.holds.is_some());
        let errors: Vec<f64> = judged.filter_map(|cell| cell.error.map(f64::abs)).collect();
        (!errors.is_empty()).then(|| median(errors))
    }

    /// The cell that changes most among those not used for calibration, before and after.
    #[must_use]
    pub fn most_changed_cell<'a>(&'a self, baseline: &'a [Cell]) -> Option<[&'a Cell; 2]> {
        let log_change = |[before, after]: &[&Cell; 2]| (after.ours / before.ours).ln().abs();
        let pairs = baseline.iter().zip(&self.cells).filter(|(before, _)| !before.calibration);
        let pairs = pairs.map(|(before, after)| [before, after]).filter(|pair| log_change(pair).is_finite());
        pairs.max_by(|left, right| log_change(left).total_cmp(&log_change(right)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::Judgement;
    use super::super::{TABLES, Table};
    use super::*;

    #[test]
    fn a_change_is_of_the_one_number_and_the_device_can_still_be_read() {
        let change = Variation { unknown: Unknown("shape.hw_queues"), to: To::Times(0.5) };
        let (profile, values) = change.changed_preset("micron-9100-1600gb").unwrap().unwrap();
        assert_eq!(values, [12.0, 6.0]);
        let Profile::Text { text, .. } = profile else { unreachable!() };
        let changed = Preset::from_toml(&text, "changed.toml").unwrap();
        let usual = Preset::builtin("micron-9100-1600gb").unwrap();
        assert_eq!(changed.shape().hw_queues, 6);
        assert_eq!(changed.parameters(), usual.parameters());
        assert!(change.changed_preset("no-such-drive").is_err());
        let none = Variation { unknown: Unknown("hdd.buffer_kib"), to: To::Times(2.0) };
        assert_eq!(none.changed_preset("micron-9100-1600gb").unwrap(), None);
    }

    /// The text of a profile with the change, and the values before and after.
    fn text(table: &Table, change: Variation) -> Option<(String, [f64; 2])> {
        let (profile, values) = change.changed_profile(table)?;
        let Profile::Text { text, .. } = profile else { unreachable!() };
        Some((text, values))
    }

    #[test]
    fn every_unknown_of_a_table_is_a_number_of_its_device_or_host_with_half_and_double_of_it() {
        for table in TABLES {
            for change in table.changes() {
                let Unknown(key) = change.unknown;
                let (text, values) = text(table, change).unwrap_or_else(|| panic!("{}: {key}", table.name));
                let read = if change.concerns_host() {
                    Host::from_toml(&text, "changed.toml").map(drop).map_err(|error| error.to_string())
                } else {
                    Preset::from_toml(&text, "changed.toml").map(drop).map_err(|error| error.to_string())
                };
                read.unwrap_or_else(|error| panic!("{}, {key}: {error}", table.name));
                assert!((change.to.apply(values[0]) / values[1] - 1.0).abs() < 0.01, "{}, {key}", table.name);
                assert_ne!(values[0], values[1], "{}, {key}", table.name);
            }
        }
    }

    #[test]
    fn every_table_names_unknowns_to_halve_and_double() {
        for table in TABLES {
            assert!(!table.unknowns.is_empty(), "{}", table.name);
        }
    }

    #[test]
    fn a_value_is_taken_as_it_is() {
        let change = Variation { unknown: Unknown("flash.fetches_commands"), to: To::Value(160.0) };
        let (_, values) = change.changed_preset("samsung-980pro-1tb").unwrap().unwrap();
        assert_eq!(values, [224.0, 160.0]);
    }

    #[test]
    fn the_cell_that_moves_most_excludes_calibration_cells() {
        let cells = |figures: [f64; 3]| -> Vec<Cell> {
            let judgements = [Judgement::Calibration, Judgement::Error(0.1), Judgement::Error(0.1)];
            let of = |(figure, judgement): (f64, Judgement)| Cell::new("row", "IOPS", figure, Some(100.0), judgement);
            figures.into_iter().zip(judgements).map(of).collect()
        };
        let usual = cells([100.0, 100.0, 110.0]);
        let changed = Sensitivity {
            key: "shape.hw_queues".into(),
            default_value: 8.0,
            value: 4.0,
            cells: cells([900.0, 80.0, 109.0]),
        };
        let [before, after] = changed.most_changed_cell(&usual).unwrap();
        assert_eq!((before.ours, after.ours), (100.0, 80.0));
        assert!((Sensitivity::median_error(&changed.cells).unwrap() - 0.145).abs() < 1e-9);
    }
}
