//! What half and double of a number that nobody has measured does to a table.

use hoistway_device::{Preset, PresetError};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::cell::{Cell, median};
use crate::comparison::{Devices, Profile};

/// A number of a device that no source tells: its section and key in the preset, such as `shape.hw_queues`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown(pub &'static str);

/// An unknown with another value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// Which.
    pub unknown: Unknown,
    /// So many times what the preset says.
    pub factor: f64,
}

/// A table with another value of an unknown.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sensitivity {
    /// Section and key of the preset.
    pub key: String,
    /// What the preset says.
    pub usual: f64,
    /// What was taken instead.
    pub value: f64,
    /// The table's cells, in their order.
    pub cells: Vec<Cell>,
}

impl Change {
    /// This preset with the change, and the value before and after it. None if it has no such number.
    pub(super) fn of_preset(self, name: &str) -> Result<Option<(Devices, [f64; 2])>, PresetError> {
        Ok(self.apply(name, &Preset::builtin_toml(name)?))
    }

    /// The same of a device in TOML.
    pub(super) fn apply(self, name: &str, device: &str) -> Option<(Devices, [f64; 2])> {
        let mut device: Table = device.parse().ok()?;
        // What the preset says of its own errors holds for its own numbers.
        if let Some(Value::Table(calibration)) = device.get_mut("calibration") {
            calibration.remove("residuals");
        }
        let mut keys = self.unknown.0.split('.');
        let first = device.get_mut(keys.next()?);
        let value = keys.try_fold(first, |at, key| Some(at?.as_table_mut()?.get_mut(key)))??;
        let usual = match value {
            Value::Integer(number) => *number as f64,
            Value::Float(number) => *number,
            _ => return None,
        };
        let changed = usual * self.factor;
        // Some parameters have to be whole numbers.
        *value = if changed.fract() == 0.0 { Value::Integer(changed as i64) } else { Value::Float(changed) };
        let name = format!("{name} with {} = {changed}", self.unknown.0);
        let profile = Profile::Text { name, text: device.to_string() };
        Some((Devices { common: Some(profile), ..Devices::default() }, [usual, changed]))
    }
}

impl Sensitivity {
    /// The median of the errors of all cells that something is claimed of, a fraction; none if nobody is.
    #[must_use]
    pub fn median_error(cells: &[Cell]) -> Option<f64> {
        let judged = cells.iter().filter(|cell| cell.within.is_some());
        let errors: Vec<f64> = judged.filter_map(|cell| cell.error.map(f64::abs)).collect();
        (!errors.is_empty()).then(|| median(errors))
    }

    /// The cell that moves most, of those that were not calibrated on, as it was and as it is.
    #[must_use]
    pub fn moved_most<'a>(&'a self, usual: &'a [Cell]) -> Option<[&'a Cell; 2]> {
        let moved = |[before, after]: &[&Cell; 2]| (after.ours / before.ours).ln().abs();
        let pairs = usual.iter().zip(&self.cells).filter(|(before, _)| !before.calibration);
        let pairs = pairs.map(|(before, after)| [before, after]).filter(|pair| moved(pair).is_finite());
        pairs.max_by(|one, other| moved(one).total_cmp(&moved(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::Judgement;
    use super::super::{TABLES, Table};
    use super::*;

    #[test]
    fn a_change_is_of_the_one_number_and_the_device_can_still_be_read() {
        let change = Change { unknown: Unknown("shape.hw_queues"), factor: 0.5 };
        let (devices, values) = change.of_preset("micron-9100-1600gb").unwrap().unwrap();
        assert_eq!(values, [12.0, 6.0]);
        let Some(Profile::Text { text, .. }) = devices.common else { unreachable!() };
        let changed = Preset::from_toml(&text, "changed.toml").unwrap();
        let usual = Preset::builtin("micron-9100-1600gb").unwrap();
        assert_eq!(changed.shape().hw_queues, 6);
        assert_eq!(changed.parameters(), usual.parameters());
        assert!(change.of_preset("no-such-drive").is_err());
        let none = Change { unknown: Unknown("hdd.buffer_kib"), factor: 2.0 };
        assert_eq!(none.of_preset("micron-9100-1600gb").unwrap(), None);
    }

    #[test]
    fn every_unknown_of_a_table_is_a_number_of_its_device_with_half_and_double_of_it() {
        for Table { name, unknowns, device, .. } in TABLES {
            for &unknown in *unknowns {
                for factor in [0.5, 2.0] {
                    let changed = Change { unknown, factor }.of_preset(device).unwrap();
                    let (devices, values) = changed.unwrap_or_else(|| panic!("{name}: {unknown:?}"));
                    let Some(Profile::Text { text, .. }) = devices.common else { unreachable!() };
                    Preset::from_toml(&text, "changed.toml")
                        .unwrap_or_else(|error| panic!("{name}, {unknown:?}: {error}"));
                    assert!((values[1] / values[0] - factor).abs() < 0.01, "{name}, {unknown:?}: {values:?}");
                }
            }
        }
    }

    #[test]
    fn the_cell_that_moves_most_is_none_that_was_calibrated_on() {
        let cells = |figures: [f64; 3]| -> Vec<Cell> {
            let judgements = [Judgement::Calibration, Judgement::Error(0.1), Judgement::Error(0.1)];
            let of = |(figure, judgement): (f64, Judgement)| Cell::new("row", "IOPS", figure, Some(100.0), judgement);
            figures.into_iter().zip(judgements).map(of).collect()
        };
        let usual = cells([100.0, 100.0, 110.0]);
        let changed =
            Sensitivity { key: "shape.hw_queues".into(), usual: 8.0, value: 4.0, cells: cells([900.0, 80.0, 109.0]) };
        let [before, after] = changed.moved_most(&usual).unwrap();
        assert_eq!((before.ours, after.ours), (100.0, 80.0));
        assert!((Sensitivity::median_error(&changed.cells).unwrap() - 0.145).abs() < 1e-9);
    }
}
