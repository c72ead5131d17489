//! A comparison as a value: all its options, in plain types that can be serialized.
//!
//! Used by: `plan`, `tune`, `load`, `run`, `sweep` and others; crates `evidence`, `hoistway`.
//! Tests: `crates/experiment/src/comparison/kernel_option.rs`, `crates/experiment/tests/comparison.rs`.

pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod fio_options;
pub(crate) mod judging;
pub(crate) mod kernel_option;
pub(crate) mod measured_time;
pub(crate) mod observer;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use hoistway_answer::WeightedFigure;
pub use hoistway_program::Mode;
pub use measured_time::MeasuredTime;
use serde::{Deserialize, Serialize};

/// One load under several schedulers: on a device, a kernel and a host, or on several of each.
///
/// Every field has a default; the default load is a bundled example. [`run`](Comparison::run) reports an invalid comparison
/// with the [field](crate::Field) at fault.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Comparison {
    /// The load.
    pub load: Load,
    /// How a recording of block I/O is replayed, if the load is one.
    #[serde(skip_serializing_if = "Replay::is_default")]
    pub replay: Replay,
    /// The devices; several are compared. If empty: a device that fits the load.
    pub devices: Vec<Devices>,
    /// Block devices over the devices, as `NAME = KIND(MEMBER, ...)` (docs/stacks.md); the members are devices, or other stacked
    /// ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<String>,
    /// The kernels whose block layer is simulated, any release or what `uname -r` prints; several are compared. If empty:
    /// the default one.
    pub kernels: Vec<String>,
    /// The hosts: built-in profiles or files; several are compared. If empty: `server`, or `vm` with guests.
    pub hosts: Vec<Profile>,
    /// CPUs of each host, instead of the number in its profile.
    pub cpus: Option<u16>,
    /// Memory of each host, instead of the size in its profile.
    pub memory_bytes: Option<u64>,
    /// Memory settings of each host, by their `sysctl` names, instead of the values in its profile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sysctls: Vec<Sysctl>,
    /// Whether the file systems of each host keep a journal that an fsync commits; matters for buffered I/O. A host's profile or a
    /// scenario may turn it on, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub journal: bool,
    /// The schedulers: names, `all`, or `default` for the kernel's default for the device. If empty: all that the kernel has;
    /// with guests all its multi-queue schedulers.
    pub schedulers: Vec<String>,
    /// The kernel's boot option `elevator=`: up to 4.20 the default scheduler of devices with a legacy queue.
    pub elevator: Option<String>,
    /// Virtual machines between the load and the host.
    pub guests: Guests,
    /// Tunables of schedulers, each once.
    pub tunables: Vec<Tunable>,
    /// Files of `queue/` of every device, written before the load runs.
    pub queue_files: Vec<QueueFile>,
    /// Settings with several values to compare: a scheduler runs once with each combination of its varied settings, and once
    /// with its defaults.
    pub vary: Vec<Vary>,
    /// Number of hardware queues of each device, instead of the number in its model.
    pub hw_queues: Option<u16>,
    /// Number of additional hardware queues for reads.
    pub read_queues: u16,
    /// Number of additional hardware queues for polled I/O.
    pub poll_queues: u16,
    /// Whether all devices share the tags of one controller.
    pub shared_tags: bool,
    /// The share of the addresses of each SSD that hold data, percent; the others were discarded or never written. `None`: as the drive
    /// was measured, written over at random as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill_percent: Option<f64>,
    /// Whether each SSD was trimmed and had the time to erase what holds no data before the load starts; without `fill_percent` all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trimmed: bool,
    /// Whether submitters run hardware queues themselves where mainline leaves that to kblockd, as some vendors' patches do. A
    /// host's profile may turn this on, too.
    pub submitter_dispatches: bool,
    /// Contention options for the scheduler's lock: `all`, or a comma-separated list of `single-dispatcher`,
    /// `try-merge` and `batch-dispatch`. `None`: off, as in Linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub techniques: Option<String>,
    /// Files of `queue/` of every device that are written while the load runs.
    pub writes: Vec<QueueWrite>,
    /// `io.max` of cgroups that the load names, on every device.
    pub io_max: Vec<CgroupFile>,
    /// Writes to `io.cost.qos` and `io.cost.model` of the devices: settings, after the name of one of the load's files if they are
    /// for that one alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io_cost: Vec<String>,
    /// `io.weight` of cgroups that the load names, on every device; matters with `io_cost`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io_weight: Vec<CgroupFile>,
    /// `io.latency` of cgroups that the load names: `target=MICROSECONDS`, after the name of one of the load's files if it is for that one
    /// alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io_latency: Vec<CgroupFile>,
    /// `io.prio.class` of cgroups that the load names.
    pub io_prio_class: Vec<CgroupFile>,
    /// Replaces the runtime of every process, ns.
    pub runtime_ns: Option<u64>,
    /// Replaces the ramp time of every process, ns.
    pub ramp_ns: Option<u64>,
    /// Runs of each variant. All variants share the seed of a repeat. There are fewer if the
    /// [observer](crate::RunObserver) stops.
    pub repeats: u32,
    /// Whether to stop repeating once the decision is certain: after at least three repeats, within a total number of I/Os. The document
    /// holds how many there were ([`seeds`](hoistway_answer::ResultsDocument::seeds)); the number does not depend on the machine. Traces
    /// always cover all repeats.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub until_sure: bool,
    /// The part of each run that is measured.
    #[serde(skip_serializing_if = "MeasuredTime::is_as_fio")]
    pub measured: MeasuredTime,
    /// The baseline of the other variants: a scheduler, or the label of a variant. `None`: the kernel's default, or else the
    /// first variant.
    pub baseline: Option<String>,
    /// The figures of jobs, with weights, that rank schedulers. If empty: the focus of a bundled load, or else the job that a
    /// user most likely waits for.
    pub focus: Vec<WeightedFigure>,
    /// Differences below this fraction are ignored. `None`: 0.02.
    pub smallest_effect: Option<f64>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Whether every process logs each of its I/Os, for [`Ended`](crate::Ended); takes 40 bytes of memory per I/O.
    pub logs: bool,
    /// Whether a few thousand requests of each variant's first run are recorded individually, for reports.
    pub excerpts: bool,
}

