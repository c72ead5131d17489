//! Names of presets: exact names, classes of devices, and abbreviations.

/// Classes of devices, and the preset that represents each.
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

/// The classes: name, and the preset that represents it.
pub(super) fn classes() -> impl Iterator<Item = (&'static str, &'static str)> {
    CLASSES.into_iter()
}

/// The preset that a name means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Meant {
    pub(super) preset: &'static str,
    /// Whether only the class of the named drive is known, so that the preset is another drive of that class.
    pub(super) is_of_series: bool,
}

/// The preset of `known` with this name, or that of a class, or the only one that contains this text as whole words, ignoring case and
/// everything except letters and digits: `Samsung 980 PRO`; or else the only one that has all its words, in their order: `wd-sn580-1tb` is
/// WD_Blue_SN580_1TB. If there is none, the same with the names in `sold_as`, of drives whose presets are named by model number. A part of a word does not count: `gp3` is a cloud volume and not the drive SHGP31.
pub(super) fn resolve(name: &str, known: &[&'static str], sold_as: &[(&'static str, &'static str)]) -> Option<Meant> {
    let named = |preset| Meant { preset, is_of_series: false };
    // An SSD that is not said to be an NVMe drive is one of SATA.
    let class = if name.eq_ignore_ascii_case("ssd") { "sata-ssd" } else { name };
    let class = || CLASSES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(class)).map(|(_, preset)| preset);
    let exact = known.iter().copied().find(|known| *known == name).or_else(class);
    if let Some(exact) = exact {
        return Some(named(exact));
    }
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    // Shorter texts would match too many names.
    let letters = Some(plain(name)).filter(|letters| letters.len() >= 3)?;
    let find = |texts: &[(&'static str, &'static str)]| -> Result<&'static str, Count> {
        let as_reported = texts.iter().find(|(_, text)| is_model_of(&plain(text), &letters));
        if let Some(&(preset, _)) = as_reported {
            return Ok(preset);
        }
        let matching = texts.iter().filter(|(_, text)| has_words(text, &letters));
        let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let having = texts.iter().filter(|(_, text)| words.len() >= 2 && has_words_in_order(text, &words));
        match only(matching) {
            // Words in their order mean less: several of them leave the class.
            Err(Count::None) => only(having).map_err(|_| Count::None),
            found => found,
        }
    };
    let names: Vec<_> = known.iter().map(|&known| (known, known)).collect();
    match find(&names) {
        Ok(preset) => Some(named(preset)),
        Err(Count::Several) => None,
        Err(Count::None) => match find(sold_as) {
            Ok(preset) => Some(named(preset)),
            Err(_) => of_series(name).map(|preset| Meant { preset, is_of_series: true }),
        },
    }
}

/// Why not one preset was found.
enum Count {
    None,
    Several,
}

/// The preset if there is exactly one.
fn only<'a>(mut found: impl Iterator<Item = &'a (&'static str, &'static str)>) -> Result<&'static str, Count> {
    match (found.next(), found.next()) {
        (Some(&(preset, _)), None) => Ok(preset),
        (Some(_), Some(_)) => Err(Count::Several),
        (None, _) => Err(Count::None),
    }
}

/// Whether a name has these words in their order, with others between; a word may be several of the name, joined.
fn has_words_in_order(name: &str, words: &[&str]) -> bool {
    let parts: Vec<String> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).map(str::to_lowercase).collect();
    let mut first = 0;
    words.iter().all(|word| {
        let word = word.to_lowercase();
        let end = (first..parts.len()).find_map(|from| {
            let lengths = 1..=parts.len() - from;
            lengths.into_iter().map(|length| from + length).find(|to| parts[from..*to].concat() == word)
        });
        first = end.unwrap_or(parts.len());
        end.is_some()
    })
}

/// Whether a model as the drive reports it, such as `Samsung SSD 980 PRO 1TB`, is that of a preset: all words of the preset's name are in it.
fn is_model_of(preset: &str, letters: &str) -> bool {
    /// Shorter names occur in too many others.
    const LETTERS_MIN: usize = 8;
    preset.len() >= LETTERS_MIN && letters.replace("ssd", "") == *preset
}

