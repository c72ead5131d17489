//! Coarse presets: SSDs for which only a few figures were measured, converted to parameters of the flash model by the
//! same rules. The measurements are a table; there is one preset for each line.
//!
//! The figures are those that iocost (a controller of cgroups) needs: saturated bandwidth and 4 KiB IOPS. They do not
//! contain the latency of a single command, so those parameters have the same typical values for all drives.

use super::file::{Model, PresetFile, ShapeSection};
use super::{Calibration, Residual};
use crate::flash::{FlashParameters, Placement};

/// The measurements, one line per drive; medians if a drive was measured several times.
const MEASURED: &str = include_str!("../../presets/ssd_models_iocost.csv");

/// The simulated results of the presets, one line per drive. A test checks its content.
const SIMULATED: &str = include_str!("../../presets/ssd_models_residuals.csv");

/// The names under which makers sell drives that are measured by model number, by their data sheets. Other drives have that name already.
const SOLD_AS: &str = include_str!("../../presets/ssd_models_sold_as.csv");

/// Columns of [`MEASURED`].
const NAME: usize = 0;
const RUNS: usize = 1;
const CAPACITY_GB: usize = 2;
const FIGURES: [usize; 4] = [3, 5, 6, 8];
const READ_SEQUENTIAL_KIOPS: usize = 4;
const WRITE_SEQUENTIAL_KIOPS: usize = 7;

/// The measurements that the presets are calibrated with, in the order of [`FIGURES`].
const FIGURE_NAMES: [&str; 4] =
    ["large reads, MB/s", "random 4 KiB reads, kIOPS", "large sequential writes, MB/s", "random 4 KiB writes, kIOPS"];

/// Time to read a piece of flash, us: typical for flash with three bits per cell.
const READ_US: f64 = 80.0;

/// How reads treat programs and collection, us: as in the calibrated drive of the class, samsung-980pro-1tb. No SATA drive shows it.
const SUSPEND_US: f64 = 10.0;
const COLLECTION_STEP_US: f64 = 850.0;

/// How far a drive reads ahead: assumed, as no table shows it. With less a drive does not reach its sequential rate with one command of
/// 128 KiB at a time.
const READ_AHEAD_KIB: u32 = 512;

/// Size of a large command.
const LARGE_BYTES: f64 = 131_072.0;

/// The names of the drives, in the order of the table.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    lines(MEASURED).map(|line| field(line, NAME))
}

/// The drives with a name that their model number does not show, and that name.
pub(super) fn sold_as() -> impl Iterator<Item = (&'static str, &'static str)> {
    lines(SOLD_AS).map(|line| (field(line, NAME), field(line, 1)))
}

/// The figures that iocost needs of this drive, as measured: bytes, sequential and random 4 KiB I/Os a second of reads, then of writes.
pub(super) fn io_cost_figures(name: &str) -> Option<[u64; 6]> {
    let line = lines(MEASURED).find(|line| field(line, NAME) == name)?;
    let [read_mb_per_s, read_random, write_mb_per_s, write_random] = FIGURES;
    let columns =
        [read_mb_per_s, READ_SEQUENTIAL_KIOPS, read_random, write_mb_per_s, WRITE_SEQUENTIAL_KIOPS, write_random];
    let mut figures = [0; 6];
    for (figure, column) in figures.iter_mut().zip(columns) {
        let scale = if column == read_mb_per_s || column == write_mb_per_s { 1e6 } else { 1e3 };
        *figure = (field(line, column).parse::<f64>().ok()? * scale).round() as u64;
    }
    Some(figures)
}

