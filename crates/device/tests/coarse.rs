//! The coarse presets do what was measured of their drives, and say how well.

use crate::closed_loop;

use closed_loop::{Process, run};
use hoistway_blk::ground::Nanos;
use hoistway_device::{Parameters, Preset};

/// Coarse presets come after those with a file of their own.
fn coarse() -> impl Iterator<Item = Preset> {
    Preset::builtin_names().map(|name| Preset::builtin(name).unwrap()).filter(|preset| preset.title.contains("(coarse"))
}

/// I/Os a second, the first half second left out.
fn iops(preset: &Preset, process: Process) -> f64 {
    let ios = |ms| {
        let measured = run(&mut *preset.build(1), &[process], Nanos::from_millis(ms), 1);
        measured[0].iter().map(|cell| cell.ios as f64).sum::<f64>()
    };
    (ios(2500) - ios(500)) / 2.0
}

/// What the preset does where the drive was measured: MB/s, kIOPS, MB/s, kIOPS.
fn simulated(preset: &Preset) -> [f64; 4] {
    let depth = preset.shape().queue_depth.min(256);
    let (reads, writes) = (Process::random(depth, 100), Process::random(depth, 0));
    let large = |process: Process, sequential| {
        iops(preset, Process { sectors: 256, sequential, depth: depth.min(64), ..process }) * 131_072.0 / 1e6
    };
    [large(reads, false), iops(preset, reads) / 1e3, large(writes, true), iops(preset, writes) / 1e3]
}