impl Default for Comparison {
    fn default() -> Self {
        Comparison {
            load: Load::default(),
            replay: Replay::default(),
            devices: Vec::new(),
            stacks: Vec::new(),
            kernels: Vec::new(),
            hosts: Vec::new(),
            cpus: None,
            memory_bytes: None,
            sysctls: Vec::new(),
            journal: false,
            schedulers: Vec::new(),
            elevator: None,
            guests: Guests::default(),
            tunables: Vec::new(),
            queue_files: Vec::new(),
            vary: Vec::new(),
            hw_queues: None,
            read_queues: 0,
            poll_queues: 0,
            shared_tags: false,
            fill_percent: None,
            trimmed: false,
            submitter_dispatches: false,
            techniques: None,
            writes: Vec::new(),
            io_max: Vec::new(),
            io_cost: Vec::new(),
            io_weight: Vec::new(),
            io_latency: Vec::new(),
            io_prio_class: Vec::new(),
            runtime_ns: None,
            ramp_ns: None,
            repeats: 1,
            until_sure: false,
            measured: MeasuredTime::AsFio,
            baseline: None,
            focus: Vec::new(),
            smallest_effect: None,
            seed: 1,
            logs: false,
            excerpts: false,
        }
    }
}

/// The load of a comparison.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// The bundled example.
    #[default]
    Example,
    /// A [bundled scenario](crate::scenarios), by name.
    Scenario(String),
    /// A fio job file or a recording of block I/O, read through the [`CallerEnvironment`](crate::CallerEnvironment).
    File(PathBuf),
    /// The text of a fio job file.
    Text {
        /// Its name in messages and results.
        name: String,
        /// The text.
        text: String,
    },
}

impl Load {
    /// The text of a fio job file without a name.
    pub fn text(text: impl Into<String>) -> Load {
        Load::Text { name: "(text)".to_owned(), text: text.into() }
    }
}

/// How a recording of block I/O is replayed. By default it behaves as the recorded program would.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Replay {
    /// What an I/O waits for before it is issued.
    pub mode: Mode,
    /// Divides the gaps between I/Os and the arrival times of independent I/Os.
    pub speed: f64,
    /// Number of copies of each stream; each copy has its own addresses.
    pub copies: u32,
    /// Queue depths of streams, by name, where the recorded queue limited them to less.
    pub depths: BTreeMap<String, u32>,
    /// I/O priorities of streams, by name: a class and a level, such as `rt:4`.
    pub priorities: BTreeMap<String, String>,
    /// I/O weights of the recording's cgroups, by their ids.
    #[serde(default)]
    pub cgroup_weights: BTreeMap<u64, u32>,
    /// The part that is replayed: start and end, ns since the first event; `None` for the whole recording.
    pub window_ns: Option<(u64, u64)>,
    /// The streams that run, by name; all of them if empty.
    pub streams: Vec<String>,
    /// The scheduler during the recording, if the recording does not show it.
    pub recorded_under: Option<String>,
    /// The device to replay, as `8,0`, if the recording has several.
    pub device: Option<String>,
    /// For a table of I/Os: the name of a public data set, or where each column is.
    pub columns: Option<String>,
    /// Whether addresses are scaled down to fit a device that is smaller than the recorded one.
    pub scale_to_fit: bool,
    /// Whether to give a verdict although more than 1 % of the events were lost.
    pub lossy: bool,
}

impl Default for Replay {
    fn default() -> Replay {
        Replay {
            mode: Mode::default(),
            speed: 1.0,
            copies: 1,
            depths: BTreeMap::new(),
            priorities: BTreeMap::new(),
            cgroup_weights: BTreeMap::new(),
            window_ns: None,
            streams: Vec::new(),
            recorded_under: None,
            device: None,
            columns: None,
            scale_to_fit: false,
            lossy: false,
        }
    }
}

