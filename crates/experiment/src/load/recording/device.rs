//! The device of a recording: a class by its number and latency, and a model made of what it was seen to serve.
//!
//! Used by: `load::recording`, `plan`; crate `hoistway` for `calibrate fit`.
//! Tests: `crates/hoistway/tests/cli/seen_device.rs`.
//!
//! A built-in model knows what a recording does not show: distances, caches, collection. It is used if it serves the recorded requests as
//! the device did. Otherwise the model consists of the service times that were seen.

use std::collections::BTreeMap;

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES, Sector};
use hoistway_device::{
    CalibratedRange, DeviceTrial, Estimated, Model, Preset, PresetFile, Residual, ServedCommand, ServedOperation,
    estimate, trial,
};
use hoistway_program::{Program, ServedRequest};
use hoistway_trace::block::{Flags, Interval};

/// Major numbers of block devices.
const SD: u16 = 8;
const MMC: u16 = 179;
/// Partitions above the fifteenth, and NVMe.
const BLOCK_EXTENDED: u16 = 259;

/// A mean request time above this indicates a hard disk.
const HDD_NS: f64 = 1.5e6;
/// A mean request time below this indicates NVMe.
const NVME_NS: f64 = 1.5e5;

/// Fewer requests do not make a model.
const REQUESTS_MIN: usize = 500;
/// The share of the requests that a model is made of; the others judge it. Then it is made again of all.
const MADE_OF: f64 = 0.7;
/// Fewer requests do not even choose a built-in model.
const TRIED_MIN: usize = 100;
/// Built-in models that a recorded device may be.
const DRIVES: [&str; 10] = [
    "samsung-980pro-1tb",
    "micron-9100-1600gb",
    "intel-p4800x-375gb",
    "intel-s3520-1600gb",
    "hgst-he10-8tb",
    "laptop-hdd",
    "emmc",
    "sd-card",
    "usb-stick",
    "throttled-cloud-volume",
];
/// A built-in model is used if it is off by less than this factor; of a disk with a moving head, whose service times depend on the order
/// of requests, by less than the second. So it is up to there if it is nearer than what is made of the recording.
const DRIVE_FITS: f64 = 1.1;
const DISK_FITS: f64 = 1.5;
/// A device with a moving head answers hardly any small random read in less than this.
const SEEK: Nanos = Nanos(1_000_000);
/// The size of such a read, in sectors.
const SMALL_SECTORS: u32 = 128;
/// The requests that models are tried on at most.
const TRIED_MAX: usize = 40_000;
/// The seed of a model on trial.
const SEED: u64 = 1;

/// A device for a recording that was made without naming one.
#[derive(Debug)]
pub(crate) struct SeenDevice {
    pub(crate) preset: Preset,
    /// What it is and how good it is, a sentence each.
    pub(crate) notices: Vec<String>,
}