/// The preset of this drive, unchecked like any file.
pub(super) fn file(name: &str) -> Option<PresetFile> {
    let line = lines(MEASURED).find(|line| field(line, NAME) == name)?;
    let number = |column: usize| field(line, column).parse::<f64>().ok();
    let [read_mb_per_s, read_kiops, write_mb_per_s, write_kiops] = FIGURES.map(number);
    let (read_mb_per_s, read_kiops) = (read_mb_per_s?, read_kiops?);
    let (write_mb_per_s, write_kiops) = (write_mb_per_s?, write_kiops?);
    let fastest_kiops = [read_kiops, write_kiops, number(READ_SEQUENTIAL_KIOPS)?, number(WRITE_SEQUENTIAL_KIOPS)?]
        .into_iter()
        .fold(0.0, f64::max);
    // The SATA drives of the table reach nearly 100 k IOPS within the 600 MB/s of their interface; its slow NVMe drives do not.
    let is_sata = read_mb_per_s < 600.0 && fastest_kiops > 90.0;
    let shape = shape(number(CAPACITY_GB)?, is_sata);
    let flash = flash([read_mb_per_s, read_kiops, write_mb_per_s, write_kiops], fastest_kiops, is_sata);
    Some(PresetFile {
        name: name.to_owned(),
        title: format!("{} (coarse, from iocost measurements)", shown_name(name)),
        model: Model::Flash,
        shape,
        flash: Some(flash),
        hdd: None,
        null: None,
        optane: None,
        raid: None,
        service: None,
        ssd: None,
        throttle: None,
        faults: None,
        tracer: None,
        transport: None,
        calibration: Calibration {
            on: format!(
                "saturated bandwidth and random 4 KiB I/Os a second of {} measurement(s) for iocost (iocost-benchmarks)",
                field(line, RUNS)
            ),
            valid_range: "saturated reads or writes, each alone. Latencies at low depth, mixed loads, flushes, \
                          sequential 4 KiB I/O and pauses are typical values, not this drive's."
                .to_owned(),
            host: None,
            kernel: None,
            assumed: false,
            // A range of read shares cannot express that reads and writes only come unmixed.
            range: None,
            residuals: residuals(name, [read_mb_per_s, read_kiops, write_mb_per_s, write_kiops]),
            sources: sources(),
        },
    })
}

/// The name for people: the one under which the drive is sold, and its model number.
fn shown_name(name: &str) -> String {
    let model = name.replace('_', " ");
    let sold_as = sold_as().find(|(device, _)| *device == name);
    sold_as.map_or_else(|| model.clone(), |(_, sold_as)| format!("{sold_as}, {model}"))
}

fn shape(capacity_gb: f64, is_sata: bool) -> ShapeSection {
    ShapeSection {
        capacity_gb,
        logical_block_bytes: 512,
        physical_block_bytes: 512,
        hw_queues: if is_sata { 1 } else { 8 },
        queue_depth: if is_sata { 32 } else { 1023 },
        host_wide_tags: false,
        wants_no_scheduler: false,
        scsi: is_sata,
        sata: is_sata,
        rotational: false,
        write_cache: true,
        fua: !is_sata,
        max_sectors: 2560,
        max_segments: 128,
    }
}