impl Replay {
    pub(crate) fn is_default(&self) -> bool {
        *self == Replay::default()
    }
}

/// A profile of a device, a host or a virtual disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Profile {
    /// The name of a built-in profile; or a file, if the name ends in `.toml` or contains a slash, which is read
    /// through the [`CallerEnvironment`](crate::CallerEnvironment).
    Named(String),
    /// A profile in TOML.
    Text {
        /// Its name in messages.
        name: String,
        /// The text.
        text: String,
    },
}

impl From<&str> for Profile {
    fn from(name: &str) -> Profile {
        Profile::Named(name.to_owned())
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Profile::Named(name) | Profile::Text { name, .. } => f.write_str(name),
        }
    }
}

/// The devices behind the files of a load.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Devices {
    /// The device of every file that `files` does not list.
    pub common: Option<Profile>,
    /// Devices of single files, by their names in the load.
    pub files: BTreeMap<String, Profile>,
}

impl From<&str> for Devices {
    fn from(name: &str) -> Devices {
        Devices { common: Some(name.into()), files: BTreeMap::new() }
    }
}

/// Virtual machines that a load runs in: each file of the load is a virtual disk, and all virtual disks are on one
/// device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Guests {
    /// The schedulers in the guests; each is combined with every one of the host. If empty: no guests, unless the load is a
    /// scenario about guests.
    pub schedulers: Vec<String>,
    /// The type of virtual disk. `None`: `virtio-blk`.
    pub virtual_disk: Option<Profile>,
    /// Weights of the guests' cgroups on the host, by the file that is the guest's disk.
    pub weights: Vec<(String, u32)>,
}

/// A value for a tunable of a scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunable {
    /// The scheduler; it must be among the compared ones.
    pub scheduler: String,
    /// The tunable.
    pub name: String,
    /// The text to write.
    pub text: String,
}

/// A value for a file of `queue/`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueFile {
    /// The file.
    pub file: String,
    /// The text to write.
    pub text: String,
}

/// A tunable of a scheduler, or a file of `queue/`, with several values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vary {
    /// A compared scheduler; `queue` for files of `queue/`, or `io.cost` or `io.latency` for their settings, which are varied for all
    /// schedulers.
    pub of: String,
    /// The tunable or the file; of `io.cost` `qos` or `model` with a key, such as `qos.max`; of `io.latency` a cgroup of the load with
    /// `target`, such as `pods/db.target`.
    pub name: String,
    /// The texts to write, one per run.
    pub texts: Vec<String>,
}

impl Vary {
    /// Value of [`of`](Self::of) for a file of `queue/`.
    pub const QUEUE: &str = "queue";

    /// Value of [`of`](Self::of) for a setting of io.cost.
    pub const IO_COST: &str = "io.cost";

    /// Value of [`of`](Self::of) for a latency target of a cgroup.
    pub const IO_LATENCY: &str = "io.latency";

    /// Splits the name of a setting, such as `bfq.slice_idle` or `io.cost.qos.max`, into [`of`](Self::of) and [`name`](Self::name).
    #[must_use]
    pub fn split(label: &str) -> Option<(&str, &str)> {
        let controller = [Self::IO_COST, Self::IO_LATENCY].into_iter();
        let of_cgroups = controller.filter_map(|of| Some((of, label.strip_prefix(of)?.strip_prefix('.')?))).next();
        of_cgroups.or_else(|| label.split_once('.'))
    }

    /// Whether it is a setting of `io.cost` or `io.latency`.
    pub(crate) fn is_of_cgroups(&self) -> bool {
        matches!(self.of.as_str(), Self::IO_COST | Self::IO_LATENCY)
    }

    /// Whether it is varied for all schedulers.
    pub(crate) fn is_of_all(&self) -> bool {
        self.of == Self::QUEUE || self.is_of_cgroups()
    }

    /// Its name in tables and messages: `bfq.slice_idle`, `queue.nr_requests`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}.{}", self.of, self.name)
    }
}

impl fmt::Display for Vary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())?;
        if self.texts.is_empty() { Ok(()) } else { write!(f, "={}", self.texts.join(",")) }
    }
}

/// A file of `queue/` that is written while the load runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueWrite {
    /// Time of the write, ns since the start of the load.
    pub at_ns: u64,
    /// Write only if this scheduler is active at that time.
    #[serde(default)]
    pub under: Option<String>,
    /// The file: `scheduler`, a tunable as `iosched/slice_idle`, or any file that can be written before the run.
    pub file: String,
    /// The text to write.
    pub text: String,
}

/// A memory setting of `sysctl`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sysctl {
    /// Its name, such as `vm.dirty_bytes`.
    pub name: String,
    /// The text to write.
    pub text: String,
}

/// A write to a file of a cgroup, such as `wbps=10485760` to its `io.max`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CgroupFile {
    /// The cgroup, by its name in the load.
    pub cgroup: String,
    /// The text to write.
    pub text: String,
}
