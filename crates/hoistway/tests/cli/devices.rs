//! `hoistway devices`: what comes out.

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
