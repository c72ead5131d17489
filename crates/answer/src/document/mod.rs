//! The result document: runs, with everything needed to repeat them and to render them again.
//!
//! Used by: `verdict`, `analysis`, `tuning`, `advice`, `rows` and others; crates `experiment`, `render`, `hoistway`, `evidence`.
//! Tests: `crates/answer/src/document/` (in its files), `crates/answer/tests/document.rs`, `crates/answer/tests/parties.rs`.

mod advice;
mod check;
mod demand;
mod device_check;
mod device_name;
mod disks;
mod distribution;
mod excerpt;
mod format1;
mod guests;
mod locks;
mod recording;
mod setup;
mod statistics;
mod summary;
mod variant;
mod verdict;
mod window;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::figure_name::FigureName;
use crate::focus::WeightedFigure;
use hoistway_measure::{DiskSummary, IoCostSummary, IoLatencySummary, PageCacheSummary, Setting};

pub use advice::{Advice, Caution, Check, Stack, UdevRule};
pub use demand::JobDemand;
pub use device_check::{CheckedLatency, DeviceCheck, DeviceMismatch};
pub use device_name::device_name;
pub use disks::DiskGroup;
pub use distribution::LatencyDistribution;
pub use excerpt::{Excerpt, ExcerptAnswer, ExcerptReason, ExcerptRequest};
pub use guests::GuestsSummary;
pub use locks::LockSummary;
pub use recording::{
    AlternativeFigures, AlternativeProgram, RecordedSeries, RecordedStream, RecordingSummary, SelfCheck,
};
pub use setup::SetupSummary;
pub use statistics::{DifferenceStatistics, FigureStatistics, RowStatistics, Statistics};
pub use summary::{
    FailedProcesses, JobSummary, LatencySummary, OperationSummary, SeriesRest, SeriesSummary, TimeWeighted,
    cpu_us_per_io, is_cut_off,
};
pub(crate) use summary::{IOS_FOR_P99, powers_of_wait, wait_of_powers};
pub use variant::{RunLabel, uses_scheduler, value_text};
pub use verdict::{Aspect, Candidate, Change, Decision, FocusFrom, Outcome, PartsCheck, Shift, Spread, Verdict};
pub use window::{MeasuredWindow, Unsteady};

/// The value of [`ResultsDocument::format`]. The number grows when old readers would misread the document; new keys alone do
/// not change it, as unknown keys are ignored.
pub const FORMAT: &str = "hoistway-results/2";

/// What [`ResultsDocument::revision`] is written as. It grows when keys are added within a format.
pub const REVISION: u32 = 18;

/// Differences smaller than this fraction are ignored, unless the user sets another one.
pub const SMALLEST_EFFECT: f64 = 0.02;

/// The results of one comparison: a load under several schedulers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultsDocument {
    /// Always [`FORMAT`].
    pub format: FormatTag,
    /// [`REVISION`] of the version that wrote the document; 0 for versions that did not record it.
    #[serde(default)]
    pub revision: u32,
    /// Version of hoistway that wrote the document.
    pub version: String,
    /// The command line, quoted so that a shell reads it as it was.
    pub command: String,
    /// The command and its arguments, as a list.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Path of the job file or trace, as given.
    pub job_file: String,
    /// The job file's text, so that the run can be repeated without the file; empty for a recording.
    pub job_text: String,
    /// The recording that was replayed, if the load is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Box<RecordingSummary>>,
    /// The window that was measured, if it is not that of fio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<MeasuredWindow>,
    /// The device model with all its parameters: an object with a `name`, or an array of such objects.
    pub device: Value,
    /// The guests that the load ran in; null if it ran on the host itself. With guests, the device is the host's.
    #[serde(default)]
    pub guests: Option<GuestsSummary>,
    /// The kernel generation whose behaviour was simulated.
    pub kernel: String,
    /// Number of CPUs of the simulated host.
    pub cpus: u32,
    /// Number of hardware queues.
    pub hw_queues: u32,
    /// `nr_requests` of each queue.
    pub nr_requests: u32,
    /// The host profile (costs of the CPU model): its name, or an object with its parameters.
    pub host: Value,
    /// Seed from which every run's seed was derived.
    pub seed: u64,
    /// The seeds of the repeats, in their order.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// The setups, if there are several. The fields above (device, kernel, CPUs, hardware queues, requests, host) then describe the
    /// first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setups: Vec<SetupSummary>,
    /// Duration of the whole comparison, s of wall-clock time.
    pub wall_seconds: f64,
    /// I/Os simulated in all runs.
    pub simulated_ios: u64,
    /// Whether the load ran in real time on the named device instead of being simulated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_real: bool,
    /// What ran the load in real time; `None` if it was simulated, and in documents of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_place: Option<RealPlace>,
    /// Whether the comparison was cut short, so that runs are missing.
    pub partial: bool,
    /// Warnings and remarks about the figures, one sentence each.
    #[serde(default)]
    pub notices: Vec<String>,
    /// The kernel's default scheduler for the devices, if they have one in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_scheduler: Option<String>,
    /// The groups of unlike disks that share no job, if there are several; each is judged for itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disk_groups: Vec<DiskGroup>,
    /// The scheduler that others are compared with. If null: the default one, or else the first.
    #[serde(default)]
    pub baseline: Option<String>,
    /// The figure that the load's author chose as its focus, if any.
    #[serde(default)]
    pub focus: Option<FigureName>,
    /// The figures that the user chose to judge by, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub focuses: Vec<WeightedFigure>,
    /// Differences below this fraction are ignored; null in documents of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_effect: Option<f64>,
    /// Writes to files of `queue/` during each run, such as `300ms:scheduler=bfq`; a run is labelled by its initial settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// Reasons for doubt that the figures do not show, as clauses, such as a load outside the range that the device model
    /// is calibrated for.
    #[serde(default)]
    pub doubts: Vec<String>,
    /// The disk that a monitoring tool observed beside its model, in each place, if the load was made of its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_checks: Vec<DeviceCheck>,
    /// What to do, in each place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
    /// The conclusion: what the results mean, and what makes that uncertain, one sentence each.
    #[serde(default)]
    pub conclusion: Vec<String>,
    /// The writes that apply the verdicts, if the user requested them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// Statistics over the repeats; null in documents of versions that did not repeat.
    #[serde(default)]
    pub statistics: Option<Statistics>,
    /// The runs: one for each scheduler, setting, setup and repeat.
    pub runs: Vec<Run>,
}

