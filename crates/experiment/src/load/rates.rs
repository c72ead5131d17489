//! Loads synthesised from a monitoring tool's output: the disk's rates become a job file, its latencies a check of the
//! device model.

use std::fmt::Write as _;

use hoistway_answer::document::{CheckedLatency, DeviceCheck};
use hoistway_answer::{FigureName, ResultsDocument};
use hoistway_trace::summary::{DirectionRates, Disk, Summary};

use crate::comparison::Replay;
use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;

/// Target number of I/Os of a run; the runtime follows from it, within these limits.
const IOS: f64 = 100_000.0;
const SECONDS_MIN: f64 = 1.0;
const SECONDS_MAX: f64 = 30.0;
/// Lower rates, in I/Os per second, are left out.
const RATE_MIN: f64 = 0.5;
/// Sizes are rounded to multiples of this.
const BLOCK_BYTES: f64 = 4096.0;

/// A summary and its simulated disk.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    summary: Summary,
    disk: Disk,
}

impl Rates {
    /// Chooses the requested disk, or the busiest.
    pub(crate) fn of(options: &Options<'_>, name: &str, summary: Summary) -> Result<Rates, Error> {
        let requested = options.comparison.replay.device.as_deref();
        let mut disks = summary.disks.iter().filter(|disk| flows(disk).next().is_some());
        let is_requested =
            |disk: &&Disk| requested.is_none_or(|name| disk.name == name.strip_prefix("/dev/").unwrap_or(name));
        let Some(disk) = disks.clone().find(is_requested).cloned() else {
            return Err(match (requested, disks.next()) {
                (Some(text), Some(first)) => {
                    let names = [&*first.name].into_iter().chain(disks.map(|disk| &*disk.name));
                    let problem = format!(
                        "{name} shows no such disk with I/O (expected one of {})",
                        names.collect::<Vec<_>>().join(", ")
                    );
                    options.refuse(Field::RecordedDevice, text, problem)
                }
                _ => Error::new(Field::Load, format!("{name}: {} shows no disk with I/O (expected one)", summary.tool)),
            });
        };
        let only_device = Replay { device: options.comparison.replay.device.clone(), ..Replay::default() };
        if options.comparison.replay != only_device {
            let problem = format!(
                "{name}: options of a replay need a recording, but for the device (expected one instead of {})",
                summary.tool
            );
            return Err(Error::new(Field::Load, problem));
        }
        Ok(Rates { summary, disk })
    }

    /// The job file of the load: each direction issues I/Os at random times and offsets, independent of completions.
    pub(crate) fn job_text(&self) -> String {
        let seconds = (IOS / self.disk.per_second()).clamp(SECONDS_MIN, SECONDS_MAX).round();
        let mut text = format!(
            "[global]\nfilename=/dev/{}\ndirect=1\nioengine=libaio\niodepth=64\nrate_process=poisson\ntime_based\nruntime={seconds}\n",
            self.disk.name
        );
        for (job, mode, flow) in flows(&self.disk) {
            let (bytes, rate) = (round_to_blocks(flow.bytes), flow.per_second.round().max(1.0));
            let _ = write!(text, "[{job}]\nrw={mode}\nbs={bytes}\nrate_iops={rate}\n");
            if job == "writes" && self.disk.flushes_per_second >= RATE_MIN {
                let every = (flow.per_second / self.disk.flushes_per_second).round().max(1.0);
                let _ = writeln!(text, "fsync={every}");
            }
        }
        text
    }