/// Whether a model as the drive reports it is that of a hard disk: each maker's names of disks begin alike.
fn is_hard_disk(words: &[String]) -> bool {
    let begins = |word: &str, prefix: &str| {
        word.strip_prefix(prefix).is_some_and(|rest| rest.len() >= 3 && rest.as_bytes()[0].is_ascii_digit())
    };
    match words {
        // WDC WD40EFRX; ST4000DM004; HGST HUS726060ALE610; TOSHIBA MG08ACA16TE.
        [maker, model, ..] if maker == "wdc" => begins(model, "wd"),
        [maker, ..] if maker == "hgst" || maker == "hitachi" => true,
        [maker, model, ..] if maker == "toshiba" => ["mg", "dt", "mq", "md"].iter().any(|series| begins(model, series)),
        [model, ..] => begins(model, "st") && model.len() >= 9,
        [] => false,
    }
}

/// The class of a drive of a series that has a preset for no drive: Samsung's numbers say the interface, and disks have names of their own.
fn of_series(name: &str) -> Option<&'static str> {
    let words: Vec<String> = name.split(|c: char| !c.is_alphanumeric()).map(str::to_ascii_lowercase).collect();
    if is_hard_disk(&words) {
        return CLASSES.into_iter().find(|(known, _)| *known == "hdd").map(|(_, preset)| preset);
    }
    let number = words.iter().skip_while(|word| *word != "ssd").nth(1)?;
    let has_digits = number.len() == 3 && number.bytes().all(|digit| digit.is_ascii_digit());
    let class = match number.as_bytes().first().filter(|_| has_digits && words.iter().any(|word| word == "samsung"))? {
        b'7' | b'8' => "sata-ssd",
        b'9' => "nvme",
        _ => return None,
    };
    CLASSES.into_iter().find(|(known, _)| *known == class).map(|(_, preset)| preset)
}

/// Whether whole words of a name, joined, equal this text.
fn has_words(name: &str, letters: &str) -> bool {
    let words: Vec<String> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    (0..words.len()).any(|first| {
        let mut joined = String::new();
        words[first..].iter().any(|word| {
            joined += word;
            joined == letters
        })
    })
}

/// For kinds of devices without a preset: the closest preset, and what it does not model.
const NEAREST: [(&str, &str); 9] = [
    (
        "virtio",
        "cloud-volume: a virtual disk is what its host makes of it, so the model of the host's disk may be nearer",
    ),
    (
        "virtio-blk",
        "cloud-volume: a virtual disk is what its host makes of it, so the model of the host's disk may be nearer",
    ),
    ("loop", "sata-ssd: the loop driver is not modelled, so take the model of the disk that holds the file"),
    ("usb-ssd", "sata-ssd: the bridge to USB (UAS) is not modelled"),
    ("uas", "sata-ssd: the bridge to USB (UAS) is not modelled"),
    ("smr-hdd", "hdd: the zones of a shingled disk and its cache for random writes are not modelled"),
    ("smr", "hdd: the zones of a shingled disk and its cache for random writes are not modelled"),
    ("optane", "intel-p4800x-375gb"),
    ("apple-nvme", "nvme: the slow flushes of these drives are not modelled"),
];

/// Words that tell what class a drive is of: names of series, by their makers' data sheets.
const SERIES: [(&str, &[&str]); 7] = [
    ("intel-p4800x-375gb, a model of another Optane drive", &["p5800x", "p4801x", "900p", "905p"]),
    (
        "nvme, a model of its class and not of this drive",
        &[
            "sn550", "sn570", "sn640", "sn700", "sn750", "sn840", "sn850", "p5", "t500", "t700", "t705", "kc2500",
            "kc3000", "nv2", "nv3", "p31", "p41", "p44", "p4510", "p4610", "p5510", "p5520", "p5620", "pm981", "pm983",
            "pm9a1", "pm9a3", "pm1725", "pm1733", "pm1735", "pm1743", "cd6", "cd7", "cd8", "cm6", "cm7", "rocket",
            "firecuda",
        ],
    ),
    (
        "sata-ssd, a model of its class and not of this drive",
        &[
            "mx100", "mx200", "mx300", "mx500", "bx200", "bx500", "a400", "uv400", "uv500", "su650", "su800", "sa500",
            "sa510", "s3500", "s3510", "s3610", "s3700", "s3710", "s4500", "s4510", "s4520", "s4600", "s4610", "s4620",
            "pm863", "pm863a", "pm883", "pm893", "sm863", "sm883", "dc500m", "dc500r", "dc600m",
        ],
    ),
    (
        "hdd, a model of its class and not of this drive",
        &["exos", "ironwolf", "barracuda", "skyhawk", "constellation", "deskstar", "ultrastar", "travelstar"],
    ),
    ("sd-card, a model of its class and not of this card", &["microsd", "microsdhc", "microsdxc", "sdhc", "sdxc"]),
    (
        "usb-stick, a model of its class and not of this stick",
        &["usb", "usb2", "usb3", "cruzer", "datatraveler", "jetflash"],
    ),
    ("emmc, a model of its class and not of this chip", &["emmc"]),
];

