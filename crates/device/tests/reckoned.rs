//! Coarse presets have no parameters of their own, only what follows from a few measurements.

use hoistway_device::{Parameters, Preset};

#[test]
fn coarse_preset_parameters_follow_from_the_measurements_of_the_drive() {
    let presets = Preset::builtin_names().map(|name| Preset::builtin(name).unwrap());
    for preset in presets.filter(|preset| preset.title.contains("(coarse")) {
        let name = &preset.name;
        let Parameters::Flash(flash) = preset.parameters() else { panic!("{name} is flash") };
        let measured: Vec<f64> = preset.calibration().residuals.iter().map(|residual| residual.measured).collect();
        let [read_mb_per_s, read_kiops, write_mb_per_s, write_kiops] = measured[..] else {
            panic!("{name}: {measured:?}")
        };
        let is_near = |one: f64, other: f64| (one / other - 1.0).abs() < 0.01;
        // What all dies program, at most and at random.
        let dies = f64::from(flash.dies);
        let programmed = f64::from(flash.program_kib) * 1.024 * dies / flash.program_us * 1e3;
        assert!(is_near(programmed, write_mb_per_s.max(write_kiops * 4.096)), "{name}: {programmed} MB/s");
        let at_random = programmed / flash.random_write_amplification.unwrap() / 4.096;
        assert!(is_near(at_random, write_kiops.min(programmed / 4.096)), "{name}: {at_random} kIOPS");
        assert!(f64::from(flash.buffer_kib) == 2.0 * dies * f64::from(flash.program_kib), "{name}: two programs a die");
        // Random reads are limited by the dies, or else by the front end and by no more than that.
        let by_dies = dies * 1e3 / flash.read_us;
        let by_front_end = 1e3 / flash.command_us;
        assert!(by_dies.min(by_front_end) > 0.94 * read_kiops, "{name}: {by_dies}, {by_front_end} kIOPS");
        assert!(is_near(by_dies, read_kiops) || by_dies > 2.0 * read_kiops, "{name}: {by_dies} kIOPS");
        // Large reads are limited by the link: pieces are large enough, and no larger than that needs.
        let pieces = f64::from(flash.read_piece_kib) * 1.024 * by_dies;
        assert!(pieces >= 1.6 * read_mb_per_s, "{name}: {pieces} MB/s");
        assert!(
            flash.read_piece_kib == 16 || pieces < 2.0 * 1.6 * read_mb_per_s + 2.0 * 16.4 * by_dies,
            "{name}: {pieces} MB/s"
        );
        // A command of 128 KiB takes as long as was measured, at least half of it for its transfer; writes that the dies take no
        // faster are limited by those.
        let write_link = if programmed > 1.001 * write_mb_per_s { write_mb_per_s } else { 1.2 * write_mb_per_s };
        for (beyond, large) in [(flash.read_mb_per_s, read_mb_per_s), (flash.write_mb_per_s, write_link)] {
            let (large_us, transfer_us) = (131_072.0 / large, (131_072.0 - 4096.0) / beyond);
            let is_short = is_near(transfer_us, large_us / 2.0) && flash.command_us > 0.49 * large_us;
            assert!(
                is_short || is_near(transfer_us + flash.command_us, large_us),
                "{name}: {transfer_us} of {large_us} us"
            );
        }
        let shape = preset.shape();
        let (queues, depth) = if shape.scsi { (1, 32) } else { (8, 1023) };
        assert_eq!((shape.hw_queues, shape.queue_depth, shape.fua), (queues, depth, !shape.scsi), "{name}");
        assert!(!shape.scsi || read_mb_per_s < 600.0, "{name} is faster than SATA");
    }
}
