//! Does the preset of the Intel DC S3520 reproduce what it is calibrated on? Without any scheduler: the table's
//! row `none`.

mod closed_loop;

use closed_loop::{Measured, Process, run};
use hoistway_blk::Nanos;
use hoistway_device::Preset;

/// The published SATA SSD table (habr), row `none`: per process, the median over the processes of its job.
const PUBLISHED: [Row; 3] = [
    Row { what: "writers", processes: 0..10, write: true, iops: 3208.8, mean_ms: 1.245 },
    Row { what: "mixed, writes", processes: 10..12, write: true, iops: 2543.5, mean_ms: 1.227 },
    Row { what: "mixed, reads", processes: 10..12, write: false, iops: 635.2, mean_ms: 1.376 },
];

/// What the table says of one job in one direction.
struct Row {
    what: &'static str,
    /// The job's processes, as numbered here.
    processes: std::ops::Range<usize>,
    write: bool,
    /// For each process; bandwidth of the table / 4 KiB, because the printed IOPS are truncated.
    iops: f64,
    /// Mean total latency.
    mean_ms: f64,
}

/// Tolerance of every figure.
const PERCENT: f64 = 3.0;

/// Long enough for some 35 pauses; the published run took 7200 s.
const DURATION_S: u64 = 120;

fn measure(seed: u64) -> Vec<[Measured; 2]> {
    let writer = Process { depth: 4, read_percent: 0, sectors: 8 };
    let mixed = Process { read_percent: 20, ..writer };
    let processes: Vec<_> = [vec![writer; 10], vec![mixed; 2]].concat();
    let mut device = Preset::builtin("intel-s3520-1600gb").expect("a built-in preset").build(seed);
    run(&mut *device, &processes, Nanos::from_secs(DURATION_S), seed + 1000)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

#[test]
fn every_figure_of_the_row_none_is_met_within_three_percent_and_as_the_preset_says() {
    let preset = Preset::builtin("intel-s3520-1600gb").expect("a built-in preset");
    for seed in 1..=3 {
        let measured = measure(seed);
        for row in PUBLISHED {
            let cells = &measured[row.processes.clone()];
            let of = |figure: fn(&Measured) -> f64| {
                median(cells.iter().map(|cell| figure(&cell[usize::from(row.write)])).collect())
            };
            let figures = [
                ("IOPS of each", of(|cell| cell.ios as f64 / DURATION_S as f64), row.iops),
                ("mean latency, ms", of(Measured::mean_ms), row.mean_ms),
            ];
            for (figure, model, published) in figures {
                let error = (model / published - 1.0) * 100.0;
                let told = format!("seed {seed}: {}: {figure}: {model:.3}, published {published}", row.what);
                println!("{told} ({error:+.1} %)");
                assert!(error.abs() < PERCENT, "{told} ({error:+.1} %)");
                // What the preset says of itself must be true.
                let what = format!("{}, {figure}", row.what);
                let residual = preset.calibration().residuals.iter().find(|residual| residual.what == what);
                let residual = residual.unwrap_or_else(|| panic!("the preset has no residual {what:?}"));
                assert_eq!(residual.measured, published, "{what}");
                assert!((model / residual.model - 1.0).abs() < 0.005, "{told}, the preset says {}", residual.model);
            }
        }
    }
}

#[test]
fn the_longest_latency_is_that_of_a_pause_as_published() {
    // The article's prose gives maxima of 35 to 50 ms for every scheduler without a bad case of its own.
    let measured = measure(1);
    let longest = measured.iter().flatten().map(Measured::max_ms).fold(0.0, f64::max);
    println!("longest: {longest:.1} ms");
    assert!((35.0..50.0).contains(&longest), "{longest:.1} ms");
}

#[test]
fn littles_law_holds_for_every_process() {
    for (index, process) in measure(1).iter().enumerate() {
        let waited_s: f64 = process.iter().map(|cell| cell.latency_sum_ns as f64 / 1e9).sum();
        let outstanding = waited_s / DURATION_S as f64;
        assert!((outstanding / 4.0 - 1.0).abs() < 0.001, "process {index}: {outstanding:.4} outstanding, not 4");
    }
}

#[test]
fn a_throttled_load_pauses_the_drive_no_more() {
    // One write in flight, as Kyber of 4.12 leaves it: 27,200 writes a second, fewer than the drive cleans up.
    let writer = Process { depth: 1, read_percent: 0, sectors: 8 };
    let mut device = Preset::builtin("intel-s3520-1600gb").expect("a built-in preset").build(1);
    let measured = run(&mut *device, &[writer], Nanos::from_secs(60), 1);
    assert_eq!(measured[0][1].latency_max_ns, 36_800);
}
