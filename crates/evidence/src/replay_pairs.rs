//! Pairs of recordings of a program on a real kernel under several schedulers: each recording predicts the others,
//! which are the ground truth.
//!
//! Used by: the program `hoistway-evidence`.
//! Tests: `crates/evidence/tests/replay_pairs.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use hoistway_answer::Figure as FigureKind;
use hoistway_answer::analysis::widened;
use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_measure::Setting;
use hoistway_measure::histogram::LatencyHistogram;
use hoistway_program::{Change, Options, Program, ReplayOptions};
use hoistway_sim::{Control, Host, QueueSettings, RunSpec, Scenario};
use hoistway_trace::block::Recording;
use serde::Serialize;

/// Default rate of a counting trace clock (`clock_hz=` in the settings): in virtual machines with virtual time a count
/// is a nanosecond.
const CLOCK_HZ: &str = "1000000000";
/// Minimum I/Os of a stream: with fewer its figures are random.
const IOS_MIN: u64 = 50;

/// A predicted stream.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// The program.
    pub pair: String,
    /// The scheduler of the recording that the prediction is based on.
    pub from: String,
    /// The predicted scheduler.
    pub to: String,
    /// The stream: its name, and its number among streams with that name, ordered by pid.
    pub stream: String,
    /// Whether the recording hides the depth of some stream (RP15).
    pub is_hidden: bool,
    /// I/Os per second.
    pub iops: Figure,
    /// Mean time from submission to completion, us.
    pub mean_us: Figure,
    /// 99th percentile of the time from submission to completion, us.
    pub p99_us: Figure,
}

/// A figure, predicted and recorded.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figure {
    /// The prediction with the inferred program.
    pub predicted: f64,
    /// The minimum over all interpretations of the recording, widened as for users where it hides a depth.
    pub low: f64,
    /// The maximum over all interpretations.
    pub high: f64,
    /// The recorded value.
    pub recorded: f64,
}

impl Figure {
    /// Error of the prediction, as a fraction.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted / self.recorded - 1.0
    }

    /// Whether the recorded value is between `low` and `high`, within a relative `tolerance`.
    #[must_use]
    pub fn encloses(&self, tolerance: f64) -> bool {
        self.low * (1.0 - tolerance) <= self.recorded && self.recorded <= self.high * (1.0 + tolerance)
    }
}

/// A recording with the settings of its queue.
struct RecordingWithQueue {
    program: Program,
    preset: Preset,
    queue: QueueSettings,
    setting: Setting,
}

/// The figures of a stream.
#[derive(Clone, Copy)]
struct Figures {
    iops: f64,
    mean_us: f64,
    p99_us: f64,
}

/// Predicts each recording in a folder from every recording of the same program, including itself. Only programs whose names
/// `is_wanted` takes are read.
///
/// # Errors
/// If a file is missing or invalid.
pub fn predictions(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Prediction>> {
    let mut all = Vec::new();
    let files: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    let pairs: BTreeSet<String> = files.iter().filter_map(|path| settings_of(path)).map(|(pair, _)| pair).collect();
    if pairs.is_empty() {
        bail!("{}: has no recordings (expected files NAME.SCHEDULER.settings)", folder.display());
    }
    for pair in pairs.into_iter().filter(|pair| is_wanted(pair)) {
        let mut recordings = Vec::new();
        let mut schedulers: Vec<String> = files
            .iter()
            .filter_map(|path| settings_of(path))
            .filter(|(name, _)| *name == pair)
            .map(|(_, of)| of)
            .collect();
        schedulers.sort();
        for scheduler in schedulers {
            recordings.push(RecordingWithQueue::read(folder, &pair, &scheduler)?);
        }
        for from in &recordings {
            for to in &recordings {
                all.extend(predict(&pair, from, to)?);
            }
        }
    }
    Ok(all)
}

/// Splits `NAME.SCHEDULER.settings` into name and scheduler.
fn settings_of(path: &Path) -> Option<(String, String)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".settings")?;
    let (pair, scheduler) = name.rsplit_once('.')?;
    Some((pair.to_owned(), scheduler.to_owned()))
}

