//! The header, the first line of a recording: kernel, scheduler, queue, device and load.

use std::collections::BTreeMap;

use hoistway_blk::bio::IoPriority;
use hoistway_blk::ground::{CgroupId, Hz};
use hoistway_blk::queue::{HW_QUEUES_MAX, QUEUE_DEPTH_MAX};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::bounds::{CGROUPS_MAX, CPUS_MAX, HZ, NR_REQUESTS_MAX, PATH_BYTES_MAX, PID_MAX, WEIGHT_MAX, within};
use super::error::Problem;
use super::flags;

/// The header of a recording. Keys that are not listed here are ignored.
#[derive(Clone, PartialEq, Debug)]
pub struct Header {
    /// The name of the recording, which is also that of its file.
    pub name: String,
    /// The kernel: `Linux` and its release, possibly followed by other words.
    pub kernel: String,
    /// The active scheduler at the start of the recording.
    pub scheduler: String,
    /// All tunables of that scheduler by sysfs name, in sysfs units.
    pub tunables: BTreeMap<String, i64>,
    /// The queue's settings.
    pub queue: QueueSettings,
    /// The recorder's description of the device; its keys depend on `model`.
    pub device: Map<String, Value>,
    /// CPUs of the machine.
    pub cpus: u16,
    /// Ticks per second.
    pub hz: Hz,
    /// The source of the times.
    pub clock: Clock,
    /// Legacy: phase of the tick, as the time of a tick modulo its length, ns.
    pub jiffy_edge_ns: Option<u64>,
    /// The processes of the load, without the kernel threads that appear in events.
    pub processes: Vec<Process>,
    /// The cgroups, indexed by [`CgroupId`]; the root is first.
    pub cgroups: Vec<Cgroup>,
    /// The jobs as passed to the load generator.
    pub workload: Vec<String>,
    /// The shell command that ran in parallel with the load, if any.
    pub hook: Option<String>,
    /// A remark.
    pub notes: String,
    /// Whether the recording was cut after [`Header::events`] events: requests may be in flight at its end.
    pub truncated: bool,
    /// Events lost while recording.
    pub dropped: u64,
    /// Number of events.
    pub events: u64,
}

/// The settings of the queue; recorders write them in two different places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueSettings {
    /// Hardware queues; 1 on legacy kernels.
    pub nr_hw_queues: u16,
    /// Driver tags of each hardware queue; on legacy kernels the maximum number of started requests.
    pub queue_depth: u32,
    /// Scheduler tags of each hardware queue; on legacy kernels the size of each of the two request pools, synchronous
    /// and asynchronous.
    pub nr_requests: u32,
    /// 0: all merges, 1: only with the last merged request, 2: none.
    pub nomerges: u8,
    /// Whether the device is rotational.
    pub rotational: bool,
    /// Maximum length of a request, KiB.
    pub max_sectors_kb: u32,
    /// Maximum segments of a request.
    pub max_segments: u32,
    /// 0: complete on any CPU, 1: on a CPU of the submitter's group, 2: on the submitter's CPU.
    pub rq_affinity: u8,
    /// Whether the device has a volatile write cache.
    pub write_cache: bool,
    /// Whether the device supports FUA.
    pub fua: bool,
    /// Whether all hardware queues share one set of driver tags.
    pub shared_tags: bool,
    /// The queue's `async_depth`, if it has that attribute.
    pub async_depth: Option<u32>,
    /// Latency target of write-back throttling, us; 0 if disabled.
    pub wbt_lat_usec: u64,
    /// Logical block size, bytes.
    pub logical_block_size: u32,
    /// Read-ahead, KiB.
    pub read_ahead_kb: Option<u32>,
    /// Maximum length of a discard, bytes.
    pub discard_max_bytes: Option<u64>,
}

/// The source of the times in a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Counted instructions of an emulated machine, with idle time skipped: exact.
    Icount,
    /// Another virtual clock: exact.
    Virtual,
    /// The wall clock: times include host noise.
    Realtime,
}

/// A process of the load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// The kernel's name of the task, at most 15 bytes.
    pub comm: String,
    /// The priority that it set; unset if it set none.
    pub ioprio: IoPriority,
    /// Its nice level.
    pub nice: i8,
    /// Its cgroup.
    pub cgroup: CgroupId,
    /// The weight set for it, if any.
    pub weight: Option<u32>,
    /// Its job as `key=value` pairs of the load generator.
    pub job: String,
}

