//! Assigns tasks to streams, and streams to jobs (RP3, RP16, RP17).

use hoistway_trace::block::Device;
use rustc_hash::FxHashMap;

use crate::gather::{self, GatheredRecording};
use crate::stream::{self, Kind};

/// Maximum streams; further tasks are `others`.
const STREAMS_MAX: usize = 1024;

/// The stream of each task, and the job of each stream.
pub(crate) struct Sorted {
    /// The stream of each task; `None` for tasks on other devices.
    pub(crate) of_task: Vec<Option<usize>>,
    pub(crate) streams: Vec<(String, Option<u32>, Kind, u64)>,
    /// The job of each stream.
    pub(crate) job: Vec<usize>,
    pub(crate) streams_of_job: Vec<usize>,
}

/// Tasks with the same key form one stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SortKey {
    Task(u32),
    WriteBack,
    Device,
}

pub(crate) fn sort(gathered: &GatheredRecording, device: Device, ios_min: u64) -> Sorted {
    let on_device = |task: &&gather::Task| task.device == device;
    let has_task = |pid: u32| gathered.tasks.iter().any(|task| task.device == device && task.pid == pid);
    let name_of = |pid: u32| gathered.names.get(&pid).map(String::as_str);
    let ios: u64 = gathered.tasks.iter().filter(on_device).map(|task| task.ios).sum();
    let by_dispatchers: u64 = gathered
        .tasks
        .iter()
        .filter(on_device)
        .filter(|task| name_of(task.pid).is_some_and(stream::is_dispatcher))
        .map(|task| task.ios)
        .sum();
    // If workers issue the requests, their tasks are unknown (RP29). Tables have no tasks (RP31).
    let is_nameless = |task: &gather::Task| task.pid == 0 && name_of(0).is_none();
    let has_no_tasks =
        gathered.tasks.iter().filter(on_device).all(is_nameless) || (gathered.of_requests && by_dispatchers * 10 > ios);
    let key = |task: &gather::Task| {
        let name = name_of(task.pid).unwrap_or_default();
        if has_no_tasks {
            return SortKey::Device;
        }
        if task.is_async_write && stream::is_flusher(name) {
            return SortKey::WriteBack;
        }
        match stream::task_of_io_worker(name) {
            Some(parent) if has_task(parent) => SortKey::Task(parent),
            _ => SortKey::Task(task.pid),
        }
    };
    let mut sums: FxHashMap<SortKey, u64> = FxHashMap::default();
    for task in gathered.tasks.iter().filter(on_device) {
        *sums.entry(key(task)).or_default() += task.ios;
    }
    let mut large: Vec<(SortKey, u64)> =
        sums.iter().map(|(key, ios)| (*key, *ios)).filter(|(_, ios)| *ios >= ios_min).collect();
    let order = |key: SortKey| if let SortKey::Task(pid) = key { u64::from(pid) } else { u64::MAX };
    large.sort_by_key(|(key, ios)| (std::cmp::Reverse(*ios), order(*key)));
    large.truncate(STREAMS_MAX);
    let mut streams: Vec<(String, Option<u32>, Kind, u64)> = Vec::new();
    let mut index: FxHashMap<SortKey, usize> = FxHashMap::default();
    for (at, (key, _)) in large.iter().enumerate() {
        index.insert(*key, at);
        streams.push(match key {
            SortKey::WriteBack => ("(write-back)".to_owned(), None, Kind::WriteBack, 0),
            SortKey::Device => (device.to_string(), None, Kind::Task, 0),
            SortKey::Task(pid) => {
                let name = name_of(*pid).map_or_else(|| format!("task {pid}"), str::to_owned);
                let kind = if stream::is_helper(&name) { Kind::Helper } else { Kind::Task };
                (name, Some(*pid), kind, 0)
            }
        });
    }
    let others = streams.len();
    if sums.len() > large.len() {
        streams.push(("others".to_owned(), None, Kind::Others, 0));
    }
    let of_task: Vec<Option<usize>> = gathered
        .tasks
        .iter()
        .map(|task| (task.device == device).then(|| index.get(&key(task)).copied().unwrap_or(others)))
        .collect();
    for stream in of_task.iter().flatten() {
        streams[*stream].3 += 1;
    }
    if has_no_tasks {
        streams.iter_mut().for_each(|(.., tasks)| *tasks = 1);
    }
    let mut names: FxHashMap<&str, usize> = FxHashMap::default();
    let job: Vec<usize> = streams
        .iter()
        .map(|(name, ..)| {
            let next = names.len();
            *names.entry(name).or_insert(next)
        })
        .collect();
    let mut streams_of_job = vec![0; names.len()];
    job.iter().for_each(|&job| streams_of_job[job] += 1);
    Sorted { of_task, streams, job, streams_of_job }
}
