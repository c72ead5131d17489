//! The output of `hoistway devices`.

use std::fs;

use hoistway_device::Preset;
use tempfile::tempdir;

use crate::refusals::PRESET;
use crate::support::{printed, refused};

#[test]
fn every_built_in_device_has_a_line_and_a_description() {
    let list = printed(&["devices"]);
    for name in Preset::builtin_names() {
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(name));
        assert!(line.is_some_and(|line| line.split_whitespace().count() > 2), "{name} lacks a line:\n{list}");
        let description = printed(&["devices", name]);
        assert!(description.starts_with(&format!("{name}: ")), "{description}");
        assert!(description.contains("calibrated on: "), "{description}");
    }
}

#[test]
fn a_preset_file_is_described_and_compared_like_a_built_in_one() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(&file, PRESET).unwrap();
    let file = file.to_str().unwrap();
    assert!(printed(&["devices", file]).starts_with("mine: a device for tests"));
    let table = printed(&["compare", "--runtime", "50ms", "--device", file, "--schedulers", "none"]);
    assert!(table.contains(" on mine, "), "{table}");
}

#[test]
fn the_file_of_a_built_in_preset_can_be_had_and_is_the_same_device_as_a_file() {
    let folder = tempdir().unwrap();
    for name in Preset::builtin_names() {
        let file = folder.path().join("mine.toml");
        fs::write(&file, printed(&["devices", name, "--toml"])).unwrap();
        assert_eq!(printed(&["devices", file.to_str().unwrap()]), printed(&["devices", name]));
    }
    refused(folder.path(), &["devices", "mine", "--toml"], &["mine", "intel-s3520-1600gb"]);
}

#[test]
fn a_class_of_devices_or_a_part_of_a_name_will_do_where_it_means_one() {
    let table = printed(&["compare", "--runtime", "20ms", "--device", "hdd", "--schedulers", "none"]);
    assert!(table.contains(" on hgst-he10-8tb,"), "{table}");
    assert!(printed(&["devices", "Samsung 980 PRO"]).starts_with("samsung-980pro-1tb: "));
    let folder = tempdir().unwrap();
    let words = [
        "no built-in device `nmve`",
        "a class of devices (hdd, sata-ssd, nvme, usb-stick, sd-card, emmc, laptop-hdd, cloud-volume)",
        "did you mean \"nvme\"?",
    ];
    refused(folder.path(), &["compare", "--device", "nmve"], &words);
}

#[test]
fn a_modified_preset_no_longer_claims_the_original_calibration() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let text = printed(&["devices", "intel-s3520-1600gb", "--toml"]);
    let renamed = text.replace("name = \"intel-s3520-1600gb\"", "name = \"mine\"");
    assert_ne!(renamed, text);
    fs::write(&file, &renamed).unwrap();
    let path = file.to_str().unwrap();
    assert!(printed(&["devices", path]).contains("measured"), "only the name is another one");
    let line = renamed.lines().find(|line| line.starts_with("queue_depth = ")).unwrap();
    fs::write(&file, renamed.replace(line, "queue_depth = 8")).unwrap();
    let described = printed(&["devices", path]);
    assert!(
        described.contains("its numbers differ from those of intel-s3520-1600gb") && !described.contains("measured "),
        "{described}"
    );
    let table = printed(&["compare", "--runtime", "20ms", "--device", path, "--schedulers", "none"]);
    let table = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains("Uncertain: the model of mine was made without measurements"), "{table}");
}

#[test]
fn a_host_profile_to_start_from_can_be_had() {
    let list = printed(&["hosts"]);
    for name in hoistway_sim::Host::builtin_names() {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("host.toml");
    fs::write(&file, printed(&["hosts", "server", "--toml"])).unwrap();
    let same = |host: &str| printed(&["compare", "--runtime", "20ms", "--schedulers", "none", "--host", host]);
    assert_eq!(same(file.to_str().unwrap()), same("server"));
}

/// A reader beside a deep writer: on a full drive collection decides what the reader gets, on an emptier one the writes before it.
const BESIDE: &str = "[global]\nfilename=/dev/nvme0n1\ndirect=1\nioengine=io_uring\ntime_based\nruntime=500ms\nbs=4k\n\
                      [reader]\nrw=randread\n[writer]\nrw=randwrite\niodepth=64\n";

#[test]
fn how_full_a_drive_is_changes_figures_and_an_answer_that_hangs_on_it_says_so() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("beside.fio"), BESIDE).unwrap();
    let job = folder.path().join("beside.fio").display().to_string();
    let compare = |options: &[&str]| {
        let fixed = ["compare", &job, "--device", "WD_Blue_SN580_1TB", "--repeat", "3", "--from-start"];
        printed(&[&fixed, options].concat())
    };
    let [full, emptier, trimmed] = [&[][..], &["--fill", "60%"], &["--fill=60", "--trimmed"]].map(compare);
    let decides = "how full the drive is decides: written over at random as a whole";
    assert!(!full.contains(decides) && !full.contains("reckoned"), "{full}");
    let words = emptier.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(decides) && words.contains("What collection costs at this fill is reckoned"), "{emptier}");
    assert_ne!(emptier.lines().nth(5), trimmed.lines().nth(5));
}
