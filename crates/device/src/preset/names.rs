//! What a preset may be called: its name, a class of devices, or what people write instead of its name.

/// Classes of devices, and the preset that stands for each.
const CLASSES: [(&str, &str); 8] = [
    ("hdd", "hgst-he10-8tb"),
    ("sata-ssd", "intel-s3520-1600gb"),
    ("nvme", "samsung-980pro-1tb"),
    ("usb-stick", "usb-stick"),
    ("sd-card", "sd-card"),
    ("emmc", "emmc"),
    ("laptop-hdd", "laptop-hdd"),
    ("cloud-volume", "throttled-cloud-volume"),
];

/// The classes: name, and the preset that stands for it.
pub(super) fn classes() -> impl Iterator<Item = (&'static str, &'static str)> {
    CLASSES.into_iter()
}

/// The preset that is meant: of `known` the one of this name, or that of a class, or the only one that contains this name if case and
/// whatever is no letter or digit are left out: `Samsung 980 PRO`.
pub(super) fn meant(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let class = || CLASSES.into_iter().find(|(class, _)| class.eq_ignore_ascii_case(name)).map(|(_, preset)| preset);
    let exact = known.iter().copied().find(|known| *known == name).or_else(class);
    if exact.is_some() {
        return exact;
    }
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    // Less would be found in too much.
    let wanted = Some(plain(name)).filter(|wanted| wanted.len() >= 3)?;
    let mut like = known.iter().copied().filter(|known| plain(known).contains(&wanted));
    let first = like.next()?;
    like.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preset;

    #[test]
    fn classes_and_names_as_people_write_them_are_understood_if_they_mean_one_device() {
        let of = |name: &str| meant(name, &Preset::builtin_names().collect::<Vec<_>>());
        assert_eq!(of("null"), Some("null"));
        assert_eq!(of("hdd"), Some("hgst-he10-8tb"));
        assert_eq!(of("NVMe"), Some("samsung-980pro-1tb"));
        for name in ["Samsung 980 PRO", "samsung_980PRO_1tb"] {
            assert_eq!(of(name), Some("samsung-980pro-1tb"), "{name}");
        }
        for (name, device) in [("usb", "usb-stick"), ("SD card", "sd-card"), ("eMMC", "emmc"), ("laptop", "laptop-hdd")]
        {
            assert_eq!(of(name), Some(device));
        }
        assert_eq!([of("intel"), of("980pro"), of(""), of("ssd"), of("sd")], [None; 5], "several, or none");
        assert!(classes().all(|(class, preset)| Preset::builtin(class).unwrap().name == preset));
    }
}
