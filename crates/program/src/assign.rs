//! Assigns tasks to streams, and streams to jobs (RP3, RP16, RP17).
//!
//! Used by: `infer`.
//! Tests: `crates/program/tests/program/recordings.rs`, `crates/program/tests/program/tables.rs`.

use hoistway_trace::block::Device;
use rustc_hash::FxHashMap;

use crate::gather::{self, GatheredRecording};
use crate::stream::{self, Kind};

/// Maximum streams; further tasks are `others`.
const STREAMS_MAX: usize = 1024;

/// The stream of each task, and the job of each stream.
pub(crate) struct StreamAssignment {
    /// The stream of each task; `None` for tasks on other devices.
    pub(crate) stream_of_task: Vec<Option<usize>>,
    pub(crate) streams: Vec<NewStream>,
    /// The job of each stream.
    pub(crate) job_of_stream: Vec<usize>,
    /// The number of streams of each job.
    pub(crate) streams_of_job: Vec<usize>,
}

/// A stream before its I/Os are counted.
pub(crate) struct NewStream {
    pub(crate) name: String,
    /// `None` for several tasks.
    pub(crate) pid: Option<u32>,
    pub(crate) kind: Kind,
    /// Number of tasks.
    pub(crate) tasks: u64,
}

impl NewStream {
    fn new(name: String, pid: Option<u32>, kind: Kind) -> NewStream {
        NewStream { name, pid, kind, tasks: 0 }
    }
}

/// Tasks with the same key form one stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum StreamKey {
    Task(u32),
    WriteBack,
    Device,
}

pub(crate) fn assign(gathered: &GatheredRecording, device: Device, ios_min: u64) -> StreamAssignment {
    let on_device = |task: &&gather::Task| task.device == device;
    let has_task = |pid: u32| gathered.tasks.iter().any(|task| task.device == device && task.pid == pid);
    let name_of = |pid: u32| gathered.names.get(&pid).map(String::as_str);
    let total_ios: u64 = gathered.tasks.iter().filter(on_device).map(|task| task.ios).sum();
    let dispatcher_ios: u64 = gathered
        .tasks
        .iter()
        .filter(on_device)
        .filter(|task| name_of(task.pid).is_some_and(stream::is_dispatcher))
        .map(|task| task.ios)
        .sum();
    // If workers issue the requests, their tasks are unknown (RP29). Tables have no tasks (RP31).
    let is_nameless = |task: &gather::Task| task.pid == 0 && name_of(0).is_none();
    let has_no_tasks = gathered.tasks.iter().filter(on_device).all(is_nameless)
        || (gathered.has_only_requests && dispatcher_ios * 10 > total_ios);
    let key = |task: &gather::Task| {
        let name = name_of(task.pid).unwrap_or_default();
        if has_no_tasks {
            return StreamKey::Device;
        }
        if task.is_async_write && stream::is_flusher(name) {
            return StreamKey::WriteBack;
        }
        match stream::task_of_io_worker(name) {
            Some(parent) if has_task(parent) => StreamKey::Task(parent),
            _ => StreamKey::Task(task.pid),
        }
    };
    let mut sums: FxHashMap<StreamKey, u64> = FxHashMap::default();
    for task in gathered.tasks.iter().filter(on_device) {
        *sums.entry(key(task)).or_default() += task.ios;
    }
    let mut large: Vec<(StreamKey, u64)> =
        sums.iter().map(|(key, ios)| (*key, *ios)).filter(|(_, ios)| *ios >= ios_min).collect();
    let order = |key: StreamKey| if let StreamKey::Task(pid) = key { u64::from(pid) } else { u64::MAX };
    large.sort_by_key(|(key, ios)| (std::cmp::Reverse(*ios), order(*key)));
    large.truncate(STREAMS_MAX);
    let mut streams: Vec<NewStream> = Vec::new();
    let mut stream_of_key: FxHashMap<StreamKey, usize> = FxHashMap::default();
    for (index, (key, _)) in large.iter().enumerate() {
        stream_of_key.insert(*key, index);
        streams.push(match key {
            StreamKey::WriteBack => NewStream::new("(write-back)".to_owned(), None, Kind::WriteBack),
            StreamKey::Device => NewStream::new(device.to_string(), None, Kind::Task),
            StreamKey::Task(pid) => {
                let name = name_of(*pid).map_or_else(|| format!("task {pid}"), str::to_owned);
                let kind = if stream::is_helper(&name) { Kind::Helper } else { Kind::Task };
                NewStream::new(name, Some(*pid), kind)
            }
        });
    }
    let others = streams.len();
    if sums.len() > large.len() {
        streams.push(NewStream::new("others".to_owned(), None, Kind::Others));
    }
    let stream_of_task: Vec<Option<usize>> = gathered
        .tasks
        .iter()
        .map(|task| (task.device == device).then(|| stream_of_key.get(&key(task)).copied().unwrap_or(others)))
        .collect();
    for stream in stream_of_task.iter().flatten() {
        streams[*stream].tasks += 1;
    }
    if has_no_tasks {
        streams.iter_mut().for_each(|stream| stream.tasks = 1);
    }
    let mut names: FxHashMap<&str, usize> = FxHashMap::default();
    let job_of_stream: Vec<usize> = streams
        .iter()
        .map(|stream| {
            let next = names.len();
            *names.entry(&stream.name).or_insert(next)
        })
        .collect();
    let mut streams_of_job = vec![0; names.len()];
    job_of_stream.iter().for_each(|&job| streams_of_job[job] += 1);
    StreamAssignment { stream_of_task, streams, job_of_stream, streams_of_job }
}
