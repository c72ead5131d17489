//! The parameters of device models that can be fitted, and presets with changed values.

use hoistway_device::{Model, Parameters, Preset, PresetFile};
use toml::{Table, Value};

use super::rows::MeasurementRow;

/// The rows that determine a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DeterminedBy {
    /// Rows with reads.
    Reads,
    /// Rows with reads of more than 4 KiB.
    LargeReads,
    /// Rows with writes.
    Writes,
    /// Rows with writes of more than 4 KiB.
    LargeWrites,
    /// All rows.
    Any,
}

/// Parameters of the generic flash drive.
const FLASH: &[(&str, DeterminedBy)] = &[
    ("command_us", DeterminedBy::Any),
    ("read_us", DeterminedBy::Reads),
    ("dies", DeterminedBy::Reads),
    ("read_mb_per_s", DeterminedBy::LargeReads),
    ("acknowledge_us", DeterminedBy::Writes),
    ("program_us", DeterminedBy::Writes),
    ("write_mb_per_s", DeterminedBy::LargeWrites),
];
/// Parameters of a SATA SSD with one serial stage.
const SSD: &[(&str, DeterminedBy)] = &[
    ("serial_stage_us", DeterminedBy::Any),
    ("flash_read_us", DeterminedBy::Reads),
    ("acknowledge_us", DeterminedBy::Writes),
    ("transfer_mb_per_s", DeterminedBy::LargeReads),
];
/// Parameters of a rotating disk; its rotation speed and zones are in the data sheet.
const HDD: &[(&str, DeterminedBy)] =
    &[("seek_average_ms", DeterminedBy::Reads), ("outer_mb_per_s", DeterminedBy::LargeReads)];
/// Parameters of an Optane drive: channels behind one stage.
const OPTANE: &[(&str, DeterminedBy)] = &[
    ("read_command_us", DeterminedBy::Reads),
    ("access_us", DeterminedBy::Any),
    ("channels", DeterminedBy::Any),
    ("read_mb_per_s", DeterminedBy::LargeReads),
    ("write_command_us", DeterminedBy::Writes),
    ("write_mb_per_s", DeterminedBy::LargeWrites),
];

/// A preset whose parameters can be changed.
#[derive(Clone, Debug)]
pub(super) struct AdjustablePreset {
    file: PresetFile,
    /// Name of the model's section.
    section: &'static str,
}

/// A parameter is a number in the model's section, under its name there.
impl AdjustablePreset {
    /// # Errors
    /// If the preset's model has no parameters to fit.
    pub(super) fn new(preset: &Preset) -> Result<Self, String> {
        let section = match preset.parameters() {
            Parameters::Flash(_) => "flash",
            Parameters::Hdd(_) => "hdd",
            Parameters::Optane(_) => "optane",
            Parameters::Ssd(_) => "ssd",
            Parameters::Null(_) | Parameters::Raid(..) | Parameters::Service(_) => {
                return Err(format!("{} has a model without parameters to fit", preset.name));
            }
        };
        let file: PresetFile = preset.clone().into();
        Ok(AdjustablePreset { file, section })
    }

    /// The parameters that loads like those of these rows can determine.
    pub(super) fn determined_by(&self, rows: &[MeasurementRow]) -> Vec<&'static str> {
        let table = match self.file.model {
            Model::Flash => FLASH,
            Model::Ssd => SSD,
            Model::Hdd => HDD,
            Model::Optane => OPTANE,
            Model::Null | Model::Raid | Model::Service => &[],
        };
        table
            .iter()
            .filter(|(_, determined_by)| rows.iter().any(|row| determined_by.includes(row)))
            .map(|(name, _)| *name)
            .collect()
    }

    /// The value of a parameter.
    ///
    /// # Errors
    /// If it is not a positive number in the model's section; the error lists those that are.
    pub(super) fn value(&self, name: &str) -> Result<f64, String> {
        let table = self.table()?;
        let section = table.get(self.section).and_then(Value::as_table);
        let value = section.and_then(|section| section.get(name)).and_then(number).filter(|value| *value > 0.0);
        value.ok_or_else(|| {
            let names = section.into_iter().flatten().filter(|(_, value)| number(value).is_some_and(|n| n > 0.0));
            let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
            format!("`{name}` is not a parameter that can be fitted; expected some of {}", names.join(", "))
        })
    }

    /// The preset with these values of parameters.
    ///
    /// # Errors
    /// If the values are not physically possible.
    pub(super) fn with_values(&self, values: &[(String, f64)]) -> Result<Preset, String> {
        let mut table = self.table()?;
        let section = table.get_mut(self.section).and_then(Value::as_table_mut).ok_or("has no section of its model")?;
        for (name, value) in values {
            let value = match section.get(name) {
                Some(Value::Integer(_)) => Value::Integer(value.round().max(1.0) as i64),
                // More digits would be noise.
                _ => Value::Float(round_to_five_digits(*value)),
            };
            section.insert(name.clone(), value);
        }
        let text = toml::to_string(&table).map_err(|error| error.to_string())?;
        Preset::from_toml(&text, "fitted").map_err(|error| error.to_string())
    }

    fn table(&self) -> Result<Table, String> {
        Table::try_from(&self.file).map_err(|error| error.to_string())
    }

    /// The key of a parameter in the file, including the section.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.section)
    }
}

impl DeterminedBy {
    fn includes(self, row: &MeasurementRow) -> bool {
        let is_large = row.block_bytes > 4096;
        match self {
            DeterminedBy::Any => true,
            DeterminedBy::Reads => row.reads_percent > 0,
            DeterminedBy::LargeReads => row.reads_percent > 0 && is_large,
            DeterminedBy::Writes => row.reads_percent < 100,
            DeterminedBy::LargeWrites => row.reads_percent < 100 && is_large,
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|integer| integer as f64))
}

/// Rounds to five digits.
fn round_to_five_digits(value: f64) -> f64 {
    let scale = 10_f64.powi(4 - value.abs().max(1e-9).log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_changed_and_all_else_stays() {
        let original = Preset::builtin("micron-9100-1600gb").unwrap();
        let adjustable = AdjustablePreset::new(&original).unwrap();
        assert_eq!(adjustable.value("dies"), Ok(48.0));
        let changed = adjustable.with_values(&[("dies".to_owned(), 31.6), ("read_us".to_owned(), 71.234_567)]).unwrap();
        let again = AdjustablePreset::new(&changed).unwrap();
        assert_eq!([again.value("dies"), again.value("read_us")], [Ok(32.0), Ok(71.235)]);
        assert_eq!(again.value("program_us"), adjustable.value("program_us"));
        assert!(adjustable.with_values(&[("read_us".to_owned(), 1e12)]).is_err(), "outside of physics");
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_the_valid_ones() {
        let adjustable = AdjustablePreset::new(&Preset::builtin("micron-9100-1600gb").unwrap()).unwrap();
        let error = adjustable.value("placement").unwrap_err();
        assert!(error.contains("`placement` is not a parameter") && error.contains("program_us"), "{error}");
        assert!(AdjustablePreset::new(&Preset::builtin("null").unwrap()).is_err());
    }
}