/// One run of the job under one scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The scheduler's name, as in sysfs; with guests `GUEST-over-HOST`.
    pub scheduler: String,
    /// The block layer it ran on.
    pub front: Front,
    /// The kernel whose block layer it ran on, if the kernel of its setup lacks this scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_as: Option<String>,
    /// The source of its scheduler (or its guests' scheduler) if no Linux release has it: a publication, or a distribution that ships it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub research: Option<String>,
    /// The tunables that were set (not those left at their defaults), by name.
    pub tunables: Map<String, Value>,
    /// The files of `queue/` that were written on every device before the run, by name; empty in documents of versions that did not
    /// record them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub queue_files: Map<String, Value>,
    /// The settings that distinguish it from other runs of the same scheduler.
    #[serde(default)]
    pub variant: RunLabel,
    /// The run's setup: index into [`ResultsDocument::setups`]; 0 if there are none.
    #[serde(default, skip_serializing_if = "is_first")]
    pub setup: u32,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// The run's seed; the same for all schedulers of one repeat.
    pub seed: u64,
    /// Virtual time that passed, s.
    pub simulated_seconds: f64,
    /// I/Os simulated.
    pub simulated_ios: u64,
    /// Duration of the run, s of wall-clock time.
    pub wall_seconds: f64,
    /// Modelled CPU time of the host per I/O for submission, completion and polling, us. Null without I/O, and in documents
    /// of versions that did not record it.
    pub cpu_us_per_io: Option<f64>,
    /// Statistics of the devices, if collected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskSummary>,
    /// Lock contention of schedulers, if the host profile has lock costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<LockSummary>,
    /// Activity of the page cache, if a job used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCacheSummary>,
    /// What `io.cost` did on each device that has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io_cost: Vec<IoCostSummary>,
    /// What `io.latency` did on each device that has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io_latency: Vec<IoLatencySummary>,
    /// The figures of the comparison table, one entry for each job of the job file.
    #[serde(default)]
    pub jobs: Vec<JobSummary>,
    /// An excerpt with individual requests, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Excerpt>,
}

impl ResultsDocument {
    /// Differences smaller than this fraction are ignored: as requested, or [`SMALLEST_EFFECT`].
    #[must_use]
    pub fn smallest_effect(&self) -> f64 {
        self.smallest_effect.unwrap_or(SMALLEST_EFFECT)
    }
}

impl Run {
    /// The setting of the devices, and the scheduler of the guests' disks if it ran in guests.
    pub fn setting(&self, is_in_guests: bool) -> (Setting, Option<&str>) {
        let (host, guest) = match self.scheduler.split_once("-over-").filter(|_| is_in_guests) {
            Some((guest, host)) => (host, Some(guest)),
            None => (self.scheduler.as_str(), None),
        };
        let tunables = self.tunables.iter().map(|(name, value)| (Setting::file_of(name), value_text(value)));
        let others = self.queue_files.iter().map(|(file, value)| (file.clone(), value_text(value)));
        (Setting { scheduler: host.to_owned(), writes: others.chain(tunables).collect() }, guest)
    }

    /// The tunables that were set: `slice_idle=0, low_latency=0`.
    pub fn tunables_text(&self) -> String {
        let set = self.tunables.iter().map(|(name, value)| format!("{name}={}", value_text(value)));
        set.collect::<Vec<_>>().join(", ")
    }
}

fn is_first(setup: &u32) -> bool {
    *setup == 0
}

