//! A recording of block I/O as the load of a comparison.
//!
//! Used by: `load`, `run`, `load::job_facts`.
//! Tests: `crates/experiment/src/load/recording/host.rs`, `crates/experiment/src/load/recording/options.rs`.

mod device;
mod host;
mod options;
mod summary;

pub(crate) use device::SeenDevice;
pub use device::fitted_device;
pub(crate) use host::{queue_files, tunables};
pub(crate) use options::columns;

use std::sync::{Arc, OnceLock};

use hoistway_answer::document::JobDemand;
use hoistway_blk::bio::PriorityClass;
use hoistway_device::Preset;
use hoistway_fio::JobFile;
use hoistway_linux::record::RecordedHost;
use hoistway_load::Load;
use hoistway_program::{
    Alternative, Change, Class, Kind, Options as InferOptions, Program, ReplayOptions, Stream, Stretch,
};
use hoistway_sim::Host;
use hoistway_trace::block::Recording;

use crate::comparison::environment::Options;
use crate::comparison::error::{Error, Fault};
use crate::comparison::fields::Field;
use crate::load::times;

/// Maximum share of lost events for which a verdict is given (RP33).
const LOST_SHARE_MAX: f64 = 0.01;
/// Maximum I/Os of a recording that are replayed unless a part was chosen.
const IOS_MAX: usize = 1_000_000;
/// Pauses above this share of a stream's latency count as think time.
const THINKING_SHARE: f64 = 0.1;

/// A recording and the program inferred from it.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) program: Program,
    /// Its name, as given.
    name: String,
    /// The detected format.
    pub(crate) format: String,
    /// The requested options, except the device and changes.
    replay: ReplayOptions,
    scale_to_fit: bool,
    /// Whether the caller accepts losses.
    lossy: bool,
    /// The scheduler during the recording, if known.
    pub(crate) recorded_under: Option<String>,
    /// The host of the recording, if its file was found.
    pub(crate) host: Option<RecordedHost>,
    /// A model of its device, once it was asked for.
    seen: OnceLock<Option<SeenDevice>>,
}

impl Recorded {
    /// Reads a recording to its end.
    pub(crate) fn of(options: &Options<'_>, mut recording: Recording, name: &str) -> Result<Arc<Recorded>, Error> {
        let requested = &options.comparison.replay;
        let infer = InferOptions {
            device: options::device(options),
            intervals: true,
            served: true,
            window_ns: options::window(options)?,
            // A part that was chosen explicitly is not truncated.
            ios_max: requested.window_ns.is_none().then_some(IOS_MAX),
            ..InferOptions::default()
        };
        let program = Program::infer(&mut recording, name, &infer).map_err(|mut error| {
            if error.expected == hoistway_program::NAME_DEVICE {
                error.expected = format!("{} with one of them", options.name(Field::RecordedDevice));
            }
            let lacks_device = error.message.starts_with(hoistway_program::NO_DEVICE);
            match requested.device.as_ref().filter(|_| lacks_device) {
                Some(device) => options.refuse(Field::RecordedDevice, device, error),
                None => Fault::from(error).of(Field::Load),
            }
        })?;
        let mut replay = options::replay(options, &program)?;
        let host = host::find_host(options, name, &program)?;
        let is_set = |name: &str| requested.priorities.contains_key(name);
        let recorded = host.iter().flat_map(|host| host::priorities(host, &program));
        replay.priorities.extend(recorded.filter(|(name, _)| !is_set(name)));
        let known = options.environment.schedulers();
        let host_scheduler =
            host.as_ref().and_then(|host| host.scheduler.clone()).filter(|name| known.find(name).is_some());
        let inferred_scheduler = || program.recorded_under.map(str::to_owned);
        let recorded_under = requested.recorded_under.clone().or(host_scheduler).or_else(inferred_scheduler);
        Ok(Arc::new(Recorded {
            name: name.to_owned(),
            format: recording.format().to_string(),
            program,
            replay,
            scale_to_fit: requested.scale_to_fit,
            lossy: requested.lossy,
            recorded_under,
            host,
            seen: OnceLock::new(),
        }))
    }

