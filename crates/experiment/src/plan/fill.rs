//! How full the devices are, as their users know it.

use hoistway_device::{Fill, Preset};

use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;

/// How full the devices are, if that was given: `fill_percent`, and with `trimmed` alone nothing.
pub(crate) fn of(options: &Options<'_>) -> Result<Option<Fill>, Error> {
    let comparison = options.comparison;
    if let Some(percent) = comparison.fill_percent.filter(|percent| !(0.0..=100.0).contains(percent)) {
        return Err(options.refuse(Field::FillPercent, format_args!("{percent}%"), "expected 0% to 100%"));
    }
    if comparison.fill_percent.is_none() && !comparison.trimmed {
        return Ok(None);
    }
    let share = comparison.fill_percent.unwrap_or(0.0) / 100.0;
    Ok(Some(Fill { share, is_trimmed: comparison.trimmed }))
}

/// Fills the devices, and says of which nothing depends on it.
pub(super) fn apply(
    options: &Options<'_>,
    devices: Vec<Preset>,
    notices: &mut Vec<String>,
) -> Result<Vec<Preset>, Error> {
    let Some(fill) = of(options)? else { return Ok(devices) };
    let filled: Vec<Option<Preset>> = devices.iter().map(|preset| preset.filled(fill)).collect();
    let unaffected: Vec<&str> =
        devices.iter().zip(&filled).filter(|(_, filled)| filled.is_none()).map(|(preset, _)| &*preset.name).collect();
    let names = unaffected.join(", ");
    if unaffected.len() == devices.len() {
        let problem = format!(
            "nothing of the model of {names} depends on how full it is (expected an SSD whose garbage collection is modelled, such as nvme \
             or sata-ssd)"
        );
        let field = if options.comparison.trimmed { Field::Trimmed } else { Field::FillPercent };
        return Err(Error::new(field, format!("{}: {problem}", options.name(field))));
    }
    if !unaffected.is_empty() {
        notices.push(format!("Nothing of the model of {names} depends on how full it is."));
    }
    notices.push(
        "What collection costs at this fill is reckoned from what was measured of the full drive (docs/devices.md)."
            .to_owned(),
    );
    Ok(devices.into_iter().zip(filled).map(|(preset, filled)| filled.unwrap_or(preset)).collect())
}