/// How model numbers begin, by their makers, and the class of these drives.
const MODEL_NUMBERS: [(&str, &[&str]); 2] = [
    (
        SERIES[1].0,
        &[
            "ssdpe", "ssdpf", "mtfdk", "mtfdh", "kxg", "kbg", "kxd", "kcd", "kcm", "mz1l", "mz1w", "mzvl", "mzvp",
            "mzwl", "mzql", "mzpl", "skc", "snv", "exceria",
        ],
    ),
    (SERIES[2].0, &["ssdsc", "mtfdda", "mz7", "sa400", "sa500m", "suv", "thnsn", "khk", "hfs"]),
];

/// The class of a model number: Crucial's drives of PCIe have a P and a digit after the capacity, those of SATA another series.
fn of_model_number(words: &[&str]) -> Option<&'static str> {
    let begins = |prefixes: &[&str]| words.iter().any(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)));
    let known = MODEL_NUMBERS.into_iter().find(|(_, prefixes)| begins(prefixes)).map(|(class, _)| class);
    known.or_else(|| {
        let series = words
            .iter()
            .find_map(|word| Some(word.strip_prefix("ct")?.trim_start_matches(|c: char| c.is_ascii_digit())))?;
        match series.as_bytes() {
            [b'p' | b't', b'0'..=b'9', ..] => Some(SERIES[1].0),
            [b'm' | b'b', b'x', b'0'..=b'9', ..] => Some(SERIES[2].0),
            _ => None,
        }
    })
}

/// The nearest preset to a drive of a known series. Disks of WD have colours, and its SSDs of these say so; Micron's series are numbers.
fn of_known_series(name: &str) -> Option<&'static str> {
    let words: Vec<&str> = name.split('-').collect();
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    let known = SERIES.into_iter().find(|(_, series)| has(series)).map(|(nearest, _)| nearest);
    let of_micron = || {
        let series = [
            (&SERIES[1], ["7300", "7400", "7450", "7500", "9300", "9400", "9550"].as_slice()),
            (&SERIES[2], &["5100", "5200", "5210", "5300", "5400"]),
        ];
        let found = series.into_iter().find(|(_, numbers)| has(numbers)).map(|(class, _)| class.0);
        found.filter(|_| has(&["micron"]))
    };
    let is_disk_of_wd = || has(&["wd"]) && has(&["red", "gold", "purple"]) && !has(&["ssd", "nvme"]);
    known.or_else(of_micron).or_else(|| is_disk_of_wd().then_some(SERIES[3].0)).or_else(|| of_model_number(&words))
}

/// What to use for a name without a preset, as the end of a sentence; `None` if unknown.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace([' ', '_'], "-");
    if is_cloud_volume(&name) {
        return Some(
            "cloud-volume: print it with `hoistway devices cloud-volume --toml` and set the limits of your volume",
        );
    }
    let kind = NEAREST.into_iter().find(|(kind, _)| *kind == name).map(|(_, nearest)| nearest);
    kind.or_else(|| of_known_series(&name))
}

