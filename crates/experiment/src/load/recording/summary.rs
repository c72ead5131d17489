//! The contents of a recording for the document, and a comparison with its replay under its own scheduler (RP25).

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{
    JobSummary, RecordedSeries, RecordedStream, RecordingSummary, SelfCheck, SeriesSummary,
};
use hoistway_measure::Operation;
use hoistway_program::{Class, Done, Kind, Latency, Mode, Stream};

use super::Recorded;

/// One in this many parts of the recording is the ramp, which is not measured (RP22).
const RAMP_SHARE: usize = 10;

impl Recorded {
    /// The contents of the recording.
    pub(crate) fn summary(&self) -> RecordingSummary {
        let mut streams: Vec<RecordedStream> = Vec::new();
        for name in self.job_names() {
            let job_streams: Vec<&Stream> = self.program.streams.iter().filter(|stream| stream.name == name).collect();
            let sum = |figure: fn(&Stream) -> u64| job_streams.iter().map(|stream| figure(stream)).sum::<u64>();
            let (reads, writes) = (sum(|stream| stream.reads.0), sum(|stream| stream.writes.0));
            let bytes = sum(|stream| stream.reads.1 + stream.writes.1);
            let discards = sum(|stream| stream.discards.0);
            let mut waits_for: Vec<String> = job_streams
                .iter()
                .flat_map(|stream| &stream.waits)
                .map(|wait| self.program.streams[wait.on].name.clone())
                .collect();
            waits_for.sort();
            waits_for.dedup();
            let all_are = |class: Class| job_streams.iter().all(|stream| stream.class == class);
            let arrival = if all_are(Class::Closed) {
                "closed"
            } else if all_are(Class::Open) {
                "open"
            } else {
                "undecided"
            };
            // A few long pauses, as between phases of a program, do not move the median.
            let mut thinks: Vec<u64> = job_streams.iter().filter_map(|stream| stream.think_ns).collect();
            thinks.sort_unstable();
            streams.push(RecordedStream {
                name: name.to_owned(),
                tasks: sum(|stream| stream.tasks),
                pid: match job_streams[..] {
                    [stream] if stream.name != stream.task_name => stream.pid,
                    _ => None,
                },
                is_rest: job_streams.iter().any(|stream| stream.kind == Kind::Others),
                ios: sum(|stream| stream.ios),
                reads,
                writes,
                discards,
                durable: sum(|stream| stream.flushes + stream.durable_writes),
                mean_bytes: bytes as f64 / (reads + writes).max(1) as f64,
                arrival: arrival.to_owned(),
                think_ns: thinks.get(thinks.len() / 2).copied(),
                // The deepest stream shows how many requests the recorded queue may have held back.
                hidden_depth: job_streams.iter().filter_map(|stream| stream.hidden_depth).max(),
                waits_for,
                over_time: if self.is_replay_at_recorded_speed() { over_time(&job_streams) } else { Vec::new() },
            });
        }
        RecordingSummary {
            format: self.format.clone(),
            device: self.program.device.to_string(),
            seconds: self.program.span_ns as f64 / 1e9,
            ios: self.program.streams.iter().map(|stream| stream.ios).sum(),
            mode: match self.replay.mode {
                Mode::RecordedProgram => "recorded-program",
                Mode::Timed => "timed",
                Mode::Fast => "fast",
            }
            .to_owned(),
            speed: self.replay.speed,
            copies: self.replay.copies,
            is_too_lossy: self.is_too_lossy(),
            streams,
            ..RecordingSummary::default()
        }
    }

    /// Whether the replay has the recorded speed and a single copy.
    fn is_replay_at_recorded_speed(&self) -> bool {
        self.replay.speed == 1.0 && self.replay.copies <= 1
    }

