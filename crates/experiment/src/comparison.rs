//! A comparison as a value: what is asked for, in plain types that can be written down.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use hoistway_answer::WeightedFigure;
pub use hoistway_program::Mode;
use serde::{Deserialize, Serialize};

/// One load under several schedulers: on a device, a kernel and a host, or on several of each.
///
/// Everything but the load has a default, and the load has one for a first try. What cannot be run is reported by
/// [`run`](Comparison::run), with the [field](crate::Field) that is at fault.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Comparison {
    /// What runs.
    pub load: Load,
    /// How a recording of block I/O is replayed, if the load is one.
    #[serde(skip_serializing_if = "Replay::is_default")]
    pub replay: Replay,
    /// What it runs on; several are compared. None: what fits the load.
    pub devices: Vec<Devices>,
    /// The kernels whose block layer is simulated, any release or what `uname -r` prints; several are compared. None: the
    /// default one.
    pub kernels: Vec<String>,
    /// The hosts, built-in profiles or files; several are compared. None: `server`, and for guests `vm`.
    pub hosts: Vec<Profile>,
    /// CPUs of each host, instead of what its profile says.
    pub cpus: Option<u16>,
    /// Memory of each host, instead of what its profile says.
    pub memory_bytes: Option<u64>,
    /// Settings of the memory of each host, as `sysctl` names them, instead of what its profile says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sysctls: Vec<Sysctl>,
    /// Whether the file systems of each host keep a journal that an fsync commits: of I/O that is not direct. A host's profile may
    /// say so, too, and so may a scenario.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub journal: bool,
    /// The schedulers: names, `all`, or `default` for the one that the kernel gives the device. None: those that the kernel has;
    /// with guests its multi-queue ones.
    pub schedulers: Vec<String>,
    /// What the kernel was booted with as `elevator=`: up to 4.20 the default scheduler of devices with a legacy queue.
    pub elevator: Option<String>,
    /// Virtual machines between the load and the host.
    pub guests: Guests,
    /// Tunables of schedulers, each once.
    pub tunables: Vec<Tunable>,
    /// Files of `queue/` of every device, written before the load runs.
    pub queue_files: Vec<QueueFile>,
    /// Settings of which several values are compared: a scheduler runs once with each combination of what is varied for it, and
    /// with its default ones.
    pub vary: Vec<Vary>,
    /// Hardware queues of each device, instead of its own number.
    pub hw_queues: Option<u16>,
    /// So many hardware queues more for reads alone.
    pub read_queues: u16,
    /// So many hardware queues more for I/O whose submitter polls.
    pub poll_queues: u16,
    /// Whether all devices are behind one controller and share its tags.
    pub shared_tags: bool,
    /// Whether processes run hardware queues themselves where the kernel leaves that to a worker: some who measure patch theirs so.
    /// A host's profile may say so, too.
    pub submitter_dispatches: bool,
    /// What queues do against contention for a scheduler's lock: `all`, or some of `single-dispatcher`, `try-merge` and
    /// `batch-dispatch`, with commas between. None: nothing, as Linux does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub techniques: Option<String>,
    /// Files of `queue/` of every device that are written while the load runs.
    pub writes: Vec<Write>,
    /// `io.max` of cgroups that the load names, on every device.
    pub io_max: Vec<CgroupFile>,
    /// `io.prio.class` of cgroups that the load names.
    pub io_prio_class: Vec<CgroupFile>,
    /// Replaces the runtime of every process.
    pub runtime_ns: Option<u64>,
    /// Replaces the time of every process before measuring begins.
    pub ramp_ns: Option<u64>,
    /// Runs of each variant, each with a seed of its own that all variants share; fewer if the
    /// [observer](crate::RunObserver) stops.
    pub repeats: u32,
    /// Whether there are fewer repeats where the decision is sure before: at least three, and then as many as it takes and as fit into a
    /// number of I/Os. How many there were is in the document ([`seeds`](hoistway_answer::ResultsDocument::seeds)), and does not depend on
    /// the machine. Traces are of all repeats.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub until_sure: bool,
    /// What others are compared with: a scheduler, or the label of a variant. None: the kernel's default, or else the first one.
    pub baseline: Option<String>,
    /// The figures of jobs, with weights, that rank schedulers. None: the focus of a bundled load, or else the job that users most
    /// likely wait for.
    pub focus: Vec<WeightedFigure>,
    /// Smaller differences, as a fraction, are ignored. None: 0.02.
    pub smallest_effect: Option<f64>,
    /// Everything random is drawn from it.
    pub seed: u64,
    /// Whether every process logs each of its I/Os, for [`Ended`](crate::Ended): 40 bytes of memory each.
    pub logs: bool,
    /// Whether some thousand requests of each variant's first run are recorded one by one, for reports.
    pub excerpts: bool,
}