/// A model of the device of a recording: a built-in one if that serves the recorded requests as the device did, or else one of the service
/// times that were seen. `name` is the recording's. `None` if the recording shows too few requests from their issue to their end.
pub(crate) fn seen_device(program: &Program, name: &str) -> Option<SeenDevice> {
    let commands = commands(&program.served);
    if commands.len() < TRIED_MIN {
        return None;
    }
    let tried = &commands[..commands.len().min(TRIED_MAX)];
    let from = (tried.len() as f64 * MADE_OF) as usize;
    let holds_all = |preset: &Preset| preset.shape().capacity_sectors * SECTOR_BYTES >= program.end_bytes;
    let known = DRIVES.iter().filter_map(|drive| Preset::builtin(drive).ok());
    let sized = known.map(|preset| sized_for(preset, program)).filter(holds_all);
    let rated = sized.map(|preset| (trial(&mut *preset.build(SEED), tried, from).factor(), preset));
    let best = rated.min_by(|a, b| a.0.total_cmp(&b.0));
    let made = if commands.len() < REQUESTS_MIN { None } else { made_of(program, &tried[..from], name) };
    let fit = made.map(|made| trial(&mut *made.preset.build(SEED), tried, from));
    let fits = |factor: f64, preset: &Preset| {
        let limit = if preset.shape().rotational { DISK_FITS } else { DRIVE_FITS };
        factor < limit || fit.as_ref().is_some_and(|fit| factor < fit.factor().min(DISK_FITS))
    };
    // What fits the end alone is another device than that of the rest.
    let fits_throughout = |preset: &Preset| off_by(program, preset).is_none_or(|factor| factor < DISK_FITS);
    if let Some((factor, preset)) = best.filter(|(factor, preset)| fits(*factor, preset) && fits_throughout(preset)) {
        let notice = format!(
            "No --device given; using {}, which serves the recorded requests as the recorded device did, within {:.0} % (as many at a time as then).",
            preset.name,
            (factor - 1.0) * 100.0
        );
        return Some(SeenDevice { preset, notices: vec![notice] });
    }
    let fit = fit?;
    let Made { preset, estimated } = made_of(program, &commands, name)?;
    let mut notices = vec![format!(
        "No --device given; using a model made of the service times of {} recorded requests. Made of the first {:.0} % of them, it is off on \
         the others by {} (`hoistway calibrate fit RECORDING -o FILE` writes it).",
        commands.len(),
        MADE_OF * 100.0,
        fit_in_words(&fit)
    )];
    if estimated.has_room {
        let most = estimated.in_flight_max;
        let requests = if most == 1 { "request" } else { "requests" };
        notices.push(format!(
            "The device had no more than {most} {requests} at a time, which took no longer than single ones: how it does with more is assumed."
        ));
    }
    if preset.shape().rotational {
        notices.push(
            "The recorded device answers like a hard disk, but like none that is known here: its service times are taken as they were, \
             whatever the order of requests."
                .to_owned(),
        );
    }
    Some(SeenDevice { preset: with_residuals(preset, &fit)?, notices })
}

/// The model of the service times of a recording, as `calibrate fit` writes it, with what it is off on the part that it was not made of.
///
/// # Errors
/// A sentence, if the recording has too few requests with their issue and their end.
pub fn fitted_device(program: &Program, name: &str) -> Result<(Preset, String), String> {
    let commands = commands(&program.served);
    if commands.len() < REQUESTS_MIN {
        return Err(format!(
            "has {} requests with their issue and their end (expected at least {REQUESTS_MIN})",
            commands.len()
        ));
    }
    let made = || {
        let from = (commands.len() as f64 * MADE_OF) as usize;
        let first = made_of(program, &commands[..from], name)?;
        let fit = trial(&mut *first.preset.build(SEED), &commands, from);
        let preset = with_residuals(made_of(program, &commands, name)?.preset, &fit)?;
        Some((preset, fit_in_words(&fit)))
    };
    made().ok_or_else(|| "shows no service times that make a model".to_owned())
}

/// By what factor a model is off on the recorded requests, as many at a time. `None` if the recording shows too few.
pub(crate) fn off_by(program: &Program, preset: &Preset) -> Option<f64> {
    let commands = commands(&program.served);
    let tried = &commands[..commands.len().min(TRIED_MAX)];
    // The first tenth fills caches and queues.
    let factor = || trial(&mut *preset.build(SEED), tried, tried.len() / 10).factor();
    (tried.len() >= REQUESTS_MIN).then(factor).filter(|factor| factor.is_finite())
}

/// The class of the device, as a value of `--device`.
pub(super) fn device_class(program: &Program) -> &'static str {
    let device_ns = program
        .intervals
        .as_ref()
        .and_then(|intervals| {
            intervals
                .devices()
                .iter()
                .find(|(device, _)| *device == program.device)
                .map(|(_, intervals)| intervals.get(Interval::D2C).mean_ns())
        })
        .flatten();
    match (program.device.major, device_ns) {
        (BLOCK_EXTENDED, _) => "nvme",
        (MMC, _) => "emmc",
        (_, Some(ns)) if ns > HDD_NS => "hdd",
        (SD, _) | (_, None) => "sata-ssd",
        (_, Some(ns)) if ns < NVME_NS => "nvme",
        _ => "sata-ssd",
    }
}