/// The block layer that a scheduler ran on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Front {
    /// Multi-queue.
    Mq,
    /// Single-queue, as in Linux until 4.20.
    Legacy,
}

/// What runs a load in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RealPlace {
    /// The block layer of hoistway's own engine.
    Engine,
    /// The block layer of the machine's kernel.
    Kernel,
}

/// The key `format`, whose only valid value is [`FORMAT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatTag;

impl Serialize for FormatTag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(FORMAT)
    }
}

impl<'de> Deserialize<'de> for FormatTag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = String::deserialize(deserializer)?;
        if found == FORMAT { Ok(Self) } else { Err(D::Error::custom(ReadError::UnknownFormat { found })) }
    }
}

/// Why a text is not a result document that can be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not a JSON object with a `format`.
    #[error("not a result document: it should be a JSON object that begins with {{\"format\": \"{FORMAT}\"")]
    NotADocument,
    /// A result format that this version does not support.
    #[error(
        "unknown result format \"{found:.60}\": this version reads formats up to \"{FORMAT}\"; use the version that wrote the file"
    )]
    UnknownFormat {
        /// The value of `format`.
        found: String,
    },
    /// A format of search documents that this version does not support.
    #[error(
        "unknown format of a search \"{found:.60}\": this version reads \"{known}\"; use the version that wrote the file"
    )]
    UnknownSearch {
        /// The value of `format`.
        found: String,
        /// The format that this version reads.
        known: &'static str,
    },
    /// Broken JSON.
    #[error("the result document cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A key is missing or of the wrong type.
    #[error("the result document cannot be read: {field}: {error}")]
    Field {
        /// The field's path.
        field: String,
        /// The parser's error.
        error: serde_json::Error,
    },
    /// Fields that contradict each other.
    #[error("the result document cannot be read: {field}: {expected}")]
    Inconsistent {
        /// The path of one of the fields.
        field: String,
        /// What was expected there.
        expected: &'static str,
    },
}

impl ResultsDocument {
    /// Reads a document.
    ///
    /// # Errors
    /// If the text is not a result document, has an unknown format or is damaged.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        /// Only the format, so that a document of another format is not blamed for its other keys.
        #[derive(Deserialize)]
        struct Header {
            format: Option<Value>,
        }
        // serde would accept an array for the structure, too.
        if text.trim_start().starts_with('[') {
            return Err(ReadError::NotADocument);
        }
        let header: Header = match serde_json::from_str(text) {
            Ok(header) => header,
            Err(error) if error.classify() == serde_json::error::Category::Data => return Err(ReadError::NotADocument),
            // Parsing the whole document names the place where it breaks off.
            Err(error) => return Self::parse_current_format(text).and(Err(error.into())),
        };
        match header.format {
            Some(Value::String(found)) if found == FORMAT => Self::parse_current_format(text),
            Some(Value::String(found)) if found == format1::FORMAT => Self::parse_format1(serde_json::from_str(text)?),
            Some(Value::String(found)) => Err(ReadError::UnknownFormat { found }),
            _ => Err(ReadError::NotADocument),
        }
    }

    fn parse_current_format(text: &str) -> Result<Self, ReadError> {
        let document = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text));
        Self::check_parsed(document)
    }

    fn parse_format1(document: Value) -> Result<Self, ReadError> {
        let parsed = Self::check_parsed(serde_path_to_error::deserialize(format1::upgrade(document.clone())));
        parsed.map_err(|error| match error {
            ReadError::Field { field, error } => {
                ReadError::Field { field: format1::original_path(&field, &document), error }
            }
            ReadError::Inconsistent { field, expected } => {
                ReadError::Inconsistent { field: format1::original_path(&field, &document), expected }
            }
            other => other,
        })
    }

    fn check_parsed(parsed: Result<Self, serde_path_to_error::Error<serde_json::Error>>) -> Result<Self, ReadError> {
        let mut document =
            parsed.map_err(|error| ReadError::Field { field: error.path().to_string(), error: error.into_inner() })?;
        // Until revision 14 this was not recorded, and the verdicts were left out.
        if let Some(recording) = document.recording.as_mut().filter(|_| document.revision < 15) {
            recording.is_too_lossy = document.verdicts.is_empty() && document.writes.is_empty();
        }
        check::check(&document).map_err(|(field, expected)| ReadError::Inconsistent { field, expected })?;
        Ok(document)
    }

    /// The device and the kernel of a run's setup.
    pub fn setup_of(&self, run: &Run) -> (&Value, &str) {
        match self.setups.get(run.setup as usize) {
            Some(setup) => (&setup.device, &setup.kernel),
            None => (&self.device, &self.kernel),
        }
    }

    /// A copy with all wall-clock durations set to 0, so that equal inputs and seeds give equal documents.
    pub fn without_wall_clock(&self) -> Self {
        let mut document = self.clone();
        document.wall_seconds = 0.0;
        for run in &mut document.runs {
            run.wall_seconds = 0.0;
        }
        document
    }
}
