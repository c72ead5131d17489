//! Finds the most similar built-in device model for a device.

use hoistway_device::{Parameters, Preset};
use serde::Serialize;

use super::class::Class;

/// A built-in device model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NearestPreset {
    /// Its name, for `--device`.
    pub name: String,
    /// How it was found.
    pub by: NearestBy,
    /// Maximum random reads of 4 KiB per second; `None` if the parameters do not determine them.
    pub random_reads_per_s: Option<u32>,
}

/// How a model was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NearestBy {
    /// By the name of the device's model.
    Model,
    /// Only by the device's class: figures may be off by a factor.
    Class,
}

/// Cloud volumes, whatever properties they report.
const CLOUD: [&str; 3] = ["Amazon Elastic Block Store", "PersistentDisk", "EphemeralDisk"];

pub(super) fn nearest(class: Class, model: Option<&str>, is_removable: bool) -> Option<NearestPreset> {
    if let Some(name) = model.and_then(by_model) {
        return Some(nearest_preset(name, NearestBy::Model));
    }
    if CLOUD.iter().any(|cloud| model.is_some_and(|model| model.contains(cloud))) {
        return Some(nearest_preset("throttled-cloud-volume", NearestBy::Class));
    }
    let name = match class {
        Class::Nvme => "samsung-980pro-1tb",
        Class::Ssd => "intel-s3520-1600gb",
        Class::Hdd => "hgst-he10-8tb",
        Class::Usb => "usb-stick",
        Class::Mmc if is_removable => "sd-card",
        Class::Mmc => "emmc",
        _ => return None,
    };
    Some(nearest_preset(name, NearestBy::Class))
}

/// The preset whose name contains the device's model, or vice versa, comparing only letters and digits without case.
fn by_model(model: &str) -> Option<&'static str> {
    /// Shorter names occur in too many others.
    const LETTERS_MIN: usize = 6;
    let normalize = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    let model = normalize(model);
    if model.len() < LETTERS_MIN {
        return None;
    }
    let is_similar = |name: &&str| {
        let name = normalize(name);
        name.len() >= LETTERS_MIN && (model.contains(&name) || name.contains(&model))
    };
    // Calibrated presets come first.
    let mut names: Vec<&str> = Preset::builtin_names().filter(is_similar).collect();
    names.sort_by_key(|name| {
        std::cmp::Reverse(Preset::builtin(name).is_ok_and(|preset| preset.calibration().range.is_some()))
    });
    names.first().copied()
}

fn nearest_preset(name: &str, by: NearestBy) -> NearestPreset {
    let random_reads_per_s = Preset::builtin(name).ok().and_then(|preset| random_reads_per_s(&preset));
    NearestPreset { name: name.to_owned(), by, random_reads_per_s }
}

/// The rate of the model's slowest stage.
fn random_reads_per_s(preset: &Preset) -> Option<u32> {
    const US_A_SECOND: f64 = 1e6;
    let per_s = match preset.parameters() {
        Parameters::Flash(flash) => US_A_SECOND / flash.command_us.max(flash.read_us / f64::from(flash.dies)),
        Parameters::Ssd(ssd) => US_A_SECOND / ssd.serial_stage_us,
        Parameters::Optane(optane) => {
            US_A_SECOND / optane.read_command_us.max(optane.access_us / f64::from(optane.channels))
        }
        _ => return None,
    };
    // The limit of a cloud volume is outside these parameters.
    (per_s.is_finite() && preset.name != "throttled-cloud-volume").then_some(per_s as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_its_name_and_otherwise_by_class() {
        let of = |class, model| nearest(class, model, false).map(|found| (found.name, found.by));
        let some = |name: &str, by| Some((name.to_owned(), by));
        assert_eq!(of(Class::Nvme, Some("Samsung SSD 990 PRO 2TB")), some("Samsung_SSD_990_PRO_2TB", NearestBy::Model));
        assert_eq!(of(Class::Ssd, Some("Samsung SSD 860 EVO 500GB")), some("Samsung_SSD_860", NearestBy::Model));
        assert_eq!(of(Class::Nvme, Some("UNKNOWN X1")), some("samsung-980pro-1tb", NearestBy::Class));
        assert_eq!(
            of(Class::Nvme, Some("Amazon Elastic Block Store")),
            some("throttled-cloud-volume", NearestBy::Class)
        );
        assert_eq!(of(Class::Ssd, Some("SSD")), some("intel-s3520-1600gb", NearestBy::Class));
        assert_eq!(of(Class::Virtio, None), None, "it is not known what is behind");
    }

    #[test]
    fn every_class_has_a_model_that_exists_and_fast_ones_say_how_fast() {
        for class in [Class::Nvme, Class::Ssd, Class::Hdd, Class::Usb, Class::Mmc] {
            let found = nearest(class, None, true).unwrap();
            assert!(Preset::builtin(&found.name).is_ok(), "{}", found.name);
        }
        assert!(nearest_preset("samsung-980pro-1tb", NearestBy::Class).random_reads_per_s.unwrap() > 500_000);
        assert!(nearest_preset("intel-s3520-1600gb", NearestBy::Class).random_reads_per_s.unwrap() < 100_000);
    }
}
