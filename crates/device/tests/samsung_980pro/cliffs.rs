//! Reads beside writes have no cliffs: neither along the depth of the writes nor along a number of the preset.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::Nanos;
use hoistway_device::{Flash, FlashParameters};

use super::cells::Drives;
use super::host::{App, CPU_ONE_KYBER_NS, KERNEL_NS, run};
use super::{SLOW_STEPS, preset};

/// Sectors and depth of the writes. kyber admits 128 of them to a drive; what two writers have outstanding under none is at most 256.
const LOADS: [(u32, u32); 6] = [(8, 1), (8, 8), (8, 32), (8, 128), (128, 128), (128, 256)];

/// Mean latency of a reader at depth 1, us, and writes a second beside it.
fn figures(parameters: &FlashParameters, (sectors, depth): (u32, u32)) -> [f64; 2] {
    let reader =
        App { depth: 1, op: Op::Read, sectors: 8, core: Some(0), cpu_ns: CPU_ONE_KYBER_NS, kernel_ns: KERNEL_NS };
    let writer = App { depth, op: Op::Write, sectors, core: Some(1), ..reader };
    let drive = Flash::new(preset().shape(), parameters, 5);
    let measured = run(vec![Box::new(drive)], &[reader, writer], [500, 1000].map(Nanos::from_millis), 3);
    [measured[0].mean_us(), measured[1].ios as f64]
}

#[test]
fn more_outstanding_writes_never_slow_writes_or_speed_reads_and_no_step_is_large() {
    let Drives { usual, .. } = Drives::of_preset(SLOW_STEPS);
    let depths = [1, 2, 4, 8, 16, 32, 64, 128];
    let curve = depths.map(|depth| figures(&usual, (8, depth)));
    depths.iter().zip(&curve).for_each(|(depth, [mean, writes])| println!("depth {depth}: {mean:.0} us, {writes:.0}"));
    for pair in curve.windows(2) {
        let [reads, writes] = [0, 1].map(|figure| pair[1][figure] / pair[0][figure]);
        // Give or take what chance does.
        assert!((0.85..1.9).contains(&reads) && (0.97..2.0).contains(&writes), "{pair:?}");
    }
}

/// A number of the preset with its name.
type Number = (&'static str, fn(&mut FlashParameters, f64));

/// The numbers that writes depend on. Left out are the size and speed of the flash (dies, data and time of a program), to which the
/// figures are proportional, and `fetches_commands`: the published reader is blocked by 256 large writes and not by 128, and half
/// or double of 224 is on the other side of one of these.
const NUMBERS: [Number; 11] = [
    ("acknowledge_us", |of, times| of.acknowledge_us *= times),
    ("write_mb_per_s", |of, times| of.write_mb_per_s *= times),
    ("buffer_kib", |of, times| of.buffer_kib = whole(of.buffer_kib, times)),
    ("program_jitter_percent", |of, times| of.program_jitter_percent = (of.program_jitter_percent * times).min(100.0)),
    ("program_suspend_us", |of, times| of.program_suspend_us = of.program_suspend_us.map(|us| us * times)),
    ("striping.write_through_unit_kib", |of, times| {
        let striping = of.striping.as_mut().unwrap();
        striping.write_through_unit_kib = whole(striping.write_through_unit_kib, times);
    }),
    ("collection.programs", |of, times| {
        let collection = of.collection.as_mut().unwrap();
        collection.programs = whole(collection.programs, times);
    }),
    ("collection.step_us", |of, times| of.collection.as_mut().unwrap().step_us *= times),
    ("collection.step_programs", |of, times| {
        let collection = of.collection.as_mut().unwrap();
        collection.step_programs = whole(collection.step_programs, times);
    }),
    ("stall.every_mb", |of, times| of.stall.as_mut().unwrap().every_mb *= times),
    ("stall.lasts_ms", |of, times| of.stall.as_mut().unwrap().lasts_ms *= times),
];

fn whole(number: u32, times: f64) -> u32 {
    ((f64::from(number) * times) as u32).max(1)
}

#[test]
fn half_and_double_of_a_number_move_no_figure_by_more_than_a_factor_of_two() {
    let Drives { usual, .. } = Drives::of_preset(SLOW_STEPS);
    let before = LOADS.map(|load| figures(&usual, load));
    for (name, change) in NUMBERS {
        for times in [0.5, 2.0] {
            let mut changed = usual.clone();
            change(&mut changed, times);
            let ratios: Vec<f64> = LOADS
                .iter()
                .zip(before)
                .flat_map(|(&load, before)| {
                    let after = figures(&changed, load);
                    [after[0] / before[0], after[1] / before[1]]
                })
                .collect();
            println!("{name} times {times}: {ratios:.2?}");
            assert!(ratios.iter().all(|ratio| (0.5..2.0).contains(ratio)), "{name} times {times}: {ratios:.2?}");
        }
    }
}
