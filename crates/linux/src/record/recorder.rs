//! The recorder: prepares, runs and ends the recording of a device.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hoistway_trace::block::Device;

use super::clock::{monotonic_ns, process_cpu_time};
use super::error::RecordError;
use super::events::Decoder;
use super::format::PageLayout;
use super::options::{End, Options, Progress, end_for, more_severe};
use super::output::{self, Files, check_name, write_host};
use super::reader::{CpuReport, Reader, Reports};
use super::sidecar::{RecordedHost, memory_bytes};
use super::target::Target;
use super::tasks;
use super::tracefs::{self, Instance};
use super::watch::Watcher;
use crate::root::Root;

/// Default buffer per CPU in bytes.
const BUFFER_BYTES: u64 = 16 << 20;
const BUFFER_BYTES_MIN: u64 = 1 << 20;
/// The default buffers of all CPUs take at most 1/32 of the memory.
const MEMORY_SHARE: u64 = 32;

/// The summary of a recording.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Why it ended.
    pub end: End,
    /// Its length.
    pub time: Duration,
    /// I/Os that tasks queued.
    pub ios: u64,
    /// Events in the files.
    pub events: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Events that were lost because a buffer was full.
    pub lost: u64,
    /// CPU time of reading and writing. Does not include what tracing costs the tasks that do I/O.
    pub cpu_time: Duration,
    /// The files, by CPU.
    pub files: Vec<PathBuf>,
    /// The host of the recording.
    pub host: RecordedHost,
    /// Warnings about the recording, one sentence each.
    pub warnings: Vec<String>,
}

/// A recording that has not started, after all checks that can be made in advance.
#[derive(Debug)]
pub struct Recorder<'a> {
    root: &'a Root,
    target: Target,
    options: Options,
    warnings: Vec<String>,
    cpus: Vec<u32>,
    pages: PageLayout,
    decoder: Decoder,
    host: RecordedHost,
    instance: Instance<'a>,
}

impl<'a> Recorder<'a> {
    /// Checks the device, permissions and paths, and creates a tracefs instance. Removes instances left by killed
    /// recordings.
    ///
    /// # Errors
    /// What is missing, and what to do.
    pub fn prepare(root: &'a Root, device: &str, options: Options) -> Result<Recorder<'a>, RecordError> {
        if cfg!(target_endian = "big") {
            return Err(RecordError::new(device, "this machine is big-endian", "a little-endian machine"));
        }
        let target = Target::find(root, device)?;
        let mount_point = tracefs::find(root)?;
        check_name(&options.name)?;
        let cpus = online_cpus(root);
        let mut warnings = preflight_warnings(root, &target, &options.name);
        for instance in tracefs::remove_stale_instances(root, mount_point) {
            warnings.push(format!("Removed the tracefs instance {instance} of a killed recording."));
        }
        let instance = Instance::create(root, mount_point, buffer_bytes(root, &options, cpus.len()) >> 10)?;
        let pages = instance.page_layout(mount_point)?;
        let decoder = instance.enable_events(Decoder::new(target.number), target.number.number())?;
        let host = RecordedHost::read(root, &target, cpus.len() as u32);
        Ok(Recorder { root, target, options, warnings, cpus, pages, decoder, host, instance })
    }

    /// Warnings before the start, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Starts tracing into the buffers, which can hold seconds of events until [`Recording::run`] reads them.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn start(self) -> Result<Recording<'a>, RecordError> {
        let (start_ns, since_epoch) =
            (monotonic_ns(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        self.instance.record(true)?;
        Ok(Recording { recorder: self, started_at: Instant::now(), start_ns, since_epoch })
    }
}

/// A running recording. Dropping it stops tracing and removes the tracefs instance.
#[derive(Debug)]
pub struct Recording<'a> {
    recorder: Recorder<'a>,
    started_at: Instant,
    start_ns: u64,
    since_epoch: Duration,
}

impl Recording<'_> {
    /// The device.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.recorder.target
    }

    /// Writes events until the recording ends. Replaces an earlier recording with this name. `watch` is called several times
    /// per second, and stops the recording by returning `true`.
    ///
    /// # Errors
    /// If the files cannot be created, or the kernel refuses to stop. An error during the recording is an [`End`]:
    /// everything recorded before it is kept.
    pub fn run(self, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<Summary, RecordError> {
        let Recording { recorder, started_at, start_ns, since_epoch } = self;
        let Recorder { root, target, options, cpus, instance, .. } = &recorder;
        let cpu_time = process_cpu_time();
        let pipes = cpus.iter().map(|cpu| instance.pages(*cpu)).collect::<Result<Vec<_>, _>>()?;
        let files = Files::create(&options.name, &recorder.host, cpus, target.number)?;
        let by_cpu = cpus.iter().map(|_| Mutex::new(CpuReport::default())).collect();
        let reports = Reports { by_cpu, ..Reports::default() };
        let mut readers = Vec::new();
        for (index, (pipe, mut file)) in pipes.into_iter().zip(files.cpu_files).enumerate() {
            file.time_of_day(start_ns, since_epoch)
                .map_err(|error| RecordError::io(options.name.display().to_string(), &error, "free memory"))?;
            let (cpu, pages, decoder) = (cpus[index], recorder.pages, &recorder.decoder);
            readers.push(Reader { cpu, index, pipe, pages, decoder, file, reports: &reports, start_ns });
        }
        let scheduler = recorder.host.scheduler.as_deref();
        let mut watcher = Watcher::new(root, target, scheduler, options, &reports, started_at);
        let mut time = Duration::ZERO;
        let end = run_readers(readers, &reports, &mut |is_failed| {
            let end = watcher.wait_for_end(is_failed, watch);
            time = started_at.elapsed();
            instance.record(false).map_or_else(|error| End::Failed(error.to_string()), |()| end)
        });
        watcher.read_new_tasks();
        let tasks = watcher.merged_tasks();
        let recorded = watcher.tasks.recorded(&tasks);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let torn_pages = count(&reports.torn_pages);
        let mut summary = Summary {
            end,
            time,
            ios: count(&reports.ios),
            events: count(&reports.events),
            bytes: count(&reports.bytes),
            lost: count(&reports.lost).max(instance.lost()),
            cpu_time: process_cpu_time().saturating_sub(cpu_time),
            files: files.paths,
            host: RecordedHost {
                begun_s: since_epoch.as_secs(),
                seconds: time.as_secs_f64(),
                cgroups: tasks::cgroups(root, &recorded),
                tasks: recorded,
                ..recorder.host.clone()
            },
            warnings: Vec::new(),
        };
        summary.host.ios = summary.ios;
        summary.host.lost = summary.lost;
        summary.host.cpu_us_per_io = summary.cpu_us_per_io();
        if torn_pages > 0 {
            let count = format!("{torn_pages} pages of the ring buffer did not match the kernel's description");
            summary.warnings.push(format!("{count}: in each, everything after the corruption was lost."));
        }
        if let Err(error) = write_host(&files.host, &summary.host) {
            let host = files.host.display();
            summary.warnings.push(format!("{host}: {error}; it has the queue settings but no tasks."));
        }
        Ok(summary)
    }
}

