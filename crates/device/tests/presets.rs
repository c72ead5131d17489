//! Preset files: what is built in, what an error says, and that no text whatsoever makes the reader panic.

use hoistway_device::{Model, Preset, PresetError, PresetFile};
use proptest::prelude::*;

/// A complete preset as a user would write it.
const GOOD: &str = r#"name = "mine"
title = "my own drive"
model = "ssd"

[shape]
capacity_gb = 480
logical_block_bytes = 512
physical_block_bytes = 4096
hw_queues = 1
queue_depth = 32
scsi = false
rotational = false
write_cache = true
fua = false
max_sectors = 65_535
max_segments = 168

[ssd]
host_to_device_us = 4
serial_stage_us = 20.5
transfer_mb_per_s = 550
acknowledge_us = 2
flash_read_us = 90
flash_read_jitter_percent = 10
flush_us = 500
discard_us = 30
device_to_host_us = 4

[ssd.gc]
background_pages_per_s = 20_000
threshold_pages = 3000
stall_ms = 10
stall_shortening_percent = 0

[calibration]
on = "a run of fio"
valid_range = "4 KiB random"

[[calibration.residuals]]
what = "read IOPS at depth 1"
measured = 8400
model = 8350.5

[calibration.sources]
"ssd.flash_read_us" = "fio, depth 1"
"#;