    /// The profile of its machine.
    pub(crate) fn host_profile(&self) -> String {
        let online = self.host.as_ref().map(|host| host.cpus).filter(|&cpus| cpus > 0);
        let cpus = online.or(self.program.cpus).map(|cpus| u16::try_from(cpus).unwrap_or(u16::MAX));
        let host = Host::of_recording(self.program.reaction_ns, cpus);
        toml::to_string(&host).expect("a profile is TOML")
    }

    /// The device class that the recording suggests.
    pub(crate) fn suggested_device_class(&self) -> &'static str {
        device::device_class(&self.program)
    }

    /// A model of its device, if the recording shows enough of it.
    pub(crate) fn seen_device(&self) -> Option<&SeenDevice> {
        self.seen.get_or_init(|| device::seen_device(&self.program, &self.name)).as_ref()
    }

    /// Whether this model was chosen by the recording, or made of it.
    pub(crate) fn is_device_seen(&self, preset: &Preset) -> bool {
        self.seen.get().and_then(Option::as_ref).is_some_and(|seen| seen.preset.name == preset.name)
    }

    /// By what factor a model is off on the recorded requests.
    pub(crate) fn off_by(&self, preset: &Preset) -> Option<f64> {
        device::off_by(&self.program, preset)
    }

    /// A load without processes that has only the recorded device as its file.
    pub(crate) fn without_processes(&self) -> Load {
        let mut load = Load::new();
        load.file(&self.program.device.to_string());
        load
    }

    /// The device, enlarged to fit the addresses of the recording if its model does not depend on distances (RP34).
    pub(crate) fn on(&self, preset: Preset) -> Preset {
        if preset.shape().rotational { preset } else { preset.with_capacity_of(self.program.end_bytes) }
    }

    /// The load that replays the program with `changes` on a device with this name and size, whose queue has `nr_requests`.
    pub(crate) fn workload(
        &self,
        options: &Options<'_>,
        (device, device_bytes): (&str, u64),
        nr_requests: u32,
        changes: &[Change],
    ) -> Result<Load, Error> {
        let end_bytes = self.program.end_bytes;
        let mut replay =
            ReplayOptions { changes: changes.to_vec(), queue_depth: nr_requests, device_bytes, ..self.replay.clone() };
        if end_bytes > device_bytes {
            let (end_gb, device_gb) = (end_bytes as f64 / 1e9, device_bytes as f64 / 1e9);
            if !self.scale_to_fit {
                let problem = format!(
                    "the recording has addresses up to {end_gb:.1} GB, but the device {} has {device_gb:.1} GB (expected a larger device, \
                     or addresses scaled down with {})",
                    device,
                    options.name(Field::ScaleToFit)
                );
                return Err(Error::new(Field::Load, problem));
            }
            replay.shrink = end_bytes as f64 / device_bytes as f64;
        }
        let name = self.program.device.to_string();
        let mut load = self.program.load(&name, &replay).map_err(|error| Error::new(Field::Load, error.message))?;
        apply(options, &mut load)?;
        Ok(load)
    }

    /// The load and its notices, for a target of any size.
    pub(crate) fn in_real_time(&self, options: &Options<'_>) -> Result<JobFile, Error> {
        let device_bytes = self.program.end_bytes.saturating_mul(u64::from(self.replay.copies));
        let replay = ReplayOptions { device_bytes, ..self.replay.clone() };
        let name = self.program.device.to_string();
        let mut load = self.program.load(&name, &replay).map_err(|error| Error::new(Field::Load, error.message))?;
        apply(options, &mut load)?;
        Ok(JobFile { load, notices: self.notices(options) })
    }

    /// Upper bound of the I/Os that were in flight at any time.
    pub(crate) fn outstanding(&self) -> u32 {
        self.program.streams.iter().map(|stream| stream.evidence.depth_max.max(1)).sum()
    }

    /// The demand of the streams with this name; `None` for tasks with too few I/Os to infer it.
    pub(crate) fn demand(&self, name: &str) -> Option<JobDemand> {
        let is_known = |stream: &&Stream| stream.name == name && stream.kind != Kind::Others;
        let streams = || self.program.streams.iter().filter(is_known);
        streams().next()?;
        let is_open = streams().all(|stream| stream.class == Class::Open);
        let priority = self.replay.priorities.iter().find(|(other, _)| other == name);
        let class = priority.map(|(_, priority)| priority.class());
        let span_seconds = self.program.span_ns as f64 / 1e9;
        let weight_of = |id| self.replay.cgroup_weights.iter().find(|(known, _)| *known == id);
        let weights = streams().map(|stream| weight_of(stream.cgroup?));
        Some(JobDemand {
            weight: weights.flatten().map(|(_, weight)| *weight).max(),
            depth: streams().map(|stream| stream.evidence.depth_max).max().unwrap_or(1),
            asked_iops: (is_open && span_seconds > 0.0)
                .then(|| streams().map(|stream| stream.ios as f64).sum::<f64>() / span_seconds),
            thinks: streams().any(thinks),
            syncs: streams().any(|stream| stream.durable_writes + stream.flushes > 0),
            is_realtime: class == Some(PriorityClass::RealTime),
            is_idle: class == Some(PriorityClass::Idle),
            // The job has a fixed amount of work if it is not open and ended before the recording did.
            ends: !is_open && streams().all(|stream| (stream.last_ns as f64) < 0.9 * self.program.span_ns as f64),
            is_buffered: false,
        })
    }

    /// Alternative programs that also explain the recording, each with its changes.
    pub(crate) fn alternatives(&self) -> &[Alternative] {
        &self.program.alternatives
    }

    /// Notices about the recording, one sentence each.
    pub(crate) fn notices(&self, options: &Options<'_>) -> Vec<String> {
        let mut notices: Vec<String> =
            self.program.stretch.iter().map(|stretch| stretch_notice(stretch, options)).collect();
        notices.extend(self.program.notes());
        let cgroups = options::cgroups(&self.program).len();
        let schedulers = &options.comparison.schedulers;
        let has_bfq = schedulers.is_empty() || schedulers.iter().any(|name| name == "bfq");
        if cgroups > 1 && has_bfq && self.replay.cgroup_weights.is_empty() {
            let given = options.given(Field::CgroupWeights, "ID=weight:N");
            notices.push(format!(
                "The I/Os come from {cgroups} cgroups, whose weights a recording does not show: bfq treats them equally ({given} sets one)."
            ));
        }
        let lost = self.lost_share();
        if lost > LOST_SHARE_MAX && !self.lossy {
            notices.push(format!(
                "{:.1} % of the events are missing: there is no recommendation (use {} to get one anyway).",
                lost * 100.0,
                options.name(Field::Lossy)
            ));
        }
        notices
    }

    /// Whether too many events were lost for a verdict.
    pub(crate) fn is_too_lossy(&self) -> bool {
        !self.lossy && self.lost_share() > LOST_SHARE_MAX
    }

    fn lost_share(&self) -> f64 {
        let lost = self.program.losses.lost_events + self.program.counts.given_up;
        lost as f64 / (self.program.counts.queued.max(1) + lost) as f64
    }
}