/// A cgroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroup {
    /// Its path, beginning with a slash.
    pub path: String,
    /// The parent group; `None` for the root.
    pub parent: Option<CgroupId>,
    /// Its weight (`io.bfq.weight`, on legacy kernels `blkio.weight`); `None` for the root.
    pub weight: Option<u32>,
}

impl Header {
    /// The cgroup with this path.
    #[must_use]
    pub fn cgroup(&self, path: &str) -> Option<CgroupId> {
        find_cgroup(&self.cgroups, path)
    }

    pub(super) fn parse(line: &[u8]) -> Result<Header, Problem> {
        let raw: RawHeader = serde_json::from_slice(line).map_err(|error| Problem::from_json(&error, line))?;
        let cgroups = parse_cgroups(&raw.cgroups)?;
        let processes = raw.processes.into_iter().map(|process| process.check(&cgroups)).collect::<Result<_, _>>()?;
        Ok(Header {
            name: raw.name,
            kernel: raw.kernel,
            scheduler: raw.scheduler,
            tunables: raw.tunables,
            queue: raw.queue.check(&raw.device)?,
            device: raw.device,
            cpus: within("cpus", raw.cpus, 1..=CPUS_MAX)?,
            hz: Hz(within("hz", raw.hz, HZ)?),
            clock: raw.clock,
            jiffy_edge_ns: raw.jiffy_edge_ns,
            processes,
            cgroups,
            workload: raw.workload,
            hook: raw.hook,
            notes: raw.notes.unwrap_or_default(),
            truncated: raw.truncated,
            dropped: raw.dropped,
            events: raw.events,
        })
    }
}

impl Process {
    /// The effective priority: the one that was set, otherwise the one derived from the nice level.
    #[must_use]
    pub fn effective_ioprio(&self) -> IoPriority {
        if self.ioprio == IoPriority::UNSET { IoPriority::from_nice(self.nice) } else { self.ioprio }
    }
}

#[derive(Deserialize)]
struct RawHeader {
    name: String,
    kernel: String,
    scheduler: String,
    tunables: BTreeMap<String, i64>,
    queue: RawQueue,
    device: Map<String, Value>,
    cpus: u16,
    hz: u32,
    clock: Clock,
    jiffy_edge_ns: Option<u64>,
    processes: Vec<RawProcess>,
    #[serde(default)]
    cgroups: Map<String, Value>,
    #[serde(default)]
    workload: Vec<String>,
    hook: Option<String>,
    notes: Option<String>,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    dropped: u64,
    events: u64,
}

