//! No preset file makes the reader panic; what it accepts gives a device, and reads back as it was written.

#![no_main]

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Sector};
use hoistway_device::{Command, Preset, PresetFile, Schedule};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Preset::from_toml(text, "fuzz.toml") {
        Ok(preset) => {
            let mut device = small(&preset).build(1);
            let mut schedule = Schedule::default();
            let command = Command { tag: 0, queue: 0, op: Op::Write, sector: Sector(0), sectors: 1, fua: false };
            let _ = device.submit(Instant::ZERO, command, &mut schedule);
            assert!(!preset.describe().is_empty());
            assert_eq!(Preset::try_from(PresetFile::from(preset.clone())).as_ref(), Ok(&preset));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "not one message: {error}"),
    }
});

/// The same device with a map of pages that is quickly filled, if it has one.
fn small(preset: &Preset) -> Preset {
    let mut file = PresetFile::from(preset.clone());
    if file.flash.as_ref().is_some_and(|flash| flash.translation.is_some()) {
        file.shape.capacity_gb = 0.016_384;
    }
    // Not every capacity suits every block and scale.
    Preset::try_from(file).unwrap_or_else(|_| preset.clone())
}