/// Describes the replayed part, and how to replay everything.
fn stretch_notice(stretch: &Stretch, options: &Options<'_>) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let all = format_args!("0s..{}s", stretch.all_ns / 1_000_000_000 + 1).to_string();
    format!(
        "The recording has {} I/Os in {:.1} s: its busiest stretch of {IOS_MAX} is replayed, {:.3} s to {:.3} s ({} replays all of it).",
        stretch.all_ios,
        seconds(stretch.all_ns),
        seconds(stretch.from_ns),
        seconds(stretch.to_ns),
        options.given(Field::Window, all)
    )
}

/// Whether a stream pauses between its I/Os.
fn thinks(stream: &Stream) -> bool {
    let latency_ns = stream.read_latency.mean_ns.max(stream.write_latency.mean_ns);
    stream.class != Class::Open && stream.think_ns.is_some_and(|ns| ns as f64 > THINKING_SHARE * latency_ns)
}

/// Applies the options that every load has: the ramp time, and whether to write logs.
fn apply(options: &Options<'_>, load: &mut Load) -> Result<(), Error> {
    if let Some(ramp) = times::time(options, Field::RampNs, options.comparison.ramp_ns)? {
        load.processes.iter_mut().for_each(|process| process.schedule.ramp = ramp);
    }
    if options.comparison.logs {
        load.processes.iter_mut().for_each(|process| process.log = Some(process.log_settings));
    }
    Ok(())
}