impl Default for Comparison {
    fn default() -> Self {
        Comparison {
            load: Load::default(),
            replay: Replay::default(),
            devices: Vec::new(),
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
            submitter_dispatches: false,
            techniques: None,
            writes: Vec::new(),
            io_max: Vec::new(),
            io_prio_class: Vec::new(),
            runtime_ns: None,
            ramp_ns: None,
            repeats: 1,
            until_sure: false,
            baseline: None,
            focus: Vec::new(),
            smallest_effect: None,
            seed: 1,
            logs: false,
            excerpts: false,
        }
    }
}

/// What runs.
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
        /// What it is called in messages and results.
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

/// How a recording of block I/O is replayed. By default as the program that was recorded would run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Replay {
    /// What its I/Os wait for.
    pub mode: Mode,
    /// Gaps between I/Os, and times of arrivals from outside, are divided by it.
    pub speed: f64,
    /// How often each stream runs, each copy on addresses of its own.
    pub copies: u32,
    /// Depths that streams want, by name, where the recorded queue let them have less.
    pub depths: BTreeMap<String, u32>,
    /// I/O priorities of streams, by name: a class and a level, such as `rt:4`.
    pub priorities: BTreeMap<String, String>,
    /// I/O weights of the recording's cgroups, by their ids.
    #[serde(default)]
    pub cgroup_weights: BTreeMap<u64, u32>,
    /// The part that is replayed, from and to, since the first event.
    pub window_ns: Option<(u64, u64)>,
    /// The streams that run, by name; none: all.
    pub streams: Vec<String>,
    /// The scheduler that it was recorded under, if the recording does not show it.
    pub recorded_under: Option<String>,
    /// The device of the recording, as `8,0`, if it has several.
    pub device: Option<String>,
    /// Of a table of I/Os: the name of a public set, or where each column is.
    pub columns: Option<String>,
    /// Whether addresses are scaled down to a device that is smaller than the recorded one.
    pub scale_to_fit: bool,
    /// Whether a verdict is given although more than 1 % of the events were lost.
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
    /// The name of a built-in one, or, if it ends in `.toml` or holds a slash, of a file, which is read through the
    /// [`CallerEnvironment`](crate::CallerEnvironment).
    Named(String),
    /// One in TOML.
    Text {
        /// What it is called in messages.
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

/// The devices that the files of a load are.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Devices {
    /// The device of every file that has none of its own.
    pub common: Option<Profile>,
    /// Devices of single files, by their names in the load.
    pub files: BTreeMap<String, Profile>,
}

impl From<&str> for Devices {
    fn from(name: &str) -> Devices {
        Devices { common: Some(name.into()), files: BTreeMap::new() }
    }
}

/// Virtual machines that a load runs in: each file of the load is a virtual disk, and all of them lie on one device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Guests {
    /// The schedulers in the guests, each over every one of the host. None: no guests, unless the load is a scenario that is
    /// about them.
    pub schedulers: Vec<String>,
    /// What their disks are. None: `virtio-blk`.
    pub virtual_disk: Option<Profile>,
    /// Weights of their cgroups on the host, by the files that are their disks.
    pub weights: Vec<(String, u32)>,
}

/// A tunable of a scheduler and what is written to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunable {
    /// The scheduler; it is among those that are compared.
    pub scheduler: String,
    /// The tunable.
    pub name: String,
    /// What is written.
    pub text: String,
}

/// A file of `queue/` and what is written to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueFile {
    /// The file.
    pub file: String,
    /// What is written.
    pub text: String,
}

/// A tunable of a scheduler, or a file of `queue/`, with several values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vary {
    /// A scheduler that is compared, or `queue`: files of that are varied for all schedulers.
    pub of: String,
    /// The tunable or the file.
    pub name: String,
    /// What is written, in one run or another.
    pub texts: Vec<String>,
}

impl Vary {
    /// What [`of`](Self::of) is of a file of `queue/`.
    pub const QUEUE: &str = "queue";
}

impl fmt::Display for Vary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.of, self.name)?;
        if self.texts.is_empty() { Ok(()) } else { write!(f, "={}", self.texts.join(",")) }
    }
}

/// A file of `queue/` that is written while the load runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// When.
    pub at_ns: u64,
    /// Only if this scheduler is in charge then.
    #[serde(default)]
    pub under: Option<String>,
    /// The file: `scheduler`, a tunable as `iosched/slice_idle`, or one of those that can be written before the run.
    pub file: String,
    /// What is written.
    pub text: String,
}

/// A setting of `sysctl`: of dirty memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sysctl {
    /// Its name: `vm.dirty_bytes`.
    pub name: String,
    /// What is written.
    pub text: String,
}

/// What is written to a file of a cgroup, as `wbps=10485760` to its `io.max`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CgroupFile {
    /// The cgroup, as the load names it.
    pub cgroup: String,
    /// What is written.
    pub text: String,
}