fn flash(
    [read_mb_per_s, read_kiops, write_mb_per_s, write_kiops]: [f64; 4],
    fastest_kiops: f64,
    is_sata: bool,
) -> FlashParameters {
    let rounded = |number: f64| (number * 1e3).round() / 1e3;
    // The dies limit random reads, unless those are as fast as the fastest operation: then the front end does.
    let front_end_limits_reads = read_kiops > 0.95 * fastest_kiops;
    let busy_dies = read_kiops * READ_US / 1e3;
    let dies = if front_end_limits_reads { (busy_dies * 3.0).ceil() } else { busy_dies.round() }.max(2.0);
    let read_us = if front_end_limits_reads { READ_US } else { dies * 1e3 / read_kiops };
    // The dies must not limit large reads.
    let kib_for_reads = 1.6 * read_mb_per_s * read_us / dies / 1.024;
    let read_piece_kib = ((kib_for_reads / 16.0 / 1e3).ceil().max(1.0) as u32).next_power_of_two() * 16;
    // The rate of the dies is the higher one of the two kinds of writes.
    let programmed_mb_per_s = write_mb_per_s.max(write_kiops * 4.096);
    // Programs of about a millisecond.
    let program_kib = (programmed_mb_per_s * 1e3 / dies / 1024.0).round().clamp(16.0, 512.0);
    let command_us = rounded(1e3 / fastest_kiops);
    // Transfers were measured with large commands; the front end spends a part of their time on the command itself.
    let transfer_rate = |mb_per_s: f64| {
        let large_us = LARGE_BYTES / mb_per_s;
        rounded((LARGE_BYTES - 4096.0) / (large_us - command_us).max(large_us / 2.0))
    };
    let suspend_us = (!is_sata).then_some(SUSPEND_US);
    FlashParameters {
        host_to_device_us: 4.0,
        device_to_host_us: 4.0,
        fetches_commands: None,
        holds_write_kib: None,
        command_us,
        read_mb_per_s: transfer_rate(read_mb_per_s),
        // Slower than the dies only if random writes show that the dies are faster.
        write_mb_per_s: transfer_rate(if programmed_mb_per_s > write_mb_per_s {
            write_mb_per_s
        } else {
            write_mb_per_s * 1.2
        }),
        acknowledge_us: 5.0,
        write_to_host_us: None,
        dies: dies as u32,
        read_us: rounded(read_us),
        read_jitter_percent: 20.0,
        read_piece_kib,
        large_read_us: 0.0,
        read_ahead_kib: Some(READ_AHEAD_KIB),
        buffer_kib: (program_kib * dies * 2.0) as u32,
        program_kib: program_kib as u32,
        program_us: rounded(program_kib * 1.024 * dies / programmed_mb_per_s * 1e3),
        program_jitter_percent: 10.0,
        placement: Placement::IdleDie,
        program_suspend_us: suspend_us,
        collection_step_us: suspend_us.map(|_| COLLECTION_STEP_US),
        random_write_amplification: Some(rounded((programmed_mb_per_s / (write_kiops * 4.096)).max(1.0))),
        erased_gb: None,
        fua_blocks_reads: false,
        gc_defers: false,
        heat_placement: false,
        write_page_kib: None,
        flush_us: 100.0,
        discard_us: 10.0,
        arbitration: None,
        striping: None,
        translation: None,
        slc_cache: None,
        collection: None,
        stall: None,
    }
}

fn residuals(name: &str, measured: [f64; 4]) -> Vec<Residual> {
    let Some(line) = lines(SIMULATED).find(|line| field(line, NAME) == name) else { return Vec::new() };
    let residual = |(index, what): (usize, &str)| {
        let model = field(line, index + 1).parse().ok()?;
        Some(Residual { what: what.to_owned(), measured: measured[index], model })
    };
    FIGURE_NAMES.into_iter().enumerate().filter_map(residual).collect()
}

fn sources() -> std::collections::BTreeMap<String, String> {
    [
        ("shape.capacity_gb", "the table"),
        ("flash.command_us", "the greatest number of I/Os a second of the table, sequential ones included"),
        ("flash.dies", "random reads of the table, if a piece takes 80 us; not the number of dies that the drive has"),
        ("flash.read_us", "typical, then adjusted to random reads of the table"),
        ("flash.read_mb_per_s", "the table"),
        ("flash.write_mb_per_s", "the table"),
        ("flash.program_us", "writes of the table, in programs of about a millisecond"),
        ("flash.random_write_amplification", "large writes of the table over random ones"),
        ("flash.acknowledge_us", "typical, not measured"),
        ("flash.read_ahead_kib", "assumed"),
        ("flash.buffer_kib", "assumed: two programs for each die"),
    ]
    .into_iter()
    .map(|(key, source)| (key.to_owned(), source.to_owned()))
    .collect()
}

/// The lines of a table without its header.
fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().skip(1).filter(|line| !line.is_empty())
}

/// A field of a line. None of the fields used here has quotes.
fn field(line: &'static str, column: usize) -> &'static str {
    line.split(',').nth(column).unwrap_or_default()
}