/// The recorded requests as commands of a device.
fn commands(served: &[ServedRequest]) -> Vec<ServedCommand> {
    let begin_ns = served.first().map_or(0, |first| first.issued_ns);
    let command = |request: &ServedRequest| ServedCommand {
        issued: Instant(request.issued_ns - begin_ns),
        ended: Instant(request.ended_ns - begin_ns),
        op: match request.flags {
            flags if flags.has(Flags::DISCARD) => Op::Discard,
            _ if request.bytes == 0 => Op::Flush,
            flags if flags.has(Flags::WRITE) => Op::Write,
            _ => Op::Read,
        },
        sector: Sector(if request.bytes == 0 { 0 } else { request.sector }),
        sectors: (u64::from(request.bytes) / SECTOR_BYTES) as u32,
    };
    served.iter().filter(|request| !request.flags.has(Flags::PASSTHROUGH)).map(command).collect()
}

/// A preset with room for the addresses of the recording, if its model does not depend on distances.
fn sized_for(preset: Preset, program: &Program) -> Preset {
    if preset.shape().rotational { preset } else { preset.with_capacity_of(program.end_bytes) }
}

/// A model of service times, and what it was made of.
struct Made {
    preset: Preset,
    estimated: Estimated,
}

/// What is assumed of a class where a recording shows nothing: how many commands it works on at a time, and what a KiB more adds, ns.
struct Assumed {
    at_a_time: u32,
    kib_ns: f64,
}

impl Assumed {
    fn of(class: &str) -> Assumed {
        let (at_a_time, kib_ns) = match class {
            "nvme" => (32, 400.0),
            "sata-ssd" => (8, 2_000.0),
            _ => (1, 5_000.0),
        };
        Assumed { at_a_time, kib_ns }
    }
}

/// Whether a device answers small random reads like a moving head.
fn seeks(commands: &[ServedCommand]) -> bool {
    let mut end = Sector(0);
    let mut reads: Vec<Nanos> = Vec::new();
    for command in commands {
        if command.op == Op::Read && command.sectors <= SMALL_SECTORS && command.sector != end {
            reads.push(command.latency());
        }
        end = command.sector + command.sectors;
    }
    reads.sort_unstable();
    reads.get(reads.len() / 100).is_some_and(|soonest| *soonest >= SEEK)
}

/// Whether a device has a major number of SCSI disks; other drivers have numbers of their own.
fn is_scsi(major: u16) -> bool {
    matches!(major, SD | 65..=71 | 128..=135)
}

/// Whether the device was given commands while it worked on a flush.
fn serves_beside_flushes(commands: &[ServedCommand]) -> bool {
    let mut flushed = Instant::ZERO;
    commands.iter().any(|command| {
        let is_beside = command.issued < flushed;
        if command.op == Op::Flush {
            flushed = flushed.max(command.ended);
        }
        is_beside
    })
}