impl RecordingWithQueue {
    fn read(folder: &Path, pair: &str, scheduler: &str) -> Result<RecordingWithQueue> {
        let base = format!("{pair}.{scheduler}");
        let settings = folder.join(format!("{base}.settings"));
        let shown = settings.display().to_string();
        let text = fs::read_to_string(&settings).with_context(|| shown.clone())?;
        let value = |key: &str| {
            text.lines()
                .filter_map(|line| line.split_once('='))
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value.trim())
        };
        let needed = |key: &str| value(key).ok_or_else(|| anyhow!("{shown}: has no line {key}=..."));
        let device = needed("null_blk")?;
        let word_of = |key: &str| device.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        // What the kernel gives a driver that sets none.
        let max_sectors = word_of("max_sectors").unwrap_or("255");
        let of_device = |key: &str| -> Result<u64> {
            word_of(key)
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| anyhow!("{shown}: null_blk has no {key}=NUMBER"))
        };
        let toml = format!(
            "name = \"null_blk\"\ntitle = \"null_blk with a fixed time\"\nmodel = \"null\"\n[shape]\ncapacity_gb = {}\n\
             logical_block_bytes = 512\nphysical_block_bytes = 512\nhw_queues = {}\nqueue_depth = {}\nscsi = false\nrotational = false\n\
             write_cache = false\nfua = false\nmax_sectors = {max_sectors}\nmax_segments = 128\n[null]\ndelay_ns = {}\n[calibration]\non = \"nothing\"\n\
             valid_range = \"any load\"\n",
            of_device("size")? as f64 * 1_048_576.0 / 1e9,
            of_device("submit_queues")?,
            of_device("hw_queue_depth")?,
            of_device("completion_nsec")?,
        );
        let preset = Preset::from_toml(&toml, &shown)?;
        let kernel: Kernel = needed("kernel")?.parse().map_err(|error| anyhow!("{shown}: kernel: {error}"))?;
        let cpus = needed("cpus")?.parse().with_context(|| format!("{shown}: cpus"))?;
        let (queue, mut setting) = (QueueSettings::new(kernel, cpus), Setting::untouched(scheduler));
        if scheduler != "none" {
            let requests: u32 = needed("nr_requests")?.parse().with_context(|| format!("{shown}: nr_requests"))?;
            setting.write("nr_requests", &requests.to_string());
        }
        let latency_us = needed("wbt_lat_usec")?;
        setting.write("wbt_lat_usec", latency_us);
        let tunables = text.lines().filter_map(|line| line.strip_prefix("iosched.")?.split_once('='));
        tunables.for_each(|(name, text)| setting.write(&Setting::file_of(name), text.trim()));
        let recording = ["blktrace.0.gz", "ftrace.txt.gz"].iter().map(|end| folder.join(format!("{base}.{end}")));
        let path = recording.into_iter().find(|path| path.exists()).ok_or_else(|| anyhow!("{base}: no recording"))?;
        let clock_hz = value("clock_hz").unwrap_or(CLOCK_HZ).parse().with_context(|| format!("{shown}: clock_hz"))?;
        let mut recording = Recording::open(&path)?.with_clock_hz(clock_hz);
        // Streams are matched by their position, so a stream with few I/Os must keep its place.
        let options = Options { ios_min: 1, ..Options::default() };
        let program = Program::infer(&mut recording, &path.display().to_string(), &options)?;
        Ok(RecordingWithQueue { program, preset, queue, setting })
    }

    /// The comparable streams, sorted by the names of their tasks and pid: a unique name, and the stream's index. What a stream does, by
    /// which jobs are named, may differ between recordings.
    fn streams(&self) -> Vec<(String, usize)> {
        let mut streams: Vec<usize> =
            (0..self.program.streams.len()).filter(|&stream| self.program.streams[stream].pid.is_some()).collect();
        streams
            .sort_by_key(|&stream| (self.program.streams[stream].task_name.clone(), self.program.streams[stream].pid));
        let mut named = Vec::new();
        for (at, &stream) in streams.iter().enumerate() {
            let name = &self.program.streams[stream].task_name;
            let before = streams[..at].iter().filter(|&&other| self.program.streams[other].task_name == *name).count();
            named.push((format!("{name} {}", before + 1), stream));
        }
        named.retain(|(_, stream)| self.program.streams[*stream].ios >= IOS_MIN);
        named
    }

    fn recorded(&self, stream: usize) -> Figures {
        let of = &self.program.streams[stream];
        let (reads, others) = (of.read_latency, of.write_latency);
        let ios = (reads.ios + others.ios).max(1) as f64;
        let mean_ns = (reads.mean_ns * reads.ios as f64 + others.mean_ns * others.ios as f64) / ios;
        let seconds = (of.last_ns - of.first_ns).max(1) as f64 / 1e9;
        Figures { iops: ios / seconds, mean_us: mean_ns / 1e3, p99_us: reads.p99_ns.max(others.p99_ns) as f64 / 1e3 }
    }
}