    /// The class of devices that the disk's name says, if any: sd* may be anything.
    pub(crate) fn suggested_device_class(&self) -> Option<&'static str> {
        let is = |prefix: &str| self.disk.name.starts_with(prefix);
        match () {
            () if is("nvme") => Some("nvme"),
            () if is("mmcblk") => Some("emmc"),
            () if is("vd") || is("xvd") => Some("cloud-volume"),
            () => None,
        }
    }

    /// The figure that schedulers are ranked by: a latency, since the rates are fixed.
    pub(crate) fn focus(&self) -> Option<FigureName> {
        let name = match flows(&self.disk).next()? {
            ("reads", ..) => "reads:read:mean",
            ("writes", ..) => "writes:write:mean",
            _ => "discards:trim:mean",
        };
        name.parse().ok()
    }

    /// Notices about the origin of the load and its limits.
    pub(crate) fn notices(&self) -> Vec<String> {
        let (name, tool, period) = (&self.disk.name, self.summary.tool, &self.summary.period);
        let words = flows(&self.disk).map(|(job, _, flow)| {
            format!(
                "{:.0} {job} a second of {:.1} KiB, {:.2} ms each",
                flow.per_second,
                flow.bytes / 1024.0,
                flow.await_ms
            )
        });
        let mut sentence = format!(
            "The load was synthesised from {tool} output ({period}): {name} does {}.",
            words.collect::<Vec<_>>().join(", ")
        );
        let others = self.summary.disks.iter().filter(|disk| disk.name != *name);
        let with_use = |disk: &Disk| match disk.utilisation {
            Some(utilisation) => format!("{} ({:.0} % busy)", disk.name, 100.0 * utilisation),
            None => disk.name.clone(),
        };
        let others: Vec<String> = others.map(with_use).collect();
        if !others.is_empty() {
            let _ = write!(sentence, " Left out (--recorded-device chooses): {}.", others.join(", "));
        }
        let limits = format!(
            "Averages hide bursts, sequential access, the distribution of sizes and dependencies: I/Os arrive at random times and \
             offsets. A recording shows them: blktrace -d /dev/{name} -w 30 -o {name}; hoistway compare {name}.blktrace.0"
        );
        vec![sentence, limits]
    }

    /// The mean time of an I/O on the disk and on its model, for each setup under the disk's default scheduler.
    pub(crate) fn checks(&self, document: &ResultsDocument) -> Vec<DeviceCheck> {
        let setup_count = document.setups.len().max(1) as u32;
        (0..setup_count).filter_map(|setup| self.check_setup(document, setup)).collect()
    }

    /// The check on one setup; `None` without anything to compare.
    fn check_setup(&self, document: &ResultsDocument, setup: u32) -> Option<DeviceCheck> {
        let setup_default = document.setups.get(setup as usize).map(|setup| &setup.default_scheduler);
        let default = setup_default.unwrap_or(&document.default_scheduler).as_deref();
        let mut runs = document.runs.iter().filter(|run| run.setup == setup);
        let run = runs.clone().find(|run| Some(&*run.scheduler) == default).or_else(|| runs.next())?;
        let row = |(job, _, flow): (&str, &str, DirectionRates)| {
            let summary = run.jobs.iter().filter(|summary| summary.name == job);
            let summary = summary.flat_map(|summary| summary.transfers()).find(|transfer| transfer.ios > 0)?;
            (flow.await_ms > 0.0 && summary.lat_ns.mean > 0.0).then(|| CheckedLatency {
                job: job.to_owned(),
                operation: summary.operation,
                ios: flow.per_second,
                observed_ns: flow.await_ms * 1e6,
                model_ns: summary.lat_ns.mean,
                model_ios: Some(summary.iops),
            })
        };
        let mut rows: Vec<CheckedLatency> = flows(&self.disk).filter_map(row).collect();
        if self.disk.has_one_await {
            rows = joined(&rows).into_iter().collect();
        }
        let under = run.scheduler.clone();
        (!rows.is_empty()).then(|| DeviceCheck { setup, disk: self.disk.name.clone(), under, rows })
    }
}

/// The rows of all directions as one, with the mean of their I/Os; `None` if there is none.
fn joined(rows: &[CheckedLatency]) -> Option<CheckedLatency> {
    let ios: f64 = rows.iter().map(|row| row.ios).sum();
    let model_ns = rows.iter().map(|row| row.ios * row.model_ns).sum::<f64>() / ios;
    let names: Vec<&str> = rows.iter().map(|row| &*row.job).collect();
    let model_ios = rows.iter().map(|row| row.model_ios).sum();
    Some(CheckedLatency { job: names.join(" and "), ios, model_ns, model_ios, ..rows.first()?.clone() })
}

/// The directions that have I/Os, with their fio mode.
fn flows(disk: &Disk) -> impl Iterator<Item = (&'static str, &'static str, DirectionRates)> {
    let all = [
        ("reads", "randread", disk.reads),
        ("writes", "randwrite", disk.writes),
        ("discards", "randtrim", disk.discards),
    ];
    all.into_iter().filter(|(.., flow)| flow.per_second >= RATE_MIN && flow.bytes > 0.0)
}

/// Rounds to whole blocks.
fn round_to_blocks(bytes: f64) -> u64 {
    ((bytes / BLOCK_BYTES).round().max(1.0) * BLOCK_BYTES) as u64
}