#[derive(Deserialize)]
struct RawQueue {
    nr_hw_queues: Option<u16>,
    queue_depth: Option<u32>,
    nr_requests: u32,
    nomerges: u8,
    #[serde(deserialize_with = "switch")]
    rotational: bool,
    max_sectors_kb: u32,
    max_segments: u32,
    rq_affinity: u8,
    write_cache: String,
    fua: Option<u8>,
    async_depth: Option<u32>,
    wbt_lat_usec: Option<u64>,
    logical_block_size: Option<u32>,
    read_ahead_kb: Option<u32>,
    discard_max_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct RawProcess {
    pid: u32,
    comm: String,
    ioprio: (u8, u8),
    #[serde(default)]
    nice: i8,
    cgroup: String,
    weight: Option<Value>,
    #[serde(default)]
    job: String,
}

impl RawQueue {
    fn check(self, device: &Map<String, Value>) -> Result<QueueSettings, Problem> {
        let device_number = |key: &str| device.get(key).and_then(Value::as_u64);
        let write_cache = match self.write_cache.as_str() {
            "write back" => true,
            "write through" => false,
            other => return Err(Problem::bad_field("queue.write_cache", "`write back` or `write through`", other)),
        };
        let queue_depth = self
            .queue_depth
            .or_else(|| device_number("queue_depth").and_then(|depth| u32::try_from(depth).ok()))
            .ok_or(Problem::MissingField { event: "header", field: "queue.queue_depth" })?;
        Ok(QueueSettings {
            nr_hw_queues: within("queue.nr_hw_queues", self.nr_hw_queues.unwrap_or(1), 1..=HW_QUEUES_MAX)?,
            queue_depth: within("queue.queue_depth", queue_depth, 1..=QUEUE_DEPTH_MAX)?,
            nr_requests: within("queue.nr_requests", self.nr_requests, 1..=NR_REQUESTS_MAX)?,
            nomerges: self.nomerges,
            rotational: self.rotational,
            // The kernel counts bytes of a request in 32 bits, and segments in 16.
            max_sectors_kb: within("queue.max_sectors_kb", self.max_sectors_kb, 1..=u32::MAX >> 10)?,
            max_segments: within("queue.max_segments", self.max_segments, 1..=u32::from(u16::MAX))?,
            rq_affinity: self.rq_affinity,
            write_cache,
            // The legacy recorder writes 2 for a volatile cache with FUA.
            fua: self.fua.map_or(device_number("write_cache") == Some(2), |fua| fua != 0),
            shared_tags: device_number("shared_tags").is_some_and(|shared| shared != 0),
            async_depth: self.async_depth,
            wbt_lat_usec: self.wbt_lat_usec.unwrap_or(0),
            logical_block_size: block_size(self.logical_block_size.unwrap_or(512))?,
            read_ahead_kb: self.read_ahead_kb,
            discard_max_bytes: self.discard_max_bytes,
        })
    }
}

fn block_size(bytes: u32) -> Result<u32, Problem> {
    if bytes.is_power_of_two() && (512..=65_536).contains(&bytes) {
        return Ok(bytes);
    }
    Err(Problem::bad_field("queue.logical_block_size", "a power of two from 512 to 65536", bytes))
}

impl RawProcess {
    fn check(self, cgroups: &[Cgroup]) -> Result<Process, Problem> {
        let (class, level) = self.ioprio;
        let ioprio = flags::prio(class, level).ok_or_else(|| {
            let found = format_args!("[{class},{level}]").to_string();
            Problem::bad_field("processes.ioprio", "[class 0..3, level 0..7]", found)
        })?;
        let cgroup = find_cgroup(cgroups, &self.cgroup)
            .ok_or_else(|| Problem::bad_field("processes.cgroup", "a path of `cgroups`", &self.cgroup))?;
        let weight = match &self.weight {
            None | Some(Value::Null) => None,
            Some(weight) => Some(parse_weight("processes.weight", weight)?),
        };
        let pid = within("processes.pid", self.pid, 0..=PID_MAX)?;
        Ok(Process { pid, comm: self.comm, ioprio, nice: self.nice, cgroup, weight, job: self.job })
    }
}

/// The cgroups, root first, then in the header's order.
fn parse_cgroups(weights: &Map<String, Value>) -> Result<Vec<Cgroup>, Problem> {
    within("cgroups", weights.len(), 0..=CGROUPS_MAX)?;
    let mut cgroups = vec![Cgroup { path: "/".to_owned(), parent: None, weight: None }];
    for (path, weight) in weights {
        let weight = parse_weight("cgroups", weight)?;
        // The header has `a/b` where processes and events have `/a/b`.
        let path = format!("/{}", path.trim_start_matches('/'));
        if path.len() > PATH_BYTES_MAX {
            return Err(Problem::bad_field("cgroups", format!("paths of at most {PATH_BYTES_MAX} bytes"), path));
        }
        cgroups.push(Cgroup { path, parent: None, weight: Some(weight) });
    }
    for index in 1..cgroups.len() {
        cgroups[index].parent = Some(nearest_ancestor(&cgroups, &cgroups[index].path));
    }
    Ok(cgroups)
}

fn nearest_ancestor(cgroups: &[Cgroup], path: &str) -> CgroupId {
    let mut prefix = path;
    while let Some((parent, _)) = prefix.rsplit_once('/') {
        if let Some(id) = find_cgroup(cgroups, parent) {
            return id;
        }
        prefix = parent;
    }
    CgroupId::ROOT
}

fn find_cgroup(cgroups: &[Cgroup], path: &str) -> Option<CgroupId> {
    let index = cgroups.iter().position(|cgroup| cgroup.path == path)?;
    u32::try_from(index).ok().map(CgroupId)
}

/// Parses a weight: a number, or the text of `io.bfq.weight` such as `default 100`.
fn parse_weight(field: &'static str, value: &Value) -> Result<u32, Problem> {
    let number = match value {
        Value::String(text) => text.strip_prefix("default ").unwrap_or(text).trim().parse().ok(),
        other => other.as_u64().and_then(|weight| u32::try_from(weight).ok()),
    };
    let number = number.ok_or_else(|| Problem::bad_field(field, "a weight such as 100 or \"default 100\"", value))?;
    within(field, number, 1..=WEIGHT_MAX)
}

/// Parses a switch: 0 or 1 as in sysfs, or a JSON boolean.
fn switch<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Switch {
        Json(bool),
        Sysfs(u8),
    }
    Ok(match Switch::deserialize(value)? {
        Switch::Json(on) => on,
        Switch::Sysfs(number) => number != 0,
    })
}