/// The one error of [`GOOD`] with `from` replaced by `to`.
fn error_of(from: &str, to: &str) -> String {
    assert_eq!(GOOD.matches(from).count(), 1, "{from:?} must be there once");
    match Preset::from_toml(&GOOD.replace(from, to), "my.toml") {
        Ok(preset) => panic!("{to:?} must be wrong, but gives {preset:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_users_own_file_gives_a_device() {
    let preset = Preset::from_toml(GOOD, "my.toml").unwrap();
    assert_eq!(preset.name, "mine");
    assert_eq!(preset.shape().capacity_sectors, 937_500_000);
    assert_eq!(*preset.build(7).shape(), preset.shape());
}

#[test]
fn each_error_names_file_line_key_and_what_was_expected() {
    let cases = [
        // Missing keys: the line of the section.
        (
            "model = \"ssd\"\n",
            "",
            "my.toml:1: `model` is missing; expected \"flash\" or \"hdd\" or \"null\" or \"optane\" or \"raid\" or \"service\" or \"ssd\"",
        ),
        ("name = \"mine\"\n", "", "my.toml:1: `name` is missing; expected a text that is not empty, in quotes"),
        (
            "flash_read_us = 90\n",
            "",
            "my.toml:18: `ssd.flash_read_us` is missing; expected a number of microseconds from 0 to 10000000",
        ),
        (
            "stall_ms = 10\n",
            "",
            "my.toml:29: `ssd.gc.stall_ms` is missing; expected a number of milliseconds from 0 to 10000",
        ),
        (
            "measured = 8400\n",
            "",
            "my.toml:39: `calibration.residuals[0].measured` is missing; expected a number of the unit that `what` \
             names from 0.000000001 to 1000000000000000",
        ),
        // Unknown keys.
        (
            "stall_ms = 10",
            "stall_us = 10",
            "my.toml:32: `ssd.gc.stall_us` is not a key that this model knows; expected one of \
             `background_pages_per_s`, `threshold_pages`, `stall_ms`, `stall_shortening_percent`",
        ),
        // The wrong kind.
        ("fua = false", "fua = 0", "my.toml:14: `shape.fua` is 0; expected true or false"),
        (
            "title = \"my own drive\"",
            "title = ' '",
            "my.toml:2: `title` is the text \" \"; expected a text that is not empty, in quotes",
        ),
        (
            "serial_stage_us = 20.5",
            "serial_stage_us = \"20.5\"",
            "my.toml:20: `ssd.serial_stage_us` is the text \"20.5\"; expected a number of microseconds from 0.001 to \
             10000000",
        ),
        (
            "model = \"ssd\"",
            "model = \"tape\"",
            "my.toml:3: `model` is the text \"tape\"; expected \"flash\" or \"hdd\" or \"null\" or \"optane\" or \"raid\" or \"service\" or \
             \"ssd\"",
        ),
        (
            "[shape]\n",
            "[Shape]\n",
            "my.toml:5: `Shape` is not a key that this model knows; expected one of `name`, \
             `title`, `model`, `shape`, `ssd`, `throttle`, `faults`, `tracer`, `transport`, `calibration`",
        ),
        (
            "hw_queues = 1",
            "hw_queues = 1.0",
            "my.toml:9: `shape.hw_queues` is 1.0; expected a whole number of hardware queues from 1 to 2048",
        ),
        // Negative, not finite, out of physics.
        (
            "host_to_device_us = 4",
            "host_to_device_us = -4",
            "my.toml:19: `ssd.host_to_device_us` is -4; expected a number of microseconds from 0 to 10000000",
        ),
        (
            "flush_us = 500",
            "flush_us = nan",
            "my.toml:25: `ssd.flush_us` is nan; expected a number of microseconds from 0 to 10000000",
        ),
        (
            "flush_us = 500",
            "flush_us = -inf",
            "my.toml:25: `ssd.flush_us` is -inf; expected a number of microseconds from 0 to 10000000",
        ),
        (
            "serial_stage_us = 20.5",
            "serial_stage_us = 0",
            "my.toml:20: `ssd.serial_stage_us` is 0; expected a number of microseconds from 0.001 to 10000000",
        ),
        (
            "queue_depth = 32",
            "queue_depth = 0",
            "my.toml:10: `shape.queue_depth` is 0; expected a whole number of commands for each hardware queue from 1 \
             to 10240",
        ),
        (
            "queue_depth = 32",
            "queue_depth = 10_241",
            "my.toml:10: `shape.queue_depth` is 10241; expected a whole number of commands for each hardware queue \
             from 1 to 10240",
        ),
        (
            "logical_block_bytes = 512",
            "logical_block_bytes = 520",
            "my.toml:7: `shape.logical_block_bytes` is 520; expected a power of two from 512 to 65536, in bytes",
        ),
        (
            "physical_block_bytes = 4096\n",
            "physical_block_bytes = 4096 # ok\nphysical_block_bytes = 4096\n",
            "my.toml:9: duplicate key",
        ),
        (
            "logical_block_bytes = 512",
            "logical_block_bytes = 8192",
            "my.toml:8: `shape.physical_block_bytes` is 4096; expected at least `shape.logical_block_bytes`, which is \
             8192",
        ),
        (
            "capacity_gb = 480",
            "capacity_gb = 0",
            "my.toml:6: `shape.capacity_gb` is 0; expected a number of gigabytes (10^9 bytes) from 0.000000512 to \
             9000000",
        ),
        (
            "capacity_gb = 480",
            "capacity_gb = 480.0000001",
            "my.toml:6: `shape.capacity_gb` is 480.0000001, that is 480000000100 bytes; expected a whole number of \
             logical blocks of 512 bytes",
        ),
        // A slip in the sources, and text that is no TOML.
        (
            "\"ssd.flash_read_us\" =",
            "flash_read_us =",
            "my.toml:45: `calibration.sources.flash_read_us` is not the key of a parameter; expected one of these in \
             quotes: shape.capacity_gb",
        ),
        ("[ssd]", "[ssd", "my.toml:18: unclosed table, expected `]`"),
        ("threshold_pages = 3000", "threshold_pages = ", "my.toml:31: "),
    ];
    for (from, to, expected) in cases {
        let error = error_of(from, to);
        assert!(error.starts_with(expected), "{to:?}:\n  gives    {error}\n  expected {expected}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn the_section_must_be_that_of_the_model() {
    let error = error_of("model = \"ssd\"", "model = \"null\"");
    let expected = "my.toml:18: `ssd` is not a key that this model knows; expected one of `name`, `title`, `model`, \
                    `shape`, `null`, `throttle`, `faults`, `tracer`, `transport`, `calibration`";
    assert_eq!(error, expected);
}

#[test]
fn every_builtin_preset_is_named_as_its_file_and_describes_itself() {
    for name in Preset::builtin_names() {
        let preset = Preset::builtin(name).unwrap();
        assert_eq!(preset.name, name);
        let description = preset.describe();
        for part in [name, &preset.title, "calibrated on: ", "valid for: ", &preset.calibration().on] {
            assert!(description.contains(part), "{part:?} is not in\n{description}");
        }
    }
    let with_files: Vec<_> = Preset::builtin_names().take(14).collect();
    assert!(with_files.is_sorted());
    assert_eq!(with_files[0], "emmc");
    assert_eq!(Preset::builtin_names().count(), 14 + 36);
}

#[test]
fn a_calibrated_preset_says_where_each_of_its_numbers_comes_from() {
    fn keys(table: &toml::Table, prefix: &str, found: &mut Vec<String>) {
        for (key, value) in table {
            match value.as_table() {
                Some(inner) => keys(inner, &format!("{prefix}.{key}"), found),
                None => found.push(format!("{prefix}.{key}")),
            }
        }
    }
    let calibrated = ["hgst-he10-8tb", "intel-s3520-1600gb", "micron-9100-1600gb", "samsung-980pro-1tb"];
    for (name, model) in calibrated.into_iter().zip(["hdd", "ssd", "flash", "flash"]) {
        let preset = Preset::builtin(name).unwrap();
        let table: toml::Table = toml::to_string(&preset).unwrap().parse().unwrap();
        let mut found = Vec::new();
        keys(table[model].as_table().unwrap(), model, &mut found);
        assert!(found.len() > 8);
        for key in found {
            assert!(preset.calibration().sources.contains_key(&key), "{name}: no source for {key}");
        }
        assert!(preset.calibration().residuals.len() >= 6);
    }
    assert_eq!(Preset::builtin("intel-s3520-1600gb").unwrap().shape().capacity_sectors, 3_125_627_568);
}

#[test]
fn keys_of_the_other_models_are_checked_as_well() {
    let cases = [
        ("hgst-he10-8tb", "heads = 14", "heads = 0", "`hdd.heads` is 0; expected a whole number of heads from 1 to 64"),
        (
            "hgst-he10-8tb",
            "seek_average_ms = 8.0",
            "seek_average_ms = -1",
            "`hdd.seek_average_ms` is -1; expected a number of milliseconds from 0 to 1000",
        ),
        (
            "hgst-he10-8tb",
            "seek_average_ms = 8.0",
            "seek_average_ms = 14",
            "`hdd.seek_average_ms` is 14; expected a number of milliseconds from 5.333 to 8.233, so that with the other \
             two seeks a longer one takes longer",
        ),
        (
            "hgst-he10-8tb",
            "seek_full_stroke_ms = 15",
            "seek_full_stroke_ms = 0.1",
            "`hdd.seek_full_stroke_ms` is 0.1; expected at least `hdd.seek_track_to_track_ms`, which is 0.5",
        ),
        (
            "micron-9100-1600gb",
            "dies = 48",
            "dies = 0",
            "`flash.dies` is 0; expected a whole number of dies from 1 to 65536",
        ),
        (
            "micron-9100-1600gb",
            "buffer_kib = 1180",
            "buffer_kib = 8",
            "`flash.buffer_kib` is 8; expected at least `flash.program_kib`, which is 16",
        ),
        (
            "micron-9100-1600gb",
            "\"any-die\"",
            "\"best-die\"",
            "`flash.placement` is the text \"best-die\"; expected \"any-die\" or \"idle-die\" or \"striped\"",
        ),
        (
            "micron-9100-1600gb",
            "\"any-die\"",
            "\"striped\"",
            "`flash.placement` is the text \"striped\"; expected a section `flash.striping`, or another placement",
        ),
        (
            "micron-9100-1600gb",
            "[flash.translation]",
            "[flash.collection]\nprograms = 1\nstep_us = 1\nstep_programs = 1\n\n[flash.translation]",
            "`flash.placement` is the text \"any-die\"; expected \"striped\", because there is a section `flash.collection`",
        ),
        (
            "micron-9100-1600gb",
            "flush_us = 10",
            "collection_step_us = 500\nflush_us = 10",
            "`flash.collection_step_us` is 500; expected `program_suspend_us`, too: otherwise reads wait for whole programs",
        ),
        (
            "samsung-980pro-1tb",
            "programs = 430",
            "programs = 0",
            "`flash.collection.programs` is 0; expected a whole number of programs from 1 to 16777216",
        ),
        (
            "samsung-980pro-1tb",
            "\"striped\"",
            "\"any-die\"",
            "`flash.placement` is the text \"any-die\"; expected \"striped\", because there is a section `flash.striping`",
        ),
        (
            "micron-9100-1600gb",
            "flush_us = 10",
            "fua_blocks_reads = true\nflush_us = 10",
            "`flash.fua_blocks_reads` is true; expected false, or `shape.fua` and `shape.write_cache` true",
        ),
        (
            "micron-9100-1600gb",
            "flush_us = 10",
            "gc_defers = true\nflush_us = 10",
            "`flash.gc_defers` is true; expected false, or a section `flash.collection`",
        ),
        (
            "samsung-980pro-1tb",
            "flush_us = 20",
            "heat_placement = true\nflush_us = 20",
            "`flash.heat_placement` is true; expected false, or a section `flash.translation`",
        ),
        (
            "raid-64-queues",
            "inner = \"hgst-he10-8tb\"",
            "inner = \"mine\"",
            "`raid.inner` is the text \"mine\"; expected the name of a built-in device (see `hoistway devices`)",
        ),
        (
            "raid-64-queues",
            "inner = \"hgst-he10-8tb\"",
            "inner = \"raid-64-queues\"",
            "`raid.inner` is the text \"raid-64-queues\"; expected a device that is not a RAID card itself",
        ),
        (
            "raid-64-queues",
            "inner = \"hgst-he10-8tb\"",
            "inner = \"null\"",
            "`raid.inner` is the text \"null\"; expected a device of at least `shape.capacity_gb`, which is \
             8001.563222016 GB",
        ),
        (
            "throttled-cloud-volume",
            "ios = 5_400_000",
            "ios = -1",
            "`throttle.burst.ios` is -1; expected a number of I/O credits from 0 to 1000000000000",
        ),
    ];
    for (name, from, to, expected) in cases {
        let file = format!("{}/presets/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains(from), "{name}: {from}");
        let error = Preset::from_toml(&text.replacen(from, to, 1), "my.toml").unwrap_err().to_string();
        let told = error.split_once(": ").unwrap();
        assert!(told.0.starts_with("my.toml:"), "{error}");
        assert_eq!(told.1, expected);
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    let error = Preset::builtin("floppy").unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no built-in device `floppy`; expected one of emmc, hgst-he10-8tb, intel-p4800x-375gb, intel-s3520-1600gb, \
         laptop-hdd, micron-9100-1600gb, null, nvme-over-tcp, nvme-wrr, raid-64-queues, samsung-980pro-1tb, sd-card, \
         throttled-cloud-volume, usb-stick, one of 36 SSDs by model (see `hoistway devices`), a class of devices (hdd, sata-ssd, nvme, usb-stick, \
         sd-card, emmc, laptop-hdd, cloud-volume), or a preset file"
    );
}

#[test]
fn a_preset_survives_being_written_and_read() {
    let builtin = Preset::builtin_names().map(|name| Preset::builtin(name).unwrap());
    for preset in builtin.chain([Preset::from_toml(GOOD, "a.toml").unwrap()]) {
        assert_eq!(toml::from_str::<Preset>(&toml::to_string(&preset).unwrap()).unwrap(), preset);
        let file = PresetFile::from(preset.clone());
        assert_eq!(Preset::from_toml(&file.to_toml().unwrap(), "b.toml").unwrap(), preset);
        assert_eq!(Preset::try_from(file).unwrap(), preset);
    }
}

#[test]
fn a_file_that_a_program_fills_in_is_checked_as_well() {
    let mut file = PresetFile::from(Preset::from_toml(GOOD, "my.toml").unwrap());
    file.ssd.as_mut().unwrap().flash_read_us = f64::NAN;
    let error = Preset::try_from(file.clone()).unwrap_err().to_string();
    assert!(error.contains("`ssd.flash_read_us` is nan; expected a number of microseconds"), "{error}");
    file.model = Model::Null;
    let error = Preset::try_from(file).unwrap_err();
    assert!(matches!(error, PresetError::Key { key, .. } if key == "ssd"));
}

/// A preset text with some of its parts cut, doubled or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, any_value()), 1..4);
    edits.prop_map(|edits| {
        let mut lines: Vec<String> = GOOD.lines().map(str::to_owned).collect();
        for (index, edit, value) in edits {
            let at = index.index(lines.len());
            match edit {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[at].clone()),
                2 => lines[at] = lines[at].chars().take(lines[at].chars().count() / 2).collect(),
                3 => lines.insert(at, value),
                _ => {
                    if let Some((key, _)) = lines[at].clone().split_once('=') {
                        lines[at] = format!("{key}={value}");
                    }
                }
            }
            if lines.is_empty() {
                lines.push(String::new());
            }
        }
        lines.join("\n")
    })
}

/// Something to stand where a value stands.
fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        (0..100_u32).prop_map(|n| format!("0x{n:x}")),
        prop::num::f64::ANY.prop_map(|n| format!("{n:?}")),
        (0..60_u32).prop_map(|n| (1_u64 << n).to_string()),
        "[0-9]{1,40}",
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("[[]]".to_owned()),
        Just("[{ what = 1 }]".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        Just("true".to_owned()),
        Just("\"\\u0007 ü \"".to_owned()),
        ".{0,100}",
    ]
}

/// Reads the text; a device that comes of it must work. Returns the error.
fn validate_settings(text: &str) -> Option<PresetError> {
    match Preset::from_toml(text, "fuzz.toml") {
        Ok(preset) => {
            let mut device = preset.build(1);
            let mut schedule = hoistway_device::Schedule::default();
            for (tag, op) in [hoistway_blk::bio::Op::Write, hoistway_blk::bio::Op::Read, hoistway_blk::bio::Op::Flush]
                .into_iter()
                .enumerate()
            {
                let sectors = if op == hoistway_blk::bio::Op::Flush { 0 } else { 1 };
                let sector = hoistway_blk::ground::Sector(0);
                let command = hoistway_device::Command { tag: tag as u32, queue: 0, op, sector, sectors, fua: false };
                device.submit(hoistway_blk::ground::Instant::ZERO, command, &mut schedule).unwrap();
            }
            assert!(!preset.describe().is_empty());
            assert_eq!(Preset::try_from(PresetFile::from(preset.clone())).unwrap(), preset);
            None
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("fuzz.toml:") && message.lines().count() == 1, "{message}");
            Some(error)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_mutated_preset_gives_a_working_device_or_one_error(text in mutated()) {
        if let Some(PresetError::Text { problem, .. }) = validate_settings(&text) {
            // What is TOML must be reported with its key.
            prop_assert!(text.parse::<toml::Table>().is_err(), "{problem}\n{text}");
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*", bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        validate_settings(&text);
        validate_settings(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_jumble_of_toml_makes_the_reader_panic(text in "[\\[\\]{}=.,\"'#\n a-c0-9_+-]{0,200}") {
        validate_settings(&text);
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    for text in [format!("a = {}", "[".repeat(100_000)), format!("a = {}", "{a=".repeat(100_000))] {
        assert!(validate_settings(&text).is_some());
    }
    assert!(validate_settings(&format!("{} = 1", vec!["a"; 100_000].join("."))).is_some());
}

#[test]
fn a_custom_preset_has_a_calibrated_range_like_a_built_in_one() {
    let range = "valid_range = \"4 KiB random\"\n\n[calibration.range]\nio_bytes = [4096, 8192]\noutstanding = [1, 32]\n\
                 reads_percent = [70, 100]\nflushes = true\n";
    let preset = Preset::from_toml(&GOOD.replace("valid_range = \"4 KiB random\"\n", range), "my.toml").unwrap();
    let expected =
        "  calibrated range: random I/O of 4096 to 8192 bytes, 1 to 32 outstanding, 70 to 100 % reads, with flushes\n";
    assert!(preset.describe().contains(expected), "{}", preset.describe());
    let again = Preset::from_toml(&toml::to_string(&preset).unwrap(), "again").unwrap();
    assert_eq!(again, preset);
    let refused = |from: &str, to: &str| {
        let text = GOOD.replace("valid_range = \"4 KiB random\"\n", range);
        assert_eq!(text.matches(from).count(), 1, "{from}");
        Preset::from_toml(&text.replace(from, to), "my.toml").unwrap_err().to_string()
    };
    for (from, to, expected) in [
        (
            "[4096, 8192]",
            "[8192, 4096]",
            "my.toml:40: `calibration.range.io_bytes` is a list; expected two whole numbers of bytes",
        ),
        (
            "[1, 32]",
            "32",
            "my.toml:41: `calibration.range.outstanding` is 32; expected two whole numbers of I/Os from 1 to",
        ),
        (
            "[70, 100]",
            "[70, 101]",
            "my.toml:42: `calibration.range.reads_percent` is a list; expected two whole numbers of percent",
        ),
        ("io_bytes = [4096, 8192]\n", "", "my.toml:39: `calibration.range.io_bytes` is missing"),
        ("flushes = true", "syncs = true", "my.toml:43: `calibration.range.syncs` is not a key"),
        (
            "on = \"a run",
            "assumed = true\non = \"a run",
            "my.toml:36: `calibration.assumed` is true; expected false, or a section without",
        ),
    ] {
        let error = refused(from, to);
        assert!(error.starts_with(expected), "{to:?}:\n  gives    {error}\n  expected {expected}");
    }
}

#[test]
fn every_builtin_preset_has_a_range_or_says_that_it_was_made_without_measurements_or_is_one_of_the_coarse_ones() {
    for name in Preset::builtin_names() {
        let preset = Preset::builtin(name).unwrap();
        let calibration = preset.calibration();
        let kinds = [calibration.range.is_some(), calibration.assumed, calibration.on.contains("iocost-benchmarks")];
        assert_eq!(kinds.iter().filter(|is| **is).count(), 1, "{name}");
    }
}

#[test]
fn a_transport_is_part_of_the_shape_and_refused_where_hardware_queues_have_another_use() {
    let preset = Preset::builtin("nvme-over-tcp").unwrap();
    let transport = preset.transport().unwrap();
    assert_eq!(preset.shape().transport.map(|transport| transport.batch), Some(16));
    assert_eq!([0, 8, 128].map(|sectors| transport.time_of(sectors).0), [5000, 5400, 11_400]);
    assert_eq!(transport.doorbell().0, 50_000);
    assert!(
        preset.describe().contains("behind a transport: a worker on each CPU, 5000 ns a request"),
        "{}",
        preset.describe()
    );
    assert_eq!(Preset::builtin("null").unwrap().shape().transport, None);
    let section = "[transport]\nrequest_ns = 5000\nkib_ns = 100\nbatch = 16\ndoorbell_us = 50\n\n[calibration]";
    let refused = |name: &str, section: &str| {
        let text = Preset::builtin_toml(name).unwrap().replace("[calibration]", section);
        Preset::from_toml(&text, "my.toml").unwrap_err().to_string()
    };
    for (name, section, expected) in [
        (
            "intel-s3520-1600gb",
            section.to_owned(),
            "`transport` is given; expected no transport, or `shape.scsi` false",
        ),
        (
            "nvme-wrr",
            section.to_owned(),
            "`transport` is given; expected no transport, or no section `flash.arbitration`",
        ),
        (
            "null",
            section.replace("5000", "0"),
            "`transport.request_ns` is 0; expected a whole number of nanoseconds from 1",
        ),
        (
            "null",
            section.replace("batch = 16", "batch = 0"),
            "`transport.batch` is 0; expected a whole number of requests",
        ),
        (
            "null",
            section.replace("batch = 16\n", ""),
            "`transport.batch` is missing; expected a whole number of requests",
        ),
    ] {
        let error = refused(name, &section);
        assert!(error.contains(expected), "{name}:\n  gives    {error}\n  expected {expected}");
    }
}

#[test]
fn a_modified_built_in_preset_drops_the_measurement_claims() {
    let original = Preset::builtin("hgst-he10-8tb").unwrap();
    assert_eq!(original.clone().without_borrowed_claims(), original);
    let text = Preset::builtin_toml("hgst-he10-8tb").unwrap();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        Preset::from_toml(&text.replace(from, to), "mine.toml").unwrap().without_borrowed_claims()
    };
    // Another name is a claim of no other.
    let renamed = changed("name = \"hgst-he10-8tb\"", "name = \"mine\"");
    assert_eq!(renamed.calibration(), original.calibration());
    for (from, to) in
        [("rotations_per_minute = 7200", "rotations_per_minute = 5400"), ("hw_queues = 1", "hw_queues = 2")]
    {
        let mine = changed(from, to);
        let calibration = mine.calibration();
        assert!(calibration.assumed && calibration.residuals.is_empty() && calibration.range.is_none(), "{to}");
        assert!(calibration.on.contains("differ from those of hgst-he10-8tb"), "{}", calibration.on);
        assert_eq!(calibration.sources, original.calibration().sources);
    }
    // What never claimed anything of a built-in one is left as it is.
    let own = Preset::from_toml(GOOD, "mine.toml").unwrap();
    assert_eq!(own.clone().without_borrowed_claims(), own);
}