/// The streams of `to`, predicted from `from`.
fn predict(pair: &str, from: &RecordingWithQueue, to: &RecordingWithQueue) -> Result<Vec<Prediction>> {
    let is_hidden = from.program.streams.iter().any(|stream| stream.hidden_depth.is_some());
    let base = replayed(from, to, &[])?;
    let others = from
        .program
        .alternatives
        .iter()
        .map(|alternative| replayed(from, to, &alternative.changes))
        .collect::<Result<Vec<_>>>()?;
    let truth = to.streams();
    let mut predictions = Vec::new();
    for (name, stream) in from.streams() {
        let Some((_, on)) = truth.iter().find(|(other, _)| *other == name) else { continue };
        let recorded = to.recorded(*on);
        let figure = |kind: FigureKind, of: fn(&Figures) -> f64| {
            let all = || others.iter().chain([&base]).filter_map(|run| run[stream].as_ref()).map(of);
            let predicted = base[stream].as_ref().map_or(0.0, of);
            let (mut low, mut high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
            if is_hidden && from.setting.scheduler != to.setting.scheduler {
                (low, high) = widened(kind, (low, high));
            }
            Figure { predicted, low, high, recorded: of(&recorded) }
        };
        predictions.push(Prediction {
            pair: pair.to_owned(),
            from: from.setting.scheduler.clone(),
            to: to.setting.scheduler.clone(),
            stream: name,
            is_hidden,
            iops: figure(FigureKind::Iops, |of| of.iops),
            mean_us: figure(FigureKind::Mean, |of| of.mean_us),
            p99_us: figure(FigureKind::P99, |of| of.p99_us),
        });
    }
    Ok(predictions)
}

/// Runs the program of one recording under the scheduler of another. Returns the figures of its streams by index.
fn replayed(from: &RecordingWithQueue, to: &RecordingWithQueue, changes: &[Change]) -> Result<Vec<Option<Figures>>> {
    let shape = to.preset.shape();
    let options = ReplayOptions {
        changes: changes.to_vec(),
        queue_depth: to.queue.config_with(&shape, &to.setting).scheduler_depth(),
        device_bytes: shape.capacity_sectors * 512,
        ..ReplayOptions::default()
    };
    // Measure from the start, as the recording does.
    let mut load = from.program.load("nullb0", &options).map_err(|error| anyhow!(error.message))?;
    for process in &mut load.processes {
        process.schedule.ramp = hoistway_blk::ground::Nanos::ZERO;
    }
    let host =
        Host::of_recording(from.program.reaction_ns, from.program.cpus.and_then(|cpus| u16::try_from(cpus).ok()));
    let scenario = Scenario {
        workload: &load,
        devices: vec![&to.preset],
        guests: None,
        queue: to.queue.clone(),
        host,
        runtime: None,
    };
    let spec = RunSpec { setting: to.setting.clone(), guest: None, seed: 1 };
    let result = hoistway_sim::run(&scenario, &spec, &Control::default())?;
    let mut figures = vec![None; from.program.streams.len()];
    for (result, stream) in result.processes.iter().zip(from.program.order(&options)) {
        let mut latency = LatencyHistogram::new();
        for direction in &result.directions {
            latency.merge(&direction.lat);
        }
        latency.merge(&result.sync.lat);
        if latency.count() > 0 {
            figures[stream] = Some(Figures {
                iops: latency.count() as f64 * 1e9 / result.runtime_ns.max(1) as f64,
                mean_us: latency.mean() / 1e3,
                p99_us: latency.percentile(99.0).unwrap_or(0) as f64 / 1e3,
            });
        }
    }
    Ok(figures)
}