/// The model of a device that served these commands, behind queues like those of its class.
fn made_of(program: &Program, commands: &[ServedCommand], name: &str) -> Option<Made> {
    let class = match device_class(program) {
        "hdd" if !seeks(commands) => "sata-ssd",
        class => class,
    };
    let base = Preset::builtin(class).ok()?;
    let assumed = Assumed::of(class);
    let mut estimated = estimate(commands, assumed.at_a_time)?;
    if estimated.parameters.kib_ns == 0.0 {
        estimated.parameters.kib_ns = assumed.kib_ns;
    }
    let has = |op: Op| commands.iter().any(|command| command.op == op);
    let mut file = PresetFile::from(sized_for(base, program));
    file.name = format!("recorded-{}", program.device.to_string().replace(',', "-"));
    file.title = format!("the device {} of {name}, by its service times", program.device);
    file.model = Model::Service;
    (file.flash, file.hdd, file.null, file.optane, file.raid, file.ssd) = (None, None, None, None, None, None);
    (file.throttle, file.faults, file.tracer, file.transport) = (None, None, None, None);
    file.service = Some(estimated.parameters.clone());
    file.shape.write_cache = has(Op::Flush);
    // Commands that are not queued have the device for themselves.
    file.shape.sata &= is_scsi(program.device.major) && !serves_beside_flushes(commands);
    file.shape.scsi &= is_scsi(program.device.major);
    file.shape.fua = program.served.iter().any(|request| request.flags.has(Flags::FUA));
    let largest = commands.iter().map(|command| command.sectors).max().unwrap_or(0);
    // Where larger I/Os were split, that is the most that it takes.
    let largest_io = program.sizes.iter().map(|(bytes, _)| bytes / SECTOR_BYTES).max().unwrap_or(0);
    let has_split = largest_io > u64::from(largest);
    file.shape.max_sectors = if has_split { largest.max(8) } else { file.shape.max_sectors.max(largest) };
    // It had at least as many tags as it had commands.
    let queues = u32::from(file.shape.hw_queues.max(1));
    file.shape.queue_depth = file.shape.queue_depth.max(estimated.in_flight_max.div_ceil(queues));
    let bytes = |command: &ServedCommand| command.sectors * SECTOR_BYTES as u32;
    let sized = || commands.iter().filter(|command| command.sectors > 0).map(bytes);
    file.calibration.on = format!("{} requests of the recording {name}", commands.len());
    file.calibration.valid_range =
        "loads like the recorded one: how long requests take is as it was then, whatever their order".to_owned();
    (file.calibration.host, file.calibration.kernel, file.calibration.assumed) = (None, None, false);
    file.calibration.range = Some(CalibratedRange {
        io_bytes: [sized().min()?.max(512), sized().max()?],
        outstanding: [1, estimated.in_flight_max],
        reads_percent: [if has(Op::Write) { 0 } else { 100 }, if has(Op::Read) { 100 } else { 0 }],
        sequential: estimated.parameters.kinds.iter().any(|kind| kind.sequential),
        flushes: has(Op::Flush),
    });
    file.calibration.residuals = Vec::new();
    file.calibration.sources = BTreeMap::new();
    Some(Made { preset: Preset::try_from(file).ok()?, estimated })
}

fn with_residuals(preset: Preset, fit: &DeviceTrial) -> Option<Preset> {
    let mut file = PresetFile::from(preset);
    for operation in &fit.operations {
        for (what, [recorded, model]) in [("mean", operation.mean_ns), ("p99", operation.p99_ns)] {
            let what = format!("{what} of {} on the part that it was not made of, us", plural(operation.operation));
            file.calibration.residuals.push(Residual { what, measured: recorded / 1e3, model: model / 1e3 });
        }
    }
    Preset::try_from(file).ok()
}

fn plural(operation: ServedOperation) -> &'static str {
    match operation {
        ServedOperation::Read => "reads",
        ServedOperation::Write => "writes",
        ServedOperation::Flush => "flushes",
        ServedOperation::Discard => "discards",
    }
}

/// The errors of a model in words: `2 % in the mean latency of reads (p99 7 %)`.
fn fit_in_words(fit: &DeviceTrial) -> String {
    let percent = |[recorded, model]: [f64; 2]| ((model / recorded - 1.0) * 100.0).abs();
    let of_operation = |it: &hoistway_device::TriedOperation| {
        let (mean, p99) = (percent(it.mean_ns), percent(it.p99_ns));
        format!("{mean:.0} % in the mean latency of {} (p99 {p99:.0} %)", plural(it.operation))
    };
    let words: Vec<String> = fit.operations.iter().map(of_operation).collect();
    if words.is_empty() { "an unknown amount".to_owned() } else { words.join(", ") }
}