/// The preset of the same drive with another capacity, as the end of a sentence; `None` if there is none, or several.
pub(super) fn of_another_capacity(
    name: &str,
    known: &[&'static str],
    sold_as: &[(&'static str, &'static str)],
) -> Option<String> {
    let is_capacity = |word: &str| {
        let word = word.to_ascii_lowercase();
        let number = word.strip_suffix("gb").or_else(|| word.strip_suffix("tb"));
        number.is_some_and(|number| number.parse::<f64>().is_ok())
    };
    let words: Vec<&str> = name.split([' ', '_', '-']).filter(|word| !is_capacity(word)).collect();
    let drive = Some(words.join(" ")).filter(|drive| !drive.eq_ignore_ascii_case("ssd"))?;
    let is_class = CLASSES.into_iter().any(|(class, _)| class.eq_ignore_ascii_case(&drive));
    let meant = resolve(&drive, known, sold_as).filter(|meant| !is_class && !meant.is_of_series)?;
    Some(format!("{}, which has another capacity", meant.preset))
}

/// Whether a name is that of a cloud volume, with or without the cloud's: a rate limit rather than a drive.
fn is_cloud_volume(name: &str) -> bool {
    const CLOUDS: [&str; 7] = ["aws-", "ebs-", "azure-", "gcp-", "google-", "premium-ssd-", "premium-"];
    let kind = CLOUDS.into_iter().fold(name, |name, cloud| name.strip_prefix(cloud).unwrap_or(name));
    let is_premium = kind.strip_prefix('p').is_some_and(|rest| matches!(rest.parse(), Ok(1_u8..=80)));
    let kinds = ["gp2", "gp3", "io1", "io2", "st1", "sc1", "pd-ssd", "pd-balanced", "pd-standard", "pd-extreme"];
    is_premium || kinds.contains(&kind) || kind.starts_with("hyperdisk")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preset;
    use crate::preset::coarse::sold_as;

    #[test]
    fn device_classes_and_informal_names_resolve_if_unambiguous() {
        let resolved = |name: &str| {
            Some(resolve(name, &Preset::builtin_names().collect::<Vec<_>>(), &sold_as().collect::<Vec<_>>())?.preset)
        };
        assert_eq!(resolved("null"), Some("null"));
        assert_eq!(resolved("hdd"), Some("hgst-he10-8tb"));
        assert_eq!(resolved("NVMe"), Some("samsung-980pro-1tb"));
        for name in ["WDC WD40EFRX-68N32N0", "ST4000DM004-2CV104", "HGST HUS726060ALE610", "TOSHIBA MG08ACA16TE"] {
            assert_eq!(resolved(name), Some("hgst-he10-8tb"), "{name}");
        }
        // An SSD of a maker of disks, and what only looks like one.
        assert_eq!(["WDC WDS500G2B0A", "TOSHIBA THNSNJ256", "st1", "STORE"].map(resolved), [None; 4]);
        for name in ["Samsung 980 PRO", "samsung_980PRO_1tb"] {
            assert_eq!(resolved(name), Some("samsung-980pro-1tb"), "{name}");
        }
        for (name, device) in [("usb", "usb-stick"), ("SD card", "sd-card"), ("eMMC", "emmc"), ("laptop", "laptop-hdd")]
        {
            assert_eq!(resolved(name), Some(device));
        }
        assert_eq!(
            [resolved("intel"), resolved("980pro"), resolved(""), resolved("sd")],
            [None; 4],
            "several, or none"
        );
        assert_eq!(
            ["Samsung SSD 870 EVO 1TB", "Samsung SSD 980 PRO 1TB", "Samsung SSD 970 EVO Plus 2TB"].map(resolved),
            ["intel-s3520-1600gb", "samsung-980pro-1tb", "samsung-980pro-1tb"].map(Some)
        );
        assert_eq!(
            ["samsung-990pro-2tb", "wd-sn580-1tb", "samsung 970 pro", "SSD PRO"].map(resolved),
            [Some("Samsung_SSD_990_PRO_2TB"), Some("WD_Blue_SN580_1TB"), Some("Samsung_SSD_970_PRO_512GB"), None]
        );
        assert_eq!([resolved("Samsung SSD"), resolved("Samsung T7 SSD 512"), resolved("SSD 870 EVO")], [None; 3]);
        assert_eq!(
            [resolved("gp3"), resolved("p30"), resolved("p300"), resolved("80pro1tb")],
            [None, None, Some("Patriot_M.2_P300_1024GB"), None]
        );
        for name in ["gp2", "gp3", "io2", "P30", "pd-ssd", "pd-balanced", "ebs-gp3", "Azure P30", "hyperdisk-balanced"]
        {
            assert!(nearest(name).unwrap().starts_with("cloud-volume: ") && resolved(name).is_none(), "{name}");
        }
        assert!([nearest("p300"), nearest("hdd"), nearest("azure-"), nearest("")] == [None; 4]);
        for (name, device) in NEAREST {
            let preset = device.split(':').next().and_then(resolved);
            assert!(
                resolved(name).is_none() && preset.is_some() && nearest(&name.to_uppercase()) == Some(device),
                "{name}"
            );
        }
        for (name, class) in [
            ("Crucial MX500 1TB", "sata-ssd"),
            ("Seagate Exos X18", "hdd"),
            ("WD Red Plus 4TB", "hdd"),
            ("WD Red SA500 NAS SSD", "sata-ssd"),
            ("solidigm p44 pro", "nvme"),
            ("Intel Optane P5800X", "intel-p4800x-375gb"),
            ("CT500MX500SSD1", "sata-ssd"),
            ("CT2000T500SSD8", "nvme"),
            ("KINGSTON SA400S37480G", "sata-ssd"),
            ("INTEL SSDPE2KX040T8", "nvme"),
            ("INTEL SSDSC2KB960G8", "sata-ssd"),
            ("Micron_7450_MTFDKCC3T8TFR", "nvme"),
            ("SAMSUNG MZ7LH960HAJR-00005", "sata-ssd"),
            ("KIOXIA-EXCERIA PLUS G3 SSD", "nvme"),
            ("Micron 7450", "nvme"),
            ("micron_5300_pro", "sata-ssd"),
            ("SanDisk Extreme microSDXC A2", "sd-card"),
            ("SanDisk Ultra USB 3.0", "usb-stick"),
            ("Kingston DataTraveler", "usb-stick"),
            ("Samsung eMMC 64GB", "emmc"),
        ] {
            assert!(nearest(name).unwrap().starts_with(&format!("{class}, ")) && resolved(name).is_none(), "{name}");
        }
        for (nearest, _) in SERIES {
            assert!(nearest.split(',').next().is_some_and(|preset| resolved(preset).is_some()), "{nearest}");
        }
        assert!(classes().all(|(class, preset)| Preset::builtin(class).unwrap().name == preset));
    }

    #[test]
    fn a_drive_in_another_capacity_is_the_nearest() {
        let known: Vec<&str> = Preset::builtin_names().collect();
        let sold: Vec<_> = sold_as().collect();
        for (name, preset) in [
            ("WD SN850X 2TB", "WD_BLACK_SN850X_1000GB"),
            ("Samsung 980 PRO 500GB", "samsung-980pro-1tb"),
            ("samsung_990_pro_4tb", "Samsung_SSD_990_PRO_2TB"),
            ("Crucial P3 2TB", "CT1000P3PSSD8"),
        ] {
            let nearest = of_another_capacity(name, &known, &sold).unwrap();
            assert!(nearest.starts_with(&format!("{preset}, ")) && resolve(name, &known, &sold).is_none(), "{name}");
        }
        for name in ["ssd 2TB", "hdd 8TB", "Kingston A400 480GB", "Samsung SSD 870 EVO 3TB", "2TB", "Samsung 1TB"] {
            assert_eq!(of_another_capacity(name, &known, &sold), None, "{name}");
        }
    }

    #[test]
    fn a_drive_that_is_known_by_model_number_is_found_by_the_name_under_which_it_is_sold() {
        let known: Vec<&str> = Preset::builtin_names().collect();
        let sold: Vec<_> = sold_as().collect();
        let resolved = |name: &str| Some(resolve(name, &known, &sold)?.preset);
        for &(device, sold_as) in &sold {
            assert!(known.contains(&device), "{device} is no preset");
            assert_eq!(resolved(sold_as), Some(device));
            assert_eq!(resolved(&sold_as.to_lowercase().replace(' ', "-")), Some(device));
            assert!(Preset::builtin(device).unwrap().title.starts_with(sold_as), "{device}");
        }
        for (name, device) in [
            ("Crucial P3 1TB", "CT1000P3PSSD8"),
            ("CT1000P3PSSD8", "CT1000P3PSSD8"),
            ("crucial p3 plus", "CT1000P3PSSD8"),
            ("Kingston A2000", "KINGSTON_SA2000M8250G"),
            ("PM961", "SAMSUNG_MZVLW256HEHP-00000"),
        ] {
            assert_eq!(resolved(name), Some(device), "{name}");
        }
        assert_eq!(
            ["Micron 2200", "Crucial P3 2TB", "Crucial", "P3"].map(resolved),
            [None, None, Some("CT1000P3PSSD8"), None]
        );
    }

    proptest::proptest! {
        #[test]
        fn a_part_of_a_word_means_no_device(preset in 0..64_usize, from in 0..6_usize, length in 3..8_usize) {
            let known: Vec<&str> = Preset::builtin_names().collect();
            let name = known[preset % known.len()];
            let word = name.split(|c: char| !c.is_alphanumeric()).max_by_key(|word| word.len()).unwrap();
            let part: String = word.chars().skip(from + 1).take(length).collect();
            // A part that is a word of some name, or a class, refers to that one.
            let is_word = known.iter().any(|known| has_words(known, &part.to_lowercase()));
            let is_class = CLASSES.iter().any(|(class, _)| *class == part);
            proptest::prop_assert!(is_word || is_class || resolve(&part, &known, &[]).is_none(), "{part}");
        }
    }
}