impl Summary {
    /// CPU time of the recorder per I/O, us.
    #[must_use]
    pub fn cpu_us_per_io(&self) -> f64 {
        self.cpu_time.as_secs_f64() * 1e6 / self.ios.max(1) as f64
    }
}

/// Runs the readers until `watch` returns, and then until the buffers are empty. Returns the most informative end.
fn run_readers(readers: Vec<Reader<'_>>, reports: &Reports, watch: &mut dyn FnMut(&dyn Fn() -> bool) -> End) -> End {
    let is_failed = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for reader in readers {
            let (name, is_failed) = (format!("cpu{}", reader.cpu), &is_failed);
            let run = move || reader.run().inspect_err(|_| is_failed.store(true, Ordering::Relaxed));
            threads.push(thread::Builder::new().name(name).spawn_scoped(scope, run));
        }
        let spawn_failed = threads.iter().any(Result::is_err);
        let end = watch(&|| spawn_failed || is_failed.load(Ordering::Relaxed));
        reports.is_stopped.store(true, Ordering::Release);
        let failures = threads.into_iter().filter_map(|thread| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err(io::Error::other("the reader thread panicked"))).err(),
            Err(error) => Some(error),
        });
        failures.map(|error| end_for(&error)).fold(end, more_severe)
    })
}

/// Warnings about the device before it is recorded.
fn preflight_warnings(root: &Root, target: &Target, name: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(partition) = &target.partition {
        warnings.push(format!("{partition} is a partition: all I/O of its disk {} will be recorded.", target.name));
    }
    if target.has_no_requests && !target.lies_on.is_empty() {
        let below = target.lies_on.join(", ");
        warnings.push(format!(
            "{} has no request queue and no scheduler: record its underlying device instead, {below}.",
            target.name
        ));
    }
    let folder = output::folder(name);
    let device = rustix::fs::stat(folder).ok().map(|stat| {
        let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        Device { major: major as u16, minor }
    });
    if device.is_some_and(|device| target.is_below(root, device)) {
        warnings.push(format!(
            "{} is on {}: the recording will include its own writes.",
            folder.display(),
            target.name
        ));
    }
    warnings
}

fn buffer_bytes(root: &Root, options: &Options, cpus: usize) -> u64 {
    let share = memory_bytes(root) / MEMORY_SHARE / cpus.max(1) as u64;
    options.buffer_bytes.unwrap_or(BUFFER_BYTES.min(share.max(BUFFER_BYTES_MIN)))
}

/// CPUs that are online, from the kernel's list, such as `0-3,8`.
fn online_cpus(root: &Root) -> Vec<u32> {
    let text = root.read("sys/devices/system/cpu/online").unwrap_or_default();
    let mut cpus: Vec<u32> = text
        .trim()
        .split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
        })
        .flatten()
        .collect();
    if cpus.is_empty() {
        cpus = (0..thread::available_parallelism().map_or(1, usize::from) as u32).collect();
    }
    cpus
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn cpus_are_those_of_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sys/devices/system/cpu");
        fs::create_dir_all(&path).unwrap();
        let root = Root::open(folder.path()).unwrap();
        assert!(!online_cpus(&root).is_empty(), "there is one at least");
        for (text, cpus) in [("0\n", &[0][..]), ("0-3,8\n", &[0, 1, 2, 3, 8]), ("2,5-6", &[2, 5, 6])] {
            fs::write(path.join("online"), text).unwrap();
            assert_eq!(online_cpus(&root), cpus);
        }
    }
}