    /// The names of the replayed streams, in the order of the program.
    fn job_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for stream in &self.program.streams {
            let is_replayed =
                self.replay.streams.is_empty() || self.replay.streams.iter().any(|text| stream.is_called(text));
            if is_replayed && !names.contains(&&*stream.name) {
                names.push(&stream.name);
            }
        }
        names
    }

    /// Compares the recording with the runs of its replay under `label`. Empty if the recording lacks completions, or was replayed
    /// at another speed, in another mode or in several copies.
    pub(crate) fn self_check(&self, replayed: &ResultsDocument, label: &str) -> Vec<SelfCheck> {
        if !self.is_replay_at_recorded_speed()
            || self.replay.mode != Mode::RecordedProgram
            || !self.program.has_completions
        {
            return Vec::new();
        }
        let mut rows = Vec::new();
        for name in self.job_names() {
            let jobs: Vec<&JobSummary> = replayed
                .runs
                .iter()
                .filter(|run| run.variant.label == label)
                .flat_map(|run| run.jobs.iter().filter(|job| job.name == name))
                .collect();
            for operation in [Operation::Read, Operation::Write, Operation::Trim] {
                let figures = |is_whole: bool| {
                    let (mut ios, mut sum_ns, mut iops) = (0, 0.0, 0.0);
                    for stream in self.program.streams.iter().filter(|stream| stream.name == name) {
                        let (done, seconds) = recorded_figures(stream, operation, self.program.span_ns, is_whole);
                        ios += done.ios;
                        sum_ns += done.mean_ns * done.ios as f64;
                        iops += done.ios as f64 / seconds;
                    }
                    (ios, sum_ns, iops)
                };
                let after_ramp = figures(false);
                let (ios, sum_ns, recorded_iops) = if after_ramp.0 > 0 { after_ramp } else { figures(true) };
                let Some((replayed_ns, replayed_iops)) = replayed_figures(&jobs, operation).filter(|_| ios > 0) else {
                    continue;
                };
                let recorded_ns = sum_ns / ios as f64;
                let job = name.to_owned();
                rows.push(SelfCheck { job, operation, ios, recorded_ns, replayed_ns, recorded_iops, replayed_iops });
            }
        }
        rows
    }
}

fn latency_of(stream: &Stream, operation: Operation) -> Latency {
    match operation {
        Operation::Read => stream.read_latency,
        Operation::Trim => stream.discard_latency,
        Operation::Write | Operation::Sync => stream.write_latency,
    }
}

/// What a stream did in an operation, and in how many seconds: from the end of the ramp to its last I/O, as in its replay, even if it
/// began later. `is_whole`: with the ramp. Its slices do not tell discards from writes, so of these only the whole is known.
fn recorded_figures(stream: &Stream, operation: Operation, span_ns: u64, is_whole: bool) -> (Done, f64) {
    let ramp_ns = span_ns / RAMP_SHARE as u64;
    let from_ns = if stream.last_ns > ramp_ns { ramp_ns } else { stream.first_ns };
    let seconds = stream.last_ns.saturating_sub(from_ns).max(1) as f64 / 1e9;
    if is_whole {
        let latency = latency_of(stream, operation);
        return (Done { ios: latency.ios, mean_ns: latency.mean_ns }, seconds);
    }
    let (mut ios, mut sum_ns) = (0, 0.0);
    if operation == Operation::Read || stream.discards.0 == 0 {
        for slice in stream.over_time.iter().skip(stream.over_time.len() / RAMP_SHARE) {
            let part = if operation == Operation::Read { slice.reads } else { slice.writes };
            ios += part.ios;
            sum_ns += part.mean_ns * part.ios as f64;
        }
    }
    (Done { ios, mean_ns: sum_ns / ios.max(1) as f64 }, seconds)
}

/// The recorded I/O of some streams over time, without the ramp.
fn over_time(streams: &[&Stream]) -> Vec<RecordedSeries> {
    let series_of = |operation: Operation| {
        let (mut series, mut length_ns) = (SeriesSummary::default(), 0);
        for stream in streams {
            let intervals = stream.over_time.iter().skip(stream.over_time.len() / RAMP_SHARE);
            for (index, part) in intervals.enumerate() {
                length_ns = part.length_ns;
                let done = if operation == Operation::Read { part.reads } else { part.writes };
                if series.ios.len() <= index {
                    series.ios.push(0);
                    series.mean_lat_ns.push(0);
                }
                let (ios, mean_ns) = (&mut series.ios[index], &mut series.mean_lat_ns[index]);
                let sum_ns = *mean_ns as f64 * *ios as f64 + done.mean_ns * done.ios as f64;
                *ios += done.ios;
                *mean_ns = (sum_ns / (*ios).max(1) as f64) as u64;
            }
        }
        series.interval_seconds = length_ns as f64 / 1e9;
        RecordedSeries { operation, series }
    };
    let all = [series_of(Operation::Read), series_of(Operation::Write)].into_iter();
    all.filter(|recorded| recorded.series.ios.iter().any(|ios| *ios > 0)).collect()
}

/// Mean latency and rate of an operation in the runs of a job: flushes count as writes, as in the recording.
fn replayed_figures(jobs: &[&JobSummary], operation: Operation) -> Option<(f64, f64)> {
    let (mut ios, mut sum_ns, mut iops) = (0.0, 0.0, 0.0);
    let mut add = |count: u64, mean_ns: f64, rate: f64| {
        ios += count as f64;
        sum_ns += mean_ns * count as f64;
        iops += rate;
    };
    for job in jobs {
        for summary in &job.operations {
            let recorded_as = if summary.operation == Operation::Sync { Operation::Write } else { summary.operation };
            if recorded_as == operation {
                add(summary.ios, summary.lat_ns.mean, summary.iops);
            }
        }
    }
    (ios > 0.0).then(|| (sum_ns / ios, iops / jobs.len() as f64))
}