#[test]
fn the_36_coarse_presets_are_within_ten_percent_of_the_measurements() {
    assert_eq!(coarse().count(), 36);
    let mut table = "device,read_mb_per_s,random_read_kiops,write_mb_per_s,random_write_kiops\n".to_owned();
    let mut wrong = Vec::new();
    for preset in coarse() {
        let simulated = simulated(&preset);
        let [a, b, c, d] = simulated;
        table += &format!("{},{a:.0},{b:.1},{c:.0},{d:.1}\n", preset.name);
        let residuals = &preset.calibration().residuals;
        if residuals.len() != 4 {
            wrong.push(format!("{} has {} residuals", preset.name, residuals.len()));
        }
        for (residual, simulated) in residuals.iter().zip(simulated) {
            if residual.error_percent().abs() > 10.0 || (simulated / residual.model - 1.0).abs() > 0.02 {
                wrong.push(format!("{}, {}: measured {}, {simulated}", preset.name, residual.what, residual.measured));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\nssd_models_residuals.csv should be\n{table}", wrong.join("\n"));
}

/// The mean latency of reads of 4 KiB beside a writer, us, and its writes per second, in thousands.
fn reads_beside_writes(preset: &Preset, reader: Process, writer: Process) -> [f64; 2] {
    let milliseconds = 400;
    let measured = run(&mut *preset.build(1), &[reader, writer], Nanos::from_millis(milliseconds), 1);
    [measured[0][0].mean_ms() * 1e3, measured[1][1].ios as f64 / milliseconds as f64]
}

/// Beside any writer a read of a drive whose programs can be interrupted waits for a step of collection, for reads, and for transfers of
/// writes before it. It never waits for a program, however much collection that contains.
#[test]
fn reads_beside_any_writer_wait_for_steps_of_collection_and_not_for_programs() {
    let interruptible = |preset: &Preset| match preset.parameters() {
        Parameters::Flash(flash) => {
            flash.collection_step_us.map(|step| (step + 4.0 * flash.read_us, flash.write_mb_per_s))
        }
        _ => None,
    };
    let mut random = 1_u64;
    let mut below = |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % limit
    };
    for preset in coarse() {
        let Some((flash_us, mb_per_s)) = interruptible(&preset) else { continue };
        let [depth, sectors] = [[1, 4, 16, 64, 256][below(5)], [8, 8, 32, 128, 512][below(5)]];
        let reader = Process::random([1, 2, 4][below(3)], 100);
        let [mean_us, _] = reads_beside_writes(&preset, reader, Process { sectors, ..Process::random(depth, 0) });
        let transfers_us = f64::from(depth * sectors) * 512.0 / mb_per_s;
        assert!(
            mean_us < flash_us + transfers_us,
            "{} beside {depth} writes of {sectors} sectors: {mean_us} us",
            preset.name
        );
    }
}

/// A durable write waits until its data is in the flash. The collection that makes room for the next program comes behind it, and nothing waits
/// for that while dies are idle.
#[test]
fn durable_random_writes_wait_for_their_program_and_not_for_collection() {
    for preset in coarse() {
        let Parameters::Flash(flash) = preset.parameters() else { unreachable!() };
        for beside in [0, 1, 2] {
            let durable = Process { fua: true, ..Process::random(1, 0) };
            let mut processes = vec![durable; 1 + beside];
            processes[0].sectors = 32;
            let measured = run(&mut *preset.build(1), &processes, Nanos::from_millis(400), 1);
            let mean_us = measured[0][1].mean_ms() * 1e3;
            // Its own program, and one that a neighbour has just begun; or as many a second as all dies collect for.
            let collected_us = flash.program_us * flash.random_write_amplification.unwrap() / f64::from(flash.dies);
            let most_us = (2.2 * flash.program_us + 200.0).max(1.2 * processes.len() as f64 * collected_us);
            assert!(
                mean_us < most_us,
                "{} beside {beside}: {mean_us} us, programs {} us",
                preset.name,
                flash.program_us
            );
        }
    }
}

/// Nothing of the coarse model was taken from the calibrated one but how reads treat programs and collection: its figures are those
/// of another measurement of the same model of drive.
#[test]
fn the_coarse_model_of_a_calibrated_drive_reads_beside_writes_nearly_as_the_calibrated_one() {
    let [calibrated, coarse] =
        ["samsung-980pro-1tb", "Samsung_SSD_980_PRO_1TB"].map(|name| Preset::builtin(name).unwrap());
    for (read_depth, write_sectors, write_depth) in
        [(1, 8, 16), (1, 8, 128), (1, 128, 16), (32, 8, 16), (32, 8, 128), (32, 128, 16)]
    {
        let reader = Process::random(read_depth, 100);
        let writer = Process { sectors: write_sectors, ..Process::random(write_depth, 0) };
        let [[expected, wrote], [reads, writes]] =
            [&calibrated, &coarse].map(|preset| reads_beside_writes(preset, reader, writer));
        let load = format!("depth {read_depth} beside {write_sectors} sectors at {write_depth}");
        println!("{load}: reads {expected:.0} us, coarse {reads:.0}; {wrote:.1} k writes a second, coarse {writes:.1}");
        let factor = |found: f64, expected: f64| (found / expected).max(expected / found);
        assert!(factor(reads, expected) < 1.7, "{load}: {reads} us instead of {expected}");
        assert!(factor(writes, wrote) < 2.5, "{load}: {writes} k writes a second instead of {wrote}");
    }
}

#[test]
fn class_models_match_data_sheets_and_are_marked_as_not_measured() {
    // MB/s, kIOPS, MB/s, kIOPS: large reads, random reads, large writes, random writes.
    for (name, expected) in [
        ("usb-stick", [100.0, 1.5, 30.0, 0.05]),
        ("sd-card", [65.0, 1.5, 30.0, 0.5]),
        ("emmc", [280.0, 11.0, 125.0, 6.0]),
    ] {
        let preset = Preset::builtin(name).unwrap();
        let found = simulated(&preset);
        let is_near = found.iter().zip(expected).all(|(found, expected)| (found / expected - 1.0).abs() < 0.15);
        assert!(is_near, "{name}: {found:?} and not {expected:?}");
        assert!(preset.calibration().assumed && preset.title.contains("a coarse model of its class"), "{name}");
    }
    let disk = Preset::builtin("laptop-hdd").unwrap();
    let [_, reads, writes, _] = simulated(&disk);
    // A random read alone takes a seek and half a turn, 18.6 ms; a queue of 32 doubles the rate, more or less.
    assert!((0.08..0.14).contains(&reads) && (120.0..145.0).contains(&writes), "{reads} kIOPS, {writes} MB/s");
    assert!(disk.calibration().assumed && disk.title.contains("a coarse model of its class"));
}
