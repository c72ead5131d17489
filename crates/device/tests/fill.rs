//! How full a drive is: the full one is the one measured, and an emptier one writes no slower.

use hoistway_blk::ground::Nanos;
use hoistway_device::{Fill, Preset};

use crate::closed_loop::{Process, run};

/// Random writes per second at this depth, in thousands, and the mean latency of reads beside them, us.
fn writes_and_reads(preset: &Preset, seed: u64) -> (f64, f64) {
    let depth = preset.shape().queue_depth.min(64);
    let measured = run(
        &mut *preset.build(seed),
        &[Process::random(1, 100), Process::random(depth, 0)],
        Nanos::from_millis(300),
        1,
    );
    (measured[1][1].ios as f64 / 300.0, measured[0][0].mean_ms() * 1e3)
}

/// The presets of which something depends on it.
fn collecting() -> impl Iterator<Item = (Preset, Preset)> {
    let full = Fill { share: 1.0, is_trimmed: false };
    Preset::builtin_names().filter_map(move |name| {
        let preset = Preset::builtin(name).unwrap();
        let filled = preset.filled(full)?;
        Some((preset, filled))
    })
}

#[test]
fn a_full_drive_is_the_one_that_was_measured() {
    assert!(collecting().count() > 30);
    for (preset, full) in collecting() {
        let measure = |preset: &Preset| writes_and_reads(preset, 7);
        let ((writes, reads), (full_writes, full_reads)) = (measure(&preset), measure(&full));
        let name = &preset.name;
        assert!((full_writes / writes - 1.0).abs() < 0.01, "{name}: {full_writes} k writes instead of {writes}");
        assert!((full_reads / reads - 1.0).abs() < 0.03, "{name}: reads of {full_reads} us instead of {reads}");
    }
}

/// Reads beside them may wait longer, for there are more writes to wait for.
#[test]
fn an_emptier_drive_writes_no_slower() {
    // A single program of these lasts longer than a run.
    let is_slow = |preset: &Preset| ["usb-stick", "sd-card"].contains(&preset.name.as_str());
    for (preset, full) in collecting().filter(|(preset, _)| !is_slow(preset)) {
        let (mut writes, _) = writes_and_reads(&full, 7);
        for (share, is_trimmed) in [(0.9, false), (0.5, false), (0.0, false), (0.0, true)] {
            let filled = preset.filled(Fill { share, is_trimmed }).unwrap();
            let (more_writes, _) = writes_and_reads(&filled, 7);
            let name = format!("{} at {share}, trimmed: {is_trimmed}", preset.name);
            assert!(more_writes > 0.97 * writes, "{name}: {more_writes} k writes, {writes} when fuller");
            writes = more_writes;
        }
    }
}

#[test]
fn what_was_erased_lasts_for_as_many_writes() {
    let preset = Preset::builtin("WD_Blue_SN580_1TB").unwrap();
    let rates = |share| {
        let preset = preset.filled(Fill { share, is_trimmed: true }).unwrap();
        let ios = |ms| {
            let measured = run(&mut *preset.build(1), &[Process::random(64, 0)], Nanos::from_millis(ms), 1);
            measured[0][1].ios as f64
        };
        (ios(100) / 100.0, (ios(900) - ios(700)) / 200.0)
    };
    // A hundredth of a percent of a terabyte is 100 MB, less than it writes in 0.7 s.
    let (first, later) = rates(0.9999);
    assert!(first > 2.0 * later, "{first} k writes a second, then {later}");
    let (first, later) = rates(0.0);
    assert!((first / later - 1.0).abs() < 0.15, "{first} k writes a second, then {later}");
}

#[test]
fn a_filled_preset_survives_being_written_and_read_and_says_it() {
    for (preset, _) in collecting() {
        let filled = preset.filled(Fill { share: 0.6, is_trimmed: true }).unwrap();
        let text = hoistway_device::PresetFile::from(filled.clone()).to_toml().unwrap();
        assert_eq!(Preset::from_toml(&text, "filled.toml").unwrap(), filled);
        assert!(filled.title.ends_with(", 60 % full, the rest erased"), "{}", filled.title);
        assert_eq!(filled.io_cost_figures(), preset.io_cost_figures());
    }
    for name in ["hdd", "null", "intel-p4800x-375gb", "raid-64-queues"] {
        assert_eq!(Preset::builtin(name).unwrap().filled(Fill { share: 0.5, is_trimmed: false }), None, "{name}");
    }
}
